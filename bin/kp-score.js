#!/usr/bin/env node
'use strict';

// Bundled from cli/ by scripts/build-cli.mjs.
require('../dist/kp-score.js').runProcess();

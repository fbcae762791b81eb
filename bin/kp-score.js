#!/usr/bin/env node
'use strict';

// The doctor needs neither the addon nor the bundle: it is what examines them.
if (process.argv[2] === 'doctor') require('../lib/doctor/command.js').runProcess();
// Bundled from cli/ by scripts/build-cli.mjs.
else require('../dist/kp-score.js').runProcess();

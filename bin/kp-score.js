#!/usr/bin/env node
'use strict';

// The doctor checks the addon, so it runs without it.
if (process.argv[2] === 'doctor') require('../lib/doctor/doctor.js').runProcess();
else require('../lib/command/process.js').runProcess();

#!/usr/bin/env node
'use strict';

// The doctor needs no addon: it is what examines that.
if (process.argv[2] === 'doctor') require('../lib/doctor/command.js').runProcess();
else require('../lib/command/process.js').runProcess();

'use strict';

// Lines of programs, logs, documents and configurations that hold no secret, but look as if they did. The tests and the benchmark clean them.

const fs = require('node:fs');
const path = require('node:path');

const HARMLESS = fs.readFileSync(path.join(__dirname, 'harmless-lines.txt'), 'utf8').trimEnd().split('\n');

module.exports = { HARMLESS };

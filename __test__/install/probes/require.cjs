'use strict';

const { report, reportError } = require('./report.cjs');

try {
  report(require('@knowledgepulse/native'));
} catch (error) {
  reportError(error);
}

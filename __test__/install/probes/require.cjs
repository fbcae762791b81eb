'use strict';

require('./report.cjs').report(require('@knowledgepulse/native'));

import { embedderStatus, evaluateValue, VectorCache } from '@knowledgepulse/native';

import { report } from './report.cjs';

await report({ embedderStatus, evaluateValue, VectorCache });

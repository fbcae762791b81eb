import { embedderStatus, evaluateValue } from '@knowledgepulse/native';

import { report } from './report.cjs';

await report({ embedderStatus, evaluateValue });

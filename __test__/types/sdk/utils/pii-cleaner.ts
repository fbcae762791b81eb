export { cleanPii, type PiiCleanResult } from '@knowledgepulse/native';

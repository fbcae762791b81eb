export { VectorCache } from '@knowledgepulse/native';

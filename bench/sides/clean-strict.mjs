import { cleanPii } from '../../index.js';
import { serveCleaner } from './cleaner.mjs';

await serveCleaner((text) => cleanPii(text, { strict: true }));

// The addon in WebAssembly for Node.js and its like: what `require('@knowledgepulse/native-wasm32')` gives, with the interface of
// lib/binding.d.ts.

import fs from 'node:fs';
import path from 'node:path';

import { instantiate } from './instance.mjs';
import { systemInterface } from './node-system.mjs';

// It is bundled as CommonJS, which has this.
const module = new WebAssembly.Module(fs.readFileSync(path.join(__dirname, 'knowledgepulse.wasm')));

export default instantiate(module, systemInterface());

// An instance of the addon in WebAssembly. It is the addon of the other platforms, compiled from the same source: emnapi provides
// Node-API, in JavaScript, and the WASI of @tybys/wasm-util provides clocks, random numbers and files.

import { instantiateNapiModule, instantiateNapiModuleSync } from '@emnapi/core';
import { asyncWork, tsfn } from '@emnapi/core/plugins';
import { createContext } from '@emnapi/runtime';

import { corrected } from './node-api.mjs';

/** @typedef {typeof import('../lib/binding.js')} Addon */

/**
 * @import { InstantiateOptions } from '@emnapi/core'
 * @import { WASI } from '@tybys/wasm-util'
 */

/** The pages of 64 KiB that the memory has at first, most of which are for the stack and cost nothing until used, and at most. */
const INITIAL_PAGES = 1024;
const MOST_PAGES = 65536;

/**
 * Makes an instance; each has a memory of its own.
 *
 * @param {WebAssembly.Module} module
 * @param {WASI} wasi
 */
export function instantiate(module, wasi) {
  return /** @type {Addon} */ (instantiateNapiModuleSync(module, options(wasi)).napiModule.exports);
}

/**
 * The same where the engine must not wait for it: on the main thread of a page.
 *
 * @param {WebAssembly.Module} module
 * @param {WASI} wasi
 */
export async function instantiateLater(module, wasi) {
  const { napiModule } = await instantiateNapiModule(module, options(wasi));
  return /** @type {Addon} */ (napiModule.exports);
}

/**
 * @param {WASI} wasi
 * @returns {InstantiateOptions}
 */
function options(wasi) {
  const memory = new WebAssembly.Memory({ initial: INITIAL_PAGES, maximum: MOST_PAGES });
  const context = createContext();
  // Otherwise the context ends at the first `beforeExit`, after which a program may go on.
  context.suppressDestroy();
  return {
    context,
    // It is told of `initialize` alone, and the types differ in `start`.
    wasi: /** @type {any} */ (wasi),
    asyncWorkPoolSize: 0,
    plugins: [asyncWork, tsfn],
    overwriteImports: (imports) => {
      const functions = /** @type {Record<string, (...args: number[]) => number>} */ (imports.napi);
      imports.env = {
        ...imports.env,
        ...functions,
        ...corrected(context, memory, functions),
        ...imports.emnapi,
        memory,
      };
      return imports;
    },
    beforeInit: ({ instance }) => {
      for (const [name, register] of Object.entries(instance.exports)) {
        if (name.startsWith('__napi_register__')) /** @type {() => void} */ (register)();
      }
    },
  };
}

/**
 * The addon, once it is there: what lib/loader.js is on Node.js.
 *
 * @type {{ addon?: typeof import('../../lib/binding.js'), file: null, directory: null }}
 */
export const holder = { file: null, directory: null };

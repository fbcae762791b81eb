// The globals of Node.js that the package uses, for a browser.

export const process = {
  env: {},
  platform: 'browser',
  arch: 'wasm32',
  versions: {},
  /** @param {string} message */
  emitWarning: (message) => console.warn(message),
};

export const Buffer = { byteLength: (/** @type {string} */ text) => new TextEncoder().encode(text).length };

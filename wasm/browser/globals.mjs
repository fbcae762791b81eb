// The globals of Node.js that the package uses, for a browser.

export const process = {
  env: {},
  platform: 'browser',
  arch: 'wasm32',
  versions: {},
  /** @param {string} message */
  emitWarning: (message) => console.warn(message),
};

/** @param {string} text */
const bytesOf = (text) => new TextEncoder().encode(text);

export const Buffer = {
  byteLength: (/** @type {string} */ text) => bytesOf(text).length,
  from: (/** @type {string} */ text) => {
    const bytes = bytesOf(text);
    return { toString: () => new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes) };
  },
};

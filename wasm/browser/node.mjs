// What the package uses of Node.js, for a browser. There are no files, so whoever looks for one finds none.

/** @param {unknown} value @param {(value: any) => unknown} use throws for everything else */
function isOne(value, use) {
  try {
    use(value);
    return true;
  } catch {
    return false;
  }
}

/** @param {object} prototype @param {PropertyKey} name */
const getter = (prototype, name) =>
  /** @type {() => unknown} */ (Object.getOwnPropertyDescriptor(prototype, name)?.get);

const kindOfView = getter(Object.getPrototypeOf(Float32Array.prototype), Symbol.toStringTag);
const lengthOfBuffer = getter(ArrayBuffer.prototype, 'byteLength');
const lengthOfShared =
  typeof SharedArrayBuffer === 'undefined' ? undefined : getter(SharedArrayBuffer.prototype, 'byteLength');

/** @param {unknown} value */
const isSharedArrayBuffer = (value) =>
  lengthOfShared !== undefined && isOne(value, (it) => lengthOfShared.call(it));

const sourceOf = getter(RegExp.prototype, 'source');
const lengthOfView = getter(DataView.prototype, 'byteLength');

/** `types` of `node:util`: an object of another page is one too. */
export const types = {
  isAnyArrayBuffer: (/** @type {unknown} */ value) =>
    isSharedArrayBuffer(value) || isOne(value, (it) => lengthOfBuffer.call(it)),
  isDataView: (/** @type {unknown} */ value) => isOne(value, (it) => lengthOfView.call(it)),
  isDate: (/** @type {unknown} */ value) => isOne(value, (it) => Date.prototype.getTime.call(it)),
  isFloat32Array: (/** @type {unknown} */ value) => kindOfView.call(value) === 'Float32Array',
  isFloat64Array: (/** @type {unknown} */ value) => kindOfView.call(value) === 'Float64Array',
  isMap: (/** @type {unknown} */ value) => isOne(value, (it) => Map.prototype.has.call(it, undefined)),
  isPromise: (/** @type {unknown} */ value) => Object.prototype.toString.call(value) === '[object Promise]',
  isRegExp: (/** @type {unknown} */ value) => isOne(value, (it) => sourceOf.call(it)),
  isSharedArrayBuffer,
  isUint8Array: (/** @type {unknown} */ value) => kindOfView.call(value) === 'Uint8Array',
};

/** `setImmediate` of `node:timers/promises`: messages, unlike timers, come at once. */
export const setImmediate = () =>
  new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      port1.close();
      resolve(undefined);
    };
    port2.postMessage(undefined);
  });

/** `setTimeout` of `node:timers/promises`. @param {number} milliseconds */
const sleep = (milliseconds) => new Promise((resolve) => globalThis.setTimeout(resolve, milliseconds));

export { sleep as setTimeout };

/** Of `node:events`: pages have no limit. */
export const setMaxListeners = () => {};

/** Of `node:crypto`. */
export const randomUUID = () => crypto.randomUUID();

/** Of `node:worker_threads`: nothing is to be done at the end of a page. */
export const isMainThread = false;

const nothing = () => {
  throw Object.assign(new Error('a page has no files'), { code: 'ENOENT' });
};

/** Of `node:fs`. */
export const existsSync = () => false;
export { nothing as lstatSync, nothing as readdirSync, nothing as readFileSync };

/** Of `node:module`. */
export const createRequire = () => ({ resolve: nothing });

/** Of `node:url`. @param {string} url */
export const fileURLToPath = (url) => decodeURI(new URL(url).pathname);

/** Of `node:path`. @param {string[]} parts */
export const join = (...parts) => parts.join('/');
/** @param {string} path */
export const resolve = (path) => path;

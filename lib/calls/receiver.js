'use strict';

const { codedError } = require('./errors.js');

/**
 * Makes the methods of a class throw `ERR_INVALID_THIS`, or reject with it, when they are called without an object of the class, as after
 * `const { add } = cache`. The engine's error would name a private field. Copies inherited methods into the class.
 *
 * @param {Function} Class
 * @param {(value: unknown) => boolean} isOwn whether a value is an object of the class
 */
function requireReceiver(Class, isOwn) {
  const inherited = Object.getOwnPropertyDescriptors(Object.getPrototypeOf(Class).prototype ?? {});
  const descriptors = { ...inherited, ...Object.getOwnPropertyDescriptors(Class.prototype) };
  for (const [name, descriptor] of Object.entries(descriptors)) {
    const method = descriptor.value;
    if (typeof method !== 'function' || name === 'constructor') continue;
    const isAsync = method.constructor.name === 'AsyncFunction';
    const { [name]: value } = {
      /** @type {(this: unknown, ...args: unknown[]) => unknown} */
      [name](...args) {
        if (isOwn(this)) return method.apply(this, args);
        const message =
          `${name} must be called on a ${Class.name}, as in object.${name}(…): ` +
          `instead of the method alone, pass (...args) => object.${name}(...args)`;
        const error = codedError(TypeError, 'ERR_INVALID_THIS', message);
        if (isAsync) return Promise.reject(error);
        throw error;
      },
    };
    Object.defineProperty(Class.prototype, name, { ...descriptor, value });
  }
}

module.exports = { requireReceiver };

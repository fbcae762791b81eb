'use strict';

// Objects that do what no honest caller's do.

/** A proxy that was revoked: whatever is done with it throws. */
function revoked(target) {
  const { proxy, revoke } = Proxy.revocable(target, {});
  revoke();
  return proxy;
}

/** A proxy that throws `thrown` when a property is read; only that one, if `only` names it. */
function throwingProxy(target, thrown, only) {
  return new Proxy(target, {
    get(target, key, receiver) {
      if (only === undefined || key === only) throw thrown;
      return Reflect.get(target, key, receiver);
    },
  });
}

/** `object`, whose property `key` throws `thrown` when it is read. */
function throwingGetter(object, key, thrown) {
  const get = () => {
    throw thrown;
  };
  return Object.defineProperty(object, key, { get, enumerable: true, configurable: true });
}

/** What throws when it is looked at, to be thrown itself. */
const hostile = {
  toString() {
    throw new Error('toString');
  },
  get message() {
    throw new Error('message');
  },
  get name() {
    throw new Error('name');
  },
};

/** An array that claims `length` to be its length. */
function claiming(array, length) {
  return new Proxy(array, { get: (target, key) => (key === 'length' ? length : target[key]) });
}

/** Lengths that no array has, with what is said of them. */
const lengths = [
  [Symbol('length'), TypeError, 'a number, got symbol'],
  [{ valueOf: () => hostile.toString() }, TypeError, 'a number, got object'],
  ['7', TypeError, 'a number, got string'],
  [undefined, TypeError, 'a number, got undefined'],
  [Number.NaN, RangeError, 'a safe integer of at least 0, got NaN'],
  [-1, RangeError, 'a safe integer of at least 0, got -1'],
  [1.5, RangeError, 'a safe integer of at least 0, got 1.5'],
];

module.exports = { claiming, lengths, hostile, revoked, throwingGetter, throwingProxy };

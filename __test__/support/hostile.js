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

module.exports = { hostile, revoked, throwingGetter, throwingProxy };

// Values that a caller should never pass, each with a name and made anew for each use.

import vm from 'node:vm';

import fc from 'fast-check';

import { revoked } from '../support/hostile.js';

const otherRealm = vm.createContext({});

const throwing = (thrown) => () => {
  throw thrown;
};

/** What a getter or a trap may throw: not only errors. */
export const thrown = [
  new Error('on purpose'),
  undefined,
  null,
  'a string',
  Symbol('thrown'),
  {
    get message() {
      throw new Error('the message');
    },
    toString: throwing(new Error('toString')),
  },
  revoked({}),
];

/** The text of strings and parts of texts. A pool, because each new text costs a run of the model. */
export const texts = [
  '',
  ' ',
  'retry',
  'The log ends in a linker error.',
  'naïve Straße ΟΔΥΣΣΕΥΣ İstanbul',
  'привет مرحبا नमस्ते 你好世界 한국어 ไทย',
  '👩‍💻 🇩🇪 e\u0301 \u200b\u00ad\ufeff',
  '[MASK] [SEP] [CLS][PAD]',
  '\ud800',
  '\udc00\ud800 lone',
  'nul \u0000 and \u0007',
  'word '.repeat(700),
  'x'.repeat(5000),
];

const megabytes = ['lorem ipsum ', 'слово ', '\ud800', 'a'].map((unit) =>
  flat(unit.repeat(Math.ceil(2 ** 20 / unit.length))),
);

/** One buffer instead of a tree of parts, as strings from a socket or `JSON.parse` are. */
function flat(text) {
  return JSON.parse(JSON.stringify(text));
}

function cyclic(object) {
  object.self = object;
  object.steps = [object];
  object.task = object;
  object.tool = object;
  return object;
}

function claiming(length) {
  // With its receiver: otherwise `__proto__` of what inherits from the proxy would be everyone's prototype.
  const get = (target, key, receiver) => (key === 'length' ? length : Reflect.get(target, key, receiver));
  return new Proxy([], { get });
}

class Impostor {
  #secret = 'text';

  get name() {
    return this.#secret;
  }

  [Symbol.toPrimitive]() {
    throw new Error('converted');
  }
}

const frequent = {
  undefined: () => undefined,
  null: () => null,
  true: () => true,
  false: () => false,
  zero: () => 0,
  '-0': () => -0,
  'a half': () => 0.5,
  'a negative number': () => -1,
  'the smallest number': () => Number.MIN_VALUE,
  'more than 1': () => 1 + Number.EPSILON,
  NaN: () => Number.NaN,
  Infinity: () => Number.POSITIVE_INFINITY,
  '-Infinity': () => Number.NEGATIVE_INFINITY,
  '2 ** 53': () => 2 ** 53,
  'a bigint': () => 2n ** 70n,
  'a symbol': () => Symbol('hostile'),
  'a function': () => () => 'text',
  'a class': () => Impostor,
  'an instance': () => new Impostor(),
  'a boxed string': () => new String('text'),
  'a boxed number': () => new Number(0.5),
  'a boxed symbol': () => Object(Symbol('boxed')),
  'an empty object': () => ({}),
  'an object without prototype': () => Object.create(null),
  'an object that inherits itself': () => Object.create(cyclic({ type: 'thought' })),
  'a cyclic object': () => cyclic({}),
  'a cyclic array': () => {
    const array = [];
    array.push(array);
    return array;
  },
  'an empty array': () => [],
  'a frozen array': () => Object.freeze([Object.freeze({ type: 'thought' })]),
  'a sparse array': () => Object.assign([], { length: 3, 7: { type: 'thought' } }),
  'an array of the largest length': () => Object.assign([], { length: 2 ** 32 - 1 }),
  'an array of another realm': () => vm.runInContext('[{ type: "thought" }]', otherRealm),
  'an object of another realm': () => vm.runInContext('({ type: "thought", name: "text" })', otherRealm),
  'an array with accessors': () =>
    Object.defineProperty([], 0, { get: throwing(new Error('element')), configurable: true }),
  'arguments of a function': () => argumentsOf({ type: 'thought' }),
  'a Map': () => new Map([['name', 'text']]),
  'a Date': () => new Date(Number.NaN),
  'a regular expression': () => /text/g,
  'a promise that rejects': () => {
    const promise = Promise.reject(new Error('inside the trace'));
    promise.catch(() => {});
    return promise;
  },
  // biome-ignore lint/suspicious/noThenProperty: a thenable is what is wanted
  'a thenable': () => ({ then: throwing(new Error('then')) }),
  'a typed array': () => new Float32Array(384),
  'a buffer': () => Buffer.from('text'),
  'a DataView': () => new DataView(new ArrayBuffer(8)),
  'an error': () => new TypeError('as a value'),
  'a weak reference': () => new WeakRef({}),
  'a generator': () =>
    (function* () {
      yield { type: 'thought' };
    })(),
  'a revoked proxy': () => revoked({}),
  'a revoked proxy of an array': () => revoked([]),
  'a revoked proxy of a function': () => revoked(() => {}),
  'a proxy that sees nothing': () => new Proxy({}, { get: () => undefined, has: () => false }),
  'a proxy that claims a length': () => claiming(2 ** 32 - 1),
  'a proxy that claims no length': () => claiming(Number.NaN),
  'a proxy of a proxy of an array': () => new Proxy(new Proxy([{ type: 'thought' }], {}), {}),
};

function argumentsOf() {
  // biome-ignore lint/complexity/noArguments: the object itself is what is wanted
  return arguments;
}

const named = ([name, make]) => ({ name, make });

const text = fc.constantFrom(...texts).map((value) => ({
  name: value.length > 40 ? `${value.length} characters` : JSON.stringify(value),
  make: () => value,
}));
const megabyte = fc.constantFrom(...megabytes).map((value) => ({
  name: `${value.length} characters of ${JSON.stringify(value.slice(0, 12))}`,
  make: () => value,
}));
const throwingProxy = fc.constantFrom(...thrown.keys()).map((index) => ({
  name: `a proxy that throws (${index})`,
  make: () =>
    new Proxy([], {
      get: throwing(thrown[index]),
      getPrototypeOf: throwing(thrown[index]),
      ownKeys: throwing(thrown[index]),
    }),
}));

/** Any value at all: what it is called, and a function that makes it. */
export const value = fc.oneof(
  { weight: 240, arbitrary: fc.constantFrom(...Object.entries(frequent).map(named)) },
  { weight: 60, arbitrary: text },
  { weight: 20, arbitrary: throwingProxy },
  { weight: 1, arbitrary: megabyte },
);

/** Values with names, as `value` has them. */
export const plain = (arbitrary) =>
  arbitrary.map((value) => ({ name: `${value}`.slice(0, 40), make: () => value }));

/** One of `good`, or any value at all. */
export const option = (good, weight = 8) =>
  fc.oneof({ weight, arbitrary: plain(fc.constantFrom(...good)) }, { weight: 1, arbitrary: value });

/** Objects with named values; `make` hands its arguments on. */
export const objectOf = (parts) =>
  fc.record(parts).map((made) => {
    const entries = Object.entries(made);
    return {
      name: entries.map(([key, { name }]) => `${key}: ${name}`).join(', '),
      make: (...args) => Object.fromEntries(entries.map(([key, { make }]) => [key, make(...args)])),
    };
  });

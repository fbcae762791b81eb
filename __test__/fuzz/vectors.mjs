// Calls of the vector cache, with vectors and options that are good, slightly wrong or absurd.

import fc from 'fast-check';

import { objectOf, option, plain, thrown, value } from './values.mjs';

/** A number of the kinds that a vector may hold, and some that it may not. */
const component = fc.oneof(
  { weight: 30, arbitrary: fc.double({ min: -1, max: 1, noNaN: true }) },
  {
    weight: 1,
    arbitrary: fc.constantFrom(0, -0, Number.NaN, Number.POSITIVE_INFINITY, 5e-324, 1e-200, 1e200, 3e38),
  },
);

/** What holds the components of a vector. */
const holders = {
  'an array': (components) => components,
  'a frozen array': (components) => Object.freeze([...components]),
  'an array-like': (components) => ({ ...components, length: components.length }),
  'an array with a hole': (components) => Object.assign([], { length: components.length }, { 0: 1 }),
  'an array of strings': (components) => components.map(String),
  'an array of bigints': (components) => components.map(() => 1n),
  'a proxy': (components) => new Proxy(components, {}),
  'a Float32Array': (components) => new Float32Array(components),
  'a Float64Array': (components) => new Float64Array(components),
  'an Int8Array': (components) => new Int8Array(components),
  'a BigInt64Array': (components) => new BigInt64Array(components.length),
  'a DataView': (components) => new DataView(new Float32Array(components).buffer),
  'a Buffer': (components) => Buffer.from(components),
  'an unaligned view': (components) => new Float32Array(new ArrayBuffer(components.length * 4 + 4), 4),
  'shared memory': (components) => {
    const array = new Float32Array(new SharedArrayBuffer(components.length * 4));
    array.set(components);
    return array;
  },
  'detached memory': (components) => {
    const array = new Float32Array(components);
    structuredClone(array.buffer, { transfer: [array.buffer] });
    return array;
  },
  'memory that was resized': (components) => {
    const buffer = new ArrayBuffer(components.length * 8, { maxByteLength: components.length * 16 });
    const array = new Float64Array(buffer);
    buffer.resize(components.length * 4);
    return array;
  },
  'shared memory that grew': (components) => {
    const buffer = new SharedArrayBuffer(components.length * 8, { maxByteLength: components.length * 16 });
    const array = new Float64Array(buffer);
    buffer.grow(components.length * 16);
    return array;
  },
  'a subclass that lies': (components) => {
    class Liar extends Float32Array {
      get length() {
        return 2 ** 40;
      }

      get buffer() {
        throw new Error('buffer');
      }

      static get [Symbol.species]() {
        throw new Error('species');
      }
    }
    return new Liar(components);
  },
  'an array-like that shrinks': (components) => {
    let reads = 0;
    return new Proxy(components, {
      get: (target, key) => (reads++ > target.length / 2 ? undefined : target[key]),
    });
  },
  'an array-like that throws': (components) =>
    new Proxy(components, {
      get(target, key) {
        if (key === String(target.length - 1)) throw thrown[components.length % thrown.length];
        return target[key];
      },
    }),
  'a claim of a length': () => ({ length: 2 ** 40, 0: 1 }),
};

/** A vector, mostly of one of the lengths that the caches take. */
const vector = fc.oneof(
  {
    weight: 12,
    arbitrary: fc
      .record({
        holder: fc.constantFrom(...Object.keys(holders)),
        length: fc.oneof(
          { weight: 8, arbitrary: fc.constantFrom(4, 384) },
          { weight: 1, arbitrary: fc.constantFrom(0, 1, 3, 5, 383, 385) },
        ),
        few: fc.array(component, { minLength: 1, maxLength: 8 }),
      })
      .map(({ holder, length, few }) => ({
        name: `${holder} of ${length}`,
        make: () => holders[holder](Array.from({ length }, (_, index) => few[index % few.length])),
      })),
  },
  { weight: 2, arbitrary: value },
);

/** An option of a new cache: it is good, any value at all, or any number. */
const limit = (good) =>
  fc.oneof({ weight: 5, arbitrary: option(good, 4) }, { weight: 1, arbitrary: plain(fc.double()) });

const options = fc.oneof(
  {
    weight: 6,
    arbitrary: objectOf({
      maxElements: limit([undefined, 0, 1, 8, 1000, Number.MAX_SAFE_INTEGER]),
      dimensions: limit([undefined, 4, 384, 2 ** 40, Number.MAX_SAFE_INTEGER]),
      ttlMs: limit([undefined, 0, 1, 1e300, -1, Number.NaN]),
    }),
  },
  { weight: 1, arbitrary: value },
);

const cache = fc.nat({ max: 5 });

/** A call of a cache: the number of the cache, the member, and the arguments if it takes any. */
const call = (weight, members, parts) => ({
  weight,
  arbitrary: fc.record({ member: fc.constantFrom(...members), ...parts }),
});

export const cacheCall = fc.oneof(
  call(8, ['add', 'maxCosineSimilarity'], { cache, argument: vector }),
  call(2, ['size', 'evictExpired', 'clear'], { cache }),
  call(2, ['constructor'], { argument: options }),
);

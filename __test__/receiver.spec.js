'use strict';

// Methods that are called without their object: the error names the class and says how to call them.

const { Embedder, Scorer, TraceMemory, VectorCache } = require('..');
const { PostgresStore } = require('../postgres.js');
const { makeTrace } = require('./support/make-trace.js');

const objects = {
  PostgresStore: new PostgresStore({ pool: { connect() {} }, novelty: 'lexical' }),
  Scorer: new Scorer(),
  TraceMemory: new TraceMemory(),
  VectorCache: new VectorCache(),
};

const cases = Object.entries(objects).flatMap(([type, object]) =>
  Object.entries(Object.getOwnPropertyDescriptors(Object.getPrototypeOf(object)))
    .filter(([name, { value }]) => typeof value === 'function' && name !== 'constructor')
    .map(([name]) => [type, name]),
);

test.each(cases)(
  '%s.%s throws or rejects with ERR_INVALID_THIS without its object, and on a proxy',
  async (type, name) => {
    const { [name]: method } = objects[type];
    const proxy = new Proxy(objects[type], {});
    for (const call of [() => method(), () => proxy[name](), () => method.call({})]) {
      let error;
      try {
        await call();
      } catch (thrown) {
        error = thrown;
      }
      expect(error).toBeInstanceOf(TypeError);
      expect(error.code).toBe('ERR_INVALID_THIS');
      expect(error.message).toContain(`${name} must be called on a ${type}`);
      expect(error.message).toContain(`(...args) => object.${name}(...args)`);
    }
  },
);

test('a getter of VectorCache throws a TypeError without its object', () => {
  for (const getter of ['size', 'maxElements', 'dimensions', 'ttlMs', 'model', 'method']) {
    expect(() => Object.create(VectorCache.prototype)[getter]).toThrow(TypeError);
  }
});

test('an asynchronous method rejects, and a synchronous one throws', async () => {
  const { evaluateValue } = objects.Scorer;
  const { compare } = objects.TraceMemory;
  const { add } = objects.VectorCache;
  for (const method of [evaluateValue, compare]) {
    const reply = method();
    await expect(reply).rejects.toMatchObject({ code: 'ERR_INVALID_THIS' });
  }
  expect(() => add([1])).toThrow(expect.objectContaining({ code: 'ERR_INVALID_THIS' }));
});

test('the methods of an Embedder work without it', async () => {
  const { embed } = new Embedder();
  await expect(embed(7)).rejects.toMatchObject({ code: 'ERR_INVALID_TEXT' });
});

test('a class that extends one of these keeps its methods', async () => {
  class Counting extends TraceMemory {
    calls = 0;

    async nearest(...args) {
      this.calls++;
      return super.nearest(...args);
    }
  }
  const memory = new Counting();
  expect(await memory.nearest(makeTrace())).toEqual([]);
  expect(memory.calls).toBe(1);
});

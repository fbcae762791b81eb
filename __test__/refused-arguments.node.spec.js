'use strict';

// The arguments that each call refuses, with the class, the code and the message of the error. Traces have invalid-traces.node.spec.js.

const kp = require('..');
const { PostgresStore } = require('../postgres.js');
const {
  claiming,
  hostile,
  lengths,
  revoked,
  throwingGetter,
  throwingProxy,
} = require('./support/hostile.js');
const { makeTrace } = require('./support/make-trace.js');
const { MemoryStore } = require('./store/stores.js');
const { rejectionOf, thrownBy } = require('./support/refusals.js');

const {
  KnowledgePulseError,
  Scorer,
  TraceMemory,
  VectorCache,
  clean,
  cleanPii,
  configureEmbedder,
  embed,
  readTraces,
  select,
} = kp;

const OPTION = 'ERR_INVALID_OPTION';
const INPUT = 'ERR_INVALID_INPUT';
const TRACE = 'ERR_INVALID_TRACE';

const { signal } = new AbortController();
const vectors = new VectorCache();
const full = new TraceMemory({ method: 'full' });
const equal = { complexity: 0.25, novelty: 0.25, toolDiversity: 0.25, outcomeConfidence: 0.25 };
const weights = (parts) => ({ weights: { x: { ...equal, ...parts } } });
const model = { weights: new Uint8Array(8), tokenizer: new Uint8Array(8) };
const trace = makeTrace();
const hole = new Array(1);

const MEMORY = 'must be a TraceMemory or a PostgresStore, got';
const METHOD = ".method must be 'prefix', 'lexical' or 'full'";
const COUNT = 'a number or a percentage';
const LEVEL = "must be 'aggregated', 'federated' or 'private'";
const TABLE = '.table must be a name';
const threw = 'could not be read: it threw';

/**
 * Tests that a call with a wrong argument fails with an error of a code. Each row is an argument, what the message says after its name,
 * and the class, if it is no TypeError.
 */
const refusesBy = (how, failureOf) => (name, code, subject, call, rows) =>
  test.each(rows.map(([argument, said, Class = TypeError]) => [subject + said, argument, Class]))(
    `${name} ${how} for an argument: %s`,
    async (message, argument, Class) => {
      const error = await failureOf(() => call(argument));
      expect({ code: error.code, name: error.name }).toEqual({ code, name: Class.name });
      expect(error).toBeInstanceOf(Class);
      expect(error.message.slice(0, message.length)).toBe(message);
    },
  );
const throws = refusesBy('throws', thrownBy);
const rejects = refusesBy('rejects', (call) => rejectionOf(call()));

throws('new Scorer', OPTION, 'options', (options) => new Scorer(options), [
  [null, ' must be an object, got null'],
  [{ embed: null }, '.embed must be a boolean'],
  [{ memory: vectors }, `.memory ${MEMORY} object`],
  [{ memory: null }, `.memory ${MEMORY} null`],
  [
    { memory: Object.assign(new MemoryStore(), { method: 'half' }) },
    ".memory.method must be 'prefix', 'lexical' or 'full'",
    RangeError,
  ],
  [{ novlety: 'full' }, '.novlety is not an option of this call; its options are embed, memory, weights'],
  [throwingProxy({}, 'no', 'memory'), `.memory ${threw}`],
  [weights({ outcomeConfidence: 0.5 }), '.weights["x"] must sum to 1, but sums to 1.25', RangeError],
  [weights({ outcomeConfidence: 1 / 0 }), '.weights["x"].outcomeConfidence', RangeError],
  [{ weights: { x: { complexity: 1 } } }, '.weights["x"].novelty must be a number'],
  [weights({ outcomeConfidence: '0.25' }), '.weights["x"].outcomeConfidence must be a number'],
  [weights({ tool: 0 }), '.weights["x"].tool is not known; options'],
  [{ weights: { x: null } }, '.weights["x"] must be an object, got null'],
  [{ weights: [equal] }, '.weights must be an object, got array'],
  [{ weights: new Map([['x', equal]]) }, '.weights must be an object, not a Map'],
  [{ weights: revoked({}) }, '.weights could not be read'],
  [{ weights: throwingGetter({}, 'x', hostile) }, `.weights["x"] ${threw}`],
]);

const WHOLE = 'must be a safe integer of at least';
throws('new VectorCache', OPTION, 'options', (options) => new VectorCache(options), [
  [null, ' must be an object, got null'],
  [{ maxElements: '10' }, '.maxElements must be a number, got string'],
  [{ dimensions: null }, '.dimensions must be a number, got null'],
  [{ ttlMs: new Date(10) }, '.ttlMs must be a number, got object'],
  ...[-1, 0.5, 2 ** 53, Number.NaN, 1 / 0].map((maxElements) => [
    ...[{ maxElements }, `.maxElements ${WHOLE} 0, got ${maxElements}`, RangeError],
  ]),
  [{ dimensions: 0 }, `.dimensions ${WHOLE} 1, got 0`, RangeError],
  [{ ttlMs: -1 }, '.ttlMs must be a number of at least 0, got -1', RangeError],
  [{ ttlMs: Number.NaN }, '.ttlMs must be a number of at least 0, got NaN', RangeError],
  [throwingGetter({}, 'ttlMs', hostile), `.ttlMs ${threw}`],
  [revoked({}), `.maxElements ${threw}`],
]);

/** A vector of 3 numbers whose memory is gone, cut, or shared with threads. */
function detached(Type) {
  const vector = new Type(3);
  structuredClone(vector.buffer, { transfer: [vector.buffer] });
  return vector;
}
function shrunk() {
  const buffer = new ArrayBuffer(12, { maxByteLength: 12 });
  const vector = new Float32Array(buffer, 0, 3);
  buffer.resize(8);
  return vector;
}
const shared = (length, value) => new Float32Array(new SharedArrayBuffer(length * 4)).fill(value);

/** A vector whose proxy is revoked while its components are read. */
function revokedAt(index) {
  const { proxy, revoke } = Proxy.revocable([1, 2, 3], {
    get(target, key) {
      if (key === String(index)) revoke();
      return target[key];
    },
  });
  return proxy;
}

for (const [method, name] of Object.entries({ add: 'vector', maxCosineSimilarity: 'query' })) {
  const call = (argument) => {
    const cache = new VectorCache({ dimensions: 3, maxElements: 1 });
    cache.add([1, 2, 2]);
    try {
      cache[method](argument);
    } finally {
      // Nothing is displaced from the full cache.
      expect([cache.size, cache.maxCosineSimilarity([1, 2, 2])]).toEqual([1, 1]);
    }
  };
  const ofLength = (vector, length) => [vector, `Expected 3 dimensions, got ${length}`, RangeError];
  throws(`VectorCache ${method}`, 'ERR_INVALID_INPUT', '', call, [
    ...[undefined, null, 1000].map((vector) => [
      vector,
      `${name} must be an array of numbers, got ${vector}`,
    ]),
    ['abc', `${name} must be an array of numbers, got string`],
    ...[[], [1, 2, 3, 4]].map((vector) => ofLength(vector, vector.length)),
    ...[Float32Array, Float64Array, Int8Array].map((Type) => ofLength(new Type(2), 2)),
    ofLength(new Float32Array(4).subarray(2), 2),
    ofLength(shared(2, 0), 2),
    ...[detached(Float32Array), detached(Int16Array), shrunk()].map((vector) => ofLength(vector, 0)),
    ofLength(new Array(2 ** 32 - 1), 2 ** 32 - 1),
    ...[-1, Number.NaN, 3.5, 2 ** 53].map((length) => ofLength({ length, 0: 1, 1: 2, 2: 3 }, length)),
    [{ 0: 1 }, `${name}.length must be a number, got undefined`],
    [{ 0: 1, length: '3' }, `${name}.length must be a number, got string`],
    ...[Array, Float32Array, Float64Array].flatMap((Type) =>
      [Number.NaN, 1 / 0, -1 / 0].map((value, at) => [
        Type.from(Object.assign([1, 2, 3], { [at]: value })),
        ...[`${name}[${at}] must be a finite number, got ${value}`, RangeError],
      ]),
    ),
    [shared(3, Number.NaN), `${name}[0] must be a finite number, got NaN`, RangeError],
    [[1, 2, '3'], `${name}[2] must be a number, got string`],
    [[1, null, 3], `${name}[1] must be a number, got null`],
    [Object.assign(new Array(3), [1]), `${name}[1] must be a number, got undefined`],
    [new BigInt64Array(3), `${name}[0] must be a number, got bigint`],
    [throwingGetter([1, 2, 3], '1', hostile), `${name}[1] ${threw}`],
    [throwingProxy([1, 2, 3], hostile), `${name}.length ${threw}`],
    [revoked(new Float32Array(3)), `${name}.length ${threw}`],
    [revokedAt(1), `${name}[2] ${threw}`],
  ]);

  throws(
    `VectorCache of huge dimensions ${method}`,
    'ERR_OUT_OF_MEMORY',
    'no room for a vector of ',
    (vector) => new VectorCache({ dimensions: Number.MAX_SAFE_INTEGER })[method](vector),
    [[{ length: Number.MAX_SAFE_INTEGER, 0: 1 }, `${Number.MAX_SAFE_INTEGER} dimensions`, RangeError]],
  );
}

test('the cause of an error is what a getter threw, whatever that is', () => {
  for (const cause of [hostile, undefined, 7]) {
    const refused = [
      () => new VectorCache(throwingGetter({}, 'ttlMs', cause)),
      () => vectors.add(throwingGetter({ length: 384 }, '0', cause)),
    ];
    for (const call of refused) {
      const error = thrownBy(call);
      expect(Object.is(error.cause, cause)).toBe(true);
    }
  }
});

throws('new TraceMemory', OPTION, 'options', (options) => new TraceMemory(options), [
  [undefined, ' must be an object, got undefined'],
  [{}, METHOD],
  [{ method: 'words' }, METHOD, RangeError],
  [
    { method: 'full', maxElements: -1 },
    '.maxElements must be a safe integer of at least 0, got -1',
    RangeError,
  ],
  [{ method: 'full', dimensions: 3 }, '.dimensions is not an option of this call'],
]);

throws(
  'new PostgresStore',
  OPTION,
  'options',
  (options) => new PostgresStore({ pool: { connect() {} }, method: 'lexical', ...options }),
  [
    [{ pool: {} }, '.pool must be a Pool of the package pg, got object'],
    [{ method: undefined }, METHOD],
    [{ method: 'words' }, METHOD, RangeError],
    [{ table: '' }, TABLE, RangeError],
    [{ table: 'x'.repeat(58) }, TABLE, RangeError],
    [{ table: '.x' }, TABLE, RangeError],
    [{ table: 'x\0' }, TABLE, RangeError],
    [{ maxElements: 0 }, '.maxElements must be a safe integer of at least 1', RangeError],
    [{ ttlMs: -1 }, '.ttlMs must be a number of at least 0', RangeError],
    [{ fallback: new MemoryStore() }, '.fallback must be a TraceMemory'],
    [{ hnsw: true }, ".hnsw is for method 'prefix'", RangeError],
    [{ index: 'hnsw' }, '.index is not an option'],
  ],
);

throws(
  'new PostgresStore with a fallback of another method',
  'ERR_MEMORY_MISMATCH',
  'options',
  (fallback) => new PostgresStore({ pool: { connect() {} }, method: 'lexical', fallback }),
  [[full, ".fallback compares by method 'full'", Error]],
);

throws('configureEmbedder', OPTION, 'options', configureEmbedder, [
  ...[undefined, null, [], 'model', revoked([])].map((options) => [options, '']),
  [{ modelDirectory: 7 }, '.modelDirectory must be a path, got 7'],
  [{ modelDirectory: '' }, '.modelDirectory must be a path, got an empty string'],
  [throwingGetter({}, 'modelDirectory', new Error('on purpose')), `.modelDirectory ${threw}`],
  [{ engine: 'tensorflow' }, '.engine', RangeError],
  [{ dtype: Object.create(null) }, '.dtype', RangeError],
  [{ model: 'model' }, '.model'],
  [{ model: { weights: model.weights } }, '.model'],
  [{ model: { ...model, weights: 'x' } }, '.model.weights must be a Uint8Array, got string'],
  [{ model, modelDirectory: 'model' }, ''],
  [{ model, dtype: 'q8' }, ''],
  [{ model, engine: 'onnxruntime' }, ''],
  [{ runtimePath: {} }, '.runtimePath must be a path, got object'],
  [{ threads: '2' }, '.threads'],
  ...[0, 1.5, 1 / 0].map((threads) => [{ threads }, '.threads', RangeError]),
]);

throws('readTraces', OPTION, 'options', (options) => readTraces('', options), [
  [{ format: 'csv' }, '.format must be ', RangeError],
  [{ success: 'yes' }, '.success must be '],
  [{ confidence: 2 }, '.confidence is not an option'],
  [{ from: 'atif' }, '.from is not an option'],
  ['atif', ' must be an object'],
]);

const impostor = { [Symbol.toStringTag]: 'Date', valueOf: hostile.toString };
const times = ['soon', 7, null, Symbol('now'), new Date(Number.NaN), impostor];
throws('sessions', OPTION, 'options', kp.sessions, [
  ...times.map((since) => [{ since }, '.since must be a Date', RangeError]),
  [{ agent: 'nobody' }, '.agent must be ', RangeError],
  [{ agent: ['codex', 7] }, '.agent[1] must be ', RangeError],
  [{ project: 7 }, '.project must be a string'],
  [{ ignore: [7] }, '.ignore[0] must be a string'],
  [{ turns: 7 }, '.turns is not an option'],
]);

throws('traceFromMessages', INPUT, 'messages', kp.traceFromMessages, [
  [undefined, ' must be an array, got undefined'],
  [[], ' make no trace: '],
  [[{ role: 'ghost', content: '' }], ' make no trace: '],
  [[1n], ' has no JSON: '],
]);

throws('traceFromMessages with options', OPTION, 'options', (options) => kp.traceFromMessages([], options), [
  [{ success: 1 }, '.success must be a boolean'],
]);

throws('cleanPii', INPUT, 'text', cleanPii, [
  [undefined, ' must be a string, got undefined'],
  [new String('a@b.cc'), ' must be a string, got object'],
]);

throws(
  'cleanPii at a level',
  OPTION,
  'level',
  (level) => cleanPii('text', level),
  ['secret', 0, { level: 'private' }].map((level) => [level, ` ${LEVEL}`, RangeError]),
);

for (const name of ['score', 'scoreAll']) {
  const call = async (options) => {
    const memory = new TraceMemory({ method: 'prefix' });
    const reply = new Scorer({ memory })[name](name === 'score' ? trace : [trace], options);
    await reply.finally(() => expect(memory.size).toBe(0));
  };
  rejects(`${name} with options`, OPTION, 'options', call, [
    [7, ' must be an object, got 7'],
    [{ signal: {} }, '.signal must be an AbortSignal'],
    [signal, ' must be an object with the signal in it: { signal }'],
    [{ sginal: null }, '.sginal is not an option of this call; its options are signal'],
    [{ 'a b': 1 }, '["a b"] is not an option'],
  ]);
}

rejects('scoreAll', TRACE, 'traces', (traces) => new Scorer().scoreAll(traces), [
  [undefined, ' must be an array, got undefined'],
  [new Set([trace]), ' must be an array, got object'],
  [[null], '[0] must be an object, got null'],
  [hole, '[0] must be an object, got undefined'],
  [claiming([trace], -1), '.length must be a safe integer of at least 0, got -1', RangeError],
  [throwingProxy([trace], 'thrown', '0'), `[0] ${threw}`],
]);

rejects('embed', INPUT, 'texts', embed, [
  ['text', ' must be an array'],
  [undefined, ' must be an array'],
  [['a', 7], '[1] must be a string, got 7'],
  [[Object('text')], '[0] must be a string, got object'],
  [hole, '[0] must be a string, got undefined'],
  [revoked([]), ' must be an array'],
  [throwingProxy(['a'], 'thrown', '0'), `[0] ${threw}`],
  ...lengths.map(([length, Class, expected]) => [
    ...[claiming(['a'], length), `.length must be ${expected}`, Class],
  ]),
]);

rejects('select', OPTION, 'options', (options) => select([], options), [
  [undefined, '.count'],
  [{}, `.count must be ${COUNT}`],
  [{ count: '10' }, `.count must be ${COUNT}`],
  [{ count: '101%' }, '.count', RangeError],
  [{ count: 1.5 }, '.count must be a safe integer', RangeError],
  [{ count: 1, method: 'prefix' }, ".method must be 'lexical' or 'full'", RangeError],
  [{ count: 1, known: [] }, '.known must be a TraceMemory, got array'],
  [{ count: 1, known: full }, ".known compares by method 'full', not by 'lexical'", RangeError],
  [{ count: 1, failures: '-1%' }, `.failures must be ${COUNT}`],
  [{ count: 1, labels: { a: 1 } }, '.labels["a"] must be a boolean'],
  [{ count: 1, top: 1 }, '.top'],
]);

rejects('select of traces', TRACE, 'traces', (traces) => select(traces, { count: 1 }), [
  [[trace, {}], '[1].task'],
  [{}, ' must be an array, got object'],
  [() => [], ' must be an array, got function'],
]);

rejects(
  'clean',
  INPUT,
  'the value to clean',
  clean,
  [
    [null, 'null'],
    [undefined, 'undefined'],
    [[], 'array'],
    [7, '7'],
  ].map(([value, found]) => [value, ` must be a text or a trace, got ${found}`]),
);

rejects('clean with options', OPTION, 'options', (options) => clean('text', options), [
  [{ level: 'x' }, `.level ${LEVEL}`, RangeError],
  [{ strict: 'yes' }, '.strict must be a boolean'],
  ['private', ' must be an object, got string'],
  [throwingGetter({}, 'level', hostile), `.level ${threw}`],
  [{ allow: 'a' }, '.allow must be an array, got string'],
  [{ allow: ['a', 7] }, '.allow[1] must be a RegExp, got 7'],
  [{ allow: [/(?=a)/] }, '.allow[0] is not an expression: '],
  [{ rules: { 'a b': /a/ } }, '.rules["a b"] must have a name of letters, digits and _', RangeError],
  [{ rules: { a: 'a' } }, '.rules["a"] must be a RegExp, got string'],
  [{ rules: { a: /é/ } }, '.rules["a"] is not an expression: '],
]);

test('instanceof KnowledgePulseError recognises errors of lib/, of the addon and of another copy of the package', async () => {
  let copy;
  jest.isolateModules(() => {
    copy = require('..');
  });
  expect(copy.KnowledgePulseError).not.toBe(KnowledgePulseError);
  const errors = [
    thrownBy(() => cleanPii(7)),
    await rejectionOf(new Scorer().score({})),
    thrownBy(() => copy.cleanPii(7)),
    await rejectionOf(new copy.Scorer().score({})),
  ];
  for (const error of errors) {
    expect(error instanceof KnowledgePulseError).toBe(true);
    expect(error instanceof copy.KnowledgePulseError).toBe(true);
    expect(Object.keys(error)).toEqual(['code']);
  }
  for (const other of [new Error('x'), { code: 'ERR_INPUT' }, null, revoked({})])
    expect(other instanceof KnowledgePulseError).toBe(false);
});

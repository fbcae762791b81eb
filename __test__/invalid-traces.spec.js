'use strict';

const vm = require('node:vm');

const { _getLocalCache, embedderStatus, evaluateValue } = require('..');
const { scoreOf } = require('./oracle/score.js');
const { hostile, revoked, throwingGetter, throwingProxy } = require('./support/hostile.js');
const { makeTrace } = require('./support/make-trace.js');

const cache = _getLocalCache();
const ZERO = new Float32Array(384);

/** What novelty is in this file: see `reset`. Without an embedder it is always neutral. */
let novelty;
/** What a good call adds to the memory. */
let added;

beforeAll(async () => {
  const { available } = await embedderStatus();
  novelty = available ? 1 : 0.5;
  added = available ? 1 : 0;
});

beforeEach(reset);

afterAll(() => cache.clear());

/**
 * Leaves a memory of one zero vector. Everything has similarity 0 to it, so the novelty of the next good trace
 * is exactly 1, and less if anything else was remembered.
 */
function reset() {
  cache.clear();
  cache.add(ZERO);
}

/** The score that a valid trace must get here. */
const oracle = (trace) => scoreOf(trace, novelty);

/** That the scorer is as good as new: the next good trace gets the score that it must get. */
async function expectGoodCall() {
  const size = cache.size;
  expect(size).toBe(1);
  const good = makeTrace({ objective: 'Good', domain: 'medical', confidence: 0.7 });
  expect(await evaluateValue(good)).toBe(oracle(good));
  expect(cache.size).toBe(size + added);
  reset();
}

/** Calls with a malformed trace and checks the rejection. `message` is exact if it is a string. */
async function expectRefusal({ make, Class = TypeError, message, cause }) {
  const trace = make();
  const size = cache.size;
  let promise;
  expect(() => {
    promise = evaluateValue(trace);
  }).not.toThrow();
  expect(promise).toBeInstanceOf(Promise);
  const error = await promise.then(
    (score) => ({ message: `resolved to ${score}` }),
    (reason) => reason,
  );
  if (typeof message === 'string') expect(error.message).toBe(message);
  else expect(error.message).toMatch(message);
  expect(error).toBeInstanceOf(Class);
  expect(error.code).toBe('ERR_INVALID_TRACE');
  if (cause) expect(cause(error.cause)).toBe(true);
  else expect(error.cause).toBe(undefined);
  expect(cache.size).toBe(size);
}

/** Calls with every malformed trace of `rows`; the rows have tests of their own for how they are refused. */
async function refuseAll(rows) {
  for (const { make } of rows) {
    const outcome = await evaluateValue(make()).then(String, () => 'refused');
    expect(outcome).toBe('refused');
  }
}

/** The object in `trace` that holds the last of `keys` (as in `steps.1.type`), and that key. */
function holderOf(trace, keys) {
  const path = keys.split('.');
  const last = path.pop();
  return [path.reduce((object, key) => object[key], trace), last];
}

/** A valid trace but for one field. */
function withField(keys, value) {
  const trace = makeTrace();
  const [holder, key] = holderOf(trace, keys);
  holder[key] = value;
  return trace;
}

function withoutField(keys) {
  const trace = makeTrace();
  const [holder, key] = holderOf(trace, keys);
  delete holder[key];
  return trace;
}

/** A valid trace but for one field, which throws when it is read. */
function withThrowing(keys, thrown) {
  const trace = makeTrace();
  throwingGetter(...holderOf(trace, keys), thrown);
  return trace;
}

/** Every field that the scorer reads; `trace.steps[1]` stands for every step. */
const FIELDS = [
  { keys: 'task', path: 'trace.task', expected: 'an object' },
  { keys: 'task.objective', path: 'trace.task.objective', expected: 'a string' },
  { keys: 'steps', path: 'trace.steps', expected: 'an array' },
  { keys: 'steps.1', path: 'trace.steps[1]', expected: 'an object' },
  { keys: 'steps.1.type', path: 'trace.steps[1].type', expected: 'a string' },
  { keys: 'steps.1.content', path: 'trace.steps[1].content', expected: 'a string', nullable: true },
  { keys: 'steps.1.tool', path: 'trace.steps[1].tool', expected: 'an object', nullable: true },
  { keys: 'steps.1.tool.name', path: 'trace.steps[1].tool.name', expected: 'a string' },
  { keys: 'metadata', path: 'trace.metadata', expected: 'an object' },
  { keys: 'metadata.success', path: 'trace.metadata.success', expected: 'a boolean' },
  { keys: 'metadata.task_domain', path: 'trace.metadata.task_domain', expected: 'a string', optional: true },
  { keys: 'outcome', path: 'trace.outcome', expected: 'an object' },
  { keys: 'outcome.confidence', path: 'trace.outcome.confidence', expected: 'a number' },
];

/** Values of every kind: a name, one that makes it, and what a message calls it. */
const VALUES = [
  ['undefined', () => undefined, 'undefined'],
  ['null', () => null, 'null'],
  ['a number', () => 7, 'number'],
  ['a string', () => 'text', 'string'],
  ['a number in a string', () => '0.5', 'string'],
  ['a boolean', () => true, 'boolean'],
  ['a symbol', () => Symbol('s'), 'symbol'],
  ['a bigint', () => 1n, 'bigint'],
  ['a function', () => () => 'text', 'function'],
  ['a class', () => class Trace {}, 'function'],
  ['an array', () => ['text'], 'array'],
  ['an object', () => ({ name: 'text' }), 'object'],
  ['a boxed string', () => new String('text'), 'object'],
  ['a boxed number', () => new Number(0.5), 'object'],
  ['a boxed boolean', () => new Boolean(true), 'object'],
  ['a Date', () => new Date(0), 'object'],
  ['a Map', () => new Map([['name', 'text']]), 'object'],
];

function isLegal(field, found) {
  if (found === 'undefined') return Boolean(field.nullable || field.optional);
  if (found === 'null') return Boolean(field.nullable);
  return field.expected.endsWith(` ${found}`);
}

const WRONG_TRACES = VALUES.filter(([, , found]) => found !== 'object').map(([name, value, found]) => ({
  name: `${name} as the trace`,
  make: value,
  message: `trace must be an object, got ${found}`,
}));

const EMPTY_OBJECTS = [
  ['an empty object', () => ({})],
  ['an object without prototype', () => Object.create(null)],
  ['a boxed string', () => new String('trace')],
  ['a boxed number', () => new Number(1)],
  ['a Map', () => new Map(Object.entries(makeTrace()))],
  ['a Date', () => new Date(0)],
  ['a typed array', () => new Uint8Array(8)],
  ['a promise of a trace', () => Promise.resolve(makeTrace())],
  ['an error', () => new Error('trace')],
  ['the global object', () => globalThis],
].map(([name, make]) => ({
  name: `${name} as the trace`,
  make,
  message: /^trace\.(task|steps|metadata|outcome) must be an (object|array), got undefined$/,
}));

const MISSING = FIELDS.filter((field) => !isLegal(field, 'undefined')).map(({ keys, path, expected }) => ({
  name: `no ${path}`,
  // Deleting an element leaves a hole.
  make: () => withoutField(keys),
  message: `${path} must be ${expected}, got undefined`,
}));

const WRONG_TYPES = FIELDS.flatMap((field) =>
  VALUES.filter(([, , found]) => !isLegal(field, found)).map(([name, value, found]) => ({
    name: `${name} as ${field.path}`,
    make: () => withField(field.keys, value()),
    message: `${field.path} must be ${field.expected}, got ${found}`,
  })),
);

const FIRST = { type: 'thought', content: 'a' };
const STEP_MESSAGE = 'trace.steps[0] must be an object, got undefined';

const WRONG_STEPS = [
  ['an array-like object', { length: 1, 0: FIRST }, 'trace.steps must be an array, got object'],
  ['a typed array', new Float64Array(2), 'trace.steps must be an array, got object'],
  ['an empty typed array', new Uint8Array(0), 'trace.steps must be an array, got object'],
  ['a Set', new Set([FIRST]), 'trace.steps must be an array, got object'],
  ['an iterator', [FIRST][Symbol.iterator](), 'trace.steps must be an array, got object'],
  ['the arguments of a call', toArguments(FIRST), 'trace.steps must be an array, got object'],
  ['an object with the prototype of arrays', likeArray(), 'trace.steps must be an array, got object'],
  [
    'a proxy of an array-like object',
    new Proxy({ length: 1, 0: FIRST }, {}),
    /^trace\.steps must be an array/,
  ],
  // biome-ignore lint/suspicious/noSparseArray: it is what is tested
  ['a hole first', [, FIRST], STEP_MESSAGE],
  // biome-ignore lint/suspicious/noSparseArray: it is what is tested
  ['a hole last', [FIRST, ,], 'trace.steps[1] must be an object, got undefined'],
  ['nothing but holes', new Array(3), STEP_MESSAGE],
  ['four billion holes', new Array(2 ** 32 - 1), STEP_MESSAGE],
  ['a null last', [FIRST, null], 'trace.steps[1] must be an object, got null'],
  ['a string among steps', [FIRST, 'thought', FIRST], 'trace.steps[1] must be an object, got string'],
  ['an array of steps', [[FIRST]], 'trace.steps[0] must be an object, got array'],
  ['an empty step', [{}], 'trace.steps[0].type must be a string, got undefined'],
  ['a Date', [FIRST, new Date(0)], 'trace.steps[1].type must be a string, got undefined'],
  ['a Map', [new Map([['type', 'thought']])], 'trace.steps[0].type must be a string, got undefined'],
  ['a boxed string', [new String('thought')], 'trace.steps[0].type must be a string, got undefined'],
  [
    'a tool that is a name',
    [{ ...FIRST, tool: 'read' }],
    'trace.steps[0].tool must be an object, got string',
  ],
  ['an empty tool', [{ ...FIRST, tool: {} }], 'trace.steps[0].tool.name must be a string, got undefined'],
  [
    'a nameless tool',
    [FIRST, { ...FIRST, tool: { name: null } }],
    /^trace\.steps\[1\]\.tool\.name .*got null$/,
  ],
].map(([name, steps, message]) => ({ name: `steps: ${name}`, make: () => makeTrace({ steps }), message }));

function toArguments() {
  // biome-ignore lint/complexity/noArguments: it is what is tested
  return arguments;
}

function likeArray() {
  return Object.assign(Object.create(Array.prototype), { length: 1, 0: FIRST });
}

const LAST = 99_999;
const DEEP = [
  ['a missing type', { content: 'a' }, `trace.steps[${LAST}].type must be a string, got undefined`],
  ['null', null, `trace.steps[${LAST}] must be an object, got null`],
  [
    'a wrong name',
    { ...FIRST, tool: { name: 3 } },
    `trace.steps[${LAST}].tool.name must be a string, got number`,
  ],
  ['a wrong content', { ...FIRST, content: {} }, `trace.steps[${LAST}].content must be a string, got object`],
].map(([name, step, message]) => ({
  name: `${name} at the end of 100,000 steps`,
  make: () => makeTrace({ steps: [...new Array(LAST).fill(FIRST), step] }),
  message,
}));

const OUT_OF_RANGE = [
  Number.NaN,
  Number.POSITIVE_INFINITY,
  Number.NEGATIVE_INFINITY,
  1.5,
  -0.1,
  -1,
  2,
  -Number.MIN_VALUE,
  1.0000000000000002,
  Number.MAX_VALUE,
  1e21,
  2 ** 53,
].map((confidence) => ({
  name: `a confidence of ${confidence}`,
  make: () => makeTrace({ confidence }),
  Class: RangeError,
  message: `trace.outcome.confidence must be a finite number in [0, 1], got ${confidence}`,
}));

const THROWN = [
  ['an error', new Error('thrown')],
  ['a frozen error', Object.freeze(new RangeError('thrown'))],
  ['null', null],
  ['undefined', undefined],
  ['a string', 'thrown'],
  ['a number', 0],
  ['a symbol', Symbol('thrown')],
  ['a bigint', 1n],
  ['an object whose toString throws', hostile],
  ['a function', () => {}],
  ['an object without prototype', Object.create(null)],
  ['a revoked proxy', revoked({})],
  ['an error with a code', Object.assign(new Error('thrown'), { code: 'ENOENT' })],
];

const same = (thrown) => (cause) => Object.is(cause, thrown);

const GETTERS = [
  ...FIELDS.map(({ keys, path }) => {
    const thrown = new Error(path);
    return {
      name: `${path} throws`,
      make: () => withThrowing(keys, thrown),
      message: `${path} could not be read: it threw`,
      cause: same(thrown),
    };
  }),
  ...['task', 'steps.0.type', 'outcome.confidence'].flatMap((keys) =>
    THROWN.map(([name, thrown]) => ({
      name: `${keys} throws ${name}`,
      make: () => withThrowing(keys, thrown),
      message: `trace.${keys.replace('.0', '[0]')} could not be read: it threw`,
      cause: same(thrown),
    })),
  ),
  {
    name: 'a step throws when it is read',
    make() {
      const trace = makeTrace();
      Object.defineProperty(trace.steps, 0, {
        get() {
          throw hostile;
        },
      });
      return trace;
    },
    message: 'trace.steps[0] could not be read: it threw',
    cause: same(hostile),
  },
  {
    name: 'a getter of a prototype throws',
    make() {
      class Outcome {
        get confidence() {
          throw hostile;
        }
      }
      return { ...makeTrace(), outcome: new Outcome() };
    },
    message: 'trace.outcome.confidence could not be read: it threw',
    cause: same(hostile),
  },
  {
    name: 'a getter empties the steps',
    make() {
      const trace = makeTrace();
      Object.defineProperty(trace.steps[0], 'type', {
        get() {
          trace.steps.length = 1;
          return 'thought';
        },
      });
      return trace;
    },
    message: 'trace.steps[1] must be an object, got undefined',
  },
];

const isTypeError = (cause) => cause?.name === 'TypeError';
const PROXIED = ['task', 'steps.1', 'steps.1.tool', 'metadata', 'outcome'];
const inPath = (keys) =>
  keys.replace('.1', '[1]').replace('[', '\\[').replace(']', '\\]').replace('.', '\\.');

/** Rows for one object of a trace that is a hostile proxy. */
function hostileProxies(keys) {
  const field = keys === '' ? 'trace' : `trace\\.${inPath(keys)}`;
  const message = new RegExp(`^${field}\\.\\w+ could not be read: it threw$`);
  const replace = (wrap) => () => {
    if (keys === '') return wrap(makeTrace());
    const trace = makeTrace();
    const [holder, key] = holderOf(trace, keys);
    holder[key] = wrap(holder[key]);
    return trace;
  };
  const name = keys === '' ? 'trace' : `trace.${keys}`;
  return [
    {
      name: `${name}: a proxy that throws`,
      make: replace((target) => throwingProxy(target, hostile)),
      message,
      cause: same(hostile),
    },
    { name: `${name}: a revoked proxy`, make: replace(revoked), message, cause: isTypeError },
  ];
}

const PROXIES = [
  ...['', ...PROXIED].flatMap(hostileProxies),
  {
    name: 'trace.steps: a proxy that throws',
    make: () => makeTrace({ steps: throwingProxy([FIRST], hostile) }),
    message: /^trace\.steps(\.length|\[0\])? could not be read: it threw$/,
    cause: same(hostile),
  },
  {
    name: 'trace.steps: a proxy that throws for its length',
    make: () => makeTrace({ steps: throwingProxy([FIRST], 'thrown', 'length') }),
    message: 'trace.steps.length could not be read: it threw',
    cause: same('thrown'),
  },
  {
    name: 'trace.steps: a proxy that throws for an element',
    make: () => makeTrace({ steps: throwingProxy([FIRST, FIRST], null, '1') }),
    message: 'trace.steps[1] could not be read: it threw',
    cause: same(null),
  },
  {
    name: 'trace.steps: a revoked proxy',
    make: () => makeTrace({ steps: revoked([FIRST]) }),
    message: 'trace.steps could not be read: it threw',
    cause: isTypeError,
  },
  ...[-1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 32, 2 ** 32 + 1].map((length) => ({
    name: `trace.steps: a proxy that claims a length of ${length}`,
    make: () => {
      const get = (target, key) => (key === 'length' ? length : target[key]);
      return makeTrace({ steps: new Proxy([FIRST], { get }) });
    },
    Class: RangeError,
    message: `trace.steps.length must be the length of an array, got ${length}`,
  })),
  {
    name: 'trace.steps: a proxy of a revoked proxy',
    make: () => makeTrace({ steps: new Proxy(revoked([FIRST]), {}) }),
    message: 'trace.steps could not be read: it threw',
    cause: isTypeError,
  },
  {
    name: 'trace.steps: a revoked proxy of an object',
    make: () => makeTrace({ steps: revoked({}) }),
    message: 'trace.steps could not be read: it threw',
    cause: isTypeError,
  },
  {
    name: 'trace.steps: a proxy that claims more steps than there are',
    make: () => {
      const get = (target, key) => (key === 'length' ? 2 ** 32 - 1 : target[key]);
      return makeTrace({ steps: new Proxy([FIRST], { get }) });
    },
    message: 'trace.steps[1] must be an object, got undefined',
  },
  {
    name: 'trace.steps: a proxy whose length is a string',
    make: () => {
      const get = (target, key) => (key === 'length' ? '1' : target[key]);
      return makeTrace({ steps: new Proxy([FIRST], { get }) });
    },
    message: 'trace.steps.length must be a number, got string',
  },
  {
    name: 'trace.steps: a proxy of a function',
    make: () => makeTrace({ steps: new Proxy(() => {}, {}) }),
    message: 'trace.steps must be an array, got function',
  },
];

const SUITES = [
  ['values of other types', WRONG_TRACES],
  ['objects that are no trace', EMPTY_OBJECTS],
  ['missing fields', MISSING],
  ['fields of a wrong type', WRONG_TYPES],
  ['malformed steps', WRONG_STEPS],
  ['a long way down', DEEP],
  ['confidence out of range', OUT_OF_RANGE],
  ['fields that throw', GETTERS],
  ['hostile proxies', PROXIES],
];

for (const [name, rows] of SUITES) {
  describe(`rejects ${name}`, () => {
    for (const row of rows) {
      test(row.name, () => expectRefusal(row));
    }

    test('and then scores as before', async () => {
      await refuseAll(rows);
      await expectGoodCall();
    });
  });
}

describe('a call without an argument', () => {
  test('is rejected', async () => {
    const error = await evaluateValue().catch((reason) => reason);
    expect(error).toBeInstanceOf(TypeError);
    expect(error.code).toBe('ERR_INVALID_TRACE');
    expect(error.message).toBe('trace must be an object, got undefined');
    await expectGoodCall();
  });
});

describe('malformed traces among good ones', () => {
  const rows = SUITES.flatMap(([, rows]) => rows).filter((row) => !DEEP.includes(row));
  const goodTraces = ['alpha', 'beta', 'gamma', 'alpha', 'delta', 'alpha beta'].map((objective) =>
    makeTrace({ objective, steps: [FIRST, { type: 'observation', content: objective }] }),
  );

  test('leave every score as it is, one after another', async () => {
    const every = Math.ceil(rows.length / 8);
    for (const [index, row] of rows.entries()) {
      await refuseAll([row]);
      if (index % every === 0) await expectGoodCall();
    }
    await expectGoodCall();
  });

  test('leave every score as it is, all in flight', async () => {
    const alone = [];
    for (const trace of goodTraces) alone.push(await evaluateValue(trace));
    expect(cache.size).toBe(1 + added * goodTraces.length);
    reset();

    const share = Math.ceil(rows.length / goodTraces.length);
    const good = [];
    const bad = [];
    for (const [index, trace] of goodTraces.entries()) {
      for (const row of rows.slice(index * share, (index + 1) * share)) bad.push(evaluateValue(row.make()));
      good.push(evaluateValue(trace));
    }
    const [refused, scores] = await Promise.all([Promise.allSettled(bad), Promise.all(good)]);
    expect(refused).toHaveLength(rows.length);
    expect(refused.filter(({ status }) => status !== 'rejected')).toEqual([]);
    for (const [index, score] of scores.entries()) {
      expect(Math.abs(score - alone[index])).toBeLessThan(1e-6);
    }
    expect(cache.size).toBe(1 + added * goodTraces.length);
  });

  test('are as many as the suite promises', () => {
    expect(rows.length).toBeGreaterThanOrEqual(80);
    expect(new Set(rows.map((row) => row.name)).size).toBe(rows.length);
  });
});

describe('accepts', () => {
  /** Rows: a name, one that makes the trace, and what a plain trace of the same score is made of. */
  const LEGAL = [
    ['a trace', () => makeTrace()],
    ['no steps', () => makeTrace({ steps: [] }), { steps: [] }],
    ['no steps, of a length that was set', () => withLength(0), { steps: [] }],
    ['no task_domain', () => withoutField('metadata.task_domain'), { domain: 'default' }],
    ['task_domain: undefined', () => withField('metadata.task_domain', undefined), { domain: 'default' }],
    ...['', '__proto__', 'constructor', 'toString', 'hasOwnProperty', 'Finance', 'code ', 'co\0de'].map(
      (domain) => [
        `the unknown domain ${JSON.stringify(domain)}`,
        () => makeTrace({ domain }),
        { domain: 'default' },
      ],
    ),
    ...['finance', 'code', 'medical', 'customer_service'].map((domain) => [
      `the domain ${domain}`,
      () => makeTrace({ domain }),
      { domain },
    ]),
    ['content: null', () => withField('steps.0.content', null)],
    ['content: undefined', () => withField('steps.0.content', undefined)],
    ['content: ""', () => withField('steps.0.content', '')],
    ['no content', () => withoutField('steps.0.content')],
    ['tool: null', () => withField('steps.1.tool', null), { steps: twoSteps() }],
    ['tool: undefined', () => withField('steps.1.tool', undefined), { steps: twoSteps() }],
    ['no tool', () => withoutField('steps.1.tool'), { steps: twoSteps() }],
    ['a tool with an empty name', () => withField('steps.1.tool.name', '')],
    ['an unknown step type', () => withField('steps.0.type', 'reflection')],
    ['unknown step types of odd names', () => makeTrace({ steps: odd() }), { steps: odd() }],
    ...[-0, 0, 1, Number.MIN_VALUE, 1 - Number.EPSILON / 2].map((confidence) => [
      `a confidence of ${Object.is(confidence, -0) ? '-0' : confidence}`,
      () => makeTrace({ confidence }),
      { confidence },
    ]),
    ['a failed run', () => makeTrace({ success: false }), { success: false }],
    ['an empty objective', () => makeTrace({ objective: '' })],
    ['lone surrogates and NUL', () => makeTrace({ objective: '\ud800 a\0b \udfff' })],
    ['fields of any type', () => withOddities()],
    ['a trace that holds itself', () => withField('steps.0.input', { self: globalThis })],
    ['a frozen trace', () => deepFreeze(makeTrace())],
    ['a sealed trace', () => Object.seal(makeTrace())],
    ['objects without prototypes', () => mapObjects(makeTrace(), bare)],
    ['fields inherited from a prototype', () => mapObjects(makeTrace(), (object) => Object.create(object))],
    ['fields that cannot be enumerated', () => mapObjects(makeTrace(), hidden)],
    ['instances of classes with getters', () => new Accessors(makeTrace())],
    ['a Map that has the fields', () => Object.assign(new Map(), makeTrace())],
    ['a proxy of the trace', () => new Proxy(makeTrace(), {})],
    ['proxies of every object', () => mapObjects(makeTrace(), (object) => new Proxy(object, {}))],
    ['a proxy of the steps', () => makeTrace({ steps: new Proxy(makeTrace().steps, {}) })],
    [
      'a proxy of a proxy of the steps',
      () => makeTrace({ steps: new Proxy(new Proxy(makeTrace().steps, {}), {}) }),
    ],
    ['a proxy of no steps', () => makeTrace({ steps: new Proxy([], {}) }), { steps: [] }],
    ['a subclass of Array as steps', () => makeTrace({ steps: Steps.from(makeTrace().steps) })],
    ['steps without a prototype', () => makeTrace({ steps: Object.setPrototypeOf(makeTrace().steps, null) })],
    ['steps whose iterator throws', () => makeTrace({ steps: withoutIterator(makeTrace().steps) })],
    ['a trace of another realm', () => vm.runInNewContext(`(${JSON.stringify(makeTrace())})`)],
    ['one object as every step', () => makeTrace({ steps: new Array(7).fill(FIRST) }), { steps: seven() }],
  ];

  class Steps extends Array {}

  class Accessors {
    #trace;
    constructor(trace) {
      this.#trace = trace;
    }
    get task() {
      return this.#trace.task;
    }
    get steps() {
      return this.#trace.steps;
    }
    get metadata() {
      return this.#trace.metadata;
    }
    get outcome() {
      return this.#trace.outcome;
    }
  }

  function twoSteps() {
    return [{ type: 'thought' }, { type: 'tool_call' }];
  }

  function odd() {
    return ['', '__proto__', 'constructor', 'Thought', 'thought '].map((type) => ({ type, content: 'a' }));
  }

  function seven() {
    return Array.from({ length: 7 }, () => ({ ...FIRST }));
  }

  function withLength(length) {
    const trace = makeTrace();
    trace.steps.length = length;
    return trace;
  }

  function withOddities() {
    const trace = makeTrace();
    const values = [
      Symbol('s'),
      1n,
      Number.NaN,
      () => {},
      null,
      undefined,
      new Date(Number.NaN),
      new WeakMap(),
    ];
    for (const object of [trace, trace.task, trace.metadata, trace.outcome, ...trace.steps]) {
      for (const [index, value] of values.entries()) object[`odd${index}`] = value;
      object[Symbol('odd')] = object;
    }
    for (const [index, key] of [
      'id',
      '@context',
      '@type',
      'source_skill',
      'knowledge_graph_delta',
    ].entries()) {
      trace[key] = values[index];
    }
    for (const key of ['step_id', 'input', 'output_summary', 'latency_ms']) trace.steps[0][key] = 1n;
    return trace;
  }

  function deepFreeze(value) {
    if (typeof value === 'object' && value !== null) Object.values(value).forEach(deepFreeze);
    return Object.freeze(value);
  }

  /** A copy in which every object but the arrays is what `wrap` makes of it. */
  function mapObjects(value, wrap) {
    if (typeof value !== 'object' || value === null) return value;
    if (Array.isArray(value)) return value.map((element) => mapObjects(element, wrap));
    return wrap(
      Object.fromEntries(Object.entries(value).map(([key, field]) => [key, mapObjects(field, wrap)])),
    );
  }

  function bare(object) {
    return Object.assign(Object.create(null), object);
  }

  function hidden(object) {
    const entries = Object.entries(object).map(([key, value]) => [key, { value, enumerable: false }]);
    return Object.create(null, Object.fromEntries(entries));
  }

  function withoutIterator(steps) {
    Object.defineProperty(steps, Symbol.iterator, {
      get() {
        throw new Error('iterated');
      },
    });
    return steps;
  }

  for (const [name, make, parts] of LEGAL) {
    test(name, async () => {
      const score = await evaluateValue(make());
      expect(score).toBe(oracle(makeTrace(parts)));
      expect(cache.size).toBe(1 + added);
    });
  }

  test('100,000 steps, in sensible time', async () => {
    const types = ['thought', 'tool_call', 'observation', 'error_recovery', 'reflection'];
    const steps = Array.from({ length: 100_000 }, (_, index) => ({
      type: types[index % types.length],
      content: `step ${index}`,
      tool: index % 2 === 0 ? { name: `tool ${index % 7}` } : undefined,
    }));
    const trace = makeTrace({ steps });
    const start = performance.now();
    const score = await evaluateValue(trace);
    expect(performance.now() - start).toBeLessThan(10_000);
    expect(score).toBe(oracle(trace));
    expect(cache.size).toBe(1 + added);
  });

  test('a trace whose getter scores another one', async () => {
    const trace = makeTrace();
    let inner;
    Object.defineProperty(trace.outcome, 'confidence', {
      get() {
        inner = Promise.allSettled([evaluateValue(null), evaluateValue(makeTrace({ steps: [FIRST] }))]);
        return 0.9;
      },
    });
    const score = await evaluateValue(trace);
    const [refused, scored] = await inner;
    expect(refused.reason.code).toBe('ERR_INVALID_TRACE');
    expect(scored.value).toBe(0.1);
    expect(score).toBeGreaterThan(0);
    expect(score).toBeLessThanOrEqual(1);
    expect(cache.size).toBe(1 + 2 * added);
  });
});

describe('reads nothing but what it needs', () => {
  const UNREAD = [
    '@context',
    '@type',
    'source_skill',
    'knowledge_graph_delta',
    'then',
    'toJSON',
    'toString',
    'valueOf',
    'constructor',
    'metadata.created_at',
    'metadata.agent_id',
    'metadata.framework',
    'metadata.quality_score',
    'metadata.visibility',
    'metadata.privacy_level',
    'metadata.validated_by',
    'task.input_schema',
    'outcome.result_summary',
    ...['step_id', 'input', 'output_summary', 'latency_ms', 'toString'].flatMap((key) => [
      `steps.0.${key}`,
      `steps.1.${key}`,
    ]),
    'steps.1.tool.mcp_server',
    'steps.1.tool.toString',
  ];

  test('getters of other fields are never called', async () => {
    const trace = makeTrace();
    const touched = [];
    for (const keys of UNREAD) {
      const [holder, key] = holderOf(trace, keys);
      const get = () => {
        touched.push(keys);
        throw new Error(keys);
      };
      Object.defineProperty(holder, key, { get, enumerable: true });
    }
    expect(await evaluateValue(trace)).toBe(oracle(makeTrace()));
    expect(touched).toEqual([]);
  });

  test('proxies see no other access', async () => {
    const touched = new Map();
    const record = (path) => touched.set(path, (touched.get(path) ?? 0) + 1);
    const watch = (value, path) => {
      if (typeof value !== 'object' || value === null) return value;
      return new Proxy(value, {
        get(target, key, receiver) {
          const field = `${path}.${String(key)}`;
          record(field);
          return watch(Reflect.get(target, key, receiver), field);
        },
        ownKeys(target) {
          record(`keys of ${path}`);
          return Reflect.ownKeys(target);
        },
      });
    };
    const trace = makeTrace();
    Object.assign(trace.steps[0], { input: { a: 1 }, output_summary: 'a', latency_ms: 1 });
    expect(await evaluateValue(watch(trace, 'trace'))).toBe(oracle(makeTrace()));
    const step = (index) => [
      `trace.steps.${index}`,
      `trace.steps.${index}.type`,
      `trace.steps.${index}.content`,
    ];
    expect([...touched.keys()].sort()).toEqual(
      [
        // What the memory goes by; of no effect on the score.
        'trace.id',
        'trace.metadata',
        'trace.metadata.success',
        'trace.metadata.task_domain',
        'trace.outcome',
        'trace.outcome.confidence',
        'trace.steps',
        'trace.steps.length',
        ...step(0),
        'trace.steps.0.tool',
        ...step(1),
        'trace.steps.1.tool',
        'trace.steps.1.tool.name',
        'trace.task',
        'trace.task.objective',
      ].sort(),
    );
    // Once each, so that a getter cannot pass the check with one value and be scored with another.
    expect(Math.max(...touched.values())).toBe(1);
  });

  test('nor is anything written', async () => {
    const trace = makeTrace();
    const before = JSON.stringify(trace);
    await evaluateValue(trace);
    expect(JSON.stringify(trace)).toBe(before);
    expect(Reflect.ownKeys(trace)).toEqual(Reflect.ownKeys(makeTrace()));
  });
});

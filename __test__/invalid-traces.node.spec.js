'use strict';

// What evaluateValue refuses as a trace and with which error, what it accepts however odd it is, and what it reads.

const vm = require('node:vm');

const { _getLocalCache, embedderStatus, evaluateValue } = require('..');
const { scoreOf } = require('./oracle/score.js');
const { claiming, hostile, revoked, throwingGetter, throwingProxy } = require('./support/hostile.js');
const { makeTrace } = require('./support/make-trace.js');
const { expectError, rejectionOf, same } = require('./support/refusals.js');

const cache = _getLocalCache();

/** The novelty of a good trace: everything has similarity 0 to the vector in the memory. Without an embedder it is neutral. */
let novelty;
/** How many vectors a good call adds to the memory. */
let added;

beforeAll(async () => {
  const { available } = await embedderStatus();
  novelty = available ? 1 : 0.5;
  added = available ? 1 : 0;
});

beforeEach(() => {
  cache.clear();
  cache.add(new Float32Array(384));
});

afterAll(() => cache.clear());

/** The score that a valid trace must get here. */
const oracle = (trace) => scoreOf(trace, novelty);

/** The object in `trace` that holds the last of `keys` (as in `steps.1.type`), and that key. */
function holderOf(trace, keys) {
  const path = keys.split('.');
  const last = path.pop();
  return [path.reduce((object, key) => object[key], trace), last];
}

/** A valid trace in which `change` was done to the object with the last of `keys`. */
function changed(keys, change) {
  const trace = makeTrace();
  change(...holderOf(trace, keys));
  return trace;
}

const withField = (keys, value) =>
  changed(keys, (holder, key) => {
    holder[key] = value;
  });
const withoutField = (keys) => changed(keys, (holder, key) => delete holder[key]);
const withThrowing = (keys, thrown) => changed(keys, (holder, key) => throwingGetter(holder, key, thrown));
const withWrapped = (keys, wrap) =>
  changed(keys, (holder, key) => {
    holder[key] = wrap(holder[key]);
  });

/** How messages name a field. */
const pathOf = (keys) => `trace.${keys.replace(/\.(\d)/, '[$1]')}`;

/** Every field that the scorer reads, what it must be, and what else it may be; `steps.1` stands for every step. */
const FIELDS = [
  ['task', 'an object'],
  ['task.objective', 'a string'],
  ['steps', 'an array'],
  ['steps.1', 'an object'],
  ['steps.1.type', 'a string'],
  ['steps.1.content', 'a string', ['undefined', 'null']],
  ['steps.1.tool', 'an object', ['undefined', 'null']],
  ['steps.1.tool.name', 'a string'],
  ['metadata', 'an object'],
  ['metadata.success', 'a boolean'],
  ['metadata.task_domain', 'a string', ['undefined', 'null']],
  ['outcome', 'an object'],
  ['outcome.confidence', 'a number'],
];

/** Values of every kind, and what a message calls them. */
const VALUES = [
  ['undefined', undefined, 'undefined'],
  ['null', null, 'null'],
  ['a number', 7, 'number'],
  ['a string', 'text', 'string'],
  ['a boolean', true, 'boolean'],
  ['a symbol', Symbol('s'), 'symbol'],
  ['a bigint', 1n, 'bigint'],
  ['a function', () => 'text', 'function'],
  ['an array', ['text'], 'array'],
  ['an object', { name: 'text' }, 'object'],
];

const WRONG_TYPES = FIELDS.flatMap(([keys, expected, others = []]) => {
  const isLegal = (found) => others.includes(found) || expected.endsWith(` ${found}`);
  const message = (found) => `${pathOf(keys)} must be ${expected}, got ${found}`;
  const wrong = VALUES.filter(([, , found]) => !isLegal(found)).map(([name, value, found]) => [
    ...[`${name} as ${pathOf(keys)}`, () => withField(keys, value), message(found)],
  ]);
  // Deleting an element leaves a hole.
  const missing = [`no ${pathOf(keys)}`, () => withoutField(keys), message('undefined')];
  return isLegal('undefined') ? wrong : [missing, ...wrong];
});

const WRONG_TRACES = VALUES.filter(([, , found]) => found !== 'object').map(([name, value, found]) => [
  ...[`${name} as the trace`, () => value, `trace must be an object, got ${found}`],
]);

const FIRST = { type: 'thought', content: 'a' };
const LAST = 99_999;
const long = (step) => [...new Array(LAST).fill(FIRST), step];

const WRONG_STEPS = [
  ...[
    ['an array-like object', { length: 1, 0: FIRST }, 'object'],
    ['a proxy of an array-like object', new Proxy({ length: 1, 0: FIRST }, {}), 'object'],
    ['a proxy of a function', new Proxy(() => {}, {}), 'function'],
  ].map(([name, steps, found]) => [name, steps, ` must be an array, got ${found}`]),
  ['a hole last', Object.assign([FIRST], { length: 2 }), '[1] must be an object, got undefined'],
  ['four billion holes', new Array(2 ** 32 - 1), '[0] must be an object, got undefined'],
  ['no type at the end of 100,000', long({}), `[${LAST}].type must be a string, got undefined`],
].map(([name, steps, message]) => [`steps: ${name}`, () => makeTrace({ steps }), `trace.steps${message}`]);

const OUT_OF_RANGE = [Number.NaN, 1 / 0, -1 / 0, -Number.MIN_VALUE, 1 + Number.EPSILON].map((confidence) => [
  `a confidence of ${confidence}`,
  () => makeTrace({ confidence }),
  `trace.outcome.confidence must be a finite number in [0, 1], got ${confidence}`,
  { Class: RangeError },
]);

/** What getters throw, which becomes the cause of an error. */
const THROWN = [
  Object.freeze(new RangeError('thrown')),
  Object.assign(new Error('thrown'), { code: 'ENOENT' }),
  ...[
    null,
    undefined,
    'thrown',
    0,
    Symbol('thrown'),
    1n,
    () => {},
    hostile,
    Object.create(null),
    revoked({}),
  ],
];

const THROWING = [
  ...FIELDS.map(([keys]) => [keys, new Error(keys)]),
  ...['steps.0.type', 'outcome.confidence'].flatMap((keys) => THROWN.map((thrown) => [keys, thrown])),
].map(([keys, thrown]) => [
  `${pathOf(keys)} that throws ${typeof thrown}`,
  () => withThrowing(keys, thrown),
  `${pathOf(keys)} could not be read: it threw`,
  { isCause: same(thrown) },
]);

const throwing = (it) => throwingProxy(it, hostile);
const isTypeError = (cause) => cause?.name === 'TypeError';
const couldNot = 'could not be read: it threw';

const HOSTILE = [
  ...['task', 'steps.1', 'steps.1.tool', 'metadata', 'outcome'].flatMap((keys) => [
    [`a proxy that throws as ${keys}`, () => withWrapped(keys, throwing), same(hostile)],
    [`a revoked proxy as ${keys}`, () => withWrapped(keys, revoked), isTypeError],
  ]),
  ['a proxy that throws', () => throwing(makeTrace()), same(hostile)],
  ['a revoked proxy', () => revoked(makeTrace()), isTypeError],
]
  .map(([name, make, isCause]) => [
    name,
    make,
    /^trace[\w.[\]]*\.\w+ could not be read: it threw$/,
    { isCause },
  ])
  .concat(
    [
      ['a proxy that throws', throwing([FIRST]), /^trace\.steps(\.length|\[0\])? could not/, same(hostile)],
      ['a length that throws', throwingProxy([FIRST], 1, 'length'), `.length ${couldNot}`, same(1)],
      ['an element that throws', throwingProxy([FIRST, FIRST], null, '1'), `[1] ${couldNot}`, same(null)],
      ['a revoked proxy', revoked([FIRST]), ` ${couldNot}`, isTypeError],
      ['a revoked proxy of an object', revoked({}), ` ${couldNot}`, isTypeError],
      ['more of them than there are', claiming([FIRST], 2 ** 32 - 1), '[1] must be an object, got undefined'],
      ['a length that is a string', claiming([FIRST], '1'), '.length must be a number, got string'],
    ].map(([name, steps, message, isCause]) => [
      `steps: ${name}`,
      () => makeTrace({ steps }),
      typeof message === 'string' ? `trace.steps${message}` : message,
      { isCause },
    ]),
    [-1, 1.5, Number.NaN, 1 / 0, 2 ** 32, 2 ** 32 + 1].map((length) => [
      `steps: a claimed length of ${length}`,
      () => makeTrace({ steps: claiming([FIRST], length) }),
      `trace.steps.length must be the length of an array, got ${length}`,
      { Class: RangeError },
    ]),
  );

function emptied() {
  const trace = makeTrace();
  const get = () => {
    trace.steps.length = 1;
    return 'thought';
  };
  Object.defineProperty(trace.steps[0], 'type', { get });
  return trace;
}

const REFUSED = [
  ...[...WRONG_TRACES, ...WRONG_TYPES, ...WRONG_STEPS, ...OUT_OF_RANGE, ...THROWING, ...HOSTILE],
  ['a getter that empties the steps', emptied, 'trace.steps[1] must be an object, got undefined'],
];

test.each(REFUSED)('evaluateValue refuses %s', async (...row) => {
  const [, make, message, { Class = TypeError, isCause } = {}] = row;
  const reply = evaluateValue(make());
  expect(reply).toBeInstanceOf(Promise);
  expectError(await rejectionOf(reply), [Class, 'ERR_INVALID_TRACE', message, isCause]);
  // Nothing is remembered, and the next good trace gets the score that it must get.
  expect(cache.size).toBe(1);
  const good = makeTrace({ objective: 'Good', domain: 'medical', confidence: 0.7 });
  expect(await evaluateValue(good)).toBe(oracle(good));
  expect(cache.size).toBe(1 + added);
});

test('evaluateValue scores good traces among malformed ones in flight as it scores them alone', async () => {
  const good = ['alpha', 'beta', 'gamma', 'alpha', 'delta', 'alpha beta'].map((objective) =>
    makeTrace({ objective, steps: [FIRST, { type: 'observation', content: objective }] }),
  );
  const alone = [];
  for (const trace of good) alone.push(await evaluateValue(trace));
  cache.clear();
  cache.add(new Float32Array(384));

  const scores = [];
  const refused = [];
  for (const [index, [, make]] of REFUSED.entries()) {
    if (index % Math.ceil(REFUSED.length / good.length) === 0)
      scores.push(evaluateValue(good[scores.length]));
    refused.push(evaluateValue(make()));
  }
  for (const { status } of await Promise.allSettled(refused)) expect(status).toBe('rejected');
  for (const [index, score] of (await Promise.all(scores)).entries())
    expect(score).toBeCloseTo(alone[index], 6);
  expect(cache.size).toBe(1 + added * good.length);
});

const TWO_STEPS = [{ type: 'thought' }, { type: 'tool_call' }];

/** A copy in which every object but the arrays is what `wrap` makes of it. */
function mapObjects(value, wrap) {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map((element) => mapObjects(element, wrap));
  return wrap(
    Object.fromEntries(Object.entries(value).map(([key, field]) => [key, mapObjects(field, wrap)])),
  );
}

/** Traces that are accepted, and what a plain trace of the same score is made of. */
const ACCEPTED = [
  ['no steps', () => makeTrace({ steps: [] }), { steps: [] }],
  ['no task_domain', () => withoutField('metadata.task_domain'), { domain: 'default' }],
  ...[undefined, null, '', '__proto__', 'constructor', 'Finance', 'co\0de'].map((domain) => [
    `the unknown domain ${JSON.stringify(domain)}`,
    () => withField('metadata.task_domain', domain),
    { domain: 'default' },
  ]),
  ...[null, undefined, ''].map((content) => [
    `content: ${content}`,
    () => withField('steps.0.content', content),
  ]),
  ...[null, undefined].map((tool) => [
    ...[`tool: ${tool}`, () => withField('steps.1.tool', tool), { steps: TWO_STEPS }],
  ]),
  ['a tool with an empty name', () => withField('steps.1.tool.name', '')],
  ['an unknown step type', () => withField('steps.0.type', 'reflection')],
  ...[-0, 0, 1, Number.MIN_VALUE, 1 - Number.EPSILON / 2].map((confidence) => [
    ...[`a confidence of ${confidence}`, () => makeTrace({ confidence }), { confidence }],
  ]),
  ['lone surrogates and NUL', () => makeTrace({ objective: '\ud800 a\0b \udfff' })],
  ['objects without prototypes', () => mapObjects(makeTrace(), (it) => Object.setPrototypeOf(it, null))],
  ['fields inherited from a prototype', () => mapObjects(makeTrace(), (it) => Object.create(it))],
  ['proxies of every object', () => mapObjects(makeTrace(), (it) => new Proxy(it, {}))],
  [
    'a proxy of a proxy of the steps',
    () => withWrapped('steps', (steps) => new Proxy(new Proxy(steps, {}), {})),
  ],
  ['a trace of another realm', () => vm.runInNewContext(`(${JSON.stringify(makeTrace())})`)],
];

test.each(ACCEPTED)('evaluateValue accepts %s', async (...row) => {
  const [, make, parts] = row;
  expect(await evaluateValue(make())).toBe(oracle(makeTrace(parts)));
  expect(cache.size).toBe(1 + added);
});

test('evaluateValue scores 100,000 steps, and takes at most twenty times the processor time of 10,000', async () => {
  const types = ['thought', 'tool_call', 'observation', 'error_recovery', 'reflection'];
  const traceOf = (count) => {
    const steps = Array.from({ length: count }, (_, index) => ({
      type: types[index % types.length],
      content: `step ${index}`,
      tool: index % 2 === 0 ? { name: `tool ${index % 7}` } : undefined,
    }));
    return makeTrace({ steps });
  };
  const large = traceOf(100_000);
  expect(await evaluateValue(large)).toBe(oracle(large));
  // The least of five: the process collects garbage now and then.
  const microseconds = async (trace) => {
    const times = [];
    for (let time = 0; time < 5; time++) {
      const start = process.cpuUsage();
      await evaluateValue(trace);
      const { user, system } = process.cpuUsage(start);
      times.push(user + system);
    }
    return Math.min(...times);
  };
  const few = await microseconds(traceOf(10_000));
  expect(await microseconds(large)).toBeLessThan(20 * few);
});

test('evaluateValue scores a trace whose getter scores others', async () => {
  const trace = makeTrace();
  let inner;
  const get = () => {
    inner = Promise.allSettled([evaluateValue(null), evaluateValue(makeTrace({ steps: [FIRST] }))]);
    return 0.9;
  };
  Object.defineProperty(trace.outcome, 'confidence', { get });
  const score = await evaluateValue(trace);
  const [refused, scored] = await inner;
  expect(refused.reason.code).toBe('ERR_INVALID_TRACE');
  expect(scored.value).toBe(0.1);
  expect(score).toBeGreaterThan(0);
  expect(score).toBeLessThanOrEqual(1);
  expect(cache.size).toBe(1 + 2 * added);
});

test('evaluateValue reads each field that it needs once, no other, and no names of fields', async () => {
  const touched = [];
  const watch = (value, path) => {
    if (typeof value !== 'object' || value === null) return value;
    return new Proxy(value, {
      get(target, key, receiver) {
        const field = `${path}.${String(key)}`;
        touched.push(field);
        return watch(Reflect.get(target, key, receiver), field);
      },
      ownKeys(target) {
        touched.push(`keys of ${path}`);
        return Reflect.ownKeys(target);
      },
    });
  };
  const trace = makeTrace();
  Object.assign(trace.steps[0], { input: { a: 1 }, output_summary: 'a', latency_ms: 1 });
  expect(await evaluateValue(watch(trace, 'trace'))).toBe(oracle(makeTrace()));
  const step = (index) => ['', '.type', '.content', '.tool'].map((key) => `steps.${index}${key}`);
  const read = [
    // The id goes into the memory, and has no effect on the score.
    ...['id', 'metadata', 'metadata.success', 'metadata.task_domain', 'outcome', 'outcome.confidence'],
    ...['steps', 'steps.length', ...step(0), ...step(1), 'steps.1.tool.name', 'task', 'task.objective'],
  ];
  expect(touched.sort()).toEqual(read.map((field) => `trace.${field}`).sort());
});

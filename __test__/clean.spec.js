'use strict';

// The texts and traces that each rule changes are recorded in support/cleaned-*.jsonl, which the tests of crates/clean read.

const fs = require('node:fs');
const path = require('node:path');

const fc = require('fast-check');

const kp = require('..');
const oracle = require('./oracle/clean.js');
const { hostileText, level } = require('./support/clean-texts.js');
const { hostile, revoked, throwingGetter } = require('./support/hostile.js');
const { rejectionOf } = require('./support/refusals.js');
const { isLeft, plantedSecrets } = require('./support/secret-kinds.js');

const { clean, cleanPii } = kp;

/** `npm run test:all` has twenty times as many. */
const REPETITIONS = Number(process.env.KNOWLEDGEPULSE_TEST_REPETITIONS || 2);

/** The recorded texts. Broken bars in them keep other programs from taking their keys for real ones. */
const TEXTS = fs
  .readFileSync(path.join(__dirname, 'support', 'cleaned-texts.jsonl'), 'utf8')
  .trimEnd()
  .split('\n')
  .map((line) => JSON.parse(line.replaceAll('¦', '')));

test('cleanPii of each recorded text gives what the SDK gives, at every level', () => {
  for (const { text, plain } of TEXTS) {
    expect(cleanPii(text).cleaned).toBe(plain);
    for (const each of [undefined, 'aggregated', 'federated', 'private'])
      expect(cleanPii(text, each)).toEqual(oracle.cleanPii(text, each));
  }
});

test('clean of each recorded text, alone and in a trace, gives the recorded result', async () => {
  for (const { text, strict } of TEXTS) {
    expect((await clean(text)).cleaned).toBe(strict);
    expect((await clean({ steps: [{ input: text }] })).cleaned.steps[0].input).toBe(strict);
  }
});

test('cleanPii gives what the SDK gives, of hostile texts at every level', () => {
  const property = fc.property(hostileText, level, (text, each) => {
    expect(cleanPii(text, each)).toEqual(oracle.cleanPii(text, each));
  });
  // Lone surrogates around what is found, and every type in another order than that in which they are counted.
  const examples = [
    '\ud800a@b.cc\udc00\ud83d',
    'a@b.cc /home/bob token=abc xoxp-1 kp_0123456789abcdef x@y.zz',
  ];
  fc.assert(property, { numRuns: 500 * REPETITIONS, examples: examples.map((text) => [text, undefined]) });
});

test('clean of a text gives what cleanPii gives without strict', async () => {
  const property = fc.asyncProperty(hostileText, level, async (text, each) => {
    expect(await clean(text, { level: each, strict: false })).toEqual(cleanPii(text, each));
  });
  await fc.assert(property, { numRuns: 200 });
});

test('clean leaves the event loop free', async () => {
  let turns = 0;
  const timer = setInterval(() => turns++, 1);
  await clean('a@b.cc '.repeat(1e5));
  clearInterval(timer);
  expect(turns).toBeGreaterThan(2);
});

test('clean obeys rules and allowed values, and numbers what it replaces', async () => {
  const text = 'a@b.cc for abc-12 and ABC-7, then c@d.ee, then a@b.cc';
  expect(await clean(text, { rules: { ticket: /for (abc-\d+)/i }, allow: ['c@d.ee'] })).toEqual({
    cleaned: '[REDACTED:email-1] for [REDACTED:ticket-1] and ABC-7, then c@d.ee, then [REDACTED:email-1]',
    redactions: [
      { type: 'ticket', count: 1 },
      { type: 'email', count: 2 },
    ],
  });
  const lines = 'from 1\nFROM 2\nto 3';
  const cleaned = async (rule) => (await clean(lines, { rules: { x: rule } })).redactions;
  expect(await cleaned(/^from \d$/)).toEqual([]);
  expect(await cleaned(/^from \d$/m)).toEqual([{ type: 'x', count: 1 }]);
  expect(await cleaned(/^from \d$/gim)).toEqual([{ type: 'x', count: 2 }]);
  expect(await cleaned(/1.FROM/)).toEqual([]);
  expect(await cleaned(/1.FROM/s)).toEqual([{ type: 'x', count: 1 }]);
  expect((await clean(text, { allow: [/[a-z]@.*/] })).redactions).toEqual([]);
  const private_ = await clean(`${text} password=hunter2`, { level: 'private' });
  expect(private_.redactions).toEqual([{ type: 'password', count: 1 }]);
});

const [NOTHING, ANYTHING] = ['[]', '[^]'];

test.each([
  [/x[a-z&&b]+y/, 'xa&by'],
  [/x[+--]y/, 'x-y'],
  [/x[a~~]y/, 'x~y'],
  [/x[a[b]y/, 'x[y'],
  [/x[a[]y/, 'x[y'],
  [/x[a[^]y/, 'x^y'],
  [new RegExp(`x${ANYTHING}y`), 'x\ny'],
  [new RegExp(`(?:${NOTHING}|x)y`), 'xy'],
  [new RegExp(['x', '<', 'A', 'z', 'ay'].join('\\')), 'x<Azay'],
])('clean reads the expression %s as JavaScript does', async (expression, text) => {
  expect(text).toMatch(expression);
  expect((await clean(`is ${text} it?`, { rules: { found: expression } })).redactions).toEqual([
    { type: 'found', count: 1 },
  ]);
});

test('clean of a trace cleans its texts and names, and leaves the one that was given', async () => {
  const texts = (text, name) => ({
    id: 'run:415-555-0142',
    metadata: { success: true, other: [text] },
    steps: [{ input: { id: text, nested: [[text], null, 7], [name]: 1, 7: 2 } }, text],
  });
  const trace = texts('mail bob@example.com', 'eve@example.com');
  const { cleaned, redactions } = await clean(trace);
  expect(cleaned).toEqual(texts('mail [REDACTED:email-1]', '[REDACTED:email-2]'));
  expect(Object.keys(cleaned.steps[0].input)).toEqual(['7', 'id', 'nested', '[REDACTED:email-2]']);
  expect(redactions).toEqual([{ type: 'email', count: 5 }]);
  expect(trace).toEqual(texts('mail bob@example.com', 'eve@example.com'));
  expect((await clean(trace, { level: 'private' })).cleaned).toEqual(trace);
});

test('clean of a trace copies as JSON does: own properties, what toJSON returns, and no foreign prototype', async () => {
  const input = JSON.parse('{"__proto__": {"polluted": "bob@example.com"}, "constructor": 1}');
  Object.assign(input, { nan: Number.NaN, zero: -0, map: new Map([[1, 2]]), call() {}, list: [undefined] });
  const date = new Date(0);
  class Point {
    x = 'bob@example.com';
  }
  const { cleaned: trace } = await clean({ input, date, again: [date], point: new Point() });
  expect(Object.getPrototypeOf(trace.input)).toBe(Object.prototype);
  expect(Object.getOwnPropertyDescriptor(trace.input, '__proto__').value).toEqual({
    polluted: '[REDACTED:email-1]',
  });
  const { __proto__: _, ...rest } = JSON.parse(JSON.stringify(input));
  expect(trace.input).toMatchObject(rest);
  expect(trace.date).toBe(date.toJSON());
  expect(trace.again).toEqual([date.toJSON()]);
  expect(trace.point).toEqual({ x: '[REDACTED:email-1]' });
});

const cyclic = { steps: [{ input: { a: {} } }] };
cyclic.steps[0].input.a.b = cyclic.steps[0].input;
/** Gives an object in an object, and so on. */
function nested(levels) {
  let deep = {};
  for (let level = 0; level < levels; level++) deep = { deep };
  return deep;
}
const deep = nested(300);
// What the engine throws for a result that is too long, without making one.
const tooLong = { toJSON: () => 'x'.repeat(2 ** 31) };
test.each([
  ['what contains itself', cyclic, TypeError, /^trace has no JSON: .*(circular|cyclic)/i],
  [
    'what is too deep',
    { deep },
    RangeError,
    /^trace is nested deeper than 256 levels, at trace(\.deep){256}$/,
  ],
  ['what is far too deep', { deep: nested(2_000) }, RangeError, 'trace is nested deeper than 256 levels'],
  [
    'what overflows the stack',
    nested(50_000),
    RangeError,
    /^trace .*nested (too deeply|deeper than 256 levels)/,
  ],
  ['what is too long', tooLong, RangeError, 'trace has no JSON: it is longer than a string can be'],
  ['a bigint', { a: [1n] }, TypeError, /^trace has no JSON: .*BigInt/i],
  [
    'a getter that throws',
    throwingGetter({}, 'steps', hostile),
    TypeError,
    'trace has no JSON: it could not be read',
  ],
  ['a revoked proxy', { a: revoked({}) }, TypeError, /^trace has no JSON: .*revoked/],
])('clean of a trace refuses %s', async (_, trace, Class, message) => {
  const error = await rejectionOf(clean(trace));
  expect(error).toBeInstanceOf(Class);
  const text = typeof message === 'string' ? message : expect.stringMatching(message);
  expect(error).toMatchObject({ code: 'ERR_INVALID_TRACE', message: text });
});

test('docs/cleaning.md tells how many kinds of secrets are planted, and how many rules keys have', () => {
  const read = (file) => fs.readFileSync(path.join(__dirname, '..', file), 'utf8');
  const rules = (name) => read(`crates/clean/rules/${name}.tsv`).match(/^[^#\n].*/gm).length;
  const kinds = new Set(plantedSecrets(1).map(({ kind }) => kind)).size;
  const page = read('docs/cleaning.md');
  expect(page).toMatch(new RegExp(`\\*\\*secrets found\\*\\*, of ${kinds} kinds`));
  expect(page).toContain(`Keys match ${rules('betterleaks')} rules of`);
  expect(page).toContain(`and ${rules('own')} of our own`);
});

// `npm run bench:secrets` measures the same with other seeds, and beside other programs.
const planted = plantedSecrets(1);

(process.versions.bun ? test.skip : test)('clean leaves nothing of a planted secret', async () => {
  expect(new Set(planted.map(({ where }) => where)).size).toBeGreaterThanOrEqual(8);
  const left = [];
  for (const { text, secret } of planted) if (isLeft((await clean(text)).cleaned, secret)) left.push(text);
  expect(left).toEqual([]);
});

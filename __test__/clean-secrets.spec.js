'use strict';

// What is found, also with `strict`: support/cleaned-texts.jsonl has texts with secrets of each kind where agents meet them, with
// secrets that are told by their names, and with what is no secret. support/cleaned-traces.jsonl has traces. Cargo's tests of
// crates/clean read both.

const { createHash } = require('node:crypto');
const fs = require('node:fs');
const path = require('node:path');

const { cleanPii, cleanTrace } = require('..');
const oracle = require('./oracle/clean.js');

const STRICT = { strict: true };
const MARKER = '[REDACTED:password]';
const linesOf = (name) =>
  fs
    .readFileSync(path.join(__dirname, 'support', name), 'utf8')
    .trimEnd()
    .split('\n');
// Broken bars within the texts keep other programs from taking their keys for real ones.
const TEXTS = linesOf('cleaned-texts.jsonl').map((line) => JSON.parse(line.replaceAll('¦', '')));
const TRACES = linesOf('cleaned-traces.jsonl').map((line) => JSON.parse(line));

/** The checksum of what becomes of a text that ends earlier, or that lacks one of its characters. */
function checksumOfVariants(text) {
  const hash = createHash('sha256');
  const characters = [...text];
  characters.forEach((_, index) => {
    hash.update(cleanPii(characters.slice(0, index).join(''), STRICT).cleaned);
    hash.update(
      cleanPii([...characters.slice(0, index), ...characters.slice(index + 1)].join(''), STRICT).cleaned,
    );
  });
  return hash.digest('hex').slice(0, 16);
}

// KNOWLEDGEPULSE_WRITE_EXPECTED=1 writes both files anew, from the names, the texts and the traces in them.
if (process.env.KNOWLEDGEPULSE_WRITE_EXPECTED) {
  const write = (name, rows) => {
    const lines = rows.map((row) => `${JSON.stringify(row)}\n`).join('');
    fs.writeFileSync(path.join(__dirname, 'support', name), lines);
  };
  beforeAll(async () => {
    const barred = (text) => text.replace(/[\w+/=-]{8}(?=[\w+/=-])/g, '$&¦');
    for (const row of TEXTS) {
      row.plain = cleanPii(row.text).cleaned;
      row.strict = cleanPii(row.text, STRICT).cleaned;
      if (row.checksum) row.checksum = checksumOfVariants(row.text);
    }
    const texts = TEXTS.map(({ text, plain, strict, ...rest }) => ({
      ...{ name: rest.name, text: barred(text), plain: barred(plain), strict: barred(strict), ...rest },
    }));
    write('cleaned-texts.jsonl', texts);
    for (const row of TRACES) {
      const { trace, redactions } = await cleanTrace(row.trace, STRICT);
      Object.assign(row, { strict: trace, redactions });
    }
    write('cleaned-traces.jsonl', TRACES);
  });
}

test.each(TEXTS.map((row) => [row.name, row]))('cleanPii gives the recorded text for %s', (_, row) => {
  expect([cleanPii(row.text).cleaned, cleanPii(row.text, STRICT).cleaned]).toEqual([row.plain, row.strict]);
  expect(cleanPii(row.strict, STRICT).cleaned).toBe(row.strict);
  if (row.checksum) expect(checksumOfVariants(row.text)).toBe(row.checksum);
  for (const level of [undefined, 'aggregated', 'federated', 'private'])
    expect(cleanPii(row.text, level)).toEqual(oracle.cleanPii(row.text, level));
});

test('cleanTrace with strict gives the recorded texts', async () => {
  // Each text by itself: in one trace, the names that one of them tells would be replaced in all.
  const traces = await Promise.all(TEXTS.map(({ text }) => cleanTrace({ steps: [{ input: text }] }, STRICT)));
  expect(traces.map(({ trace }) => trace.steps[0].input)).toEqual(TEXTS.map(({ strict }) => strict));
});

test.each(linesOf('harmless-lines.txt').map((line) => [line]))(
  'cleanPii with strict replaces no more than without strict: %s',
  (line) => {
    const others = (list) => list.filter(({ type }) => type !== 'password');
    const passwords = (list) => list.find(({ type }) => type === 'password')?.count ?? 0;
    const [plain, strict] = [cleanPii(line).redactions, cleanPii(line, STRICT).redactions];
    expect(others(strict)).toEqual(others(plain));
    expect(passwords(strict)).toBeLessThanOrEqual(passwords(plain));
  },
);

test('cleanPii with strict leaves identifiers at the level private', () => {
  const text = "bob.o'brien@example.com +49 30 901820 2001:db8::1 -home-alice-x c:\\Users\\bob";
  expect(cleanPii(text, { level: 'private', strict: true })).toEqual({ cleaned: text, redactions: [] });
});

test.each(TRACES.map((row) => [row.name, row]))('%s', async (_, { trace, strict, redactions }) => {
  expect(await cleanTrace(trace, STRICT)).toEqual({ trace: strict, redactions });
});

test('cleanTrace replaces a shared object under the name of a secret, and cleans it elsewhere', async () => {
  const shared = { value: 'hunter2' };
  const { trace } = await cleanTrace({ plain: shared, secret: shared, again: shared }, STRICT);
  expect(trace).toEqual({ plain: shared, secret: { value: MARKER }, again: shared });
});

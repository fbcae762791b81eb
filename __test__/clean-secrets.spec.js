'use strict';

// What is found, also with `strict`: support/cleaned-texts.jsonl has texts with secrets of each kind where agents meet them, with
// secrets that are told by their names, and with what is no secret. support/cleaned-traces.jsonl has traces. Cargo's tests of
// crates/clean read both.

const { createHash } = require('node:crypto');
const fs = require('node:fs');
const path = require('node:path');

const { clean, cleanPii } = require('..');
const oracle = require('./oracle/clean.js');

const strictly = async (value) => (await clean(value)).cleaned;
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
async function checksumOfVariants(text) {
  const hash = createHash('sha256');
  const characters = [...text];
  for (const index of characters.keys()) {
    hash.update(await strictly(characters.slice(0, index).join('')));
    hash.update(await strictly([...characters.slice(0, index), ...characters.slice(index + 1)].join('')));
  }
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
      row.strict = await strictly(row.text);
      if (row.checksum) row.checksum = await checksumOfVariants(row.text);
    }
    const texts = TEXTS.map(({ text, plain, strict, ...rest }) => ({
      ...{ name: rest.name, text: barred(text), plain: barred(plain), strict: barred(strict), ...rest },
    }));
    write('cleaned-texts.jsonl', texts);
    for (const row of TRACES) {
      const { cleaned, redactions } = await clean(row.trace);
      Object.assign(row, { strict: cleaned, redactions });
    }
    write('cleaned-traces.jsonl', TRACES);
  });
}

test.each(TEXTS.map((row) => [row.name, row]))('clean gives the recorded text for %s', async (_, row) => {
  expect([cleanPii(row.text).cleaned, await strictly(row.text)]).toEqual([row.plain, row.strict]);
  expect(await strictly(row.strict)).toBe(row.strict);
  if (row.checksum) expect(await checksumOfVariants(row.text)).toBe(row.checksum);
  for (const level of [undefined, 'aggregated', 'federated', 'private'])
    expect(cleanPii(row.text, level)).toEqual(oracle.cleanPii(row.text, level));
});

test('clean of traces gives the recorded texts', async () => {
  // Each text by itself: in one trace, the names that one of them tells would be replaced in all.
  const traces = await Promise.all(TEXTS.map(({ text }) => strictly({ steps: [{ input: text }] })));
  expect(traces.map(({ steps }) => steps[0].input)).toEqual(TEXTS.map(({ strict }) => strict));
});

test.each(linesOf('harmless-lines.txt').map((line) => [line]))(
  'clean replaces no more than cleanPii: %s',
  async (line) => {
    const others = (list) => list.filter(({ type }) => type !== 'password');
    const passwords = (list) => list.find(({ type }) => type === 'password')?.count ?? 0;
    const [plain, strict] = [cleanPii(line).redactions, (await clean(line)).redactions];
    expect(others(strict)).toEqual(others(plain));
    expect(passwords(strict)).toBeLessThanOrEqual(passwords(plain));
  },
);

test('clean leaves identifiers at the level private', async () => {
  const text = "bob.o'brien@example.com +49 30 901820 2001:db8::1 -home-alice-x c:\\Users\\bob";
  expect(await clean(text, { level: 'private' })).toEqual({ cleaned: text, redactions: [] });
});

test.each(TRACES.map((row) => [row.name, row]))('%s', async (_, { trace, strict, redactions }) => {
  expect(await clean(trace)).toEqual({ cleaned: strict, redactions });
});

test('clean replaces a shared object under the name of a secret, and cleans it elsewhere', async () => {
  const shared = { value: 'hunter2' };
  expect(await strictly({ plain: shared, secret: shared, again: shared })).toEqual({
    plain: shared,
    secret: { value: MARKER },
    again: shared,
  });
});

'use strict';

// Where the JSON values of an input begin and end, however they are laid out and however broken their neighbours are. Single cases
// are in formats/cases.jsonl.

const fc = require('fast-check');

const { toTraces } = require('../formats.js');

/** The records of a text that comes in chunks of these sizes, again and again. */
async function read(input, { sizes = [64 * 1024] } = {}) {
  const bytes = Buffer.from(input);
  async function* chunks() {
    for (let at = 0, turn = 0; at < bytes.length; turn++) {
      const size = sizes[turn % sizes.length];
      yield bytes.subarray(at, at + size);
      at += size;
    }
  }
  const records = [];
  for await (const { line, index, trace, error } of toTraces(chunks(), { format: 'trace' })) {
    const reason = error?.message.replace(/^line [^:]+: /, '');
    records.push({ line, index, ...(error ? { error: reason } : { value: trace }) });
  }
  return records;
}

const object = fc.dictionary(fc.string({ unit: 'grapheme' }), fc.jsonValue());
const blank = fc.constantFrom('', '\n', '\r\n', '\r', ' \n\t\n');
const lineEnd = fc.constantFrom('\n', '\r\n', '\r');
const separator = fc.oneof(lineEnd, fc.constantFrom('', ' '));
const indentation = fc.constantFrom(0, 1, '\t', 4);

/** A part of an input, and the values in it. */
const part = fc.oneof(
  object.map((value) => ({ text: JSON.stringify(value), values: [value] })),
  fc
    .tuple(object, indentation, lineEnd)
    .map(([value, indent, end]) => ({ text: pretty(value, indent, end), values: [value] })),
  fc
    .tuple(fc.array(fc.jsonValue()), indentation, lineEnd)
    .map(([values, indent, end]) => ({ text: pretty(values, indent, end), values })),
);

function pretty(value, indent, end) {
  return JSON.stringify(value, null, indent).replaceAll('\n', end);
}

describe('values', () => {
  test('are those of JSON.parse, in any mix of layouts, cut into any chunks', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(part, separator, blank), { maxLength: 6 }),
        fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 5 }),
        fc.boolean(),
        async (parts, sizes, endsInLine) => {
          let text = parts.map(([{ text }, end, blank]) => text + end + blank).join('');
          if (!endsInLine) text = text.trimEnd();
          const records = await read(text, { sizes });
          const values = parts.flatMap(([{ values }]) => values);
          expect(records.map(({ error }) => error)).toEqual(values.map(() => undefined));
          expect(records.map(({ value }) => JSON.stringify(value))).toEqual(
            values.map((value) => JSON.stringify(value)),
          );
        },
      ),
      { numRuns: 300 },
    );
  });
});

describe('a bad value', () => {
  describe('costs no other one,', () => {
    const chunkSizes = fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 5 });
    const objects = fc.array(object, { maxLength: 6 });
    const line = fc.oneof(
      object.map((value) => ({ text: JSON.stringify(value), values: [value] })),
      fc.array(object).map((values) => ({ text: JSON.stringify(values), values })),
    );
    const numRuns = 150;

    /** The beginning of a text, which is not all of it. */
    const cutOff = ({ text, at }) => text.slice(0, 1 + Math.floor(at * (text.length - 1)));
    const share = fc.double({ min: 0, max: 0.999, noNaN: true });

    /** Checks the values on all lines but those that are broken, and that one of these is told. */
    async function expectOthers(lines, sizes) {
      const records = await read(lines.map(({ text }) => `${text}\n`).join(''), { sizes });
      const found = lines.map(() => []);
      for (const { line, value, error } of records) found[line - 1].push(error ? 'bad' : value);
      const expected = lines.map(({ values }, at) => values ?? found[at]);
      // Strings, or -0 would differ from 0.
      expect(JSON.stringify(found)).toBe(JSON.stringify(expected));
      const broken = lines.filter(({ values }) => !values);
      const bad = records.filter(({ line, error }) => error && !lines[line - 1].values);
      if (broken.length > 0) expect(bad).not.toEqual([]);
    }

    test('cut off on its line', async () => {
      const cut = fc
        .tuple(line, share)
        .map(([{ text }, at]) => ({ text: cutOff({ text, at }) }))
        .filter(({ text }) => text !== '[]');
      await fc.assert(
        fc.asyncProperty(fc.array(fc.oneof({ weight: 3, arbitrary: line }, cut)), chunkSizes, expectOthers),
        { numRuns },
      );
    });

    test.each([
      ['bytes that are not UTF-8', Buffer.from([0x1f, 0xff, 0x7d, 0x0a])],
      ['text', Buffer.from('x}\n')],
    ])('an open bracket that is closed by %s', async (_, last) => {
      const good = JSON.stringify({ id: 'good' });
      const records = await read(Buffer.concat([Buffer.from(`{\n${good}\n`), last]));
      expect(records.filter(({ error }) => !error).map(({ value }) => value)).toEqual([{ id: 'good' }]);
    });

    test.each([
      ['two open brackets', '[[\n', '', Buffer.from([0x1f, 0x5d, 0xff, 0x5d, 0x0a])],
      ['an open bracket and an open object', '[{\n', '', Buffer.from('x}]\n')],
      ['an open element', '[\n  {"a":[\n', '  ', Buffer.from('  x]}\n]\n')],
    ])('%s, closed by what is no value', async (_, first, indent, last) => {
      const good = `${indent}{"id":"good"}`;
      const input = Buffer.concat([Buffer.from(`${first}${good}\n`), last, Buffer.from('{"id":"last"}\n')]);
      for (const sizes of [[1], [7], [4096]]) {
        const records = await read(input, { sizes });
        const found = records.filter(({ error }) => !error).map(({ line, value }) => [line, value]);
        const lines = String(input).split('\n');
        expect(found).toEqual([
          [1 + lines.indexOf(good), { id: 'good' }],
          [lines.length - 1, { id: 'last' }],
        ]);
      }
    });

    test('a line of a log that begins with a bracket', async () => {
      const characters = fc.constantFrom(...'[]{}",: a\\');
      const log = fc.string({ unit: characters }).map((text) => ({ text: `[x ${text}` }));
      await fc.assert(
        fc.asyncProperty(fc.array(fc.oneof({ weight: 3, arbitrary: line }, log)), chunkSizes, expectOthers),
        { numRuns },
      );
    });

    test('cut off on its line in an array', async () => {
      await fc.assert(
        fc.asyncProperty(
          ...[objects, object, share, objects, fc.boolean(), fc.array(line), chunkSizes],
          async (before, broken, at, after, hasComma, others, sizes) => {
            const isLast = after.length === 0;
            const lineOf = (value) => ({ text: `${JSON.stringify(value)},`, values: [value] });
            const cut = {
              text: cutOff({ text: JSON.stringify(broken), at }) + (hasComma && !isLast ? ',' : ''),
            };
            const elements = [...before.map(lineOf), cut, ...after.map(lineOf)];
            elements.at(-1).text = elements.at(-1).text.replace(/,$/, '');
            await expectOthers(
              [{ text: '[', values: [] }, ...elements, { text: ']', values: [] }, ...others],
              sizes,
            );
          },
        ),
        { numRuns },
      );
    });

    test('broken over several lines in an indented array', async () => {
      const breaks = fc.constantFrom(
        (text) => text.replace(/: "/, ': "\nx'),
        (text) => text.replace(',\n', '\n'),
        (text) => text.replace(/[\]}],?\n/, '\n'),
        (text) => text.replace(/: /, ': NaN'),
        (text) => text.slice(0, text.lastIndexOf('}')),
      );
      await fc.assert(
        fc.asyncProperty(
          ...[objects, object, breaks, objects, fc.constantFrom(1, 2, '\t'), chunkSizes],
          async (before, broken, breakIt, after, indent, sizes) => {
            const layOut = (value) => ` ${JSON.stringify(value, null, indent).replaceAll('\n', '\n ')}`;
            const texts = before.map(layOut);
            const brokenText = breakIt(layOut(broken));
            const text = [...texts, brokenText, ...after.map(layOut)].join(',\n');
            const records = await read(`[\n${text}\n]\n{"end":1}\n`, { sizes });
            const linesBefore = texts.reduce((sum, text) => sum + text.split('\n').length, 1);
            const brokenLines = brokenText.split('\n').length;
            const isOther = ({ line }) => line <= linesBefore || line > linesBefore + brokenLines;
            const others = records.filter(isOther);
            expect(others.map(({ error }) => error)).toEqual(others.map(() => undefined));
            expect(JSON.stringify(others.map(({ value }) => value))).toBe(
              JSON.stringify([...before, ...after, { end: 1 }]),
            );
          },
        ),
        { numRuns },
      );
    });
  });
});

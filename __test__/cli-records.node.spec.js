'use strict';

// Where the JSON values of an input begin and end, however they are laid out and however broken their neighbours are.

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

/** What a reader would note down of records: the place, then the value, or `bad`. */
function outline(records) {
  return records.map(({ line, index, error, value }) => [
    index === null ? line : `${line}[${index}]`,
    error === undefined ? value : 'bad',
  ]);
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

  test.each([
    [
      'one a line, with blank lines',
      '{"a":1}\n\n \r\n{"b":2}\r\n',
      [
        [1, { a: 1 }],
        [4, { b: 2 }],
      ],
    ],
    [
      'without a last line end',
      '{"a":1}\n{"b":2}',
      [
        [1, { a: 1 }],
        [2, { b: 2 }],
      ],
    ],
    [
      'indented',
      '  {"a":1}\n\t{"b":2}\n',
      [
        [1, { a: 1 }],
        [2, { b: 2 }],
      ],
    ],
    ['one over several lines', '{\n  "a": [\n1\n]\n}\n', [[1, { a: [1] }]]],
    [
      'several over several lines',
      '{\n"a":1\n}\n\n{\n"b":2\n}\n{"c":3}',
      [
        [1, { a: 1 }],
        [5, { b: 2 }],
        [8, { c: 3 }],
      ],
    ],
    [
      'two on a line',
      '{"a":1}{"b":{"c":"}{"}} {"d":4}\n{"e":5}',
      [
        [1, { a: 1 }],
        [1, { b: { c: '}{' } }],
        [1, { d: 4 }],
        [2, { e: 5 }],
      ],
    ],
    [
      'an object and an array on a line',
      '{"a":1}[{"b":2},{"c":3}]{"d":4}',
      [
        [1, { a: 1 }],
        ['1[0]', { b: 2 }],
        ['1[1]', { c: 3 }],
        [1, { d: 4 }],
      ],
    ],
    [
      'in an array without a comma',
      '[{"a":1} {"b":[{}]}{"c":3},\n{"d":4}]',
      [
        ['1[0]', { a: 1 }],
        ['1[1]', { b: [{}] }],
        ['1[2]', { c: 3 }],
        ['2[3]', { d: 4 }],
      ],
    ],
    [
      'several over several lines, each beginning where the one before ends',
      '{\n"a":1\n} {\n"b":[2\n]}{"c":\n3}\n{"d":4}',
      [
        [1, { a: 1 }],
        [3, { b: [2] }],
        [5, { c: 3 }],
        [7, { d: 4 }],
      ],
    ],
    [
      'one a line that ends in a return',
      '{"a":1}\r\r{"b":\r2}\r[\r{"c":3}\r]',
      [
        [1, { a: 1 }],
        [3, { b: 2 }],
        ['6[0]', { c: 3 }],
      ],
    ],
    [
      'with line ends of all kinds',
      '{"a":1}\r\n\r{"b":2}\n\r\n{"c":3}\r{"d":4}\n\n\r\r\n{"e":5}\r',
      [
        [1, { a: 1 }],
        [3, { b: 2 }],
        [5, { c: 3 }],
        [6, { d: 4 }],
        [10, { e: 5 }],
      ],
    ],
    [
      'in an array',
      '[{"a":1},\n{"b":[2,"]"]}]',
      [
        ['1[0]', { a: 1 }],
        ['2[1]', { b: [2, ']'] }],
      ],
    ],
    [
      'in arrays, one a line',
      '[{"a":1}]\n[{"b":2}]\n',
      [
        ['1[0]', { a: 1 }],
        ['2[0]', { b: 2 }],
      ],
    ],
    [
      'marked with a byte order mark in the middle',
      '{"a":1}\n\ufeff{"b":2}',
      [
        [1, { a: 1 }],
        [2, { b: 2 }],
      ],
    ],
    ['none', '', []],
    ['none but blank lines', '\n \n', []],
    ['none in an empty array', '[\n]\n', []],
    [
      'of other kinds',
      '1\n"x"\nnull',
      [
        [1, 1],
        [2, 'x'],
        [3, null],
      ],
    ],
  ])('%s', async (_, input, expected) => {
    for (const sizes of [[1], [7], [4096]]) expect(outline(await read(input, { sizes }))).toEqual(expected);
  });
});

describe('a bad value', () => {
  const good = [{ a: 1 }, { b: 2 }];
  const [first, second] = good.map((value) => JSON.stringify(value));
  test.each([
    [
      'not JSON at all',
      `nonsense\n${first}`,
      [
        [1, 'bad'],
        [2, good[0]],
      ],
    ],
    [
      'cut off',
      `{"x":{"y":\n${first}\n${second}`,
      [
        [1, 'bad'],
        [2, good[0]],
        [3, good[1]],
      ],
    ],
    [
      'cut off at the end',
      `${first}\n{"x":[`,
      [
        [1, good[0]],
        [2, 'bad'],
      ],
    ],
    [
      'cut off before the last one',
      `{"x":[\n${first}`,
      [
        [1, 'bad'],
        [2, good[0]],
      ],
    ],
    [
      'cut off in a string',
      `{"x":"abc\n${first}`,
      [
        [1, 'bad'],
        [2, good[0]],
      ],
    ],
    [
      'cut off after a backslash',
      `{"x":"abc\\\n${first}`,
      [
        [1, 'bad'],
        [2, good[0]],
      ],
    ],
    [
      'two cut off',
      `{"x":[\n{"y":[\n${first}\n${second}`,
      [
        [1, 'bad'],
        [2, 'bad'],
        [3, good[0]],
        [4, good[1]],
      ],
    ],
    [
      'a bracket too many',
      `${first}}\n${second}`,
      [
        [1, good[0]],
        [1, 'bad'],
        [2, good[1]],
      ],
    ],
    [
      'one between others on its line',
      `${first}{"x":NaN} ${second}, ${first}\n${second}`,
      [
        [1, good[0]],
        [1, 'bad'],
        [1, good[1]],
        [1, good[0]],
        [2, good[1]],
      ],
    ],
    [
      'no value between others on its line',
      `${first}, ${second} x ]${first},\n${second}`,
      [
        [1, good[0]],
        [1, 'bad'],
        [1, good[1]],
        [1, good[0]],
        [2, good[1]],
      ],
    ],
    [
      'one on its line, and text after it',
      `{state} of things\n${first}`,
      [
        [1, 'bad'],
        [2, good[0]],
      ],
    ],
    [
      'cut off after another on its line',
      `${first}{"x":\n${second}\n${first}`,
      [
        [1, good[0]],
        [1, 'bad'],
        [2, good[1]],
        [3, good[0]],
      ],
    ],
    [
      'a NaN',
      `{"x":NaN}\n${first}`,
      [
        [1, 'bad'],
        [2, good[0]],
      ],
    ],
    [
      'over several lines',
      `{\n  "x": 1\n  "y": 2\n}\n${first}`,
      [
        [1, 'bad'],
        [5, good[0]],
      ],
    ],
    [
      'over several lines, before another',
      `{\n  "x": 1,\n{\n  "a": 1\n}\n${second}`,
      [
        [1, 'bad'],
        [3, good[0]],
        [6, good[1]],
      ],
    ],
    [
      'an element that is a NaN',
      `[NaN,\n${first}]`,
      [
        ['1[0]', 'bad'],
        ['2[1]', good[0]],
      ],
    ],
    [
      'an element with a NaN',
      `[{"x":NaN},${first}]`,
      [
        ['1[0]', 'bad'],
        ['1[1]', good[0]],
      ],
    ],
    [
      'an element with a line end in a string',
      `[{"x":"abc\n"},\n${first}]`,
      [
        ['1[0]', 'bad'],
        ['3[1]', good[0]],
      ],
    ],
    [
      'an array that is cut off',
      `[${first},\n`,
      [
        ['1[0]', good[0]],
        ['1[1]', 'bad'],
      ],
    ],
    [
      'an element that is cut off',
      `[${first},{"x":`,
      [
        ['1[0]', good[0]],
        ['1[1]', 'bad'],
      ],
    ],
    [
      'what follows an array',
      `[${first}] x\n${second}`,
      [
        ['1[0]', good[0]],
        [1, 'bad'],
        [2, good[1]],
      ],
    ],
    [
      'a line that begins like an array',
      `[DEBUG {state\n${first}\n${second}`,
      [
        ['1[0]', 'bad'],
        [2, good[0]],
        [3, good[1]],
      ],
    ],
    [
      'lines that begin like arrays, with a quotation mark',
      `[2024 it's a "quote\n[2025 "\n${first}\n${second}`,
      [
        ['1[0]', 'bad'],
        ['2[0]', 'bad'],
        [3, good[0]],
        [4, good[1]],
      ],
    ],
    [
      'lines that begin like arrays, and plain ones',
      `[2024 begun\nplain\n${first}\n${second}`,
      [
        ['1[0]', 'bad'],
        [2, 'bad'],
        [3, good[0]],
        [4, good[1]],
      ],
    ],
    [
      'arrays, one a line, cut off in an element',
      `[${first},{"x":"\n[${first}]\n[{"x":[\n[${second}]`,
      [
        ['1[0]', good[0]],
        ['1[1]', 'bad'],
        ['2[0]', good[0]],
        ['3[0]', 'bad'],
        ['4[0]', good[1]],
      ],
    ],
    [
      'arrays, one a line, cut off between elements',
      `[${first}\n[${second},\n[${first}]\n[${second}]`,
      [
        ['1[0]', good[0]],
        ['1[1]', 'bad'],
        ['2[0]', good[1]],
        ['2[1]', 'bad'],
        ['3[0]', good[0]],
        ['4[0]', good[1]],
      ],
    ],
    [
      'an array that is cut off before others',
      `[\n${first}\n${second}`,
      [
        ['1[0]', 'bad'],
        [2, good[0]],
        [3, good[1]],
      ],
    ],
    [
      'an element that is cut off, in an array of one a line',
      `[\n${first},\n{"x":[1,\n${second},\n${first}\n]\n${second}`,
      [
        ['2[0]', good[0]],
        ['3[1]', 'bad'],
        ['4[2]', good[1]],
        ['5[3]', good[0]],
        [7, good[1]],
      ],
    ],
    [
      'an element over several lines without a comma, before another',
      `[\n  {\n    "x": [\n      {}\n      {}\n    ]\n  },\n  ${first}\n]`,
      [
        ['2[0]', 'bad'],
        ['8[1]', good[0]],
      ],
    ],
    [
      'an element that is no value, in a line of its own',
      `[\n  nonsense\n  ${first},\n  ${second}\n]`,
      [
        ['2[0]', 'bad'],
        ['3[1]', good[0]],
        ['4[2]', good[1]],
      ],
    ],
  ])('%s', async (_, input, expected) => {
    for (const sizes of [[1], [7], [4096]]) expect(outline(await read(input, { sizes }))).toEqual(expected);
  });

  test('says why', async () => {
    const reasons = async (input) => (await read(input)).map(({ error }) => error);
    expect(await reasons('nonsense')).toEqual([expect.stringMatching(/^not JSON: ./)]);
    expect(await reasons('{"x":[')).toEqual(['not JSON: it is cut off']);
    expect(await reasons('[1,')).toEqual([undefined, 'not JSON: the array that begins in line 1 is cut off']);
    expect(await reasons('{\n"x":1\n"y":2}')).toEqual([
      'not JSON: it is cut off or broken before the end of line 3',
    ]);
    expect(await reasons(Buffer.from([0x22, 0xff, 0x22]))).toEqual(['not UTF-8']);
  });

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

  test('a hundred thousand of them that look like the beginning of one take no more than a few passes', async () => {
    const records = await read('{"a":[\n'.repeat(100_000));
    expect(records).toHaveLength(100_000);
    expect(records.every(({ error }, at) => error !== undefined && records[at].line === at + 1)).toBe(true);
  });

  test.each(['{}', '{},', '{"x":NaN} {"a":1}'])(
    'and on one line twenty thousand times %j takes one',
    async (text) => {
      const records = await read(`${text.repeat(20_000)}\n{"end":1}`);
      expect(records.length).toBeGreaterThan(20_000);
      expect(records.at(-1)).toMatchObject({ value: { end: 1 } });
    },
  );

  test.each(['[\n', '[{"a":[\n', '[1,\n[2]\n', '[x\ny\n'])(
    'nor do a hundred thousand times %j',
    async (text) => {
      const records = await read(`${text.repeat(100_000)}{"end":1}`);
      expect(records.length).toBeGreaterThan(100_000 / 2);
      expect(records.at(-1)).toMatchObject({ value: { end: 1 } });
    },
  );
});

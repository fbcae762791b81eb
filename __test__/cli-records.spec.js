'use strict';

// Where the JSON values of an input begin and end, however they are laid out and however broken their neighbours are.

const fc = require('fast-check');

const { readRecords } = require('../cli/records.js');

/** The records of a text that comes in chunks of these sizes, again and again. */
async function read(input, { sizes = [64 * 1024], ...options } = {}) {
  const bytes = Buffer.from(input);
  async function* chunks() {
    for (let at = 0, turn = 0; at < bytes.length; turn++) {
      const size = sizes[turn % sizes.length];
      yield bytes.subarray(at, at + size);
      at += size;
    }
  }
  const records = [];
  for await (const record of readRecords(chunks(), options)) records.push(record);
  return records;
}

/** What a reader would note down of records: the place, then the value or that there is none. */
function outline(records) {
  return records.map(({ line, index, error, value }) => [
    index === null ? line : `${line}[${index}]`,
    error === undefined ? value : 'bad',
  ]);
}

const object = fc.dictionary(fc.string({ unit: 'grapheme' }), fc.jsonValue());
const blank = fc.constantFrom('', '\n', '\r\n', ' \n\t\n');
const lineEnd = fc.constantFrom('\n', '\r\n');
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
        fc.array(fc.tuple(part, lineEnd, blank), { maxLength: 6 }),
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
          for (const { text, value } of records) expect(JSON.parse(text)).toEqual(value);
        },
      ),
      { numRuns: 300 },
    );
  });

  test('keep the bytes that they were written with', async () => {
    const written = ['{"a": 1.0, "b":12345678901234567890 }', '{"\\u0061":"\\ud800", "é":1e3}'];
    for (const text of [written.join('\n'), `[ ${written.join(' ,\n')}\n]`]) {
      expect((await read(text)).map(({ text }) => text)).toEqual(written);
    }
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
      'two on a line',
      `${first}${second}\n${first}`,
      [
        [1, 'bad'],
        [2, good[0]],
      ],
    ],
    [
      'a bracket too many',
      `${first}}\n${second}`,
      [
        [1, 'bad'],
        [2, good[1]],
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
      'elements without a comma',
      `[${first} ${second},${first}]`,
      [
        ['1[0]', 'bad'],
        ['1[1]', good[0]],
      ],
    ],
    [
      'an array that is cut off',
      `[${first},\n`,
      [
        ['1[0]', good[0]],
        ['2[1]', 'bad'],
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
  ])('%s', async (_, input, expected) => {
    for (const sizes of [[1], [7], [4096]]) expect(outline(await read(input, { sizes }))).toEqual(expected);
  });

  test('says why', async () => {
    const reasons = async (input, options) => (await read(input, options)).map(({ error }) => error);
    expect(await reasons('nonsense')).toEqual([expect.stringMatching(/^not JSON: ./)]);
    expect(await reasons('{"x":[')).toEqual(['not JSON: it is cut off']);
    expect(await reasons('[1,')).toEqual([undefined, 'not JSON: the array that begins in line 1 is cut off']);
    expect(await reasons('{\n"x":1\n"y":2}')).toEqual([
      'not JSON: it is cut off or broken before the end of line 3',
    ]);
    expect(await reasons(Buffer.from([0x22, 0xff, 0x22]))).toEqual(['not UTF-8']);
  });

  test('too long a one is bad, and what follows is not', async () => {
    const limit = 1024 * 1024;
    const long = JSON.stringify({ x: 'x'.repeat(limit) });
    const options = { limit, sizes: [1000] };
    const error = 'longer than 1 MB';
    for (const [input, line, index] of [
      [`${long}\n{"a":1}`, 2, null],
      [`[${long},\n{"a":1}]`, 2, 1],
      [`{\n"x":${long.slice(5)}\n{"a":1}`, 3, null],
    ]) {
      const [bad, next, ...others] = await read(input, options);
      expect(bad).toMatchObject({ line: 1, error });
      expect(next).toMatchObject({ line, index, value: { a: 1 } });
      expect(others).toEqual([]);
    }
    const longest = `"${'x'.repeat(limit - 2)}"`;
    expect(await read(longest, options)).toMatchObject([{ value: longest.slice(1, -1) }]);
  });

  test('a hundred thousand of them that look like the beginning of one take no more than a few passes', async () => {
    const records = await read('{"a":[\n'.repeat(100_000));
    expect(records).toHaveLength(100_000);
    expect(records.every(({ error }, at) => error !== undefined && records[at].line === at + 1)).toBe(true);
  });
});

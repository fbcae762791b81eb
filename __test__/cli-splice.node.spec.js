'use strict';

// What is written into the text of a trace, and that nothing else of it changes.

const fc = require('fast-check');

const { setMetadata } = require('../cli/splice.js');
const { makeTrace } = require('./support/make-trace.js');

const score = { quality_score: 0.8125 };

test.each([
  [
    'a value is replaced',
    '{"metadata": {"quality_score": 0, "x": 1}}',
    '{"metadata": {"quality_score": 0.8125, "x": 1}}',
  ],
  [
    'a value of another kind is',
    '{"metadata":{"quality_score":{"a":[1,"}"]}}}',
    '{"metadata":{"quality_score":0.8125}}',
  ],
  [
    'a missing one is added',
    '{"metadata":{"x": "}" }, "y":1}',
    '{"metadata":{"x": "}","quality_score":0.8125 }, "y":1}',
  ],
  ['into nothing, too', '{"metadata": { } }', '{"metadata": {"quality_score":0.8125 } }'],
  [
    'names elsewhere do not matter',
    '{"quality_score":1,"a":{"metadata":{"quality_score":2}},"metadata":{"b":{"quality_score":3}}}',
    '{"quality_score":1,"a":{"metadata":{"quality_score":2}},"metadata":{"b":{"quality_score":3},"quality_score":0.8125}}',
  ],
  [
    'a name may have escapes',
    '{"m\\u0065tadata":{"quality\\u005fscore":0}}',
    '{"m\\u0065tadata":{"quality\\u005fscore":0.8125}}',
  ],
  [
    'of equal names the last one counts',
    '{"metadata":{"quality_score":1},"metadata":{"quality_score":2,"quality_score":3}}',
    '{"metadata":{"quality_score":1},"metadata":{"quality_score":2,"quality_score":0.8125}}',
  ],
  [
    'numbers stay as they were written',
    '{"a":1.0,"b":12345678901234567890,"c":1E+2,"metadata":{"d":-0.0}}',
    '{"a":1.0,"b":12345678901234567890,"c":1E+2,"metadata":{"d":-0.0,"quality_score":0.8125}}',
  ],
  [
    'it becomes one line',
    '{\r\n  "metadata": {\r\n\t"x": "a\\nb"\r\n  }\r\n}',
    '{"metadata": {"x": "a\\nb","quality_score":0.8125}}',
  ],
])('%s', (_, before, after) => {
  expect(setMetadata(before, score)).toBe(after);
});

test('several values keep their order', () => {
  const values = { a: 1, quality_score: 0.5, b: [2] };
  expect(setMetadata('{"metadata":{"quality_score":0}}', values)).toBe(
    '{"metadata":{"quality_score":0.5,"a":1,"b":[2]}}',
  );
  expect(setMetadata('{"metadata":{}}', values)).toBe('{"metadata":{"a":1,"quality_score":0.5,"b":[2]}}');
});

describe('a value that is not set is removed', () => {
  const values = { quality_score: 0.8125, old: undefined };
  test.each([
    ['from the end', '{"x":1.0 , "old": {"a":[1,"}"]} }', '{"x":1.0,"quality_score":0.8125 }'],
    ['from the beginning', '{ "old":1 , "x":1}', '{ "x":1,"quality_score":0.8125}'],
    ['from between', '{"x":1, "old":1 , "y":2}', '{"x":1 , "y":2,"quality_score":0.8125}'],
    ['beside the one that is set', '{"quality_score":0,"old":1}', '{"quality_score":0.8125}'],
    ['before the one that is set', '{"old":1,"quality_score":0}', '{"quality_score":0.8125}'],
    ['all of its name', '{"old":1,"x":2,"old":3,"\\u006fld":4}', '{"x":2,"quality_score":0.8125}'],
    ['where nothing else is', '{ "old":1,"old":2 }', '{ "quality_score":0.8125 }'],
    ['where it is not, too', '{"older":1}', '{"older":1,"quality_score":0.8125}'],
  ])('%s', (_, before, after) => {
    const text = (metadata) => `{"old":0,"metadata":${metadata},"y":{"old":1}}`;
    expect(setMetadata(text(before), values)).toBe(text(after));
  });

  test('whatever is around it', () => {
    const name = fc.constantFrom('old', 'a', 'b', 'quality_score', 'other');
    const space = fc.constantFrom('', ' ', '\n  ');
    const member = fc.tuple(space, name, space, fc.jsonValue(), space);
    fc.assert(
      fc.property(fc.array(member), space, (members, blank) => {
        const inner = members.map(
          ([a, name, b, value, c]) => `${a}${JSON.stringify(name)}${b}:${JSON.stringify(value)}${c}`,
        );
        const written = setMetadata(`{"metadata":{${inner.join(',') || blank}}}`, {
          ...values,
          other: undefined,
        });
        const expected = JSON.parse(`{${inner.join(',')}}`);
        delete expected.old;
        delete expected.other;
        expected.quality_score = score.quality_score;
        expect(JSON.parse(written)).toEqual({ metadata: JSON.parse(JSON.stringify(expected)) });
        expect(written).not.toMatch(/"o(ld|ther)":/);
      }),
      { numRuns: 500 },
    );
  });
});

test('any trace reads as before, but for the value', () => {
  const metadata = fc.dictionary(
    fc.oneof(fc.constantFrom('quality_score', '__proto__'), fc.string()),
    fc.jsonValue(),
  );
  const spaces = fc.constantFrom(undefined, 1, '\t');
  fc.assert(
    fc.property(fc.dictionary(fc.string(), fc.jsonValue()), metadata, spaces, (others, metadata, indent) => {
      const trace = { ...others, metadata };
      const written = setMetadata(JSON.stringify(trace, null, indent), score);
      expect(written).not.toMatch(/[\r\n]/);
      const expected = JSON.parse(JSON.stringify(trace));
      expected.metadata.quality_score = score.quality_score;
      expect(JSON.stringify(JSON.parse(written))).toBe(JSON.stringify(expected));
    }),
    { numRuns: 500 },
  );
});

test('a trace may be nested more deeply than the stack is', () => {
  const deep = '['.repeat(200_000) + ']'.repeat(200_000);
  const before = JSON.stringify({ ...makeTrace(), input: 'DEEP' }).replace('"DEEP"', deep);
  expect(setMetadata(before, score)).toBe(before.replace('"quality_score":0', '"quality_score":0.8125'));
});

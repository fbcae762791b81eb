'use strict';

// Conversations of any shape, for the properties of readers.

const fc = require('fast-check');

const anyText = fc.stringMatching(/^[a-z]{1,8}( [a-z]{1,8})?$/);

/** Turns of an agent, and the contents of the steps that they must become in every format. */
const anyTurns = fc
  .array(
    fc.record({
      user: fc.option(anyText, { nil: undefined }),
      reasoning: fc.option(anyText, { nil: undefined }),
      message: fc.option(anyText, { nil: undefined }),
      calls: fc.array(fc.record({ name: anyText, value: anyText, result: anyText }), { maxLength: 3 }),
    }),
    { minLength: 1, maxLength: 8 },
  )
  .map((turns) => ({
    turns: turns.map((turn, at) => ({
      ...turn,
      calls: turn.calls.map((call, nth) => ({ ...call, id: `${at}.${nth}` })),
    })),
    contents: turns.flatMap(({ user, reasoning, message, calls }) => [
      ...[user, reasoning, message].filter((text) => text !== undefined),
      ...calls.map(({ name, value }) => `${name}\nvalue: ${value}`),
      ...calls.map(({ result }) => result),
    ]),
  }));

/** What `make` makes of a value; nothing where there is none. */
const some = (value, make) => (value === undefined ? [] : [make(value)]);

module.exports = { anyTurns, some };

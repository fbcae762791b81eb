'use strict';

// Traces of OpenTelemetry: the addon reads spans as the tests in Rust do (`crates/formats/src/tests/spans.rs`).

const { recordsOf, tracesOf } = require('./support/reading-traces.js');

test('readTraces of spans of the AI SDK and others yields the traces of both', async () => {
  const [inference] = recordsOf('captured-spans.jsonl');
  const [, agent] = recordsOf('ai-sdk-spans.jsonl');
  const traces = await tracesOf([inference, agent].map((record) => JSON.stringify(record)).join('\n'));
  expect(traces.map(({ steps }) => steps.length)).toEqual([4, 5, 9, 1]);
});

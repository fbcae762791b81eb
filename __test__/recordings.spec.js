'use strict';

// toTraces hands on what Cargo's tests of crates/formats compare in full: recordings of __test__/formats become the traces of
// __test__/formats/expected, one a line.

const fs = require('node:fs');
const path = require('node:path');

const { folder, read } = require('./support/reading-traces.js');

/** When a recording has no time, its trace has that of the call. */
const withoutNow = (time) => (Math.abs(Date.now() - Date.parse(time)) < 60_000 ? 'now' : time);

/** A result as it is written: for people, without what JSON does not have. */
function written({ trace, error, ...rest }) {
  if (error) return { ...rest, error: error.message };
  const created_at = withoutNow(trace.metadata.created_at);
  return { ...rest, trace: { ...trace, metadata: { ...trace.metadata, created_at } } };
}

test.each([
  ['trial/agent/trajectory.json', 'ATIF with a sub-agent and the outcome of result.json'],
  ['chat.jsonl', 'chat completions, Responses and Anthropic messages'],
  ['session.jsonl', 'a session of Claude Code with a sidechain, a failure and a rejection'],
  ['inspect.eval', 'a log of Inspect that is an archive, with a failure and scores'],
  ['spans.jsonl', 'spans of OpenTelemetry and OpenInference, in whatever order they come'],
])('toTraces reads %s: %s', async (name) => {
  const file = path.join(folder, name);
  const found = (await read(fs.createReadStream(file), { file })).map(written);
  const expected = `${name.replaceAll('/', '-').replace(/\.(?:jsonl?|eval)$/, '')}.jsonl`;
  const lines = fs
    .readFileSync(path.join(folder, 'expected', expected), 'utf8')
    .trim()
    .split('\n');
  expect(JSON.parse(JSON.stringify(found))).toEqual(lines.map((line) => JSON.parse(line)));
});

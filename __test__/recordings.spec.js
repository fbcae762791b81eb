'use strict';

// The recordings of __test__/formats become the traces of __test__/formats/expected, one a line, and the inputs of
// __test__/formats/expected/cases.jsonl become the outputs beside them. Cargo's tests of crates/formats read the same files. After an
// intended change, KNOWLEDGEPULSE_WRITE_EXPECTED=1 writes these anew; look at what has changed then.

const fs = require('node:fs');
const path = require('node:path');

const { chunksOf, folder, read, recordsOf } = require('./support/reading-traces.js');

/** When a recording has no time, its trace has that of the call. */
const withoutNow = (time) => (Math.abs(Date.now() - Date.parse(time)) < 60_000 ? 'now' : time);

/** A result as it is written: for people, without what JSON does not have. */
function written({ trace, error, ...rest }) {
  if (error) return { ...rest, error: error.message };
  if (trace?.metadata === undefined) return { ...rest, trace };
  const created_at = withoutNow(trace.metadata.created_at);
  return { ...rest, trace: { ...trace, metadata: { ...trace.metadata, created_at } } };
}

test.each([
  ['trial/agent/trajectory.json', 'ATIF with a sub-agent and the outcome of result.json'],
  ['chat.jsonl', 'chat completions, Responses and Anthropic messages'],
  ['ai-sdk.jsonl', 'messages of the AI SDK, of a UI and of a model'],
  ['langchain.jsonl', 'a run of LangGraph, in each way its messages are written'],
  ['sharegpt.jsonl', 'turns of ShareGPT, as LLaMA-Factory, Hermes and OpenHands write calls'],
  ['langsmith.jsonl', 'runs of LangSmith: a graph whose state has all messages, and a tree of runs'],
  ['langfuse.jsonl', 'observations of Langfuse, and a trace with its own'],
  ['phoenix.jsonl', 'spans of Phoenix: rows of a data frame, and a page of the API'],
  ['session.jsonl', 'a session of Claude Code with a sidechain, a failure and a rejection'],
  ['published/claude-code.jsonl', 'a published session of Claude Code, each step once'],
  ['codex.jsonl', 'a session of Codex with a command that fails'],
  ['codex-exec.jsonl', 'the events of codex exec --json, with a command that fails'],
  ['inspect.eval', 'a log of Inspect that is an archive, with a failure and scores'],
  ['gemini-cli.jsonl', 'a session of Gemini CLI, whose records replace others'],
  ['pi.jsonl', 'a session of Pi with a command that fails'],
  ['openhands.jsonl', 'events of OpenHands, a line each, with failures'],
  ['published/openhands.jsonl', 'a published trajectory of OpenHands 0'],
  ['runs.traj.jsonl', 'SWE-agent of both versions, and mini-SWE-agent'],
  ['spans.jsonl', 'spans of OpenTelemetry and OpenInference, in whatever order they come'],
  ['captured-spans.jsonl', 'spans of instrumentations of OpenAI and Anthropic, each step once'],
  ['ai-sdk-spans.jsonl', 'spans of the AI SDK 4, 6 and 7, each step once'],
  ['published/pydantic-ai.jsonl', 'spans of Pydantic AI, whose users give the results of tools'],
  ['published/openai-agents.jsonl', 'spans of OpenAI Agents, which write texts in two ways'],
])('toTraces reads %s: %s', async (name) => {
  const file = path.join(folder, name);
  const found = (await read(fs.createReadStream(file), { file })).map(written);
  const expectedFile = path.join(
    folder,
    'expected',
    `${name.replaceAll('/', '-').replace(/\.(?:jsonl?|eval)$/, '')}.jsonl`,
  );
  if (process.env.KNOWLEDGEPULSE_WRITE_EXPECTED) {
    fs.writeFileSync(expectedFile, found.map((result) => `${JSON.stringify(result)}\n`).join(''));
  }
  const expected = fs
    .readFileSync(expectedFile, 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  expect(JSON.parse(JSON.stringify(found))).toEqual(expected);
});

const casesFile = path.join(folder, 'expected', 'cases.jsonl');
const cases = recordsOf('expected/cases.jsonl');

test.each(cases.map((each) => [each.name, each]))('%s', async (_, each) => {
  const { input, options } = each;
  const outputOf = async (given) => JSON.parse(JSON.stringify((await read(given, options)).map(written)));
  const output = await outputOf(input);
  if (process.env.KNOWLEDGEPULSE_WRITE_EXPECTED) each.output = output;
  expect(output).toEqual(each.output);
  if (typeof input === 'string') expect(await outputOf(chunksOf(Buffer.from(input), 7))).toEqual(output);
});

if (process.env.KNOWLEDGEPULSE_WRITE_EXPECTED) {
  afterAll(() => fs.writeFileSync(casesFile, cases.map((each) => `${JSON.stringify(each)}\n`).join('')));
}

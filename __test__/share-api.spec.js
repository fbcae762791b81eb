'use strict';

const fs = require('node:fs');
const path = require('node:path');

const { share, traceFromMessages } = require('..');
const { revoked } = require('./support/hostile.js');
const { makeTrace } = require('./support/make-trace.js');
const { readTraces } = require('./support/paths.js');
const { rejectionOf } = require('./support/refusals.js');
const { fromFolder, scratchDirectory } = require('./support/scratch.js');
const { codexSession } = require('./support/sessions.js');
const { warningsWhile } = require('./support/warnings.js');

const directory = scratchDirectory('share-api');
let folders = 0;
const newFolder = () => path.join(directory, `shared-${folders++}`);

const secret = 'ghp_aB3dE5fG7hJaB3dE5fG7hJaB3dE5fG7hJaB3';
const trace = makeTrace({ objective: `Log in with ${secret}` });

const timestamp = '2026-10-01T09:00:00.000Z';
const session = codexSession('Write to bob@a.org', { id: 's1', cwd: '/work', timestamp });
const file = path.join(directory, 'session.jsonl');
beforeAll(() => fs.writeFileSync(file, session));

test.each([
  ['native', /^sessions\/2\d{3}-\d\d-\d\d-log-in-with-.+\.jsonl$/],
  ['messages', /^messages\.jsonl$/],
  ['atif', /^sessions\/2\d{3}-\d\d-\d\d-log-in-with-.+\.json$/],
  ['knowledgepulse', /^units\.jsonl$/],
])('share as %s writes traces without secrets, and resolves to the manifest', async (as, name) => {
  const folder = newFolder();
  const { sessions, leftOut } = await share([trace, makeTrace()], folder, { as });
  expect(leftOut).toEqual([]);
  expect(sessions.map(({ rank }) => rank)).toEqual([1, 2]);
  expect(sessions[0].file).toMatch(name);
  expect(sessions[0]).toMatchObject({ agent: 'trace', success: true, confidence: 0.9, outcomeFrom: 'log' });
  expect(sessions[0].qualityScore).toEqual(as === 'knowledgepulse' ? expect.any(Number) : undefined);
  expect(sessions[0].redactions).toEqual({ api_key: 1 });
  const lines = readTraces(path.join(folder, 'manifest.jsonl'));
  expect(lines.map((line) => line.session_id)).toEqual(sessions.map(({ sessionId }) => sessionId));
  expect(lines.map((line) => Object.values(line))).toEqual(sessions.map((session) => Object.values(session)));
  const text = fs.readFileSync(path.join(folder, sessions[0].file), 'utf8');
  expect(text).toContain('Log in with [REDACTED:api_key-1]');
  expect(fs.readFileSync(path.join(folder, 'README.md'), 'utf8')).toContain('@knowledgepulse/native');
});

test('share leaves the bytes of files but for redactions, and takes traces beside them', async () => {
  const folder = newFolder();
  const { sessions } = await share([file, trace], folder);
  expect(sessions.map(({ agent }) => agent)).toEqual(['codex', 'trace']);
  expect(sessions[0]).toMatchObject({ sessionId: 's1', session: 's1', project: 'work' });
  const written = fs.readFileSync(path.join(folder, sessions[0].file), 'utf8');
  expect(written).toBe(session.replace('bob@a.org', '[REDACTED:email-1]'));
});

test('share warns of traces whose unknown outcome was lost in a copy', async () => {
  const { imported: _, ...metadata } = { ...trace.metadata, success: false };
  const lost = { ...makeTrace(), metadata, outcome: { ...trace.outcome, confidence: 0.5 } };
  const whole = traceFromMessages([{ role: 'user', content: 'Sort the list' }]);
  const warnings = await warningsWhile(() => share([lost, whole, trace], newFolder()));
  const message = expect.stringMatching(/^1 trace has success: false .* copy metadata.imported too$/);
  expect(warnings).toEqual([{ message, type: 'KnowledgePulseWarning' }]);
});

test.each([[undefined], [{}], [{ clean: {} }]])(
  'share with the options %j cleans strictly, and of personal data too',
  async (options) => {
    const folder = newFolder();
    const objective = 'Write to bob@a.org with password: hunter2-Zq9';
    const { sessions } = await share([makeTrace({ objective })], folder, options);
    expect(sessions[0].redactions).toEqual({ email: 1, password: 1 });
    expect(fs.readdirSync(path.join(folder, 'sessions'))).toHaveLength(1);
  },
);

test('share writes no time of a trace whose log has none', async () => {
  const read = traceFromMessages([
    { role: 'user', content: 'Sort the list' },
    { role: 'assistant', content: 'Sorted.' },
  ]);
  const { sessions } = await share([read], newFolder());
  expect(sessions[0].createdAt).toBeNull();
  expect(sessions[0].file).toMatch(/^sessions[/]session-sort-the-list-/);
});

test('share takes the options of clean', async () => {
  const folder = newFolder();
  const { sessions } = await share([file], folder, {
    clean: { allow: ['bob@a.org'], rules: { verb: /Write/ } },
  });
  const written = fs.readFileSync(path.join(folder, sessions[0].file), 'utf8');
  expect(written).toBe(session.replace('Write', '[REDACTED:verb-1]'));
});

test('share leaves out invalid traces and traces without a known outcome, and says why', async () => {
  const unknown = makeTrace();
  unknown.metadata.imported = { known: { success: false } };
  const traces = [unknown, trace, { ...trace, steps: 7 }];
  const { sessions, leftOut } = await share(traces, newFolder(), { as: 'knowledgepulse' });
  expect(sessions).toHaveLength(1);
  expect(leftOut).toEqual([
    { name: 'trace-1', reason: 'its outcome is not known' },
    { name: 'trace-3', reason: 'it cannot be read: trace.steps must be an array, got number' },
  ]);
});

test('share adds to a folder in its form, each session once, and keeps the files of others', async () => {
  const folder = newFolder();
  fs.mkdirSync(folder);
  fs.writeFileSync(path.join(folder, 'thesis.txt'), 'precious');
  await share([trace], folder, { as: 'messages' });
  const { sessions } = await share([trace, file], folder);
  const rows = readTraces(path.join(folder, 'messages.jsonl'));
  expect(rows.map((row) => row.session_id)).toEqual(sessions.map(({ sessionId }) => sessionId));
  const names = ['README.md', 'manifest.jsonl', 'messages.jsonl', 'thesis.txt'];
  expect(fs.readdirSync(folder).sort()).toEqual(names);
});

const INPUT = 'ERR_INVALID_INPUT';
const OPTION = 'ERR_INVALID_OPTION';
test.each([
  ['no list', trace, {}, TypeError, INPUT, /array of traces or paths, or null, got object/],
  ['a revoked list', revoked([]), {}, TypeError, INPUT, /must be an array/],
  ['a number', [trace, 7], {}, TypeError, INPUT, /^traces\[1\] must be a trace or a path/],
  ['an empty list', [], {}, Error, INPUT, /^there is nothing to share$/],
  ['no trace', [{}], {}, Error, INPUT, /nothing to share: trace-1 is left out, because .*trace\.task/],
  ['a bigint', [{ task: 1n }], {}, TypeError, 'ERR_INVALID_TRACE', /^traces\[0\] has no JSON/],
  ['a missing file', ['none.jsonl'], {}, Error, 'ERR_IO', /[/\\]none\.jsonl could not be read/],
  ['a file without a session', [__filename], {}, Error, INPUT, /has no session of a known format/],
  ['a form that is none', [trace], { as: 'csv' }, RangeError, OPTION, /^options\.as must be/],
  ['an unknown option', [trace], { title: 'a' }, TypeError, OPTION, /^options\.title is not/],
  ['an option of clean', [trace], { clean: { level: 1 } }, RangeError, OPTION, /^options\.clean\.level/],
  [
    ...['an expression', [trace], { clean: { rules: { look: /(?=a)/ } } }, TypeError, OPTION],
    /^options\.clean\.rules\["look"\] is not an expression/,
  ],
])('share refuses %s, and writes nothing', async (_, shared, options, Class, code, message) => {
  const folder = newFolder();
  const error = await rejectionOf(share(shared, folder, options));
  expect(error).toBeInstanceOf(Class);
  expect(error).toMatchObject({ code, message: expect.stringMatching(message) });
  expect(fs.existsSync(folder)).toBe(false);
});

test.each([[undefined], [''], [7]])('share refuses %p as a folder', async (folder) => {
  const error = await rejectionOf(share([trace], folder));
  expect(error).toBeInstanceOf(TypeError);
  expect(error).toMatchObject({ code: 'ERR_INVALID_INPUT' });
  expect(error.message).toMatch(/^folder must be the path of a folder, got/);
});

test('share into a folder below a file is an error with its path', async () => {
  const folder = path.join(file, 'shared');
  const error = await rejectionOf(share([trace], folder));
  expect(error).toMatchObject({ code: 'ERR_INVALID_INPUT' });
  expect(error.message).toContain(folder);
});

test('share resolves its paths at the call', async () => {
  const prepare = () => fs.writeFileSync('session.jsonl', session);
  const call = () => share(['session.jsonl'], 'folder');
  const { result, before, after } = await fromFolder(directory, prepare, call);
  expect(result.sessions).toHaveLength(1);
  expect([before, after]).toEqual([['folder', 'session.jsonl'], []]);
});

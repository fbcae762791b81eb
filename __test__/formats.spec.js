'use strict';

// readTraces and traceFromMessages beside the rules of the readers, which crates/formats tests: inputs of every kind, options, streams,
// and hostile values.

const fs = require('node:fs');
const path = require('node:path');
const { Readable } = require('node:stream');
const { pathToFileURL } = require('node:url');
const vm = require('node:vm');
const zlib = require('node:zlib');

const { KnowledgePulseError, Scorer, readTraces, traceFromMessages } = require('..');
const { hostile, revoked, throwingGetter } = require('./support/hostile.js');
const { makeTrace } = require('./support/make-trace.js');
const { rejectionOf } = require('./support/refusals.js');
const { runForResult } = require('./support/run-script.js');
const { scratchDirectory, writerIn } = require('./support/scratch.js');

const folder = path.join(__dirname, 'formats');

/** All that readTraces yields for an input. */
async function resultsOf(input, options) {
  const results = [];
  for await (const result of readTraces(input, options)) results.push(result);
  return results;
}

/** All traces of an input in which nothing is bad. */
async function tracesOf(input, options) {
  return (await resultsOf(input, options)).map(({ error, trace }) => {
    if (error) throw error;
    return trace;
  });
}

/** The bytes of an input in chunks of some size. */
function* chunksOf(bytes, size) {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

const trajectoryFile = path.join(folder, 'trial', 'agent', 'trajectory.json');

const HELLO = '{"messages":[{"role":"user","content":"Hello"}]}';
const said = (content) => ({ messages: [{ role: 'user', content }] });
const objectivesOf = (traces) => traces.map(({ task }) => task.objective);

test('readTraces yields a trace and its outcome, by the format or by the option', async () => {
  for (const [options, success] of [
    [{}, true],
    [{ success: false }, false],
  ]) {
    const [{ trace, ...rest }] = await resultsOf(trajectoryFile, options);
    expect(trace).toMatchObject({ metadata: { success }, steps: expect.any(Array) });
    expect(rest).toEqual({ outcome: { success, confidence: 1 } });
  }
});

test('readTraces yields null where nobody knows the outcome, also of a trace that was converted before', async () => {
  const [{ trace, outcome }] = await resultsOf(said('a'));
  expect(outcome).toEqual({ success: null, confidence: null });
  expect([trace.metadata.success, trace.outcome.confidence]).toEqual([false, 0.5]);
  for (const again of [trace, JSON.stringify(trace)])
    expect((await resultsOf(again))[0].outcome).toEqual(outcome);
  expect((await resultsOf(makeTrace()))[0].outcome).toEqual({ success: true, confidence: 0.9 });
});

test('readTraces yields an error for a bad record, with its place, and goes on', async () => {
  const results = await resultsOf(`{"x":1}\n[{"y":1}]\n${HELLO}`);
  const places = results.map(({ error }) => error?.message.split(':')[0]);
  expect(places).toEqual(['line 1', 'line 2[0]', undefined]);
  expect(results[0]).toEqual({ error: expect.any(KnowledgePulseError) });
  expect(results[0].error.code).toBe('ERR_INVALID_RECORD');
});

test('readTraces yields nothing more once its signal aborts, while it waits too', async () => {
  const line = `${HELLO}\n`;
  expect(await rejectionOf(resultsOf(line, { signal: AbortSignal.abort('enough') }))).toBe('enough');
  async function* endless() {
    // A row comes with the next one, of which it may be the beginning.
    yield `${line}${line}`;
    await new Promise(() => {});
  }
  for (const input of [endless(), Readable.from(endless())]) {
    const controller = new AbortController();
    const reading = readTraces(input, { signal: controller.signal });
    expect((await reading.next()).value.trace.task.objective).toBe('Hello');
    const next = rejectionOf(reading.next());
    await new Promise(setImmediate);
    controller.abort('enough');
    expect(await next).toBe('enough');
    if ('destroyed' in input) expect(input.destroyed).toBe(true);
  }
  const controller = new AbortController();
  const reading = readTraces(`${line}${line}`, { signal: controller.signal });
  await reading.next();
  controller.abort('enough');
  expect(await rejectionOf(reading.next())).toBe('enough');
});

test('traceFromMessages makes a trace that a Scorer takes, of messages of Chat Completions and of Anthropic', async () => {
  const user = { role: 'user', content: 'List the files' };
  const calls = [{ id: 'c', type: 'function', function: { name: 'ls', arguments: '{"path":"."}' } }];
  const use = { type: 'tool_use', id: 'c', name: 'ls', input: { path: '.' } };
  for (const messages of [
    [
      user,
      { role: 'assistant', content: 'I look', tool_calls: calls },
      { role: 'tool', tool_call_id: 'c', content: 'a.txt' },
    ],
    [
      user,
      { role: 'assistant', content: [{ type: 'text', text: 'I look' }, use] },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'c', content: 'a.txt' }] },
    ],
  ]) {
    const trace = traceFromMessages(messages, { success: true });
    expect([trace.task.objective, trace.metadata.success]).toEqual([user.content, true]);
    expect(trace.steps.map(({ type }) => type)).toEqual(['thought', 'tool_call', 'observation']);
    expect(trace.steps[1].tool.name).toBe('ls');
    expect((await new Scorer({ embed: false }).score(trace)).value).toBeGreaterThan(0);
  }
});

test('traceFromMessages leaves the outcome unknown without success', () => {
  const { metadata } = traceFromMessages(said('a').messages);
  expect(metadata).toMatchObject({ success: false, imported: { known: { success: false } } });
});

test('readTraces reads every step of a record of two megabytes with 20,000 calls', async () => {
  const call = (at) => ({ role: 'assistant', tool_calls: [{ id: `${at}`, function: { name: 'f' } }] });
  const [user] = said('x'.repeat(2 ** 21)).messages;
  const [trace] = await tracesOf({
    messages: [user, ...Array.from({ length: 20_000 }, (_, at) => call(at))],
  });
  expect([trace.task.objective.length, trace.steps.length]).toEqual([2 ** 21, 20_000]);
});

test('readTraces yields an error for each value that has no JSON, and reads the next', async () => {
  let deep = [];
  for (let depth = 0; depth < 50_000; depth++) deep = [deep];
  const circle = said({});
  circle.messages[0].content.self = circle;
  // What the engine throws for a result that is too long, without making one.
  const long = { toJSON: () => 'x'.repeat(2 ** 31) };
  const thrower = throwingGetter({}, 'messages', new Error('no'));
  const bad = [said(deep), circle, long, thrower, revoked({}), said({ toJSON: hostile.toString })];
  const results = await resultsOf([...bad, said('Hello')]);
  expect(results.map(({ error, trace }) => error?.code ?? trace.task.objective)).toEqual([
    ...Array(bad.length).fill('ERR_INVALID_RECORD'),
    'Hello',
  ]);
  expect(results[0].error.message).toBe('[0]: it is nested too deeply');
  expect(results[2].error.message).toBe('[2]: it is longer than a string can be');
});

test.each([
  'new Uint8Array(bytes)',
  'new Uint8Array(bytes).buffer',
  'new DataView(new Uint8Array(bytes).buffer)',
])('readTraces reads bytes of another realm, alone and in a stream: %s', async (make) => {
  const text = JSON.stringify(makeTrace());
  const bytes = vm.runInNewContext(make, { bytes: [...Buffer.from(text)] });
  for (const input of [bytes, [bytes].values()]) expect(await tracesOf(input)).toEqual([JSON.parse(text)]);
});

test('readTraces refuses transferred buffers and revoked proxies with a code', async () => {
  const buffer = new ArrayBuffer(8);
  const views = [new DataView(buffer), new Uint8Array(buffer)];
  structuredClone(buffer, { transfer: [buffer] });
  const buffers = [buffer, ...views].flatMap((each) => [each, [each].values()]);
  for (const input of [...buffers, revoked({}), revoked([])]) {
    await expect(resultsOf(input)).rejects.toMatchObject({ code: 'ERR_INVALID_INPUT' });
  }
});

test('readTraces yields a trace that is a value as it is, without checks', async () => {
  const native = { '@type': 'ReasoningTrace', own: [null, 'field'] };
  expect(await tracesOf([native])).toEqual([native]);
  expect(await tracesOf(native)).toEqual([native]);
});

test('readTraces reads bytes and chunks of any kind, and refuses a promise', async () => {
  const bytes = new TextEncoder().encode(HELLO);
  function* chunks() {
    yield HELLO.slice(0, 9);
    yield bytes.subarray(9);
  }
  for (const input of [HELLO, bytes, bytes.buffer, chunks(), new Set([HELLO]), new Blob([HELLO]).stream()])
    expect(objectivesOf(await tracesOf(input))).toEqual(['Hello']);
  await expect(readTraces(Promise.resolve(HELLO)).next()).rejects.toMatchObject({
    code: 'ERR_INVALID_INPUT',
    message: expect.stringMatching(/await it first/),
  });
});

test('readTraces joins the halves of a character that two chunks of text share', async () => {
  const units = JSON.stringify(said('𝒳 and 😀')).split('').values();
  expect(objectivesOf(await tracesOf(units))).toEqual(['𝒳 and 😀']);
});

test('readTraces closes a stream when its caller ends the loop', async () => {
  for (const [first, others] of [
    ['', `${HELLO}\n`],
    ['[', `${HELLO},`],
  ]) {
    let isClosed = false;
    const chunks = async function* () {
      try {
        yield first;
        for (;;) yield others;
      } finally {
        // Closing takes a while, and the loop waits for it.
        await new Promise(setImmediate);
        isClosed = true;
      }
    };
    for await (const { trace } of readTraces(chunks())) if (trace.task.objective === 'Hello') break;
    expect(isClosed).toBe(true);
  }
  const stream = fs.createReadStream(path.join(folder, 'session.jsonl'));
  for await (const { trace } of readTraces(stream)) if (trace) break;
  expect(stream.destroyed).toBe(true);
});

test('readTraces throws what a stream throws', async () => {
  const failure = new Error('the disk is on fire');
  async function* broken() {
    yield `${HELLO}\n`;
    throw failure;
  }
  const reading = readTraces(broken());
  expect((await reading.next()).value.trace.task.objective).toBe('Hello');
  await expect(reading.next()).rejects.toBe(failure);
  const numbers = readTraces([1].values());
  await expect(numbers.next()).rejects.toMatchObject({ code: 'ERR_INVALID_INPUT' });
});

test('readTraces throws ERR_INVALID_INPUT for compressed bytes, and says how to make text of them', async () => {
  const bytes = zlib.gzipSync('{}');
  for (const input of [bytes, chunksOf(bytes, 1)]) {
    await expect(resultsOf(input)).rejects.toMatchObject({
      code: 'ERR_INVALID_INPUT',
      message: expect.stringMatching(/^the input is compressed with gzip: .* gzip -dc/),
    });
  }
});

describe('readTraces of a path', () => {
  const directory = scratchDirectory('read-paths');
  const write = writerIn(directory);
  const messagesOf = async (input) => (await resultsOf(input)).map(({ error }) => error?.message);

  test('readTraces reads a file by its path, its URL or the name of its folder, also compressed', async () => {
    const file = write('day 1/a.jsonl', `${HELLO}\n`);
    write('day 1/b.jsonl.gz', zlib.gzipSync(HELLO.replace('Hello', 'Bye')));
    write('day 1/notes.txt', 'no session');
    for (const input of [
      file,
      pathToFileURL(file),
      vm.runInNewContext('({ href, protocol })', pathToFileURL(file)),
    ])
      expect(objectivesOf(await tracesOf(input))).toEqual(['Hello']);
    expect(objectivesOf(await tracesOf(path.join(directory, 'day 1')))).toEqual(['Hello', 'Bye']);
  });

  test('readTraces finds the file by the working directory at the call, and the files beside it', async () => {
    const { result } = await runForResult(`
      process.chdir(${JSON.stringify(folder)});
      const reading = kp.readTraces('trial/agent/trajectory.json', { success: false });
      process.chdir('/');
      const results = [];
      for await (const { trace, outcome } of reading) results.push([trace.steps.length > 0, outcome]);
      console.log(JSON.stringify(results));
    `);
    // The reward beside it, and a sub-agent of it.
    expect(result).toEqual([1, null].map((confidence) => [true, { success: false, confidence }]));
  });

  test('readTraces names the file and the line of a bad record, and goes on', async () => {
    const bad = write('bad/bad.jsonl', `{"x":1}\n${HELLO}\n`);
    expect(await messagesOf(bad)).toEqual([expect.stringMatching(/^line 1: of no format/), undefined]);
    const [message] = await messagesOf(path.dirname(bad));
    expect(message).toMatch(`${bad}: line 1: of no format`);
  });

  test.each([
    [
      'a file that does not exist',
      './none.jsonl',
      'ERR_IO',
      /[/\\]none\.jsonl could not be read: no such file/,
    ],
    ['a word', 'none', 'ERR_IO', /[/\\]none could not be read: no such file/],
    [
      'a folder without a session',
      () => directory,
      'ERR_INVALID_INPUT',
      /no file of a known format in .*read-paths/,
    ],
  ])('readTraces rejects for %s', async (_, input, code, message) => {
    fs.rmSync(directory, { recursive: true });
    fs.mkdirSync(directory);
    const error = await rejectionOf(resultsOf(typeof input === 'function' ? input() : input));
    expect(error).toMatchObject({ code, message: expect.stringMatching(message) });
    expect(error).toBeInstanceOf(KnowledgePulseError);
  });

  test('readTraces throws at once for a URL of no file', () => {
    for (const url of [new URL('https://example.org/a.jsonl'), new URL('data:,{}')])
      expect(() => readTraces(url)).toThrow(/is no file: fetch it/);
  });

  test('readTraces reads text that is no path: of several lines, or as JSON begins', async () => {
    for (const text of ['', ' ', '\n', '{', '[', '"a"', `${HELLO}\nno\njson`]) {
      const results = await resultsOf(text);
      expect(results.every(({ error }) => error === undefined || error.code === 'ERR_INVALID_RECORD')).toBe(
        true,
      );
    }
  });

  test('readTraces of a path lets other work in, and ends with the loop and with its signal', async () => {
    const file = write('many.jsonl', `${HELLO}\n`.repeat(5000));
    let turns = 0;
    const timer = setInterval(() => turns++, 1);
    let count = 0;
    for await (const { trace } of readTraces(file)) count += trace ? 1 : 0;
    clearInterval(timer);
    expect(count).toBe(5000);
    expect(turns).toBeGreaterThan(2);
    for await (const { trace } of readTraces(file)) if (trace) break;
    const controller = new AbortController();
    const reading = readTraces(file, { signal: controller.signal });
    await reading.next();
    controller.abort('enough');
    expect(await rejectionOf(reading.next())).toBe('enough');
    expect(await reading.next()).toEqual({ done: true, value: undefined });
  });
});

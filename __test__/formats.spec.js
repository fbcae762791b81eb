'use strict';

// readTraces beside the rules of the readers, which crates/formats tests: inputs of every kind, options, streams, hostile
// values, and conversations of any shape.

const fs = require('node:fs');
const path = require('node:path');
const { Readable } = require('node:stream');
const vm = require('node:vm');
const zlib = require('node:zlib');

const fc = require('fast-check');

const { KnowledgePulseError, Scorer, readTraces, traceFromMessages } = require('..');
const { hostile, revoked, throwingGetter } = require('./support/hostile.js');
const { makeTrace } = require('./support/make-trace.js');
const { root } = require('./support/paths.js');
const {
  chunksOf,
  folder,
  read,
  recordsOf,
  stepsOf,
  streamOf,
  tracesOf,
} = require('./support/reading-traces.js');
const { rejectionOf } = require('./support/refusals.js');
const { anyTurns, some } = require('./support/turns.js');

const trajectoryFile = path.join(folder, 'trial', 'agent', 'trajectory.json');
const trajectory = JSON.parse(fs.readFileSync(trajectoryFile, 'utf8'));

/** The messages of turns, each call with an id, as each API writes them. */
const WRITERS = {
  'chat completions': ({ user, reasoning, message, calls }) => [
    ...some(user, (content) => ({ role: 'user', content })),
    {
      ...{ role: 'assistant', content: message ?? null, reasoning_content: reasoning },
      tool_calls: calls.map(({ id, name, value }) => ({
        ...{ id, type: 'function', function: { name, arguments: JSON.stringify({ value }) } },
      })),
    },
    ...calls.map(({ id, result }) => ({ role: 'tool', tool_call_id: id, content: result })),
  ],
  Responses: ({ user, reasoning, message, calls }) => [
    ...some(user, (text) => ({ role: 'user', content: [{ type: 'input_text', text }] })),
    ...some(reasoning, (text) => ({ type: 'reasoning', summary: [{ type: 'summary_text', text }] })),
    ...some(message, (text) => ({
      ...{ type: 'message', role: 'assistant', content: [{ type: 'output_text', text }] },
    })),
    ...calls.map(({ id, name, value }) => ({
      ...{ type: 'function_call', call_id: id, name, arguments: JSON.stringify({ value }) },
    })),
    ...calls.map(({ id, result }) => ({ type: 'function_call_output', call_id: id, output: result })),
  ],
  Anthropic: ({ user, reasoning, message, calls }) => [
    ...some(user, (content) => ({ role: 'user', content })),
    {
      role: 'assistant',
      content: [
        ...some(reasoning, (thinking) => ({ type: 'thinking', thinking })),
        ...some(message, (text) => ({ type: 'text', text })),
        ...calls.map(({ id, name, value }) => ({ type: 'tool_use', id, name, input: { value } })),
      ],
    },
    {
      role: 'user',
      content: calls.map(({ id, result }) => ({ type: 'tool_result', tool_use_id: id, content: result })),
    },
  ],
  Converse: ({ user, reasoning, message, calls }) => [
    ...some(user, (text) => ({ role: 'user', content: [{ text }] })),
    {
      role: 'assistant',
      content: [
        ...some(reasoning, (text) => ({ reasoningContent: { reasoningText: { text } } })),
        ...some(message, (text) => ({ text })),
        ...calls.map(({ id, name, value }) => ({ toolUse: { toolUseId: id, name, input: { value } } })),
      ],
    },
    {
      role: 'user',
      content: calls.map(({ id, result }) => ({
        toolResult: { toolUseId: id, content: [{ text: result }] },
      })),
    },
  ],
  'the AI SDK': ({ user, reasoning, message, calls }) => [
    ...some(user, (content) => ({ role: 'user', content })),
    {
      role: 'assistant',
      content: [
        ...some(reasoning, (text) => ({ type: 'reasoning', text })),
        ...some(message, (text) => ({ type: 'text', text })),
        ...calls.map(({ id, name, value }) => ({
          ...{ type: 'tool-call', toolCallId: id, toolName: name, input: { value } },
        })),
      ],
    },
    ...some(calls[0], () => ({
      role: 'tool',
      content: calls.map(({ id, name, result }) => ({
        ...{ type: 'tool-result', toolCallId: id, toolName: name, output: { type: 'text', value: result } },
      })),
    })),
  ],
};

describe.each(Object.entries(WRITERS))('%s', (_, write) => {
  const first = { role: 'user', content: 'Begin' };

  test('readTraces loses and invents no step, in a conversation and in a session', async () => {
    await fc.assert(
      fc.asyncProperty(anyTurns, async ({ turns, contents }) => {
        const messages = [first, ...turns.flatMap(write)];
        const events = messages
          .filter(({ role }) => role !== undefined && role !== 'tool')
          .map((message) => ({ type: message.role, sessionId: 's', message }));
        const inputs = [[{ messages }], [messages], messages];
        if (write === WRITERS.Anthropic) inputs.push(events);
        for (const input of inputs) {
          const traces = await tracesOf(input);
          expect(traces.map(({ steps }) => steps.map(({ content }) => content))).toEqual([contents]);
        }
      }),
      { numRuns: 60 },
    );
  });
});

/** What the public function yields for an input. */
async function resultsOf(input, options) {
  const results = [];
  for await (const result of readTraces(input, options)) results.push(result);
  return results;
}

describe('readTraces yields', () => {
  test('a trace and its outcome, by the format or by the option', async () => {
    for (const [options, outcome] of [
      [{}, { success: true, confidence: 1 }],
      [
        { file: trajectoryFile, success: false },
        { success: false, confidence: 1 },
      ],
    ]) {
      const [{ trace, outcome: found, ...rest }] = await resultsOf(trajectory, {
        file: trajectoryFile,
        ...options,
      });
      expect(trace).toMatchObject({ metadata: { success: outcome.success }, steps: expect.any(Array) });
      expect({ found, rest }).toEqual({ found: outcome, rest: {} });
    }
  });

  test('null where nobody knows the outcome, also of a trace that was converted before', async () => {
    const input = {
      messages: [
        { role: 'user', content: 'a' },
        { role: 'assistant', content: 'b' },
      ],
    };
    const [{ trace, outcome }] = await resultsOf(input);
    expect(outcome).toEqual({ success: null, confidence: null });
    expect([trace.metadata.success, trace.outcome.confidence]).toEqual([false, 0.5]);
    for (const again of [trace, JSON.stringify(trace)])
      expect((await resultsOf(again))[0].outcome).toEqual(outcome);
    expect((await resultsOf(makeTrace()))[0].outcome).toEqual({ success: true, confidence: 0.9 });
  });

  test('an error for a bad record, with its place, and goes on', async () => {
    const results = await resultsOf('{"x":1}\n[{"y":1}]\n{"messages":[{"role":"user","content":"a"}]}');
    expect(results.map(({ error }) => error?.message.split(':')[0])).toEqual([
      'line 1',
      'line 2[0]',
      undefined,
    ]);
    expect(results[0]).toEqual({ error: expect.any(KnowledgePulseError) });
    expect(results[0].error.code).toBe('ERR_INVALID_RECORD');
  });

  test('nothing more once its signal aborts, while it waits too', async () => {
    const line = '{"messages":[{"role":"user","content":"Hello"}]}\n';
    expect(await rejectionOf(resultsOf(line, { signal: AbortSignal.abort('enough') }))).toBe('enough');
    async function* endless() {
      yield line;
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
});

describe('traceFromMessages', () => {
  const { user, ...turn } = {
    user: 'List the files',
    reasoning: 'First',
    message: 'I look',
    calls: [{ id: 'c', name: 'ls', value: '.', result: 'a.txt' }],
  };
  test.each(['chat completions', 'Anthropic', 'the AI SDK', 'Responses'])(
    'makes a trace of messages of %s',
    async (name) => {
      const trace = traceFromMessages(WRITERS[name]({ user, ...turn }), { success: true });
      expect(trace.task.objective).toBe(user);
      expect(trace.metadata.success).toBe(true);
      expect(trace.steps.map(({ type }) => type)).toEqual(
        expect.arrayContaining(['thought', 'tool_call', 'observation']),
      );
      expect(trace.steps.find(({ tool }) => tool).tool.name).toBe('ls');
      expect(await new Scorer({ embedder: null }).evaluateValue(trace)).toBeGreaterThan(0);
    },
  );

  test('leaves the outcome unknown without success', () => {
    const { metadata } = traceFromMessages([
      { role: 'user', content: 'a' },
      { role: 'assistant', content: 'b' },
    ]);
    expect(metadata).toMatchObject({ success: false, imported: { known: { success: false } } });
  });
});

/** What a user asks and the calls of an agent, each with its result, as the messages of a chat. */
const chatOf = (content, ids, callOf = (id) => ({ id, function: { name: 'f' } })) => [
  { role: 'user', content },
  ...ids.flatMap((id) => [
    { role: 'assistant', content: '', tool_calls: [callOf(id)] },
    { role: 'tool', tool_call_id: id, content: 'ok' },
  ]),
];

const eventsOf = (type, field, rest, values) => values.map((value) => ({ type, ...rest, [field]: value }));

/** The same conversation in the records of each format. */
const SAME = {
  atif: (content, ids) => {
    const calls = ids.map((id) => ({
      ...{ source: 'agent', message: '' },
      tool_calls: [{ tool_call_id: id, function_name: 'f', arguments: {} }],
      observation: { results: [{ source_call_id: id, content: 'ok' }] },
    }));
    return {
      schema_version: 'ATIF-v1.8',
      agent: {},
      steps: [{ source: 'user', message: content }, ...calls],
    };
  },
  'openai-chat': (content, ids) => ({ messages: chatOf(content, ids) }),
  'claude-code': (content, ids, sessionId) =>
    [
      ['user', content],
      ...ids.flatMap((id) => [
        ['assistant', [{ type: 'tool_use', id, name: 'f', input: {} }]],
        ['user', [{ type: 'tool_result', tool_use_id: id, content: 'ok' }]],
      ]),
    ].map(([type, content]) => ({ type, sessionId, message: { role: type, content } })),
  'swe-agent': (content, ids) => ({
    ...{ environment: 'e', info: {}, history: [{ role: 'user', content }] },
    trajectory: [...ids.map(() => 'f'), ''].map((action) => ({ action, observation: action && 'ok' })),
  }),
  codex: (text, ids, id) => [
    { type: 'session_meta', payload: { id } },
    ...eventsOf('response_item', 'payload', {}, [
      { type: 'message', role: 'user', content: [{ type: 'input_text', text }] },
      ...ids.flatMap((call_id) => [
        { type: 'function_call', call_id, name: 'f', arguments: '' },
        { type: 'function_call_output', call_id, output: 'ok' },
      ]),
    ]),
  ],
  'gemini-cli': (text, ids, sessionId) => {
    const calls = ids.map((id, at) => {
      const result = [{ functionResponse: { id, name: 'f', response: { output: 'ok' } } }];
      const toolCalls = [{ id, name: 'f', status: 'success', result }];
      return { id: `${at}`, type: 'gemini', content: '', toolCalls };
    });
    return {
      sessionId,
      projectHash: 'p',
      messages: [{ id: 'u', type: 'user', content: [{ text }] }, ...calls],
    };
  },
  pi: (content, ids, id) => [
    { type: 'session', harness: 'h', id },
    ...eventsOf('message', 'message', {}, [
      { role: 'user', content },
      ...ids.flatMap((toolCallId) => [
        { role: 'assistant', content: [{ type: 'toolCall', id: toolCallId, name: 'f' }] },
        { role: 'tool', toolCallId, content: 'ok' },
      ]),
    ]),
  ],
  openhands: (content, ids, instance_id) => {
    const calls = ids.flatMap((id) => [
      { id, source: 'agent', action: 'f', args: {} },
      { source: 'agent', observation: 'f', content: 'ok', extras: {}, cause: id },
    ]);
    const history = [{ source: 'user', action: 'message', args: { content } }, ...calls];
    return { instance_id, test_result: {}, history };
  },
  inspect: (content, ids, uuid) => ({
    ...{ uuid, epoch: 1, input: '', target: '' },
    messages: chatOf(content, ids, (id) => ({ id, function: 'f', arguments: {} })),
  }),
  otel: (content, ids, traceId) => {
    const stringValue = JSON.stringify(chatOf(content, ids));
    const attributes = [{ key: 'gen_ai.input.messages', value: { stringValue } }];
    return { resourceSpans: [{ scopeSpans: [{ spans: [{ traceId, attributes }] }] }] };
  },
};

test.each(Object.entries(SAME))(
  'readTraces of %s reads every step of a large record and of calls with one id',
  async (_, make) => {
    const content = 'x'.repeat(2 ** 21);
    const [{ trace }, ...others] = await read([make(content, Array(3000).fill('same'), 'a')].flat());
    expect(others).toEqual([]);
    expect(trace.task.objective.length).toBe(content.length);
    expect(trace.steps.map(({ type, content }) => `${type} ${content.split('\n')[0]}`)).toEqual(
      Array(3000).fill(['tool_call f', 'observation ok']).flat(),
    );
    expect(trace.metadata.imported.left_out ?? {}).not.toHaveProperty('call without a result');
  },
);

test.each(Object.entries(SAME).filter(([format]) => format !== 'otel'))(
  'readTraces of %s yields an error for a deeply nested value, and reads the next',
  async (_, make) => {
    let deep = [];
    for (let depth = 0; depth < 50_000; depth++) deep = [deep];
    const found = await read([make(deep, [], 'a'), make('Hello', [], 'b')].flat());
    const told = found.map(({ error, trace }) => error?.message ?? trace.task.objective).sort();
    expect(told).toEqual(['Hello', expect.stringMatching(/^\[\d\]: it is nested too deeply$/)]);
  },
);

test('readTraces yields an error that tells a value with a text that is too long from a nested one', async () => {
  // What the engine throws for a result that is too long, without making one.
  const long = { toJSON: () => 'x'.repeat(2 ** 31) };
  const [{ error }, { trace }] = await read([long, makeTrace({ objective: 'Hello' })]);
  expect(error.message).toBe('[0]: it is longer than a string can be');
  expect(trace.task.objective).toBe('Hello');
});

test.each([
  'new Uint8Array(bytes)',
  'new Uint8Array(bytes).buffer',
  'new DataView(new Uint8Array(bytes).buffer)',
])('readTraces reads bytes of another realm, alone and in a stream: %s', async (make) => {
  const text = JSON.stringify(makeTrace());
  const bytes = vm.runInNewContext(make, { bytes: [...Buffer.from(text)] });
  for (const input of [bytes, [bytes].values()]) {
    const [{ trace, error }] = await read(input);
    expect(error).toBeUndefined();
    expect(trace).toEqual(JSON.parse(text));
  }
});

test('readTraces of otel takes deeply nested JSON in an attribute for text, and reads the next span', async () => {
  const json = `[{"role":"user","content":${'['.repeat(50_000)}${']'.repeat(50_000)}}]`;
  const [deep, good] = ['a', 'b'].map((id) => SAME.otel('Hello', [], id));
  deep.resourceSpans[0].scopeSpans[0].spans[0].attributes[0].value.stringValue = json;
  const told = (await tracesOf([deep, good])).map(({ task }) => task.objective.slice(0, 15)).sort();
  expect(told).toEqual(['Hello', '[{"role":"user"']);
});

test('readTraces yields an error for a hostile value', async () => {
  const circle = { messages: [{ role: 'user', content: {} }] };
  circle.messages[0].content.self = circle;
  const thrower = throwingGetter({}, 'messages', new Error('no'));
  const callOf = (at) => ({ role: 'assistant', tool_calls: [{ id: `${at}`, function: { name: 'f' } }] });
  const messages = Array.from({ length: 20_000 }, (_, at) => callOf(at));
  const results = await read([circle, thrower, revoked({}), { messages }]);
  expect(results.map(({ error, trace }) => error?.code ?? trace.steps.length)).toEqual([
    ...Array(3).fill('ERR_INVALID_RECORD'),
    20_000,
  ]);
});

test.each([
  ['react', 2],
  ['support', 1],
])('readTraces reads examples/maps/%s: %i traces', async (name, count) => {
  const [map, input] = ['json', 'jsonl'].map((end) =>
    fs.readFileSync(path.join(root, 'examples', 'maps', `${name}.${end}`), 'utf8'),
  );
  expect(await tracesOf(input, { map: JSON.parse(map) })).toHaveLength(count);
});

test('readTraces yields a trace that is a value as the same object', async () => {
  const native = { '@type': 'ReasoningTrace' };
  for (const map of [undefined, { messages: 'log' }])
    expect(await tracesOf([native], { map })).toEqual([native]);
  const [trace] = await tracesOf([native]);
  expect(trace).toBe(native);
});

test('readTraces of logs of Inspect reads a log, an archive in pieces and samples as the same traces', async () => {
  const [log] = recordsOf('inspect.jsonl');
  const archive = fs.readFileSync(path.join(folder, 'inspect.eval'));
  const stepsOfAll = async (input) => (await tracesOf(input)).map((trace) => [trace.id, stepsOf(trace)]);
  const expected = await stepsOfAll(log);
  expect(expected).toHaveLength(4);
  for (const input of [archive, chunksOf(archive, 1000), log.samples])
    expect(await stepsOfAll(input)).toEqual(expected);
  expect((await read(archive)).map(({ line, index }) => [line, index])).toEqual(
    [1, 2, 3, 4].map((line) => [line, null]),
  );
});

test.each(['langsmith', 'langfuse', 'phoenix'])(
  'readTraces of %s yields the same ids and steps for another order of the records',
  async (name) => {
    const of = async (records) =>
      (await tracesOf(records))
        .map((trace) => [trace.id, stepsOf(trace)])
        .sort(([a], [b]) => (a < b ? -1 : 1));
    const records = recordsOf(`${name}.jsonl`);
    expect(await of(records.toReversed())).toEqual(await of(records));
  },
);

test('readTraces names a record whose toJSON throws once', async () => {
  const user = { role: 'user', content: { toJSON: hostile.toString } };
  for (const record of [{ type: 'user', sessionId: 's', message: user }, user]) {
    const codes = (await read([record, 1])).map(({ error }) => error.code);
    expect(codes).toEqual(Array(2).fill('ERR_INVALID_RECORD'));
  }
});

test('readTraces reads bytes and chunks of any kind, and refuses a promise', async () => {
  const text = '{"messages":[{"role":"user","content":"Hello"}]}';
  const bytes = new TextEncoder().encode(text);
  function* chunks() {
    yield text.slice(0, 9);
    yield bytes.subarray(9);
  }
  for (const input of [text, bytes, bytes.buffer, chunks(), new Set([text]), new Blob([text]).stream()]) {
    expect((await tracesOf(input)).map(({ task }) => task.objective)).toEqual(['Hello']);
  }
  await expect(readTraces(Promise.resolve(text)).next()).rejects.toMatchObject({
    code: 'ERR_INVALID_INPUT',
    message: expect.stringMatching(/await it first/),
  });
});

test('readTraces joins the halves of a character that two chunks of text share', async () => {
  const text = '{"messages":[{"role":"user","content":"𝒳 and 😀"}]}';
  const [{ task }] = await tracesOf(
    (async function* () {
      yield* text.split('');
    })(),
  );
  expect(task.objective).toBe('𝒳 and 😀');
});

test('readTraces closes a stream when its caller ends the loop', async () => {
  const text = '{"messages":[{"role":"user","content":"Hello"}]}';
  for (const chunk of [`${text}\n`, `[${text},`]) {
    let isClosed = false;
    const chunks = async function* () {
      try {
        for (;;) yield chunk;
      } finally {
        isClosed = true;
      }
    };
    for await (const { trace } of readTraces(chunks())) {
      expect(trace.task.objective).toBe('Hello');
      break;
    }
    expect(isClosed).toBe(true);
  }
  const stream = streamOf('session.jsonl');
  for await (const { trace } of readTraces(stream)) if (trace) break;
  expect(stream.destroyed).toBe(true);
});

test('readTraces throws what a stream throws', async () => {
  const failure = new Error('the disk is on fire');
  async function* broken() {
    yield '{"messages":[{"role":"user","content":"Hello"}]}\n';
    throw failure;
  }
  const reading = readTraces(broken());
  expect((await reading.next()).value.trace.task.objective).toBe('Hello');
  await expect(reading.next()).rejects.toBe(failure);
  async function* numbers() {
    yield 1;
  }
  await expect(readTraces(numbers()).next()).rejects.toMatchObject({ code: 'ERR_INVALID_INPUT' });
});

test('readTraces throws ERR_INVALID_INPUT for compressed bytes, and says how to make text of them', async () => {
  const bytes = zlib.gzipSync('{}');
  for (const input of [bytes, chunksOf(bytes, 1)]) {
    await expect(read(input)).rejects.toMatchObject({
      code: 'ERR_INVALID_INPUT',
      message: expect.stringMatching(/^the input is compressed with gzip: .* gzip -dc/),
    });
  }
});

test.each([
  ['traces.jsonl'],
  ['./runs/day 1'],
  ['/var/log/agent.json'],
  ['C:\\runs\\a.traj'],
  ['~/logs.ndjson.gz'],
  ['file:///runs/a'],
  [new URL('file:///runs/a.json')],
])('readTraces throws ERR_INVALID_INPUT for the path %s, and asks for the contents', async (input) => {
  await expect(read(input)).rejects.toMatchObject({
    code: 'ERR_INVALID_INPUT',
    message: expect.stringMatching(/looks like a path: .*createReadStream/),
  });
});

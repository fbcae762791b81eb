'use strict';

// toTraces of conversations and sessions of each format but ATIF and OpenTelemetry, and what all formats have in common.

const fs = require('node:fs');
const path = require('node:path');

const fc = require('fast-check');

const { Scorer } = require('..');
const { toTraces } = require('../formats.js');
const { FORMAT_NAMES } = require('../lib/formats.js');
const { folder, linesOf, read, stepsOf, streamOf, tracesOf } = require('./support/reading-traces.js');

const trajectoryFile = path.join(folder, 'trial', 'agent', 'trajectory.json');
const trajectory = JSON.parse(fs.readFileSync(trajectoryFile, 'utf8'));

const anyText = fc.stringMatching(/^[a-z]{1,8}( [a-z]{1,8})?$/);

describe('openai-chat', () => {
  const turn = (role, content) => ({ role, content });
  const conversation = [turn('user', 'Hello'), turn('assistant', 'Good day')];
  const reply = { choices: [{ message: conversation[1] }] };
  const output = { type: 'message', ...turn('assistant', [{ type: 'output_text', text: 'Good day' }]) };

  test.each([
    ['an array', JSON.stringify(conversation), 1],
    ['an array a line', `${JSON.stringify(conversation)}\n${JSON.stringify(conversation)}`, 2],
    ['an array of arrays', JSON.stringify([conversation, conversation]), 2],
    ['a message a line', conversation.map((each) => JSON.stringify(each)).join('\n'), 1],
    ['a log of requests', JSON.stringify({ request: { messages: [conversation[0]] }, response: reply }), 1],
    [
      'a line of a batch',
      JSON.stringify({ custom_id: 'x', body: { messages: [conversation[0]] }, response: { body: reply } }),
      1,
    ],
    ['Responses with a text', JSON.stringify({ input: 'Hello', output: [output] }), 1],
  ])('is found in %s', async (_, text, count) => {
    const traces = await tracesOf(text);
    expect(traces.map((trace) => [trace.task.objective, stepsOf(trace)])).toEqual(
      Array(count).fill(['Hello', [['thought', 'Good day']]]),
    );
  });

  test('a reply alone is a conversation', async () => {
    const message = { role: 'assistant', content: 'Done.' };
    const reply = { id: 'reply', object: 'chat.completion', choices: [{ index: 0, message }] };
    for (const record of [reply, { custom_id: 'r-1', response: { status_code: 200, body: reply } }]) {
      const [{ trace, format }, ...others] = await read(record);
      expect([others, format, stepsOf(trace)]).toEqual([[], 'openai-chat', [['thought', 'Done.']]]);
    }
    // Of an output file of a batch, a request that has failed.
    const failed = { custom_id: 'r-2', response: null, error: { code: 'expired' } };
    expect((await read(failed))[0].error.code).toBe('ERR_INVALID_RECORD');
  });

  test('is the same as a value, as text and in chunks of any size', async () => {
    const text = fs.readFileSync(path.join(folder, 'chat.jsonl'));
    const values = String(text)
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    const withoutTime = (traces) =>
      traces.map((trace) => ({ ...trace, metadata: { ...trace.metadata, created_at: '' } }));
    const expected = withoutTime(await tracesOf(values));
    expect(withoutTime(await tracesOf(String(text)))).toEqual(expected);
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 50 }), fc.boolean(), async (size, hasMark) => {
        const bytes = hasMark ? Buffer.concat([Buffer.from('\ufeff'), text]) : text;
        const chunks = Array.from({ length: Math.ceil(bytes.length / size) }, (_, at) =>
          bytes.subarray(at * size, (at + 1) * size),
        );
        async function* stream() {
          yield* chunks;
        }
        expect(withoutTime(await tracesOf(stream()))).toEqual(expected);
      }),
      { numRuns: 10 },
    );
  });
});

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

  test('lose and invent no step, in a conversation and in a session', async () => {
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

describe('claude-code', () => {
  const lines = linesOf('session.jsonl');

  test('what stream-json prints says whether it succeeded', async () => {
    const session_id = 's';
    const events = [
      { type: 'system', subtype: 'init', session_id, cwd: '/' },
      {
        type: 'assistant',
        session_id,
        parent_tool_use_id: null,
        message: { role: 'assistant', content: 'Done.' },
      },
      { type: 'result', subtype: 'success', is_error: false, session_id, num_turns: 1 },
    ];
    const [{ trace, known }] = await read(events);
    expect(trace).toMatchObject({
      metadata: { success: true, imported: { num_turns: 1 } },
      steps: [{ content: 'Done.' }],
    });
    expect(known).toEqual({ success: true, confidence: false });
    for (const result of [
      { subtype: 'error_max_turns', is_error: false },
      { subtype: 'error_max_turns' },
      { subtype: 'success', is_error: true },
    ]) {
      const [failed] = await read([events[1], { ...events[2], is_error: undefined, ...result }]);
      expect([failed.trace.metadata.success, failed.known.success]).toEqual([false, true]);
    }
  });

  test('commands of the program are not what the user asked for', async () => {
    const user = (content) => ({ type: 'user', sessionId: 's', message: { role: 'user', content } });
    const [trace] = await tracesOf([
      user('<command-name>/clear</command-name>\n            <command-message>clear</command-message>'),
      user('<local-command-stdout></local-command-stdout>'),
      user('<bash-input>git status</bash-input>'),
      user([{ type: 'text', text: '<bash-stdout>clean</bash-stdout><bash-stderr></bash-stderr>' }]),
      user('<command-message>review is running</command-message>\n<command-name>/review</command-name>'),
      user('<command-name> is a tag'),
    ]);
    expect(trace.task.objective).toMatch(/^<command-message>review/);
    expect(trace.steps.map(({ type, content }) => [type, content.slice(0, 14)])).toEqual([
      ['observation', '<bash-input>gi'],
      ['observation', '<bash-stdout>c'],
      ['observation', '<command-name>'],
    ]);
    expect(trace.metadata.imported.left_out).toEqual({ 'command of the program': 2 });
  });

  test('sessions that are mixed are told apart, and circles of parents end', async () => {
    const renamed = lines.map((line) => line.replaceAll('5f0c7c9e', 'other').replaceAll(/"(u|s)-/g, '"$1x'));
    const mixed = lines.flatMap((line, at) => [line, renamed[at]]);
    expect((await tracesOf(mixed.join('\n'))).map(({ steps }) => steps.length)).toEqual([10, 10, 1, 1]);
    const circle = (uuid, parentUuid) => ({
      type: 'user',
      sessionId: 's',
      isSidechain: true,
      uuid,
      parentUuid,
      message: { content: uuid },
    });
    expect(await tracesOf([circle('a', 'b'), circle('b', 'a'), circle('c', 'c')])).toHaveLength(2);
  });

  test('a bounded number of traces is open', async () => {
    const event = (at) => ({ type: 'user', sessionId: `s${at}`, message: { content: 'Hello' } });
    const results = await read([...Array.from({ length: 1100 }, (_, at) => event(at)), event(0)]);
    expect(results.filter(({ trace }) => trace)).toHaveLength(1100);
    expect(results.find(({ error }) => error).error.message).toMatch(/comes too late for its trace/);
  });
});

describe('swe-agent without a trajectory', () => {
  const turn = (rest) => [
    { role: 'user', content: 'Fix app.py', agent: 'main', ...rest },
    { role: 'assistant', content: 'x', thought: 'I look.', action: 'ls\n', agent: 'main', ...rest },
    { role: 'user', content: 'Error: no such folder', agent: 'main', ...rest },
    { role: 'assistant', content: 'Nothing to do.', thought: '', action: '', agent: 'main', ...rest },
    { role: 'user', content: 'Go on.', agent: 'main', ...rest },
  ];
  const system = { role: 'system', content: 'prompt', agent: 'main' };
  const steps = [
    ['thought', 'I look.'],
    ['tool_call', 'ls\ncommand: ls'],
    ['error_recovery', 'Error: no such folder'],
    ['thought', 'Nothing to do.'],
    ['observation', 'Go on.'],
  ];

  test.each([
    ['a run', { history: [system, ...turn()] }, { 'system message': 1 }],
    ['a demonstration', { history: [system, ...turn({ is_demo: true })] }, { 'system message': 1 }],
    ['a run after one', { history: [...turn({ is_demo: true }), ...turn()] }, { demonstration: 5 }],
    ['one that was killed', { history: turn(), trajectory: [], info: {} }, undefined],
  ])('the history of %s is the run', async (_, record, leftOut) => {
    const [{ trace, format, known }] = await read(record);
    expect([format, known.success]).toEqual(['swe-agent', false]);
    expect(trace.task.objective).toBe('Fix app.py');
    expect(stepsOf(trace)).toEqual(steps);
    expect(trace.metadata.imported.left_out).toEqual(leftOut);
  });
});

describe('what every format has in common', () => {
  const native = {
    '@context': 'https://openknowledgepulse.org/schema/v1',
    '@type': 'ReasoningTrace',
    id: 'kp:trace:1',
  };

  const chat = (reply) => ({
    messages: [
      { role: 'user', content: 'Hello' },
      { role: 'assistant', content: reply },
    ],
  });

  test('a trace stays as it is, in a mixture too', async () => {
    const results = await read(
      [native, trajectory, chat('Hm')].map((value) => JSON.stringify(value)).join('\n'),
    );
    expect(results.map(({ format, line }) => [format, line])).toEqual([
      ['trace', 1],
      ['atif', 2],
      ['atif', 2],
      ['openai-chat', 3],
    ]);
    expect(results[0]).toMatchObject({ trace: native, known: { success: true, confidence: true } });
  });

  test('options go before the format', async () => {
    const [{ trace, known }] = await read(trajectory, {
      success: true,
      confidence: 0.75,
      domain: 'code',
      file: trajectoryFile,
    });
    expect(trace).toMatchObject({
      metadata: { success: true, task_domain: 'code' },
      outcome: { confidence: 0.75 },
    });
    expect(known).toEqual({ success: true, confidence: true });
  });

  test('the id is that of the trace, whenever it is read', async () => {
    const ids = async (value) => (await tracesOf(value)).map(({ id }) => id);
    const [first, second] = [await ids(chat('a')), await ids(chat('b'))];
    expect(await ids(chat('a'))).toEqual(first);
    expect(second).not.toEqual(first);
    expect(new Set(await ids(trajectory)).size).toBe(2);
  });

  test('bad records are named, and the rest is read', async () => {
    const lines = [
      '{"schema_version":"ATIF-v1.6"}',
      '{"messages":[{"role":"user","content":"a"},{"role":"ghost","content":"b"}]}',
      '{"nothing":1}',
      '{"messages":',
      '{"schema_version":"ATIF-v1.6","steps":[{"source":"cat","message":""}]}',
      '{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"}]}',
      // What stands for bytes that are not UTF-8 is UTF-8 itself.
      '{"messages":[{"role":"user","content":"\ufffd"},{"role":"assistant","content":"b"}]}',
    ];
    const bad = Buffer.concat([
      Buffer.from(`${lines.join('\n')}\n{"messages":"`),
      Buffer.from([0xff, 0xfe]),
      Buffer.from('"}\n'),
    ]);
    const results = await read(bad);
    expect(results.map(({ error, trace }) => error?.message ?? trace.task.objective)).toEqual([
      'line 1: not atif: steps must be an array',
      'line 2: not openai-chat: messages[1]: a message has a role that is not known',
      expect.stringMatching(/^line 3: of no format that is known: tried atif, /),
      expect.stringMatching(/^line 4: not JSON/),
      'line 5: not atif: steps[0].source must be system, user or agent',
      'a',
      '\ufffd',
      'line 8: not UTF-8',
    ]);
    expect(results[0].error).toMatchObject({ code: 'ERR_INVALID_RECORD' });
  });

  test('a format that is asked for is the only one', async () => {
    const [{ error }] = await read(trajectory, { format: 'openai-chat' });
    expect(error.message).toBe('not openai-chat: it has no messages, and no items; it looks like atif');
    const [other] = await read({ nothing: 1 }, { format: 'openai-chat' });
    expect(other.error.message).toBe('not openai-chat: it has no messages, and no items');
    const [native] = await read({ '@type': 'ReasoningTrace' }, { format: 'atif' });
    expect(native.error.message).toMatch(/; it looks like trace$/);
    const [broken] = await read({ ...trajectory, steps: 1 }, { format: 'atif' });
    expect(broken.error.message).toBe('not atif: steps must be an array');
  });

  test.each([
    ['a result that is JSON with an error', { content: '{"error":{"code":7}}' }, true],
    ['one with an exit code', { content: '{"stdout":"","exit_code":2}' }, true],
    ['one with the exit code 0', { content: '{"error":null,"exit_code":0}' }, false],
    ['a traceback', { content: 'Traceback (most recent call last):\n  File' }, true],
    ['an exception by its name', { content: 'ValueError: invalid literal' }, true],
    ['a text about errors', { content: 'No errors were found' }, false],
    ['a list of errors', { content: 'errors.log' }, false],
    ['one with a return code', { content: '<returncode>1</returncode>\n<output>' }, true],
    ['one with the return code 0', { content: '<returncode>0</returncode>\n<output>error' }, false],
  ])('%s is judged by its text', async (_, { content }, failed) => {
    const messages = [
      { role: 'user', content: 'go' },
      {
        role: 'assistant',
        content: '',
        tool_calls: [{ id: '1', function: { name: 'run', arguments: '{}' } }],
      },
      { role: 'tool', tool_call_id: '1', content },
    ];
    const [trace] = await tracesOf({ messages });
    expect(trace.steps[1].type).toBe(failed ? 'error_recovery' : 'observation');
  });

  test('only the first success after a failure repairs it, by the same tool', async () => {
    const act = (id, name, content) => [
      { role: 'assistant', content: '', tool_calls: [{ id, function: { name, arguments: '{}' } }] },
      { role: 'tool', tool_call_id: id, content },
    ];
    const messages = [
      ...act('1', 'a', 'Error: x'),
      ...act('2', 'b', 'ok'),
      ...act('3', 'a', 'Error: y'),
      ...act('4', 'a', 'ok'),
      ...act('5', 'a', 'ok'),
    ];
    const [trace] = await tracesOf({ messages });
    expect(trace.steps.map(({ type }) => type[0]).join('')).toBe('tetoteeoto');
  });

  test('whatever is changed in a record, it becomes traces that can be scored, or an error', async () => {
    const files = [
      'chat',
      'ai-sdk',
      'langchain',
      'sharegpt',
      'langsmith',
      'langfuse',
      'phoenix',
      'session',
      'runs.traj',
      'spans',
      'codex',
      'gemini-cli',
      'pi',
      'openhands',
      'inspect',
    ];
    const records = files
      .map((name) => `${name}.jsonl`)
      .flatMap((name) => fs.readFileSync(path.join(folder, name), 'utf8').trim().split('\n'))
      .concat(JSON.stringify(trajectory));
    const scorer = new Scorer({ embedder: null });
    const anything = fc.oneof(
      fc.constantFrom(...[null, '', 0, -1, 1e308, true, [], {}, [null], [[]], '__proto__', 'user'], {
        role: 'tool',
      }),
      fc.jsonValue({ maxDepth: 2 }),
    );
    /** Puts a value in place of the one that is counted, and counts on. */
    const replaced = (value, counter, by) => {
      if (counter.left-- === 0) return by;
      if (Array.isArray(value)) return value.map((each) => replaced(each, counter, by));
      if (value === null || typeof value !== 'object') return value;
      return Object.fromEntries(
        Object.entries(value).map(([name, each]) => [name, replaced(each, counter, by)]),
      );
    };
    const formats = fc.constantFrom(undefined, ...FORMAT_NAMES.filter((name) => name !== 'trace'));
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(fc.constantFrom(...records), fc.nat(150), anything), {
          minLength: 1,
          maxLength: 4,
        }),
        formats,
        async (changes, format) => {
          const values = changes.map(([record, left, by]) => replaced(JSON.parse(record), { left }, by));
          for (const { error, trace, known } of await read(values, { format })) {
            if (error) {
              expect(error.code).toBe('ERR_INVALID_RECORD');
              // The message says what is wrong with the record, not with the reader.
              expect(error.message).not.toMatch(/undefined|is not a function|not iterable|Cannot/);
            } else if (known) {
              expect(await scorer.evaluateValue(JSON.parse(JSON.stringify(trace)))).toBeGreaterThanOrEqual(0);
            }
          }
        },
      ),
      { numRuns: 700 },
    );
  });

  describe.each([
    [
      'atif',
      (content, ids) => [
        {
          ...{ schema_version: 'ATIF-v1.8', agent: {} },
          steps: [
            { source: 'user', message: content },
            ...ids.map((id) => ({
              ...{ source: 'agent', message: '' },
              tool_calls: [{ tool_call_id: id, function_name: 'f', arguments: {} }],
              observation: { results: [{ source_call_id: id, content: 'ok' }] },
            })),
          ],
        },
      ],
    ],
    [
      'openai-chat',
      (content, ids) => [
        {
          messages: [
            { role: 'user', content },
            ...ids.flatMap((id) => [
              { role: 'assistant', content: '', tool_calls: [{ id, function: { name: 'f' } }] },
              { role: 'tool', tool_call_id: id, content: 'ok' },
            ]),
          ],
        },
      ],
    ],
    [
      'claude-code',
      (content, ids, session) =>
        [
          ['user', content],
          ...ids.flatMap((id) => [
            ['assistant', [{ type: 'tool_use', id, name: 'f', input: {} }]],
            ['user', [{ type: 'tool_result', tool_use_id: id, content: 'ok' }]],
          ]),
        ].map(([type, content]) => ({ type, sessionId: session, message: { role: type, content } })),
    ],
    [
      'swe-agent',
      (content, ids) => [
        {
          ...{ environment: 'e', info: {}, history: [{ role: 'user', content }] },
          trajectory: [...ids.map(() => 'f'), ''].map((action) => ({ action, observation: action && 'ok' })),
        },
      ],
    ],
    [
      'codex',
      (text, ids, id) => [
        { type: 'session_meta', payload: { id } },
        ...[
          { type: 'message', role: 'user', content: [{ type: 'input_text', text }] },
          ...ids.flatMap((call_id) => [
            { type: 'function_call', call_id, name: 'f', arguments: '' },
            { type: 'function_call_output', call_id, output: 'ok' },
          ]),
        ].map((payload) => ({ type: 'response_item', payload })),
      ],
    ],
    [
      'gemini-cli',
      (text, ids, sessionId) => [
        {
          ...{ sessionId, projectHash: 'p' },
          messages: [
            { id: 'u', type: 'user', content: [{ text }] },
            ...ids.map((id, at) => ({
              ...{ id: `${at}`, type: 'gemini', content: '' },
              toolCalls: [
                {
                  ...{ id, name: 'f', status: 'success' },
                  result: [{ functionResponse: { id, name: 'f', response: { output: 'ok' } } }],
                },
              ],
            })),
          ],
        },
      ],
    ],
    [
      'pi',
      (content, ids, id) => [
        { type: 'session', harness: 'h', id },
        ...[
          { role: 'user', content },
          ...ids.flatMap((toolCallId) => [
            { role: 'assistant', content: [{ type: 'toolCall', id: toolCallId, name: 'f' }] },
            { role: 'tool', toolCallId, content: 'ok' },
          ]),
        ].map((message) => ({ type: 'message', message })),
      ],
    ],
    [
      'openhands',
      (content, ids, instance_id) => [
        {
          ...{ instance_id, test_result: {} },
          history: [
            { source: 'user', action: 'message', args: { content } },
            ...ids.flatMap((id) => [
              { id, source: 'agent', action: 'f', args: {} },
              { source: 'agent', observation: 'f', content: 'ok', extras: {}, cause: id },
            ]),
          ],
        },
      ],
    ],
    [
      'inspect',
      (content, ids, uuid) => [
        {
          ...{ uuid, epoch: 1, input: '', target: '' },
          messages: [
            { role: 'user', content },
            ...ids.flatMap((id) => [
              { role: 'assistant', content: '', tool_calls: [{ id, function: 'f', arguments: {} }] },
              { role: 'tool', tool_call_id: id, content: 'ok' },
            ]),
          ],
        },
      ],
    ],
    [
      'otel',
      (content, ids, session) => {
        const messages = [
          { role: 'user', content },
          ...ids.flatMap((id) => [
            { role: 'assistant', tool_calls: [{ id, function: { name: 'f' } }] },
            { role: 'tool', tool_call_id: id, content: 'ok' },
          ]),
        ];
        // What is nested deeply cannot be written but by hand.
        const json =
          typeof content === 'string'
            ? JSON.stringify(messages)
            : `[{"role":"user","content":${'['.repeat(50_000)}${']'.repeat(50_000)}}]`;
        const attribute = { key: 'gen_ai.input.messages', value: { stringValue: json } };
        return [
          { resourceSpans: [{ scopeSpans: [{ spans: [{ traceId: session, attributes: [attribute] }] }] }] },
        ];
      },
    ],
  ])('hostile records of %s', (format, make) => {
    test('that are nested deeply cost an error, and the rest is read', async () => {
      let deep = [];
      for (let depth = 0; depth < 50_000; depth++) deep = [deep];
      const values = [...make(deep, [], 'a'), ...make('Hello', [], 'b')];
      const found = await read(values);
      const told = found.map(({ error, trace }) => error?.message ?? trace.task.objective).sort();
      // JSON in an attribute of a span that cannot be read is text.
      const deepest =
        format === 'otel' ? expect.stringMatching(/^\[{"role":"user"/) : 'it is nested too deeply';
      expect(told).toEqual(['Hello', deepest]);
      expect(found).toHaveLength(2);
    });

    test('that are large, or use an id again and again, have every step', async () => {
      const content = 'x'.repeat(2 ** 21);
      const [{ trace }, ...others] = await read(make(content, Array(3000).fill('same'), 'a'));
      expect(others).toEqual([]);
      expect(trace.task.objective.length).toBe(content.length);
      expect(trace.steps.map(({ type, content }) => `${type} ${content.split('\n')[0]}`)).toEqual(
        Array(3000).fill(['tool_call f', 'observation ok']).flat(),
      );
      expect(trace.metadata.imported.left_out ?? {}).not.toHaveProperty('call without a result');
    });
  });

  test('hostile values cost an error at most', async () => {
    let deep = 'x';
    for (let depth = 0; depth < 200_000; depth++) deep = [deep];
    const circle = { messages: [{ role: 'user', content: {} }] };
    circle.messages[0].content.self = circle;
    const thrower = {
      get messages() {
        throw new Error('no');
      },
    };
    const revoked = Proxy.revocable({}, {});
    revoked.revoke();
    const ids = {
      messages: Array.from({ length: 20_000 }, () => ({
        role: 'assistant',
        tool_calls: [{ id: 'same', function: { name: 'f' } }],
      })),
    };
    const results = await read([
      { messages: [{ role: 'user', content: deep }] },
      circle,
      thrower,
      revoked.proxy,
      ids,
    ]);
    expect(results.map(({ error, trace }) => error?.code ?? trace.steps.length)).toEqual([
      ...Array(4).fill('ERR_INVALID_RECORD'),
      20_000,
    ]);
  });

  test.each([
    [{ format: 'csv' }, RangeError],
    [{ success: 'yes' }, TypeError],
    [{ confidence: 2 }, RangeError],
    [{ from: 'atif' }, TypeError],
    ['atif', TypeError],
  ])('options are checked at once: %j', (options, Class) => {
    expect(() => toTraces('', options)).toThrow(Class);
    expect(() => toTraces('', options)).toThrow(expect.objectContaining({ code: 'ERR_INVALID_OPTION' }));
  });

  test('bytes and chunks of any kind are read, and a promise is to be awaited', async () => {
    const text = '{"messages":[{"role":"user","content":"Hello"}]}';
    const bytes = new TextEncoder().encode(text);
    function* chunks() {
      yield text.slice(0, 9);
      yield bytes.subarray(9);
    }
    for (const input of [text, bytes, bytes.buffer, chunks(), new Set([text]), new Blob([text]).stream()]) {
      expect((await tracesOf(input)).map(({ task }) => task.objective)).toEqual(['Hello']);
    }
    await expect(toTraces(Promise.resolve(text)).next()).rejects.toMatchObject({
      code: 'ERR_INVALID_INPUT',
      message: expect.stringMatching(/await it first/),
    });
  });

  test('a stream is closed when no more of it is wanted', async () => {
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
      for await (const { trace } of toTraces(chunks())) {
        expect(trace.task.objective).toBe('Hello');
        break;
      }
      expect(isClosed).toBe(true);
    }
    const stream = streamOf('session.jsonl');
    for await (const { trace } of toTraces(stream)) if (trace) break;
    expect(stream.destroyed).toBe(true);
  });

  test('what a stream throws is thrown as it is', async () => {
    const failure = new Error('the disk is on fire');
    async function* broken() {
      yield '{"messages":[{"role":"user","content":"Hello"}]}\n';
      throw failure;
    }
    const reading = toTraces(broken());
    expect((await reading.next()).value.trace.task.objective).toBe('Hello');
    await expect(reading.next()).rejects.toBe(failure);
    async function* numbers() {
      yield 1;
    }
    await expect(toTraces(numbers()).next()).rejects.toMatchObject({ code: 'ERR_INVALID_INPUT' });
  });
});

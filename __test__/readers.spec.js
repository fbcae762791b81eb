'use strict';

const zlib = require('node:zlib');

const { Scorer } = require('..');
const { read, recordsOf, stepsOf, traceOf } = require('./support/reading-traces.js');

describe('toTraces of messages of the AI SDK', () => {
  const [ui] = recordsOf('ai-sdk.jsonl');

  test.each([
    ['its messages in an array', [ui.messages]],
    ['its messages, one a line', ui.messages.map((each) => JSON.stringify(each)).join('\n')],
  ])('reads a chat of a UI as %s: its steps are those of the chat', async (_, input) => {
    const { task, steps, metadata } = await traceOf(ui);
    const { left_out } = metadata.imported;
    expect(await traceOf(input)).toMatchObject({ task, steps, metadata: { imported: { left_out } } });
  });

  test('reads a call that the user has denied: it did not fail', async () => {
    const tool = { toolCallId: '1', input: { hotel: 'Ritz' } };
    const approval = { id: 'a', approved: false, reason: 'too dear' };
    const parts = [{ ...tool, type: 'tool-book', state: 'output-denied', approval }];
    const ofModel = [
      { role: 'assistant', content: [{ ...tool, type: 'tool-call', toolName: 'book' }] },
      {
        role: 'tool',
        content: [
          { type: 'tool-result', toolCallId: '1', output: { type: 'execution-denied', reason: 'too dear' } },
        ],
      },
    ];
    for (const messages of [[{ role: 'assistant', parts }], ofModel]) {
      expect(stepsOf(await traceOf({ messages }))).toEqual([
        ['tool_call', 'book\nhotel: Ritz'],
        ['observation', 'denied by the user: too dear'],
      ]);
    }
  });

  test('reads messages of version 4, whose text is in the content and in the parts', async () => {
    const invocation = { toolCallId: '1', toolName: 'read', args: { path: 'a' }, step: 0 };
    const results = [
      { ...invocation, state: 'result', result: { error: 'no such file' } },
      { ...invocation, toolCallId: '2', state: 'result', result: 'milk' },
      { ...invocation, toolCallId: '3', state: 'call' },
    ];
    const message = {
      id: '1',
      role: 'assistant',
      content: 'I read it.',
      createdAt: '2025-01-02T00:00:00.000Z',
    };
    const steps = [
      ['thought', 'I read it.'],
      ['tool_call', 'read\npath: a'],
      ['error_recovery', '{"error":"no such file"}'],
      ['error_recovery', 'read\npath: a'],
      ['observation', 'milk'],
      ['tool_call', 'read\npath: a'],
    ];
    const parts = [
      { type: 'reasoning', reasoning: 'Where?', details: [] },
      { type: 'text', text: 'I read it.' },
      ...results.map((toolInvocation) => ({ type: 'tool-invocation', toolInvocation })),
      { type: 'source', source: { url: 'https://example.com' } },
    ];
    const withParts = await traceOf({ messages: [{ ...message, parts }] });
    expect(stepsOf(withParts)).toEqual([['thought', 'Where?'], ...steps]);
    expect(withParts.metadata.created_at).toBe(message.createdAt);
    expect(stepsOf(await traceOf({ messages: [{ ...message, toolInvocations: results }] }))).toEqual(steps);
  });
});

describe('toTraces of conversations with the Converse API of Bedrock', () => {
  const request = {
    modelId: 'example.model-v1:0',
    system: [{ text: 'prompt' }],
    inferenceConfig: { maxTokens: 512 },
    messages: [
      {
        role: 'user',
        content: [{ text: 'What is the weather in Paris?' }, { cachePoint: { type: 'default' } }],
      },
      {
        role: 'assistant',
        content: [
          { reasoningContent: { reasoningText: { text: 'The tool knows.', signature: 'x' } } },
          { text: 'I ask the tool.' },
          { toolUse: { toolUseId: '1', name: 'getWeather', input: { city: 'Pariss' } } },
        ],
      },
      {
        role: 'user',
        content: [{ toolResult: { toolUseId: '1', content: [{ text: 'not a city' }], status: 'error' } }],
      },
      {
        role: 'assistant',
        content: [
          { reasoningContent: { redactedContent: 'AAAA' } },
          { toolUse: { toolUseId: '2', name: 'getWeather', input: { city: 'Paris' } } },
        ],
      },
      {
        role: 'user',
        content: [
          {
            toolResult: {
              toolUseId: '2',
              content: [{ json: { sky: 'rain' } }, { image: { format: 'png', source: { bytes: 'AAAA' } } }],
              status: 'success',
            },
          },
        ],
      },
    ],
  };
  const response = {
    output: {
      message: {
        role: 'assistant',
        content: [{ citationsContent: { content: [{ text: 'It rains.' }], citations: [] } }],
      },
    },
    ...{ stopReason: 'end_turn', usage: { totalTokens: 42 }, metrics: { latencyMs: 302 } },
  };
  const log = {
    ...{ schemaType: 'ModelInvocationLog', schemaVersion: '1.0', timestamp: '2026-01-02T00:00:00Z' },
    ...{ accountId: '1', region: 'us-east-1', requestId: 'r-1', operation: 'Converse' },
    modelId: 'example.model-v1:0',
    input: { inputContentType: 'application/json', inputBodyJson: request, inputTokenCount: 4 },
    output: { outputContentType: 'application/json', outputBodyJson: response, outputTokenCount: 38 },
  };

  test.each([
    ['a request with its response', { ...request, ...response }],
    ['a request and its response', { request, response }],
    ['a record of the invocation log', log],
  ])('reads %s: every block is a step', async (_, record) => {
    const trace = await traceOf(record);
    expect(trace.task.objective).toBe('What is the weather in Paris?');
    expect(stepsOf(trace)).toEqual([
      ['thought', 'The tool knows.'],
      ['thought', 'I ask the tool.'],
      ['tool_call', 'getWeather\ncity: Pariss'],
      ['error_recovery', 'not a city'],
      ['error_recovery', 'getWeather\ncity: Paris'],
      ['observation', '{"sky":"rain"}\n[image]'],
      ['thought', 'It rains.'],
    ]);
    expect(trace.metadata.imported).toMatchObject({ model: 'example.model-v1:0' });
    expect(trace.metadata.imported.left_out).toEqual({
      ...{ 'system message': 1, 'cachePoint part': 1, 'encrypted reasoning': 1, 'image part': 1 },
    });
    const { dimensions } = await new Scorer({ embedder: null }).explain(trace);
    expect(dimensions.toolDiversity).toBeGreaterThan(0);
  });

  test('reads a response alone, and messages that stand alone', async () => {
    expect(stepsOf(await traceOf(response))).toEqual([['thought', 'It rains.']]);
    const lines = request.messages.map((message) => JSON.stringify(message)).join('\n');
    expect(stepsOf(await traceOf(lines))).toHaveLength(6);
  });
});

test('toTraces reads a conversation with Gemini: every part is a step', async () => {
  const record = {
    systemInstruction: { parts: [{ text: 'prompt' }] },
    contents: [
      { role: 'user', parts: [{ text: 'What is the weather in Paris?' }] },
      {
        role: 'model',
        parts: [
          { text: 'The tool knows.', thought: true },
          { functionCall: { name: 'getWeather', args: { city: 'Paris' } }, thoughtSignature: 'AAAA' },
        ],
      },
      { role: 'user', parts: [{ functionResponse: { name: 'getWeather', response: { sky: 'rain' } } }] },
    ],
    response: { candidates: [{ content: { role: 'model', parts: [{ text: 'It rains.' }] } }] },
  };
  const trace = await traceOf(record);
  expect(trace.task.objective).toBe('What is the weather in Paris?');
  expect(stepsOf(trace)).toEqual([
    ['thought', 'The tool knows.'],
    ['tool_call', 'getWeather\ncity: Paris'],
    ['observation', '{"sky":"rain"}'],
    ['thought', 'It rains.'],
  ]);
  expect(trace.metadata.imported.left_out).toEqual({ 'system message': 1 });
});

test('toTraces counts a part of a message that it does not know', async () => {
  const trace = await traceOf([
    [{ role: 'assistant', content: [{ text: 'Hm' }, { widget: { colour: 'red' } }] }],
  ]);
  expect(stepsOf(trace)).toEqual([['thought', 'Hm\n{"widget":{"colour":"red"}}']]);
  expect(trace.metadata.imported.left_out).toEqual({ 'part of an unknown kind': 1 });
});

describe('toTraces of mini-SWE-agent', () => {
  const call = (id, command) => ({
    ...{ role: 'assistant', content: '', extra: { actions: [{ command, tool_call_id: id }] } },
    tool_calls: [
      { id, type: 'function', function: { name: 'bash', arguments: JSON.stringify({ command }) } },
    ],
  });
  const block = (command) => ({ role: 'assistant', content: `\`\`\`bash\n${command}\n\`\`\`` });
  const runOf = (...messages) => ({
    ...{ trajectory_format: 'mini-swe-agent-1.1', info: { exit_status: 'Submitted', submission: '' } },
    messages: [{ role: 'user', content: 'Fix it.' }, ...messages],
  });
  const typesOf = async (record) => {
    const { steps } = await traceOf(record);
    return steps.filter(({ type }) => type !== 'thought').map(({ type }) => type);
  };
  const timeout = {
    ...{ raw_output: 'so far', returncode: -1, exception_type: 'TimeoutExpired' },
    exception_info: "An error occurred while executing the command: Command 'x' timed out after 30 seconds",
  };
  const [failed, repaired] = [
    ['tool_call', 'error_recovery'],
    ['error_recovery', 'observation'],
  ];

  test.each([
    ['extra.returncode of -1', { returncode: -1, exception_info: '' }],
    ['extra.returncode of 2', { returncode: 2, exception_info: '' }],
    ['extra.exception_info alone', { returncode: null, exception_info: 'it was killed' }],
    ['a timeout', timeout],
  ])('takes %s for a failure, and only the next success for its recovery', async (_, extra) => {
    const done = { returncode: 0, exception_info: '' };
    const content = '<output>\nso far</output>';
    const ofTools = runOf(
      ...[call('1', 'make'), { role: 'tool', tool_call_id: '1', content, extra }],
      ...[call('2', 'make'), { role: 'tool', tool_call_id: '2', content: '{"error": "none"}', extra: done }],
    );
    const ofItems = runOf(
      ...[call('1', 'make'), { type: 'function_call_output', call_id: '1', output: content, extra }],
      ...[call('2', 'make'), { type: 'function_call_output', call_id: '2', output: 'ok', extra: done }],
    );
    const ofText = runOf(
      ...[block('make'), { role: 'user', content, extra }],
      ...[block('make all'), { role: 'user', content: 'Error: none', extra: done }],
    );
    for (const record of [ofTools, ofItems, ofText]) {
      expect(await typesOf(record)).toEqual([...failed, ...repaired]);
    }
  });

  test('takes a command that timed out in version 1 for a failure', async () => {
    const content = `The last command <command>${'x'.repeat(300)}</command> timed out and has been killed.\nThe output …`;
    const record = runOf(block('make'), { role: 'user', content }, block('make'), {
      role: 'user',
      content: 'ok',
    });
    expect(await typesOf(record)).toEqual([...failed, ...repaired]);
  });

  test('takes no command from a reply with several, none of which was run', async () => {
    const several = { role: 'assistant', content: `${block('make').content}\n${block('ls').content}` };
    const trace = await traceOf(runOf(several, { role: 'user', content: 'Exactly ONE action, please.' }));
    expect(stepsOf(trace)).toEqual([
      ['thought', several.content],
      ['observation', 'Exactly ONE action, please.'],
    ]);
  });

  test('reads the reply of the Responses API that a message holds', async () => {
    const output = [
      { type: 'reasoning', summary: [{ type: 'summary_text', text: 'I look.' }] },
      { type: 'function_call', call_id: '1', name: 'bash', arguments: '{"command":"ls"}' },
    ];
    const result = { type: 'function_call_output', call_id: '1', output: 'a.py', extra: { returncode: 0 } };
    const trace = await traceOf(runOf({ object: 'response', id: 'r', output, extra: {} }, result));
    expect(stepsOf(trace)).toEqual([
      ['thought', 'I look.'],
      ['tool_call', 'bash\ncommand: ls'],
      ['observation', 'a.py'],
    ]);
  });
});

test.each([
  ["SWE-agent's cancelled command", "The command 'make' was cancelled because it took more than 30 seconds."],
  ["SWE-agent's command that ran out of time", 'so far\nEXECUTION TIMED OUT'],
  [
    "SWE-agent's command with a wrong syntax",
    'Your bash command contained syntax errors and was NOT executed.',
  ],
])('toTraces takes %s for a failure', async (_, observation) => {
  const turn = { action: 'make', thought: 'I build it.' };
  const trajectory = [
    { ...turn, observation },
    { ...turn, observation: 'ok' },
  ];
  const { steps } = await traceOf({ trajectory, history: [], info: {} });
  expect(steps.map(({ type }) => type)).toEqual([
    ...['thought', 'tool_call', 'error_recovery', 'thought', 'error_recovery', 'observation'],
  ]);
});

describe('toTraces of a result that is JSON', () => {
  const typeOf = async (content) => {
    const call = { id: '1', function: { name: 'run', arguments: '{}' } };
    const messages = [
      { role: 'assistant', tool_calls: [call] },
      { role: 'tool', tool_call_id: '1', content },
    ];
    return (await traceOf({ messages })).steps[1].type;
  };

  test.each([
    ['returncode of -1', { returncode: -1, output: '' }, 'error_recovery'],
    ['returncode of 0', { returncode: 0, output: 'error' }, 'observation'],
    ['exception_info', { returncode: null, exception_info: 'it timed out' }, 'error_recovery'],
    ['exit_code as text', { exit_code: '1' }, 'error_recovery'],
    ['exit_code as text of 0', { exit_code: '0' }, 'observation'],
  ])('judges it by its %s', async (_, result, type) => {
    expect(await typeOf(JSON.stringify(result, null, 2))).toBe(type);
  });

  test('judges text of mini-SWE-agent by its exception', async () => {
    const text = '<exception>it timed out</exception>\n<returncode>-1</returncode>\n<output>\n</output>';
    expect(await typeOf(text)).toBe('error_recovery');
  });
});

describe('toTraces of an outcome in a conversation', () => {
  const messages = [{ role: 'assistant', content: 'Done.' }];
  const outcomeOf = async (record) => {
    const [{ trace, known }] = await read({ messages, ...record });
    return {
      success: known.success ? trace.metadata.success : undefined,
      confidence: known.confidence ? trace.outcome.confidence : undefined,
      left_out: trace.metadata.imported.left_out,
    };
  };

  test.each([
    [{ reward: '1.0' }, true, 1],
    [{ reward: '0' }, false, 0],
    [{ reward: ' 0.25 ' }, true, 0.25],
    [{ reward: true }, true, 1],
    [{ reward: false }, false, 0],
    [{ success: 1 }, true, undefined],
    [{ success: 0 }, false, undefined],
    [{ success: 'true' }, true, undefined],
    [{ success: 'False' }, false, undefined],
    [{ success: 'yes' }, true, undefined],
    [{ success: '1.0' }, true, undefined],
    [{ success: 'no', confidence: '0.75' }, false, 0.75],
    [{ reward: null, success: null, confidence: null }, undefined, undefined],
  ])('reads %j', async (record, success, confidence) => {
    expect(await outcomeOf(record)).toEqual({ success, confidence });
  });

  test.each([
    ['reward', 'high'],
    ['reward', '1e999'],
    ['reward', ''],
    ['reward', []],
    ['success', 'maybe'],
    ['success', 2],
    ['confidence', '110 %'],
    ['confidence', 1.5],
  ])('counts a %s that it cannot read: %j', async (name, value) => {
    expect(await outcomeOf({ [name]: value })).toEqual({
      success: undefined,
      confidence: undefined,
      left_out: { [`unreadable ${name}`]: 1 },
    });
  });

  test.each([[1], ['true'], ['True']])('reads is_error of a result as %j', async (is_error) => {
    const record = {
      messages: [
        { role: 'assistant', content: [{ type: 'tool_use', id: '1', name: 'run', input: {} }] },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: '1', content: 'no', is_error }] },
      ],
    };
    expect((await traceOf(record)).steps[1].type).toBe('error_recovery');
  });

  test('reads what ATIF says of a failed call, as a number or as text', async () => {
    const typeOf = async (extra) => {
      const step = {
        source: 'agent',
        message: '',
        tool_calls: [{ tool_call_id: '1', function_name: 'run', arguments: {} }],
        observation: { results: [{ source_call_id: '1', content: 'ok', extra }] },
      };
      return (await traceOf({ schema_version: 'ATIF-v1.7', agent: {}, steps: [step] })).steps[1].type;
    };
    for (const extra of [{ is_error: 1 }, { exit_code: '2' }, { returncode: -1 }])
      expect(await typeOf(extra)).toBe('error_recovery');
    for (const extra of [{ is_error: 'false' }, { exit_code: '0' }, { returncode: 0 }])
      expect(await typeOf(extra)).toBe('observation');
  });
});

describe('toTraces of a conversation from which no step comes', () => {
  const spans = (...list) => ({ resourceSpans: [{ scopeSpans: [{ spans: list }] }] });
  const span = (traceId, attributes) => ({
    ...{ traceId, spanId: '1', name: 'x' },
    attributes: Object.entries(attributes).map(([key, stringValue]) => ({ key, value: { stringValue } })),
  });
  const event = (type, rest) => ({ type, sessionId: 's', ...rest });
  const said = (content, rest) => event('user', { message: { role: 'user', content }, ...rest });
  const none = 'without a turn of a user or a step';

  test.each([
    [{ messages: [] }, `openai-chat ${none}`],
    [
      {
        messages: [
          { role: 'system', content: 'prompt' },
          { role: 'user', content: ' ' },
        ],
      },
      `openai-chat ${none}; left out: system message (1), empty message (1)`,
    ],
    [{ schema_version: 'ATIF-v1.6', steps: [] }, `atif ${none}`],
    [{ trajectory: [], history: [], info: {} }, `swe-agent ${none}`],
    [
      spans(span('a', { 'gen_ai.operation.name': 'chat' })),
      `otel ${none}; left out: span without messages (1)`,
    ],
    [said([]), `claude-code ${none}`],
    [
      event('result', { is_error: false, result: 'Done.' }),
      `claude-code ${none}; left out: event result (1)`,
    ],
  ])('yields an error for %j', async (record, message) => {
    const good = { messages: [{ role: 'assistant', content: 'Done.' }] };
    const results = await read([good, record].map((each) => JSON.stringify(each)).join('\n'));
    expect(results.map(({ line, error }) => [line, error?.message, error?.code])).toEqual([
      [1, undefined, undefined],
      [2, `line 2: ${message}`, 'ERR_INVALID_RECORD'],
    ]);
  });

  test('names a record that cannot be read once', async () => {
    const broken = {
      toJSON() {
        throw new Error('no');
      },
    };
    for (const record of [
      said(broken),
      { role: 'user', content: broken },
      { role: 'ghost', content: 'Boo' },
    ]) {
      expect((await read([record, 1])).map(({ error }) => error.code)).toEqual(
        Array(2).fill('ERR_INVALID_RECORD'),
      );
    }
  });

  test('yields nothing for spans of other programs and for sessions of commands alone', async () => {
    const records = [
      spans(span('a', { 'http.request.method': 'GET' }), span('b', { 'gen_ai.prompt.0.content': 'Hello' })),
      said('<command-name>/clear</command-name>'),
      said('Caveat: …', { isMeta: true }),
      event('system', { content: 'x' }),
    ];
    const results = await read(records);
    expect(results.map(({ format }) => format)).toEqual(['otel']);
  });
});

describe('toTraces of an input that is not text in UTF-8', () => {
  const text = '{"messages":[{"role":"user","content":"Grüße 🙂"}]}\n';

  /** The bytes of an input in chunks of some size. */
  function* chunksOf(bytes, size) {
    for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
  }

  test('reads UTF-16 LE, with a byte order mark and without', async () => {
    for (const bytes of [Buffer.from(`\ufeff${text}`, 'utf16le'), Buffer.from(text, 'utf16le')]) {
      for (const input of [bytes, chunksOf(bytes, 1), chunksOf(bytes, 7)])
        expect((await traceOf(input)).task.objective).toBe('Grüße 🙂');
    }
  });

  test.each([
    ['gzip', zlib.gzipSync(text), /^the input is compressed with gzip: .* gzip -dc/],
    ['zstd', Buffer.from('28b52ffd0458', 'hex'), /^the input is compressed with zstd: .* zstd -dc/],
    ['xz', Buffer.from('fd377a585a000004', 'hex'), /compressed with xz/],
    ['bzip2', Buffer.from('BZh91AY&SY'), /compressed with bzip2/],
    ['ZIP', Buffer.from('504b030414000000', 'hex'), /a ZIP archive/],
    ['UTF-16 BE', Buffer.from(`\ufeff${text}`, 'utf16le').swap16(), /text in UTF-16 BE: .* iconv/],
    ['UTF-16 BE without a mark', Buffer.from(text, 'utf16le').swap16(), /text in UTF-16 BE/],
  ])('throws ERR_INVALID_INPUT for %s, and says how to make text of it', async (_, bytes, message) => {
    for (const input of [bytes, chunksOf(bytes, 1)]) {
      await expect(read(input)).rejects.toMatchObject({
        code: 'ERR_INVALID_INPUT',
        message: expect.stringMatching(message),
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
  ])('throws ERR_INVALID_INPUT for the path %s, and asks for the contents', async (input) => {
    await expect(read(input)).rejects.toMatchObject({
      code: 'ERR_INVALID_INPUT',
      message: expect.stringMatching(/looks like a path: .*createReadStream/),
    });
  });

  test.each([['{"a":".json"}'], ['["x.json"]'], ['"a.json"'], ['no JSON'], ['a.json\n{}'], ['12']])(
    'yields errors for the text %j',
    async (input) => {
      const codes = (await read(input)).map(({ error }) => error.code);
      expect(new Set(codes)).toEqual(new Set(['ERR_INVALID_RECORD']));
    },
  );
});

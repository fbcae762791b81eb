'use strict';

// Traces of OpenTelemetry, whose spans tell a conversation in parts and again and again.

const fc = require('fast-check');

const { read, recordsOf, stepsOf, tracesOf } = require('./support/reading-traces.js');

const attributesOf = (values) =>
  Object.entries(values)
    .filter(([, value]) => value !== undefined)
    .map(([key, value]) => ({
      key,
      value: { stringValue: typeof value === 'string' ? value : JSON.stringify(value) },
    }));

/** A span that begins and ends at these times, in nanoseconds, with attributes that are JSON unless they are text. */
const spanOf = (start, values, { end = start, events, ...more } = {}) => ({
  ...{ traceId: 't', startTimeUnixNano: `${start}`, endTimeUnixNano: `${end}`, ...more },
  attributes: attributesOf(values),
  events: events?.map(([name, fields]) => ({ name, attributes: attributesOf(fields) })),
});

const batchOf = (...spans) => ({ resourceSpans: [{ scopeSpans: [{ spans }] }] });

const said = (role, content) => ({ role, content });

describe('toTraces of spans of the AI SDK', () => {
  const records = recordsOf('ai-sdk-spans.jsonl');
  test('one file with these and others has the traces of both', async () => {
    const [inference] = recordsOf('captured-spans.jsonl');
    const traces = await tracesOf([inference, records[1]].map((record) => JSON.stringify(record)).join('\n'));
    expect(traces.map(({ steps }) => steps.length)).toEqual([4, 5, 9, 1]);
  });

  test('a call that failed is an error_recovery', async () => {
    const toolCall = { 'ai.toolCall.name': 'f', 'ai.toolCall.id': '1', 'ai.toolCall.args': '{"a":1}' };
    const [trace] = await tracesOf(
      batchOf(
        spanOf(1, {
          'ai.prompt.messages': [said('user', 'Go')],
          'ai.response.toolCalls': [{ toolCallId: '1', toolName: 'f', input: '{"a":1}' }],
        }),
        spanOf(2, toolCall, { status: { code: 2, message: 'no such file' } }),
      ),
    );
    expect(stepsOf(trace)).toEqual([
      ['tool_call', 'f\na: 1'],
      ['error_recovery', 'no such file'],
    ]);
  });
});

describe('toTraces of gen_ai.prompt and gen_ai.completion without numbers', () => {
  const prompt = [said('system', 'Be brief.'), said('user', 'Hi')];
  test.each([
    ['lists of messages', { prompt, completion: [said('assistant', 'Hello')] }],
    ['text', { prompt: 'Hi', completion: 'Hello' }],
    ['a request and a reply', { prompt: { messages: prompt }, completion: said('assistant', 'Hello') }],
    ['lists of texts', { prompt: ['Hi'], completion: ['Hello'] }],
  ])('that are %s: a turn and a thought', async (_, { prompt, completion }) => {
    const inAttributes = spanOf(1, { 'gen_ai.prompt': prompt, 'gen_ai.completion': completion });
    const events = [
      ['gen_ai.content.prompt', { 'gen_ai.prompt': prompt }],
      ['gen_ai.content.completion', { 'gen_ai.completion': completion }],
    ];
    for (const span of [inAttributes, spanOf(1, {}, { events })]) {
      const [trace] = await tracesOf(batchOf(span));
      expect(trace.task.objective).toBe('Hi');
      expect(stepsOf(trace)).toEqual([['thought', 'Hello']]);
    }
  });
});

describe('toTraces of a call in messages and in the span of a tool', () => {
  const turn = (number, id) => ({
    asked: { type: 'tool_call', id, name: 'f', arguments: { number } },
    answered: { type: 'tool_call_response', id, response: `result ${number}` },
    thought: `I call ${number}.`,
    tool: {
      'gen_ai.operation.name': 'execute_tool',
      'gen_ai.tool.name': 'f',
      'gen_ai.tool.call.id': id,
      'gen_ai.tool.call.arguments': { number },
      'gen_ai.tool.call.result': `result ${number}`,
    },
  });

  /**
   * The spans of a run of as many calls, one after the other: those of the model, which is given all that was before, and those of the
   * tool. `lost` says what the spans of the model do not have; the last one has all.
   */
  function spansOf(turns, lost) {
    const history = [{ role: 'user', parts: [{ type: 'text', content: 'Go' }] }];
    const spans = [];
    for (const [at, { asked, answered, thought, tool }] of turns.entries()) {
      const output = { role: 'assistant', parts: [{ type: 'text', content: thought }, asked] };
      const values = {
        'gen_ai.input.messages': lost[at].input ? undefined : [...history],
        'gen_ai.output.messages': lost[at].output ? undefined : [output],
      };
      if (!lost[at].span) spans.push(spanOf(10 * at + 1, values));
      if (!lost[at].tool) spans.push(spanOf(10 * at + 2, tool));
      history.push(output, { role: 'tool', parts: [answered] });
    }
    const last = { role: 'assistant', parts: [{ type: 'text', content: 'Done' }] };
    spans.push(spanOf(1000, { 'gen_ai.input.messages': history, 'gen_ai.output.messages': [last] }));
    return spans;
  }

  const expected = (turns) => [
    ...turns.flatMap((_, number) => [
      ['thought', `I call ${number}.`],
      ['tool_call', `f\nnumber: ${number}`],
      ['observation', `result ${number}`],
    ]),
    ['thought', 'Done'],
  ];

  test.each([
    ['whose span of the model is missing', { span: true }],
    ['whose span of the model lacks its output', { output: true }],
    ['whose span of the model lacks its input', { input: true }],
    ['whose span of the tool is missing', { tool: true }],
  ])('%s: the first call is one step, with an id and without', async (_, lost) => {
    for (const id of ['1', undefined]) {
      const turns = [turn(0, id)];
      const [trace] = await tracesOf(batchOf(...spansOf(turns, [lost])));
      expect(trace.task.objective).toBe('Go');
      expect(stepsOf(trace)).toEqual(expected(turns));
    }
  });

  test('whatever spans lack, each step is there once, in order', async () => {
    const losses = fc.record({
      ...{ input: fc.boolean(), output: fc.boolean(), span: fc.boolean(), tool: fc.boolean() },
    });
    await fc.assert(
      fc.asyncProperty(
        fc.array(losses, { minLength: 1, maxLength: 5 }),
        fc.boolean(),
        async (lost, hasIds) => {
          const turns = lost.map((_, number) => turn(number, hasIds ? `${number}` : undefined));
          // Without ids, a span of a tool is of the first call that has none: they are all there, or none is.
          const spans = spansOf(turns, hasIds ? lost : lost.map((each) => ({ ...each, tool: lost[0].tool })));
          const [trace] = await tracesOf(batchOf(...spans));
          expect(trace.task.objective).toBe('Go');
          expect(stepsOf(trace)).toEqual(expected(turns));
        },
      ),
      { numRuns: 200 },
    );
  });

  test('an id in one of the two: the call is one step', async () => {
    const [withId, without] = [turn(0, '1'), turn(0, undefined)];
    for (const [inMessage, inSpan] of [
      [withId, without],
      [without, withId],
    ]) {
      for (const lost of [{}, { span: true }, { output: true }]) {
        const turns = [{ ...inMessage, tool: inSpan.tool }];
        const [trace] = await tracesOf(batchOf(...spansOf(turns, [lost])));
        expect(stepsOf(trace)).toEqual(expected(turns));
      }
    }
  });

  test('a result that the span writes in other words: the result is one step, that of the span', async () => {
    for (const id of ['1', undefined]) {
      const { tool, ...rest } = turn(0, id);
      const turns = [{ ...rest, tool: { ...tool, 'gen_ai.tool.call.result': { text: 'result 0' } } }];
      const [trace] = await tracesOf(batchOf(...spansOf(turns, [{ output: true }])));
      expect(stepsOf(trace).filter(([type]) => type === 'observation')).toEqual([
        ['observation', '{"text":"result 0"}'],
      ]);
    }
  });

  test('the arguments in input.value, and what the tool takes in tool.parameters: the arguments are the input', async () => {
    const tool = {
      ...{ 'openinference.span.kind': 'TOOL', 'tool.name': 'f', 'output.value': 'ok' },
      ...{ 'tool.parameters': { type: 'object', properties: {} }, 'input.value': { number: 0 } },
    };
    const [trace] = await tracesOf(batchOf(spanOf(1, tool)));
    expect(trace.steps[0]).toMatchObject({ type: 'tool_call', input: { number: 0 } });
  });

  test('spans of models within the span of the tool: its result comes after theirs', async () => {
    const { asked, tool } = turn(0, '1');
    const agent = [
      spanOf(1, {
        'gen_ai.input.messages': [said('user', 'Go')],
        'gen_ai.output.messages': [{ role: 'assistant', parts: [asked] }],
      }),
      spanOf(2, tool, { end: 9, spanId: 'tool' }),
    ];
    const inner = {
      'gen_ai.input.messages': [said('user', 'Go deeper')],
      'gen_ai.output.messages': [said('assistant', 'Deep')],
    };
    const [trace] = await tracesOf(batchOf(...agent, spanOf(3, inner, { end: 4, parentSpanId: 'tool' })));
    expect(stepsOf(trace)).toEqual([
      ['tool_call', 'f\nnumber: 0'],
      ['observation', 'Go deeper'],
      ['thought', 'Deep'],
      ['observation', 'result 0'],
    ]);
  });
});

describe('toTraces of spans of tools alone', () => {
  const tool = (start, end, id, status) =>
    spanOf(
      start,
      {
        'gen_ai.operation.name': 'execute_tool',
        'gen_ai.tool.name': 'f',
        'gen_ai.tool.call.id': id,
        'gen_ai.tool.call.arguments': { id },
        'gen_ai.tool.call.result': `result ${id}`,
      },
      { end, status },
    );
  const failed = { code: 2 };

  test('that overlap: results come at the ends, and a call that was made before the failure repairs nothing', async () => {
    const [trace] = await tracesOf(batchOf(tool(1, 4, 'a', failed), tool(2, 6, 'b')));
    expect(stepsOf(trace)).toEqual([
      ['tool_call', 'f\nid: a'],
      ['tool_call', 'f\nid: b'],
      ['error_recovery', 'result a'],
      ['observation', 'result b'],
    ]);
  });

  test.each([
    ['that follow each other', [1, 3], [3, 5]],
    ['that take no time', [1, 1], [1, 1]],
  ])('%s: the second call is the repair of the first', async (_, first, second) => {
    const [trace] = await tracesOf(batchOf(tool(...first, 'a', failed), tool(...second, 'b')));
    expect(stepsOf(trace)).toEqual([
      ['tool_call', 'f\nid: a'],
      ['error_recovery', 'result a'],
      ['error_recovery', 'f\nid: b'],
      ['observation', 'result b'],
    ]);
  });
});

describe('toTraces of messages that are said again', () => {
  test('by a model that was not given what was before: each is a step', async () => {
    const turn = (at, order) =>
      spanOf(at, {
        'gen_ai.input.messages': [said('user', order)],
        'gen_ai.output.messages': [said('assistant', 'OK')],
      });
    const [trace] = await tracesOf(batchOf(turn(1, 'one'), turn(2, 'two'), turn(3, 'three')));
    expect(stepsOf(trace)).toEqual([
      ['thought', 'OK'],
      ['observation', 'two'],
      ['thought', 'OK'],
      ['observation', 'three'],
      ['thought', 'OK'],
    ]);
  });

  test('by the span of the agent around those of the model: each is one step, in the order of the model', async () => {
    const given = [said('user', 'Go')];
    const agent = {
      'gen_ai.input.messages': given,
      'gen_ai.output.messages': [said('assistant', 'Done'), said('assistant', 'First')],
    };
    const model = { 'gen_ai.input.messages': given, 'gen_ai.output.messages': [said('assistant', 'First')] };
    const last = {
      'gen_ai.input.messages': [...given, said('assistant', 'First')],
      'gen_ai.output.messages': [said('assistant', 'Done')],
    };
    const [trace] = await tracesOf(
      batchOf(
        spanOf(1, agent, { end: 9, spanId: 'agent' }),
        // The span of a step, which has no messages, is between them.
        spanOf(1, {}, { end: 8, spanId: 'step', parentSpanId: 'agent' }),
        spanOf(2, model, { end: 3, parentSpanId: 'step' }),
        spanOf(4, last, { end: 5, parentSpanId: 'step' }),
      ),
    );
    expect(stepsOf(trace)).toEqual([
      ['thought', 'First'],
      ['thought', 'Done'],
    ]);
  });

  test('spans whose parents are in a circle: each message is one step', async () => {
    const values = { 'gen_ai.output.messages': [said('assistant', 'Hi')] };
    const [trace] = await tracesOf(
      batchOf(
        spanOf(1, values, { spanId: 'a', parentSpanId: 'b' }),
        spanOf(2, values, { spanId: 'b', parentSpanId: 'a' }),
      ),
    );
    expect(stepsOf(trace)).toEqual([['thought', 'Hi']]);
  });
});

describe('toTraces of calls of a model with input.value and output.value alone', () => {
  const llm = (at, input, output, more) =>
    spanOf(at, { 'openinference.span.kind': 'LLM', 'input.value': input, 'output.value': output, ...more });
  const steps = [
    ['thought', 'reply 1'],
    ['observation', 'turn 2'],
    ['thought', 'reply 2'],
    ['observation', 'turn 3'],
    ['thought', 'reply 3'],
  ];

  test.each([
    ['texts', (turns) => turns.at(-1).content, (reply) => reply],
    ['lists of messages', (turns) => turns, (reply) => [said('assistant', reply)]],
    [
      'Chat Completions',
      (messages) => ({ model: 'm', messages }),
      (reply) => ({ choices: [{ index: 0, message: said('assistant', reply) }] }),
    ],
    [
      'Responses',
      (input) => ({ model: 'm', input }),
      (reply) => ({
        object: 'response',
        output: [{ type: 'message', role: 'assistant', content: [{ type: 'output_text', text: reply }] }],
      }),
    ],
    [
      "Anthropic's Messages",
      (messages) => ({ model: 'm', system: 'Be brief.', messages }),
      (reply) => ({ type: 'message', role: 'assistant', content: [{ type: 'text', text: reply }] }),
    ],
    ['batches of lists', (turns) => [turns], (reply) => [[said('assistant', reply)]]],
    ['a message, and a list of texts', (turns) => turns.at(-1), (reply) => [reply]],
  ])('%s: each turn and reply is a step', async (_, inputOf, outputOf) => {
    const turns = [];
    const spans = [1, 2, 3].map((number) => {
      turns.push(said('user', `turn ${number}`));
      const span = llm(number, inputOf([...turns]), outputOf(`reply ${number}`));
      turns.push(said('assistant', `reply ${number}`));
      return span;
    });
    const chain = spanOf(0, { 'openinference.span.kind': 'CHAIN', 'input.value': { question: 'all' } });
    const [trace] = await tracesOf(batchOf(chain, ...spans));
    expect(trace.task.objective).toBe('turn 1');
    expect(stepsOf(trace)).toEqual(steps);
  });

  test('one of the two as messages: the other is read from its value', async () => {
    const output = {
      'llm.output_messages.0.message.role': 'assistant',
      'llm.output_messages.0.message.content': 'A',
    };
    const [trace] = await tracesOf(batchOf(llm(1, [said('user', 'Q')], { choices: [] }, output)));
    expect(trace.task.objective).toBe('Q');
    expect(stepsOf(trace)).toEqual([['thought', 'A']]);
  });

  test('JSON that has no messages: its text is the message', async () => {
    const [trace] = await tracesOf(batchOf(llm(1, 'Which capital?', { capital: 'Paris' })));
    expect(stepsOf(trace)).toEqual([['thought', '{"capital":"Paris"}']]);
  });

  test('the first span of a trace without calls of a model: the messages in its JSON', async () => {
    const agent = {
      'openinference.span.kind': 'AGENT',
      'input.value': { messages: [said('user', 'Q')] },
      'output.value': { messages: [said('user', 'Q'), said('assistant', 'A')] },
    };
    const [trace] = await tracesOf(batchOf(spanOf(1, agent)));
    expect(trace.task.objective).toBe('Q');
    expect(stepsOf(trace)).toEqual([['thought', 'A']]);
  });
});

describe('toTraces of what Grafana Tempo and Jaeger export', () => {
  const records = recordsOf('spans.jsonl');
  const toBase64 = (id) => id && Buffer.from(id, 'hex').toString('base64');
  const inBase64 = (resource) => ({
    ...resource,
    scopeSpans: resource.scopeSpans.map((scope) => ({
      ...scope,
      spans: scope.spans.map((span) => ({ ...span, traceId: toBase64(span.traceId) })),
    })),
  });
  const withLibraries = ({ scopeSpans, ...resource }) => ({
    ...resource,
    instrumentationLibrarySpans: scopeSpans.map(({ scope, ...rest }) => ({
      ...rest,
      instrumentationLibrary: scope,
    })),
  });

  test.each([
    ['batches', ({ resourceSpans }) => ({ batches: resourceSpans })],
    ['batches, ids in base64', ({ resourceSpans }) => ({ batches: resourceSpans.map(inBase64) })],
    ['batches of libraries', ({ resourceSpans }) => ({ batches: resourceSpans.map(withLibraries) })],
    [
      'resourceSpans of libraries',
      ({ resourceSpans }) => ({ resourceSpans: resourceSpans.map(withLibraries) }),
    ],
    ['trace.resourceSpans', (trace) => ({ trace, metrics: {}, status: 'complete' })],
    ['trace.batches', ({ resourceSpans }) => ({ trace: { batches: resourceSpans } })],
    ['result.resourceSpans', (result) => ({ result })],
    ['data.resourceSpans', (data) => ({ data })],
  ])('%s: the traces are those of OTLP, with their ids', async (_, write) => {
    expect(await read(records.map(write))).toEqual(await read(records));
  });

  test('batches of something else: no format', async () => {
    for (const value of [{ batches: [] }, { batches: [{ spans: [] }] }, { trace: 'x' }]) {
      const [{ error }] = await read([value]);
      expect(error.message).toContain('of no format that is known');
    }
  });
});

test('toTraces of a message with an unknown role: it is counted, and all traces of the file are there', async () => {
  const spans = ['a', 'b'].map((traceId) => {
    const given = [said('critic', 'Bad'), said('user', 'Hi')];
    return spanOf(1, { 'gen_ai.input.messages': given }, { traceId });
  });
  const traces = await tracesOf(batchOf(...spans));
  expect(traces.map(({ task, metadata }) => [task.objective, metadata.imported.left_out])).toEqual([
    ['Hi', { 'malformed message': 1 }],
    ['Hi', { 'malformed message': 1 }],
  ]);
});

describe('toTraces of spans in which nothing was said', () => {
  test.each([
    ['of a model', { 'gen_ai.operation.name': 'chat', 'gen_ai.request.model': 'm' }],
    ['of an attribute that is not read', { 'langfuse.observation.input': 'Hi' }],
  ])('%s: an error that names the line and what was left out', async (_, values) => {
    const good = spanOf(1, { 'gen_ai.prompt': 'Hi' }, { traceId: 'good' });
    const lines = [batchOf(good), batchOf(spanOf(1, values))].map((record) => JSON.stringify(record));
    const [{ trace }, { error }] = await read(lines.join('\n'));
    expect(trace.task.objective).toBe('Hi');
    expect(error.message).toMatch(/^line 2: otel without .*left out: span without messages \(1\)$/);
  });

  test.each([
    ['of another program', { 'http.request.method': 'GET' }],
    ['of embeddings', { 'gen_ai.operation.name': 'embeddings', 'gen_ai.request.model': 'm' }],
    ['of a search', { 'openinference.span.kind': 'RETRIEVER', 'retrieval.documents.0.document.id': '1' }],
    ['of embeddings of the AI SDK', { 'ai.operationId': 'ai.embed.doEmbed', 'ai.model.id': 'm' }],
  ])('%s: nothing', async (_, values) => {
    expect(await read(batchOf(spanOf(1, values)))).toEqual([]);
  });
});

describe('toTraces of spans', () => {
  test('tools alone make a trace, where nothing of what was said is recorded', async () => {
    const tool = (name, start, status) => ({
      ...{ traceId: 't', startTimeUnixNano: `${start}`, endTimeUnixNano: `${start + 1}`, status },
      attributes: attributesOf({ 'gen_ai.operation.name': 'execute_tool', 'gen_ai.tool.name': name }),
    });
    const [trace] = await tracesOf(batchOf(tool('b', 2, { code: 2, message: 'broken' }), tool('a', 1, {})));
    expect(stepsOf(trace)).toEqual([
      ['tool_call', 'a'],
      ['tool_call', 'b'],
      ['error_recovery', 'broken'],
    ]);
  });

  test('spans of tools are of the calls with their ids, and else of the first that is left', async () => {
    const asked = ['a', 'b', 'c', 'b', undefined].map((id) => ({ type: 'tool_call', name: 'f', id }));
    const said = { 'gen_ai.output.messages': JSON.stringify([{ role: 'assistant', parts: asked }]) };
    // One with an id that nobody has called is of the call without one; those after the last call are calls of their own.
    const spans = ['b', undefined, 'x', 'c', undefined, undefined, undefined].map((id, at) => ({
      ...{ traceId: 't', startTimeUnixNano: `${at + 2}`, endTimeUnixNano: `${at + 2}` },
      attributes: attributesOf({
        ...{ 'gen_ai.operation.name': 'execute_tool', 'gen_ai.tool.name': 'f' },
        'gen_ai.tool.call.result': `result ${at}`,
        ...(id && { 'gen_ai.tool.call.id': id }),
      }),
    }));
    const first = { traceId: 't', startTimeUnixNano: '1', attributes: attributesOf(said) };
    const [trace] = await tracesOf(batchOf(first, ...spans));
    const results = [0, 1, 2, 3, 4, 'call', 5, 'call', 6];
    expect(trace.steps.map(({ content }) => content)).toEqual([
      ...Array(5).fill('f'),
      ...results.map((at) => (at === 'call' ? 'f' : `result ${at}`)),
    ]);
    expect(trace.metadata.imported.left_out).toBeUndefined();
  });

  test('times that are no times count as none', async () => {
    for (const time of ['9'.repeat(30), 'soon', null, {}]) {
      const span = {
        traceId: 't',
        startTimeUnixNano: time,
        attributes: attributesOf({ 'input.value': 'Hi' }),
      };
      const [trace] = await tracesOf(batchOf(span));
      expect(Math.abs(Date.now() - Date.parse(trace.metadata.created_at))).toBeLessThan(60_000);
    }
  });

  test('a message that is said twice is there twice, and once for each span that repeats it', async () => {
    const said = (role, content) => ({ role, parts: [{ type: 'text', content }] });
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(fc.constantFrom('yes', 'no'), fc.constantFrom('go on', 'stop')), {
          minLength: 1,
          maxLength: 8,
        }),
        fc.boolean(),
        async (turns, isReversed) => {
          const history = [];
          const spans = turns.map(([answer, order], at) => {
            history.push(said('user', order));
            const input = JSON.stringify(history);
            const output = said('assistant', answer);
            history.push(output);
            const values = {
              'gen_ai.input.messages': input,
              'gen_ai.output.messages': JSON.stringify([{ ...output, finish_reason: 'stop' }]),
            };
            return { traceId: 't', startTimeUnixNano: `${at + 1}`, attributes: attributesOf(values) };
          });
          const [trace] = await tracesOf(batchOf(...(isReversed ? spans.reverse() : spans)));
          expect(trace.steps.map(({ content }) => content)).toEqual(
            history.slice(1).map(({ parts }) => parts[0].content),
          );
        },
      ),
      { numRuns: 50 },
    );
  });

  test('what a model is given again is read as if it were alone', async () => {
    const said = (content) => JSON.stringify({ role: 'user', content });
    const lists = [
      ...['[]', '[1]', '[12]', '[1 ]', '[1 ,2]', '[1,]', '[,1]', '["]"]', '["]","a"]', '{"a":[]}'],
      ...[`[${said('a')}]`, `[${said('a')}]x`, `[${said('a')},${said('b')}]`, `[${said('a')},]`],
      `[${said('ab')},${said('c')}]`,
    ];
    const span = (json, at) => ({
      ...{ traceId: 't', startTimeUnixNano: `${at + 1}` },
      attributes: attributesOf({ 'gen_ai.input.messages': json }),
    });
    const saidBy = async (...spans) =>
      (await read(batchOf(...spans))).flatMap(({ error, trace }) =>
        error
          ? error.code
          : [
              ...[trace.task.objective, ...trace.steps.map(({ content }) => content)].sort(),
              trace.metadata.imported.left_out,
            ],
      );
    for (const first of lists) {
      for (const second of lists) {
        // A list that has nothing in common comes between, so that it is not compared with the first.
        const [one, between, two] = [span(first, 0), span('[0]', 2), span(second, 1)];
        expect([first, second, await saidBy(one, two, between)]).toEqual([
          ...[first, second],
          await saidBy(one, between, two),
        ]);
      }
    }
  });

  test('attributes that are nested deeply, and spans without an id, cost an error', async () => {
    let value = { stringValue: 'x' };
    for (let depth = 0; depth < 10_000; depth++) value = { arrayValue: { values: [value] } };
    const good = { traceId: 't', attributes: attributesOf({ 'input.value': 'Hello' }) };
    const results = await read([
      batchOf({ traceId: 't', attributes: [{ key: 'k', value }] }),
      batchOf({}, good),
    ]);
    expect(results.pop().trace.task.objective).toBe('Hello');
    expect(results.map(({ error }) => error.message)).toEqual(
      ['[0]', '[1]'].map(() =>
        expect.stringMatching(/^(it is nested too deeply|not otel: a span has no traceId)$/),
      ),
    );
  });
});

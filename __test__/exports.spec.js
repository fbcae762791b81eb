'use strict';

// toTraces of LangChain, ShareGPT, LangSmith, Langfuse and Phoenix, beyond what their recordings have.

const { read, recordsOf, stepsOf, traceOf } = require('./support/reading-traces.js');

const failedAndRepaired = [
  ['thought', 'I ask the tool.'],
  ['tool_call', 'get_weather\ncity: Pariss'],
  ['error_recovery', expect.stringContaining('there is no Pariss')],
  ['error_recovery', 'get_weather\ncity: Paris'],
  ['observation', 'rain'],
  ['thought', expect.stringContaining('ain')],
];

describe.each(['langsmith', 'langfuse', 'phoenix'])('toTraces of the recording of %s', (name) => {
  test('has each step of both runs once', async () => {
    const results = await read(recordsOf(`${name}.jsonl`));
    expect(results.map(({ format }) => format)).toEqual([name, name]);
    for (const { trace } of results) expect(stepsOf(trace)).toEqual(failedAndRepaired);
  });

  test('has the same ids and steps in another order of its records', async () => {
    const of = async (records) =>
      (await read(records))
        .map(({ trace }) => [trace.id, stepsOf(trace)])
        .sort(([a], [b]) => (a < b ? -1 : 1));
    const records = recordsOf(`${name}.jsonl`);
    expect(await of(records.toReversed())).toEqual(await of(records));
  });
});

describe('toTraces of LangChain', () => {
  const dumped = (kind, kwargs) => ({
    ...{ lc: 1, type: 'constructor', id: ['langchain_core', 'messages', kind], kwargs },
  });

  test('reads a call once that the content, tool_calls and additional_kwargs have', async () => {
    const call = { id: '1', name: 'ls', args: { path: 'a' } };
    const raw = { id: '1', type: 'function', function: { name: 'ls', arguments: '{"path":"a"}' } };
    const content = [
      { type: 'text', text: 'I look.' },
      { type: 'tool_use', id: '1', name: 'ls', input: { path: 'a' } },
    ];
    const additional_kwargs = { tool_calls: [raw], reasoning_content: 'Where?' };
    const messages = [
      dumped('AIMessageChunk', { content, tool_calls: [call], additional_kwargs }),
      dumped('ToolMessage', { content: 'a.py', tool_call_id: '1', artifact: { size: 3 } }),
      dumped('AIMessage', { content: '', additional_kwargs: { tool_calls: [{ ...raw, id: '2' }] } }),
    ];
    const trace = await traceOf({ messages });
    expect(stepsOf(trace)).toEqual([
      ['thought', 'Where?'],
      ['thought', 'I look.'],
      ['tool_call', 'ls\npath: a'],
      ['observation', 'a.py'],
      ['tool_call', 'ls\npath: a'],
    ]);
    expect(trace.metadata.imported.left_out).toEqual({ 'call without a result': 1 });
  });

  test('reads reasoning of Responses, calls of servers and calls with broken arguments', async () => {
    const message = {
      type: 'ai',
      data: {
        content: [
          { type: 'server_tool_call', id: 's', name: 'web_search', args: { query: 'rain' } },
          { type: 'server_tool_result', tool_call_id: 's', output: 'none', status: 'error' },
        ],
        additional_kwargs: { reasoning: { summary: [{ type: 'summary_text', text: 'I search.' }] } },
        invalid_tool_calls: [{ id: 'i', name: 'ls', args: '{"path":', error: 'cut off' }],
      },
    };
    expect(stepsOf(await traceOf({ messages: [message] }))).toEqual([
      ['thought', 'I search.'],
      ['tool_call', 'web_search\nquery: rain'],
      ['error_recovery', 'none'],
      ['tool_call', 'ls\narguments: {"path":'],
    ]);
  });

  test('reads a call without an id once', async () => {
    const call = { name: 'ls', input: { path: 'a' } };
    const data = { content: [{ type: 'tool_use', ...call }], tool_calls: [{ name: 'ls', args: call.input }] };
    expect(stepsOf(await traceOf({ messages: [{ type: 'ai', data }] }))).toEqual([
      ['tool_call', 'ls\npath: a'],
    ]);
  });

  test('names a message that is none', async () => {
    const messages = [
      dumped('HumanMessage', { content: 'Hello' }),
      dumped('PromptTemplate', { template: '' }),
    ];
    const [{ error }] = await read({ messages });
    expect(error.message).toBe(
      'not langchain: messages[1]: a message must have a role, or a type that is known',
    );
  });
});

describe('toTraces of ShareGPT', () => {
  test('reads turns that stand alone, one a line', async () => {
    const turns = [
      { from: 'human', value: 'Hello' },
      { from: 'gpt', value: 'Good day' },
    ];
    const [{ trace, format }] = await read(turns.map((turn) => JSON.stringify(turn)).join('\n'));
    expect([format, trace.task.objective, stepsOf(trace)]).toEqual([
      ...['sharegpt', 'Hello', [['thought', 'Good day']]],
    ]);
  });

  test('names a turn by somebody who is not known', async () => {
    const conversations = [
      { from: 'human', value: 'Hello' },
      { from: 'cat', value: 'Miaow' },
    ];
    const [{ error }] = await read({ conversations });
    expect(error.message).toBe('not sharegpt: messages[1]: a message has a role that is not known');
  });
});

describe('toTraces of LangSmith', () => {
  const run = (id, run_type, rest) => ({
    ...{ id, trace_id: 't', run_type, name: id, start_time: `2026-01-02T00:00:0${id}.000001`, inputs: {} },
    ...rest,
  });

  test('reads runs of a wrapped client of OpenAI, and the failure of the root', async () => {
    const messages = [{ role: 'user', content: 'Rain?' }];
    const message = { role: 'assistant', content: 'I cannot tell.' };
    const runs = [
      run('2', 'llm', { parent_run_id: '1', inputs: { messages }, outputs: { choices: [{ message }] } }),
      run('1', 'chain', {
        inputs: { q: 'Rain?' },
        error: 'TimeoutError()',
        feedback_stats: { tone: { avg: 1 } },
      }),
    ];
    const withoutTrace = runs.map(({ trace_id, ...rest }) => rest);
    for (const input of [runs, { runs }, { trace_id: 't', runs: withoutTrace }]) {
      const [{ trace, known }] = await read(input);
      expect(trace.task.objective).toBe('Rain?');
      expect(stepsOf(trace)).toEqual([['thought', 'I cannot tell.']]);
      expect(known).toEqual({ success: true, confidence: false });
      expect(trace.metadata).toMatchObject({
        ...{ success: false, agent_id: '1', created_at: '2026-01-02T00:00:01.000Z' },
        imported: { scores: { tone: 1 } },
      });
    }
  });

  test('reads the question and the answer of the root where no run has messages', async () => {
    const root = run('1', 'chain', { inputs: { question: 'Rain?' }, outputs: { answer: 'No.' } });
    const tool = run('2', 'tool', {
      parent_run_id: '1',
      inputs: { city: 'Paris' },
      outputs: { output: 'dry' },
    });
    const trace = await traceOf([root, tool]);
    expect(trace.task.objective).toBe('Rain?');
    expect(stepsOf(trace)).toEqual([
      ['tool_call', '2\ncity: Paris'],
      ['observation', 'dry'],
      ['thought', 'No.'],
    ]);
  });

  test('skips runs that are only a search', async () => {
    expect(await read([run('1', 'retriever', { inputs: { query: 'rain' } })])).toEqual([]);
  });

  test('names a run without ids', async () => {
    const [{ error }] = await read([{ run_type: 'llm', id: null, inputs: {} }]);
    expect(error.message).toBe('not langsmith: a run has no trace_id and no id');
  });
});

describe('toTraces of Langfuse', () => {
  const observation = (id, type, rest) => ({
    ...{ id, trace_id: 't', type, name: id, start_time: `2026-01-02 00:00:0${id}.000001`, level: 'DEFAULT' },
    ...rest,
  });

  test('reads an export to a bucket: snake case, and JSON in text', async () => {
    const rows = [
      observation('1', 'GENERATION', {
        input: JSON.stringify([{ role: 'user', content: 'Rain?' }]),
        output: JSON.stringify({ role: 'assistant', content: 'I look.' }),
        provided_model_name: 'example-1',
      }),
      observation('2', 'TOOL', { input: '{"city":"Paris"}', level: 'ERROR', status_message: 'timeout' }),
    ];
    const trace = await traceOf(rows.map((row) => JSON.stringify(row)).join('\n'));
    expect(trace.task.objective).toBe('Rain?');
    expect(trace.metadata.imported.model).toBe('example-1');
    expect(stepsOf(trace)).toEqual([
      ['thought', 'I look.'],
      ['tool_call', '2\ncity: Paris'],
      ['error_recovery', 'timeout'],
    ]);
  });

  test('reads traces of a session, whose observations are only named', async () => {
    const trace = {
      id: 't',
      timestamp: '2026-01-02T00:00:00Z',
      input: 'Rain?',
      output: 'No.',
      sessionId: 's',
    };
    const found = await traceOf({ id: 's', traces: [{ ...trace, observations: ['o'] }] });
    expect([found.task.objective, stepsOf(found)]).toEqual(['Rain?', [['thought', 'No.']]]);
    expect(found.metadata.imported).toMatchObject({ format: 'langfuse', session_id: 's' });
  });

  test('takes a label of a score for a verdict, and keeps other scores', async () => {
    const scores = [
      { name: 'tone', value: 0.2 },
      { name: 'Task completion', stringValue: 'pass' },
    ];
    const trace = { id: 't', timestamp: '2026-01-02T00:00:00Z', input: 'Rain?', output: 'No.' };
    const [{ trace: found, known }] = await read({ ...trace, observations: [], scores });
    expect(known).toEqual({ success: true, confidence: true });
    expect(found.metadata).toMatchObject({
      success: true,
      imported: { scores: { tone: 0.2, 'Task completion': 'pass' } },
    });
  });
});

test('toTraces of Phoenix takes annotations for scores', async () => {
  const span = {
    context: { trace_id: 't', span_id: 's' },
    ...{ span_kind: 'AGENT', status_code: 'UNSET', start_time: '2026-01-02T00:00:00Z' },
    attributes: { input: { value: 'Rain?' }, output: { value: 'No.' } },
    annotations: [{ name: 'correctness', result: { label: 'correct', score: null } }],
  };
  const [{ trace, format, known }] = await read({ data: [span], next_cursor: null });
  expect([format, known.success, trace.metadata.success]).toEqual(['phoenix', true, true]);
  expect([trace.task.objective, stepsOf(trace)]).toEqual(['Rain?', [['thought', 'No.']]]);
});

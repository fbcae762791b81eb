'use strict';

// toTraces of what programs of agents write: sessions, also of older versions, and logs of evaluations.

const fs = require('node:fs');
const path = require('node:path');

const { folder, read, stepsOf, traceOf, tracesOf } = require('./support/reading-traces.js');

/** The types of the steps of a trace. */
const typesOf = ({ steps }) => steps.map(({ type }) => type);

describe('toTraces of rollouts of Codex', () => {
  const line = (type, payload, rest) => ({ timestamp: '2026-01-02T03:04:05.678Z', type, payload, ...rest });
  const meta = (id, rest) => line('session_meta', { id, cwd: '/work', cli_version: '0.169.0', ...rest });
  const item = (payload, rest) => line('response_item', payload, rest);
  const user = (...texts) =>
    item({ type: 'message', role: 'user', content: texts.map((text) => ({ type: 'input_text', text })) });
  const reply = (text) =>
    item({ type: 'message', role: 'assistant', content: [{ type: 'output_text', text }] });
  const call = (call_id, name = 'shell') =>
    item({ type: 'function_call', name, arguments: '{"command":["make"]}', call_id });
  const result = (call_id, output) => item({ type: 'function_call_output', call_id, output });

  test('takes what the user asked for as the task, not what Codex adds', async () => {
    const trace = await traceOf([
      meta('s'),
      item({ type: 'message', role: 'developer', content: [{ type: 'input_text', text: 'prompt' }] }),
      user(
        '# AGENTS.md instructions for /work\n\n<INSTRUCTIONS>…',
        '<environment_context>\n</environment_context>',
      ),
      user('<user_instructions>…</user_instructions>'),
      user('# Context from my IDE setup:\n\n## Open tabs:\n- a.py\n\n## My request for Codex:\nFix a.py\n'),
      user('<user_shell_command>\n<command>ls</command>\n</user_shell_command>'),
      user('And b.py'),
    ]);
    expect(trace.task.objective).toBe('Fix a.py');
    expect(stepsOf(trace)).toEqual([
      ['observation', '<user_shell_command>\n<command>ls</command>\n</user_shell_command>'],
      ['observation', 'And b.py'],
    ]);
    expect(trace.metadata.imported.left_out).toEqual({ 'system message': 1, 'context of the program': 3 });
  });

  test.each([
    ['an exit code', 'Exit code: 2\nWall time: 0 seconds\nOutput:\nno rule', 'error_recovery'],
    ['an exit code of 0', 'Exit code: 0\nWall time: 0 seconds\nOutput:\nError: none', 'observation'],
    ['an exit code in JSON', '{"output":"no rule","metadata":{"exit_code":2}}', 'error_recovery'],
    ['an exit code of 0 in JSON', '{"output":"Error: none","metadata":{"exit_code":0}}', 'observation'],
    ['a success of false', { content: 'no rule', success: false }, 'error_recovery'],
    ['a user who refused it', 'exec command rejected by user', 'observation'],
    ['a user who stopped it', 'aborted by user after 1.2s', 'observation'],
    ['parts', [{ type: 'input_text', text: 'Error: no rule' }], 'error_recovery'],
  ])('judges a result by %s', async (_, output, type) => {
    const trace = await traceOf([meta('s'), user('Build it'), call('1'), result('1', output)]);
    expect(typesOf(trace)).toEqual(['tool_call', type]);
    expect(trace.steps[1].content).not.toMatch(/metadata|success/);
  });

  test.each([
    ['exec_command_end', { call_id: '1', exit_code: 2, duration: { secs: 1, nanos: 5e8 } }],
    ['item_completed', { item: { id: '1', status: 'failed', duration: { secs: 1, nanos: 5e8 } } }],
  ])('judges a result by the event %s, and takes the duration from it', async (type, rest) => {
    const trace = await traceOf([
      ...[meta('s'), user('Build it'), call('1'), line('event_msg', { type, ...rest }), result('1', 'x')],
      ...[call('2'), line('event_msg', { type: 'exec_command_end', call_id: '2', exit_code: 0 })],
      result('2', 'Error: none'),
    ]);
    expect(typesOf(trace)).toEqual(['tool_call', 'error_recovery', 'error_recovery', 'observation']);
    expect(trace.steps[0].latency_ms).toBe(1500);
  });

  test('reads calls of every kind, and a session that was killed before their results', async () => {
    const trace = await traceOf([
      ...[meta('s'), user('Build it')],
      item({ type: 'custom_tool_call', call_id: '1', name: 'apply_patch', input: '*** Begin Patch' }),
      item({ type: 'custom_tool_call_output', call_id: '1', output: 'Success.' }),
      item({ type: 'local_shell_call', call_id: '2', action: { type: 'exec', command: ['ls'] } }),
      result('2', 'a.py'),
      item({ type: 'ghost_snapshot', ghost_commit: {} }),
      item({ type: 'reasoning', summary: [], encrypted_content: 'AAAA' }),
      call('3'),
      line('event_msg', { type: 'turn_aborted', reason: 'interrupted' }),
    ]);
    expect(stepsOf(trace)).toEqual([
      ['tool_call', 'apply_patch\narguments: *** Begin Patch'],
      ['observation', 'Success.'],
      ['tool_call', 'local_shell\naction: {"type":"exec","command":["ls"]}'],
      ['observation', 'a.py'],
      ['tool_call', 'shell\ncommand: ["make"]'],
    ]);
    expect(trace.metadata.imported.left_out).toMatchObject({
      ...{ 'item ghost_snapshot': 1, 'encrypted reasoning': 1, 'event turn_aborted': 1 },
      'call without a result': 1,
    });
  });

  test('reads rollouts without the envelope, one after the other', async () => {
    const bare = (id) => [
      { id, timestamp: '2025-08-18T01:16:13.522Z', instructions: null, git: { branch: 'main' } },
      { record_type: 'state' },
      ...[
        user('<environment_context>…'),
        user(`Task ${id}`),
        call('1'),
        result('1', 'ok'),
        reply('Done.'),
      ].map(({ payload }) => payload),
    ];
    const results = await read([...bare('a'), ...bare('b'), ...[meta('c'), user('Task c'), reply('Done.')]]);
    expect(results.map(({ format, trace }) => [format, trace.task.objective, trace.steps.length])).toEqual([
      ['codex', 'Task a', 3],
      ['codex', 'Task b', 3],
      ['codex', 'Task c', 1],
    ]);
    expect(results[0].trace.metadata).toMatchObject({
      created_at: '2025-08-18T01:16:13.522Z',
      imported: { session_id: 'a', git: { branch: 'main' } },
    });
  });

  test('reads a session that was forked as one, and a sub-agent without the lines of its parent', async () => {
    const forked = await traceOf([
      meta('b', { forked_from_id: 'a' }),
      meta('a'),
      user('Fix it'),
      reply('Done.'),
    ]);
    expect(forked.metadata.imported).toMatchObject({ session_id: 'b', forked_from_id: 'a' });
    const source = { subagent: { thread_spawn: { parent_thread_id: 'a' } } };
    const child = await traceOf([
      meta('c', { source, subagent_history_start_ordinal: 3 }),
      { ...user('Fix it'), ordinal: 1 },
      { ...reply('I ask another.'), ordinal: 2 },
      { ...user('Look at b.py'), ordinal: 3 },
      { ...reply('It is empty.'), ordinal: 4 },
    ]);
    expect([child.task.objective, stepsOf(child)]).toEqual(['Look at b.py', [['thought', 'It is empty.']]]);
    expect(child.metadata.imported).toMatchObject({
      is_subagent: true,
      left_out: { 'line of the parent': 2 },
    });
  });

  test('reads the events of codex exec --json: tools of every kind, a killed command, and a run that failed', async () => {
    const events = (id, type, item) =>
      ['started', 'completed'].map((state) => ({ type: `item.${state}`, item: { id, type, ...item } }));
    const [begun] = events('5', 'command_execution', { command: 'make', status: 'in_progress' });
    const changes = [{ path: 'a.py', kind: 'update' }];
    const result = { content: [{ type: 'text', text: 'no such page' }] };
    const [trace, other, ...more] = await read([
      { type: 'thread.started', thread_id: 'a' },
      ...events('1', 'file_change', { changes, status: 'completed' }),
      ...events('2', 'mcp_tool_call', {
        server: 's',
        tool: 't',
        arguments: { a: 1 },
        status: 'failed',
        result,
      }),
      ...events('3', 'web_search', { query: 'q' }),
      ...events('4', 'todo_list', { items: [] }),
      begun,
      { type: 'turn.failed', error: { message: 'stopped' } },
      { type: 'error', message: 'stopped' },
      { type: 'thread.started', thread_id: 'b' },
      { type: 'item.completed', item: { id: '1', type: 'agent_message', text: 'Done.' } },
    ]);
    expect(more).toEqual([]);
    expect(stepsOf(trace.trace)).toEqual([
      ['tool_call', `file_change\nchanges: ${JSON.stringify(changes)}`],
      ['observation', 'completed'],
      ['tool_call', 't\na: 1'],
      ['error_recovery', 'no such page'],
      ['tool_call', 'web_search\nquery: q'],
      ['tool_call', 'command_execution\ncommand: make'],
    ]);
    expect(trace.trace.steps[2].tool).toEqual({ name: 't', mcp_server: 's' });
    expect(trace.known.success).toBe(true);
    expect(trace.trace.metadata).toMatchObject({
      success: false,
      imported: { session_id: 'a', error: 'stopped', left_out: { 'item todo_list': 1, 'event error': 1 } },
    });
    expect(stepsOf(other.trace)).toEqual([['thought', 'Done.']]);
  });

  test('skips sessions in which nothing was said, and names lines that are none of a rollout', async () => {
    expect(
      await tracesOf([meta('s'), user('<environment_context>…'), line('turn_context', { model: 'm' })]),
    ).toEqual([]);
    const [{ error }] = await read([{ type: 'other', payload: {} }], { format: 'codex' });
    expect(error.message).toBe('not codex: it is no line of a rollout');
  });
});

describe('toTraces of logs of Inspect', () => {
  const log = JSON.parse(fs.readFileSync(path.join(folder, 'inspect.jsonl'), 'utf8'));
  const archive = fs.readFileSync(path.join(folder, 'inspect.eval'));
  const [sample] = log.samples;

  test('reads a log in JSON, an archive in pieces, and its samples one by one as the same traces', async () => {
    async function* pieces() {
      for (let at = 0; at < archive.length; at += 1000) yield archive.subarray(at, at + 1000);
    }
    const stepsOfAll = async (input) => (await tracesOf(input)).map((trace) => [trace.id, stepsOf(trace)]);
    const expected = await stepsOfAll(log);
    expect(expected).toHaveLength(4);
    for (const input of [archive, pieces(), log.samples]) expect(await stepsOfAll(input)).toEqual(expected);
    expect((await read(archive)).map(({ line, index }) => [line, index])).toEqual(
      [1, 2, 3, 4].map((line) => [line, null]),
    );
  });

  test.each([
    ['C', true, 1],
    ['I', false, 0],
    ['P', true, 0.5],
    ['N', false, 0],
    ['Yes', true, 1],
    ['false', false, 0],
    ['0.25', true, 0.25],
    [true, true, 1],
    [0, false, 0],
    [7, true, 1],
  ])('reads the score %j', async (value, success, confidence) => {
    const [{ trace, known }] = await read({
      ...sample,
      scores: { first: { value }, second: { value: 0.5 } },
    });
    expect([trace.metadata.success, trace.outcome.confidence]).toEqual([success, confidence]);
    expect(known).toEqual({ success: true, confidence: true });
    expect(trace.metadata.imported.scores).toEqual({ first: value, second: 0.5 });
  });

  test('takes a score that is no number for unknown, and an error without a score for a failure', async () => {
    const unread = await read({ ...sample, scores: { first: { value: { a: 1 } } } });
    expect(unread[0].known).toEqual({ success: false, confidence: false });
    expect(unread[0].trace.metadata.imported.left_out).toMatchObject({ 'unreadable reward': 1 });
    const failed = await read({ ...sample, scores: {}, error: { message: 'the sandbox is gone' } });
    expect(failed[0].known).toEqual({ success: true, confidence: false });
    expect(failed[0].trace.metadata).toMatchObject({
      success: false,
      imported: { error: 'the sandbox is gone' },
    });
  });

  test('reads attachments, redacted reasoning and refused calls, and the input where there is no message', async () => {
    const content = [
      { type: 'reasoning', reasoning: 'AAAA', redacted: true, summary: 'I look.' },
      { type: 'reasoning', reasoning: 'AAAA', redacted: true },
      { type: 'text', text: 'attachment://1' },
      { type: 'tool_use', id: '1', name: 'search', arguments: '{"query":"a"}', result: '', error: 'offline' },
    ];
    const messages = [
      {
        role: 'assistant',
        content,
        tool_calls: [{ id: '2', function: 'rm', arguments: {}, type: 'function' }],
      },
      {
        role: 'tool',
        content: '',
        tool_call_id: '2',
        function: 'rm',
        error: { type: 'approval', message: 'no' },
      },
    ];
    const trace = await traceOf({ ...sample, messages, attachments: { 1: 'A long text' } });
    expect(stepsOf(trace)).toEqual([
      ['thought', 'I look.'],
      ['thought', 'A long text'],
      ['tool_call', 'search\nquery: a'],
      ['error_recovery', 'offline'],
      ['tool_call', 'rm'],
      ['observation', 'no'],
    ]);
    expect(trace.metadata.imported.left_out).toEqual({ 'encrypted reasoning': 1 });
    for (const input of ['Say hello', [{ role: 'user', content: 'Say hello' }]]) {
      const { task } = await traceOf({ ...sample, messages: [], input });
      expect(task.objective).toBe('Say hello');
    }
  });

  test('names a sample that cannot be read, and reads the others', async () => {
    const broken = { ...sample, messages: [{ role: 'ghost', content: 'Boo' }] };
    const results = await read({ ...log, samples: [broken, sample] });
    expect(results.map(({ error, index }) => [index, error?.message])).toEqual([
      [null, 'not inspect: samples[0]: messages[0]: a message has a role that is not known'],
      [1, undefined],
    ]);
  });
});

describe('toTraces of runs of OpenHands', () => {
  let id = 0;
  const event = (rest) => ({ id: id++, timestamp: '2026-01-02T03:04:05.678901', source: 'agent', ...rest });
  const action = (action, args, rest) => event({ action, args, ...rest });
  const ask = (content) => action('message', { content }, { source: 'user' });
  const run = (args) =>
    action('run', { command: 'make', thought: '', blocking: false, hidden: false, ...args });
  const observe = (observation, extras, rest) =>
    event({ observation, content: 'x', extras, cause: id - 1, ...rest });
  const output = (history, rest) => ({
    instance_id: 'i-1',
    test_result: { git_patch: 'diff' },
    history,
    ...rest,
  });

  test('reads events of version 0 in an array, a line each, in a record and beside what they have caused', async () => {
    id = 0;
    const events = [
      action('system', { content: 'prompt' }),
      ask('Build it'),
      action('recall', { query: 'Build it' }, { source: 'user' }),
      observe('recall', {}),
      run({ thought: 'I build it.' }),
      observe('run', { command: 'make', metadata: { exit_code: 2 } }),
      action('think', { thought: 'Once more.' }),
      observe('think', {}),
      run(),
      observe('run', { command: 'make', metadata: { exit_code: 0 } }, { content: 'Error: none' }),
      event({ observation: 'agent_state_changed', content: '', extras: { agent_state: 'finished' } }),
      action('finish', { final_thought: 'It is built.', task_completed: 'true', thought: '' }),
    ];
    const steps = [
      ['thought', 'I build it.'],
      ['tool_call', 'run\ncommand: make'],
      ['error_recovery', 'x'],
      ['thought', 'Once more.'],
      ['error_recovery', 'run\ncommand: make'],
      ['observation', 'Error: none'],
      ['thought', 'It is built.'],
    ];
    const pairs = events.map((each) => [each]);
    const lines = events.map((each) => JSON.stringify(each)).join('\n');
    for (const input of [events, lines, [events], { trajectory: events }, output(events), output(pairs)]) {
      const [{ trace, known, format }, ...others] = await read(input);
      expect([others, format, known.success, trace.metadata.success]).toEqual([[], 'openhands', true, true]);
      expect([trace.task.objective, stepsOf(trace)]).toEqual(['Build it', steps]);
      expect(trace.metadata.imported.left_out).toMatchObject({ 'action recall': 1, 'observation think': 1 });
    }
    const twice = await tracesOf(`${lines}\n${lines}`);
    expect(twice.map((trace) => trace.steps.length)).toEqual([7, 7]);
  });

  test.each([
    ['an exit code', 'run', { metadata: { exit_code: 2 } }, 'error_recovery'],
    ['an exit code of old', 'run', { exit_code: 0 }, 'observation'],
    ['a command that still runs', 'run', { metadata: { exit_code: -1 } }, 'observation'],
    ['an error', 'error', {}, 'error_recovery'],
    ['an error of the browser', 'browse', { error: true }, 'error_recovery'],
    ['a user who refused it', 'user_rejected', {}, 'observation'],
  ])('judges a result of version 0 by %s', async (_, observation, extras, type) => {
    id = 0;
    expect(typesOf(await traceOf([ask('Build it'), run(), observe(observation, extras)]))).toEqual([
      'tool_call',
      type,
    ]);
  });

  test('takes the arguments that the model gave, where they are there', async () => {
    id = 0;
    const call = { id: 'c', function: { name: 'edit', arguments: '{"path":"a","text":"b"}' } };
    const model_response = { model: 'm', choices: [{ message: { tool_calls: [call] } }] };
    const tool_call_metadata = { function_name: 'edit', tool_call_id: 'c', model_response };
    const trace = await traceOf([
      ask('Edit a'),
      action('edit', { path: 'a', start: 1 }, { tool_call_metadata }),
    ]);
    expect(trace.steps[0]).toMatchObject({ content: 'edit\npath: a\ntext: b', tool: { name: 'edit' } });
    expect(trace.metadata.imported.model).toBe('m');
  });

  test.each([
    [{ test_result: { git_patch: 'diff', report: { resolved: true } } }, true, true],
    [{ test_result: { git_patch: 'diff', report: { resolved: false } } }, true, false],
    [{ error: 'AgentStuckInLoopError' }, true, false],
    [{}, false, false],
  ])('takes the success of a record from %j', async (rest, isKnown, success) => {
    id = 0;
    const [{ trace, known }] = await read(output([ask('Build it'), run()], rest));
    expect([known.success, trace.metadata.success]).toEqual([isKnown, success]);
    expect(trace.metadata.imported).toMatchObject({ instance_id: 'i-1', left_out: { git_patch: 1 } });
  });

  test('skips a record whose run has no history', async () => {
    expect(await read(output(null))).toEqual([]);
  });

  test('reads events of version 1', async () => {
    const uuid = (at, source, kind, rest) => ({
      id: `e-${at}`,
      timestamp: '2026-01-02T03:04:05',
      source,
      kind,
      ...rest,
    });
    const text = (each) => [{ type: 'text', text: each }];
    const act = (at, tool_name, rest) =>
      uuid(at, 'agent', 'ActionEvent', {
        ...{
          thought: [],
          action: { kind: 'X', path: 'a' },
          tool_name,
          tool_call_id: `c-${at}`,
          tool_call: null,
        },
        ...rest,
      });
    const answer = (at, kind, rest) =>
      uuid(`${at}r`, 'environment', kind, { tool_name: 'read', tool_call_id: `c-${at}`, ...rest });
    const message = (role, source, each) =>
      uuid(each, source, 'MessageEvent', { llm_message: { role, content: text(each) } });
    const trace = await traceOf([
      uuid(0, 'agent', 'SystemPromptEvent', { system_prompt: text('prompt'), tools: [] }),
      message('user', 'user', 'Read a'),
      act(1, 'read', {
        thinking_blocks: [{ type: 'thinking', thinking: 'Where?' }],
        thought: text('I read it.'),
      }),
      answer(1, 'ObservationEvent', { observation: { content: text('no a'), is_error: true } }),
      act(2, 'read'),
      answer(2, 'ObservationEvent', { observation: { output: 'Error: none', exit_code: 0 } }),
      act(3, 'read'),
      answer(3, 'UserRejectObservation', { rejection_reason: 'Error: not now' }),
      act(4, 'think', { action: { kind: 'ThinkAction', thought: 'Hm.' } }),
      answer(4, 'ObservationEvent', { tool_name: 'think', observation: { content: text('logged') } }),
      uuid(5, 'environment', 'Condensation', { forgotten_event_ids: [] }),
      uuid(6, 'environment', 'ConversationStateUpdateEvent', { key: 'k', value: 'v' }),
      message('assistant', 'agent', 'It is empty.'),
      message('user', 'user', 'Thanks'),
    ]);
    expect(stepsOf(trace)).toEqual([
      ['thought', 'Where?'],
      ['thought', 'I read it.'],
      ['tool_call', 'read\npath: a'],
      ['error_recovery', 'no a'],
      ['error_recovery', 'read\npath: a'],
      ['observation', 'Error: none'],
      ['tool_call', 'read\npath: a'],
      ['observation', 'Error: not now'],
      ['thought', 'Hm.'],
      ['thought', 'It is empty.'],
      ['observation', 'Thanks'],
    ]);
    expect(trace.metadata.imported.left_out).toEqual({
      ...{ 'system message': 1, 'answer of the program': 1, 'summary of a compaction': 1 },
      'event ConversationStateUpdateEvent': 1,
    });
  });
});

describe('toTraces of sessions of Gemini CLI', () => {
  const header = { sessionId: 's', projectHash: 'p', startTime: '2026-01-02T03:04:05.678Z', kind: 'main' };
  const message = (id, type, content, rest) => ({
    id,
    timestamp: '2026-01-02T03:04:06Z',
    type,
    content,
    ...rest,
  });
  const said = (id, text) => message(id, 'user', [{ text }]);
  const response = (id, each, name = 'read_file') => [{ functionResponse: { id, name, response: each } }];
  const calls = (...toolCalls) => ({
    toolCalls: toolCalls.map((call) => ({ name: 'read_file', args: {}, ...call })),
  });

  test('reads a session in one object and a record a line as the same trace', async () => {
    const messages = [
      said('1', '<session_context>\n…'),
      said('2', '/help'),
      said('3', 'Read a'),
      message('4', 'info', 'An update is there.'),
      message('5', 'gemini', 'I read it.', {
        thoughts: [{ subject: 'A', description: 'Where?' }],
        model: 'm',
      }),
    ];
    const lines = [header, ...messages.slice(0, 3), { $set: { lastUpdated: 'x' } }, ...messages.slice(3)];
    const expected = [
      ['thought', 'A\nWhere?'],
      ['thought', 'I read it.'],
    ];
    const whole = { ...header, messages };
    for (const input of [whole, lines, lines.map((line) => JSON.stringify(line)).join('\n')]) {
      const [{ trace, format }, ...others] = await read(input);
      expect([others, format, trace.task.objective, stepsOf(trace)]).toEqual([
        [],
        'gemini-cli',
        'Read a',
        expected,
      ]);
      expect(trace.metadata).toMatchObject({
        created_at: header.startTime,
        imported: { session_id: 's', model: 'm' },
      });
      expect(trace.metadata.imported.left_out).toEqual({
        ...{ 'context of the program': 1, 'command of the program': 1, 'message info': 1 },
      });
    }
    const two = await tracesOf([...lines, { ...header, sessionId: 't' }, said('1', 'Read b')]);
    expect(two.map(({ task }) => task.objective)).toEqual(['Read a', 'Read b']);
  });

  test('takes what a later record says in place of what was', async () => {
    const trace = await traceOf([
      ...[header, said('1', 'Read a'), message('2', 'gemini', 'I re'), message('2', 'gemini', 'I read it.')],
      ...[said('3', 'No'), message('4', 'gemini', 'Fine.'), { $rewindTo: '3' }, said('5', 'Thanks')],
    ]);
    expect(stepsOf(trace)).toEqual([
      ['thought', 'I read it.'],
      ['observation', 'Thanks'],
    ]);
    expect(trace.metadata.imported.left_out).toEqual({ 'message that was taken back': 2 });
    const $set = { messages: [said('9', 'Read b')] };
    expect((await traceOf([header, said('1', 'Read a'), { $set }, said('9', 'Read c')])).task.objective).toBe(
      'Read c',
    );
  });

  test('judges the result of each call, which is there once', async () => {
    const trace = await traceOf([
      ...[header, said('1', 'Read a')],
      message(
        '2',
        'gemini',
        '',
        calls({ id: 'a', status: 'error', result: response('a', { error: 'no a' }) }),
      ),
      message('3', 'user', response('a', { error: 'no a' })),
      message(
        '4',
        'gemini',
        '',
        calls({ id: 'b', status: 'success', result: response('b', { output: 'Error: x' }) }),
      ),
      message(
        '5',
        'gemini',
        '',
        calls({ id: 'c', status: 'cancelled', result: response('c', { error: 'not now' }) }),
      ),
      message('6', 'gemini', '', calls({ id: 'd', status: 'executing' })),
    ]);
    expect(stepsOf(trace)).toEqual([
      ['tool_call', 'read_file'],
      ['error_recovery', 'no a'],
      ['error_recovery', 'read_file'],
      ['observation', 'Error: x'],
      ['tool_call', 'read_file'],
      ['observation', 'not now'],
      ['tool_call', 'read_file'],
    ]);
    expect(trace.metadata.imported.left_out).toEqual({ 'call without a result': 1 });
  });

  test.each([
    ['0', 'observation'],
    ['127', 'error_recovery'],
  ])('judges a shell by its exit code of %s', async (code, type) => {
    const output = `Output: x\nExit Code: ${code}`;
    const result = response('a', { output }, 'run_shell_command');
    const call = calls({ id: 'a', name: 'run_shell_command', status: 'success', result });
    expect(typesOf(await traceOf([header, said('1', 'Run'), message('2', 'gemini', '', call)]))).toEqual([
      ...['tool_call', type],
    ]);
  });

  test('reads checkpoints, with and without their contents in an object', async () => {
    const content = (role, ...parts) => ({ role, parts });
    const history = [
      content('user', { text: 'This is the Gemini CLI. We are setting up the context for our chat.\n…' }),
      content('model', { text: 'Got it. Thanks for the context!' }),
      content('user', { text: 'Read a' }),
      content(
        'model',
        { text: 'Where?', thought: true },
        { functionCall: { name: 'read_file', args: { path: 'a' } } },
      ),
      content('user', { functionResponse: { name: 'read_file', response: { error: 'no a' } } }),
      content('model', { text: 'There is none.' }),
    ];
    for (const input of [history, { history, authType: 'gemini-api-key' }, JSON.stringify(history)]) {
      const [{ trace, format }, ...others] = await read(input);
      expect([others, format, trace.task.objective]).toEqual([[], 'gemini-cli', 'Read a']);
      expect(stepsOf(trace)).toEqual([
        ['thought', 'Where?'],
        ['tool_call', 'read_file\npath: a'],
        ['error_recovery', 'no a'],
        ['thought', 'There is none.'],
      ]);
    }
  });

  test('skips sessions in which nothing was said, and names records that are none of a session', async () => {
    expect(await tracesOf([header, said('1', '<session_context>…')])).toEqual([]);
    const [{ error }] = await read([{ type: 'other' }], { format: 'gemini-cli' });
    expect(error.message).toBe('not gemini-cli: it is no record of a session');
  });
});

describe('toTraces of sessions of Pi and of the Hub of Hugging Face', () => {
  const timestamp = '2026-01-02T03:04:05.678Z';
  const header = { type: 'session', version: 3, id: 's', timestamp, cwd: '/work' };
  const entry = (id, parentId, message) => ({ type: 'message', id, parentId, timestamp, message });
  const user = (text) => ({ role: 'user', content: [{ type: 'text', text }] });
  const reply = (...content) => ({ role: 'assistant', content, model: 'm', stopReason: 'stop' });
  const text = (each) => ({ type: 'text', text: each });
  const call = (id) => ({ type: 'toolCall', id, name: 'bash', arguments: { command: 'make' } });
  const result = (toolCallId, each, isError) => ({
    role: 'toolResult',
    toolCallId,
    content: [text(each)],
    isError,
  });

  test('keeps the branch of the last entry', async () => {
    const trace = await traceOf([
      header,
      entry('1', null, user('Build it')),
      entry('2', '1', reply(text('I try one way.'))),
      entry('3', '2', user('No')),
      { type: 'branch_summary', id: '4', parentId: '1', timestamp, fromId: '3', summary: '…' },
      entry('5', '4', reply(text('I try another.'))),
      { type: 'label', id: '6', parentId: '5', timestamp, targetId: '1', label: 'x' },
    ]);
    expect(stepsOf(trace)).toEqual([['thought', 'I try another.']]);
    expect(trace.metadata).toMatchObject({
      ...{ framework: 'pi', task_domain: 'code', created_at: timestamp },
      imported: {
        left_out: { 'entry of another branch': 2, 'summary of a compaction': 1, 'entry label': 1 },
        ...{ session_id: 's', model: 'm' },
      },
    });
  });

  test('reads calls and results, commands of the user and messages of extensions, of all versions', async () => {
    const messages = [
      { role: 'system', content: 'prompt' },
      user('Build it'),
      reply({ type: 'thinking', thinking: 'How?' }, call('1')),
      result('1', 'no rule', true),
      reply(call('2')),
      result('2', 'Error: none', false),
      reply(call('3')),
      result('3', 'x\n\nCommand aborted', true),
      { role: 'bashExecution', command: 'ls', output: 'a', exitCode: 0 },
      { role: 'hookMessage', content: 'Mind the gap.' },
      { role: 'compactionSummary', summary: '…' },
      reply(call('4')),
    ];
    const steps = [
      ['thought', 'How?'],
      ['tool_call', 'bash\ncommand: make'],
      ['error_recovery', 'no rule'],
      ['error_recovery', 'bash\ncommand: make'],
      ['observation', 'Error: none'],
      ['tool_call', 'bash\ncommand: make'],
      ['observation', 'x\n\nCommand aborted'],
      ['observation', 'ls\na'],
      ['observation', 'Mind the gap.'],
      ['tool_call', 'bash\ncommand: make'],
    ];
    const first = messages.map((message) => ({ type: 'message', timestamp, message }));
    const third = messages.map((message, at) => entry(`${at}`, at === 0 ? null : `${at - 1}`, message));
    const results = await read([header, ...first, { ...header, id: 't' }, ...third]);
    expect(results.map(({ format, trace }) => [format, trace.task.objective, stepsOf(trace)])).toEqual(
      Array(2).fill(['pi', 'Build it', steps]),
    );
    expect(results[1].trace.metadata.imported.left_out).toEqual({
      ...{ 'system message': 1, 'summary of a compaction': 1, 'call without a result': 1 },
    });
  });

  test('reads the Session Trace Simple Format', async () => {
    const said = (message) => ({ type: 'message', message });
    const lines = [
      { type: 'session', harness: 'my-agent', id: 'abc123', name: 'what time is it' },
      said({ role: 'user', content: 'what time is it?', timestamp: 1_767_323_045_678 }),
      said({
        ...{ role: 'assistant', content: '', reasoningContent: 'The tool knows.', model: 'm' },
        toolCalls: [{ id: 't1', function: { name: 'get_time', arguments: '{"zone":"UTC"}' } }],
      }),
      said({ role: 'tool', toolCallId: 't1', content: '15:00' }),
      said({ role: 'assistant', content: 'it is 15:00 UTC' }),
    ];
    const trace = await traceOf(lines.map((line) => JSON.stringify(line)).join('\n'));
    expect(stepsOf(trace)).toEqual([
      ['thought', 'The tool knows.'],
      ['tool_call', 'get_time\nzone: UTC'],
      ['observation', '15:00'],
      ['thought', 'it is 15:00 UTC'],
    ]);
    expect(trace.task.objective).toBe('what time is it?');
    expect(trace.metadata).toMatchObject({
      ...{ framework: 'my-agent', task_domain: 'default', created_at: '2026-01-02T03:04:05.678Z' },
      imported: { format: 'pi', session_id: 'abc123', name: 'what time is it', model: 'm' },
    });
  });

  test('skips sessions in which nothing was said, and names what is no entry', async () => {
    expect(await tracesOf([header, { type: 'model_change', id: '1', parentId: null, timestamp }])).toEqual(
      [],
    );
    const [{ error }] = await read([{ type: 'other' }], { format: 'pi' });
    expect(error.message).toBe('not pi: it is no entry of a session');
    const [{ error: ghost }] = await read([header, entry('1', null, { role: 'ghost', content: 'Boo' })]);
    expect(ghost.message).toBe('not pi: a message has a role that is not known');
  });
});

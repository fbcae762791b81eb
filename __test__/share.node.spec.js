'use strict';

// `kp-score share` writes folders that those load for whom they are made: Hugging Face's `datasets`, `atif`, `openai`, a registry.

const { execFileSync } = require('node:child_process');
const fs = require('node:fs');
const path = require('node:path');

const { kpScore, linesOf } = require('./support/kp-score.js');
const { python, testWithPackages } = require('./support/python.js');
const { scratchDirectory } = require('./support/scratch.js');

const directory = scratchDirectory('share');
const jsonLines = (...records) => records.map((record) => `${JSON.stringify(record)}\n`).join('');

/** Two turns and a call with its result, in the words of each agent. */
const SESSIONS = {
  'claude-code': (id) => {
    const line = (uuid, parentUuid, type, content) => ({
      ...{
        type,
        uuid,
        parentUuid,
        sessionId: id,
        cwd: '/home/zorblax/shop',
        timestamp: '2026-10-01T09:00:00.000Z',
      },
      message: { role: type, content },
    });
    const call = {
      type: 'tool_use',
      id: 'toolu_000000000001',
      name: 'Bash',
      input: { command: 'make test' },
    };
    return jsonLines(
      line(`${id}1`, null, 'user', `Fix the build of ${id}`),
      line(`${id}2`, `${id}1`, 'assistant', [{ type: 'text', text: 'I look.\u2028' }, call]),
      line(`${id}3`, `${id}2`, 'user', [
        { type: 'tool_result', tool_use_id: 'toolu_000000000001', content: 'ok \ud83d bob@example.com' },
      ]),
      line(`${id}4`, `${id}3`, 'assistant', [{ type: 'text', text: 'It is fixed.' }]),
    );
  },
  codex: (id) => {
    const line = (type, payload) => ({ timestamp: '2026-10-01T09:00:00.000Z', type, payload });
    const message = (role, type, text) => ({ type: 'message', role, content: [{ type, text }] });
    return jsonLines(
      line('session_meta', {
        id,
        timestamp: '2026-10-01T09:00:00.000Z',
        cwd: '/work',
        originator: 'codex_cli',
      }),
      line('event_msg', { type: 'user_message', message: `Write the parser ${id}` }),
      line('response_item', message('user', 'input_text', `Write the parser ${id}`)),
      line('response_item', {
        type: 'function_call',
        name: 'shell',
        call_id: 'c1',
        arguments: '{"command":["ls"]}',
      }),
      line('response_item', { type: 'function_call_output', call_id: 'c1', output: 'parser.rs' }),
      line('response_item', message('assistant', 'output_text', 'It is written.')),
    );
  },
  pi: (id) => {
    const line = (at, message) => ({
      ...{ type: 'message', id: String(at), parentId: at > 1 ? String(at - 1) : null },
      ...{ timestamp: '2026-10-01T09:00:00.000Z', message },
    });
    const call = { type: 'toolCall', id: 'call_1', name: 'bash', arguments: { command: 'ls' } };
    return jsonLines(
      { type: 'session', version: 3, id, timestamp: '2026-10-01T09:00:00.000Z', cwd: '/work' },
      line(1, { role: 'user', content: [{ type: 'text', text: `Draw the map ${id}` }] }),
      line(2, { role: 'assistant', content: [call] }),
      line(3, { role: 'toolResult', toolCallId: 'call_1', content: [{ type: 'text', text: 'map.svg' }] }),
      line(4, { role: 'assistant', content: [{ type: 'text', text: 'It is drawn.' }] }),
    );
  },
  droid: (id) => {
    const line = (at, role, content) => ({ type: 'message', id: `${id}${at}`, message: { role, content } });
    const call = { type: 'tool_use', id: 'toolu_000000000001', name: 'Read', input: { path: 'a.txt' } };
    return jsonLines(
      { type: 'session_start', id, version: 2, cwd: '/work' },
      line(1, 'user', [{ type: 'text', text: `Count the words ${id}` }]),
      line(2, 'assistant', [call]),
      line(3, 'user', [{ type: 'tool_result', tool_use_id: 'toolu_000000000001', content: 'one two' }]),
      line(4, 'assistant', [{ type: 'text', text: 'Two words.' }]),
    );
  },
  hermes: (id) =>
    jsonLines({
      ...{ id, source: 'cli', model: 'm', system_prompt: 'Be brief.', started_at: 1790000000.5 },
      messages: [
        { role: 'user', content: `Sort the list ${id}`, timestamp: 1790000001 },
        {
          ...{ role: 'assistant', content: '', timestamp: 1790000002 },
          tool_calls: [
            { id: 'c1', type: 'function', function: { name: 'sort', arguments: '{"list":[2,1]}' } },
          ],
        },
        { role: 'tool', tool_call_id: 'c1', content: '[1,2]', timestamp: 1790000003 },
        { role: 'assistant', content: 'It is sorted.', timestamp: 1790000004 },
      ],
    }),
  // Of no agent that `datasets` knows.
  'qwen-code': (id) => {
    const line = (uuid, parentUuid, type, parts) => ({
      ...{ uuid, parentUuid, sessionId: id, type, cwd: '/work', timestamp: '2026-10-01T09:00:00.000Z' },
      message: { role: type === 'assistant' ? 'model' : 'user', parts },
    });
    const result = { functionResponse: { id: 'f1', name: 'ls', response: { output: 'a b' } } };
    return jsonLines(
      line('1', null, 'user', [{ text: `List the files ${id}` }]),
      line('2', '1', 'assistant', [{ functionCall: { id: 'f1', name: 'ls', args: { path: '.' } } }]),
      line('3', '2', 'tool_result', [result]),
      line('4', '3', 'assistant', [{ text: 'There are two.' }]),
    );
  },
};

const logs = path.join(directory, 'logs');
const AGENTS = Object.keys(SESSIONS);
beforeAll(() => {
  for (const agent of AGENTS) {
    fs.mkdirSync(path.join(logs, agent), { recursive: true });
    for (const number of [1, 2]) {
      fs.writeFileSync(
        path.join(logs, agent, `${agent}-${number}.jsonl`),
        SESSIONS[agent](`${agent}-${number}`),
      );
    }
  }
});

/** Shares all sessions; returns the folder and its manifest. */
async function shareAs(form, ...args) {
  const folder = path.join(directory, `${form}${args.length}`);
  const ended = await kpScore(['share', '100', logs, '-o', folder, '--as', form, '--yes', ...args]);
  expect(ended).toMatchObject({ code: 0 });
  const manifest = linesOf(fs.readFileSync(path.join(folder, 'manifest.jsonl'), 'utf8')).map((line) =>
    JSON.parse(line),
  );
  return { folder, manifest };
}

const testReaders = testWithPackages('datasets', 'teich', 'openai', 'atif', 'pydantic');

describe('share', () => {
  const FORMS = { native: [], messages: [], atif: [], knowledgepulse: ['--success', 'yes'] };
  const manifests = {};
  /** The rows that readers in Python make of the folder of each form. */
  let rows;
  beforeAll(async () => {
    if (testReaders !== test) return;
    const script = [path.join(__dirname, 'support', 'read-shared.py')];
    for (const [form, args] of Object.entries(FORMS)) {
      const { folder, manifest } = await shareAs(form, ...args);
      manifests[form] = manifest;
      script.push(`${form}=${folder}`);
    }
    rows = JSON.parse(execFileSync(python, script, { encoding: 'utf8', maxBuffer: 1e8 }));
  });

  testReaders.each(Object.keys(FORMS))('as %s gives each session a row, by its readers', (form) => {
    expect(rows[form]).toHaveLength(2 * AGENTS.length);
  });

  testReaders('as native gives datasets every message, without secrets', () => {
    const harnesses = { 'claude-code': 'claude_code', 'qwen-code': 'pi' };
    for (const { agent, file } of manifests.native) {
      const row = rows.native.find(({ file_path }) => file_path.endsWith(file));
      expect(row).toMatchObject({ harness: harnesses[agent] ?? agent });
      const roles = row.messages.map(({ role }) => role);
      expect(roles).toEqual(expect.arrayContaining(['user', 'assistant', 'tool']));
      expect(JSON.stringify(row)).not.toMatch(/zorblax|bob@/);
    }
  });

  testReaders('as messages lists the tool that each session calls', () => {
    for (const { messages, tools } of rows.messages) {
      const called = messages.flatMap(({ tool_calls }) => tool_calls ?? []).map((call) => call.function.name);
      expect(called).toHaveLength(1);
      expect(tools.map((tool) => tool.function.name)).toEqual(called);
    }
  });
});

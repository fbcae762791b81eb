'use strict';

// `kp-score share` writes folders that those load for whom they are made: Hugging Face's `datasets`, `atif`, `openai`, the chat templates
// of trainers, a registry.

const { execFileSync } = require('node:child_process');
const fs = require('node:fs');
const path = require('node:path');

const { kpScore, linesOf, results } = require('./support/kp-score.js');
const { readTraces, root } = require('./support/paths.js');
const { python, testWithPackages } = require('./support/python.js');
const { scratchDirectory } = require('./support/scratch.js');
const { claudeSession } = require('./support/sessions.js');

const directory = scratchDirectory('share');
const logs = path.join(directory, 'logs');

/** A recorded session of each agent. `datasets` does not know the last. */
const SESSIONS = {
  'claude-code': 'published/claude-code.jsonl',
  codex: 'codex.jsonl',
  pi: 'pi.jsonl',
  droid: 'agents/droid/sessions/-work-shop/3d1c.jsonl',
  hermes: 'agents/hermes/export.jsonl',
  'qwen-code': 'agents/qwen-code/projects/-work-shop/chats/6f1e.jsonl',
};
beforeAll(() => {
  fs.mkdirSync(logs);
  for (const [agent, recording] of Object.entries(SESSIONS)) {
    const session = fs.readFileSync(path.join(__dirname, 'formats', recording), 'utf8');
    // Recordings of the same task would be like each other, and one of them left out.
    const told =
      agent === 'codex'
        ? session.replaceAll('notes', 'tides').replaceAll('buy milk', 'low at noon')
        : session;
    fs.writeFileSync(path.join(logs, `${agent}.jsonl`), told);
  }
  const subagents = path.join(logs, 'claude-code', 'subagents');
  fs.mkdirSync(subagents, { recursive: true });
  fs.writeFileSync(path.join(subagents, 'agent-a1.jsonl'), subagent());
});

/** A sub-agent of the session of Claude Code, about something else. */
function subagent() {
  const session = fs.readFileSync(path.join(__dirname, 'formats', SESSIONS['claude-code']), 'utf8');
  const { sessionId } = JSON.parse(linesOf(session)[0]);
  const call = { type: 'tool_use', id: 'toolu_a1', name: 'Glob', input: { pattern: '*.css' } };
  const result = { type: 'tool_result', tool_use_id: 'toolu_a1', content: 'ruby.css' };
  const said = [
    ['user', 'Find all style sheets'],
    ['assistant', [call]],
    ['user', [result]],
    ['assistant', [{ type: 'text', text: 'There is one: ruby.css' }]],
  ];
  const timestamp = '2025-09-29T17:09:00.000Z';
  return claudeSession(said, { isSidechain: true, agentId: 'a1', sessionId, timestamp });
}

/** The rows that a manifest names: of each session, and of its sub-agents. */
const rowsOf = (manifest) => manifest.flatMap((line) => [line, ...line.subagents]);

/** Shares two sessions and then all others into the same folder; returns it, and its manifest. */
async function shareAs(form, ...args) {
  const folder = path.join(directory, `${form}${args.length}`);
  for (const count of ['2', '100']) {
    const ended = await kpScore(['share', count, logs, '-o', folder, '--as', form, '--yes', ...args]);
    expect(ended).toMatchObject({ code: 0 });
  }
  return { folder, manifest: readTraces(path.join(folder, 'manifest.jsonl')) };
}

const testTemplates = testWithPackages('trl', 'jinja2');
const testReaders = testWithPackages('datasets', 'teich', 'openai', 'atif', 'pydantic');

describe('share', () => {
  const FORMS = { native: [], messages: [], atif: [], knowledgepulse: ['--success', 'yes'] };
  const [manifests, folders] = [{}, {}];
  /** The rows that readers in Python make of the folder of each form, and the fields of its card. */
  let found;
  beforeAll(async () => {
    if (testReaders !== test) return;
    const script = [path.join(__dirname, 'support', 'read-shared.py')];
    for (const [form, args] of Object.entries(FORMS)) {
      const { folder, manifest } = await shareAs(form, ...args);
      manifests[form] = manifest;
      folders[form] = folder;
      script.push(`${form}=${folder}`);
    }
    found = JSON.parse(execFileSync(python, script, { encoding: 'utf8', maxBuffer: 1e8 }));
  });

  testReaders.each(Object.keys(FORMS))(
    'share as %s gives readers a row for each line and sub-agent',
    (form) => {
      expect(new Set(manifests[form].map(({ agent }) => agent))).toEqual(new Set(Object.keys(SESSIONS)));
      const expected = rowsOf(manifests[form]);
      // The recorded session of one more agent has a sub-agent.
      expect(expected).toHaveLength(manifests[form].length + 2);
      const ids = (list, name) => list.map((row) => row[name]).sort();
      const name = form === 'knowledgepulse' ? 'id' : 'session_id';
      expect(ids(found[form].rows, name)).toEqual(ids(expected, 'session_id'));
    },
  );

  testReaders.each(Object.keys(FORMS))('the card of share as %s is one for huggingface_hub', (form) => {
    expect(found[form].card).toMatchObject({
      license: 'unknown',
      pretty_name: 'Sessions of AI agents',
      size_categories: ['n<1K'],
      task_categories: ['text-generation'],
      tags: expect.arrayContaining(['agent', 'tool-use']),
      configs: [{ config_name: 'default' }, { config_name: 'manifest' }],
    });
  });

  testReaders.each(Object.keys(FORMS))(
    'kp-score reads share as %s the same from the folder and from the Parquet of datasets',
    async (form) => {
      const told = async (input) => {
        const rows = await results([input]);
        // Of native form the column of messages is read, which datasets has made.
        const names = form === 'native' ? ['objective'] : ['turns', 'steps', 'success', 'objective'];
        const words = (row) => names.map((name) => row[name]).join(' ');
        return rows.map((row) => words(row).replace(/\s\[image_url\]/, '')).sort();
      };
      const [folder, parquet] = [await told(folders[form]), await told(`${folders[form]}.parquet`)];
      expect(folder).toHaveLength(found[form].rows.length);
      expect(parquet).toEqual(folder);
    },
  );

  testReaders('share as native gives datasets every message, without secrets', () => {
    const harnesses = { 'claude-code': 'claude_code', 'qwen-code': 'pi' };
    for (const { agent, file } of manifests.native) {
      const row = found.native.rows.find(({ file_path }) => file_path.endsWith(file));
      expect(row).toMatchObject({ harness: harnesses[agent] ?? agent });
      const roles = row.messages.map(({ role }) => role);
      expect(roles).toEqual(expect.arrayContaining(['user', 'assistant', 'tool']));
      expect(JSON.stringify(row)).not.toMatch(/home\/dev/);
    }
  });

  testTemplates('chat templates of TRL render share as messages, but for three', async () => {
    const { folder } = await shareAs('messages', '--success', 'yes');
    const script = path.join(__dirname, 'support', 'render-templates.py');
    const printed = execFileSync(python, [script, path.join(folder, 'messages.jsonl')], { encoding: 'utf8' });
    const { templates, refused, without_tools, without_calls } = JSON.parse(printed);
    expect(templates - without_tools.length).toBeGreaterThan(40);
    // The first wants arguments as a text, the others one call a message.
    const refusing = ['deepseekv3', 'llama3_1', 'llama3_2'];
    expect(refusing).toEqual(expect.arrayContaining(Object.keys(refused)));
    // It prints calls only of messages whose content is null.
    const leaving = ['deepseek_r1_distill', 'deepseek_r1_distill_training'];
    expect(leaving).toEqual(expect.arrayContaining(without_calls));
  });

  testReaders('share as messages lists the tools that each session calls, once each', () => {
    const sessions = new Set(manifests.messages.map((line) => line.session_id));
    const rows = found.messages.rows.filter((row) => sessions.has(row.session_id));
    for (const { messages, tools } of rows) {
      const called = messages.flatMap(({ tool_calls }) => tool_calls ?? []).map((call) => call.function.name);
      expect(called).not.toEqual([]);
      expect(tools.map((tool) => tool.function.name).sort()).toEqual([...new Set(called)].sort());
    }
  });
});

test('share of the API takes null for the sessions of this machine', () => {
  const home = path.join(directory, 'home');
  const project = path.join(home, '.claude', 'projects', '-work-shop');
  fs.mkdirSync(path.dirname(project), { recursive: true });
  fs.cpSync(logs, project, { recursive: true });
  const script = `require(${JSON.stringify(root)}).share(null, process.argv[1])
    .then(({ sessions }) => console.log(JSON.stringify(sessions.map(({ agent }) => agent))))`;
  const env = { PATH: process.env.PATH, HOME: home, USERPROFILE: home };
  const options = { encoding: 'utf8', env, cwd: directory };
  const printed = execFileSync(process.execPath, ['-e', script, path.join(directory, 'machine')], options);
  expect(JSON.parse(printed)).toEqual(['claude-code']);
});

testWithPackages('atif')('the models of atif validate the trajectory of the recordings', () => {
  const file = path.join(__dirname, 'formats', 'trial', 'agent', 'trajectory.json');
  const script = 'import sys; from atif import Trajectory; Trajectory.model_validate_json(sys.stdin.read())';
  execFileSync(python, ['-c', script], { input: fs.readFileSync(file), stdio: ['pipe', 'pipe', 'pipe'] });
});

'use strict';

// `kp-score share` writes folders that those load for whom they are made: Hugging Face's `datasets`, `atif`, `openai`, the chat templates
// of trainers, a registry.

const { execFileSync } = require('node:child_process');
const fs = require('node:fs');
const path = require('node:path');

const { kpScore, linesOf } = require('./support/kp-score.js');
const { python, testWithPackages } = require('./support/python.js');
const { scratchDirectory } = require('./support/scratch.js');

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

const testTemplates = testWithPackages('trl', 'jinja2');
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

  testReaders.each(Object.keys(FORMS))('share as %s gives each session a row, by its readers', (form) => {
    expect(new Set(manifests[form].map(({ agent }) => agent))).toEqual(new Set(Object.keys(SESSIONS)));
    expect(rows[form]).toHaveLength(manifests[form].length);
  });

  testReaders('share as native gives datasets every message, without secrets', () => {
    const harnesses = { 'claude-code': 'claude_code', 'qwen-code': 'pi' };
    for (const { agent, file } of manifests.native) {
      const row = rows.native.find(({ file_path }) => file_path.endsWith(file));
      expect(row).toMatchObject({ harness: harnesses[agent] ?? agent });
      const roles = row.messages.map(({ role }) => role);
      expect(roles).toEqual(expect.arrayContaining(['user', 'assistant', 'tool']));
      expect(JSON.stringify(row)).not.toMatch(/home\/dev/);
    }
  });

  testReaders.each(['native', 'messages', 'atif'])('a row of %s has the session_id of its line', (form) => {
    const ids = (list) => list.map(({ session_id }) => session_id).sort();
    expect(ids(rows[form])).toEqual(ids(manifests[form]));
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
    for (const { messages, tools } of rows.messages) {
      const called = messages.flatMap(({ tool_calls }) => tool_calls ?? []).map((call) => call.function.name);
      expect(called).not.toEqual([]);
      expect(tools.map((tool) => tool.function.name).sort()).toEqual([...new Set(called)].sort());
    }
  });
});

testWithPackages('atif')('the models of atif validate the trajectory of the recordings', () => {
  const file = path.join(__dirname, 'formats', 'trial', 'agent', 'trajectory.json');
  const script = 'import sys; from atif import Trajectory; Trajectory.model_validate_json(sys.stdin.read())';
  execFileSync(python, ['-c', script], { input: fs.readFileSync(file), stdio: ['pipe', 'pipe', 'pipe'] });
});

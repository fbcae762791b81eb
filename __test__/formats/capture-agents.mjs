// Prints the session that an agent writes of a task, whose model is a server of this program: a command that fails, one that does not,
// and the answer.
//
//     capture-agents.mjs codex|codex-exec|gemini|pi PROGRAM
//
// `codex.jsonl`, `codex-exec.jsonl`, `gemini-cli.jsonl` and `pi.jsonl` are what it printed with @openai/codex 0.169.0,
// @google/gemini-cli 0.61.0 (both Apache-2.0) and @mariozechner/pi-coding-agent 0.73.1 (MIT). The second is what `codex exec --json` prints.
// Long texts, which are prompts of the programs, are cut. No test runs it: these packages are large.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, openSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';

const TASK = 'What do my notes say?';
const MODEL = 'gemini-2.5-flash';
const TEXT_LENGTH = 300;

const [, , agent, program] = process.argv;
const work = mkdtempSync(path.join(tmpdir(), 'work-'));
const home = mkdtempSync(path.join(tmpdir(), 'home-'));
writeFileSync(path.join(work, 'notes.txt'), 'buy milk\n');

const codex = {
  tool: (cmd) => ({ name: 'exec_command', args: { cmd } }),
  path: '/responses',
  write: writeResponses,
  files: /rollout-.*jsonl$/,
  start(url) {
    const provider = `[model_providers.local]\nname = "local"\nbase_url = "${url}/v1"\n`;
    const config = `model = "${MODEL}"\nmodel_provider = "local"\n${provider}`;
    writeFileSync(path.join(home, 'config.toml'), config);
    const args = ['--json', '--skip-git-repo-check', '--dangerously-bypass-approvals-and-sandbox'];
    return { args: ['exec', ...args, TASK], env: { CODEX_HOME: home } };
  },
};
const AGENTS = {
  codex,
  'codex-exec': { ...codex, files: /^printed\.jsonl$/ },
  gemini: {
    tool: (command) => ({ name: 'run_shell_command', args: { command } }),
    path: ':streamGenerateContent',
    write: writeGemini,
    files: /chats.session-.*jsonl?$/,
    start(url) {
      mkdirSync(path.join(home, '.gemini'));
      const settings = { security: { auth: { selectedType: 'gemini-api-key' } } };
      writeFileSync(path.join(home, '.gemini', 'settings.json'), JSON.stringify(settings));
      const env = { HOME: home, GEMINI_API_KEY: 'key', GOOGLE_GEMINI_BASE_URL: url };
      return { args: ['-m', MODEL, '--yolo', '--skip-trust', '-p', TASK], env };
    },
  },
  pi: {
    tool: (command) => ({ name: 'bash', args: { command } }),
    path: '/chat/completions',
    write: writeChat,
    files: /sessions.*jsonl$/,
    start(url) {
      const models = [{ id: MODEL, reasoning: true }];
      const local = { baseUrl: `${url}/v1`, apiKey: 'key', api: 'openai-completions', models };
      writeFileSync(path.join(home, 'models.json'), JSON.stringify({ providers: { local } }));
      const args = ['--provider', 'local', '--model', MODEL, '-p', TASK];
      return { args, env: { PI_CODING_AGENT_DIR: home, PI_OFFLINE: '1' } };
    },
  },
};

const { tool, path: endpoint, write, files, start } = AGENTS[agent];
const replies = [
  {
    thought: '**Looking**\n\nThe folder may have them.',
    text: 'I look for the notes.',
    call: { id: 'call_1', ...tool('cat missing.txt') },
  },
  { call: { id: 'call_2', ...tool('cat notes.txt') } },
  { text: 'The notes say: buy milk.' },
];

function writeResponses({ thought, text, call }) {
  const content = [{ type: 'output_text', text, annotations: [] }];
  const output = [
    thought && { type: 'reasoning', id: 'rs_1', summary: [{ type: 'summary_text', text: thought }] },
    text && { type: 'message', id: 'msg_1', status: 'completed', role: 'assistant', content },
    call && {
      type: 'function_call',
      id: 'fc_1',
      call_id: call.id,
      name: call.name,
      arguments: JSON.stringify(call.args),
    },
  ].filter(Boolean);
  const usage = { input_tokens: 5, output_tokens: 5, total_tokens: 10 };
  const response = { id: 'resp_1', object: 'response', status: 'completed', model: MODEL, output, usage };
  return [
    { type: 'response.created', response },
    ...output.map((item, output_index) => ({ type: 'response.output_item.done', output_index, item })),
    { type: 'response.completed', response },
  ];
}

function writeChat({ thought, text, call }) {
  const calls = call && [
    {
      index: 0,
      id: call.id,
      type: 'function',
      function: { name: call.name, arguments: JSON.stringify(call.args) },
    },
  ];
  const delta = { role: 'assistant', content: text, reasoning_content: thought, tool_calls: calls };
  const chunk = { id: 'chatcmpl-1', object: 'chat.completion.chunk', model: MODEL };
  const usage = { prompt_tokens: 5, completion_tokens: 5, total_tokens: 10 };
  return [
    { ...chunk, choices: [{ index: 0, delta }] },
    { ...chunk, usage, choices: [{ index: 0, delta: {}, finish_reason: call ? 'tool_calls' : 'stop' }] },
  ];
}

function writeGemini({ thought, text, call }) {
  const parts = [
    thought && { text: thought, thought: true },
    text && { text },
    call && { functionCall: call },
  ].filter(Boolean);
  const usageMetadata = { promptTokenCount: 5, candidatesTokenCount: 5, totalTokenCount: 10 };
  return [
    { candidates: [{ index: 0, content: { role: 'model', parts }, finishReason: 'STOP' }], usageMetadata },
  ];
}

const server = createServer(async (request, response) => {
  for await (const _ of request);
  const reply = request.url.includes(endpoint) ? replies.shift() : undefined;
  const events = reply ? write(reply) : [];
  response.writeHead(reply ? 200 : 404, { 'content-type': 'text/event-stream' });
  for (const event of events) response.write(`data: ${JSON.stringify(event)}\n\n`);
  response.end();
});
server.listen(0, '127.0.0.1');
await once(server, 'listening');

const { args, env } = start(`http://127.0.0.1:${server.address().port}`);
const stdio = ['ignore', openSync(path.join(home, 'printed.jsonl'), 'w'), 2];
await once(spawn(program, args, { cwd: work, env: { ...process.env, ...env }, stdio }), 'exit');
server.close();

const cut = (_, value) =>
  typeof value === 'string' && value.length > TEXT_LENGTH ? `${value.slice(0, TEXT_LENGTH)}…` : value;
for (const file of readdirSync(home, { recursive: true }).filter((name) => files.test(name))) {
  const text = readFileSync(path.join(home, file), 'utf8')
    .replaceAll(work, '/home/user/work')
    .replaceAll(home, '/home/user');
  for (const line of text.trim().split('\n')) console.log(JSON.stringify(JSON.parse(line), cut));
}

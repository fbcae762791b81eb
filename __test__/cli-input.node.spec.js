'use strict';

// What `kp-score` says of records that become no trace.

const fs = require('node:fs');
const path = require('node:path');

const { bundle, jsonLines, kpScore } = require('./support/kp-score.js');
const { scratchDirectory } = require('./support/scratch.js');

const scratch = scratchDirectory('cli-input');
const NO_EMBEDDER = '--no-embedder';

beforeAll(bundle);

function write(name, contents) {
  const file = path.join(scratch, name);
  fs.writeFileSync(file, contents);
  return file;
}

const spansOf = (traceId, key) => ({
  resourceSpans: [
    {
      scopeSpans: [
        { spans: [{ traceId, spanId: '1', attributes: [{ key, value: { stringValue: 'chat' } }] }] },
      ],
    },
  ],
});
const good = {
  messages: [
    { role: 'user', content: 'Hello' },
    { role: 'assistant', content: 'Good day' },
  ],
};
const lost = spansOf('a', 'gen_ai.operation.name');
const foreign = [
  spansOf('b', 'http.route'),
  { type: 'user', sessionId: 's', message: { role: 'user', content: '<command-name>/clear</command-name>' } },
];

/** Runs the command with a file and with standard input, which is read on another thread. */
async function both(name, values, ...args) {
  const input = jsonLines(values);
  const ofFile = await kpScore([NO_EMBEDDER, '--format', 'json', ...args, write(name, input)]);
  const ofPipe = await kpScore([NO_EMBEDDER, '--format', 'json', ...args], { input });
  return [
    { ...ofFile, stderr: ofFile.stderr.replaceAll(path.join(scratch, name), 'IN') },
    { ...ofPipe, stderr: ofPipe.stderr.replaceAll('stdin', 'IN') },
  ];
}

test('kp-score names and counts a conversation from which no step comes, and exits with 1', async () => {
  for (const { code, stderr, stdout } of await both('lost.jsonl', [good, lost, { messages: [] }])) {
    expect(stderr).toContain(
      'IN:2: otel without a turn of a user or a step; left out: span without messages (1)\n',
    );
    expect(stderr).toContain('IN:3: openai-chat without a turn of a user or a step\n');
    expect(stderr).toContain('1 trace scored');
    expect(stderr).toContain('2 bad lines');
    expect(JSON.parse(stdout).summary).toMatchObject({ scored: 1, bad: 2, skipped: 0 });
    expect(code).toBe(1);
  }
});

test('kp-score counts traces without a conversation, and exits with 0', async () => {
  for (const { code, stderr, stdout } of await both('foreign.jsonl', [good, ...foreign])) {
    expect(stderr).toMatch(/^ {2}skipped +2 traces without a conversation: see --verbose$/m);
    expect(stderr).not.toContain('IN:');
    expect(JSON.parse(stdout).summary).toMatchObject({ scored: 1, bad: 0, skipped: 2 });
    expect(code).toBe(0);
  }
});

test('kp-score --verbose names traces without a conversation', async () => {
  for (const { stderr } of await both('named.jsonl', [good, ...foreign], '--verbose')) {
    expect(stderr).toContain(
      'IN:2: otel without a turn of a user or a step; left out: span without messages (1)\n',
    );
    expect(stderr).toMatch(/^IN:3: claude-code .* command of the program \(1\)$/m);
  }
});

test('kp-score warns of an input that has no conversation', async () => {
  for (const { code, stderr } of await both('only.jsonl', foreign)) {
    expect(stderr).toContain('warning: there is no trace in IN');
    expect(code).toBe(0);
  }
});

test('kp-score leaves an input as it is where --out would lose traces without a conversation', async () => {
  const native = { '@context': 'x', '@type': 'ReasoningTrace', id: 'a' };
  const trace = {
    ...native,
    metadata: { success: true, task_domain: 'code' },
    task: { objective: 'x' },
    steps: [{ step_id: 0, type: 'thought', content: 'x' }],
    outcome: { result_summary: 'x', confidence: 1 },
  };
  const input = jsonLines([trace, foreign[0]]);
  const file = write('in-place.jsonl', input);
  const { code, stderr } = await kpScore([NO_EMBEDDER, '--out', file, file]);
  expect(stderr).toMatch(/left as it was, or it would lose what it has in another format/);
  expect(code).toBe(3);
  expect(fs.readFileSync(file, 'utf8')).toBe(input);
});

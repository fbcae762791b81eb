'use strict';

// What `kp-score` says of inputs that it cannot read, and of records that become no trace.

const fs = require('node:fs');
const path = require('node:path');
const { gzipSync } = require('node:zlib');

const { jsonLines, kpScore } = require('./support/kp-score.js');
const { scratchDirectory } = require('./support/scratch.js');

const scratch = scratchDirectory('cli-input');
const NO_EMBEDDER = '--no-embedder';

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
    expect(JSON.parse(stdout).summary).toMatchObject({ scored: 1, bad: 2, withoutConversation: 0 });
    expect(code).toBe(1);
  }
});

test('kp-score counts traces without a conversation, and exits with 0', async () => {
  for (const { code, stderr, stdout } of await both('foreign.jsonl', [good, ...foreign])) {
    expect(stderr).toMatch(/^ {2}skipped +2 traces without a conversation: see --verbose$/m);
    expect(stderr).not.toContain('IN:');
    expect(JSON.parse(stdout).summary).toMatchObject({ scored: 1, bad: 0, withoutConversation: 2 });
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

/** A frame of zstd with one block that is not compressed (RFC 8878, 3.1.1). */
function zstdFrame(contents) {
  const header = Buffer.from('28b52ffda000000000', 'hex');
  header.writeUInt32LE(contents.length, 5);
  const block = Buffer.alloc(4);
  block.writeUInt32LE(contents.length * 8 + 1);
  return Buffer.concat([header, block.subarray(0, 3), contents]);
}

describe('kp-score of an input that is compressed with zstd', () => {
  const frame = zstdFrame(Buffer.from(jsonLines([good, good])));

  test('reads its traces, and the lines that follow', async () => {
    const file = write('traces.zst', Buffer.concat([frame, Buffer.from(jsonLines([good]))]));
    const { code, stdout } = await kpScore([NO_EMBEDDER, '--format', 'jsonl', file]);
    expect({ code, lines: stdout.trimEnd().split('\n').length }).toEqual({ code: 0, lines: 3 });
  });

  test('says that it is damaged, and exits with 3', async () => {
    const file = write('cut.zst', frame.subarray(0, -20));
    const { code, stderr } = await kpScore([NO_EMBEDDER, file]);
    expect(code).toBe(3);
    expect(stderr).toContain(`cannot read ${file}: its compressed contents are damaged: `);
  });
});

describe('kp-score of an input that is not text in UTF-8', () => {
  test('reads UTF-16 LE, also compressed', async () => {
    const bytes = Buffer.from(`\ufeff${jsonLines([good])}`, 'utf16le');
    for (const file of [write('utf16', bytes), write('utf16.gz', gzipSync(bytes))]) {
      const { code, stdout } = await kpScore([NO_EMBEDDER, '--format', 'jsonl', file]);
      expect(code).toBe(0);
      expect(JSON.parse(stdout)).toMatchObject({ line: 1, format: 'openai-chat' });
    }
  });

  test.each([
    ['xz', Buffer.from('fd377a585a000004', 'hex'), 'it is compressed with xz: use xz -dc '],
    ['zip', Buffer.from('504b030414000000', 'hex'), 'it is a ZIP archive: use unzip -p '],
    [
      'utf16be',
      Buffer.from(jsonLines([good]), 'utf16le').swap16(),
      'it is text in UTF-16 BE: use iconv -f UTF-16BE -t UTF-8 ',
    ],
  ])('names %s and the way out, and exits with 3', async (name, bytes, message) => {
    const file = write(name, bytes);
    const named = await kpScore([NO_EMBEDDER, file]);
    expect(named.stderr).toContain(`cannot read ${file}: ${message}${file} | kp-score\n`);
    const piped = await kpScore([NO_EMBEDDER], { input: bytes });
    expect(piped.stderr).toContain(`cannot read stdin: ${message}| kp-score\n`);
    expect([named.code, piped.code]).toEqual([3, 3]);
  });

  test('quotes a name with a space in the way out', async () => {
    const file = write('my traces.xz', Buffer.from('fd377a585a000004', 'hex'));
    expect((await kpScore([NO_EMBEDDER, file])).stderr).toContain(`use xz -dc "${file}" | kp-score\n`);
  });

  test('says of a directory which files to name, and exits with 3', async () => {
    const { code, stderr } = await kpScore([NO_EMBEDDER, scratch]);
    expect(stderr).toContain(
      `cannot read ${scratch}: it is a directory (EISDIR): name the files in it, such as ${path.join(scratch, '*.jsonl')}\n`,
    );
    expect(code).toBe(3);
  });
});

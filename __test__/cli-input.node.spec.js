'use strict';

// What `kp-score` says of inputs that it cannot read, and of records that become no trace.

const fs = require('node:fs');
const path = require('node:path');
const { gzipSync } = require('node:zlib');

const { expectRun, jsonLines, kpScore, tracesOf } = require('./support/kp-score.js');
const { scratchDirectory, writerIn } = require('./support/scratch.js');

const scratch = scratchDirectory('cli-input');
const write = writerIn(scratch);
const NO_EMBEDDER = '--no-embedder';
const trace = () => tracesOf(0.5)[0];

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
  await expectRun([NO_EMBEDDER, '--out', file, file], {
    code: 3,
    stderr: /left as it was, or it would lose its traces in another format/,
  });
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
    await expectRun([NO_EMBEDDER, file], {
      code: 3,
      stderr: `cannot read ${file}: its compressed contents are damaged: `,
    });
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
});

describe('folders', () => {
  const folder = () => {
    const root = fs.mkdtempSync(path.join(scratch, 'folder-'));
    const file = (name, text) => {
      fs.mkdirSync(path.dirname(path.join(root, name)), { recursive: true });
      fs.writeFileSync(path.join(root, name), text);
    };
    const chat = {
      messages: [
        { role: 'user', content: 'go' },
        { role: 'assistant', content: 'done' },
      ],
    };
    file('b/chat.json', JSON.stringify(chat, undefined, 2));
    file('a.jsonl', `{"type":"unknown"}\n${JSON.stringify(trace())}\nnot JSON\n`);
    file('a.jsonl.gz', gzipSync(`${JSON.stringify(trace())}\n`));
    file('c/package.json', '{"name":"x"}');
    file('c/notes.txt', 'no JSON at all\n'.repeat(20));
    file('c/empty', '');
    return root;
  };

  test('are read in the order of their names, and files of no known format are skipped', async () => {
    const root = folder();
    const out = path.join(root, 'out.jsonl');
    fs.writeFileSync(out, `${JSON.stringify(trace())}\n`);
    const { code, stdout, stderr } = await kpScore([NO_EMBEDDER, '--format', 'jsonl', '--out', out, root]);
    const sources = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line).source);
    expect(sources).toEqual(['a.jsonl', 'a.jsonl.gz', 'b/chat.json'].map((name) => path.join(root, name)));
    expect(stderr).toContain(`${root}: 3 files of no known format skipped (--verbose names them)\n`);
    expect(code).toBe(1);
    expect(fs.readFileSync(out, 'utf8').trim().split('\n')).toHaveLength(3);
  });

  test('--verbose names the skipped files, and --from takes every file of JSON', async () => {
    const root = folder();
    const { stderr } = await kpScore([NO_EMBEDDER, '--verbose', root]);
    for (const name of ['c/package.json', 'c/notes.txt', 'c/empty'])
      expect(stderr).toContain(`${path.join(root, name)}: skipped, it is of no known format\n`);
    const { stdout } = await kpScore(['--dry-run', '--from', 'trace', root]);
    expect(stdout).toMatch(/^2 traces in 4 files; 4 bad lines; nothing was scored or written$/m);
  });

  test('--dry-run counts traces by file and format, and writes nothing', async () => {
    const root = folder();
    const before = fs.readdirSync(root);
    const { code, stdout, stderr } = await kpScore(['--dry-run', root]);
    expect(stdout.replaceAll(root + path.sep, '').replaceAll(/ +/g, ' ')).toBe(
      [
        'file format traces',
        'a.jsonl trace 1',
        'a.jsonl.gz trace 1',
        'b/chat.json openai-chat 1',
        '3 traces in 3 files; 2 bad lines; nothing was scored or written',
        '',
      ].join('\n'),
    );
    expect(stderr).toContain(`${path.join(root, 'a.jsonl')}:3: not JSON`);
    expect(code).toBe(1);
    expect(fs.readdirSync(root)).toEqual(before);
  });

  test('--dry-run takes the options of the run that it is for', async () => {
    const root = folder();
    const out = path.join(root, 'out.jsonl');
    const options = ['--select', '2', '--clean-strict', '--novelty', 'lexical', '--out', out];
    await expectRun(['--dry-run', ...options, root], { code: 1, stdout: '3 traces in 3 files' });
    expect(fs.existsSync(out)).toBe(false);
    expect((await kpScore(['--dry-run', '--select', '2', '--top', '3', root])).code).toBe(2);
  });
});

describe('checks for CI', () => {
  const results = (name, lines) => write(name, lines.map((line) => `${JSON.stringify(line)}\n`).join(''));

  test('--fail-under exits with 4 if the mean score is less', async () => {
    const file = write('mean.jsonl', `${JSON.stringify(trace())}\n`);
    const { stdout } = await kpScore([NO_EMBEDDER, '--format', 'json', file]);
    const mean = JSON.parse(stdout).summary.mean;
    expect((await kpScore([NO_EMBEDDER, '--fail-under', String(mean), file])).code).toBe(0);
    const failed = await kpScore([NO_EMBEDDER, '--fail-under', String(mean + 0.01), file]);
    expect(failed.code).toBe(4);
    expect(failed.stderr).toMatch(/the mean score 0\.\d{4} is below 0\.\d{4}, the least of --fail-under/);
  });

  test('--compare tells which traces have moved, are new or are gone', async () => {
    const before = results('before.jsonl', [
      { id: 'a', score: 0.5 },
      { id: 'b', score: 0.5 },
      { id: 'c', score: 0.25 },
    ]);
    const after = results('after.jsonl', [
      { id: 'a', metadata: { quality_score: 0.5 } },
      { id: 'b', metadata: { quality_score: 0.75 } },
      { id: 'd', metadata: { quality_score: 0.5 } },
      { metadata: { quality_score: 0.5 } },
    ]);
    const { code, stdout, stderr } = await kpScore(['--compare', before, after]);
    expect(stdout.split('\n').map((line) => line.trim().split(/ +/))).toEqual([
      ['trace', 'before', 'after', 'change'],
      ['b', '0.5000', '0.7500', '+0.2500'],
      ['d', '0.5000', 'new'],
      ['c', '0.2500', 'gone'],
      '1 moved, 1 the same, 1 new, 1 gone; mean 0.4167 → 0.5833'.split(' '),
      [''],
    ]);
    expect(stderr).toBe('kp-score: warning: 1 result without an id cannot be compared\n');
    expect(code).toBe(0);
    const json = await kpScore(['--compare', '--format', 'json', '--fail-under', '0.6', before, after]);
    expect(JSON.parse(json.stdout)).toMatchObject({
      changes: [{ id: 'b', before: 0.5, after: 0.75 }, { id: 'd' }, { id: 'c', after: null }],
      same: 1,
    });
    expect(json.code).toBe(4);
  });

  test('--compare reads what --format prints, and names what is no result', async () => {
    const file = write('one.jsonl', `${JSON.stringify(trace())}\n`);
    const formats = ['json', 'jsonl', 'csv'];
    const files = [];
    for (const format of formats)
      files.push(write(`result.${format}`, (await kpScore([NO_EMBEDDER, '--format', format, file])).stdout));
    for (const other of files)
      expect((await kpScore(['--compare', files[0], other])).stdout).toMatch(
        /^0 moved, 1 the same, 0 new, 0 gone/,
      );
    const wrong = await kpScore(['--compare', file, write('x.jsonl', '{"id":"a"}\n')]);
    expect(wrong.code).toBe(3);
    expect(wrong.stderr).toMatch(/x\.jsonl:1: no result: it has neither a score nor metadata\.quality_score/);
    expect((await kpScore(['--compare', file])).code).toBe(2);
  });
});

'use strict';

// The files that `kp-score` writes: what is in them, that they are whole or not there, and what is left when it is interrupted.

const { execFileSync, spawn } = require('node:child_process');
const { once } = require('node:events');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { gunzipSync } = require('node:zlib');

const { cleanTrace, Scorer } = require('..');
const {
  command,
  examples,
  expectRun,
  jsonLines,
  kpScore,
  linesOf,
  readLines,
  results,
  start,
  tracesOf,
} = require('./support/kp-score.js');
const { makeTrace } = require('./support/make-trace.js');
const { readTraces } = require('./support/paths.js');
const { run } = require('./support/run-script.js');
const { scratchDirectory } = require('./support/scratch.js');

const scratch = scratchDirectory('cli-files');
const NO_EMBEDDER = '--no-embedder';
const isWindows = process.platform === 'win32';
const isRoot = process.getuid?.() === 0;

/** An empty directory, whose files are looked at. */
function emptyDirectory() {
  return fs.mkdtempSync(path.join(scratch, 'directory-'));
}

function write(directory, name, contents) {
  const file = path.join(directory, name);
  fs.writeFileSync(file, contents);
  return file;
}

const scored = tracesOf(0.1, 0.95, 0.5, 0.99);
const input = jsonLines(scored);

async function explained(traces) {
  const scorer = new Scorer({ embedder: null });
  const breakdowns = [];
  for (const trace of traces) breakdowns.push(await scorer.explain(trace));
  return breakdowns;
}

const withoutScore = (line) => line.replace(/"quality_score": ?[\d.e-]+/, '');

describe('--out', () => {
  test('has the traces with their scores, and every other byte as it was', async () => {
    const out = path.join(emptyDirectory(), 'out.jsonl');
    const found = await results([NO_EMBEDDER, examples]);
    const { code } = await kpScore([NO_EMBEDDER, '--out', out, examples]);
    expect(code).toBe(0);
    const [before, after] = [readLines(examples), readLines(out)];
    expect(after.map(withoutScore)).toEqual(before.map(withoutScore));
    expect(after.map((line) => JSON.parse(line).metadata.quality_score)).toEqual(
      found.map(({ score }) => score),
    );
  });

  test('--explain adds the breakdown', async () => {
    const out = path.join(emptyDirectory(), 'out.jsonl');
    await kpScore([NO_EMBEDDER, '--explain', '--out', out], { input });
    const breakdowns = await explained(scored);
    expect(readLines(out).map((line) => JSON.parse(line))).toEqual(
      scored.map((trace, at) => ({
        ...trace,
        metadata: { ...trace.metadata, quality_score: breakdowns[at].score, score_breakdown: breakdowns[at] },
      })),
    );
    // What is said of one score is not left beside another.
    const again = path.join(emptyDirectory(), 'again.jsonl');
    const plain = path.join(emptyDirectory(), 'plain.jsonl');
    await kpScore([NO_EMBEDDER, '--out', again, out]);
    await kpScore([NO_EMBEDDER, '--out', plain], { input });
    expect(fs.readFileSync(again, 'utf8')).toBe(fs.readFileSync(plain, 'utf8'));
  });

  test('is JSON Lines whatever the input is, and without what is bad', async () => {
    const out = path.join(emptyDirectory(), 'out.jsonl');
    const array = JSON.stringify([...scored, 42], null, 2).replaceAll('\n', '\r\n');
    const { code } = await kpScore([NO_EMBEDDER, '--out', out], { input: array });
    expect(code).toBe(1);
    expect(readLines(out).map((line) => JSON.parse(line).id)).toEqual(scored.map(({ id }) => id));
  });

  test.each(['out.jsonl.gz', 'OUT.GZ'])('is compressed if its name says so: %s', async (name) => {
    const out = path.join(emptyDirectory(), name);
    await kpScore([NO_EMBEDDER, '--out', out], { input });
    expect(linesOf(gunzipSync(fs.readFileSync(out)).toString())).toHaveLength(scored.length);
  });

  test('--threshold splits kept and dropped', async () => {
    const directory = emptyDirectory();
    const [out, dropped] = ['out', 'dropped'].map((name) => path.join(directory, name));
    const threshold = (await explained(scored))[1].score;
    const args = ['--threshold', String(threshold), '--out', out, '--dropped', dropped];
    const { code, stdout } = await kpScore([NO_EMBEDDER, ...args], { input });
    expect(code).toBe(0);
    const scores = (file) => readLines(file).map((line) => JSON.parse(line).metadata.quality_score);
    const all = (await explained(scored)).map(({ score }) => score);
    // What scores exactly as much is kept.
    expect(scores(out)).toEqual(all.filter((score) => score >= threshold));
    expect(scores(out)).toContain(threshold);
    expect(scores(dropped)).toEqual(all.filter((score) => score < threshold));
    expect(stdout).toContain(
      `${scores(out).length} of at least ${threshold}, ${scores(dropped).length} below`,
    );
  });

  test('may be the input', async () => {
    const directory = emptyDirectory();
    const file = write(directory, 'traces.jsonl', input);
    const { code } = await kpScore([NO_EMBEDDER, '--out', file, file]);
    expect(code).toBe(0);
    expect(readLines(file).map(withoutScore)).toEqual(linesOf(input).map(withoutScore));
    expect(JSON.parse(readLines(file)[1]).metadata.quality_score).toBeGreaterThan(0);
    expect(fs.readdirSync(directory)).toEqual(['traces.jsonl']);
  });

  test('is left as it was where it is the input and would lose lines', async () => {
    const directory = emptyDirectory();
    const contents = `${input}nonsense\n`;
    const file = write(directory, 'traces.jsonl', contents);
    fs.symlinkSync(directory, path.join(scratch, 'link'), 'junction');
    await expectRun([NO_EMBEDDER, '--out', path.join(scratch, 'link', 'traces.jsonl'), file], {
      code: 3,
      stderr: /left as it was.* the bad lines; write to another file$/m,
    });
    expect(fs.readFileSync(file, 'utf8')).toBe(contents);
    expect(fs.readdirSync(directory)).toEqual(['traces.jsonl']);
  });

  describe('that is the input', () => {
    const threshold = ['--threshold', '0.99'];

    test.each([
      ['it', 'traces.jsonl', () => {}],
      // Windows lets not everybody make one.
      ...(isWindows ? [] : [['a symbolic link to it', 'link', (file, link) => fs.symlinkSync(file, link)]]),
      ['a hard link to it', 'link', (file, link) => fs.linkSync(file, link)],
    ])('needs --dropped with --threshold: %s', async (_, name, link) => {
      const directory = emptyDirectory();
      const file = write(directory, 'traces.jsonl', input);
      const out = path.join(directory, name);
      link(file, out);
      const refused = await kpScore([NO_EMBEDDER, ...threshold, '--out', out, file]);
      expect(refused.code).toBe(2);
      expect(refused.stderr).toMatch(/--out is read too, and would lose the traces.*--dropped/);
      expect(fs.readFileSync(file, 'utf8')).toBe(input);
      const dropped = path.join(directory, 'dropped');
      const { code } = await kpScore([NO_EMBEDDER, ...threshold, '--dropped', dropped, '--out', out, file]);
      expect(code).toBe(0);
      expect(readLines(out).length + readLines(dropped).length).toBe(scored.length);
    });

    test('must not be read twice', async () => {
      const directory = emptyDirectory();
      const file = write(directory, 'traces.jsonl', input);
      fs.linkSync(file, path.join(directory, 'link'));
      await expectRun([NO_EMBEDDER, '--out', file, file, path.join(directory, 'link')], {
        code: 2,
        stderr: '--out is read more than once',
      });
      expect(fs.readFileSync(file, 'utf8')).toBe(input);
    });

    test('is left as it was if something is written to it meanwhile', async () => {
      const file = write(emptyDirectory(), 'traces.jsonl', input);
      const running = start([NO_EMBEDDER, '--format', 'jsonl', '--out', file, file, '-']);
      await once(running.child.stdout, 'readable');
      fs.appendFileSync(file, input);
      running.child.stdin.end();
      const { code, stderr } = await running.ended;
      expect(code).toBe(3);
      expect(stderr).toMatch(
        /left as it was.* lines that were written to it meanwhile; write to another file$/m,
      );
      expect(fs.readFileSync(file, 'utf8')).toBe(input + input);
    });

    test.each(['dropped', 'report', 'memory'])('--%s must not be, by a hard link either', async (name) => {
      const directory = emptyDirectory();
      const file = write(directory, 'traces.jsonl', input);
      fs.linkSync(file, path.join(directory, 'link'));
      await expectRun([...['--threshold', '0.5', `--${name}`, path.join(directory, 'link')], file], {
        code: 2,
        stderr: `--${name} must not be a file of traces: ${file}`,
      });
      expect(fs.readFileSync(file, 'utf8')).toBe(input);
    });
  });

  test('must not be another output, be it by a link to what is not there yet', async () => {
    const directory = emptyDirectory();
    fs.mkdirSync(path.join(directory, 'folder'));
    fs.symlinkSync('folder', path.join(directory, 'link'), 'junction');
    const [one, other] = ['folder/new', 'link/new'].map((name) => path.join(directory, name));
    const args = ['--threshold', '0.5', '--out', one, '--dropped', other];
    await expectRun(
      [NO_EMBEDDER, ...args],
      { code: 2, stderr: '--out and --dropped must not be the same file' },
      { input },
    );
  });

  describe('from standard input', () => {
    /** Runs it with a file as standard input, as a shell does for `<`. */
    async function readingFrom(file, args) {
      const descriptor = fs.openSync(file);
      const child = spawn(process.execPath, [command, NO_EMBEDDER, ...args], {
        stdio: [descriptor, 'ignore', 'pipe'],
      });
      fs.closeSync(descriptor);
      let stderr = '';
      child.stderr.on('data', (chunk) => {
        stderr += chunk;
      });
      const [code] = await once(child, 'close');
      return { code, stderr };
    }

    test('may be that file, and is left as it was if it would lose lines', async () => {
      const directory = emptyDirectory();
      const file = write(directory, 'traces.jsonl', input);
      expect((await readingFrom(file, ['--out', file])).code).toBe(0);
      expect(JSON.parse(readLines(file)[1]).metadata.quality_score).toBeGreaterThan(0);
      const contents = `${input}nonsense\n`;
      fs.writeFileSync(file, contents);
      const { code, stderr } = await readingFrom(file, ['--out', file, '-']);
      expect(code).toBe(3);
      expect(stderr).toMatch(/left as it was.* the bad lines; write to another file$/m);
      expect(fs.readFileSync(file, 'utf8')).toBe(contents);
      expect(fs.readdirSync(directory)).toEqual(['traces.jsonl']);
    });

    test('must not lose what --threshold leaves out', async () => {
      const file = write(emptyDirectory(), 'traces.jsonl', input);
      const { code, stderr } = await readingFrom(file, ['--threshold', '0.99', '--out', file]);
      expect(code).toBe(2);
      expect(stderr).toContain('would lose the traces that --threshold leaves out: stdin');
      expect(fs.readFileSync(file, 'utf8')).toBe(input);
    });

    test.each(['dropped', 'report'])('--%s may not', async (name) => {
      const file = write(emptyDirectory(), 'traces.jsonl', input);
      const { code, stderr } = await readingFrom(file, ['--threshold', '0.5', `--${name}`, file]);
      expect(code).toBe(2);
      expect(stderr).toContain(`--${name} must not be a file of traces: stdin`);
      expect(fs.readFileSync(file, 'utf8')).toBe(input);
    });
  });

  (isWindows ? test.skip : test)('may have a name as long as names can be', async () => {
    const out = path.join(emptyDirectory(), 'x'.repeat(255));
    expect(await kpScore([NO_EMBEDDER, '--out', out], { input })).toMatchObject({ code: 0 });
    expect(readLines(out)).toHaveLength(scored.length);
  });

  (isWindows ? test.skip : test)('keeps links and permissions, and writes to pipes and devices', async () => {
    const directory = emptyDirectory();
    const file = write(directory, 'file', 'old');
    fs.chmodSync(file, 0o640);
    fs.symlinkSync('file', path.join(directory, 'link'));
    expect(await kpScore([NO_EMBEDDER, '--out', path.join(directory, 'link')], { input })).toMatchObject({
      code: 0,
    });
    expect(fs.readlinkSync(path.join(directory, 'link'))).toBe('file');
    expect(readLines(file)).toHaveLength(scored.length);
    expect(fs.statSync(file).mode & 0o777).toBe(0o640);
    expect(await kpScore([NO_EMBEDDER, '--out', '/dev/null'], { input })).toMatchObject({ code: 0 });
    expect(fs.statSync('/dev/null').isFile()).toBe(false);
    // A link stays one where there is no file yet too.
    fs.mkdirSync(path.join(directory, 'folder'));
    fs.symlinkSync('dangling', path.join(directory, 'link to link'));
    fs.symlinkSync('folder/new', path.join(directory, 'dangling'));
    const link = path.join(directory, 'link to link');
    expect(await kpScore([NO_EMBEDDER, '--out', link], { input })).toMatchObject({ code: 0 });
    expect(fs.readlinkSync(link)).toBe('dangling');
    expect(fs.readlinkSync(path.join(directory, 'dangling'))).toBe('folder/new');
    expect(readLines(path.join(directory, 'folder', 'new'))).toHaveLength(scored.length);
  });

  (isWindows ? test.skip : test)('/dev/stdout is written to, what it is redirected to stays', async () => {
    const log = write(emptyDirectory(), 'log', 'old\n');
    const args = [process.execPath, command, NO_EMBEDDER, '--quiet', '--out', '/dev/stdout', examples];
    await run('sh', ['-c', '"$@" >> "$LOG"; echo after >> "$LOG"', 'sh', ...args], { LOG: log });
    const lines = readLines(log);
    expect([lines[0], lines.at(-1)]).toEqual(['old', 'after']);
    expect(lines).toHaveLength(readLines(examples).length + 2);
  });

  test('removes what a killed run has left beside it, and nothing else', async () => {
    const directory = emptyDirectory();
    const running = start([NO_EMBEDDER, '--format', 'jsonl', '--out', path.join(directory, 'first')]);
    running.child.stdin.write(input);
    await once(running.child.stdout, 'readable');
    const [left] = fs.readdirSync(directory);
    expect(left).toMatch(/^\.kp-score-\w+\.tmp$/);
    const score = () => kpScore([NO_EMBEDDER, '--out', path.join(directory, 'out')], { input });
    // It looks abandoned, but its process lives.
    const makeOld = (name) => fs.utimesSync(path.join(directory, name), 1, 1);
    makeOld(left);
    await score();
    expect(fs.readdirSync(directory).sort()).toEqual([left, 'out']);
    running.child.kill('SIGKILL');
    await running.ended;
    makeOld(left);
    for (const name of ['.kp-score-mine', 'kp-score-mine.tmp'])
      makeOld(path.basename(write(directory, name, '')));
    await score();
    expect(fs.readdirSync(directory).sort()).toEqual(['.kp-score-mine', 'kp-score-mine.tmp', 'out']);
  });
});

describe('a file that cannot be written', () => {
  const full = '/dev/full';
  (fs.existsSync(full) ? test : test.skip)('disk full', async () => {
    await expectRun(
      [NO_EMBEDDER, '--out', full],
      { code: 3, stderr: /^kp-score: cannot write \/dev\/full: the disk is full \(ENOSPC\)/m },
      { input },
    );
  });

  (isWindows ? test.skip : test).each(['out.jsonl', 'out.jsonl.gz'])(
    'no more room for %s: the old file stays, and nothing else',
    async (name) => {
      const directory = emptyDirectory();
      const out = write(directory, name, 'old');
      // In blocks of 512 or 1024 bytes.
      const limited = ['-c', 'trap "" XFSZ; ulimit -f 8; exec "$@"', 'sh', process.execPath, command];
      const { code, stderr } = await run('sh', [...limited, NO_EMBEDDER, '--out', out, examples]);
      expect(code).toBe(3);
      expect(stderr).toMatch(/^kp-score: cannot write .*\(EFBIG\)/m);
      expect(fs.readFileSync(out, 'utf8')).toBe('old');
      expect(fs.readdirSync(directory)).toEqual([name]);
    },
  );

  // Root may write anywhere.
  (isWindows || isRoot ? test.skip : test)('a directory that is read-only', async () => {
    const directory = emptyDirectory();
    fs.chmodSync(directory, 0o500);
    await expectRun(
      [NO_EMBEDDER, '--out', path.join(directory, 'out')],
      { code: 3, stderr: 'permission denied (EACCES)' },
      { input },
    );
  });
});

test('no file is replaced where nothing could be scored', async () => {
  const directory = emptyDirectory();
  const [out, report] = ['out', 'report'].map((name) => write(directory, name, 'old'));
  const memory = path.join(directory, 'memory');
  const none = path.join(directory, 'none.jsonl');
  const files = ['--out', out, '--report', report, '--memory', memory];
  await expectRun([...files, none], { code: 3, stderr: [`cannot read ${none}`, 'no file was written'] });
  const { child, ended } = start([...files, '--format', 'csv']);
  await once(child.stdout, 'readable');
  child.kill('SIGINT');
  expect((await ended).code).toBe(isWindows ? null : 130);
  expect(fs.readdirSync(directory).sort()).toEqual(['out', 'report']);
  for (const file of [out, report]) expect(fs.readFileSync(file, 'utf8')).toBe('old');
});

test.each([
  ['an empty input', ''],
  ['nothing but bad lines', 'nonsense\n{"id":\n'],
])('%s replaces no file, and makes none', async (_, contents) => {
  const directory = emptyDirectory();
  const outputs = ['out', 'dropped', 'report'].map((name) => write(directory, name, 'old'));
  const traces = write(directory, 'traces', contents);
  const args = ['--threshold', '0.5', ...outputs.flatMap((file) => [`--${path.basename(file)}`, file])];
  const { code, stdout, stderr } = await kpScore([NO_EMBEDDER, ...args, traces]);
  expect(code).toBe(3);
  expect(stderr).toMatch(/^kp-score: nothing was scored, so no file was written$/m);
  expect(stdout).not.toContain('written ');
  for (const file of outputs) expect(fs.readFileSync(file, 'utf8')).toBe('old');
  for (const file of outputs) fs.rmSync(file);
  expect((await kpScore([NO_EMBEDDER, ...args, traces])).code).toBe(3);
  expect(fs.readdirSync(directory)).toEqual(['traces']);
  // Without a file that was asked for, all is as it should be.
  const memory = path.join(directory, 'memory');
  const alone = await kpScore(['--format', 'jsonl', '--memory', memory, traces]);
  expect(alone).toMatchObject({ code: contents === '' ? 0 : 1, stdout: '' });
  expect(fs.readdirSync(directory)).toEqual(['traces']);
});

test('hostile files cost no trace, and no file that was there', async () => {
  const program = path.join(__dirname, 'fuzz', 'command.mjs');
  const { code, stdout, stderr } = await run(process.execPath, [program, '--runs', '15']);
  // The output has the seed.
  expect({ code, stdout, stderr }).toEqual({
    code: 0,
    stdout: expect.stringMatching(/\nruns 15, /),
    stderr: '',
  });
});

describe('--clean', () => {
  const EMAIL = 'eve@example.com';
  const PASSWORD = 'Hunter2Hunter2';
  const KEY = `sk-proj-${'aB3'.repeat(16)}`;
  const telling = (at, objective = `${'x'.repeat(230)} ${EMAIL} asks`) => ({
    ...makeTrace({
      objective,
      steps: [
        { step_id: 0, type: 'thought', content: `password=${PASSWORD}` },
        {
          step_id: 1,
          type: 'tool_call',
          content: 'log in',
          tool: { name: 'f' },
          input: { [EMAIL]: [`token: ${PASSWORD}`] },
        },
      ],
    }),
    id: `t${at}`,
  });
  /** Lines that are bad, of which messages could quote what is to be replaced, whole or in part. */
  const bad = [
    `{"a":"${EMAIL}" ${PASSWORD}}`,
    `${PASSWORD}`,
    `{"messages":[{"role":"${PASSWORD} ${EMAIL}","content":"x"}]}`,
    JSON.stringify({ ...telling(9), deep: { [EMAIL]: JSON.parse(`${'['.repeat(300)}${']'.repeat(300)}`) } }),
    JSON.stringify({ ...telling(9), steps: EMAIL }),
  ].map((line) => `${line}\n`);

  test('writes and shows no text that is not cleaned, and the scores of what was recorded', async () => {
    const directory = emptyDirectory();
    const [out, dropped, report] = ['out', 'dropped', 'report.html'].map((name) =>
      path.join(directory, name),
    );
    const given = jsonLines([telling(1), telling(2, `ask ${EMAIL}`), telling(3)]) + bad.join('');
    const files = ['--out', out, '--dropped', dropped, '--report', report];
    const args = ['--format', 'json', '--verbose', '--explain', '--top', '1', ...files];
    const { code, stdout, stderr } = await kpScore([NO_EMBEDDER, '--clean', ...args, '-'], { input: given });
    const written = [out, dropped, report].map((file) => fs.readFileSync(file, 'utf8'));
    // Not all of a page in the message.
    const leaks = [...written, stdout, stderr].map((text) => /eve@|Hunter2/.exec(text)?.[0]);
    expect(leaks).toEqual(Array(5).fill(undefined));
    expect({ code, lines: stderr.match(/^stdin:\d+: .*/gm) }).toEqual({
      code: 1,
      lines: [
        'stdin:4: not JSON: no comma or bracket after a field at byte 23',
        'stdin:5: not JSON: no value at byte 0',
        'stdin:6: not openai-chat: messages[0]: a message has a role that is not known',
        expect.stringMatching(
          /^stdin:7: trace is nested deeper than 256 levels, at trace\.deep\["\[REDACTED:email\]"\]\[0\]/,
        ),
        'stdin:8: trace.steps must be an array, got string',
      ],
    });
    const { results, summary } = JSON.parse(stdout);
    const recorded = await explained([telling(1), telling(2, `ask ${EMAIL}`), telling(3)]);
    expect(results.map(({ score }) => score)).toEqual([recorded[0].score]);
    const cleaned = await Promise.all(
      [telling(1), telling(2, `ask ${EMAIL}`), telling(3)].map((trace) => cleanTrace(trace)),
    );
    const traces = [...readLines(out), ...readLines(dropped)].map((line) => JSON.parse(line));
    expect(traces).toEqual(
      cleaned.map(({ trace }, at) => ({
        ...trace,
        metadata: { ...trace.metadata, quality_score: recorded[at].score, score_breakdown: recorded[at] },
      })),
    );
    expect(summary.cleaned).toEqual({
      level: 'aggregated',
      strict: false,
      redactions: { password: 6, email: 6 },
    });
    expect(written[2]).toMatch(/"redactions":\{"email":6,"password":6\}/);
  });

  test('tells no words of the traces as they were recorded', async () => {
    const directory = emptyDirectory();
    const [out, report] = ['out', 'report.html'].map((name) => path.join(directory, name));
    const given = jsonLines([telling(1, 'hello'), telling(2, `ask ${EMAIL}`)]);
    const args = ['--novelty', 'lexical', '--format', 'json', '--explain', '--out', out, '--report', report];
    const run = async (...more) => {
      const { code, stdout } = await kpScore([...args, ...more, '-'], { input: given });
      const files = [out, report].map((file) => fs.readFileSync(file, 'utf8'));
      return { code, nearest: JSON.parse(stdout).results[1].breakdown.nearest, texts: [...files, stdout] };
    };
    const [name] = EMAIL.split('@');
    const recorded = await run();
    expect(recorded.nearest.newWords.map(({ word }) => word)).toContain(name);
    const { code, nearest, texts } = await run('--clean');
    expect(code).toBe(0);
    expect(nearest).toEqual({ ...recorded.nearest, sharedWords: null, newWords: null });
    for (const text of texts) expect(text).not.toContain(`"${name}"`);
  });

  (fs.existsSync('/proc/self/fd') ? test : test.skip)(
    'cleans before traces wait for their rank',
    async () => {
      const directory = emptyDirectory();
      const many = jsonLines(Array.from({ length: 1000 }, (_, at) => telling(at)));
      const env = { TMPDIR: directory, TEMP: directory, TMP: directory };
      const args = [NO_EMBEDDER, '--clean', '--top', '1', '--out', path.join(directory, 'out')];
      const child = spawn(process.execPath, [command, ...args], { env: { ...process.env, ...env } });
      const ended = once(child, 'close');
      child.stdin.write(many);
      // The file has no name: nothing is left of it however the process ends.
      const opened = `/proc/${child.pid}/fd`;
      const waiting = () => {
        const files = fs.readdirSync(opened).map((name) => path.join(opened, name));
        const file = files.find((file) => fs.readlinkSync(file).startsWith(`${directory}/`));
        return file === undefined ? '' : fs.readFileSync(file, 'latin1');
      };
      while (waiting() === '') await new Promise((resolve) => setTimeout(resolve, 10));
      expect(waiting()).toContain('[REDACTED:email]');
      expect(waiting()).not.toContain(EMAIL);
      child.stdin.end();
      expect(await ended).toEqual([0, null]);
    },
  );

  test.each([
    [['--clean', 'private'], { level: 'private', strict: false }],
    [['--clean=federated'], { level: 'federated', strict: false }],
    [['--clean'], { level: 'aggregated', strict: false }],
    [['--clean-strict'], { level: 'aggregated', strict: true }],
    [['--clean', 'private', '--clean-strict'], { level: 'private', strict: true }],
    [[], null],
  ])('%j asks for %j, and what follows is a file', async (args, clean) => {
    const file = write(emptyDirectory(), 'in', jsonLines([telling(1)]));
    const { code, stdout } = await kpScore([NO_EMBEDDER, '--format', 'json', ...args, file]);
    expect(code).toBe(0);
    const { summary } = JSON.parse(stdout);
    expect(summary.cleaned && { level: summary.cleaned.level, strict: summary.cleaned.strict }).toEqual(
      clean,
    );
  });

  test('is at the level and as strict as it was asked for', async () => {
    const directory = emptyDirectory();
    const out = path.join(directory, 'out');
    const given = write(directory, 'in', jsonLines([telling(1, `${EMAIL} has ${KEY}`)]));
    const { stdout } = await kpScore([
      NO_EMBEDDER,
      '--clean',
      'private',
      '--clean-strict',
      '--out',
      out,
      given,
    ]);
    const [line] = readLines(out);
    expect([EMAIL, KEY].filter((secret) => line.includes(secret))).toEqual([EMAIL]);
    expect(stdout).toContain('  cleaned   api_key 1, password 2 (private, strict)\n');
  });

  test('of an unknown level makes no sense', async () => {
    await expectRun(['in', '--clean=public'], {
      code: 2,
      stderr: "--clean must be aggregated, federated or private, got 'public'",
    });
  });

  test('does not replace its input, which it would lose', async () => {
    const file = write(emptyDirectory(), 'in', jsonLines([telling(1)]));
    const { code, stderr } = await kpScore([NO_EMBEDDER, '--clean', '--out', file, file]);
    expect({ code, stderr }).toEqual({
      code: 2,
      stderr: expect.stringContaining(
        `--out is read too, and would lose the texts that --clean replaces: ${file}`,
      ),
    });
  });
});

test('kp-score --report writes a page with the traces', async () => {
  const report = path.join(emptyDirectory(), 'report.html');
  await expectRun(
    [NO_EMBEDDER, '--report', report],
    { code: 1, stdout: `written   ${report}\n` },
    {
      input: `${input}nonsense\n`,
    },
  );
  const page = fs.readFileSync(report, 'utf8');
  expect(page).toMatch(/^<!doctype html>/i);
  expect(page).toContain(scored[3].id);
  expect(page).toContain('not JSON');
});

describe('--memory', () => {
  const run = async (memory, ...args) => {
    const { code, stdout, stderr } = await kpScore([
      '--format',
      'json',
      '--explain',
      '--memory',
      memory,
      ...args,
    ]);
    expect({ code, stderr: stderr.match(/^kp-score.*/m) }).toEqual({ code: 0, stderr: null });
    return JSON.parse(stdout);
  };

  test.each(['prefix', 'lexical', 'full'])(
    'with --novelty %s, what one run has scored is not new to the next',
    async (novelty) => {
      const memory = path.join(emptyDirectory(), 'memory');
      const count = readTraces(examples).length;
      const first = await run(memory, '--novelty', novelty, examples);
      expect(first.summary.memory).toEqual({ file: memory, before: 0, after: count, forgotten: 0 });
      expect(first.results[0].breakdown.noveltyBasis).toBe('empty-cache');
      const second = await run(memory, '--novelty', novelty, '--known', 'again', examples);
      expect(second.summary.memory).toEqual({ file: memory, before: count, after: 2 * count, forgotten: 0 });
      expect(second.results[0].breakdown.nearest.label).toBe(second.results[0].id);
      for (const { breakdown } of second.results)
        expect(breakdown.dimensions.novelty).toBeLessThan(novelty === 'prefix' ? 1e-6 : Number.MIN_VALUE);
    },
  );

  test('of another novelty method is refused, and left as it was', async () => {
    const directory = emptyDirectory();
    const out = path.join(directory, 'out');
    const fileOf = (novelty) => path.join(directory, novelty);
    const novelties = ['prefix', 'lexical', 'full'];
    await Promise.all(novelties.map((novelty) => run(fileOf(novelty), '--novelty', novelty, examples)));
    const pairs = novelties.flatMap((held) =>
      novelties.filter((other) => other !== held).map((other) => [held, other]),
    );
    for (const [held, other] of pairs) {
      const memory = fileOf(held);
      const before = fs.readFileSync(memory);
      await expectRun(['--memory', memory, '--novelty', other, '--out', out, examples], {
        code: 3,
        stderr: [
          `kp-score: ${memory}`,
          new RegExp(
            `novelty '${held}'.*: use another file, or --novelty for the method that it was made with$`,
            'm',
          ),
        ],
      });
      expect(fs.existsSync(out)).toBe(false);
      expect(fs.readFileSync(memory)).toEqual(before);
    }
  });

  test('of another model is refused, and left as it was', async () => {
    const directory = emptyDirectory();
    const memory = path.join(directory, 'memory');
    const out = write(directory, 'out', 'old');
    await run(memory, examples);
    const before = fs.readFileSync(memory);
    const { code, stderr } = await kpScore(['--memory', memory, '--dtype', 'q8', '--out', out, examples]);
    expect(code).toBe(3);
    expect(stderr).toContain(memory);
    expect(stderr).toMatch(
      /: use another file, or --dtype or --model-dir for the model that it was made with$/m,
    );
    expect(stderr).not.toContain('{');
    expect(fs.readFileSync(memory).equals(before)).toBe(true);
    expect(fs.readFileSync(out, 'utf8')).toBe('old');
    expect(fs.readdirSync(directory).sort()).toEqual(['memory', 'out']);
  });

  test.each([
    ['in no directory', 'none/memory', 'ENOENT'],
    ['in a file', 'file/memory', ''],
  ])('%s is refused before anything is scored', async (_, name, reason) => {
    const directory = emptyDirectory();
    const out = write(directory, 'out', 'old');
    write(directory, 'file', '');
    const memory = path.join(directory, name);
    const args = ['--format', 'jsonl', '--memory', memory, '--out', out];
    const { code, stdout, stderr } = await kpScore(args, { input });
    expect({ code, stdout }).toEqual({ code: 3, stdout: '' });
    for (const part of [memory, reason]) expect(stderr).toContain(part);
    expect(fs.readFileSync(out, 'utf8')).toBe('old');
    expect(fs.readdirSync(directory).sort()).toEqual(['file', 'out']);
  });

  describe('of another run that goes on', () => {
    async function startWith(directory) {
      const memory = path.join(directory, 'memory');
      const running = start(['--format', 'json', '--memory', memory]);
      await until(running, () => fs.existsSync(`${memory}.lock`));
      return { ...running, memory };
    }

    test('is refused at once, and nothing is lost', async () => {
      const directory = emptyDirectory();
      const { child, ended, memory } = await startWith(directory);
      const out = write(directory, 'out', 'old');
      const refused = await kpScore(['--memory', memory, '--out', out], { input });
      expect(refused.code).toBe(3);
      expect(refused.stderr).toContain(`${memory} is in use by `);
      // Windows does not tell.
      if (!isWindows) expect(refused.stderr).toContain(`process ${child.pid} on ${os.hostname()}`);
      expect(refused.stderr).toContain(`${memory}.lock: wait until it has ended, or name another file`);
      expect(fs.readFileSync(out, 'utf8')).toBe('old');
      child.stdin.end(input);
      expect((await ended).code).toBe(0);
      expect(fs.readdirSync(directory).sort()).toEqual(['memory', 'out']);
      const next = await kpScore(['--format', 'json', '--memory', memory], { input });
      expect(JSON.parse(next.stdout).summary.memory.before).toBe(scored.length);
    });

    test('is free when that was killed', async () => {
      const directory = emptyDirectory();
      const { child, ended, memory } = await startWith(directory);
      child.kill('SIGKILL');
      await ended;
      expect(fs.readdirSync(directory)).toEqual(['memory.lock']);
      expect((await kpScore(['--memory', memory], { input })).code).toBe(0);
      expect(fs.readdirSync(directory)).toEqual(['memory']);
    });

    test('no other file is taken for its lock', async () => {
      const directory = emptyDirectory();
      const lock = write(directory, 'memory.lock', 'precious');
      await expectRun(
        ['--memory', path.join(directory, 'memory')],
        { code: 3, stderr: `cannot lock ${path.join(directory, 'memory')} by ${lock}` },
        { input },
      );
      expect(fs.readFileSync(lock, 'utf8')).toBe('precious');
      expect(fs.readdirSync(directory)).toEqual(['memory.lock']);
    });
  });

  test('is not saved where the traces could not be written', async () => {
    const directory = emptyDirectory();
    const file = write(directory, 'traces.jsonl', `${input}nonsense\n`);
    const memory = path.join(directory, 'memory');
    expect((await kpScore(['--memory', memory, '--out', file, file])).code).toBe(3);
    expect(fs.existsSync(memory)).toBe(false);
  });
});

/** Settles when `condition` holds, which it must before the process ends. */
async function until({ child, output }, condition) {
  while (!condition()) {
    if (child.exitCode !== null) throw new Error(`it ended with ${child.exitCode}: ${output.stderr}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

(isWindows ? describe.skip : describe)('interrupted', () => {
  /** Starts it on traces that come and come, and waits until it has scored some. */
  async function startEndless(args) {
    const running = start([NO_EMBEDDER, '--format', 'jsonl', ...args]);
    running.child.stdin.write(input);
    await once(running.child.stdout, 'readable');
    return running;
  }

  test.each(['SIGINT', 'SIGTERM', 'SIGHUP'])(
    '%s: what was scored is written beside the files, as whole files: code 130',
    async (signal) => {
      const directory = emptyDirectory();
      const [out, report] = ['out', 'report'].map((name) => write(directory, name, 'old'));
      const { child, ended } = await startEndless(['--out', out, '--report', report]);
      child.kill(signal);
      const { code, stderr } = await ended;
      expect(code).toBe(130);
      expect(stderr).toContain('once more to end at once');
      expect(stderr).toContain(
        `\nkp-score: interrupted: the rest was not read; what was scored is in ${out}.partial, ${report}.partial, ` +
          `and ${out}, ${report} are as they were (see --keep-going)\n`,
      );
      const written = readLines(`${out}.partial`).map((line) => JSON.parse(line).id);
      expect(written).toEqual(scored.map(({ id }) => id));
      expect(fs.readFileSync(`${report}.partial`, 'utf8')).toMatch(/<\/html>\s*$/);
      for (const file of [out, report]) expect(fs.readFileSync(file, 'utf8')).toBe('old');
      expect(fs.readdirSync(directory).sort()).toEqual(['out', 'out.partial', 'report', 'report.partial']);
    },
  );

  test('in another format, of which no more is read', async () => {
    const out = path.join(emptyDirectory(), 'out');
    const { child, ended } = start([NO_EMBEDDER, '--format', 'jsonl', '--out', out]);
    const conversation = (/** @type {number} */ id) =>
      `${JSON.stringify({ id, messages: [{ role: 'user', content: `Ask ${id}` }] })}\n`;
    child.stdin.write(`${conversation(1)}${conversation(2)}{"id":3,"messages":[{"role":`);
    await once(child.stdout, 'readable');
    child.kill('SIGINT');
    const { code, stderr } = await ended;
    expect({ code, stderr }).toMatchObject({ code: 130, stderr: expect.not.stringContaining('stdin:3') });
    const written = readLines(`${out}.partial`).map((line) => JSON.parse(line).task.objective);
    expect(written).toEqual(['Ask 1', 'Ask 2']);
  });

  test.each([
    [[], 0],
    [['--keep-going'], scored.length],
  ])('with %j, the memory has %i of the traces that were scored', async (more, before) => {
    const memory = path.join(emptyDirectory(), 'memory');
    const running = start(['--format', 'json', '--memory', memory, ...more]);
    running.child.stdin.write(input);
    // The first row comes when all of these have been handed in.
    const { stdout } = running.child;
    // The call makes it read.
    await until(running, () => stdout.read(0) === null && stdout.readableLength > '{"results":['.length);
    running.child.kill('SIGINT');
    expect((await running.ended).code).toBe(130);
    const next = await kpScore(['--format', 'json', '--memory', memory], { input });
    expect(JSON.parse(next.stdout).summary.memory.before).toBe(before);
  });

  test('an output that is the input is left as it was', async () => {
    const directory = emptyDirectory();
    // Of several buffers, so that reading is not over when the first row is there.
    const contents = input.repeat(20_000);
    const file = write(directory, 'traces.jsonl', contents);
    const interrupted = async (...more) => {
      const { child, ended } = await startEndless([...more, '--out', file, file]);
      child.kill('SIGINT');
      // The pipe may be full of rows.
      child.stdout.resume();
      const { code, stderr } = await ended;
      expect(code).toBe(130);
      expect(fs.readFileSync(file, 'utf8')).toBe(contents);
      return stderr;
    };
    const kept = await interrupted('--keep-going');
    expect(kept).toMatch(/left as it was.* traces that were not read; write to another file$/m);
    expect(fs.readdirSync(directory)).toEqual(['traces.jsonl']);
    expect(await interrupted()).toContain(`what was scored is in ${file}.partial, and ${file} is as it was`);
    expect(fs.readdirSync(directory)).toEqual(['traces.jsonl', 'traces.jsonl.partial']);
  });

  test('twice: it ends at once, the old files are untouched and no others are left', async () => {
    const directory = emptyDirectory();
    const out = write(directory, 'out', 'old');
    // A row that does not fit into the pipe, which is not read: the command cannot finish what it has begun.
    const large = jsonLines([{ ...scored[0], id: 'x'.repeat(4e6) }]);
    const running = start([NO_EMBEDDER, '--format', 'jsonl', '--out', out]);
    const { child, ended, output } = running;
    child.stdin.write(large.repeat(3));
    await until(running, () => fs.readdirSync(directory).length === 2);
    await once(child.stdout, 'readable');
    child.kill('SIGINT');
    await until(running, () => output.stderr.includes('once more'));
    expect(child.exitCode).toBeNull();
    child.kill('SIGINT');
    // A shell calls that 130.
    expect(await ended).toMatchObject({ code: null, signal: 'SIGINT' });
    expect(fs.readFileSync(out, 'utf8')).toBe('old');
    expect(fs.readdirSync(directory)).toEqual(['out']);
  });

  // Opening it does not return before its other end is opened.
  test.each([
    ['read', (fifo, out) => ['--out', out, fifo]],
    ['written', (fifo, out) => ['--report', out, '--out', fifo, examples]],
  ])('twice while a pipe waits to be %s: it ends at once', async (_, argsOf) => {
    const directory = emptyDirectory();
    const fifo = path.join(directory, 'fifo');
    execFileSync('mkfifo', [fifo]);
    const out = write(directory, 'out', 'old');
    const running = start(['--verbose', ...argsOf(fifo, out)]);
    const { child, ended, output } = running;
    await until(running, () => output.stderr.includes('engine:'));
    child.kill('SIGTERM');
    await until(running, () => output.stderr.includes('once more') || child.exitCode !== null);
    child.kill('SIGTERM');
    const { code, signal } = await ended;
    // Bun does not wait to read it.
    expect([130, 'SIGTERM']).toContain(code ?? signal);
    expect(fs.readFileSync(out, 'utf8')).toBe('old');
    expect(fs.readdirSync(directory).sort()).toEqual(['fifo', 'out']);
  });
});

describe('a reader that goes away', () => {
  const endless = input.repeat(5000);

  test('ends it quietly', async () => {
    const { child, ended } = start([NO_EMBEDDER, '--format', 'jsonl', '-']);
    child.stdin.write(endless);
    await once(child.stdout, 'readable');
    child.stdout.destroy();
    const { code, stderr } = await ended;
    expect(code).toBe(0);
    expect(stderr).not.toMatch(/EPIPE|^ +at /m);
  });

  test('does not keep the files from being written', async () => {
    const out = path.join(emptyDirectory(), 'out');
    const { child, ended } = start([NO_EMBEDDER, '--format', 'jsonl', '--out', out, '-']);
    child.stdin.write(endless);
    await once(child.stdout, 'readable');
    child.stdout.destroy();
    child.stdin.end(input);
    expect((await ended).code).toBe(0);
    expect(readLines(out)).toHaveLength(5001 * scored.length);
  });
});

// It is read from /proc.
(process.platform === 'linux' ? test : test.skip)('300 MB take no more memory than 30', async () => {
  const memoryFor = async (megabytes) => {
    const args = [command, NO_EMBEDDER, '--format', 'csv', '--out', '/dev/null'];
    // What is old must fit into 64 MB, where that can be limited; Bun has no such option.
    const limits = process.versions.bun ? [] : ['--max-old-space-size=64'];
    const child = spawn(process.execPath, [...limits, ...args], { stdio: ['pipe', 'ignore', 'pipe'] });
    let stderr = '';
    child.stderr.on('data', (chunk) => {
      stderr += chunk;
    });
    const closed = once(child, 'close');
    let peak = 0;
    for (let sent = 0; sent < megabytes; sent++) {
      if (!child.stdin.write(megabyte)) await Promise.race([once(child.stdin, 'drain'), closed]);
      if (child.exitCode === null) peak = Math.max(peak, peakMemory(child.pid));
    }
    child.stdin.end();
    const [code] = await closed;
    expect({ code, stderr }).toEqual({ code: 0, stderr: expect.stringContaining('scored in') });
    return peak;
  };
  const large = { ...scored[0], steps: [{ ...scored[0].steps[1], input: { page: 'x'.repeat(900_000) } }] };
  const small = jsonLines([scored[1]]);
  const megabyte = jsonLines([large]) + small.repeat((1e5 / small.length) | 0);
  const [few, many] = [await memoryFor(30), await memoryFor(300)];
  expect(many).toBeLessThan(few + 100e6);
});

/** The most memory that a process has had, in bytes. */
function peakMemory(pid) {
  const [, kilobytes] = /^VmHWM:\s+(\d+) kB$/m.exec(fs.readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [0, 0];
  return Number(kilobytes) * 1024;
}

'use strict';

// `kp-score` as a process of Node.js: its scores beside those of the package, standard input, files by links, pipes and full disks, signals,
// and a terminal. What it prints and writes is in the transcripts of crates/command/tests.

const { execFileSync, spawnSync } = require('node:child_process');
const { once } = require('node:events');
const fs = require('node:fs');
const path = require('node:path');
const { Readable } = require('node:stream');

const { Scorer, select, TraceMemory } = require('..');
const { makeTrace } = require('./support/make-trace.js');
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
const { modelDirectory, readTraces } = require('./support/paths.js');
const { run } = require('./support/run-script.js');
const { scratchDirectory, writerIn } = require('./support/scratch.js');

const scratch = scratchDirectory('command');
const write = writerIn(scratch);
const isWindows = process.platform === 'win32';
const unix = isWindows ? test.skip : test;
const ESCAPE = '\u001b';

const traces = readTraces(examples);
const scored = tracesOf(0.1, 0.95, 0.5, 0.99);
const input = jsonLines(scored);

/** An empty directory, whose files are looked at. */
const emptyDirectory = () => fs.mkdtempSync(path.join(scratch, 'directory-'));
const filesIn = (directory) => fs.readdirSync(directory).sort();
const idsOf = (found) => found.map(({ id }) => id);

/** What a scorer says of traces, one after another. */
async function scoresOf(traces, options) {
  const scorer = new Scorer(options);
  const scores = [];
  for (const trace of traces) scores.push(await scorer.score(trace));
  return scores;
}
/** The scores of the API in the breakdowns of the command, which tell more. */
const explained = (results) =>
  results.map(({ breakdown: { profile, contributions, composite, tokens, truncated, ...score } }) => score);

describe('what kp-score computes', () => {
  const lexical = () => ({ memory: new TraceMemory({ method: 'lexical' }) });

  test.each([
    [['--novelty', 'prefix'], () => ({})],
    [[], lexical],
  ])('kp-score score %j gives the scores of a Scorer, with their explanation', async (args, options) => {
    const found = await results([...args, '--explain', examples]);
    expect(explained(found)).toEqual(await scoresOf(traces, options()));
  });

  test('kp-score score --novelty full looks beyond the first 512 tokens', async () => {
    const start = 'The customer asks where the parcel is. '.repeat(100);
    // A step of its own, which counts as much as the long objective.
    const long = ['It was found in Lisbon.', 'The planet has two moons and no atmosphere.'].map((content) =>
      makeTrace({ objective: start, steps: [{ type: 'observation', content }] }),
    );
    const run = (method) => results(['--novelty', method, '--explain', '-'], { input: jsonLines(long) });
    const [prefix, full] = [await run('prefix'), await run('full')];
    expect(explained(full)).toEqual(await scoresOf(long, { memory: new TraceMemory({ method: 'full' }) }));
    expect(prefix[1].breakdown.dimensions.novelty).toBeLessThan(1e-6);
    expect(full[1].breakdown.dimensions.novelty).toBeGreaterThan(0.1);
  });

  test.each([
    [
      { KNOWLEDGEPULSE_DTYPE: 'q8', KNOWLEDGEPULSE_THREADS: '1' },
      { dtype: 'q8', threads: 1 },
    ],
    [{ KNOWLEDGEPULSE_MODEL_DIR: modelDirectory }, { dtype: 'fp32', directory: modelDirectory }],
  ])('kp-score score with %j uses that embedder, which the figures tell', async (env, expected) => {
    const { directory = '', ...embedder } = expected;
    const args = ['score', '--novelty', 'prefix', '--verbose', '--format', 'json', examples];
    const { code, stdout, stderr } = await kpScore(args, { env });
    expect(code).toBe(0);
    expect(stderr).toContain(`model: ${directory}`);
    const model = 'sentence-transformers/all-MiniLM-L6-v2';
    expect(JSON.parse(stdout).summary.embedder).toMatchObject({ model, available: true, ...embedder });
    expect(stderr).not.toContain('warning');
  });

  test('kp-score score gives the same bytes on one thread and on five', async () => {
    const text = (number) =>
      Array.from({ length: 60 }, (_, at) => `word${(number * (at + 1) * 7919) % 400}`).join(' ');
    const many = tracesOf(...Array.from({ length: 1500 }, () => 0.5)).map((trace, number) => ({
      ...trace,
      task: { objective: text(number % 1400) },
      steps: [{ step_id: 0, type: 'thought', content: text(number).repeat(10) }],
    }));
    // More than one batch, and records of every kind: a repeated trace, one without an end, and no JSON.
    const lines = [...many, ...many.slice(700, 720)].map((trace) => JSON.stringify(trace));
    lines.splice(300, 0, '{"broken', '[]', '{}');
    const inputs = [write('many.jsonl', lines.join('\n')), write('few.jsonl', lines.slice(0, 9).join('\n'))];
    const print = (threads) =>
      kpScore(['score', '--format', 'jsonl', ...inputs], { env: { RAYON_NUM_THREADS: threads } });
    const [one, five] = [await print('1'), await print('5')];
    const badLines = ({ stderr }) => linesOf(stderr).filter((line) => line.includes('.jsonl:'));
    expect(linesOf(one.stdout)).toHaveLength(1529);
    expect(badLines(one)).toHaveLength(2);
    expect({ ...five, stderr: badLines(five) }).toEqual({ ...one, stderr: badLines(one) });
  });

  test.each(['lexical', 'full'])(
    'kp-score select --novelty %s writes what select() chooses',
    async (novelty) => {
      const TASKS = [
        'book a flight to Lima',
        'fix the failing build',
        'triage a headache',
        'reconcile an invoice',
      ];
      const runs = TASKS.flatMap((task, kind) =>
        Array.from({ length: 5 }, (_, run) => {
          const objective = `${task} for customer ${run}`;
          return makeTrace({ id: `kp:trace:${kind}-${run}`, objective, success: run % 2 === 0 });
        }),
      );
      const out = path.join(scratch, `${novelty}.jsonl`);
      const args = ['select', '4', '--novelty', novelty, '--format', 'jsonl', '--out', out, '-'];
      const { code, stdout, stderr } = await kpScore(args, { input: jsonLines(runs) });
      expect(code).toBe(0);
      const { chosen, explanation } = await select(runs, { count: 4, method: novelty });
      expect(idsOf(linesOf(stdout).map((line) => JSON.parse(line)))).toEqual(idsOf(chosen));
      expect(linesOf(stderr)[0]).toBe(explanation);
      const written = readTraces(out);
      expect(idsOf(written)).toEqual(idsOf(chosen));
      const { rank, reason, gain, covered, standsFor } = chosen[0];
      expect(written[0].metadata.selection).toMatchObject({ rank, reason, gain, covered, standsFor });
      expect(idsOf(written[0].metadata.selection.similar)).toEqual(idsOf(chosen[0].similar));
    },
  );
});

describe('standard input', () => {
  test('kp-score score reads the same from a file and from standard input', async () => {
    const others = ['chat.jsonl', 'sharegpt.jsonl'].map((name) =>
      fs.readFileSync(path.join(__dirname, 'formats', name), 'utf8'),
    );
    const bad = ['{"messages":[{"role":"nobody","content":""}]}', '{"messages":', '7', 'NaN', '{"a":[1,2]}'];
    const rows = traces.slice(0, 2).map((trace) => JSON.stringify(trace));
    const input = [...others, rows[0], ...bad, `[${rows}]`].join('\n');
    const file = write('mixed', input);
    const [first, second] = await Promise.all(
      [file, '-'].map(async (source, at) => {
        const out = path.join(scratch, `of-${at}`);
        const args = ['score', '--format', 'jsonl', '--explain', '--out', out, source];
        const { code, stdout, stderr } = await kpScore(args, { input });
        const told = (text) => text.replaceAll(file, 'stdin').replace(/ in \d.* s|of-\d/g, '');
        const written = fs.readFileSync(out, 'utf8').replace(/"created_at":"[^"]*"/g, '');
        return { code, stdout: told(stdout), stderr: told(stderr), written };
      }),
    );
    expect(second).toEqual(first);
    expect(first.code).toBe(1);
    const formats = linesOf(first.stdout).map((row) => JSON.parse(row).format);
    expect(new Set(formats)).toEqual(new Set(['openai-chat', 'sharegpt', 'trace']));
  });

  test('kp-score score refuses standard input that is compressed with xz, with the way out', async () => {
    const stderr = 'cannot read stdin: it is compressed with xz: use xz -dc | kp-score score -\n';
    await expectRun(['score', '-'], { code: 3, stderr }, { input: Buffer.from('fd377a585a000004', 'hex') });
  });

  test('kp-score clean reads standard input', async () => {
    const stdout = 'DB_PASSWORD=[REDACTED:password-1]';
    const ended = await kpScore(['clean', '--quiet'], { input: 'DB_PASSWORD=hunter22' });
    expect(ended).toMatchObject({ code: 0, stdout, stderr: '' });
    // The filter would read it first.
    const refused = await kpScore(['clean', '--min-turns', '1'], { input: '' });
    expect(refused).toMatchObject({ code: 2, stdout: '' });
    expect(refused.stderr).toContain('stdin can be read only once, so it cannot be filtered');
  });

  test('kp-score score names the first twenty bad lines, and all with --verbose', async () => {
    // Each is wrong at another byte.
    const input = Array.from({ length: 50 }, (_, at) => `{"a":${10 ** at} nonsense}\n`).join('');
    for (const [args, count] of [
      [[], 20],
      [['--verbose'], 50],
    ]) {
      const { code, stderr } = await kpScore(['score', ...args, '-'], { input });
      expect(code).toBe(1);
      expect(linesOf(stderr).filter((line) => /^stdin:\d+:/.test(line))).toHaveLength(count);
    }
  });

  test('kp-score score prints no control character of what it quotes', async () => {
    const red = { ...scored[0], task: { objective: `${ESCAPE}[31mred\u202e\n` } };
    const { stdout, stderr } = await kpScore(['score', '-'], {
      input: `${ESCAPE}[2Jnonsense\n${jsonLines([red])}`,
    });
    expect((stdout + stderr).replaceAll('\n', '')).not.toMatch(/[\p{Cc}\p{Cf}]/u);
    expect(stdout).toContain('red');
  });
});

test('kp-score prints the summary on standard error, on standard output where nothing else is, and not with --quiet', async () => {
  const summary = /^4 traces scored in \d/m;
  const out = path.join(scratch, 'summary.jsonl');
  const rows = await kpScore(['score', '--format', 'jsonl', '-'], { input });
  expect(rows.stderr).toMatch(summary);
  expect(rows.stdout).not.toMatch(summary);
  const alone = await kpScore(['score', '--out', out, '-'], { input });
  expect(alone.stdout).toMatch(summary);
  expect(alone).toMatchObject({ stdout: expect.stringContaining(`${out}: 4 traces`), stderr: '' });
  const quiet = await kpScore(['score', '--out', out, '--quiet', '-'], { input });
  expect(quiet).toMatchObject({ code: 0, stdout: '', stderr: '' });
});

unix('bash completes the commands of kp-score and the options of each', async () => {
  const { stdout } = await kpScore(['completions', 'bash']);
  const script = write('kp-score.bash', stdout);
  const completed = (...words) => {
    // What bash does at a press of TAB.
    const press = `. "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _kp__score "$1" "\${@: -1}" "\${@: -2:1}"; echo "\${COMPREPLY[@]}"`;
    return execFileSync('bash', ['-c', press, script, ...words], { encoding: 'utf8' }).trim();
  };
  expect(completed('kp-score', 'sh')).toBe('show share');
  expect(completed('kp-score', 'share', '--pi')).toBe('--pick');
  // Zsh dispatches by the first word, not by one behind a path, and offers no option behind `*::`.
  const zsh = (await kpScore(['completions', 'zsh'])).stdout;
  expect(zsh).toContain('case $line[1] in');
  expect(zsh).not.toMatch(/^'\*::/m);
});

describe('the process', () => {
  test('kp-score --help ends with 0 where its reader has closed the pipe', async () => {
    const { child, ended } = start(['--help']);
    child.stdout.destroy();
    expect(await ended).toMatchObject({ code: 0, stderr: '' });
  });

  test('kp-score without its addon ends with 3 and a line for each attempt to load it', async () => {
    const env = { KNOWLEDGEPULSE_NATIVE_ADDON: path.join(scratch, 'none.node') };
    const { code, stderr } = await kpScore([examples], { env });
    expect(code).toBe(3);
    const lines = linesOf(stderr);
    expect(lines.length).toBeGreaterThanOrEqual(3);
    expect(lines[0]).toMatch(/^kp-score: @knowledgepulse\/native cannot load its addon/);
    expect(lines[1]).toMatch(/^ {2}KNOWLEDGEPULSE_NATIVE_ADDON: Cannot find module '.*none\.node'/);
  });

  // Elsewhere the peak is told in other units.
  (process.platform === 'linux' ? test : test.skip)(
    'kp-score score takes no more memory for 120 MB than for 20',
    async () => {
      const large = {
        ...scored[0],
        steps: [{ ...scored[0].steps[1], input: { page: 'x'.repeat(900_000) } }],
      };
      const small = jsonLines([scored[1]]);
      const megabyte = jsonLines([large]) + small.repeat((1e5 / small.length) | 0);
      const peak = "process.on('exit', () => console.error(process.resourceUsage().maxRSS));";
      const prelude = write('peak.cjs', peak);
      const memoryFor = async (megabytes) => {
        const args = ['--require', prelude, command, ...'score --format jsonl --out /dev/null -'.split(' ')];
        const feed = ({ stdin }) => Readable.from(Array(megabytes).fill(megabyte)).pipe(stdin);
        const { code, stderr } = await run(process.execPath, args, {}, undefined, feed);
        expect({ code, stderr }).toEqual({ code: 0, stderr: expect.stringContaining('scored in') });
        return Number(linesOf(stderr).at(-1)) * 1024;
      };
      const [few, many] = [await memoryFor(20), await memoryFor(120)];
      expect(few).toBeGreaterThan(10e6);
      expect(many).toBeLessThan(few + 50e6);
    },
  );
});

describe('files', () => {
  unix('kp-score score --out may have a name as long as names can be', async () => {
    const out = path.join(emptyDirectory(), 'x'.repeat(255));
    await expectRun(['score', '--out', out, '-'], { code: 0 }, { input });
    expect(readLines(out)).toHaveLength(scored.length);
  });

  unix('kp-score score --out keeps links and permissions, and writes to devices', async () => {
    const directory = emptyDirectory();
    const inDirectory = (name) => path.join(directory, name);
    fs.writeFileSync(inDirectory('file'), 'old', { mode: 0o640 });
    fs.symlinkSync('file', inDirectory('link'));
    const link = inDirectory('link');
    await expectRun(['score', '--out', link, inDirectory('file')], { code: 2, stderr: '--out is read too' });
    await expectRun(['score', '--out', link, '-'], { code: 0 }, { input });
    expect(fs.readlinkSync(link)).toBe('file');
    expect(readLines(link)).toHaveLength(scored.length);
    expect(fs.statSync(link).mode & 0o777).toBe(0o640);
    await expectRun(['score', '--out', '/dev/null', '-'], { code: 0 }, { input });
    expect(fs.statSync('/dev/null').isFile()).toBe(false);
    // A link stays one where there is no file yet too.
    fs.mkdirSync(inDirectory('folder'));
    fs.symlinkSync('folder/new', inDirectory('dangling'));
    const dangling = inDirectory('dangling');
    await expectRun(['score', '--out', dangling, '-'], { code: 0 }, { input });
    expect(fs.readlinkSync(dangling)).toBe('folder/new');
    expect(readLines(inDirectory('folder/new'))).toHaveLength(scored.length);
    // A run that could not read everything leaves the file that the link leads to.
    await expectRun(['score', '--out', dangling, examples, inDirectory('none')], {
      code: 3,
      stderr: `; ${dangling} is as it was`,
    });
    expect(filesIn(inDirectory('folder'))).toEqual(['new']);
    expect(readLines(inDirectory('folder/new'))).toHaveLength(scored.length);
  });

  test('kp-score score --out /dev/stdout is refused, because the file behind it would be replaced', async () => {
    const stderr = 'kp-score: --out must be a file; for results on standard output there is --format\n';
    await expectRun(['score', '--out', '/dev/stdout', examples], { code: 2, stderr });
  });

  (fs.existsSync('/dev/full') ? test : test.skip)('kp-score ends with 3 on a full disk', async () => {
    const stderr = /^kp-score: cannot write \/dev\/full: the disk is full \(ENOSPC\)/m;
    await expectRun(['score', '--out', '/dev/full', '-'], { code: 3, stderr }, { input });
    const args = ['-c', 'exec "$@" > /dev/full', 'sh', process.execPath, command, '--help'];
    expect(await run('sh', args)).toMatchObject({
      code: 3,
      stderr: 'kp-score: cannot write to standard output: the disk is full (ENOSPC)\n',
    });
  });

  unix('kp-score score --out is refused for the file that the shell opened as standard input', async () => {
    const file = write('shell.jsonl', input);
    const args = ['-c', 'exec "$@" < "$0"', file, process.execPath, command, 'score', '-', '--out', file];
    const stderr = 'kp-score: --out is read too: stdin; write to another file\n';
    expect(await run('sh', args)).toMatchObject({ code: 2, stderr });
    expect(fs.readFileSync(file, 'utf8')).toBe(input);
  });

  unix('kp-score score --out without room leaves the old file, and nothing else', async () => {
    const directory = emptyDirectory();
    const out = path.join(directory, 'out.jsonl');
    fs.writeFileSync(out, 'old');
    // In blocks of 512 or 1024 bytes.
    const limited = ['-c', 'trap "" XFSZ; ulimit -f 8; exec "$@"', 'sh', process.execPath, command];
    const { code, stderr } = await run('sh', [...limited, 'score', '--out', out, examples]);
    expect(code).toBe(3);
    expect(stderr).toMatch(/^kp-score: cannot write .*\(EFBIG\)/m);
    expect(fs.readFileSync(out, 'utf8')).toBe('old');
    expect(filesIn(directory)).toEqual(['out.jsonl']);
  });

  test('kp-score on hostile files loses no trace, and no file that was there', async () => {
    const program = path.join(__dirname, 'fuzz', 'command.mjs');
    const { code, stdout, stderr } = await run(process.execPath, [program, '--runs', '15']);
    // The output has the seed.
    expect({ code, stdout, stderr }).toEqual({
      code: 0,
      stdout: expect.stringMatching(/\nruns 15, /),
      stderr: '',
    });
  });
});

/** Settles when `condition` holds, which it must before the process ends. */
async function until({ child, output }, condition) {
  while (!condition()) {
    if (child.exitCode !== null) throw new Error(`it ended with ${child.exitCode}: ${output.stderr}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

(isWindows ? describe.skip : describe)('signals', () => {
  /** A file of a run that ended at once. */
  const temporary = expect.stringMatching(/^\.kp-score-\w+\.tmp$/);

  /** A directory with an old file, which an interrupted run leaves. */
  function oldFile() {
    const directory = emptyDirectory();
    const out = path.join(directory, 'out');
    fs.writeFileSync(out, 'old');
    const isLeft = (...more) => {
      expect(fs.readFileSync(out, 'utf8')).toBe('old');
      expect(filesIn(directory)).toEqual([...more, 'out']);
    };
    return { directory, out, isLeft };
  }

  /** Starts it on traces that come and come, and waits until it has scored some. */
  async function startEndless(...args) {
    const running = start(['score', '--format', 'jsonl', ...args, '-']);
    running.child.stdin.write(input);
    await once(running.child.stdout, 'readable');
    return running;
  }

  test.each(['SIGINT', 'SIGTERM', 'SIGHUP'])(
    'kp-score score at %s prints what was scored, leaves the old file, and ends with 130',
    async (signal) => {
      const { out, isLeft } = oldFile();
      const { child, ended } = await startEndless('--out', out);
      child.kill(signal);
      const { code, stdout, stderr } = await ended;
      expect(code).toBe(130);
      expect(stderr).toContain('once more to end at once');
      expect(stderr).toContain(`\nkp-score: interrupted: the rest was not read; ${out} is as it was\n`);
      expect(stdout.trim().split('\n')).toHaveLength(scored.length);
      isLeft();
    },
  );

  test('kp-score score at SIGINT before anything was scored leaves the old file', async () => {
    const { out, isLeft } = oldFile();
    const running = start(['score', '--out', out, '-']);
    running.child.stdin.write('no trace\n');
    await until(running, () => running.output.stderr.includes('stdin:1'));
    running.child.kill('SIGINT');
    expect((await running.ended).code).toBe(130);
    isLeft();
  });

  test('kp-score score at SIGINT in a record of another format prints those before it', async () => {
    const { child, ended } = start(['score', '--format', 'jsonl', '-']);
    const said = (id) => `${JSON.stringify({ id, messages: [{ role: 'user', content: `Ask ${id}` }] })}\n`;
    // The third may be the beginning of the fourth: rows of one run may grow.
    child.stdin.write(`${said(1)}${said(2)}${said(3)}{"id":4,"messages":[{"role":`);
    await once(child.stdout, 'readable');
    child.kill('SIGINT');
    const { code, stdout, stderr } = await ended;
    expect([code, stderr]).toEqual([130, expect.not.stringContaining('stdin:4')]);
    const printed = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line).objective);
    expect(printed).toEqual(['Ask 1', 'Ask 2']);
  });

  test('kp-score score at a second SIGINT ends at once, and leaves the old file alone', async () => {
    const { directory, out, isLeft } = oldFile();
    // A row that does not fit into the pipe, which is not read: the command cannot finish what it has begun.
    const large = jsonLines([{ ...scored[0], id: 'x'.repeat(4e6) }]);
    const running = start(['score', '--format', 'jsonl', '--out', out, '-']);
    const { child, ended, output } = running;
    child.stdin.write(large.repeat(3));
    await until(running, () => filesIn(directory).length === 2);
    await once(child.stdout, 'readable');
    child.kill('SIGINT');
    await until(running, () => output.stderr.includes('once more'));
    expect(child.exitCode).toBeNull();
    child.kill('SIGINT');
    // A shell calls that 130.
    expect(await ended).toMatchObject({ code: null, signal: 'SIGINT' });
    isLeft(temporary);
  });

  // Opening it does not return before its other end is opened.
  test.each([
    ['read', (fifo, out) => ['--out', out, fifo], [temporary, 'fifo']],
    ['written', (fifo) => ['--out', fifo, examples], ['fifo']],
  ])('kp-score score at two SIGTERM while a pipe waits to be %s ends at once', async (_, argsOf, left) => {
    const { out, directory, isLeft } = oldFile();
    const fifo = path.join(directory, 'fifo');
    execFileSync('mkfifo', [fifo]);
    const running = start(['score', '--novelty', 'prefix', '--verbose', ...argsOf(fifo, out)]);
    const { child, ended, output } = running;
    // The model is told before the output is opened.
    const isOpen = () => filesIn(directory).length > left.length;
    await until(running, () => output.stderr.includes('model:') && isOpen());
    child.kill('SIGTERM');
    await until(running, () => output.stderr.includes('once more') || child.exitCode !== null);
    child.kill('SIGTERM');
    const { code, signal } = await ended;
    expect([130, 'SIGTERM']).toContain(code ?? signal);
    isLeft(...left);
  });

  test.each([[[]], [['--out', 'out']]])(
    'kp-score score %j whose reader goes away ends quietly, and writes its files',
    async (args) => {
      const files = args.map((name) => (name === 'out' ? path.join(emptyDirectory(), name) : name));
      const { child, ended } = start(['score', '--format', 'jsonl', ...files, '-']);
      child.stdin.write(input.repeat(1000));
      await once(child.stdout, 'readable');
      child.stdout.destroy();
      child.stdin.end(input);
      const { code, stderr } = await ended;
      expect(code).toBe(0);
      expect(stderr).not.toMatch(/EPIPE|^ +at /m);
      if (files.length > 0) expect(readLines(files[1])).toHaveLength(1001 * scored.length);
    },
  );
});

const python = ['python3', 'python'].find((name) => spawnSync(name, ['-c', 'import pty']).status === 0);

// Windows has no such terminals. What a bar looks like is tested in crates/command (messages.rs).
(python === undefined ? describe.skip : describe)('on a terminal', () => {
  // What Node asks besides the terminal whether there are colours (`tty.WriteStream.getColorDepth`): where the tests run must not decide it.
  const COLOUR_SETTINGS = 'CI FORCE_COLOR NO_COLOR NODE_DISABLE_COLORS TEAMCITY_VERSION TF_BUILD'.split(' ');
  const ANY = { ...Object.fromEntries(COLOUR_SETTINGS.map((name) => [name, undefined])), TERM: 'xterm' };
  // Enough of them that the bar is drawn while they are scored.
  const many = write('many-terminal.jsonl', jsonLines(tracesOf(...Array(8000).fill(0.5))));

  /** What a terminal receives as standard error; as standard output too, if `which` is `both`. */
  async function drawn(args, { which = 'stderr', env } = {}) {
    const script = path.join(__dirname, 'support', 'terminal.py');
    const started = [script, which, process.execPath, command, 'score', ...args];
    const { code, stdout } = await run(python, started, { ...ANY, COLUMNS: '80', ...env });
    return { code, text: stdout.replaceAll('\r\n', '\n') };
  }

  test('kp-score score draws a bar that ends before the summary and the table, in colours', async () => {
    const { code, text } = await drawn([many], { which: 'both' });
    expect(code).toBe(0);
    const shares = [...text.matchAll(/(\d+) % {2}[\d.]+ \w+\/s/g)].map(([, share]) => Number(share));
    expect(shares).toEqual([...shares].sort((a, b) => a - b));
    expect(shares.at(-1)).toBe(100);
    const end = text.lastIndexOf('ETA');
    const [bar, table] = [text.slice(0, end + 10), text.slice(end + 10)];
    expect(bar).toMatch(/[█░]+.* +\d+ % {2}[\d.]+ \w+\/s {2}ETA \d+:\d\d/);
    expect(table).not.toContain('ETA');
    expect(table).toMatch(/8,000 traces scored/);
    expect(table).toContain('the 10 best of 8,000; --all shows all');
    expect(table).toContain(`${ESCAPE}[1m`);
    const plain = table.replace(new RegExp(`${ESCAPE}\\[[\\d;]*m`, 'g'), '');
    const rows = plain.split('\n').filter((line) => /^ *\d+ {2}\d\.\d{3} /.test(line));
    expect(rows).toHaveLength(10);
    for (const row of rows) expect(row.length).toBeLessThanOrEqual(80);
  });

  test('kp-score score with NO_COLOR has a bar without colours, below bad lines of their own', async () => {
    const bad = write('bad.jsonl', `nonsense\n${fs.readFileSync(many)}`);
    const { code, text } = await drawn([bad], { which: 'both', env: { NO_COLOR: '1' } });
    expect(code).toBe(1);
    expect(text).toContain('ETA');
    for (const colour of [1, 36]) expect(text).not.toContain(`${ESCAPE}[${colour}m`);
    const plain = text.replace(new RegExp(`${ESCAPE}\\[[?\\d;]*[a-zA-Z]`, 'g'), '\r');
    expect(plain).toMatch(/[\r\n].*bad\.jsonl:1: not JSON.*\n/);
  });

  test.each([[['--quiet']], [['--format', 'jsonl']]])('kp-score score %j draws no bar', async (args) => {
    const { code, text } = await drawn([...args, many], { which: args.length > 1 ? 'both' : 'stderr' });
    expect(code).toBe(0);
    expect(text).not.toContain(ESCAPE);
  });

  test('kp-score score without files does not wait for someone to type', async () => {
    const started = [
      '-c',
      'import pty, sys; sys.exit(pty.spawn(sys.argv[1:]) >> 8)',
      process.execPath,
      command,
    ];
    const env = { HOME: emptyDirectory(), CODEX_HOME: '', CLAUDE_CONFIG_DIR: '', XDG_CONFIG_HOME: '' };
    const { code, stdout } = await run(python, [...started, 'score'], env);
    expect({ code, stdout }).toEqual({
      code: 3,
      stdout: expect.stringContaining('no agent has left sessions on this machine'),
    });
  });
});

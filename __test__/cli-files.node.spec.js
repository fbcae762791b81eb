'use strict';

// The files that `kp-score` writes: that they are whole or not there, by links, pipes and standard input too, and what is left when it
// is interrupted. What is in them is in crates/command/tests/transcripts/output.md.

const { execFileSync, spawn } = require('node:child_process');
const { once } = require('node:events');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');

const {
  command,
  examples,
  expectRun,
  jsonLines,
  kpScore,
  readLines,
  start,
  tracesOf,
} = require('./support/kp-score.js');
const { run } = require('./support/run-script.js');
const { scratchDirectory } = require('./support/scratch.js');

const scratch = scratchDirectory('cli-files');
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

describe('--out', () => {
  test('must not be another output, be it by a link to what is not there yet', async () => {
    const directory = emptyDirectory();
    fs.mkdirSync(path.join(directory, 'folder'));
    fs.symlinkSync('folder', path.join(directory, 'link'), 'junction');
    const [one, other] = ['folder/new', 'link/new'].map((name) => path.join(directory, name));
    await expectRun(
      ['score', '--out', one, '--report', other],
      { code: 2, stderr: '--out and --report must not be the same file' },
      { input },
    );
  });

  describe('from standard input', () => {
    /** Runs it with a file as standard input, as a shell does for `<`. */
    async function readingFrom(file, args) {
      const descriptor = fs.openSync(file);
      const child = spawn(process.execPath, [command, 'score', ...args], {
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

    test.each(['--out', '--report'])('%s may not be that file', async (option) => {
      const file = write(emptyDirectory(), 'traces.jsonl', input);
      const { code, stderr } = await readingFrom(file, [option, file]);
      expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining('is read too: stdin') });
      expect(fs.readFileSync(file, 'utf8')).toBe(input);
    });
  });

  (isWindows ? test.skip : test)('may have a name as long as names can be', async () => {
    const out = path.join(emptyDirectory(), 'x'.repeat(255));
    expect(await kpScore(['score', '--out', out], { input })).toMatchObject({ code: 0 });
    expect(readLines(out)).toHaveLength(scored.length);
  });

  (isWindows ? test.skip : test)('keeps links and permissions, and writes to pipes and devices', async () => {
    const directory = emptyDirectory();
    const file = write(directory, 'file', 'old');
    fs.chmodSync(file, 0o640);
    fs.symlinkSync('file', path.join(directory, 'link'));
    await expectRun(['score', '--out', path.join(directory, 'link'), file], {
      code: 2,
      stderr: '--out is read too',
    });
    expect(await kpScore(['score', '--out', path.join(directory, 'link')], { input })).toMatchObject({
      code: 0,
    });
    expect(fs.readlinkSync(path.join(directory, 'link'))).toBe('file');
    expect(readLines(file)).toHaveLength(scored.length);
    expect(fs.statSync(file).mode & 0o777).toBe(0o640);
    expect(await kpScore(['score', '--out', '/dev/null'], { input })).toMatchObject({ code: 0 });
    expect(fs.statSync('/dev/null').isFile()).toBe(false);
    // A link stays one where there is no file yet too.
    fs.mkdirSync(path.join(directory, 'folder'));
    fs.symlinkSync('dangling', path.join(directory, 'link to link'));
    fs.symlinkSync('folder/new', path.join(directory, 'dangling'));
    const link = path.join(directory, 'link to link');
    expect(await kpScore(['score', '--out', link], { input })).toMatchObject({ code: 0 });
    expect(fs.readlinkSync(link)).toBe('dangling');
    expect(fs.readlinkSync(path.join(directory, 'dangling'))).toBe('folder/new');
    expect(readLines(path.join(directory, 'folder', 'new'))).toHaveLength(scored.length);
    // The results of a run that could not read everything lie beside the file that the links lead to.
    const partial = path.join(fs.realpathSync(directory), 'folder', 'new.partial');
    await expectRun(['score', '--out', link, examples, path.join(directory, 'none')], {
      code: 3,
      stderr: `what was scored is in ${partial}, and ${link} is as it was`,
    });
    expect(readLines(partial)).toHaveLength(readLines(examples).length);
  });

  (isWindows ? test.skip : test)('/dev/stdout is written to, what it is redirected to stays', async () => {
    const log = write(emptyDirectory(), 'log', 'old\n');
    const args = [process.execPath, command, 'score', '--quiet', '--out', '/dev/stdout', examples];
    await run('sh', ['-c', '"$@" >> "$LOG"; echo after >> "$LOG"', 'sh', ...args], { LOG: log });
    const lines = readLines(log);
    expect([lines[0], lines.at(-1)]).toEqual(['old', 'after']);
    expect(lines).toHaveLength(readLines(examples).length + 2);
  });

  test('removes what a killed run has left beside it, and nothing else', async () => {
    const directory = emptyDirectory();
    const running = start(['score', '--format', 'jsonl', '--out', path.join(directory, 'first')]);
    running.child.stdin.write(input);
    await once(running.child.stdout, 'readable');
    const [left] = fs.readdirSync(directory);
    expect(left).toMatch(/^\.kp-score-\w+\.tmp$/);
    const score = () => kpScore(['score', '--out', path.join(directory, 'out')], { input });
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
      ['score', '--out', full],
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
      const { code, stderr } = await run('sh', [...limited, 'score', '--out', out, examples]);
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
      ['score', '--out', path.join(directory, 'out')],
      { code: 3, stderr: 'permission denied (EACCES)' },
      { input },
    );
  });
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

test('--report writes a page with the traces and the bad lines', async () => {
  const report = path.join(emptyDirectory(), 'report.html');
  const expected = { code: 1, stdout: `written   ${report}\n` };
  await expectRun(['score', '--report', report], expected, { input: `${input}nonsense\n` });
  const page = fs.readFileSync(report, 'utf8');
  expect(page).toMatch(/^<!doctype html>/i);
  for (const part of [scored[3].id, 'not JSON']) expect(page).toContain(part);
});

describe('--memory', () => {
  const save = async (memory, ...args) =>
    expectRun(
      ['score', '--quiet', '--out', path.join(scratch, 'out'), '--memory', memory, ...args, examples],
      {
        code: 0,
      },
    );

  test('of another novelty method is refused, and left as it was', async () => {
    const directory = emptyDirectory();
    const out = path.join(directory, 'out');
    const fileOf = (novelty) => path.join(directory, novelty);
    const novelties = ['prefix', 'lexical', 'full'];
    await Promise.all(novelties.map((novelty) => save(fileOf(novelty), '--novelty', novelty)));
    const pairs = novelties.flatMap((held) =>
      novelties.filter((other) => other !== held).map((other) => [held, other]),
    );
    for (const [held, other] of pairs) {
      const memory = fileOf(held);
      const before = fs.readFileSync(memory);
      await expectRun(['score', '--memory', memory, '--novelty', other, '--out', out, examples], {
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
    await save(memory, '--novelty', 'prefix');
    const before = fs.readFileSync(memory);
    const args = ['score', '--novelty', 'prefix', '--memory', memory, '--out', out, examples];
    const { code, stderr } = await kpScore(args, { env: { KNOWLEDGEPULSE_DTYPE: 'q8' } });
    expect(code).toBe(3);
    expect(stderr).toContain(memory);
    expect(stderr).toMatch(
      /: use another file, or KNOWLEDGEPULSE_MODEL_DIR for the model that it was made with$/m,
    );
    expect(stderr).not.toContain('{');
    expect(fs.readFileSync(memory).equals(before)).toBe(true);
    expect(fs.readFileSync(out, 'utf8')).toBe('old');
    expect(fs.readdirSync(directory).sort()).toEqual(['memory', 'out']);
  });

  describe('of another run that goes on', () => {
    async function startWith(directory) {
      const memory = path.join(directory, 'memory');
      const running = start(['score', '--format', 'json', '--memory', memory]);
      await until(running, () => fs.existsSync(`${memory}.lock`));
      return { ...running, memory };
    }

    test('is refused at once, and nothing is lost', async () => {
      const directory = emptyDirectory();
      const { child, ended, memory } = await startWith(directory);
      const out = write(directory, 'out', 'old');
      const refused = await kpScore(['score', '--memory', memory, '--out', out], { input });
      expect(refused.code).toBe(3);
      expect(refused.stderr).toContain(`${memory} is in use by `);
      // Windows does not tell.
      if (!isWindows) expect(refused.stderr).toContain(`process ${child.pid} on ${os.hostname()}`);
      expect(refused.stderr).toContain(`${memory}.lock: wait until it has ended, or name another file`);
      expect(fs.readFileSync(out, 'utf8')).toBe('old');
      child.stdin.end(input);
      expect((await ended).code).toBe(0);
      expect(fs.readdirSync(directory).sort()).toEqual(['memory', 'out']);
      const next = await kpScore(['score', '--format', 'json', '--memory', memory], { input });
      expect(JSON.parse(next.stdout).summary.memory.before).toBe(scored.length);
    });

    test('is free when that was killed', async () => {
      const directory = emptyDirectory();
      const { child, ended, memory } = await startWith(directory);
      child.kill('SIGKILL');
      await ended;
      expect(fs.readdirSync(directory)).toEqual(['memory.lock']);
      expect((await kpScore(['score', '--memory', memory], { input })).code).toBe(0);
      expect(fs.readdirSync(directory)).toEqual(['memory']);
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

(isWindows ? describe.skip : describe)('interrupted', () => {
  /** Starts it on traces that come and come, and waits until it has scored some. */
  async function startEndless(args) {
    const running = start(['score', '--format', 'jsonl', ...args]);
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
          `and ${out}, ${report} are as they were\n`,
      );
      const written = readLines(`${out}.partial`).map((line) => JSON.parse(line).id);
      expect(written).toEqual(scored.map(({ id }) => id));
      expect(fs.readFileSync(`${report}.partial`, 'utf8')).toMatch(/<\/html>\s*$/);
      for (const file of [out, report]) expect(fs.readFileSync(file, 'utf8')).toBe('old');
      expect(fs.readdirSync(directory).sort()).toEqual(['out', 'out.partial', 'report', 'report.partial']);
    },
  );

  test('before anything was scored, it leaves all files as they were', async () => {
    const directory = emptyDirectory();
    const [out, report] = ['out', 'report'].map((name) => write(directory, name, 'old'));
    const memory = path.join(directory, 'memory');
    const { child, ended } = start([
      'score',
      '--out',
      out,
      '--report',
      report,
      '--memory',
      memory,
      '--format',
      'csv',
    ]);
    await once(child.stdout, 'readable');
    child.kill('SIGINT');
    expect((await ended).code).toBe(130);
    expect(fs.readdirSync(directory).sort()).toEqual(['out', 'report']);
    for (const file of [out, report]) expect(fs.readFileSync(file, 'utf8')).toBe('old');
  });

  test('in another format, of which no more is read', async () => {
    const out = path.join(emptyDirectory(), 'out');
    const { child, ended } = start(['score', '--format', 'jsonl', '--out', out]);
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

  test('the memory is as it was', async () => {
    const memory = path.join(emptyDirectory(), 'memory');
    const running = start(['score', '--format', 'json', '--memory', memory]);
    running.child.stdin.write(input);
    // The first row comes when all of these have been handed in.
    const { stdout } = running.child;
    // The call makes it read.
    await until(running, () => stdout.read(0) === null && stdout.readableLength > '{"results":['.length);
    running.child.kill('SIGINT');
    expect((await running.ended).code).toBe(130);
    const next = await kpScore(['score', '--format', 'json', '--memory', memory], { input });
    expect(JSON.parse(next.stdout).summary.memory.before).toBe(0);
  });

  test('twice: it ends at once, the old files are untouched and no others are left', async () => {
    const directory = emptyDirectory();
    const out = write(directory, 'out', 'old');
    // A row that does not fit into the pipe, which is not read: the command cannot finish what it has begun.
    const large = jsonLines([{ ...scored[0], id: 'x'.repeat(4e6) }]);
    const running = start(['score', '--format', 'jsonl', '--out', out]);
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
    const running = start(['score', '--novelty', 'prefix', '--verbose', ...argsOf(fifo, out)]);
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
    const { child, ended } = start(['score', '--format', 'jsonl', '-']);
    child.stdin.write(endless);
    await once(child.stdout, 'readable');
    child.stdout.destroy();
    const { code, stderr } = await ended;
    expect(code).toBe(0);
    expect(stderr).not.toMatch(/EPIPE|^ +at /m);
  });

  test('does not keep the files from being written', async () => {
    const out = path.join(emptyDirectory(), 'out');
    const { child, ended } = start(['score', '--format', 'jsonl', '--out', out, '-']);
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
    const args = [command, 'score', '--format', 'csv', '--out', '/dev/null'];
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

'use strict';

// What `kp-score` draws on a terminal, and that it draws nowhere else.

const { spawnSync } = require('node:child_process');
const path = require('node:path');
const { gzipSync } = require('node:zlib');

const { command, jsonLines, kpScore, tracesOf } = require('./support/kp-score.js');
const { run } = require('./support/run-script.js');
const { scratchDirectory, writerIn } = require('./support/scratch.js');

const scratch = scratchDirectory('cli-terminal');
const write = writerIn(scratch);
const ESCAPE = '\u001b';
const script = path.join(__dirname, 'support', 'terminal.py');

const python = ['python3', 'python'].find((name) => spawnSync(name, ['-c', 'import pty']).status === 0);
// Windows has no such terminals.
const describeTerminal = python === undefined ? describe.skip : describe;

// What Node asks besides the terminal whether there are colours (`tty.WriteStream.getColorDepth`): where the
// tests run, a CI say, must not decide it.
const COLOUR_SETTINGS = 'CI FORCE_COLOR NO_COLOR NODE_DISABLE_COLORS TEAMCITY_VERSION TF_BUILD'.split(' ');
const ANY_TERMINAL = {
  ...Object.fromEntries(COLOUR_SETTINGS.map((name) => [name, undefined])),
  TERM: 'xterm',
};

// Enough of them that the bar is drawn while they are scored.
const input = jsonLines(tracesOf(...Array.from({ length: 20_000 }, (_, at) => at / 20_000)));

/** What a terminal receives as standard error; as standard output too, if `which` is `both`. */
async function drawn(args, { which = 'stderr', env } = {}) {
  const started = [python, script, which, process.execPath, command, 'score', ...args];
  const { code, stdout } = await run(started[0], started.slice(1), {
    ...ANY_TERMINAL,
    ...env,
  });
  return { code, text: stdout.replaceAll('\r\n', '\n') };
}

describeTerminal('on a terminal', () => {
  test('there is a bar, with the rate and the time that is left, and none at the end', async () => {
    const { code, text } = await drawn([write('traces.jsonl', input)]);
    expect(code).toBe(0);
    expect(text).toMatch(/[█░]+.* +\d+ % {2}[\d,]+ traces {2}[\d,.]+\/s {2}ETA \d+:\d\d/);
    const shares = [...text.matchAll(/(\d+) %/g)].map(([, share]) => Number(share));
    expect(shares).toEqual([...shares].sort((a, b) => a - b));
    expect(shares.at(-1)).toBe(100);
    // The summary begins a line of its own, after the bar is gone and the cursor back.
    const [bar, summary] = text.split(`${ESCAPE}[?25h`);
    expect(bar).toContain('ETA');
    expect(summary).toMatch(/20,000 traces scored/);
    expect(summary).not.toContain('ETA');
  });

  test('compressed traces have one too', async () => {
    // Blank lines between them count too in the end.
    const { text } = await drawn([write('traces.gz', gzipSync(`${input}${'\n'.repeat(1e6)}`))]);
    expect(text).toMatch(/100 % {2}20,000 traces/);
  });

  test('bad lines are reported above it, on lines of their own', async () => {
    const { code, text } = await drawn([write('bad.jsonl', `nonsense\n${input}[1]\n`)]);
    expect(code).toBe(1);
    const plain = text.replace(new RegExp(`${ESCAPE}\\[[?\\d;]*[a-zA-Z]`, 'g'), '\r');
    for (const message of ['1: not JSON', '20002\\[0\\]: trace must be'])
      expect(plain).toMatch(new RegExp(`[\\r\\n].*bad\\.jsonl:${message}.*\\n`));
  });

  test('colours end where NO_COLOR begins', async () => {
    const file = write('coloured.jsonl', input);
    expect((await drawn([file])).text).toContain(`${ESCAPE}[36m`);
    const { text } = await drawn([file], { env: { NO_COLOR: '1' } });
    expect(text).toContain('ETA');
    expect(text).not.toContain(`${ESCAPE}[36m`);
  });

  test.each([['--no-progress'], ['--quiet']])('%s: none', async (option) => {
    const { code, text } = await drawn([option, write('traces.jsonl', input)]);
    expect(code).toBe(0);
    expect(text).not.toContain(ESCAPE);
  });

  test('none among rows on the same terminal', async () => {
    const args = ['--format', 'csv', write('traces.jsonl', input)];
    const { text } = await drawn(args, { which: 'both' });
    expect(text).not.toContain(ESCAPE);
    expect(text).toContain('kp:trace:19999');
  });

  test('the table follows the bar, as wide as the terminal and in colours', async () => {
    const file = write('traces.jsonl', input);
    const { code, text } = await drawn([file], { which: 'both', env: { COLUMNS: '80' } });
    expect(code).toBe(0);
    const [bar, table] = text.split(`${ESCAPE}[?25h`);
    expect(bar).toContain('ETA');
    expect(table).toContain('the 10 best of 20,000; --all shows all');
    expect(table).toContain(`${ESCAPE}[32myes${ESCAPE}[0m`);
    const plain = table.replace(new RegExp(`${ESCAPE}\\[[\\d;]*m`, 'g'), '');
    const rows = plain.split('\n').filter((line) => /^ *\d+ {2}\d\.\d{3} /.test(line));
    expect(rows).toHaveLength(10);
    for (const row of rows) expect(row.length).toBeLessThanOrEqual(80);
    const { text: colourless } = await drawn([file], { which: 'both', env: { NO_COLOR: '1' } });
    expect(colourless).not.toContain(`${ESCAPE}[32m`);
  });

  test('without files it does not wait for someone to type', async () => {
    const started = [
      '-c',
      'import pty, sys; sys.exit(pty.spawn(sys.argv[1:]) >> 8)',
      process.execPath,
      command,
      'score',
    ];
    const { code, stdout } = await run(python, started);
    expect(code).toBe(2);
    expect(stdout).toContain('there is nothing to read');
  });
});

test('in a pipe there is no bar', async () => {
  const { code, stderr } = await kpScore(['score'], { input });
  expect(code).toBe(0);
  expect(stderr).not.toContain(ESCAPE);
});

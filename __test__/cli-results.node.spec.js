'use strict';

// What `kp-score` shows of the traces that it has scored, and what it says of options that changed nothing.

const fs = require('node:fs');
const path = require('node:path');

const { examples, jsonLines, kpScore, linesOf, readLines, tracesOf } = require('./support/kp-score.js');
const { makeTrace } = require('./support/make-trace.js');
const { scratchDirectory, writerIn } = require('./support/scratch.js');

const scratch = scratchDirectory('cli-results');
const write = writerIn(scratch);
const NO_EMBEDDER = '--no-embedder';
const FORMATS = ['table', 'json', 'jsonl', 'csv'];
const formats = path.join(__dirname, 'formats');

/** Traces of one domain, which score by their confidence. */
const ranked = (...confidences) =>
  tracesOf(...confidences).map((trace) => ({
    ...trace,
    metadata: { ...trace.metadata, task_domain: 'code' },
  }));

/** The rows that a format shows, without its heading. */
function rowsOf(format, stdout) {
  if (format === 'json') return JSON.parse(stdout).results.map((result) => JSON.stringify(result));
  const lines = linesOf(stdout);
  return format === 'jsonl' ? lines : lines.slice(1);
}

const idOf = (text) => /kp:trace:\d+/.exec(text)[0];

describe('kp-score --top', () => {
  test.each(FORMATS)(
    '%s shows the best traces alone, the best first, of equal scores the first',
    async (format) => {
      const input = jsonLines(ranked(0.3, 0.9, 0.5, 0.9, 0.9, 0.1, 0.95));
      const { code, stdout, stderr } = await kpScore([NO_EMBEDDER, '--top', '3', '--format', format], {
        input,
      });
      expect(code).toBe(0);
      expect(rowsOf(format, stdout).map(idOf)).toEqual(['kp:trace:6', 'kp:trace:1', 'kp:trace:3']);
      expect(stderr).toMatch(/^7 traces scored/m);
      expect(stderr).toMatch(/^ +kept +3 of the best 3, .*, 4 below$/m);
    },
  );

  test('shows the best of several thousand traces in the order of their scores', async () => {
    const confidences = Array.from({ length: 5000 }, (_, at) => ((at * 7919) % 1000) / 1000);
    const input = jsonLines(ranked(...confidences));
    const args = [NO_EMBEDDER, '--top', '90%', '--explain', '--format', 'json'];
    const { results, summary } = JSON.parse((await kpScore(args, { input })).stdout);
    const order = [...confidences.keys()].sort((a, b) => confidences[b] - confidences[a] || a - b);
    expect(results.map(({ line }) => line - 1)).toEqual(order.slice(0, 4500));
    expect(results.every(({ kept }) => kept)).toBe(true);
    expect(summary).toMatchObject({ scored: 5000, kept: 4500, dropped: 500 });
  });

  test('table has no column that says which traces are kept', async () => {
    const { stdout } = await kpScore([NO_EMBEDDER, '--top', '1', examples]);
    expect(linesOf(stdout)).toEqual([
      expect.stringMatching(/^score +domain +trace$/),
      expect.stringMatching(/^0\.\d{4} /),
    ]);
  });
});

describe('rows of kp-score', () => {
  test('table names file, line, objective and id of converted traces', async () => {
    const file = path.join(formats, 'session.jsonl');
    const { stdout } = await kpScore([NO_EMBEDDER, 'session.jsonl'], { cwd: path.dirname(file) });
    const rows = linesOf(stdout).slice(1);
    expect(rows[0]).toMatch(
      /^0\.\d{4} {2}\S+ {2}code +session\.jsonl:3 {2}The date parser takes 30 February\. Fix it\. {2}kp:trace:[\w-]{36}$/,
    );
    expect(rows[1]).toMatch(/ session\.jsonl:9 {2}Find the date parser {2}kp:trace:[\w-]{36}$/);
  });

  test('table shows the end of a long path, and the beginning of a long objective', async () => {
    const directory = path.join(scratch, 'a directory whose name is not short at all', 'and one in it');
    fs.mkdirSync(directory, { recursive: true });
    const file = path.join(directory, 'traces.jsonl');
    fs.writeFileSync(
      file,
      jsonLines([makeTrace({ objective: `\n  first line\nsecond line ${'x'.repeat(1e5)}` })]),
    );
    const [, row] = linesOf((await kpScore([NO_EMBEDDER, file])).stdout);
    expect(row).toMatch(/ {2}…[^…]{25}traces\.jsonl:1 {2}first line second line x+… {2}kp:trace:\S+$/);
    expect(row.length).toBeLessThan(200);
  });

  test('json, jsonl and csv have the first 240 characters of the objective', async () => {
    const input = jsonLines([
      makeTrace({ objective: `=1+1 ${'x'.repeat(1000)}` }),
      makeTrace({ objective: '' }),
    ]);
    const run = async (format) => (await kpScore([NO_EMBEDDER, '--format', format], { input })).stdout;
    const expected = [`=1+1 ${'x'.repeat(235)}`, ''];
    expect(JSON.parse(await run('json')).results.map(({ objective }) => objective)).toEqual(expected);
    expect(linesOf(await run('jsonl')).map((line) => JSON.parse(line).objective)).toEqual(expected);
    const [columns, first, second] = linesOf(await run('csv')).map((line) => line.split(','));
    expect(columns[4]).toBe('objective');
    // A spreadsheet takes no cell for a formula.
    expect([first[4], second[4]]).toEqual([`'${expected[0]}`, '']);
  });

  test.each(FORMATS)('%s shows the cleaned objective with --clean', async (format) => {
    const input = jsonLines([makeTrace({ objective: 'Write to eve@example.com, password=Hunter2Hunter2' })]);
    for (const more of [[], ['--top', '1']]) {
      const args = [NO_EMBEDDER, '--clean', '--format', format, ...more];
      const { code, stdout } = await kpScore(args, { input });
      expect(code).toBe(0);
      expect(stdout).toContain('Write to [REDACTED:email], password=[REDACTED:password]');
      expect(stdout).not.toMatch(/eve@|Hunter2/);
    }
  });

  test('csv has no noise of single precision in novelty and similarity; json has the numbers of the API', async () => {
    // Of some of these the similarity to themselves is not 1 in single precision.
    const traces = readLines(examples).slice(0, 8);
    const input = [...traces, ...traces].map((line) => `${line}\n`).join('');
    const run = async (format) => (await kpScore(['--explain', '--format', format], { input })).stdout;
    const { results } = JSON.parse(await run('json'));
    const exact = results.slice(8).map(({ breakdown }) => breakdown.nearest.similarity);
    expect(exact.some((similarity) => similarity !== 1)).toBe(true);
    for (const similarity of exact) expect(similarity).toBeCloseTo(1, 6);
    const [columns, ...rows] = linesOf(await run('csv')).map((line) =>
      line.match(/("([^"]|"")*"|[^,]*)(,|$)/g).map((cell) => cell.replace(/,$/, '')),
    );
    const cells = (name) => rows.slice(8).map((row) => row[columns.indexOf(name)]);
    expect(cells('novelty')).toEqual(Array(8).fill('0'));
    expect(cells('nearestSimilarity')).toEqual(Array(8).fill('1'));
  });
});

describe('kp-score of a file that does not exist', () => {
  const missing = path.join(scratch, 'mistyped.jsonl');

  test.each([
    ['table', ''],
    ['jsonl', ''],
  ])('%s prints the failure alone: code 3', async (format, stdout) => {
    expect(await kpScore([NO_EMBEDDER, '--format', format, missing])).toMatchObject({
      code: 3,
      stdout,
      stderr: `kp-score: cannot read ${missing}: no such file or directory (ENOENT)\n`,
    });
  });

  test('json prints a document without results', async () => {
    const { code, stdout } = await kpScore([NO_EMBEDDER, '--format', 'json', missing]);
    expect({ code, document: JSON.parse(stdout) }).toMatchObject({ code: 3, document: { results: [] } });
  });

  test('prints rows and the summary of the other files', async () => {
    const { code, stdout, stderr } = await kpScore([NO_EMBEDDER, missing, examples]);
    expect(code).toBe(3);
    expect(linesOf(stdout)[0]).toMatch(/^score +domain +trace$/);
    expect(stderr).toMatch(/^30 traces scored/m);
  });
});

describe('kp-score on one thread and on five', () => {
  const text = (number) =>
    Array.from({ length: 60 }, (_, at) => `word${(number * (at + 1) * 7919) % 400}`).join(' ');
  const traces = tracesOf(...Array.from({ length: 1500 }, () => 0.5)).map((trace, number) => ({
    ...trace,
    task: { objective: text(number % 1400) },
    steps: [{ step_id: 0, type: 'thought', content: text(number).repeat(10) }],
  }));
  // More than one batch, and records of every kind: a repeated trace, one without an end, and no JSON.
  const lines = [...traces, ...traces.slice(700, 720)].map((trace) => JSON.stringify(trace));
  lines.splice(300, 0, '{"broken', '[]', '{}');

  test.each([
    ['without a comparison', [NO_EMBEDDER]],
    ['by words', ['--novelty', 'lexical']],
    ['by words, cleaned', ['--novelty', 'lexical', '--clean']],
    ['by words, with a memory', ['--novelty', 'lexical', '--memory']],
  ])('prints the same bytes %s', async (_, args) => {
    const inputs = [
      write('first.jsonl', lines.join('\n')),
      write('second.jsonl', lines.slice(0, 9).join('\n')),
    ];
    const print = (threads) => {
      const memory = args.includes('--memory') ? [path.join(scratch, `memory-${threads}`)] : [];
      return kpScore([...args, ...memory, '--format', 'jsonl', ...inputs], {
        env: { RAYON_NUM_THREADS: threads },
      });
    };
    const one = await print('1');
    const five = await print('5');
    const badLines = ({ stderr }) => linesOf(stderr).filter((line) => line.includes('.jsonl:'));
    // The memory keeps the last 1,000, so it has forgotten the traces that the second file repeats.
    expect(linesOf(one.stdout)).toHaveLength(args.includes('--memory') ? 1509 : 1529);
    expect(badLines(one)).toHaveLength(2);
    expect({ ...five, stderr: badLines(five) }).toEqual({ ...one, stderr: badLines(one) });
  });
});

test('kp-score of an empty input prints a warning alone', async () => {
  expect(await kpScore([NO_EMBEDDER])).toMatchObject({
    code: 0,
    stdout: '',
    stderr: 'kp-score: warning: there is no trace in stdin; see kp-score --help\n',
  });
});

describe('options of other formats', () => {
  const warnings = async (...args) => {
    const { code, stderr } = await kpScore([NO_EMBEDDER, '--out', path.join(scratch, 'out.jsonl'), ...args]);
    expect(code).toBe(0);
    return linesOf(stderr);
  };

  test('a warning counts the ReasoningTraces that --success, --confidence and --domain do not change', async () => {
    expect(await warnings('--success', 'yes', examples)).toEqual([
      'kp-score: warning: --success: without effect on 30 of 30 traces, which are ReasoningTraces and keep their own values',
    ]);
    const given = ['--success', 'yes', '--confidence', '1', '--domain', 'code'];
    expect(await warnings(...given, examples, path.join(formats, 'chat.jsonl'))).toEqual([
      expect.stringMatching(
        /^kp-score: warning: --success, --confidence, --domain: without effect on 30 of 3[1-9] traces, which /,
      ),
    ]);
  });

  test('there is no warning where all traces are converted', async () => {
    expect(await warnings('--success', 'yes', path.join(formats, 'chat.jsonl'))).toEqual([]);
  });

  test.each([
    ['medcial', 'medical'],
    ['Code', 'code'],
    ['customer-service', 'customer_service'],
  ])('a warning asks whether --domain %s is meant to be %s', async (domain, meant) => {
    expect(await warnings('--domain', domain, path.join(formats, 'chat.jsonl'))).toEqual([
      `kp-score: warning: --domain ${domain} has no weights of its own, so those of default are used; did you mean ${meant}?`,
    ]);
  });

  test.each(['medical', 'default', 'astronomy', 'qa'])('--domain %s needs no warning', async (domain) => {
    expect(await warnings('--domain', domain, path.join(formats, 'chat.jsonl'))).toEqual([]);
  });
});

describe('kp-score --weights', () => {
  const profile = { complexity: 0.1, novelty: 0.2, toolDiversity: 0.3, outcome: 0.4 };
  const run = (weights, ...args) =>
    kpScore([
      NO_EMBEDDER,
      '--quiet',
      '--weights',
      write('weights.json', JSON.stringify(weights)),
      ...args,
      examples,
    ]);
  const file = path.join(scratch, 'weights.json');

  test.each([
    [
      'an unknown weight',
      { code: { ...profile, toolDiversty: 0 } },
      `${file}["code"].toolDiversty is not known; ${file}["code"] has complexity, novelty, toolDiversity, outcome`,
    ],
    ['a weight that is missing', { code: { novelty: 1 } }, `${file}["code"].complexity must be a number`],
    ['another sum', { code: { ...profile, outcome: 1 } }, `${file}["code"] must sum to 1, but sums to 1.6`],
    ['a list', [profile], `${file} must be an object, got array`],
  ])('%s is refused with the path in the file: code 3', async (_, weights, message) => {
    expect(await run(weights)).toMatchObject({ code: 3, stderr: `kp-score: ${message}\n` });
  });

  test('a warning names domains that no trace has, and similar ones', async () => {
    const weights = { medcial: profile, code: profile, default: profile, astronmy: profile, legal: profile };
    const out = path.join(scratch, 'weighed.jsonl');
    const args = [NO_EMBEDDER, '--weights', write('weights.json', JSON.stringify(weights)), '--out', out];
    expect(await kpScore([...args, examples])).toMatchObject({
      code: 0,
      stderr:
        `kp-score: warning: ${file} has weights for domains that no trace has: ` +
        '"medcial" (did you mean "medical"?), "astronmy" (did you mean "astronomy"?), "legal"\n',
    });
  });

  test('there is no warning where traces are of all domains', async () => {
    const weights = { medical: profile, astronomy: profile, default: profile };
    const args = [NO_EMBEDDER, '--weights', write('weights.json', JSON.stringify(weights)), examples];
    expect((await kpScore(args)).stderr).not.toContain('warning');
  });
});

test.each(['prefix', 'full'])(
  '--novelty %s and --no-embedder exclude each other: code 2',
  async (novelty) => {
    expect(await kpScore([NO_EMBEDDER, '--novelty', novelty, examples])).toMatchObject({
      code: 2,
      stderr: 'kp-score: --novelty and --no-embedder exclude each other; see kp-score --help\n',
    });
  },
);

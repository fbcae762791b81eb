'use strict';

// What `kp-score` computes with a model, how it reads standard input, and how it runs on Node.js. The rest of what it prints is in the
// transcripts of crates/command/tests.

const fs = require('node:fs');
const path = require('node:path');

const { select, TraceMemory } = require('..');
const { Scorer, explain } = require('../lib/scorer.js');
const { version } = require('../package.json');
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
const { addon } = require('./support/addon.js');
const { modelDirectory, readTraces } = require('./support/paths.js');
const { run } = require('./support/run-script.js');
const { copyPackage, scratchDirectory, writerIn } = require('./support/scratch.js');

const scratch = scratchDirectory('cli');
const write = writerIn(scratch);
const nowhere = path.join(scratch, 'nowhere');
const ESCAPE = '\u001b';

const traces = readTraces(examples);

/** What a scorer says of traces, one after another. */
async function explained(traces, options) {
  const scorer = new Scorer(options);
  const breakdowns = [];
  for (const trace of traces) breakdowns.push(await explain(scorer, trace, true));
  return breakdowns;
}

const breakdowns = (results) => results.map(({ breakdown }) => breakdown);

describe('scores', () => {
  const weights = { finance: { complexity: 0.1, novelty: 0.2, toolDiversity: 0.3, outcomeConfidence: 0.4 } };

  test.each([
    [['--novelty', 'prefix'], () => ({})],
    [[], () => ({ memory: new TraceMemory({ method: 'lexical' }) })],
    [
      ['--weights', write('weights.json', JSON.stringify(weights))],
      () => ({ memory: new TraceMemory({ method: 'lexical' }), weights }),
    ],
  ])('with %j are those of a Scorer, with their explanation', async (args, options) => {
    const found = await results([...args, '--explain', examples]);
    expect(breakdowns(found)).toEqual(await explained(traces, options()));
    expect(found.map(({ breakdown, ...fields }) => fields)).toEqual(
      traces.map(({ id, metadata, steps, task }, at) => ({
        source: examples,
        line: at + 1,
        index: null,
        id,
        objective: task.objective.slice(0, 240),
        agent: 'trace',
        when: new Date(metadata.created_at).toISOString(),
        steps: steps.length,
        success: metadata.success,
        domain: metadata.task_domain ?? 'default',
        score: found[at].breakdown.score,
        format: 'trace',
      })),
    );
  });

  test('of several inputs come in their order, and novelty is against all before', async () => {
    const half = traces.length >> 1;
    const [first, last] = [traces.slice(0, half), traces.slice(half)];
    const file = write('first.jsonl', jsonLines(first));
    const found = await results([file, '-', file, '--explain'], { input: jsonLines(last) });
    expect(breakdowns(found)).toEqual(
      await explained([...first, ...last, ...first], { memory: new TraceMemory({ method: 'lexical' }) }),
    );
    expect(new Set(found.map(({ source }) => source))).toEqual(new Set([file, 'stdin']));
  });

  test('--novelty full looks beyond the first 512 tokens', async () => {
    const start = 'The customer asks where the parcel is. '.repeat(100);
    // A step of its own, which counts as much as the long objective.
    const long = ['It was found in Lisbon.', 'The planet has two moons and no atmosphere.'].map((content) =>
      makeTrace({ objective: start, steps: [{ type: 'observation', content }] }),
    );
    const run = (method) => results(['--novelty', method, '--explain'], { input: jsonLines(long) });
    const [prefix, full] = [await run('prefix'), await run('full')];
    expect(breakdowns(full)).toEqual(await explained(long, { memory: new TraceMemory({ method: 'full' }) }));
    expect(prefix[1].breakdown.dimensions.novelty).toBeLessThan(1e-6);
    expect(full[1].breakdown.dimensions.novelty).toBeGreaterThan(0.1);
  });

  test.each([
    [
      { KNOWLEDGEPULSE_DTYPE: 'q8', KNOWLEDGEPULSE_THREADS: '1' },
      { dtype: 'q8', threads: 1 },
    ],
    [{ KNOWLEDGEPULSE_MODEL_DIR: modelDirectory }, { dtype: 'fp32', modelDirectory }],
  ])('with %j are of that embedder, which the summary tells', async (env, embedder) => {
    const args = ['score', '--novelty', 'prefix', '--verbose', '--format', 'json', examples];
    const { code, stdout, stderr } = await kpScore(args, { env });
    expect(code).toBe(0);
    expect(JSON.parse(stdout).summary.embedder).toMatchObject({ available: true, ...embedder });
    expect(stderr).toContain(`model: ${embedder.modelDirectory ?? ''}`);
    expect(stderr).toMatch(/^(engine|ONNX Runtime): ./m);
    expect(stderr).toMatch(
      /embedder +sentence-transformers\/all-MiniLM-L6-v2 \((fp32|q8)\), (built in \(|ONNX Runtime \d)/,
    );
    expect(stderr).not.toContain('warning');
  });

  test.each(['prefix', 'full'])('--novelty %s with a memory: known traces are skipped', async (novelty) => {
    const memory = path.join(scratch, `memory-${novelty}`);
    const few = write('few-examples.jsonl', jsonLines(traces.slice(0, 10)));
    const args = ['score', '--novelty', novelty, '--memory', memory, '--explain', '--format', 'json'];
    const run = async (file) => JSON.parse((await kpScore([...args, file])).stdout);
    const first = await run(few);
    expect(first.summary.memory).toEqual({ file: memory, before: 0, after: 10, forgotten: 0 });
    expect((await run(few)).summary).toMatchObject({ scored: 0, knownTraces: 10 });
    const again = traces.slice(0, 10).map((trace) => ({ ...trace, id: `${trace.id}-again` }));
    const repeated = await run(write('repeated.jsonl', jsonLines(again)));
    expect(repeated.summary.memory).toEqual({ file: memory, before: 10, after: 20, forgotten: 0 });
    expect(repeated.results[0].breakdown.nearest.label).toBe(traces[0].id);
    for (const { breakdown } of repeated.results) expect(breakdown.dimensions.novelty).toBeLessThan(1e-6);
  });

  test.each([
    ['by words', []],
    ['by words, with a memory', ['--memory']],
  ])('on one thread and on five are the same bytes %s', async (_, args) => {
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
    const print = (threads) => {
      const memory = args.includes('--memory') ? [path.join(scratch, `memory-${threads}`)] : [];
      return kpScore(['score', ...args, ...memory, '--format', 'jsonl', ...inputs], {
        env: { RAYON_NUM_THREADS: threads },
      });
    };
    const one = await print('1');
    const five = await print('5');
    const badLines = ({ stderr }) => linesOf(stderr).filter((line) => line.includes('.jsonl:'));
    // With a memory, the traces that the second file repeats are known, although it keeps the last 1,000 alone.
    expect(linesOf(one.stdout)).toHaveLength(args.includes('--memory') ? 1500 : 1529);
    expect(badLines(one)).toHaveLength(2);
    expect({ ...five, stderr: badLines(five) }).toEqual({ ...one, stderr: badLines(one) });
  });
});

describe('select', () => {
  const TASKS = [
    'book a flight to Lima',
    'fix the failing build',
    'triage a headache',
    'reconcile an invoice',
  ];
  /** Five runs of each task, of which every other one succeeded. */
  const runs = TASKS.flatMap((task, kind) =>
    Array.from({ length: 5 }, (_, run) => {
      const trace = makeTrace({ objective: `${task} for customer ${run}`, success: run % 2 === 0 });
      return { ...trace, id: `kp:trace:${kind}-${run}` };
    }),
  );
  const input = jsonLines(runs);
  const idsOf = (found) => found.map(({ id }) => id);

  test.each(['lexical', 'full'])(
    '--novelty %s writes what select() chooses, by its ranks',
    async (novelty) => {
      const [out, report] = [`${novelty}.jsonl`, `${novelty}.html`].map((name) => path.join(scratch, name));
      const args = [
        'select',
        '4',
        '--novelty',
        novelty,
        '--format',
        'jsonl',
        '--out',
        out,
        '--report',
        report,
      ];
      const { code, stdout, stderr } = await kpScore(args, { input });
      expect(code).toBe(0);
      const { chosen, explanation } = await select(runs, { count: 4, method: novelty });
      const ids = idsOf(chosen);
      expect(idsOf(linesOf(stdout).map((line) => JSON.parse(line)))).toEqual(ids);
      const written = readLines(out).map((line) => JSON.parse(line));
      expect(idsOf(written)).toEqual(ids);
      expect(linesOf(stderr)[0]).toBe(explanation);
      const { rank, reason, gain, covered, standsFor } = chosen[0];
      expect(written[0].metadata.selection).toMatchObject({ rank, reason, gain, covered, standsFor });
      expect(idsOf(written[0].metadata.selection.similar)).toEqual(idsOf(chosen[0].similar));
      const page = fs.readFileSync(report, 'utf8');
      const json = /<script type="application\/json" id="figures">([^<]*)<\/script>/.exec(page);
      const { selection } = JSON.parse(json?.[1] ?? '');
      expect(selection.traces.map(({ position }) => runs[position].id)).toEqual(ids);
      expect(selection.curve.slice(0, 4)).toEqual(chosen.map(({ covered }) => expect.closeTo(covered, 4)));
    },
  );

  test('--known chooses beside the traces of a file, as select() beside a memory', async () => {
    const shared = write('shared.jsonl', jsonLines(runs.slice(0, 5)));
    const known = new TraceMemory({ method: 'lexical' });
    const scorer = new Scorer({ memory: known });
    for (const trace of runs.slice(0, 5)) await scorer.evaluateValue(trace);
    const args = ['select', '3', '--known', shared, '--quiet', '--format', 'jsonl'];
    const { code, stdout } = await kpScore(args, { input });
    expect(code).toBe(0);
    const { chosen } = await select(runs, { count: 3, known });
    expect(idsOf(linesOf(stdout).map((line) => JSON.parse(line)))).toEqual(idsOf(chosen));
  });
});

describe('inputs', () => {
  const [one] = tracesOf(0.2);

  test('from a file and from standard input are the same', async () => {
    const folder = path.join(__dirname, 'formats');
    const others = ['chat.jsonl', 'sharegpt.jsonl'].map((name) =>
      fs.readFileSync(path.join(folder, name), 'utf8'),
    );
    const rows = [traces[0], traces[1]].map((trace) => JSON.stringify(trace));
    const bad = ['{"messages":[{"role":"nobody","content":""}]}', '{"messages":', '7', 'NaN', '{"a":[1,2]}'];
    const input = [...others, rows[0], ...bad, `[${rows}]`].join('\n');
    const file = write('mixed', input);
    const runs = [[file], ['-']].map(async (source, at) => {
      const out = path.join(scratch, `of-${at}`);
      const args = ['score', '--format', 'jsonl', '--explain', '--out', out, ...source];
      const { code, stdout, stderr } = await kpScore(args, { input });
      const told = (text) => text.replaceAll(file, 'stdin').replace(/ in \d.*second|of-\d/g, '');
      return { code, stdout: told(stdout), stderr: told(stderr), out: fs.readFileSync(out, 'utf8') };
    });
    const [first, second] = await Promise.all(runs);
    const timeless = ({ out, ...rest }) => ({ ...rest, out: out.replace(/"created_at":"[^"]*"/g, '') });
    expect(timeless(second)).toEqual(timeless(first));
    expect(first.code).toBe(1);
    const found = linesOf(first.stdout).map((row) => JSON.parse(row));
    expect(new Set(found.map(({ format }) => format).filter(Boolean)).size).toBe(3);
  });

  test('from standard input that is compressed with xz are refused with the way out', async () => {
    const message = 'cannot read stdin: it is compressed with xz: use xz -dc | kp-score score\n';
    await expectRun(
      ['score'],
      { code: 3, stderr: message },
      { input: Buffer.from('fd377a585a000004', 'hex') },
    );
  });

  test('of clean may come from standard input', async () => {
    expect(await kpScore(['clean', '--quiet'], { input: 'DB_PASSWORD=hunter22' })).toMatchObject({
      code: 0,
      stdout: 'DB_PASSWORD=[REDACTED:password]',
      stderr: '',
    });
  });

  test.each([
    ['is an object that is no text', true, '{"toString":1,"valueOf":1,"length":1e9}'],
    ['is nested 900 deep', true, '['.repeat(900) + ']'.repeat(900)],
    ['is nested 5,000 deep', false, '['.repeat(5000) + ']'.repeat(5000)],
    ['is nested 1,000,000 deep', false, '['.repeat(1e6) + ']'.repeat(1e6)],
    ['is an object nested 100,000 deep', false, `${'{"a":'.repeat(1e5)}1${'}'.repeat(1e5)}`],
  ])('a field that %s costs no other trace', async (_, isRead, hostile) => {
    const { metadata } = one;
    const put = (fields) => JSON.stringify({ ...one, ...fields }).replace('"HERE"', () => hostile);
    const broken = [
      { task: { objective: 'HERE' } },
      { metadata: 'HERE' },
      { metadata: { ...metadata, success: 'HERE' } },
      { metadata: { ...metadata, task_domain: 'HERE' } },
      { steps: 'HERE' },
    ];
    // Fields that the score does not depend on may hold anything.
    const harmless = [{ id: 'HERE' }, { metadata: { ...metadata, tags: 'HERE' } }, { extra: 'HERE' }];
    const input = [...broken, ...harmless].map((fields) => `${put(fields)}\n${put({})}\n`).join('');
    const [out, report] = ['out.jsonl', 'report.html'].map((name) => path.join(scratch, name));
    const args = ['score', '--verbose', '--format', 'json', '--out', out, '--report', report];
    const { code, stderr, stdout } = await kpScore(args, { input });
    const places = (pattern) =>
      linesOf(stderr)
        .filter((line) => pattern.test(line))
        .map((line) => Number(line.split(':')[1]));
    const all = Array.from({ length: 16 }, (_, at) => at + 1);
    const odd = all.filter((line) => line % 2 === 1);
    // A record that is nested more than 1,000 deep is not read at all.
    const bad = isRead ? odd.slice(0, broken.length) : odd;
    expect(places(isRead ? /^stdin:\d+: trace\./ : /^stdin:\d+: it is nested too deeply$/)).toEqual(bad);
    expect(code).toBe(1);
    const { results, summary } = JSON.parse(stdout);
    const good = all.filter((line) => !bad.includes(line));
    expect(results.map(({ line }) => line)).toEqual(good);
    expect(summary).toMatchObject({ scored: good.length, bad: bad.length });
    const written = readLines(out);
    expect(written).toHaveLength(good.length);
    expect(written.filter((line) => line.includes(hostile))).toHaveLength(good.length - 8);
  });

  test('of many bad ones the first twenty are named; all with --verbose', async () => {
    // Each is wrong at another byte.
    const input = Array.from({ length: 50 }, (_, at) => `{"a":${10 ** at} nonsense}\n`).join('');
    const named = (stderr) => linesOf(stderr).filter((line) => /^stdin:\d+:/.test(line)).length;
    const { code, stderr, stdout } = await kpScore(['score', '--format', 'json'], { input });
    expect(code).toBe(1);
    expect(named(stderr)).toBe(20);
    expect(stderr).toContain('--verbose');
    expect(JSON.parse(stdout).summary.bad).toBe(50);
    expect(named((await kpScore(['score', '--verbose'], { input })).stderr)).toBe(50);
  });

  test('what they quote cannot reach the terminal', async () => {
    const input = `${ESCAPE}[2Jnonsense\n${jsonLines([{ ...one, task: { objective: `${ESCAPE}[31mred\u202e\n` } }])}`;
    const { stdout, stderr } = await kpScore(['score', '--explain'], { input });
    expect((stdout + stderr).replaceAll('\n', '')).not.toMatch(/[\p{Cc}\p{Cf}]/u);
    expect(stdout).toContain('red');
  });

  test('that cannot be read leave a document of JSON without results', async () => {
    const { code, stdout } = await kpScore(['score', '--format', 'json', nowhere]);
    expect({ code, document: JSON.parse(stdout) }).toMatchObject({ code: 3, document: { results: [] } });
  });
});

test('the summary is on standard error, on standard output where there is nothing else, and nowhere with --quiet', async () => {
  const input = jsonLines(tracesOf(0.1, 0.5, 0.99));
  const summary = /^3 traces scored in \d/m;
  const out = path.join(scratch, 'summary.jsonl');
  const rows = await kpScore(['score', '--format', 'csv'], { input });
  expect(rows.stderr).toMatch(summary);
  expect(rows.stdout).not.toMatch(summary);
  const alone = await kpScore(['score', '--out', out], { input });
  expect(alone.stdout).toMatch(summary);
  expect(alone).toMatchObject({ stdout: expect.stringContaining(`${out}: 3 traces`), stderr: '' });
  const quiet = await kpScore(['score', '--out', out, '--quiet'], { input });
  expect(quiet).toMatchObject({ code: 0, stdout: '', stderr: '' });
});

describe('exit codes', () => {
  test('0, help and completions', async () => {
    for (const args of [['--help'], ['-h'], ['score', '--help'], ['completions', 'bash'], ['man']]) {
      const { code, stdout, stderr } = await kpScore(args);
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
      expect(stdout).toContain('kp');
      if (args.at(-1) === '--help') {
        expect(linesOf(stdout).length).toBeLessThanOrEqual(40);
        expect(linesOf(stdout).every((line) => line.length <= 100)).toBe(true);
      }
    }
  });

  test('0, help whose reader has closed the pipe', async () => {
    const { child, ended } = start(['--help']);
    child.stdout.destroy();
    expect(await ended).toMatchObject({ code: 0, stderr: '' });
  });

  (fs.existsSync('/dev/full') ? test : test.skip).each(['--help', '--version'])(
    '3, %s on a full disk',
    async (option) => {
      const started = ['-c', 'exec "$@" > /dev/full', 'sh', process.execPath, command, option];
      const { code, stderr } = await run('sh', started);
      expect({ code, stderr }).toEqual({
        code: 3,
        stderr: 'kp-score: cannot write to standard output: the disk is full (ENOSPC)\n',
      });
    },
  );

  test('0, version', async () => {
    expect(await kpScore(['--version'])).toMatchObject({ code: 0, stdout: `${version}\n`, stderr: '' });
  });

  test('2, with the option that was probably meant', async () => {
    await expectRun(['score', '--jsn'], { code: 2, stdout: '', stderr: /unexpected argument '--jsn'/ });
    await expectRun(['score', '--fromat'], {
      code: 2,
      stdout: '',
      stderr: /similar argument exists: '--format'/,
    });
  });

  test('installed, it needs nothing but the packages', async () => {
    const directory = path.join(scratch, 'installed', 'node_modules');
    copyPackage(path.join(directory, '@knowledgepulse', 'native'));
    const link = path.join(directory, '.bin', 'kp-score');
    fs.mkdirSync(path.dirname(link));
    fs.symlinkSync(path.join('..', '@knowledgepulse', 'native', 'bin', 'kp-score.js'), link, 'file');
    const env = { KNOWLEDGEPULSE_NATIVE_ADDON: addon, KNOWLEDGEPULSE_MODEL_DIR: modelDirectory };
    const page = path.join(scratch, 'installed.html');
    const { code, stderr } = await run(process.execPath, [link, 'score', '--report', page, examples], env);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(fs.existsSync(page)).toBe(true);
  });

  test('3, a line for each attempt to load the addon', async () => {
    const env = { KNOWLEDGEPULSE_NATIVE_ADDON: path.join(scratch, 'none.node') };
    const { code, stderr } = await kpScore([examples], { env });
    expect(code).toBe(3);
    const lines = linesOf(stderr);
    expect(lines.length).toBeGreaterThanOrEqual(3);
    expect(lines[0]).toMatch(/^kp-score: @knowledgepulse\/native cannot load its addon/);
    expect(lines[1]).toMatch(/^ {2}KNOWLEDGEPULSE_NATIVE_ADDON: Cannot find module '.*none\.node'/);
  });
});

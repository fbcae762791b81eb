'use strict';

// What `kp-score` computes and prints: options, formats, inputs, exit codes.

const fs = require('node:fs');
const path = require('node:path');
const { constants, gunzipSync, gzipSync } = require('node:zlib');

const { Scorer, TraceMemory } = require('..');
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
const { modelDirectory, readTraces, root } = require('./support/paths.js');
const { run } = require('./support/run-script.js');
const { copyPackage, scratchDirectory, writerIn } = require('./support/scratch.js');

const scratch = scratchDirectory('cli');
const write = writerIn(scratch);
const NO_EMBEDDER = '--no-embedder';
const ESCAPE = '\u001b';

const traces = readTraces(examples);

/** What a scorer says of traces, one after another. */
async function explained(traces, options) {
  const scorer = new Scorer(options);
  const breakdowns = [];
  for (const trace of traces) breakdowns.push(await scorer.explain(trace));
  return breakdowns;
}

const breakdowns = (results) => results.map(({ breakdown }) => breakdown);

/** A folder with a file that no reader recognises. */
function empty() {
  const folder = fs.mkdtempSync(path.join(scratch, 'empty-'));
  fs.writeFileSync(path.join(folder, 'package.json'), '{"name":"x"}');
  return folder;
}

describe('other formats', () => {
  const folder = path.join(__dirname, 'formats');
  const trajectory = path.join(folder, 'trial', 'agent', 'trajectory.json');
  const chat = path.join(folder, 'chat.jsonl');

  test('are recognised, and the summary says what is not known', async () => {
    const { code, stdout } = await kpScore([NO_EMBEDDER, '--format', 'json', trajectory, chat, examples]);
    const { results, summary } = JSON.parse(stdout);
    expect(code).toBe(0);
    expect(results.map(({ format }) => format)).toEqual([
      ...['atif', 'atif', 'openai-chat', 'openai-chat', 'openai-chat'],
      ...traces.map(() => 'trace'),
    ]);
    expect(results.slice(0, 6).map(({ known }) => Number(known.success))).toEqual([1, 0, 1, 0, 0, 1]);
    expect(summary).toMatchObject({ converted: 5, unknownSuccess: 3, unknownConfidence: 3 });
    const said = await kpScore([NO_EMBEDDER, trajectory]);
    expect(said.stderr).toContain('success not known of 1 trace, scored as failed: see --success');
  });

  test('are written as traces, which score the same', async () => {
    const out = path.join(scratch, 'converted.jsonl');
    const args = ['--success', 'yes', '--confidence', '0.8', '--domain', 'code'];
    const first = await results([NO_EMBEDDER, '--from', 'openai-chat', '--out', out, ...args, chat]);
    const second = await results([NO_EMBEDDER, out]);
    expect(second.map(({ score, id }) => [score, id])).toEqual(first.map(({ score, id }) => [score, id]));
    expect(linesOf(fs.readFileSync(out, 'utf8')).map((line) => JSON.parse(line))).toEqual(
      first.map(({ score }) =>
        expect.objectContaining({
          metadata: expect.objectContaining({ quality_score: score, success: true, task_domain: 'code' }),
          outcome: expect.objectContaining({ confidence: 0.8 }),
        }),
      ),
    );
  });

  test('are not replaced by traces', async () => {
    const file = path.join(scratch, 'chat.jsonl');
    fs.copyFileSync(chat, file);
    const { code, stderr } = await kpScore([NO_EMBEDDER, '--out', file, file]);
    expect({ code, stderr }).toMatchObject({
      code: 3,
      stderr: expect.stringContaining('its traces in another format'),
    });
    expect(fs.readFileSync(file)).toEqual(fs.readFileSync(chat));
  });

  test('bad records are named with file and line', async () => {
    await expectRun([NO_EMBEDDER, '--from', 'atif', chat, trajectory], {
      code: 1,
      stderr: [
        `${chat}:3: not atif: it has no schema_version of ATIF, such as "ATIF-v1.6"`,
        '2 traces scored',
      ],
    });
  });

  test('from a file and from standard input are the same', async () => {
    const files = ['chat.jsonl', 'runs.traj.jsonl', 'session.jsonl', 'spans.jsonl'];
    const others = files.map((name) => fs.readFileSync(path.join(folder, name), 'utf8'));
    const atif = JSON.stringify(JSON.parse(fs.readFileSync(trajectory, 'utf8')));
    const bad = ['{"messages":[{"role":"nobody","content":""}]}', '{"messages":', '7', 'NaN', '{"a":[1,2]}'];
    const input = [...others, atif, ...bad, JSON.stringify(traces[0]), `[${atif},${atif}]`].join('\n');
    const file = write('mixed', input);
    const runs = [[file], ['-']].map(async (source, at) => {
      const out = path.join(scratch, `of-${at}`);
      const args = [NO_EMBEDDER, '--format', 'jsonl', '--explain', '--out', out, ...source];
      const { code, stdout, stderr } = await kpScore(args, { input });
      const told = (text) => text.replaceAll(file, 'stdin').replace(/ in \d.*second|of-\d/g, '');
      return { code, stdout: told(stdout), stderr: told(stderr), out: fs.readFileSync(out, 'utf8') };
    });
    const [first, second] = await Promise.all(runs);
    const timeless = ({ out, ...rest }) => ({ ...rest, out: out.replace(/"created_at":"[^"]*"/g, '') });
    expect(timeless(second)).toEqual(timeless(first));
    expect(first.code).toBe(1);
    const rows = linesOf(first.stdout).map((row) => JSON.parse(row));
    expect(new Set(rows.map(({ format }) => format).filter(Boolean)).size).toBe(6);
  });

  test('a trajectory that others refer to counts once, in whatever order they are named', async () => {
    const directory = fs.mkdtempSync(path.join(scratch, 'referred-'));
    const step = (result) => ({
      step_id: 1,
      source: 'user',
      message: 'Ask',
      observation: { results: [result] },
    });
    const refer = (name) => step({ subagent_trajectory_ref: [{ trajectory_path: name }] });
    const make = (name, ...steps) => {
      const file = path.join(directory, name);
      fs.writeFileSync(
        file,
        JSON.stringify({ schema_version: 'ATIF-v1.8', session_id: name, agent: {}, steps }),
      );
      return file;
    };
    const first = make('first', refer('one'));
    const second = make('second', refer('one'), refer('two'));
    const [one, two] = [make('one', step({})), make('two', step({}))];
    for (const files of [
      [first, second, one, two],
      [two, one, second, first],
    ]) {
      const found = await results([NO_EMBEDDER, ...files]);
      const counts = files.map((file) => found.filter(({ source }) => source === file).length);
      expect(counts.reduce((sum, count) => sum + count)).toBe(4);
    }
  });

  test('a record of no format is named as one', async () => {
    const { code, stderr } = await kpScore([NO_EMBEDDER], {
      input: '{"sessionId":"x","messages":[{"type":"user"}]}\n{"@type":"ReasoningTrace"}\n',
    });
    expect({ code, lines: linesOf(stderr).slice(0, 2) }).toEqual({
      code: 1,
      lines: [
        expect.stringMatching(
          /^stdin:1: trace.task must be an object, got undefined, and it is of no format that is known: tried atif, .*; its keys are sessionId, messages; --map FILE/,
        ),
        'stdin:2: trace.task must be an object, got undefined',
      ],
    });
  });
});

describe('--map', () => {
  const maps = path.join(root, 'examples', 'maps');
  const react = path.join(maps, 'react.jsonl');

  test('reads records of a format that a file describes', async () => {
    const found = await results([NO_EMBEDDER, '--map', path.join(maps, 'react.json'), react]);
    expect(found.map(({ format, known }) => [format, known.success])).toEqual([
      ['map', true],
      ['map', true],
    ]);
  });

  test('names the file and the key of a map that is wrong, and refuses --from beside it', async () => {
    const map = path.join(scratch, 'map.json');
    fs.writeFileSync(map, '{"messages":"steps","roles":{"bot":"robot"}}');
    expect(await kpScore([NO_EMBEDDER, '--map', map, react])).toMatchObject({
      code: 3,
      stderr: expect.stringContaining(`${map}.roles.bot must be one of system, user, `),
    });
    expect(await kpScore([NO_EMBEDDER, '--map', `${map}.none`, react])).toMatchObject({
      code: 3,
      stderr: expect.stringContaining('no such file'),
    });
    expect(await kpScore([NO_EMBEDDER, '--map', map, '--from', 'otel', react])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('--from and --map exclude each other'),
    });
  });
});

describe('--top', () => {
  const confidences = [0.3, 0.9, 0.5, 0.9, 0.9, 0.1, 0.7];

  test.each([
    ['1', [1]],
    ['2', [1, 3]],
    ['4', [1, 3, 4, 6]],
    ['100', [1, 3, 4, 6, 2, 0, 5]],
    ['1%', [1]],
    ['50%', [1, 3, 4, 6]],
    ['100%', [1, 3, 4, 6, 2, 0, 5]],
  ])('%s keeps the best, of equal scores the first', async (top, best) => {
    const input = jsonLines(
      tracesOf(...confidences).map((trace) => ({
        ...trace,
        metadata: { ...trace.metadata, task_domain: 'code' },
      })),
    );
    const [out, dropped] = ['best.jsonl', 'rest.jsonl'].map((name) => path.join(scratch, name));
    const args = [NO_EMBEDDER, '--format', 'json', '--top', top, '--out', out, '--dropped', dropped];
    const { stdout } = await kpScore(args, { input });
    const { results, summary } = JSON.parse(stdout);
    expect(results.map(({ id, kept }) => [id, kept])).toEqual(best.map((at) => [`kp:trace:${at}`, true]));
    const placesOf = (file) => readLines(file).map((line) => Number(JSON.parse(line).id.slice(-1)));
    expect(placesOf(out)).toEqual(best.toSorted());
    expect([...placesOf(out), ...placesOf(dropped)].sort()).toEqual([...confidences.keys()]);
    expect(summary).toMatchObject({ kept: best.length, scored: 7 });
  });

  test('is of the report too, and leaves no temporary files', async () => {
    const report = path.join(scratch, 'best.html');
    const { code } = await kpScore([NO_EMBEDDER, '--top', '3', '--report', report, examples], {
      env: { TMPDIR: scratch },
    });
    expect(code).toBe(0);
    expect(fs.existsSync(report)).toBe(true);
    expect(fs.readdirSync(scratch).filter((name) => name.endsWith('.tmp'))).toEqual([]);
  });
});

describe('scores', () => {
  test('are those of a Scorer, with their explanation', async () => {
    const found = await results(['--explain', examples]);
    expect(breakdowns(found)).toEqual(await explained(traces));
    expect(found.map(({ breakdown, ...fields }) => fields)).toEqual(
      traces.map(({ id, metadata, task }, at) => ({
        source: examples,
        line: at + 1,
        index: null,
        id,
        objective: task.objective.slice(0, 240),
        domain: metadata.task_domain ?? 'default',
        score: found[at].breakdown.score,
        kept: found[at].breakdown.score >= 0.75,
        format: 'trace',
        known: { success: true, confidence: true },
      })),
    );
  });

  test('of several inputs come in their order, and novelty is against all before', async () => {
    const half = traces.length >> 1;
    const [first, last] = [traces.slice(0, half), traces.slice(half)];
    const file = write('first.jsonl', jsonLines(first));
    const found = await results([file, '-', file, '--explain'], { input: jsonLines(last) });
    expect(breakdowns(found)).toEqual(await explained([...first, ...last, ...first]));
    expect(new Set(found.map(({ source }) => source))).toEqual(new Set([file, 'stdin']));
  });

  test('--no-embedder', async () => {
    const found = await results([NO_EMBEDDER, '--explain', examples]);
    expect(breakdowns(found)).toEqual(await explained(traces, { embedder: null }));
    expect(found[0].breakdown).toMatchObject({ noveltyBasis: 'no-embedder', tokens: null });
  });

  test('--weights', async () => {
    const weights = { finance: { complexity: 0.1, novelty: 0.2, toolDiversity: 0.3, outcome: 0.4 } };
    const file = write('weights.json', JSON.stringify(weights));
    const found = await results([NO_EMBEDDER, '--explain', '--weights', file, examples]);
    expect(breakdowns(found)).toEqual(await explained(traces, { embedder: null, weights }));
    expect(found.find(({ domain }) => domain === 'finance').breakdown.weights).toEqual(weights.finance);
  });

  test('--novelty full looks beyond the first 512 tokens', async () => {
    const start = 'The customer asks where the parcel is. '.repeat(100);
    // A step of its own, which counts as much as the long objective.
    const long = ['It was found in Lisbon.', 'The planet has two moons and no atmosphere.'].map((content) =>
      makeTrace({ objective: start, steps: [{ type: 'observation', content }] }),
    );
    const run = (method) => results(['--novelty', method, '--explain'], { input: jsonLines(long) });
    const [prefix, full] = [await run('prefix'), await run('full')];
    expect(breakdowns(full)).toEqual(await explained(long, { memory: new TraceMemory({ novelty: 'full' }) }));
    expect(prefix[1].breakdown.dimensions.novelty).toBeLessThan(1e-6);
    expect(full[1].breakdown.dimensions.novelty).toBeGreaterThan(0.1);
  });

  test('--novelty lexical needs no model', async () => {
    const { code, stdout, stderr } = await kpScore(
      ['--novelty', 'lexical', '--explain', '--format', 'json', examples],
      { env: { KNOWLEDGEPULSE_MODEL_DIR: path.join(scratch, 'nowhere') } },
    );
    expect(code).toBe(0);
    const { results: found, summary } = JSON.parse(stdout);
    expect(breakdowns(found)).toEqual(await explained(traces, { memory: new TraceMemory() }));
    expect(found.some(({ breakdown }) => breakdown.nearest !== null)).toBe(true);
    expect(summary.embedder).toEqual({ available: false, dtype: null, reason: null });
    expect(stderr).toContain('embedder  none: words alone are compared');
    expect(stderr).not.toContain('warning');
  });

  test('--dtype and --threads', async () => {
    const { code, stdout } = await kpScore(['--dtype', 'q8', '--threads', '1', '--format', 'json', examples]);
    expect(code).toBe(0);
    expect(JSON.parse(stdout).summary.embedder).toMatchObject({ available: true, dtype: 'q8', threads: 1 });
  });

  test('--model-dir', async () => {
    const directory = path.join(scratch, 'model');
    fs.symlinkSync(modelDirectory, directory, 'junction');
    const { code, stdout } = await kpScore(['--model-dir', directory, '--format', 'json', examples]);
    expect(code).toBe(0);
    expect(JSON.parse(stdout).summary.embedder).toMatchObject({ available: true, modelDirectory: directory });
  });

  test('--memory-size: what was forgotten is new again', async () => {
    const [first, second] = traces;
    const run = (...args) => results([...args, '--explain'], { input: jsonLines([first, second, first]) });
    const novelty = (found) => found[2].breakdown.dimensions.novelty;
    expect(novelty(await run())).toBeLessThan(1e-6);
    expect(novelty(await run('--memory-size', '1'))).toBeGreaterThan(0.1);
  });
});

/** The same gzip with all the fields that its header may have. */
function withHeaderFields(compressed) {
  const fields = Buffer.from('\x03\0abcname.jsonl\0a comment\0');
  const head = Buffer.from(compressed.subarray(0, 10));
  head[3] = 4 + 8 + 16;
  return Buffer.concat([head, fields, compressed.subarray(10)]);
}

/** What zlib makes of gzip that is cut off. */
function inflated(compressed) {
  return gunzipSync(compressed, { finishFlush: constants.Z_SYNC_FLUSH }).toString();
}

describe('inputs', () => {
  const scored = tracesOf(0.2, 0.9, 0.5);
  const [one] = scored;
  const lines = jsonLines(scored);
  test.each([
    ['JSON Lines', lines],
    ['an array over several lines, with a byte order mark', `\ufeff${JSON.stringify(scored, null, 2)}`],
    ['one object over several lines', `${JSON.stringify(one, null, 2)}\n`, [one]],
    ['gzip', gzipSync(lines)],
    ['gzip with a name, a comment and an extra field', withHeaderFields(gzipSync(lines))],
    [
      'gzip that other traces follow',
      Buffer.concat([gzipSync(lines), Buffer.alloc(9), gzipSync(lines.trim()), Buffer.from(lines)]),
      [...scored, ...scored, ...scored],
    ],
    ['gzip with a byte order mark', gzipSync(`\ufeff${JSON.stringify(scored)}`)],
    ['nothing', '', []],
  ])('%s', async (name, contents, expected = scored) => {
    const scores = (await explained(expected, { embedder: null })).map(({ score }) => score);
    // The name tells nothing: it is the contents that count.
    const file = write(`${name}.txt`, contents);
    const found = await results([NO_EMBEDDER, file, '-'], { input: contents });
    expect(found.map(({ score }) => score)).toEqual([...scores, ...scores]);
    expect(found.map(({ id }) => id)).toEqual([...expected, ...expected].map(({ id }) => id));
  });

  describe('gzip that is broken', () => {
    const many = tracesOf(...Array.from({ length: 9000 }, (_, at) => (at % 100) / 100));
    const whole = gzipSync(jsonLines(many));
    const small = gzipSync(lines);
    const ids = (traces) => traces.map(({ id }) => id);

    async function scoredOf(contents) {
      const file = write('broken.gz', contents);
      const { code, stdout, stderr } = await kpScore([NO_EMBEDDER, '--format', 'jsonl', file]);
      return { code, stderr, ids: ids(linesOf(stdout).map((line) => JSON.parse(line))) };
    }

    test.each([
      ['garbage', 'garbage'],
      ['bytes that are no text', Buffer.from([0x1f, 0x8b, 0xff, 0xfe])],
    ])('%s after its end is a bad line, and costs nothing', async (_, appended) => {
      for (const [compressed, traces] of [
        [whole, many],
        [small, scored],
      ]) {
        const found = await scoredOf(Buffer.concat([compressed, Buffer.from(appended)]));
        expect(found).toEqual({
          code: 1,
          ids: ids(traces),
          stderr: expect.stringContaining('; 1 bad line\n'),
        });
        expect(found.stderr).toContain(`broken.gz:${traces.length + 1}: not `);
      }
    });

    test('a second part that is cut off costs nothing before it', async () => {
      for (const end of [5, 12, 60]) {
        const found = await scoredOf(Buffer.concat([small, whole.subarray(0, end)]));
        expect(found).toMatchObject({ code: 3, ids: ids(scored) });
        expect(found.stderr).toMatch(/^kp-score: cannot read .*: its compressed contents are cut off$/m);
      }
    });

    test('all traces before a cut are scored, a last one without a line end too', async () => {
      const half = whole.subarray(0, whole.length >> 1);
      const expected = linesOf(inflated(half)).slice(0, -1);
      const found = await scoredOf(half);
      expect(expected.length).toBeGreaterThan(1000);
      expect(found).toMatchObject({ code: 3, ids: ids(many.slice(0, expected.length)) });
      const trailerCut = gzipSync(lines.trim()).subarray(0, -3);
      expect(await scoredOf(trailerCut)).toMatchObject({ code: 3, ids: ids(scored) });
    });

    test('a fault in the first bytes is told, and costs nothing before it', async () => {
      // The decompressor of Node.js does not call back after this one.
      const text = `\u001f\u008b\u0008\0${JSON.stringify(scored[0], null, 1)}`;
      const found = await scoredOf(Buffer.concat([small, Buffer.from(text, 'latin1')]));
      expect(found).toMatchObject({ code: 3, ids: ids(scored) });
      expect(found.stderr).toMatch(/^kp-score: cannot read .*: its compressed contents are damaged: /m);
    });

    test('a wrong checksum is told', async () => {
      const damaged = Buffer.from(small);
      damaged[damaged.length - 5] ^= 1;
      const found = await scoredOf(damaged);
      expect(found).toMatchObject({ code: 3, ids: ids(scored) });
      expect(found.stderr).toContain('damaged: their checksum is wrong');
    });
  });

  test('bad ones are named and counted, the rest is scored: code 1', async () => {
    const input = `${lines}nonsense\n{"steps":[]}\n42\n${lines}`;
    const { code, stdout, stderr } = await kpScore([NO_EMBEDDER, '--format', 'json'], { input });
    expect(code).toBe(1);
    const { results, summary } = JSON.parse(stdout);
    expect(results.map(({ line }) => line)).toEqual([1, 2, 3, 7, 8, 9]);
    expect(summary).toMatchObject({ scored: 6, bad: 3 });
    const messages = linesOf(stderr);
    expect(messages[0]).toMatch(/^stdin:4: not JSON: ./);
    expect(messages[1]).toMatch(/^stdin:5: trace\.\w+ must be /);
    expect(messages[2]).toBe('stdin:6: trace must be an object, got number');
    expect(messages[3]).toContain('; 3 bad lines');
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
    const files = ['out.jsonl', 'report.html'].map((name) => path.join(scratch, name));
    const { code, stderr, stdout } = await kpScore(
      [NO_EMBEDDER, '--format', 'json', '--out', files[0], '--report', files[1]],
      { input },
    );
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
    const written = linesOf(fs.readFileSync(files[0], 'utf8'));
    expect(written).toHaveLength(good.length);
    expect(written.filter((line) => line.includes(hostile))).toHaveLength(good.length - 8);
  });

  test('bad elements are named by their index', async () => {
    const file = write('elements.json', JSON.stringify([one, { steps: 1 }, one], null, 1));
    await expectRun([NO_EMBEDDER, file], { code: 1, stderr: /^.*elements\.json:\d+\[1\]: trace\./ });
  });

  test('of many bad ones the first twenty are named; all with --verbose', async () => {
    const input = 'nonsense\n'.repeat(50);
    const named = (stderr) => linesOf(stderr).filter((line) => /^stdin:\d+:/.test(line)).length;
    const { code, stderr, stdout } = await kpScore([NO_EMBEDDER, '--format', 'json'], { input });
    expect(code).toBe(1);
    expect(named(stderr)).toBe(20);
    expect(stderr).toContain('--verbose');
    expect(JSON.parse(stdout).summary.bad).toBe(50);
    expect(named((await kpScore([NO_EMBEDDER, '--verbose'], { input })).stderr)).toBe(50);
  });

  test('what they quote cannot reach the terminal', async () => {
    const input = `${ESCAPE}[2Jnonsense\n${jsonLines([{ ...one, id: `${ESCAPE}[31mred\u202e\n` }])}`;
    const { stdout, stderr } = await kpScore([NO_EMBEDDER, '--explain'], { input });
    expect((stdout + stderr).replaceAll('\n', '')).not.toMatch(/[\p{Cc}\p{Cf}]/u);
    expect(stdout).toContain('red');
  });
});

describe('formats', () => {
  /** Hostile to every format. */
  const hostile = { ...tracesOf(0.9)[0], id: '=1+1,"\n\'\u2028</script>' };
  const input = jsonLines([...tracesOf(0.1, 0.99), hostile]);
  const run = async (...args) => {
    const { code, stdout } = await kpScore([NO_EMBEDDER, ...args], { input });
    expect(code).toBe(0);
    return stdout;
  };

  test('json is one document, with the summary', async () => {
    const { results, summary } = JSON.parse(await run('--format', 'json', '--threshold', '0.6'));
    expect(results).toHaveLength(3);
    expect(results[2].id).toBe(hostile.id);
    const scores = results.map(({ score }) => score).sort((a, b) => a - b);
    const kept = scores.filter((score) => score >= 0.6).length;
    expect(results.filter(({ kept }) => kept)).toHaveLength(kept);
    expect(summary).toEqual({
      scored: 3,
      kept,
      dropped: 3 - kept,
      bad: 0,
      withoutConversation: 0,
      knownTraces: 0,
      nearDuplicates: 0,
      ...{ converted: 0, unknownSuccess: 0, unknownConfidence: 0, cleaned: null },
      ...{ top: null, selection: null },
      mean: expect.closeTo(scores.reduce((sum, score) => sum + score) / 3, 12),
      median: expect.closeTo(scores[1], 4),
      p10: expect.closeTo(scores[0] + 0.2 * (scores[1] - scores[0]), 12),
      p90: expect.closeTo(scores[1] + 0.8 * (scores[2] - scores[1]), 12),
      domains: [
        {
          domain: 'code',
          scored: 2,
          kept: expect.any(Number),
          mean: expect.any(Number),
          median: expect.any(Number),
        },
        {
          domain: 'finance',
          scored: 1,
          kept: expect.any(Number),
          mean: expect.any(Number),
          median: expect.any(Number),
        },
      ],
      seconds: expect.any(Number),
      perSecond: expect.any(Number),
      threshold: 0.6,
      interrupted: false,
      embedder: { available: false, dtype: null, reason: NO_EMBEDDER },
      memory: null,
      written: [],
    });
  });

  test('json of nothing is a document too', async () => {
    const { code, stdout } = await kpScore([NO_EMBEDDER, '--format', 'json']);
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({
      results: [],
      summary: { scored: 0, mean: null, median: null },
    });
  });

  test('jsonl is a line for each', async () => {
    const rows = linesOf(await run('--format', 'jsonl')).map((line) => JSON.parse(line));
    const { results } = JSON.parse(await run('--format', 'json'));
    expect(rows).toEqual(results);
  });

  test('csv holds the same; formulas are disarmed', async () => {
    const expected = JSON.parse(await run('--format', 'json', '--explain')).results;
    const [columns, ...rows] = parseCsv(await run('--format', 'csv', '--explain'));
    expect(columns).toEqual([
      ...['source', 'line', 'index', 'id', 'objective', 'domain', 'score', 'kept', 'format'],
      ...['knownSuccess', 'knownConfidence'],
      ...['complexity', 'novelty', 'toolDiversity', 'outcome', 'profile'],
      ...['complexityWeight', 'noveltyWeight', 'toolDiversityWeight', 'outcomeWeight'],
      ...'composite overrides noveltyBasis nearestLabel nearestSimilarity tokens truncated'.split(' '),
    ]);
    expect(rows).toHaveLength(expected.length);
    for (const [at, cells] of rows.entries()) {
      const row = Object.fromEntries(columns.map((name, column) => [name, cells[column]]));
      const { breakdown, ...fields } = expected[at];
      const id = fields.id.startsWith('=') ? `'${fields.id}` : fields.id;
      expect(row).toMatchObject({ id, domain: fields.domain, kept: String(fields.kept), index: '' });
      expect(Number(row.score)).toBe(fields.score);
      for (const name of ['complexity', 'novelty', 'toolDiversity', 'outcome']) {
        expect(Number(row[name])).toBe(breakdown.dimensions[name]);
        expect(Number(row[`${name}Weight`])).toBe(breakdown.weights[name]);
      }
      expect(row.overrides).toBe(breakdown.overrides.map(({ rule }) => rule).join(' '));
    }
    const [short] = parseCsv(await run('--format', 'csv'));
    expect(short).toEqual(columns.slice(0, 11));
  });

  test('table is the default, a line for each', async () => {
    const stdout = await run();
    expect(stdout).toBe(await run('--format', 'table'));
    const [heading, ...rows] = linesOf(stdout);
    expect(heading).toMatch(/^score +domain +trace$/);
    const threshold = ['--threshold', '0.6'];
    const [splitHeading, ...splitRows] = linesOf(await run(...threshold));
    expect(splitHeading).toMatch(/^score +kept +domain +trace$/);
    const { results } = JSON.parse(await run('--format', 'json', ...threshold));
    expect([rows.length, splitRows.length]).toEqual([results.length, results.length]);
    for (const [at, { score, kept, domain }] of results.entries()) {
      expect(rows[at]).toMatch(new RegExp(`^${score.toFixed(4)}  \\S+  ${domain} +\\S`));
      expect(splitRows[at]).toMatch(
        new RegExp(`^${score.toFixed(4)}  \\S+  ${kept ? 'yes' : 'no'} +${domain} +\\S`),
      );
    }
  });

  test('table explains in words', async () => {
    const [trace] = traces;
    const { stdout } = await kpScore(['--explain'], { input: jsonLines([trace, trace]) });
    const [, { score, composite, dimensions }] = await explained([trace, trace]);
    // A duplicate's novelty is 0 but for rounding, which may be to either side.
    expect(Math.abs(dimensions.novelty)).toBeLessThan(0.00005);
    expect(stdout).toContain('0.35 × 0.0000 novelty');
    expect(stdout).toContain(`= ${composite.toFixed(4)}`);
    expect(stdout).toContain(score.toFixed(4));
    expect(stdout).toContain('nothing to compare with yet');
    expect(stdout).toContain(`most similar: ${trace.id} (1.0000)`);
  });
});

/** Cells of CSV, by the rules of RFC 4180. */
function parseCsv(text) {
  const rows = [[]];
  const cell = /(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r?\n|$)/gy;
  for (let match = cell.exec(text); match[0] !== ''; match = cell.exec(text)) {
    rows.at(-1).push(match[1]?.replaceAll('""', '"') ?? match[2]);
    if (match[3] !== ',' && cell.lastIndex < text.length) rows.push([]);
  }
  return rows;
}

describe('the summary', () => {
  const input = jsonLines(tracesOf(0.1, 0.5, 0.99));

  test('is on standard error, on standard output where there is nothing else, and nowhere with --quiet', async () => {
    const summary = /^3 traces scored in \d/m;
    const out = path.join(scratch, 'summary.jsonl');
    const rows = await kpScore([NO_EMBEDDER], { input });
    expect(rows.stderr).toMatch(summary);
    expect(rows.stdout).not.toMatch(summary);
    const alone = await kpScore([NO_EMBEDDER, '--out', out], { input });
    expect(alone.stdout).toMatch(summary);
    expect(alone.stdout).toContain(`${out}: 3 traces`);
    expect(alone.stderr).toBe('');
    const quiet = await kpScore([NO_EMBEDDER, '--out', out, '--quiet'], { input });
    expect(quiet).toMatchObject({ code: 0, stdout: '', stderr: '' });
  });

  test('tells scores, domains and the embedder', async () => {
    const { stderr } = await kpScore([examples]);
    expect(stderr).toMatch(/score +mean 0\.\d{4}, median 0\.\d{4}, p10 0\.\d{4}, p90 0\.\d{4}/);
    expect(stderr).toMatch(/kept +\d+ of at least 0\.75 \(the default\), \d+ below/);
    expect(stderr).toMatch(/finance +\d+ +\d+ +0\.\d{4} +0\.\d{4}/);
    expect(stderr).toMatch(
      /embedder +sentence-transformers\/all-MiniLM-L6-v2 \(fp32\), (built in \(|ONNX Runtime \d)/,
    );
    expect(stderr).not.toContain('warning');
  });

  test('tells which traces repeat earlier ones', async () => {
    const [one, other] = ['book a flight', 'fix the build'].map((objective, at) => ({
      ...makeTrace({ objective }),
      id: `kp:trace:${at}`,
    }));
    const input = jsonLines([one, other, one, one]);
    const { stdout, stderr } = await kpScore([], { input });
    const repeats = linesOf(stdout).map((line) => line.endsWith(`${one.id}, like ${one.id}`));
    expect(repeats).toEqual([false, false, false, true, true]);
    const row = /^ +novelty +2 traces are near-duplicates of earlier ones: a novelty of 0\.05 or less$/m;
    expect(stderr).toMatch(row);
    const full = await kpScore(['--novelty', 'full', '--format', 'json'], { input });
    expect(full.stderr).toMatch(row);
    expect(JSON.parse(full.stdout).summary.nearDuplicates).toBe(2);
  });

  test('of few traces is exact', async () => {
    const file = write('few.jsonl', jsonLines(tracesOf(0.5, 0.123456, 0.98765)));
    const { stdout } = await kpScore([NO_EMBEDDER, '--format', 'json', file]);
    const { results, summary } = JSON.parse(stdout);
    const scores = results.map(({ score }) => score).sort((a, b) => a - b);
    const [low, middle, high] = scores;
    expect(summary.median).toBe(middle);
    expect(summary.p10).toBeCloseTo(low + 0.2 * (middle - low), 12);
    expect(summary.p90).toBeCloseTo(middle + 0.8 * (high - middle), 12);
  });

  test('and the table name what cannot be seen', async () => {
    const blank = tracesOf(0.2, 0.9).map((trace, at) => ({
      ...trace,
      id: ['  ', '\u200b'][at],
      metadata: { ...trace.metadata, task_domain: ['', ' \u2066 '][at] },
    }));
    const { stdout, stderr } = await kpScore([NO_EMBEDDER], { input: jsonLines(blank) });
    expect(linesOf(stdout)[1]).toMatch(/ \(none\) +stdin:1 {2}\w+ the cause of the failing build$/);
    expect(linesOf(stdout)[2]).toMatch(/ \(none\) +stdin:2 {2}\w+ the cause of the failing build$/);
    expect(stderr).toMatch(/^ +\(none\) +1 /m);
  });

  test('warns where nothing is explained', async () => {
    const report = path.join(scratch, 'explained.html');
    const out = path.join(scratch, 'explained.jsonl');
    const warning = /^kp-score: warning: --explain has no effect without --format or --out/;
    const run = (...args) => kpScore([NO_EMBEDDER, '--explain', ...args], { input });
    expect(await run('--report', report)).toMatchObject({ code: 0, stderr: expect.stringMatching(warning) });
    for (const args of [[], ['--report', report, '--out', out], ['--report', report, '--format', 'csv']]) {
      expect((await run(...args)).stderr).not.toMatch(warning);
    }
  });

  test('tells why there is no embedder', async () => {
    const nowhere = path.join(scratch, 'nowhere');
    const { code, stderr } = await kpScore([], { input, env: { KNOWLEDGEPULSE_MODEL_DIR: nowhere } });
    expect(code).toBe(0);
    expect(linesOf(stderr)[0]).toMatch(/^kp-score: warning: there is no embedder.*nowhere/);
    expect(stderr).toMatch(/embedder +none, so novelty is 0\.5 throughout: .*nowhere/);
  });

  test('--verbose tells where the embedder is from', async () => {
    const { stderr } = await kpScore(['--verbose'], { input });
    expect(stderr).toContain(`model: ${modelDirectory}`);
    expect(stderr).toMatch(/^(engine|ONNX Runtime): ./m);
  });
});

describe('exit codes', () => {
  const file = () => write('traces.jsonl', jsonLines(tracesOf(0.5)));

  test('0, help: as documented', async () => {
    const help = fs.readFileSync(path.join(__dirname, 'support', 'kp-score-help.txt'), 'utf8');
    for (const option of ['--help', '-h']) {
      expect(await kpScore([option])).toEqual({ code: 0, signal: null, stdout: help, stderr: '' });
    }
    expect(linesOf(help).every((line) => line.length <= 90)).toBe(true);
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

  test.each([
    ['an unknown option', ['--jsn'], '--jsn'],
    ['a missing value', ['--out'], '--out'],
    ['an empty value', ['--out='], '--out'],
    ['a value for a flag', ['--explain=yes'], '--explain'],
    ['an unknown format', ['--format', 'xml'], 'table, json, jsonl or csv'],
    ['an inherited format', ['--format', 'constructor'], '--format'],
    ['a threshold above 1', ['--threshold', '1.5'], '--threshold'],
    ['a threshold that is no number', ['--threshold', 'high'], "'high'"],
    ['an empty threshold', ['--threshold', ' '], '--threshold'],
    [
      'a threshold below 0',
      ['--threshold', '-0.1'],
      '--threshold needs a value; one that begins with a hyphen is written --threshold=VALUE;',
    ],
    ['no threads', ['--threads', '0'], '--threads'],
    ['a memory of half an element', ['--memory-size', '0.5'], '--memory-size'],
    ['an unknown input format', ['--from', 'xml'], '--from must be trace, atif'],
    ['an unknown success', ['--success', '1'], 'yes or no'],
    ['what is known of traces', ['--from', 'trace', '--success', 'yes'], '--success is for other formats'],
    ['no best traces', ['--top', '0'], '--top must be a whole number of at least 1'],
    ['more than all traces', ['--top', '101%'], 'up to 100%'],
    ['two ways to select', ['--top', '1', '--threshold', '0.5'], '--threshold and --top exclude each other'],
    ['an unknown dtype', ['--dtype', 'fp16'], 'fp32 or q8'],
    ['an unknown novelty', ['--novelty', 'some'], 'prefix, lexical or full'],
    ['a model for words', ['--novelty', 'lexical', '--dtype', 'q8'], '--dtype and --novelty lexical'],
    ['--dropped without a threshold', ['--dropped', 'x'], '--threshold'],
    ['--quiet and --verbose', ['--quiet', '--verbose'], '--verbose'],
    ['a memory without an embedder', ['--no-embedder', '--memory', 'x'], '--memory'],
    ['standard input twice', ['-', '-'], 'standard input'],
    ['--out to standard output', ['--out', '-'], '--format'],
    ['two outputs in one', ['--out', 'x', '--report', './x'], 'same file'],
    ['weights that would be overwritten', ['--weights', 'x', '--out', 'x'], 'same file'],
  ])('2, %s', async (_, args, names) => {
    await expectRun(args, { code: 2, stdout: '', stderr: names }, { cwd: scratch });
  });

  test('2, on one line that tells the way out', async () => {
    await expectRun(['--jsn'], {
      code: 2,
      stdout: '',
      stderr: /^kp-score: .*--jsn.*; see kp-score --help\n$/,
    });
  });

  test.each(['report', 'memory'])('2, --%s in place of the traces', async (name) => {
    const traces = file();
    const before = fs.readFileSync(traces, 'utf8');
    await expectRun([`--${name}`, traces, traces], { code: 2, stderr: `--${name}` });
    expect(fs.readFileSync(traces, 'utf8')).toBe(before);
  });

  test.each([
    ['a missing input', () => [NO_EMBEDDER, path.join(scratch, 'none.jsonl')], ['none.jsonl', 'ENOENT']],
    ['a folder without a known file', () => [NO_EMBEDDER, empty()], ['no file of a known format', '--map']],
    [
      'gzip that is cut off',
      () => [NO_EMBEDDER, write('half.gz', gzipSync('x'.repeat(99)).subarray(0, 15))],
      ['half.gz'],
    ],
    ['missing weights', () => ['--weights', path.join(scratch, 'none.json')], ['none.json', 'ENOENT']],
    ['weights that are not JSON', () => ['--weights', write('a.json', '{')], ['a.json is not JSON']],
    ['a model that is missing', () => ['--model-dir', path.join(scratch, 'none')], ['no embedder', 'none']],
    [
      'a memory that is a text file',
      () => ['--memory', write('d', 'this is no memory')],
      [path.join(scratch, 'd')],
    ],
    ['an output that is a directory', () => [NO_EMBEDDER, '--out', scratch], ['cannot write', 'EISDIR']],
    [
      'an output in no directory',
      () => [NO_EMBEDDER, '--report', path.join(scratch, 'none', 'x')],
      ['ENOENT'],
    ],
  ])('3, %s', async (_, args, names) => {
    const { code, stderr } = await kpScore(args());
    expect(code).toBe(3);
    expect(stderr).toMatch(/^kp-score: /m);
    for (const name of names) expect(stderr).toContain(name);
    // One line, besides the summary of what could be scored.
    expect(stderr).not.toMatch(/^ +at /m);
    expect(linesOf(stderr).filter((line) => line.startsWith('kp-score:'))).toHaveLength(1);
  });

  test('installed, it needs nothing but the packages', async () => {
    const directory = path.join(scratch, 'installed', 'node_modules');
    copyPackage(path.join(directory, '@knowledgepulse', 'native'));
    const link = path.join(directory, '.bin', 'kp-score');
    fs.mkdirSync(path.dirname(link));
    fs.symlinkSync(path.join('..', '@knowledgepulse', 'native', 'bin', 'kp-score.js'), link, 'file');
    const env = { KNOWLEDGEPULSE_NATIVE_ADDON: addon, KNOWLEDGEPULSE_MODEL_DIR: modelDirectory };
    const page = path.join(scratch, 'installed.html');
    const { code, stderr } = await run(process.execPath, [link, '--report', page, examples], env);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(fs.existsSync(page)).toBe(true);
  });

  test('3, a line for each attempt to load the addon', async () => {
    const env = { KNOWLEDGEPULSE_NATIVE_ADDON: path.join(scratch, 'none.node') };
    const { code, stderr } = await kpScore([file()], { env });
    expect(code).toBe(3);
    const lines = linesOf(stderr);
    expect(lines.length).toBeGreaterThanOrEqual(3);
    expect(lines[0]).toMatch(/^kp-score: @knowledgepulse\/native cannot load its addon/);
    expect(lines[1]).toContain('none.node does not exist');
  });
});

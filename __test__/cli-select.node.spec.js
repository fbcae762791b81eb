'use strict';

// `kp-score --select`: which set it writes, and what it says of it.

const fs = require('node:fs');
const path = require('node:path');

const { select, TraceMemory } = require('..');
const { expectRun, jsonLines, kpScore, linesOf, readLines } = require('./support/kp-score.js');
const { makeTrace } = require('./support/make-trace.js');
const { scratchDirectory } = require('./support/scratch.js');

const scratch = scratchDirectory('cli-select');

const TASKS = ['book a flight to Lima', 'fix the failing build', 'triage a headache', 'reconcile an invoice'];

/** Five runs of each task, of which every other one succeeded. */
const traces = TASKS.flatMap((task, kind) =>
  Array.from({ length: 5 }, (_, run) => {
    const trace = makeTrace({ objective: `${task} for customer ${run}`, success: run % 2 === 0 });
    return { ...trace, id: `kp:trace:${kind}-${run}` };
  }),
);
const input = jsonLines(traces);

let files = 0;
function write(contents) {
  files++;
  const file = path.join(scratch, `${files}`);
  fs.writeFileSync(file, contents);
  return file;
}

const idsOf = (lines) => lines.map((line) => JSON.parse(line).id);

test('--select N writes what select() chooses, in the order of its ranks', async () => {
  const [out, dropped] = [write(''), write('')];
  const { code, stdout, stderr } = await kpScore(
    ['--select', '4', '--format', 'jsonl', '--out', out, '--dropped', dropped],
    { input },
  );
  expect(code).toBe(0);
  const { chosen, left, explanation } = await select(traces, { count: 4 });
  const ids = chosen.map(({ id }) => id);
  expect(idsOf(linesOf(stdout))).toEqual(ids);
  expect(idsOf(readLines(out))).toEqual(ids);
  expect(idsOf(readLines(dropped))).toEqual(left.map(({ id }) => id));
  expect(linesOf(stderr)[0]).toBe(explanation);
  const [first] = readLines(out).map((line) => JSON.parse(line).metadata.selection);
  const { rank, reason, gain, covered, standsFor } = chosen[0];
  expect(first).toMatchObject({ rank, reason, gain, covered, standsFor });
  expect(first.similar.map(({ id }) => id)).toEqual(chosen[0].similar.map(({ id }) => id));
  const rest = readLines(dropped).map((line) => JSON.parse(line).metadata.selection);
  expect(rest.map(({ chosen }) => chosen?.id ?? null)).toEqual(left.map(({ chosen }) => chosen?.id ?? null));
});

test('the beginning of a larger set is the smaller one, and a percentage counts all traces', async () => {
  const chosen = async (count) =>
    idsOf(linesOf((await kpScore(['--select', count, '--format', 'jsonl'], { input })).stdout));
  const [four, half] = [await chosen('4'), await chosen('50%')];
  expect(half).toHaveLength(10);
  expect(half.slice(0, 4)).toEqual(four);
});

test('the summary says how much the set covers', async () => {
  const { stdout, stderr } = await kpScore(['--select', '4', '--format', 'json'], { input });
  const { summary } = JSON.parse(stdout);
  expect(summary).toMatchObject({ scored: 20, kept: 4, selection: { rule: 'outcomes', coveredBefore: 0 } });
  const percent = Math.round(100 * summary.selection.covered);
  expect(stderr).toContain(
    `  kept      4 chosen, which cover ${percent} % of what all traces show, 16 left\n`,
  );
});

describe('--labels', () => {
  const failing = jsonLines(
    traces.map((trace) => ({ ...trace, metadata: { ...trace.metadata, success: false } })),
  );
  const rewards = traces.map(({ id }) => ({ id, reward: id.endsWith('-3') ? 1 : 0 }));
  const csv = ['id,reward', ...rewards.map(({ id, reward }) => `${id},${reward}`)].join('\n');

  test.each([
    ['JSON Lines', jsonLines(rewards)],
    ['CSV', csv],
  ])('of %s decide which runs succeeded', async (_, labels) => {
    const args = ['--select', '4', '--format', 'jsonl', '--labels', write(labels)];
    const { stdout } = await kpScore(args, { input: failing });
    expect(idsOf(linesOf(stdout)).sort()).toEqual(TASKS.map((_, kind) => `kp:trace:${kind}-3`));
  });

  test('that fit no trace, and traces without one, are counted by a warning', async () => {
    const labels = write(jsonLines([...rewards.slice(0, 15), { id: 'other', success: true }]));
    await expectRun(
      ['--select', '4', '--labels', labels],
      {
        code: 0,
        stderr: 'kp-score: warning: --labels: 1 labels belong to no trace, and 5 traces have no label\n',
      },
      { input },
    );
  });

  test('of another shape are refused by file and line: code 3', async () => {
    const labels = write('id,success\na,maybe\n');
    const { code, stderr } = await kpScore(['--select', '4', '--labels', labels], { input });
    expect({ code, stderr }).toEqual({
      code: 3,
      stderr: `kp-score: ${labels}:2: a label needs success, true or false, or reward, a number\n`,
    });
  });
});

test('--quota keeps room for failures of tasks that nobody solved', async () => {
  const failing = traces.map((trace) => {
    const success = trace.id < 'kp:trace:3' && trace.metadata.success;
    return { ...trace, metadata: { ...trace.metadata, success } };
  });
  const args = ['--select', '4', '--quota', 'failures=25%', '--format', 'jsonl'];
  const { stdout } = await kpScore(args, { input: jsonLines(failing) });
  const last = JSON.parse(linesOf(stdout)[3]);
  expect(last).toMatchObject({ id: expect.stringMatching(/^kp:trace:3-/), selection: { reason: 'failure' } });
});

test('--memory is what the set is chosen beside, and the set alone joins it', async () => {
  const memory = path.join(scratch, 'memory.safetensors');
  const run = async (count) => {
    const args = ['--select', count, '--memory', memory, '--known', 'again', '--format', 'json'];
    const { results, summary } = JSON.parse((await kpScore(args, { input })).stdout);
    return { ids: results.map(({ id }) => id), summary };
  };
  const first = await run('2');
  expect(first.summary.memory).toMatchObject({ before: 0, after: 2 });
  expect((await TraceMemory.load(memory)).size).toBe(2);
  const second = await run('2');
  expect(second.summary.memory).toMatchObject({ before: 2, after: 4 });
  expect(second.summary.selection.coveredBefore).toBeGreaterThan(0);
  const kinds = [...first.ids, ...second.ids].map((id) => id.slice(0, -2));
  expect(new Set(kinds).size).toBe(4);
});

test('--memory-size bounds what the set is chosen beside', async () => {
  const memory = path.join(scratch, 'bounded.safetensors');
  const run = async (chosenFrom, ...args) => {
    const all = ['--memory', memory, '--known', 'again', '--format', 'json', ...args];
    return JSON.parse((await kpScore(all, { input: jsonLines(chosenFrom) })).stdout);
  };
  // A successful run of each task, the first one the oldest.
  await run(
    [0, 5, 10, 15].map((index) => traces[index]),
    '--novelty',
    'lexical',
  );
  const others = traces.filter(({ id }) => id.endsWith('-2'));
  const { results, summary } = await run(others, '--select', '2', '--memory-size', '2', '--forget');
  expect(results.map(({ id }) => id).sort()).toEqual(['kp:trace:0-2', 'kp:trace:1-2']);
  expect(summary.memory).toMatchObject({ before: 4, after: 2 });
});

test('--novelty full chooses beside a memory, and the set alone joins it with its embeddings', async () => {
  const memory = path.join(scratch, 'full.safetensors');
  const run = async (...args) => {
    const all = ['--select', '2', '--novelty', 'full', '--memory', memory, '--known', 'again', ...args];
    const { code, stdout, stderr } = await kpScore([...all, '--format', 'json'], { input });
    expect({ code, stderr: code === 0 ? '' : stderr }).toEqual({ code: 0, stderr: '' });
    return JSON.parse(stdout);
  };
  const first = await run();
  expect(first.results.map(({ id }) => id)).toEqual(
    (await select(traces, { count: 2, novelty: 'full' })).chosen.map(({ id }) => id),
  );
  const held = await TraceMemory.load(memory);
  expect({ size: held.size, novelty: held.novelty }).toEqual({ size: 2, novelty: 'full' });
  const second = await run();
  expect(second.summary.selection.coveredBefore).toBeGreaterThan(0);
  const { chosen } = await select(traces, { count: 2, novelty: 'full', known: held });
  expect(second.results.map(({ id }) => id)).toEqual(chosen.map(({ id }) => id));
});

test('--window M chooses as select() with a window does', async () => {
  const out = write('');
  const dropped = write('');
  const args = ['--select', '4', '--window', '12', '--out', out, '--dropped', dropped, '--clean', '--quiet'];
  await expectRun(args, { code: 0, stderr: '' }, { input });
  const { chosen, left } = await select(traces, { count: 4, window: 12 });
  expect(idsOf(readLines(out))).toEqual(chosen.map(({ id }) => id));
  const rest = readLines(dropped).map((line) => JSON.parse(line));
  expect(rest).toHaveLength(16);
  // Of what is not in the sample nothing is known.
  const told = rest.filter(({ metadata }) => metadata.selection);
  expect(told.map(({ id }) => id)).toEqual(left.map(({ id }) => id));
});

test('--window M --report shows the chosen set with traces of the sample', async () => {
  const report = path.join(scratch, 'window.html');
  const args = ['--select', '4', '--window', '12', '--report', report, '--quiet'];
  expect((await kpScore(args, { input })).code).toBe(0);
  const json = /<script type="application\/json" id="figures">([^<]*)<\/script>/.exec(
    fs.readFileSync(report, 'utf8'),
  );
  const { selection } = JSON.parse(json?.[1] ?? '');
  const { chosen } = await select(traces, { count: 4, window: 12 });
  expect(selection.traces.map(({ id }) => id)).toEqual(chosen.map(({ id }) => id));
  expect(selection.curve.slice(0, 4)).toEqual(chosen.map(({ covered }) => expect.closeTo(covered, 4)));
  expect(selection.curve.length).toBeGreaterThan(4);
  expect(selection.traces.flatMap(({ similar }) => similar.map(({ id }) => id)).sort()).toEqual(
    chosen.flatMap(({ similar }) => similar.map(({ id }) => id)).sort(),
  );
});

test('--known score chooses among traces that the memory scored before', async () => {
  const memory = path.join(scratch, 'known.safetensors');
  const args = ['--select', '20', '--memory', memory, '--format', 'json', '--known'];
  await kpScore([...args, 'again'], { input });
  const { results } = JSON.parse((await kpScore([...args, 'score'], { input })).stdout);
  expect(results).toHaveLength(20);
});

test.each([
  [['--select', '2', '--top', '2'], '--top and --select exclude each other'],
  [['--select', '0'], '--select must be a whole number of at least 1'],
  [['--labels', 'x'], '--labels needs --select'],
  [['--window', '9'], '--window needs --select'],
  [['--select', '2', '--window', '9', '--memory', 'x'], '--window and --memory exclude each other'],
  [['--select', '2', '--window', '9', '--novelty', 'full'], '--window compares words alone'],
  [['--quota', 'failures=1'], '--quota needs --select'],
  [['--select', '2', '--quota', 'half'], '--quota must be failures=N or failures=N%'],
  [['--select', '2', '--success-at', '1'], '--success-at needs --labels'],
  [['--select', '2', '--novelty', 'prefix'], '--select compares words'],
  [['--select', '2', '--no-embedder'], '--select compares words'],
])('%j is wrong usage: code 2', async (args, message) => {
  await expectRun(args, { code: 2, stderr: message }, { input });
});

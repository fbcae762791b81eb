'use strict';

// `kp-score --select` chooses the sets that `select` chooses. What it prints is in crates/command/tests/transcripts/select.md.

const fs = require('node:fs');
const path = require('node:path');

const { select, TraceMemory } = require('..');
const { jsonLines, kpScore, linesOf, readLines } = require('./support/kp-score.js');
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

const idsOf = (found) => found.map(({ id }) => id);
const idsIn = (lines) => idsOf(lines.map((line) => JSON.parse(line)));

test('--select N writes what select() chooses, in the order of its ranks', async () => {
  const [out, dropped] = [write(''), write('')];
  const { code, stdout, stderr } = await kpScore(
    ['--select', '4', '--format', 'jsonl', '--out', out, '--dropped', dropped],
    { input },
  );
  expect(code).toBe(0);
  const { chosen, left, explanation } = await select(traces, { count: 4 });
  const ids = idsOf(chosen);
  expect(idsIn(linesOf(stdout))).toEqual(ids);
  expect(idsIn(readLines(out))).toEqual(ids);
  expect(idsIn(readLines(dropped))).toEqual(idsOf(left));
  expect(linesOf(stderr)[0]).toBe(explanation);
  const [first] = readLines(out).map((line) => JSON.parse(line).metadata.selection);
  const { rank, reason, gain, covered, standsFor } = chosen[0];
  expect(first).toMatchObject({ rank, reason, gain, covered, standsFor });
  expect(idsOf(first.similar)).toEqual(idsOf(chosen[0].similar));
  const rest = readLines(dropped).map((line) => JSON.parse(line).metadata.selection);
  expect(rest.map(({ chosen }) => chosen?.id ?? null)).toEqual(left.map(({ chosen }) => chosen?.id ?? null));
});

test.each(['lexical', 'full'])(
  '--novelty %s chooses beside a memory, and the set alone joins it',
  async (novelty) => {
    const memory = path.join(scratch, `${novelty}.safetensors`);
    const run = async () => {
      const args = ['--select', '2', '--novelty', novelty, '--memory', memory, '--known', 'again'];
      const { code, stdout, stderr } = await kpScore([...args, '--format', 'json'], { input });
      expect({ code, stderr: code === 0 ? '' : stderr }).toEqual({ code: 0, stderr: '' });
      return JSON.parse(stdout);
    };
    const first = await run();
    expect(idsOf(first.results)).toEqual(idsOf((await select(traces, { count: 2, novelty })).chosen));
    const held = await TraceMemory.load(memory);
    expect({ size: held.size, method: held.method }).toEqual({ size: 2, method: novelty });
    const second = await run();
    expect(second.summary.selection.coveredBefore).toBeGreaterThan(0);
    expect(idsOf(second.results)).toEqual(
      idsOf((await select(traces, { count: 2, novelty, known: held })).chosen),
    );
  },
);

test('--report shows the chosen set with the traces that it stands for', async () => {
  const report = path.join(scratch, 'set.html');
  const args = ['--select', '4', '--report', report, '--quiet'];
  expect((await kpScore(args, { input })).code).toBe(0);
  const json = /<script type="application\/json" id="figures">([^<]*)<\/script>/.exec(
    fs.readFileSync(report, 'utf8'),
  );
  const { selection } = JSON.parse(json?.[1] ?? '');
  const { chosen } = await select(traces, { count: 4 });
  expect(idsOf(selection.traces)).toEqual(idsOf(chosen));
  expect(selection.curve.slice(0, 4)).toEqual(chosen.map(({ covered }) => expect.closeTo(covered, 4)));
  expect(selection.curve.length).toBe(16);
  expect(selection.traces.map(({ similar }) => idsOf(similar))).toEqual(
    chosen.map(({ similar }) => idsOf(similar).slice(0, 4)),
  );
});

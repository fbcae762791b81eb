'use strict';

// What `kp-score --memory` does with traces that the memory holds, with its bound, and with runs that do not see all of their input.

const fs = require('node:fs');
const path = require('node:path');

const { examples, expectRun, jsonLines, kpScore, readLines } = require('./support/kp-score.js');
const { scratchDirectory } = require('./support/scratch.js');

const scratch = scratchDirectory('cli-memory');
const LEXICAL = ['--novelty', 'lexical'];
const traces = readLines(examples).map((line) => JSON.parse(line));
const idsOf = (found) => found.map(({ id }) => id);
/** A trace with more in it than before: another step. */
const grown = (trace) => ({
  ...trace,
  steps: [...trace.steps, { step_id: 99, type: 'thought', content: 'and on' }],
});
/** The same to the scorer: other spaces, another order of keys, other fields. */
const rewritten = ({ id, ...trace }) =>
  `${JSON.stringify({ visibility: 'private', ...trace, id }, null, 1).replaceAll('\n', ' ')}\n`;

/** An empty directory, with the paths of files in it. */
function workplace() {
  const directory = fs.mkdtempSync(path.join(scratch, 'd-'));
  const at = (name) => path.join(directory, name);
  return { at, memory: at('m'), out: at('o'), list: () => fs.readdirSync(directory).sort() };
}

/** Runs the command on traces, or on texts that are written to a file before. */
async function score(at, given, ...args) {
  const file = at('traces.jsonl');
  fs.writeFileSync(file, typeof given === 'string' ? given : jsonLines(given));
  const { code, stdout, stderr } = await kpScore([...LEXICAL, '--format', 'json', ...args, file]);
  const { results, summary } = JSON.parse(stdout === '' ? '{}' : stdout);
  return { code, results, summary, stderr };
}

describe('--known', () => {
  test('skips a trace that the memory holds under the same id with the same contents', async () => {
    const { at, memory, out } = workplace();
    await score(at, traces.slice(0, 20), '--memory', memory);
    const given = traces.map(rewritten).join('');
    const { code, results, summary, stderr } = await score(at, given, '--memory', memory, '--out', out);
    expect(code).toBe(0);
    expect(idsOf(results)).toEqual(idsOf(traces.slice(20)));
    expect(idsOf(readLines(out).map((line) => JSON.parse(line)))).toEqual(idsOf(traces.slice(20)));
    expect(summary).toMatchObject({ scored: 10, knownTraces: 20, memory: { before: 20, after: 30 } });
    expect(stderr).toContain('20 traces, skipped; --known score writes them with their earlier scores');
  });

  test.each(['prefix', 'lexical', 'full'])(
    'score gives the scores of the first run again, with novelty %s',
    async (novelty) => {
      const { at, memory, out } = workplace();
      const args = ['--novelty', novelty, '--memory', memory, '--out', out];
      const first = await score(at, traces, ...args);
      const scores = readLines(out);
      const second = await score(at, traces, ...args, '--known', 'score', '--explain');
      expect(second.results.map(({ score }) => score)).toEqual(first.results.map(({ score }) => score));
      expect(second.summary).toMatchObject({
        scored: traces.length,
        knownTraces: traces.length,
        mean: first.summary.mean,
        nearDuplicates: first.summary.nearDuplicates,
        memory: { before: traces.length, after: traces.length },
      });
      expect(second.results[3].breakdown).toMatchObject({ noveltyBasis: 'given', nearest: null });
      await score(at, traces, ...args, '--known', 'score');
      expect(readLines(out)).toEqual(scores);
    },
  );

  test('score gives the earlier novelty with the current weights', async () => {
    const { at, memory } = workplace();
    const first = await score(at, traces, '--memory', memory, '--explain');
    const alone = { complexity: 0, novelty: 1, toolDiversity: 0, outcome: 0 };
    const domains = new Set(first.results.map(({ breakdown }) => breakdown.profile));
    const weights = at('weights');
    fs.writeFileSync(weights, JSON.stringify(Object.fromEntries([...domains].map((name) => [name, alone]))));
    const args = ['--memory', memory, '--weights', weights, '--known', 'score', '--explain'];
    const { results } = await score(at, traces, ...args);
    const novelties = first.results.map(({ breakdown }) => breakdown.dimensions.novelty);
    expect(results.map(({ breakdown }) => breakdown.composite)).toEqual(novelties);
  });

  test('score says in the table and in the report where the novelty is from', async () => {
    const { at, memory } = workplace();
    const twins = [traces[0], { ...traces[0], id: 'twin' }];
    await score(at, twins, '--memory', memory);
    const report = at('r.html');
    const args = [...LEXICAL, '--memory', memory, '--known', 'score', '--explain', '--format', 'table'];
    const { stdout, stderr } = await kpScore([...args, '--report', report, at('traces.jsonl')]);
    expect(stdout).toContain('novelty 0.5000: as it was scored before');
    expect(stdout).toContain('twin, like an earlier trace\n');
    expect(stderr).toContain('  known     2 traces with the novelty of the earlier score\n');
    expect(fs.readFileSync(report, 'utf8')).toContain('"noveltyBasis":"given"');
  });

  test('again compares a known trace, which is a duplicate of itself', async () => {
    const { at, memory } = workplace();
    await score(at, traces, '--memory', memory);
    const { summary } = await score(at, traces, '--memory', memory, '--known', 'again');
    expect(summary).toMatchObject({ scored: 30, knownTraces: 0, nearDuplicates: 30, memory: { after: 60 } });
    // All are in the memory twice, with the same contents.
    const next = await score(at, traces, '--memory', memory);
    expect(next.summary).toMatchObject({ scored: 0, knownTraces: 30, memory: { after: 60 } });
  });

  test.each([
    ['a trace without an id', ({ id, ...trace }) => trace],
    ['a trace whose id is a number', (trace) => ({ ...trace, id: 7 })],
  ])('never knows %s', async (_, change) => {
    const { at, memory } = workplace();
    const given = traces.slice(0, 3).map(change);
    await score(at, given, '--memory', memory);
    const { summary } = await score(at, given, '--memory', memory);
    expect(summary).toMatchObject({ scored: 3, knownTraces: 0 });
  });

  const [trace] = traces;
  const long = { ...trace, steps: [{ ...trace.steps[0], content: 'word '.repeat(5000) }] };
  test.each([
    ['another id', trace, { ...trace, id: 'other' }],
    ['another step', trace, grown(trace)],
    ['another confidence', trace, { ...trace, outcome: { ...trace.outcome, confidence: 0.123 } }],
    [
      'another success',
      trace,
      { ...trace, metadata: { ...trace.metadata, success: !trace.metadata.success } },
    ],
    ['another domain', trace, { ...trace, metadata: { ...trace.metadata, task_domain: 'other' } }],
    ['another objective', trace, { ...trace, task: { objective: 'other' } }],
    [
      'another end of a long text',
      long,
      { ...long, steps: [{ ...long.steps[0], content: `${long.steps[0].content}.` }] },
    ],
  ])('compares a trace with %s', async (_, first, second) => {
    const { at, memory } = workplace();
    await score(at, [first], '--novelty', 'prefix', '--memory', memory);
    const { summary } = await score(at, [second], '--novelty', 'prefix', '--memory', memory);
    expect(summary).toMatchObject({ scored: 1, knownTraces: 0, memory: { after: 2 } });
  });

  test.each(['skip', 'score'])('%s remembers a trace once that comes twice in a run', async (known) => {
    const { at, memory } = workplace();
    const given = [...traces, ...traces.slice(0, 5)];
    const { results, summary } = await score(at, given, '--memory', memory, '--known', known);
    expect(summary).toMatchObject({ knownTraces: 5, memory: { before: 0, after: 30 } });
    expect(results).toHaveLength(known === 'skip' ? 30 : 35);
    const scores = results.map(({ score }) => score);
    expect(scores.slice(30)).toEqual(known === 'skip' ? [] : scores.slice(0, 5));
  });

  test('knows the traces that the memory held at first, even if the run evicts them', async () => {
    const { at, memory } = workplace();
    await score(at, traces.slice(0, 10), '--memory', memory, '--memory-size', '10');
    const given = [...traces.slice(10), ...traces.slice(0, 10)];
    const { results, summary, stderr } = await score(at, given, '--memory', memory);
    expect(idsOf(results)).toEqual(idsOf(traces.slice(10)));
    expect(summary.memory).toMatchObject({ before: 10, after: 10, forgotten: 20 });
    expect(stderr).toContain(`${memory}: 10 → 10 traces, 20 forgotten, the oldest`);
  });

  test('leaves files as they were where all traces are known, and is a success', async () => {
    const { at, memory, out, list } = workplace();
    await score(at, traces, '--memory', memory, '--out', out);
    fs.writeFileSync(out, 'old');
    const { code, results, stderr } = await score(at, traces, '--memory', memory, '--out', out);
    expect({ code, results }).toEqual({ code: 0, results: [] });
    expect(stderr).toContain(`warning: all traces are known, so ${out} is as it was; --known score writes`);
    expect(fs.readFileSync(out, 'utf8')).toBe('old');
    expect(list()).toEqual(['m', 'o', 'traces.jsonl']);
    const withBad = await score(at, `${jsonLines(traces)}nonsense\n`, '--memory', memory, '--out', out);
    expect(withBad).toMatchObject({ code: 1, stderr: expect.stringContaining(`so ${out} is as it was`) });
    expect(fs.readFileSync(out, 'utf8')).toBe('old');
  });

  test('leaves an output that is the input unchanged if it would lose known traces', async () => {
    const { at, memory } = workplace();
    await score(at, traces.slice(0, 5), '--memory', memory);
    const file = at('traces.jsonl');
    const { code, stderr } = await score(at, traces, '--memory', memory, '--out', file);
    expect(code).toBe(3);
    expect(stderr).toContain('the known traces (unless with --known score)');
    expect(readLines(file)).toHaveLength(traces.length);
    const kept = await score(at, traces, '--memory', memory, '--out', file, '--known', 'score');
    expect(kept.code).toBe(0);
    expect(idsOf(readLines(file).map((line) => JSON.parse(line)))).toEqual(idsOf(traces));
  });

  test.each([
    [['--known', 'skip'], '--known needs --memory'],
    [
      ['--known', 'skip', '--store', 'postgres://h/d'],
      '--known needs --memory: a store does not know the contents of earlier traces',
    ],
    [['--known', 'once', '--memory', 'm'], "--known must be skip, score or again, got 'once'"],
    [['--forget', '--memory', 'm'], '--forget needs --memory and --memory-size'],
    [['--forget', '--memory-size', '5'], '--forget needs --memory and --memory-size'],
  ])('%j is wrong usage', async (args, message) => {
    await expectRun([...args, examples], { code: 2, stderr: message });
  });
});

describe('--memory-size below the number of remembered traces', () => {
  test('is refused, and the memory is unchanged', async () => {
    const { at, memory } = workplace();
    await score(at, traces, '--memory', memory);
    const before = fs.readFileSync(memory);
    const { code, stderr } = await score(at, traces, '--memory', memory, '--memory-size', '3');
    expect(code).toBe(2);
    expect(stderr).toContain(
      `kp-score: ${memory} holds 30 traces, and --memory-size 3 would forget the 27 oldest; --forget allows that`,
    );
    expect(fs.readFileSync(memory)).toEqual(before);
    const enough = await score(at, traces, '--memory', memory, '--memory-size', '30');
    expect(enough.summary.memory).toMatchObject({ before: 30, after: 30, forgotten: 0 });
  });

  test('with --forget, says how many traces are forgotten', async () => {
    const { at, memory } = workplace();
    await score(at, traces, '--memory', memory);
    const args = ['--memory', memory, '--memory-size', '3', '--forget'];
    const { code, summary, stderr } = await score(at, traces.slice(-3), ...args);
    expect({ code, memory: summary.memory }).toMatchObject({
      code: 0,
      memory: { before: 30, after: 3, forgotten: 27 },
    });
    expect(stderr).toContain('30 → 3 traces, 27 forgotten, the oldest');
    const next = await score(at, traces.slice(-4), '--memory', memory);
    expect(next.summary).toMatchObject({ scored: 1, knownTraces: 3, memory: { before: 3, after: 3 } });
  });
});

describe('a run that does not see all of its input', () => {
  test('saves no memory and replaces no file; mended, it gives the scores of a first run', async () => {
    const { at, memory, out, list } = workplace();
    fs.writeFileSync(out, 'old');
    const files = ['--memory', memory, '--out', out];
    const failed = await score(at, traces, ...files, at('typo'));
    expect(failed.code).toBe(3);
    expect(failed.stderr).toContain(
      `kp-score: not all of the input could be read; what was scored is in ${out}.partial, ` +
        `and ${out}, ${memory} are as they were (see --keep-going)\n`,
    );
    expect(fs.readFileSync(out, 'utf8')).toBe('old');
    expect(readLines(`${out}.partial`)).toHaveLength(traces.length);
    expect(list()).toEqual(['o', 'o.partial', 'traces.jsonl']);
    expect(failed.summary).toMatchObject({
      memory: { before: 0, after: 0, forgotten: 0 },
      written: [{ file: `${out}.partial`, traces: traces.length }],
    });
    const mended = await score(at, traces, ...files);
    expect(mended.code).toBe(0);
    const fresh = await score(at, traces);
    expect(mended.summary.mean).toBe(fresh.summary.mean);
  });

  test('with --keep-going, saves the memory and replaces the files', async () => {
    const { at, memory, out, list } = workplace();
    fs.writeFileSync(out, 'old');
    const files = ['--memory', memory, '--out', out];
    const { code, stderr } = await score(at, traces, ...files, '--keep-going', at('typo'));
    expect(code).toBe(3);
    expect(stderr).not.toContain('partial');
    expect(readLines(out)).toHaveLength(traces.length);
    expect(list()).toEqual(['m', 'o', 'traces.jsonl']);
    expect((await score(at, traces, '--memory', memory)).summary.knownTraces).toBe(traces.length);
  });

  (process.platform === 'win32' ? test.skip : test)(
    'puts the partial result beside the file that a link leads to',
    async () => {
      const { at, out, list } = workplace();
      fs.mkdirSync(at('folder'));
      fs.symlinkSync(path.join('folder', 'file'), out);
      const { stderr } = await score(at, traces, '--out', out, at('typo'));
      const partial = path.join(fs.realpathSync(at('folder')), 'file.partial');
      expect(stderr).toContain(`what was scored is in ${partial}, and ${out} is as it was`);
      expect(readLines(partial)).toHaveLength(traces.length);
      expect(list()).toEqual(['folder', 'o', 'traces.jsonl']);
    },
  );

  test('does not replace an input that has the name of the partial result', async () => {
    const { at, out } = workplace();
    const input = `${out}.partial`;
    fs.writeFileSync(input, jsonLines(traces));
    const { code, stderr } = await score(at, [], '--out', out, input, at('typo'));
    expect(code).toBe(3);
    expect(stderr).toContain(`there is no partial result, and ${out} is as it was`);
    expect(readLines(input)).toEqual(traces.map((trace) => JSON.stringify(trace)));
    expect(fs.existsSync(out)).toBe(false);
  });

  test('a bad line is no reason: the memory is saved and the files are replaced', async () => {
    const { at, memory, out } = workplace();
    const given = `${jsonLines(traces)}nonsense\n`;
    const { code } = await score(at, given, '--memory', memory, '--out', out);
    expect(code).toBe(1);
    expect(readLines(out)).toHaveLength(traces.length);
    expect((await score(at, traces, '--memory', memory)).summary.knownTraces).toBe(traces.length);
  });
});

'use strict';

const fc = require('fast-check');

const { TraceMemory, select } = require('..');
const { makeTrace } = require('./support/make-trace.js');

const NEIGHBOURS = 64;

/** How many of these make up the density of a trace, with itself. */
const DENSE = 17;

/**
 * @param {string} text
 * @param {{ success?: boolean, confidence?: number, id?: string, known?: boolean }} [parts]
 */
function traceOf(text, { success = true, confidence = 1, id, known = true } = {}) {
  const steps = ['tool_call', 'observation'].map((type, step_id) => ({ type, step_id, content: '' }));
  const trace = makeTrace({ objective: text, steps, success, confidence });
  const metadata = known ? trace.metadata : { ...trace.metadata, imported: { known: { success: false } } };
  return { ...trace, id, metadata };
}

/**
 * The nearest others of each trace, from the definition of the similarity: cosines of words with the weights of all traces.
 *
 * @param {string[]} texts
 */
function neighboursOf(texts) {
  const bags = texts.map((text) => new Set(text.split(' ').filter(Boolean)));
  const df = new Map();
  for (const word of bags.flatMap((bag) => [...bag])) df.set(word, (df.get(word) ?? 0) + 1);
  const weight = (/** @type {string} */ word) => Math.log(texts.length + 1) - Math.log(df.get(word));
  const sum = (/** @type {Iterable<string>} */ words, /** @type {number} */ power) =>
    [...words].reduce((total, word) => total + weight(word) ** power, 0);
  return bags.map((bag, index) => {
    const similar = bags.map((other, at) => {
      const shared = [...bag].filter((word) => other.has(word));
      return { index: at, similarity: sum(shared, 2) / Math.sqrt(sum(bag, 2) * sum(other, 2)) };
    });
    const others = similar.filter(({ index: at, similarity }) => at !== index && similarity > 0);
    return others.sort((one, other) => other.similarity - one.similarity).slice(0, NEIGHBOURS);
  });
}

/**
 * Greedy by the definition of F: how much each chosen trace gains.
 *
 * @param {Array<{ text: string, success: boolean, confidence: number }>} traces
 * @param {number} count
 */
function gainsOf(traces, count) {
  const neighbours = neighboursOf(traces.map(({ text }) => text));
  const quality = traces.map(({ success, confidence }) => confidence * (success ? 1 : 0.3));
  const similarity = traces.map((_, i) => {
    const row = new Map(neighbours[i].map(({ index, similarity }) => [index, similarity]));
    return row.set(i, 1);
  });
  const densities = similarity.map((row) =>
    [...row.values()]
      .sort((one, other) => other - one)
      .slice(0, DENSE)
      .reduce((sum, each) => sum + each),
  );
  const weight = quality.map((q, i) => q / Math.sqrt(densities[i]));
  const value = (/** @type {number[]} */ set) =>
    weight.reduce(
      (sum, w, i) => sum + w * Math.max(0, ...set.map((j) => quality[j] * (similarity[i].get(j) ?? 0))),
      0,
    );
  /** @type {number[]} */
  const set = [];
  const gains = [];
  while (set.length < Math.min(count, traces.length)) {
    const before = value(set);
    const gain = traces.map((_, j) =>
      set.includes(j) ? Number.NEGATIVE_INFINITY : value([...set, j]) - before,
    );
    const best = gain.findIndex((each) => each > Math.max(...gain) - 1e-12);
    set.push(best);
    gains.push({ index: best, gain: gain[best] });
  }
  return gains;
}

describe('select', () => {
  test('chooses as greedy by the definition does', async () => {
    const text = fc.array(fc.integer({ min: 0, max: 11 }), { minLength: 1, maxLength: 5 });
    const trace = fc.record({
      text: text.map((words) => [...new Set(words)].map((word) => `word${word}`).join(' ')),
      success: fc.boolean(),
      confidence: fc.constantFrom(0.25, 0.5, 1),
    });
    await fc.assert(
      fc.asyncProperty(
        fc.array(trace, { minLength: 1, maxLength: 20 }),
        fc.integer({ min: 1, max: 20 }),
        async (traces, count) => {
          const { chosen, left } = await select(
            traces.map(({ text, ...outcome }) => traceOf(text, outcome)),
            { count },
          );
          const expected = gainsOf(traces, count);
          expect(chosen).toHaveLength(expected.length);
          for (const [rank, { index, gain }] of expected.entries()) {
            expect(chosen[rank].gain).toBeCloseTo(gain, 9);
            // Rounding may part a tie otherwise, and what comes after it.
            if (chosen[rank].index !== index) break;
          }
          expect([...chosen, ...left].map(({ index }) => index).sort((a, b) => a - b)).toEqual([
            ...traces.keys(),
          ]);
        },
      ),
      { numRuns: 50 },
    );
  });

  test('tells what each chosen trace stands for', async () => {
    const { chosen, left, explanation, coveredBefore } = await select(
      [
        traceOf('book a flight to paris', { id: 'a', success: false }),
        traceOf('book a flight to paris now', { id: 'b' }),
        traceOf('cancel my hotel', { id: 'c' }),
        traceOf('compose music', { success: false }),
      ],
      { count: '50%' },
    );
    expect(chosen.map(({ rank }) => rank)).toEqual([1, 2]);
    const flight = chosen.find(({ id }) => id === 'b');
    expect(flight).toMatchObject({
      ...{ index: 1, reason: 'coverage', standsFor: 1, similar: [{ index: 0, id: 'a' }] },
      nearestLeft: { index: 0, id: 'a' },
    });
    expect(chosen[1].covered).toBeGreaterThan(chosen[0].covered);
    expect(left).toEqual([
      {
        index: 0,
        id: 'a',
        chosen: { index: 1, id: 'b', similarity: expect.any(Number) },
        known: null,
        unfit: null,
      },
      { index: 3, id: null, chosen: null, known: null, unfit: null },
    ]);
    expect(coveredBefore).toBe(0);
    expect(explanation).toMatch('the outcome of every trace is known');
  });

  test('covers kinds of work where no outcome is known', async () => {
    const traces = ['one two', 'one two three', 'four'].map((text) =>
      traceOf(text, { success: false, known: false }),
    );
    const { chosen, explanation } = await select(traces, { count: 2 });
    expect(explanation).toMatch('the set covers kinds of work, not successes');
    expect(chosen.map(({ index }) => index)).toContain(2);
  });

  test('counts unknown outcomes as the mean of the others', async () => {
    const traces = [
      traceOf('book a flight'),
      traceOf('write a poem', { success: false, known: false }),
      traceOf('compose music', { success: false }),
    ];
    const { chosen, explanation } = await select(traces, { count: 2 });
    expect(chosen.map(({ index }) => index)).toEqual([0, 1]);
    expect(explanation).toMatch('those of 1 of 3 traces are not known, and count as the mean of the others');
  });

  test('the set of a smaller count is the beginning of a larger one, in any order of the traces', async () => {
    const traces = Array.from({ length: 60 }, (_, run) =>
      traceOf(`task${run % 12} of kind${run % 12} run${run} note${(run * 7) % 31}`, {
        id: `run ${run}`,
        success: run % 5 < 2,
        // No two traces are equally valuable.
        confidence: 0.4 + ((run * 37) % 60) / 100,
      }),
    );
    const idsOf = async (/** @type {typeof traces} */ list, /** @type {number} */ count) =>
      (await select(list, { count })).chosen.map(({ id }) => id);
    const larger = await idsOf(traces, 20);
    expect(await idsOf(traces, 10)).toEqual(larger.slice(0, 10));
    expect(
      await idsOf(
        traces.toSorted((a, b) => (a.id < b.id ? 1 : -1)),
        20,
      ),
    ).toEqual(larger);
  });

  test('leaves traces from which nobody can learn, and says why', async () => {
    const unfit = [
      { ...traceOf('only watched'), steps: [{ step_id: 0, type: 'observation', content: 'seen' }] },
      { ...traceOf('one thought'), steps: [{ step_id: 0, type: 'thought', content: 'thought' }] },
      traceOf(' '),
      { ...traceOf('nothing'), steps: [] },
    ];
    const traces = [traceOf('book a flight'), ...unfit, traceOf('write a poem')];
    const { chosen, left, explanation } = await select(traces, { count: 20 });
    expect(chosen.map(({ index }) => index).sort()).toEqual([0, 5]);
    expect(left.map(({ unfit }) => unfit)).toEqual([
      'no-agent-step',
      'one-step',
      'no-objective',
      'no-agent-step',
    ]);
    expect(explanation).toMatch(
      '4 of 6 are not fit to be shared: 2 without a step of the agent, 1 of one step, 1 without an objective',
    );
  });

  test('chooses beside a known memory, which stays as it was', async () => {
    const known = new TraceMemory({ method: 'lexical' });
    await known.add(traceOf('book a flight to paris', { id: 'shared' }));
    const traces = [traceOf('book a flight to paris'), traceOf('cancel my hotel')];
    const { chosen, left, coveredBefore } = await select(traces, { count: 1, known });
    expect(chosen.map(({ index }) => index)).toEqual([1]);
    expect(left).toEqual([
      { index: 0, id: null, chosen: null, known: { id: 'shared', similarity: 1 }, unfit: null },
    ]);
    expect(coveredBefore).toBeGreaterThan(0);
    expect(known.size).toBe(1);
  });

  test('compares as a memory does by method full', async () => {
    const texts =
      'book a flight to paris, book a flight, cancel my hotel, compose music, a flight home'.split(', ');
    const traces = texts.map((text, index) => traceOf(text, { id: `${index}` }));
    const { left } = await select(traces, { count: 3, method: 'full' });
    const memory = new TraceMemory({ method: 'full' });
    for (const trace of traces) await memory.add(trace);
    expect(left).toHaveLength(2);
    for (const { index, chosen } of left) {
      const nearest = await memory.nearest(traces[index], traces.length);
      expect(chosen.similarity).toBe(nearest.find(({ id }) => id === chosen.id).similarity);
    }
  });

  test('takes labels by id over what the traces say', async () => {
    const traces = [
      traceOf('book a flight', { id: 'a', success: false }),
      traceOf('compose music', { id: 'b', success: false, known: false }),
      traceOf('cancel my hotel', { success: false }),
    ];
    const { chosen, explanation } = await select(traces, { count: 3, labels: { a: true, b: true } });
    expect(
      chosen
        .map(({ index }) => index)
        .slice(0, 2)
        .sort(),
    ).toEqual([0, 1]);
    expect(explanation).toMatch('the outcome of every trace is known');
  });

  test('keeps places for failures of unsolved tasks', async () => {
    const traces = [
      traceOf('book a flight'),
      traceOf('book a flight now', { success: false }),
      traceOf('cancel my hotel'),
      traceOf('compose music', { success: false }),
      traceOf('paint the kitchen'),
    ];
    const { chosen } = await select(traces, { count: 3, failures: '10%' });
    expect(chosen[2]).toMatchObject({ index: 3, rank: 3, reason: 'failure' });
  });

  test('tells its progress', async () => {
    const traces = Array.from({ length: 300 }, (_, index) => traceOf(`task ${index}`));
    const onProgress = jest.fn();
    await select(traces, { count: 10, onProgress });
    expect(onProgress).toHaveBeenLastCalledWith({ done: 300, total: 300 });
    const stop = new Error('stop');
    onProgress.mockImplementation(() => {
      throw stop;
    });
    await expect(select(traces, { count: 10, onProgress })).rejects.toBe(stop);
  });

  test('rejects with the reason of a signal', async () => {
    const traces = Array.from({ length: 600 }, (_, index) => traceOf(`task ${index}`));
    const controller = new AbortController();
    const call = select(traces, { count: 10, signal: controller.signal });
    controller.abort('enough');
    await expect(call).rejects.toBe('enough');
    await expect(select(traces, { count: 10, signal: AbortSignal.abort('before') })).rejects.toBe('before');
  });

  const full = new TraceMemory({ method: 'full' });
  test.each([
    [undefined, 'options.count'],
    [{}, 'options.count must be a number or a percentage'],
    [{ count: '10' }, 'got "10"'],
    [{ count: '101%' }, 'from 0 to 100'],
    [{ count: 1.5 }, 'a safe integer'],
    [{ count: 1, method: 'prefix' }, "'lexical' or 'full'"],
    [{ count: 1, known: [] }, 'options.known must be a TraceMemory, got array'],
    [{ count: 1, known: full }, "compares by method 'full', not by 'lexical'"],
    [{ count: 1, failures: '-1%' }, 'options.failures must be a number or a percentage'],
    [{ count: 1, labels: { a: 1 } }, 'options.labels["a"] must be a boolean'],
    [{ count: 1, top: 1 }, 'options.top'],
    [{ count: 1, window: 10 }, 'options.window'],
  ])('refuses the options %j', async (options, message) => {
    const call = select([], /** @type {any} */ (options));
    const error = { code: 'ERR_INVALID_OPTION', message: expect.stringContaining(message) };
    await expect(call).rejects.toMatchObject(error);
  });

  test('names the trace that is invalid', async () => {
    const unreadable = {
      get imported() {
        throw new Error('on purpose');
      },
    };
    const hidden = { ...traceOf('hidden'), metadata: Object.assign(unreadable, { success: true }) };
    for (const [traces, message] of /** @type {any} */ ([
      [[traceOf('fine'), {}], /^traces\[1\]\.task/],
      [[traceOf('fine'), hidden], /^traces\[1\]\.metadata\.imported could not be read/],
      [{}, /^traces must be an array, got object/],
      [() => [], /^traces must be an array, got function/],
    ])) {
      const error = { code: 'ERR_INVALID_TRACE', message: expect.stringMatching(message) };
      await expect(select(traces, { count: 1 })).rejects.toMatchObject(error);
    }
  });

  test('chooses nothing of nothing', async () => {
    expect(await select([], { count: 5 })).toMatchObject({ chosen: [], left: [] });
    expect(await select([traceOf('one')], { count: 0 })).toMatchObject({ chosen: [], left: [{ index: 0 }] });
  });
});

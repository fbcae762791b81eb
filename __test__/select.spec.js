'use strict';

// `select` beside its rules, which crates/score tests: what goes in, and what comes out.

const { TraceMemory, select } = require('..');
const { addon } = require('../lib/loader.js');
const { makeTrace } = require('./support/make-trace.js');

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

test('select tells what each chosen trace stands for', async () => {
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
  expect(chosen.map(({ nearestBefore }) => nearestBefore)).toEqual([0, 0]);
  expect(coveredBefore).toBe(0);
  expect(explanation).toMatch('every outcome is known');
});

test('select of unknown outcomes ranks the runs of each agent apart', async () => {
  const run = (format, objective, turns) => {
    const types = Array.from({ length: turns }, () => ['thought', 'observation']).flat();
    const steps = types.map((type, step_id) => ({ type, step_id, content: objective }));
    const trace = makeTrace({ objective, steps });
    return { ...trace, metadata: { ...trace.metadata, imported: { format, known: { success: false } } } };
  };
  const traces = [
    run('codex', 'book a flight to paris', 6),
    run('codex', 'cancel my hotel', 8),
    run('pi', 'compose some music', 30),
    run('pi', 'reconcile the invoices', 40),
  ];
  const { chosen } = await select(traces, { count: 2 });
  expect(chosen.map(({ index }) => index).sort()).toEqual([0, 2]);
});

test('select of traces in another order chooses the same ones', async () => {
  const traces = Array.from({ length: 60 }, (_, run) =>
    traceOf(`task${run % 12} of kind${run % 12} run${run} note${(run * 7) % 31}`, {
      id: `run ${run}`,
      success: run % 5 < 2,
      // No two traces are equally valuable.
      confidence: 0.4 + ((run * 37) % 60) / 100,
    }),
  );
  const idsOf = async (list) => (await select(list, { count: 20 })).chosen.map(({ id }) => id);
  expect(await idsOf(traces.toSorted((a, b) => (a.id < b.id ? 1 : -1)))).toEqual(await idsOf(traces));
});

test('select names why a trace is not fit, and takes a trace without an outcome', async () => {
  const unfit = {
    ...traceOf('only watched'),
    steps: [{ step_id: 0, type: 'observation', content: 'seen' }],
  };
  const unknown = traceOf('write a poem', { success: false, known: false });
  const { chosen, left, explanation } = await select([unfit, unknown], { count: 20 });
  expect(chosen.map(({ index }) => index)).toEqual([1]);
  expect(left.map(({ unfit }) => unfit)).toEqual(['no-agent-step']);
  expect(explanation).toMatch('1 of 2 outcomes unknown: of these, runs that ended soon');
  expect(explanation).toMatch('1 of 2 unfit to be shared: 1 without a step of the agent');
});

test('select chooses beside a known memory, which stays as it was', async () => {
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

test('select takes labels by id over what the traces say', async () => {
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
  expect(explanation).toMatch('every outcome is known');
});

test('select tells of traces whose unknown outcome was lost in a copy', async () => {
  const filledIn = traceOf('compose music', { success: false, confidence: 0.5 });
  const counted = async (traces) => (await select(traces, { count: 1 })).explanation;
  expect(await counted([filledIn])).toMatch(/; 1 trace has success: false .* copy metadata.imported too$/);
  const known = traceOf('compose music', { success: false, confidence: 0.5, known: false });
  for (const other of [known, traceOf('compose music', { success: false })])
    expect(await counted([other])).not.toMatch('metadata.imported');
});

test('select keeps places for failures of unsolved tasks', async () => {
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

test('select tells its progress', async () => {
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

test('select cancels its call when onProgress throws', async () => {
  const native = addon.NativeCandidates.prototype;
  let call;
  // A choice that has compared one trace, and never ends by itself.
  const mocked = jest.spyOn(native, 'select').mockImplementation((...given) => {
    call = given.at(-1);
    return new Promise(() => {});
  });
  const compared = Object.getOwnPropertyDescriptor(native, 'compared');
  Object.defineProperty(native, 'compared', { configurable: true, get: () => 1 });
  const onProgress = () => {
    throw new Error('stop');
  };
  try {
    await expect(select([traceOf('a task')], { count: 1, onProgress })).rejects.toThrow('stop');
    expect(call.complete()).toBe(false);
  } finally {
    Object.defineProperty(native, 'compared', compared);
    mocked.mockRestore();
  }
});

test('select names the trace whose metadata cannot be read', async () => {
  const unreadable = {
    get imported() {
      throw new Error('on purpose');
    },
  };
  const hidden = { ...traceOf('hidden'), metadata: Object.assign(unreadable, { success: true }) };
  await expect(select([traceOf('fine'), hidden], { count: 1 })).rejects.toMatchObject({
    code: 'ERR_INVALID_TRACE',
    message: expect.stringMatching(/^traces\[1\]\.metadata\.imported could not be read/),
  });
});

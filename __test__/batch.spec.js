'use strict';

const { _getLocalCache, evaluateValue, evaluateValues } = require('..');
const { claiming, hostile, lengths, revoked, throwingProxy } = require('./support/hostile.js');
const { makeTrace } = require('./support/make-trace.js');
const { expectError, rejectionOf, same } = require('./support/refusals.js');
const { runForResult } = require('./support/run-script.js');

/** Scores one after another, from an empty memory. */
async function inSequence(traces) {
  _getLocalCache().clear();
  const scores = [];
  for (const trace of traces) scores.push(await evaluateValue(trace));
  return scores;
}

const distinct = (count, salt = '') =>
  Array.from({ length: count }, (_, index) =>
    makeTrace({
      objective: `${salt} task ${index}: ${'step back and look '.repeat((index * 7) % 40)}`,
      confidence: (index % 11) / 10,
    }),
  );

describe('evaluateValues', () => {
  test('gives the scores and the memory of one call after another, to the bit', async () => {
    const traces = distinct(90, 'sequence');
    const expected = await inSequence(traces);
    const probe = Float32Array.from({ length: 384 }, (_, index) => Math.sin(index));
    const similarity = _getLocalCache().maxCosineSimilarity(probe);
    _getLocalCache().clear();
    // Texts that no call has embedded before, so that nothing comes from the memo.
    const fresh = await runForResult(
      `console.log(JSON.stringify(await kp.evaluateValues(${JSON.stringify(traces)})));`,
    );
    expect(fresh.result).toEqual(expected);
    expect(await evaluateValues(traces)).toEqual(expected);
    expect(_getLocalCache().size).toBe(90);
    expect(_getLocalCache().maxCosineSimilarity(probe)).toBe(similarity);
  });

  test('an empty batch has no scores', async () => {
    expect(await evaluateValues([])).toEqual([]);
  });

  test('calls made meanwhile come after the batch, in their order', async () => {
    const traces = distinct(80, 'meanwhile');
    const late = [makeTrace({ objective: 'late one' }), makeTrace({ objective: 'late two' })];
    const expected = await inSequence([...traces, ...late, ...traces.slice(0, 70)]);
    _getLocalCache().clear();
    const batch = evaluateValues(traces);
    const changing = structuredClone(late[0]);
    const singles = [evaluateValue(changing), evaluateValue(late[1])];
    // A single trace is read when it is handed in, also if its turn comes later.
    changing.task.objective = 'changed after the call';
    const second = evaluateValues(traces.slice(0, 70));
    expect([...(await batch), ...(await Promise.all(singles)), ...(await second)]).toEqual(expected);
  });

  test('an invalid trace rejects with its path; only traces before it are remembered', async () => {
    const traces = distinct(100, 'invalid');
    traces[70] = { ...traces[70], steps: [{ type: 7 }] };
    _getLocalCache().clear();
    const message = 'traces[70].steps[0].type must be a string, got number';
    const error = await rejectionOf(evaluateValues(traces));
    expectError(error, [TypeError, 'ERR_INVALID_TRACE', message]);
    expect(_getLocalCache().size).toBe(70);
    expect(await evaluateValue(makeTrace())).toBeGreaterThan(0);
  });

  test.each([
    ['nothing', undefined, ' must be an array'],
    ['a trace', makeTrace(), ' must be an array'],
    ['an iterable', new Set([makeTrace()]), ' must be an array'],
    ['a revoked proxy', revoked([]), ' must be an array'],
    ['null in it', [null], '[0] must be an object, got null'],
    // biome-ignore lint/suspicious/noSparseArray: a hole is what is tested
    ['a hole', [, makeTrace()], '[0] must be an object, got undefined'],
    ['a confidence of 2', [makeTrace({ confidence: 2 })], /^traces\[0\]\.outcome\.confidence /, RangeError],
    ...lengths.map(([length, Class, expected]) => [
      ...['a wrong length', claiming([makeTrace()], length), `.length must be ${expected}`, Class],
    ]),
    ...[
      ['a length that throws', 'length', 'thrown'],
      ['what throws an imitation', '0', { code: 'ERR_INVALID_TRACE' }],
      ['what throws a hostile object', '0', hostile],
    ].map(([name, key, thrown]) => [
      ...[name, throwingProxy([makeTrace()], thrown, key)],
      ...[`${key === '0' ? '[0]' : '.length'} could not be read: it threw`, TypeError, thrown],
    ]),
  ])('evaluateValues refuses %s', async (...row) => {
    const [, traces, message, Class = TypeError, cause] = row;
    _getLocalCache().clear();
    const expected = typeof message === 'string' ? `traces${message}` : message;
    const error = await rejectionOf(evaluateValues(traces));
    expectError(error, [Class, 'ERR_INVALID_TRACE', expected, same(cause)]);
    expect(_getLocalCache().size).toBe(0);
  });

  test('without an embedder a large batch leaves turns to others', async () => {
    const { result } = await runForResult(
      `const traces = Array(20_000).fill(makeTrace());
      await kp.embedderStatus();
      let turns = 0;
      const timer = setInterval(() => { turns++; }, 1);
      const scores = await kp.evaluateValues(traces);
      clearInterval(timer);
      console.log(JSON.stringify({ turns, count: scores.length, same: scores.every((score) => score === scores[0]) }));
    `,
      { env: { KNOWLEDGEPULSE_MODEL_DIR: '/nowhere' } },
    );
    expect(result).toMatchObject({ count: 20_000, same: true });
    expect(result.turns).toBeGreaterThan(0);
  });
});

test('evaluateValue scores a text seen before as if it had not been', async () => {
  const trace = makeTrace({ objective: 'memo' });
  const [first] = await inSequence([trace]);
  expect(await inSequence([trace])).toEqual([first]);
  // The same tokens in other letters.
  expect(await inSequence([makeTrace({ objective: 'MEMO\u200b' })])).toEqual([first]);
});

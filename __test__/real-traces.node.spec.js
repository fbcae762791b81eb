'use strict';

// A hundred traces of real agents, where they are at hand: their scores against the SDK's, in a batch, and what novelty over
// the whole text tells apart. What is particular to the JavaScript engine is tested with texts of our own.

const fs = require('node:fs');

const { _getLocalCache, evaluateValue, evaluateValues, Scorer } = require('..');
const { largestDifference } = require('./oracle/difference.js');
const { OracleEmbedder } = require('./oracle/embedder.js');
const { isLong, logsOf, tracesOfLogs, tracesOfSteps } = require('./support/novelty-cases.js');
const { modelDirectory, readTraces, runtimeLibrary, sharedTraces } = require('./support/paths.js');
const { runForResult } = require('./support/run-script.js');

// Skipped, and shown as such, where the traces are not at hand.
const describeShared = fs.existsSync(sharedTraces) ? describe : describe.skip;

const traces = () => readTraces(sharedTraces);

describeShared('scores', () => {
  let oracle;
  beforeAll(() => {
    oracle = new OracleEmbedder(modelDirectory);
  });
  afterAll(() => oracle?.close());

  test('are those of the SDK', async () => {
    expect(traces()).toHaveLength(100);
    expect(await largestDifference(oracle, traces())).toBeLessThanOrEqual(1e-6);
  });

  test('are the same in a batch, to the bit', async () => {
    _getLocalCache().clear();
    const inSequence = [];
    for (const trace of traces()) inSequence.push(await evaluateValue(trace));
    _getLocalCache().clear();
    expect(await evaluateValues(traces())).toEqual(inSequence);
  });
});

describeShared('embeddings', () => {
  /** Those of the traces' texts, by an engine in a process of its own. */
  async function embeddingsOf(engine) {
    const { result } = await runForResult(
      `
      kp.configureEmbedder({ engine: '${engine}' });
      const { readTraces } = require(${JSON.stringify(require.resolve('./support/paths.js'))});
      const texts = readTraces(${JSON.stringify(sharedTraces)}).slice(0, 30).flatMap(({ task, steps }) =>
        [task.objective, steps.map(({ content }) => content ?? '').join(' '), steps[0]?.content ?? '']);
      const embeddings = await new kp.Embedder().embedBatch(texts);
      console.log(JSON.stringify({ embeddings: embeddings.map((each) => [...each]), status: await kp.embedderStatus() }));
    `,
      { env: { KNOWLEDGEPULSE_DTYPE: 'fp32', KNOWLEDGEPULSE_ONNXRUNTIME: runtimeLibrary } },
    );
    expect(result.status).toMatchObject({ available: true, engine });
    return result.embeddings.flat();
  }

  test('are those of ONNX Runtime', async () => {
    const expected = await embeddingsOf('onnxruntime');
    const found = await embeddingsOf('builtin');
    expect(found).toHaveLength(90 * 384);
    const differences = found.map((component, index) => Math.abs(component - expected[index]));
    expect(differences.reduce((most, each) => Math.max(most, each), 0)).toBeLessThanOrEqual(1e-6);
  });
});

describeShared("new Scorer({ novelty: 'full' })", () => {
  const COUNT = 8;
  const LOGS = 3;

  const median = (values) => [...values].sort((a, b) => a - b)[values.length >> 1];

  const noveltyOf = async (scorer, trace) =>
    (await scorer.explain(trace, { remember: false })).dimensions.novelty;

  /** The median novelty of each kind of traces, by the prefix and in full. */
  async function medians(remembered, kinds) {
    const result = {};
    for (const novelty of ['prefix', 'full']) {
      const scorer = new Scorer({ novelty });
      await scorer.evaluateValues(remembered);
      for (const [kind, traces] of Object.entries(kinds)) {
        const asked = traces.map((trace) => noveltyOf(scorer, trace));
        result[kind] = { ...result[kind], [novelty]: median(await Promise.all(asked)) };
      }
    }
    return result;
  }

  describe('of many steps', () => {
    let novelty;
    beforeAll(async () => {
      const long = traces().filter(isLong);
      const remembered = long.slice(0, COUNT);
      novelty = await medians(remembered, tracesOfSteps(remembered, long.slice(-COUNT)));
    });

    test('the same trace again is old', () => {
      const { prefix, full } = novelty.remembered;
      expect(prefix).toBeCloseTo(0, 5);
      expect(full).toBeCloseTo(0, 5);
    });

    test('the same steps in another order are old, where the prefix takes them for new', () => {
      const { prefix, full } = novelty.shuffled;
      expect(full).toBeCloseTo(0, 5);
      expect(prefix).toBeGreaterThan(novelty.unknown.prefix / 2);
    });

    test('a duplicate with another beginning is found', () => {
      const { prefix, full } = novelty['with another start'];
      // The prefix sees the unknown trace alone.
      expect(prefix).toBeCloseTo(novelty.unknown.prefix, 5);
      expect(full).toBeLessThan(novelty.unknown.full * 0.75);
    });

    test('novelty after the beginning is found', () => {
      const { prefix, full } = novelty['with a remembered start'];
      expect(prefix).toBeCloseTo(0, 5);
      expect(full).toBeGreaterThan(novelty.unknown.full / 4);
    });
  });

  test('a log with something in front is old but for that', async () => {
    const logs = logsOf(traces());
    const remembered = logs.slice(0, LOGS);
    const novelty = await medians(remembered, tracesOfLogs(remembered, logs.slice(-LOGS)));
    const { prefix, full } = novelty.unknown;
    expect(novelty['one word in front'].full).toBeLessThan(full / 50);
    expect(novelty['100 characters in front'].full).toBeLessThan(full / 10);
    expect(novelty['2,600 characters in front'].full).toBeLessThan(full / 5);
    expect(novelty['2,600 characters in front'].prefix).toBeGreaterThan(prefix / 2);
  });
});

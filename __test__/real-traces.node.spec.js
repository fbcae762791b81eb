'use strict';

// A hundred traces of real agents, where they are at hand: their scores against the SDK's, in a batch, and what novelty over
// the whole text tells apart. What is particular to the JavaScript engine is tested with texts of our own.

const fs = require('node:fs');

const { Scorer, TraceMemory } = require('..');
const { largestDifference } = require('./oracle/difference.js');
const { OracleEmbedder } = require('./oracle/embedder.js');
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

  test("equal the SDK's", async () => {
    expect(traces()).toHaveLength(100);
    expect(await largestDifference(oracle, traces())).toBeLessThanOrEqual(1e-6);
  });

  test('are the same in a batch, to the bit', async () => {
    const scorer = new Scorer();
    const inSequence = [];
    for (const trace of traces()) inSequence.push(await scorer.score(trace));
    expect(await new Scorer().scoreAll(traces())).toEqual(inSequence);
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
      const embeddings = await kp.embed(texts);
      console.log(JSON.stringify({ embeddings: embeddings.map((each) => [...each]), status: await kp.embedderStatus() }));
    `,
      { env: { KNOWLEDGEPULSE_DTYPE: 'fp32', KNOWLEDGEPULSE_ONNXRUNTIME: runtimeLibrary } },
    );
    expect(result.status).toMatchObject({ available: true, engine });
    return result.embeddings.flat();
  }

  test("equal ONNX Runtime's", async () => {
    const expected = await embeddingsOf('onnxruntime');
    const found = await embeddingsOf('builtin');
    expect(found).toHaveLength(90 * 384);
    const differences = found.map((component, index) => Math.abs(component - expected[index]));
    expect(differences.reduce((most, each) => Math.max(most, each), 0)).toBeLessThanOrEqual(1e-6);
  });
});

describeShared('a Scorer with a memory of words', () => {
  test('knows a trace again with its steps in another order or junk in front, and takes another for new', async () => {
    const long = traces().filter(({ steps }) => steps.length >= 8);
    const [remembered, unknown] = [long.slice(0, 8), long.slice(-8)];
    const scorer = new Scorer({ memory: new TraceMemory({ method: 'lexical' }) });
    await scorer.scoreAll(remembered);
    const noveltyOf = async (trace) => (await scorer.score(trace, { remember: false })).dimensions.novelty;
    const junk = { ...unknown[0].steps[0], content: 'lorem ipsum dolor sit amet '.repeat(100) };
    for (const trace of remembered) {
      expect(await noveltyOf({ ...trace, steps: trace.steps.toReversed() })).toBe(0);
      expect(await noveltyOf({ ...trace, steps: [junk, ...trace.steps] })).toBeLessThan(0.15);
    }
    for (const trace of unknown) expect(await noveltyOf(trace)).toBeGreaterThan(0.25);
  });
});

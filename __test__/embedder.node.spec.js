'use strict';

// What becomes of the embedder: each case in a process of its own, because there is one per process.

const fs = require('node:fs');
const { createRequire } = require('node:module');
const path = require('node:path');

const { scoreOf } = require('./oracle/score.js');
const { makeTrace } = require('./support/make-trace.js');
const { addon } = require('./support/addon.js');
const { ONNXRUNTIME, modelDirectory, root, runtimeLibrary } = require('./support/paths.js');
const { runForResult } = require('./support/run-script.js');
const { copyModel: linkModel, copyPackage, replaceFile, scratchDirectory } = require('./support/scratch.js');

const scratch = scratchDirectory('embedder');

/** Evaluates two traces and tells everything that a user can see. */
const REPORT = `
  const warnings = [];
  process.on('warning', (warning) => warnings.push({ name: warning.name, code: warning.code, message: warning.message }));
  const scores = [await kp.evaluateValue(makeTrace()), await kp.evaluateValue(makeTrace())];
  const status = await kp.embedderStatus();
  await new Promise((resolve) => setTimeout(resolve, 20));
  console.log(JSON.stringify({ scores, status, warnings, size: kp._getLocalCache().size }));
`;

const NEUTRAL = scoreOf(makeTrace(), 0.5);

function expectNeutral(result) {
  for (const score of result.scores) expect(score).toBeCloseTo(NEUTRAL, 12);
  expect(result.status.available).toBe(false);
  expect(result.size).toBe(0);
}

/** A changed copy of the model package. */
function copyModel(name, change = () => {}) {
  const directory = linkModel(path.join(scratch, name));
  change(directory);
  return directory;
}

function replace(directory, file, contents) {
  replaceFile(path.join(directory, file), contents);
}

/** A copy of the model package without its manifest and one of its two networks. */
const without = (network, name) =>
  copyModel(name, (directory) => {
    for (const file of ['manifest.json', network]) fs.rmSync(path.join(directory, file));
  });
const onlyGraph = (name) => without('model.safetensors', name);

/** A copy of the addon with no library beside it, and out of reach of the package `onnxruntime-node`. */
function lonelyAddon() {
  const directory = path.join(scratch, 'no-runtime');
  fs.mkdirSync(directory, { recursive: true });
  fs.writeFileSync(path.join(directory, 'package.json'), JSON.stringify({ files: [] }));
  const copy = path.join(directory, path.basename(addon));
  fs.copyFileSync(addon, copy);
  return copy;
}

(process.platform === 'linux' ? describe : describe.skip)('the priority of the inference threads', () => {
  test.each([0, 3])(
    'the priority of inference threads is a little lower than that of the process, which may stand back by %d itself',
    async (more) => {
      const { result } = await runForResult(`
      const os = require('node:os');
      const niceness = os.getPriority() + ${more};
      os.setPriority(niceness);
      await kp.embedderStatus();
      const { readFileSync, readdirSync } = require('node:fs');
      const threads = readdirSync('/proc/self/task').map((id) => readFileSync('/proc/self/task/' + id + '/stat', 'utf8'));
      const ours = threads.filter((stat) => /\\((knowledgepulse|encoder \\d+)\\)/.test(stat));
      // The fields after the name begin with the third.
      console.log(JSON.stringify(ours.map((stat) => Number(stat.split(') ')[1].split(' ')[19 - 3]) - niceness)));
    `);
      expect(result.length).toBeGreaterThan(0);
      expect(new Set(result)).toEqual(new Set([1]));
    },
  );
});

test('evaluateValue without a model package takes a novelty of 0.5, silently', async () => {
  const installed = copyPackage(path.join(scratch, 'installed'));
  const { result, stderr } = await runForResult(REPORT, {
    from: installed,
    env: { KNOWLEDGEPULSE_NATIVE_ADDON: addon },
  });
  expectNeutral(result);
  expect(result.status.code).toBe('ERR_MODEL_NOT_FOUND');
  expect(result.status.reason).toContain('@knowledgepulse/all-minilm-l6-v2');
  expect(result.warnings).toEqual([]);
  expect(stderr).toBe('');
});

const weights = 'model.safetensors';
const DAMAGED = 'ERR_MODEL_UNUSABLE';
const UNSUPPORTED = 'ERR_MODEL_UNUSABLE';

const truncated = () => {
  const copy = (directory) => replace(directory, weights, 'short');
  return { KNOWLEDGEPULSE_MODEL_DIR: copyModel('truncated', copy) };
};

/** The environment for a library in a file of this name. */
const library = (file) => () => ({
  ...ONNXRUNTIME,
  KNOWLEDGEPULSE_ONNXRUNTIME: path.resolve(scratch, file),
});

const withoutRuntime = () => ({
  KNOWLEDGEPULSE_NATIVE_ADDON: lonelyAddon(),
  KNOWLEDGEPULSE_MODEL_DIR: onlyGraph('without-runtime'),
});

/** The ONNX Runtime that the SDK brings. */
function oldRuntime() {
  const transformers = createRequire(require.resolve('@huggingface/transformers'));
  const node = path.dirname(transformers.resolve('onnxruntime-node/package.json'));
  const folder = path.join(node, 'bin', 'napi-v3', process.platform, process.arch);
  const names = /^(lib)?onnxruntime\.(so\.1|dll|1.*dylib)$/;
  const file = fs.readdirSync(folder).find((name) => names.test(name));
  return library(path.join(folder, file))();
}

const nowhere = { KNOWLEDGEPULSE_MODEL_DIR: path.join(scratch, 'nowhere') };
/** An engine, and a model without the network that it computes. */
const engineOf = (engine, network) => () => ({
  ...{ KNOWLEDGEPULSE_ENGINE: engine, KNOWLEDGEPULSE_MODEL_DIR: without(network, `for-${engine}`) },
});
const noGraph = () => {
  const directory = onlyGraph('no-graph');
  replace(directory, 'model.onnx', 'x');
  return { ...ONNXRUNTIME, KNOWLEDGEPULSE_MODEL_DIR: directory };
};
const noSuchKernel = () => ({ KNOWLEDGEPULSE_KERNEL: 'mmx' });

// What else may be wrong with a file is tested in crates/embed and crates/encoder.
test.each([
  ['a truncated model', truncated, DAMAGED, weights],
  ['a graph that is no ONNX file', noGraph, DAMAGED, 'model.onnx'],
  ['the engine onnxruntime without a graph', engineOf('onnxruntime', 'model.onnx'), UNSUPPORTED, 'builtin'],
  ['the engine builtin with a graph alone', engineOf('builtin', weights), UNSUPPORTED, 'onnxruntime'],
  ['a model directory that does not exist', () => nowhere, 'ERR_MODEL_NOT_FOUND', 'nowhere'],
  ['a graph alone without an ONNX Runtime', withoutRuntime, 'ERR_RUNTIME_UNUSABLE', weights],
  ['instructions that do not exist', noSuchKernel, 'ERR_INVALID_OPTION', 'KNOWLEDGEPULSE_KERNEL'],
  ['a library that is no ONNX Runtime', library(addon), 'ERR_RUNTIME_UNUSABLE', 'OrtGetApiBase'],
  ['an ONNX Runtime that is too old', oldRuntime, 'ERR_RUNTIME_UNUSABLE', '1.24.1'],
])('evaluateValue with %s scores with novelty 0.5 and warns once', async (_, prepare, code, names) => {
  const { result } = await runForResult(REPORT, { env: prepare() });
  expectNeutral(result);
  // Bun's matchers put themselves into what they match.
  const { reason } = result.status;
  expect(result.status.code).toBe(code);
  expect(reason).toContain(names);
  expect(result.warnings).toEqual([
    { name: 'KnowledgePulseWarning', code, message: expect.stringContaining(reason) },
  ]);
});

test('evaluateValue without a runtime warns once per process, worker threads included', async () => {
  const { stderr } = await runForResult(
    `
      await kp.evaluateValue(makeTrace());
      const { Worker } = require('node:worker_threads');
      const code = 'require(' + JSON.stringify(${JSON.stringify(root)}) + ').evaluateValue(' + JSON.stringify(makeTrace()) + ')';
      for (let i = 0; i < 2; i++) {
        await new Promise((resolve) => new Worker(code, { eval: true }).on('exit', resolve));
      }
      console.log('null');
    `,
    { env: { ...ONNXRUNTIME, KNOWLEDGEPULSE_ONNXRUNTIME: path.join(scratch, 'no-library.so') } },
  );
  expect(stderr.match(/ERR_RUNTIME_UNUSABLE/g)).toHaveLength(1);
});

describe.each(['builtin', 'onnxruntime'])('a file that is harmed under a loaded embedder, %s', (engine) => {
  const source = `${modelDirectory}-q8`;
  const name = engine === 'builtin' ? 'model.safetensors' : 'model.onnx';
  const harms = {
    deleted: (file) => `fs.rmSync(${file})`,
    truncated: (file) => `fs.truncateSync(${file}, 1000)`,
    overwritten: (file) => `fs.writeFileSync(${file}, Buffer.alloc(fs.statSync(${file}).size))`,
  };
  const options = JSON.stringify(engine === 'builtin' ? { engine } : { engine, runtimePath: runtimeLibrary });
  const score = (directory, harm) => `
    const fs = require('node:fs');
    const traces = (name) => Array.from({ length: 20 }, (_, i) => makeTrace({ objective: \`\${name} \${i}\`.repeat(i + 1) }));
    kp.configureEmbedder({ modelDirectory: ${JSON.stringify(directory)}, threads: 2, ...${options} });
    const scores = [await kp.evaluateValue(makeTrace())];
    ${harm};
    // A batch would open further sessions of the model.
    scores.push(...(await Promise.all(traces('first').map(kp.evaluateValue))), await kp.evaluateValue(makeTrace()));
    const { available, code } = await kp.embedderStatus();
    console.log(JSON.stringify({ scores, available, code }));
  `;
  /** What is written to the file is in the words that the built-in engine reads from it. */
  const isRead = (harm) => engine === 'builtin' && harm !== 'deleted';
  let expected;
  beforeAll(async () => {
    expected = (await runForResult(score(source, ''))).result;
    expect(expected.available).toBe(true);
  });

  test.each(Object.keys(harms))(
    'evaluateValue with a model that is %s stays what it was, or is neutral with a warning',
    async (harm) => {
      const directory = path.join(scratch, `harmed-${engine}-${harm}`);
      fs.mkdirSync(directory);
      for (const file of fs.readdirSync(source))
        fs.copyFileSync(path.join(source, file), path.join(directory, file));
      const file = JSON.stringify(path.join(directory, name));
      const { result, stderr } = await runForResult(score(directory, harms[harm](file)));
      if (!isRead(harm)) {
        expect(result).toEqual(expected);
        expect(stderr).toBe('');
        return;
      }
      // What was embedded before is known: the last score.
      const at = [0, result.scores.length - 1];
      for (const index of at) expect(result.scores[index]).toBe(expected.scores[index]);
      expect(stderr.match(/ERR_MODEL_UNUSABLE/g)).toHaveLength(1);
      expect(stderr).toContain('has changed since it was loaded');
    },
  );
});

test('configureEmbedder takes a directory in the layout of the hub, once', async () => {
  const directory = path.join(scratch, 'hub');
  fs.mkdirSync(path.join(directory, 'onnx'), { recursive: true });
  for (const file of ['model.safetensors', 'tokenizer.json', 'tokenizer_config.json', 'config.json'])
    fs.symlinkSync(path.join(modelDirectory, file), path.join(directory, file));
  for (const file of ['model.onnx', 'model.safetensors'])
    fs.symlinkSync(path.join(modelDirectory, file), path.join(directory, 'onnx', file));
  const { result } = await runForResult(
    `
      kp.configureEmbedder({ modelDirectory: ${JSON.stringify(directory)}, threads: 1 });
      let late;
      try { kp.configureEmbedder({}); } catch (error) { late = error.code; }
      console.log(JSON.stringify({ status: await kp.embedderStatus(), late }));
    `,
    // The option comes before the variable.
    { env: { KNOWLEDGEPULSE_MODEL_DIR: path.join(scratch, 'nowhere'), KNOWLEDGEPULSE_THREADS: '2' } },
  );
  const { status } = result;
  expect(status).toMatchObject({ available: true, modelDirectory: directory, dtype: 'fp32', threads: 1 });
  expect(result.late).toBe('ERR_INVALID_OPTION');
});

test.each([
  '{ embed: false }',
  "{ memory: new kp.TraceMemory({ method: 'lexical' }) }",
  "{ memory: new kp.TraceMemory({ method: 'full' }), embed: false }",
])('configureEmbedder works after calls of a Scorer with %s', async (options) => {
  const { result } = await runForResult(`
      const scorer = new kp.Scorer(${options});
      await scorer.score(makeTrace());
      await scorer.scoreAll([makeTrace(), makeTrace()]);
      await scorer.score(makeTrace());
      kp.configureEmbedder({ threads: 1, modelDirectory: ${JSON.stringify(modelDirectory)} });
      const { available, threads } = await kp.embedderStatus();
      console.log(JSON.stringify({ available, threads, score: (await scorer.score(makeTrace())).value }));
    `);
  expect(result).toEqual({ available: true, threads: 1, score: expect.any(Number) });
});

test('the engine comes from configureEmbedder, then the variable, then the files', async () => {
  const read = (body, env) =>
    runForResult(`${body}; console.log(JSON.stringify(await kp.embedderStatus()));`, { env });
  const graph = onlyGraph('graph-alone');
  const cases = [
    ['', ONNXRUNTIME, 'onnxruntime'],
    ["kp.configureEmbedder({ engine: 'builtin' })", { KNOWLEDGEPULSE_ENGINE: 'onnxruntime' }, 'builtin'],
    ["kp.configureEmbedder({ engine: 'auto' })", { KNOWLEDGEPULSE_ENGINE: 'onnxruntime' }, 'builtin'],
    ['', { ...ONNXRUNTIME, KNOWLEDGEPULSE_ENGINE: '', KNOWLEDGEPULSE_MODEL_DIR: graph }, 'onnxruntime'],
    ['', { KNOWLEDGEPULSE_KERNEL: 'portable' }, 'builtin'],
  ];
  await Promise.all(
    cases.map(async ([body, env, engine]) => {
      const { result, stderr } = await read(body, env);
      const kernel = engine === 'builtin' ? (env.KNOWLEDGEPULSE_KERNEL ?? expect.any(String)) : null;
      const path = engine === 'builtin' ? null : expect.stringContaining('knowledgepulse_onnxruntime');
      expect(result).toMatchObject({ available: true, engine, kernel, runtimePath: path });
      expect(stderr).toBe('');
    }),
  );
  const { result, stderr } = await read('', { KNOWLEDGEPULSE_ENGINE: 'fast' });
  expect(result.engine).toBe('builtin');
  expect(stderr).toContain("KNOWLEDGEPULSE_ENGINE must be 'auto', 'builtin' or 'onnxruntime'");
});

test('configureEmbedder takes a model in memory, and a damaged one gives a code', async () => {
  const result = async (change) => {
    const body = `
        const read = (name) => require('node:fs').readFileSync(require('node:path').join(${JSON.stringify(`${modelDirectory}-q8`)}, name));
        const model = { weights: read('model.safetensors'), tokenizer: read('tokenizer.json') };
        ${change};
        const warnings = [];
        process.on('warning', ({ code }) => warnings.push(code));
        const scores = [await kp.evaluateValue(makeTrace()), await kp.evaluateValue(makeTrace())];
        await new Promise((resolve) => setTimeout(resolve, 20));
        const { code, reason, dtype, engine, modelDirectory, modelSha256 } = await kp.embedderStatus();
        console.log(JSON.stringify({ scores, warnings, code, reason, dtype, engine, modelDirectory, modelSha256 }));
      `;
    return (await runForResult(body)).result;
  };
  const q8 = JSON.stringify(`${modelDirectory}-q8`);
  const directory = await result(`kp.configureEmbedder({ modelDirectory: ${q8} })`);
  expect(directory).toMatchObject({ code: null, warnings: [] });
  // The bytes are the caller's to change: they were copied.
  const memory = await result('kp.configureEmbedder({ model }); model.weights.fill(0)');
  expect(memory).toEqual({ ...directory, modelDirectory: null });
  const wrong = [
    ['model.weights = model.weights.subarray(0, 1000)', 'ERR_MODEL_UNUSABLE'],
    ['model.weights = new Uint8Array()', 'ERR_MODEL_UNUSABLE'],
    ['model.weights = model.tokenizer', 'ERR_MODEL_UNUSABLE'],
    ['model.tokenizer = model.tokenizer.subarray(0, 1000)', 'ERR_MODEL_UNUSABLE'],
  ];
  for (const [change, code] of wrong) {
    const failed = await result(`${change}; kp.configureEmbedder({ model })`);
    expect(failed).toMatchObject({ code, warnings: [code] });
    for (const score of failed.scores) expect(score).toBeCloseTo(NEUTRAL, 12);
  }
});

'use strict';

// What test:platforms has each Node.js do: `node smoke.cjs CASE RESULT_FILE [ARGUMENT...]`. The result is a file, because
// under Wine standard output is no pipe that Node.js can write to. It loads the package from the project it is copied
// into, or what KNOWLEDGEPULSE_PACKAGE names.

const { once } = require('node:events');
const fs = require('node:fs');
const path = require('node:path');
const { Worker } = require('node:worker_threads');

const main = require.resolve(process.env.KNOWLEDGEPULSE_PACKAGE ?? '@knowledgepulse/native');
const kp = require(main);

const [name, resultFile, ...args] = process.argv.slice(2);

/** Short: under emulation a token takes as long as a thousand do without. */
const TEXTS = ['The build fails.', 'Der Build schlägt fehl: 构建失败', 'restart the database'];

/** @param {string} objective */
const trace = (objective) => ({
  '@context': 'https://openknowledgepulse.org/schema/v1',
  '@type': /** @type {const} */ ('ReasoningTrace'),
  id: 'kp:trace:0b0e7a0c-6a3e-4f3a-9d6e-2f1f3f8a1c11',
  metadata: {
    created_at: '2026-01-01T00:00:00.000Z',
    task_domain: 'code',
    success: true,
    quality_score: 0,
    visibility: /** @type {const} */ ('network'),
    privacy_level: /** @type {const} */ ('aggregated'),
  },
  task: { objective },
  steps: [
    { step_id: 0, type: /** @type {const} */ ('thought'), content: 'The linker fails.' },
    {
      step_id: 1,
      type: /** @type {const} */ ('tool_call'),
      content: 'Read the log',
      tool: { name: 'read_file' },
    },
  ],
  outcome: { result_summary: 'done', confidence: 0.9 },
});

const vector = (/** @type {number} */ seed) =>
  Array.from({ length: 384 }, (_, i) => Math.sin(seed * 384 + i));

/** @param {unknown} value */
const report = (value) => fs.writeFileSync(resultFile, JSON.stringify(value));

/** The code of the error that a promise rejects with, or what it is instead of one. @param {Promise<unknown>} promise */
const codeOf = (promise) =>
  promise.then(
    () => 'no error',
    (error) => error.code ?? String(error),
  );

/** @type {Record<string, () => Promise<void>>} */
const cases = {
  // What the embedder makes of texts, and scores: of the first trace, of the same again, and of two others.
  async scores() {
    const status = await kp.embedderStatus();
    if (!status.available) return report({ status });
    const embeddings = [];
    for (const text of TEXTS) embeddings.push(Array.from((await kp.embed([text]))[0]));
    const scores = [];
    for (const text of [TEXTS[0], TEXTS[0], TEXTS[1]]) scores.push(await kp.evaluateValue(trace(text)));
    scores.push(...(await kp.evaluateValues([trace(TEXTS[2])])));
    report({ status, embeddings, scores });
  },

  // As `scores`, without scoring: whether the engine can be had.
  async status() {
    report(await kp.embedderStatus());
  },

  // Saves a memory, over another, and finds in it what was saved; in each of the directories that are named.
  async cache() {
    const results = [];
    for (const directory of args) {
      fs.mkdirSync(directory, { recursive: true });
      const file = path.join(directory, 'memory.safetensors');
      const cache = new kp.VectorCache();
      cache.add(vector(1), 'first');
      await cache.save(file);
      cache.add(vector(2), 'second');
      await cache.save(file);
      const loaded = await kp.VectorCache.load(file);
      const [nearest] = loaded.nearest(vector(2));
      results.push({
        length: path.resolve(file).length,
        size: loaded.size,
        label: nearest.label,
        similarity: nearest.similarity,
        files: fs.readdirSync(directory),
      });
    }
    report(results);
  },

  // The same of a memory of traces, which are compared by their words and by embeddings.
  async traces() {
    const [file] = args;
    const vector = async (/** @type {ReturnType<typeof trace>} */ value) => ({
      vector: (await kp.embed([kp.TraceMemory.digest(value)]))[0],
    });
    const [first, second] = [TEXTS[0], TEXTS[1]].map(trace);
    const memory = new kp.TraceMemory({ novelty: 'full' });
    await memory.add({ ...first, id: 'first' }, await vector(first));
    await memory.save(file);
    await memory.add({ ...second, id: 'second' }, await vector(second));
    await memory.save(file);
    const loaded = await kp.TraceMemory.load(file);
    const [nearest] = await loaded.nearest(second, 1, await vector(second));
    report({ size: loaded.size, nearest });
  },

  async worker() {
    const code = `
      const { parentPort, workerData } = require('node:worker_threads');
      const kp = require(workerData.main);
      kp.evaluateValue(workerData.trace).then((score) => parentPort.postMessage(score));
    `;
    const worker = new Worker(code, { eval: true, workerData: { main, trace: trace(TEXTS[0]) } });
    const [score] = await once(worker, 'message');
    const [exitCode] = await once(worker, 'exit');
    report({ score, exitCode });
  },

  // Ends while a text of the greatest length is embedded.
  async exit() {
    const { available } = await kp.embedderStatus();
    let settled = false;
    const settle = () => {
      settled = true;
    };
    for (let i = 0; i < 4; i++) kp.evaluateValue(trace(`${i} ${'word '.repeat(600)}`)).then(settle, settle);
    setTimeout(() => {
      report({ available, settled });
      process.exit(7);
    }, 20);
  },

  async throw() {
    report({});
    throw new Error('on purpose');
  },

  async end() {
    await kp.evaluateValue(trace(TEXTS[0]));
    report({});
  },

  // A file that this process has opened for itself alone, which only Windows knows.
  async alone() {
    const [file] = args;
    const cache = new kp.VectorCache();
    cache.add(vector(1), 'first');
    await cache.save(file);
    const UV_FS_O_EXLOCK = 0x10000000;
    const descriptor = fs.openSync(file, fs.constants.O_RDWR | UV_FS_O_EXLOCK);
    cache.add(vector(2), 'second');
    const locked = { load: await codeOf(kp.VectorCache.load(file)), save: await codeOf(cache.save(file)) };
    fs.closeSync(descriptor);
    const { size } = await kp.VectorCache.load(file);
    await cache.save(file);
    const after = await kp.VectorCache.load(file);
    report({ locked, size, sizeAfter: after.size, files: fs.readdirSync(path.dirname(file)) });
  },

  // Holds the lock of a memory until another file appears: a run of the command that waits for its input.
  async hold() {
    const [memory, until] = args;
    const command = startCommand(memory, '-');
    while (!fs.existsSync(`${memory}.lock`)) await pause();
    report({ held: true });
    while (!fs.existsSync(until)) await pause();
    if (until.endsWith('remove')) {
      command.interrupt();
      await command.question();
    }
    process.exit(0);
  },

  // Whether the lock of a memory can be had, and what its file says.
  async lock() {
    const [memory] = args;
    const lock = `${memory}.lock`;
    const text = fs.existsSync(lock) ? fs.readFileSync(lock, 'utf8') : '';
    fs.writeFileSync('empty.jsonl', '');
    const { about } = await startCommand(memory, 'empty.jsonl').question();
    report({ held: about === '0', text, remains: fs.existsSync(lock) });
  },
};

/**
 * Starts a run of `kp-score` with a memory, in this process.
 *
 * @param {string} memory
 * @param {string} input
 */
function startCommand(memory, input) {
  const { NativeCommand } = require(path.join(path.dirname(main), 'lib', 'loader.js')).addon;
  return new NativeCommand(['--quiet', '--novelty', 'lexical', '--memory', memory, input], 'a test');
}

const pause = () => new Promise((resolve) => setTimeout(resolve, 50));

cases[name]().catch((error) => {
  report({ error: String(error?.stack ?? error) });
  throw error;
});

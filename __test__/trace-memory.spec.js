'use strict';

// A `TraceMemory`: what it finds, its bounds and its files. The measure is tested in crates/index.

const fs = require('node:fs');
const path = require('node:path');

const { Scorer, TraceMemory } = require('..');
const { cacheFileIn, fromFolder, scratchDirectory } = require('./support/scratch.js');
const { rejectionOf } = require('./support/refusals.js');
const { runForResult } = require('./support/run-script.js');
const { makeTrace } = require('./support/make-trace.js');

const scratch = scratchDirectory('traces');
const METHODS = ['prefix', 'lexical', 'full'];

/** @param {string} objective @param {string[]} contents */
function traceOf(objective, contents = [], id = objective) {
  const steps = contents.map((content, step_id) => ({ step_id, type: 'thought', content }));
  return { ...makeTrace(), id, task: { objective }, steps };
}

const TRACES = ['flight to Seattle', 'flight to Boston', 'hotel in Boston', 'repair of a bicycle'].map(
  (objective) => traceOf(objective),
);

async function filled(method, bounds) {
  const memory = new TraceMemory({ method, ...bounds });
  for (const trace of TRACES) await memory.add(trace);
  return memory;
}

describe.each(METHODS)('a TraceMemory by method %s', (method) => {
  test('TraceMemory compares as a scorer does, and adds what it is given', async () => {
    const memory = new TraceMemory({ method });
    const scorer = new Scorer({ memory: new TraceMemory({ method }) });
    expect(await memory.compare(TRACES[0])).toEqual({ novelty: 0.5, nearest: null });
    for (const trace of TRACES) {
      const { dimensions, nearest } = await scorer.score(trace);
      expect(await memory.compare(trace)).toEqual({ novelty: dimensions.novelty, nearest });
      await memory.add(trace);
    }
    expect(memory).toMatchObject({ size: 4, method });
    expect((await memory.compare(TRACES[1])).novelty).toBeCloseTo(0, 6);
    memory.clear();
    expect([memory.size, (await memory.compare(TRACES[0])).novelty]).toEqual([0, 0.5]);
  });

  test('TraceMemory nearest finds the most similar traces, the most similar first', async () => {
    const memory = await filled(method);
    const query = traceOf('flight to Boston tomorrow');
    const found = await memory.nearest(query, 9);
    expect(found).toHaveLength(4);
    expect(found[0].id).toBe('flight to Boston');
    const similarities = found.map(({ similarity }) => similarity);
    expect(similarities).toEqual(similarities.toSorted((a, b) => b - a));
    expect((await memory.nearest(query))[0]).toEqual(found[0]);
    expect({ ...(await memory.compare(query)).nearest, sharedWords: null, newWords: null }).toEqual(found[0]);
    expect(await memory.nearest(query, 0)).toEqual([]);
  });

  test('TraceMemory evicts the oldest, and forgets after its time to live', async () => {
    const memory = await filled(method, { maxElements: 2 });
    const ids = (await memory.nearest(TRACES[0], 9)).map(({ id }) => id).sort();
    expect(ids).toEqual(['hotel in Boston', 'repair of a bicycle']);
    expect((await filled(method, { ttlMs: 0 })).size).toBe(0);
  });

  test('TraceMemory works on calls in their order', async () => {
    const memory = new TraceMemory({ method });
    const added = TRACES.map((trace) => memory.add(trace));
    const { nearest } = await memory.compare(TRACES[3]);
    expect(nearest.id).toBe(TRACES[3].id);
    await Promise.all(added);
  });

  test('TraceMemory is saved and loaded, with its bounds', async () => {
    const file = path.join(scratch, `${method}.safetensors`);
    const memory = await filled(method, { maxElements: 4 });
    await memory.save(file);
    const loaded = await TraceMemory.load(file);
    expect(loaded).toMatchObject({ size: 4, method });
    const query = traceOf('flight to Boston tomorrow');
    expect(await loaded.nearest(query, 4)).toEqual(await memory.nearest(query, 4));
    await loaded.add(traceOf('a fifth'));
    expect(loaded.size).toBe(4);
    const bytes = await memory.toBytes();
    expect(bytes).toBeInstanceOf(Uint8Array);
    const copy = await TraceMemory.fromBytes(bytes);
    expect(await copy.nearest(query, 4)).toEqual(await memory.nearest(query, 4));
  });
});

test('TraceMemory that embeds rejects without an embedder, and words need none', async () => {
  const { result } = await runForResult(
    `
    const codes = [];
    for (const method of ['prefix', 'lexical', 'full']) {
      const memory = new kp.TraceMemory({ method });
      for (const call of ['add', 'compare', 'nearest'])
        codes.push(await memory[call](makeTrace()).then(() => memory.size, ({ code }) => code));
    }
    console.log(JSON.stringify(codes));
  `,
    { env: { KNOWLEDGEPULSE_MODEL_DIR: '/nowhere' } },
  );
  const missing = Array(3).fill('ERR_MODEL_NOT_FOUND');
  expect(result).toEqual([...missing, 1, 1, 1, ...missing]);
});

test('TraceMemory refuses invalid traces, counts and paths, and changes nothing', async () => {
  const memory = new TraceMemory({ method: 'lexical' });
  const type = { code: 'ERR_INVALID_TRACE', message: 'trace.task must be an object, got undefined' };
  for (const call of ['add', 'compare', 'nearest'])
    expect(await rejectionOf(memory[call]({}))).toMatchObject(type);
  const option = { code: 'ERR_INVALID_OPTION' };
  expect(await rejectionOf(memory.nearest(TRACES[0], -1))).toMatchObject(option);
  for (const file of ['', 7, undefined]) {
    expect(await rejectionOf(memory.save(file))).toMatchObject(option);
    expect(await rejectionOf(TraceMemory.load(file))).toMatchObject(option);
  }
  expect(memory.size).toBe(0);
});

test('TraceMemory.load and save have a code for each file that is missing, damaged or a folder', async () => {
  const damaged = path.join(scratch, 'damaged.safetensors');
  fs.writeFileSync(damaged, 'no memory');
  const nowhere = path.join(scratch, 'nowhere', 'a.safetensors');
  const memory = await filled('lexical');
  for (const [call, code, file] of [
    [() => TraceMemory.load(nowhere), 'ERR_MEMORY_NOT_FOUND', nowhere],
    [() => TraceMemory.load(damaged), 'ERR_MEMORY_DAMAGED', damaged],
    [() => TraceMemory.load(scratch), 'ERR_IO', scratch],
    [() => memory.save(nowhere), 'ERR_IO', nowhere],
  ]) {
    const error = await rejectionOf(call());
    expect(error).toMatchObject({ name: 'Error', code, message: expect.stringContaining(file) });
  }
  const bytes = (value) => rejectionOf(TraceMemory.fromBytes(value));
  expect(await bytes(Buffer.from('no memory'))).toMatchObject({ code: 'ERR_MEMORY_DAMAGED' });
  expect(await bytes(damaged)).toMatchObject({ name: 'TypeError', code: 'ERR_INVALID_INPUT' });
});

test('TraceMemory.load and save take paths from the folder in which they are called', async () => {
  const memory = await filled('lexical');
  const call = () => Promise.all([memory.save('b.safetensors'), TraceMemory.load('a.safetensors')]);
  const { result, before, after } = await fromFolder(scratch, () => memory.save('a.safetensors'), call);
  expect(result[1].size).toBe(memory.size);
  expect([before, after]).toEqual([['a.safetensors', 'b.safetensors'], []]);
});

test('TraceMemory save writes the state at the call, and the later one stays', async () => {
  const file = cacheFileIn(scratch);
  const memory = new TraceMemory({ method: 'lexical' });
  const saved = [];
  for (const trace of TRACES) {
    await memory.add(trace);
    saved.push(memory.save(file));
  }
  memory.clear();
  await Promise.all(saved);
  expect((await TraceMemory.load(file)).size).toBe(4);
  expect(fs.readdirSync(path.dirname(file))).toEqual([path.basename(file)]);
});

test('TraceMemory.load makes memories that are garbage in time', async () => {
  const file = cacheFileIn(scratch);
  const { result } = await runForResult(
    `const memory = new kp.TraceMemory({ method: 'lexical', maxElements: 500 });
      const words = (trace) => Array.from({ length: 480 }, (_, word) => 'word' + (trace * 480 + word)).join(' ');
      for (let count = 0; count < 500; count++)
        await memory.add(makeTrace({ steps: [{ type: 'thought', content: words(count) }] }));
      await memory.save(${JSON.stringify(file)});
      const before = process.memoryUsage().rss;
      let most = 0;
      for (let round = 0; round < 30; round++) {
        await kp.TraceMemory.load(${JSON.stringify(file)});
        most = Math.max(most, process.memoryUsage().rss - before);
      }
      console.log(JSON.stringify(most));`,
  );
  // Each takes about 25 MB.
  expect(result).toBeLessThan(4e8);
});

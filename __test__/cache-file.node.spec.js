'use strict';

// The file of a cache as the core writes it, on whichever JavaScript engine: whole after a kill and on a full disk, and
// readable in Python.

const { execFileSync, spawn, spawnSync } = require('node:child_process');
const { once } = require('node:events');
const fs = require('node:fs');
const path = require('node:path');
const { setTimeout: sleep } = require('node:timers/promises');

const { Scorer, VectorCache } = require('..');
const { LARGE } = require('./support/large-cache.js');
const { makeTrace } = require('./support/make-trace.js');
const { root } = require('./support/paths.js');
const { permissions } = require('./support/permissions.js');
const { python, testWithPackages } = require('./support/python.js');
const { run, runForResult } = require('./support/run-script.js');
const { cacheFileIn, scratchDirectory } = require('./support/scratch.js');

const scratch = scratchDirectory('cache-file');
const newFile = () => cacheFileIn(scratch);

/** That a file holds the whole of one of the states of `LARGE`. */
async function expectWhole(file) {
  const loaded = await VectorCache.load(file);
  const labels = [...loaded].map(({ label }) => Number(label));
  expect(labels).toHaveLength(2000);
  expect(labels.every((label, index) => label === labels[0] + index)).toBe(true);
  return labels[0];
}

test('a process that is killed at any moment leaves a whole file', async () => {
  const file = newFile();
  const program = `${LARGE}
    (async () => {
      for (;;) {
        await cache.save(file);
        process.stdout.write('.');
        for (let i = 0; i < 7; i++) add();
      }
    })();
  `;
  const firsts = new Set();
  for (let kill = 0; kill < 32; kill++) {
    const child = spawn(process.execPath, ['-e', program, file]);
    await once(child.stdout, 'data');
    // At another place of a save each time.
    await sleep((kill * 7) % 29);
    child.kill('SIGKILL');
    await once(child, 'close');
    firsts.add(await expectWhole(file));
  }
  expect(firsts.size).toBeGreaterThan(1);
  // What they were writing is all that is left of them.
  const others = fs.readdirSync(path.dirname(file)).filter((name) => name !== path.basename(file));
  expect(others.filter((name) => !/^\.knowledgepulse-\w+\.tmp$/.test(name))).toEqual([]);
  const old = new Date(Date.now() - 3_600_000);
  for (const name of others) fs.utimesSync(path.join(path.dirname(file), name), old, old);
  await new VectorCache().save(file);
  expect(fs.readdirSync(path.dirname(file))).toEqual([path.basename(file)]);
}, 120_000);

/** Saves a small cache and then a large one, for which there is no room; prints what became of that. */
const WITHOUT_ROOM = `${LARGE}
  (async () => {
    const small = new VectorCache({ maxElements: 5 });
    for (const { vector } of cache) small.add(vector, 'small');
    await small.save(file);
    try {
      await cache.save(file);
    } catch (error) {
      console.log(JSON.stringify([error.code, error.message]));
    }
  })();
`;

describe('a full disk', () => {
  async function expectRefused({ code, stdout, stderr }, file) {
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const [errorCode, message] = JSON.parse(stdout);
    expect(errorCode).toBe('ERR_MEMORY_IO');
    expect(message).toContain(file);
    expect((await VectorCache.load(file)).nearest(new Float32Array(384).fill(1))[0].label).toBe('small');
    expect(fs.readdirSync(path.dirname(file))).toEqual([path.basename(file)]);
    return message;
  }

  (process.platform === 'win32' ? test.skip : test)('leaves the old file (a limit)', async () => {
    const file = newFile();
    // In blocks of 512 or 1,024 bytes. A process that has not asked to be told is killed.
    const script = 'trap "" XFSZ; ulimit -f 400; exec "$@"';
    const ended = await run('sh', ['-c', script, 'sh', process.execPath, '-e', WITHOUT_ROOM, file]);
    await expectRefused(ended, file);
  });

  const small = path.join(scratch, 'small');
  fs.mkdirSync(small);
  const mount = () => spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=512k', 'tmpfs', small]).status === 0;
  const unmount = () => execFileSync('umount', [small]);
  const canMount = mount();
  if (canMount) unmount();
  else console.warn('skipped: this process may not mount a small file system');

  (canMount ? test : test.skip)('leaves the old file (a small file system)', async () => {
    expect(mount()).toBe(true);
    try {
      const file = path.join(small, 'memory.safetensors');
      const message = await expectRefused(await run(process.execPath, ['-e', WITHOUT_ROOM, file]), file);
      expect(message).toMatch(/no space left/i);
    } finally {
      unmount();
    }
  });
});

(permissions.reason === undefined ? test : test.skip)(
  'a directory that cannot be read takes a file, and replaces it',
  async () => {
    const file = newFile();
    const script = `
      const { VectorCache } = require(${JSON.stringify(root)});
      const [file] = process.argv.slice(1);
      (async () => {
        for (const label of ['first', 'second']) {
          const cache = new VectorCache({ dimensions: 2 });
          cache.add([1, 2], label);
          await cache.save(file);
          console.log(cache.size);
        }
      })().catch((error) => console.log(error.message));
    `;
    fs.chmodSync(path.dirname(file), 0o300);
    try {
      const [command, ...args] = [...permissions.prefix, process.execPath, '-e', script, file];
      const { stdout } = await run(command, args);
      expect(stdout).toBe('1\n1\n');
    } finally {
      fs.chmodSync(path.dirname(file), 0o700);
    }
    expect([...(await VectorCache.load(file))].map(({ label }) => label)).toEqual(['second']);
  },
);

describe('Python', () => {
  const program = path.join(__dirname, 'support', 'cache-file.py');
  const testPython = testWithPackages('numpy', 'safetensors', 'xxhash');

  testPython('reads what was saved', async () => {
    const file = newFile();
    const cache = new VectorCache({ maxElements: 10, dimensions: 70, ttlMs: 60_000.5 });
    const vectors = Array.from({ length: 5 }, (_, i) =>
      Float32Array.from({ length: 70 }, (_, j) => i - j / 7),
    );
    const labels = ['kp:trace:1', undefined, '', '\u00e9\u{1f980}', undefined];
    const before = Date.now();
    for (const [at, vector] of vectors.entries()) cache.add(vector, labels[at]);
    await cache.save(file);
    const { code, stdout, stderr } = await run(python, [program, 'read', file]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const read = JSON.parse(stdout);
    expect(read.metadata).toEqual({
      format: 'knowledgepulse-vector-cache',
      version: '4',
      max_elements: '10',
      ttl_ms: '60000.5',
      saved_at: expect.stringMatching(/^\d{16}$/),
    });
    expect(read.dtypes).toEqual({
      added: 'int64',
      label_ends: 'uint64',
      novelties: 'float64',
      vectors: 'float32',
      labelled: 'bool',
      fingerprints: 'uint8',
      labels: 'uint8',
      checksum: 'uint8',
    });
    expect(read.vectors.map((vector) => Float32Array.from(vector))).toEqual(vectors);
    // These vectors were added by hand, so they have no scores.
    expect(read.novelties).toEqual(labels.map(() => null));
    expect(read.fingerprints).toEqual(labels.map(() => '0'.repeat(32)));
    expect(read.labels).toEqual(labels.map((label) => label ?? null));
    for (const added of read.added.map((time) => Date.parse(`${time}Z`))) {
      expect(added).toBeGreaterThanOrEqual(before - 1);
      expect(added).toBeLessThanOrEqual(Date.now());
    }
  });

  testPython('computes the fingerprints of scored traces', async () => {
    const traces = [
      makeTrace({ objective: 'Book a flight \u{1f6eb}', domain: 'finance', confidence: 0.25 }),
      makeTrace({
        success: false,
        steps: [
          { step_id: 0, type: 'tool_call', tool: { name: 'search' } },
          { step_id: 1, type: 'observation', content: '' },
        ],
      }),
    ].map((trace, at) => ({ ...trace, id: `kp:trace:${at}` }));
    delete traces[1].metadata.task_domain;
    const scorer = new Scorer();
    for (const trace of traces) await scorer.evaluateValue(trace);
    const file = newFile();
    await scorer.memory.save(file);
    const computed = traces.map((trace) => {
      const input = JSON.stringify(trace);
      return execFileSync(python, [program, 'fingerprint'], { input, encoding: 'utf8' }).trim();
    });
    const { fingerprints, novelties } = JSON.parse(execFileSync(python, [program, 'read', file]));
    expect(fingerprints).toEqual(computed);
    expect(novelties).toEqual([0.5, expect.any(Number)]);
  });

  const BOUNDS = { format: 'knowledgepulse-vector-cache', version: '4', max_elements: '2' };

  /** Has Python write a file. */
  function write(file, contents) {
    execFileSync(python, [program, 'write', file], { input: JSON.stringify(contents) });
  }

  testPython('writes what is loaded', async () => {
    const file = newFile();
    write(file, {
      metadata: { ...BOUNDS, note: 'by hand', method: 'full' },
      vectors: [
        [1, 2, 3],
        [4, 5, 6],
        [7, 8, 9.5],
      ],
      labels: ['a', null, 'c'],
      novelties: [0.5, null, 0.25],
      fingerprints: ['01'.repeat(16), '00'.repeat(16), 'ff'.repeat(16)],
      added: ['2020-01-01', '2021-01-01', '2022-01-01T12:00:00.000001'],
    });
    const loaded = await VectorCache.load(file);
    expect(loaded).toMatchObject({ maxElements: 2, dimensions: 3, ttlMs: 1 / 0, method: 'full' });
    expect([...loaded]).toEqual([
      { vector: Float32Array.of(4, 5, 6), label: undefined, index: 0 },
      { vector: Float32Array.of(7, 8, 9.5), label: 'c', index: 1 },
    ]);
    expect((await VectorCache.load(file, { ttlMs: 1000 })).size).toBe(0);
  });

  testPython('writes files of a model, of which that of the embedder is taken', async () => {
    const status = 'console.log(JSON.stringify(await kp.embedderStatus()))';
    const env = { KNOWLEDGEPULSE_DTYPE: 'q8' };
    const { result: embedder } = await runForResult(status, { env });
    expect(embedder.available).toBe(true);
    const identities = {
      same: { model: embedder.model, dtype: 'q8', model_sha256: embedder.modelSha256 },
      'same name': { model: embedder.model, dtype: 'q8' },
      'another type': { model: embedder.model, dtype: 'fp32', model_sha256: '0'.repeat(64) },
    };
    const scores = { novelties: [null], fingerprints: ['00'.repeat(16)] };
    const entries = { vectors: [[1]], labels: [null], added: ['2020-01-01'], ...scores };
    const results = {};
    for (const [name, identity] of Object.entries(identities)) {
      const file = newFile();
      write(file, { ...entries, metadata: { ...BOUNDS, ...identity } });
      const load = `kp.VectorCache.load(${JSON.stringify(file)})`;
      const script = `console.log(JSON.stringify(await ${load}.then(({ model }) => model, ({ code }) => code)))`;
      results[name] = (await runForResult(script, { env })).result;
    }
    const model = { model: embedder.model, dtype: 'q8' };
    expect(results).toEqual({ same: model, 'same name': model, 'another type': 'ERR_MEMORY_OTHER_MODEL' });
  });
});

'use strict';

// Memory that survives a restart: what is loaded is what was saved, or an error that says why not.

const fs = require('node:fs');
const path = require('node:path');

const fc = require('fast-check');

const { VectorCache } = require('..');
const { rejectionOf } = require('./support/refusals.js');
const { LARGE } = require('./support/large-cache.js');
const { run, runForResult } = require('./support/run-script.js');
const { headerOf, safetensors } = require('./support/safetensors.js');
const { cacheFileIn, scratchDirectory } = require('./support/scratch.js');

const scratch = scratchDirectory('files');

const newFile = () => cacheFileIn(scratch);

const boundsOf = (cache) => [cache.maxElements, cache.dimensions, cache.ttlMs, cache.model, cache.size];

describe('load', () => {
  test('restores the saved state', async () => {
    const component = fc.float({ noNaN: true, noDefaultInfinity: true });
    const cases = fc.integer({ min: 1, max: 70 }).chain((dimensions) =>
      fc.record({
        dimensions: fc.constant(dimensions),
        maxElements: fc.integer({ min: 0, max: 12 }),
        ttlMs: fc.constantFrom(undefined, 60_000, 3_600_000.5),
        entries: fc.array(
          fc.record({
            vector: fc.array(component, { minLength: dimensions, maxLength: dimensions }),
            label: fc.option(fc.string({ unit: 'grapheme', maxLength: 20 }), { nil: undefined }),
          }),
          { maxLength: 20 },
        ),
      }),
    );
    const file = newFile();
    const property = fc.asyncProperty(cases, async ({ entries, ...options }) => {
      const cache = new VectorCache(options);
      for (const { vector, label } of entries) cache.add(vector, label);
      await cache.save(file);
      const loaded = await VectorCache.load(file);
      expect(loaded).toBeInstanceOf(VectorCache);
      expect(boundsOf(loaded)).toEqual(boundsOf(cache));
      expect([...loaded]).toEqual([...cache]);
      for (const { vector } of cache) {
        expect(loaded.nearest(vector, 5)).toEqual(cache.nearest(vector, 5));
      }
    });
    await fc.assert(property, { numRuns: 100 });
    expect(fs.readdirSync(path.dirname(file))).toEqual(['memory.safetensors']);
  });

  test('saves the state at the call, without later additions', async () => {
    const file = newFile();
    const cache = new VectorCache({ maxElements: 4000 });
    const vector = new Float32Array(384);
    let added = 0;
    const add = (count) => {
      for (let i = 0; i < count; i++) {
        vector[added % 384] = added;
        cache.add(vector, `${added++}`);
      }
    };
    add(3900);
    for (let round = 0; round < 10; round++) {
      const expected = [...cache].map(({ label }) => label);
      const saved = cache.save(file);
      // Fills the block that the file is written from, and empties the first.
      add(500);
      await saved;
      const loaded = await VectorCache.load(file);
      expect([...loaded].map(({ label }) => label)).toEqual(expected);
    }
  });

  (process.platform === 'win32' ? test.skip : test)('is that of the last call by whatever path', async () => {
    const file = newFile();
    const link = `${file}.link`;
    fs.symlinkSync(file, link);
    const cache = new VectorCache({ maxElements: 20_000 });
    cache.addBatch(Array(20_000).fill(new Float32Array(384)));
    const first = cache.save(link);
    cache.clear();
    await Promise.all([first, cache.save(file)]);
    expect((await VectorCache.load(file)).size).toBe(0);
  });

  test('is garbage in time', async () => {
    const file = newFile();
    const { result } = await runForResult(
      `const cache = new kp.VectorCache({ maxElements: 40_000 });
      cache.addBatch(Array(40_000).fill(new Float32Array(384).fill(1)));
      const file = ${JSON.stringify(file)};
      await cache.save(file);
      let most = 0;
      for (let round = 0; round < 25; round++) {
        await kp.VectorCache.load(file);
        most = Math.max(most, process.memoryUsage().rss);
      }
      console.log(JSON.stringify(most));`,
    );
    // Each takes 78 MB.
    expect(result).toBeLessThan(1e9);
  });
});

const OTHER_MODEL = path.join(__dirname, 'support', 'other-model.safetensors');

describe('a file of another model', () => {
  const load = `
    const load = async (options) => {
      try {
        return (await kp.VectorCache.load(${JSON.stringify(OTHER_MODEL)}, options)).size;
      } catch (error) {
        return [error.code, error.message, error instanceof Error];
      }
    };
    console.log(JSON.stringify([await load(), await load({ model: 'check' }), await load({ model: 'any' })]));
  `;

  test('is refused, unless it is asked for', async () => {
    const { result } = await runForResult(load, { env: { KNOWLEDGEPULSE_DTYPE: 'q8' } });
    const [refused, checked, taken] = result;
    expect(refused[0]).toBe('ERR_MEMORY_OTHER_MODEL');
    expect(refused[1]).toContain(OTHER_MODEL);
    expect(refused[1]).toContain('example/another-model (fp16)');
    expect(refused[1]).toContain('(q8)');
    expect(refused[2]).toBe(true);
    expect(checked).toEqual(refused);
    expect(taken).toBe(3);
  });

  test('is taken without its vectors, as any empty cache is', async () => {
    const body = `
      const loaded = await kp.VectorCache.load(${JSON.stringify(OTHER_MODEL)}, { maxElements: 0 });
      console.log(JSON.stringify(loaded.size));
    `;
    expect((await runForResult(body, { env: { KNOWLEDGEPULSE_DTYPE: 'q8' } })).result).toBe(0);
  });

  test('is taken where there is no embedder', async () => {
    const nowhere = path.join(scratch, 'nowhere');
    const { result } = await runForResult(load, { env: { KNOWLEDGEPULSE_MODEL_DIR: nowhere } });
    expect(result).toEqual([3, 3, 3]);
  });
});

/** Expects an `Error` with a code that names the file. */
async function expectNamed(promise, code, file) {
  const error = await rejectionOf(promise);
  expect(error).toBeInstanceOf(Error);
  expect(error).toMatchObject({ code, message: expect.stringContaining(file) });
}

describe('load refuses', () => {
  test('a missing file, and a directory', async () => {
    const file = newFile();
    await expectNamed(VectorCache.load(file), 'ERR_MEMORY_NOT_FOUND', file);
    await expectNamed(VectorCache.load(scratch), 'ERR_MEMORY_IO', scratch);
  });

  test('a truncated or changed file', async () => {
    const file = newFile();
    const cache = new VectorCache({ dimensions: 3 });
    for (const label of ['a', 'b']) cache.add([1, 2, 3], label);
    await cache.save(file);
    const whole = fs.readFileSync(file);
    const changed = Buffer.from(whole);
    changed[whole.length >> 1] ^= 4;
    for (const contents of [Buffer.alloc(0), whole.subarray(0, -1), changed]) {
      fs.writeFileSync(file, contents);
      await expectNamed(VectorCache.load(file), 'ERR_MEMORY_DAMAGED', file);
    }
    // What is damaged can be replaced.
    await cache.save(file);
    expect((await VectorCache.load(file)).size).toBe(2);
  });

  test('a file that claims more than it holds, without taking memory for it', async () => {
    const file = newFile();
    const cache = new VectorCache({ dimensions: 8 });
    cache.add(new Float32Array(8));
    await cache.save(file);
    const bytes = fs.readFileSync(file);
    const { header, start } = headerOf(bytes);
    const { __metadata__, ...tensors } = header;
    const before = process.memoryUsage().rss;
    const shorter = /it has \d+ bytes, not the \d+ of its header/;
    const unreadable = /its header is not that of a safetensors file/;
    // WebAssembly, with 32 bits, cannot read such numbers.
    const either = new RegExp(`${shorter.source}|${unreadable.source}`);
    for (const [count, reason] of [
      [2, shorter],
      [1e9, either],
      [2 ** 32, either],
      [2 ** 45, either],
      [2 ** 53, unreadable],
      [2 ** 60, unreadable],
    ]) {
      let end = 0;
      const claimed = Object.entries(tensors).map(([name, { dtype, shape, data_offsets }]) => {
        const times = ['labels', 'checksum'].includes(name) ? 1 : count;
        const [rows, ...columns] = shape;
        const [from, to] = data_offsets;
        const begin = end;
        end += (to - from) * times;
        return [name, { dtype, shape: [rows * times, ...columns], data_offsets: [begin, end] }];
      });
      const claim = { __metadata__, ...Object.fromEntries(claimed) };
      fs.writeFileSync(file, safetensors(claim, bytes.subarray(start)));
      expect(await rejectionOf(VectorCache.load(file))).toMatchObject({
        code: 'ERR_MEMORY_DAMAGED',
        message: expect.stringMatching(reason),
      });
    }
    expect(process.memoryUsage().rss - before).toBeLessThan(256 * 1024 * 1024);
  });
});

describe('save', () => {
  test('says why it cannot write', async () => {
    const cache = new VectorCache();
    for (const file of [scratch, path.join(scratch, 'missing', 'file')])
      await expectNamed(cache.save(file), 'ERR_MEMORY_IO', file);
    // One that failed is not in the way of the next.
    const file = newFile();
    const directory = path.dirname(file);
    fs.rmdirSync(directory);
    const failed = rejectionOf(cache.save(file));
    expect((await failed).code).toBe('ERR_MEMORY_IO');
    fs.mkdirSync(directory);
    await cache.save(file);
    expect((await VectorCache.load(file)).size).toBe(0);
  });

  test('follows the directory that the process was in', async () => {
    const file = newFile();
    const before = process.cwd();
    process.chdir(path.dirname(file));
    const saved = new VectorCache().save('memory.safetensors');
    process.chdir(before);
    await saved;
    expect(fs.existsSync(file)).toBe(true);
  });

  test('does not keep a process that ends from ending', async () => {
    const file = newFile();
    const script = `${LARGE}; cache.save(file); process.exit(3)`;
    const { code, stderr } = await run(process.execPath, ['-e', script, file]);
    expect({ code, stderr }).toEqual({ code: 3, stderr: '' });
    if (fs.existsSync(file)) expect((await VectorCache.load(file)).size).toBe(2000);
  });

  test('is done before a process ends by itself', async () => {
    const file = newFile();
    const { code, stderr } = await run(process.execPath, ['-e', `${LARGE}; cache.save(file)`, file]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect((await VectorCache.load(file)).size).toBe(2000);
  });
});

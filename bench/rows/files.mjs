// A cache to a file and back, against the same bytes written and read as they are.

import { open, readFile } from 'node:fs/promises';
import path from 'node:path';

import { VectorCache } from '../../index.js';
import { temporaryDirectory } from '../../scripts/platform.mjs';
import { atMost, comparison } from '../measure.mjs';
import { DIMENSIONS } from '../workload.mjs';

const AGAINST = 'the bytes alone';
/**
 * @param {string} what
 * @param {number} count
 */
const rowName = (what, count) => `${what} ${count.toLocaleString('en')} x ${DIMENSIONS} vectors`;

const WORK = /** @type {const} */ (['save', 'load']);

/** As fast as the disk, give or take the time to make a cache of the bytes. */
const TARGETS = { save: atMost(1.5, 'x'), load: atMost(2, 'x') };

/** @param {import('../run.mjs').Bench} bench */
export async function files(bench) {
  const count = bench.rounds(1_000_000, 100_000);
  const names = { save: rowName('save', count), load: rowName('load', count) };
  if (!Object.values(names).some((name) => bench.wants(`${name} ${AGAINST}`))) return [];
  bench.say(`${names.save}, and load them`);
  const samples = await measure(temporaryDirectory('bench'), fill(count), bench.rounds(5, 3));
  return WORK.map((what) =>
    comparison({ name: names[what], unit: 'ms', ...samples[what], against: AGAINST, target: TARGETS[what] }),
  );
}

/** @param {number} count */
function fill(count) {
  const cache = new VectorCache({ maxElements: count, dimensions: DIMENSIONS });
  const vector = new Float32Array(DIMENSIONS);
  for (let index = 0; index < count; index++) {
    // A cheap sequence in which no vector is another's copy.
    for (let axis = 0; axis < DIMENSIONS; axis++) vector[axis] = ((index * 31 + axis * 17) % 257) - 128;
    vector[index % DIMENSIONS] = index;
    cache.add(vector, `kp:trace:${index}`);
  }
  return cache;
}

/**
 * @param {string} directory
 * @param {VectorCache} cache
 * @param {number} rounds
 */
async function measure(directory, cache, rounds) {
  const [ours, theirs] = ['ours.safetensors', 'theirs'].map((name) => path.join(directory, name));
  /** @type {Record<'save' | 'load', Record<'ours' | 'theirs', number[][]>>} */
  const samples = { save: { ours: [], theirs: [] }, load: { ours: [], theirs: [] } };
  /**
   * @template T
   * @param {number[][]} list
   * @param {() => Promise<T>} work
   */
  const record = async (list, work) => {
    const start = performance.now();
    const result = await work();
    list.push([performance.now() - start]);
    return result;
  };
  await cache.save(ours);
  const bytes = await readFile(ours);
  for (let round = 0; round < rounds; round++) {
    const turns = [
      () => record(samples.save.ours, () => cache.save(ours)),
      () => record(samples.save.theirs, () => writeWhole(theirs, bytes)),
    ];
    // A disk that had to write is slower for a while.
    for (const turn of round % 2 === 0 ? turns : turns.reverse()) await turn();
    const loaded = await record(samples.load.ours, () => VectorCache.load(ours));
    if (loaded.size !== cache.size) throw new Error(`${loaded.size} of ${cache.size} vectors came back`);
    loaded.clear();
    await record(samples.load.theirs, () => readFile(theirs));
  }
  return samples;
}

/**
 * As a careful program writes: acknowledged data is on the disk.
 *
 * @param {string} file
 * @param {Buffer} bytes
 */
async function writeWhole(file, bytes) {
  const handle = await open(file, 'w');
  try {
    await handle.writeFile(bytes);
    await handle.sync();
  } finally {
    await handle.close();
  }
}

'use strict';

// A store in this process.

const { Scorer, TraceMemory, VectorCache } = require('../..');
const { LocalMemory } = require('../../lib/store/local.js');

/** A store in this process. `calls` are the numbers of entries that it was given; it fails with what `fail` returns for ids and a call. */
class MemoryStore {
  calls = [];
  stored = new Map();
  fail = () => undefined;

  constructor(novelty = 'lexical', bounds = {}) {
    this.novelty = novelty;
    this.memory = novelty === 'prefix' ? new VectorCache(bounds) : new TraceMemory({ novelty, ...bounds });
    this.local = new LocalMemory(this.memory);
  }

  async compareAndAdd(entries, call) {
    this.calls.push(entries.length);
    // Slower than the event loop, as a real one is.
    await new Promise((resolve) => setTimeout(resolve, 2));
    const ids = entries.map(({ id }) => id);
    const error = this.fail(ids, call);
    if (error !== undefined) throw error;
    if (!this.stored.has(call))
      this.stored.set(call, { ids, found: await this.local.compareAndAdd(entries) });
    return this.stored.get(call).found;
  }

  async compare(entry) {
    this.calls.push('compare');
    const error = this.fail([entry.id]);
    if (error !== undefined) throw error;
    return this.local.compare(entry);
  }

  async size() {
    const error = this.fail([]);
    if (error !== undefined) throw error;
    return this.memory.size;
  }

  /** The ids of the stored traces, in order. */
  get ids() {
    return [...this.stored.values()].flatMap(({ ids }) => ids);
  }
}

/** What a scorer gives a store of these traces. */
async function entriesOf(traces, novelty = 'lexical') {
  const store = new MemoryStore(novelty, { maxElements: 1 });
  const captured = [];
  store.compareAndAdd = async (entries) => {
    captured.push(...entries);
    return entries.map(() => null);
  };
  await new Scorer({ memory: store }).evaluateValues(traces);
  return captured;
}

module.exports = { MemoryStore, entriesOf };

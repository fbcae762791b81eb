'use strict';

// A store in this process.

const { Scorer } = require('../..');
const { addon } = require('../../lib/loader.js');
const { packed } = require('../../lib/store/postgres.js');

/** The most similar of entries to another one, of equal ones the oldest; null without any. */
async function nearestOf(known, entry, method) {
  if (known.length === 0) return null;
  const none = { lexical: null, contained: null, embedded: null };
  if (method === 'prefix') {
    const similarities = known.map(({ vector }) =>
      vector.reduce((sum, component, index) => sum + component * entry.vector[index], 0),
    );
    const similarity = Math.max(...similarities);
    return { ...none, id: known[similarities.indexOf(similarity)].id, similarity };
  }
  const dimensions = method === 'full' ? 384 : 0;
  const [{ index, ...parts }] = await addon.compareStored(
    known.map(packed),
    [packed(entry)],
    dimensions,
    Number.POSITIVE_INFINITY,
  );
  return { ...none, ...parts, id: known[index].id };
}

/** A store in this process. `calls` are the numbers of entries that it was given; it fails with what `fail` returns for ids and a call. */
class MemoryStore {
  calls = [];
  stored = new Map();
  known = [];
  fail = () => undefined;

  constructor(method = 'lexical', fallback = undefined, { maxElements = Number.POSITIVE_INFINITY } = {}) {
    this.method = method;
    this.fallback = fallback;
    this.maxElements = maxElements;
  }

  async compareAndAdd(entries, call) {
    this.calls.push(entries.length);
    // Slower than the event loop, as a real one is.
    await new Promise((resolve) => setTimeout(resolve, 2));
    const ids = entries.map(({ id }) => id);
    const error = this.fail(ids, call);
    if (error !== undefined) throw error;
    if (!this.stored.has(call)) {
      const found = [];
      for (const entry of entries) {
        found.push(await nearestOf(this.known, entry, this.method));
        this.known.push(entry);
        if (this.known.length > this.maxElements) this.known.shift();
      }
      this.stored.set(call, { ids, found });
    }
    return this.stored.get(call).found;
  }

  async compare(entry) {
    this.calls.push('compare');
    const error = this.fail([entry.id]);
    if (error !== undefined) throw error;
    return nearestOf(this.known, entry, this.method);
  }

  async size() {
    const error = this.fail([]);
    if (error !== undefined) throw error;
    return this.known.length;
  }

  /** The ids of the stored traces, in order. */
  get ids() {
    return [...this.stored.values()].flatMap(({ ids }) => ids);
  }
}

/** What a scorer gives a store of these traces. */
async function entriesOf(traces, method = 'lexical') {
  const store = new MemoryStore(method);
  await new Scorer({ memory: store }).scoreAll(traces);
  return store.known;
}

module.exports = { MemoryStore, entriesOf };

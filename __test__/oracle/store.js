'use strict';

// A store that compares with a plain loop, in double precision, by the definition in crates/index/DESIGN.md.

const storedOf = {
  prefix: ({ id, vectors }) => vectors.map((vector) => ({ label: id, vector })),
  lexical: (entry) => [{ label: entry.id, words: readWords(entry) }],
  full: (entry) => [{ label: entry.id, words: readWords(entry), vector: entry.vectors[0] }],
};

class OracleStore {
  #stored = [];
  #novelty;
  #maxElements;

  constructor(novelty, maxElements = Number.POSITIVE_INFINITY) {
    this.#novelty = novelty;
    this.#maxElements = maxElements;
  }

  compareAndAdd(entry) {
    const own = storedOf[this.#novelty](entry);
    const compare = this.#novelty === 'prefix' ? compareVectors : compareTraces;
    const comparison = own.map((query) => {
      const [nearest = null] = compare(query, this.#stored).sort((a, b) => b.similarity - a.similarity);
      return nearest;
    });
    this.#stored.push(...own);
    this.#stored.splice(0, Math.max(0, this.#stored.length - this.#maxElements));
    return comparison;
  }
}

const compareVectors = ({ vector }, stored) =>
  stored.map(({ label, vector: other }) => ({ label, similarity: dot(vector, other) }));

/** The measure by its definition in crates/index/DESIGN.md, in double precision. */
function compareTraces({ words, vector }, stored) {
  const traces = new Map();
  for (const other of stored) {
    for (const word of other.words.keys()) traces.set(word, (traces.get(word) ?? 0) + 1);
  }
  const weightOf = (word) => Math.log((stored.length + 1) / (traces.get(word) ?? 1));
  const product = (one, other) =>
    [...one].reduce((sum, [word, count]) => sum + count * (other.get(word) ?? 0) * weightOf(word) ** 2, 0);
  const sum = (list) => list.reduce((total, word) => total + weightOf(word), 0);
  const project = projection(stored.flatMap((other) => other.vector ?? []));
  const own = vector === undefined ? [] : project(vector);
  return stored.map((other) => {
    const [lexical, contained] =
      words.size === 0 || other.words.size === 0
        ? Array(2).fill(words.size === other.words.size ? 1 : 0)
        : [
            product(words, other.words) /
              Math.sqrt(product(words, words) * product(other.words, other.words)),
            sum([...words.keys()].filter((word) => other.words.has(word))) / sum([...words.keys()]),
          ];
    const embedded = other.vector === undefined ? null : Math.max(0, cosine(own, project(other.vector)));
    const combined = embedded === null ? lexical : 0.7 * lexical + 0.3 * embedded;
    const similarity = Math.max(combined, contained ** 4);
    return { label: other.label, similarity, lexical, contained, embedded };
  });
}

/** Returns the projection P: subtracts the mean of `rows`, and removes their first principal direction. */
function projection(rows) {
  if (rows.length < 3) return (vector) => [...vector];
  const mean = Array.from(rows[0], (_, at) => rows.reduce((sum, row) => sum + row[at] / rows.length, 0));
  const centred = rows.map((row) => Array.from(row, (component, at) => component - mean[at]));
  const lengths = centred.map((row) => dot(row, row));
  let direction = centred[lengths.indexOf(Math.max(...lengths))];
  for (let round = 0; round < 8; round++) {
    const along = centred.map((row) => dot(row, direction));
    const next = mean.map(() => 0);
    for (const [index, row] of centred.entries()) {
      for (let at = 0; at < next.length; at++) next[at] += along[index] * row[at];
    }
    const length = Math.sqrt(dot(next, next));
    direction = next.map((component) => component / length);
  }
  return (vector) => {
    const rest = Array.from(vector, (component, at) => component - mean[at]);
    const along = dot(rest, direction);
    return rest.map((component, at) => component - along * direction[at]);
  };
}

function cosine(a, b) {
  const norms = Math.sqrt(dot(a, a) * dot(b, b));
  return norms === 0 ? 0 : dot(a, b) / norms;
}

function readWords({ words }) {
  const bytes = Buffer.from(words);
  const count = (code) => (1 + (code & 2047) / 2048) * 2 ** ((code >> 11) - 16);
  return new Map(
    Array.from({ length: bytes.length / 10 }, (_, index) => [
      bytes.readBigUInt64LE(index * 10),
      count(bytes.readUInt16LE(index * 10 + 8)),
    ]),
  );
}

function dot(a, b) {
  let sum = 0;
  for (let at = 0; at < a.length; at++) sum += a[at] * b[at];
  return sum;
}

module.exports = { OracleStore };

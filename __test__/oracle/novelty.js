'use strict';

// The reference for novelty by words and by the embedding of a digest: the measure in plain JavaScript, as plain as it can be.
// Nothing here is shared with the implementation under test.

/** @typedef {import('../../index.js').ReasoningTrace} Trace */

const WORD = /[\p{L}\p{N}_]/u;
const MARK = /\p{M}/u;
const UNSEEN = /[\p{M}\p{Cc}\p{Cf}\p{White_Space}]/u;
const GIVES_PAIRS =
  /[\p{scx=Han}\p{scx=Hira}\p{scx=Kana}\p{scx=Hang}\p{scx=Thai}\p{scx=Laoo}\p{scx=Khmr}\p{scx=Mymr}]/u;
const DIGEST = 1_900;
/** The rounds of power iteration that make the direction which P removes. */
const ROUNDS = 8;
/** An embedding of which P leaves less than this part has no direction. */
const SHORTEST = 0.01;

/** @param {Trace} trace */
const piecesOf = (trace) => [trace.task.objective, ...trace.steps.map(({ content }) => content ?? '')];

/** @param {string} text */
const foldCase = (text) => Array.from(text, (c) => c.toUpperCase().toLowerCase()).join('');

/** @param {string} text */
const charactersOf = (text) => Array.from(foldCase(text.normalize('NFKC')).normalize('NFKC'));

/**
 * The words of a text, in order.
 *
 * @param {string} text
 */
function wordsOf(text) {
  const words = [];
  let word = '';
  /** @type {string[]} */
  let run = [];
  const end = () => {
    if (word !== '') words.push(word);
    if (run.length === 1) words.push(run[0]);
    for (let index = 1; index < run.length; index++) words.push(run[index - 1] + run[index]);
    word = '';
    run = [];
  };
  for (const c of charactersOf(text)) {
    if (MARK.test(c)) {
      if (word !== '') word += c;
      else if (run.length > 0) run[run.length - 1] += c;
    } else if (!WORD.test(c)) end();
    else if (GIVES_PAIRS.test(c)) {
      if (word !== '') end();
      run.push(c);
    } else {
      if (run.length > 0) end();
      word += c;
    }
  }
  end();
  return words;
}

/**
 * c of each word of a trace.
 *
 * @param {Trace} trace
 * @returns {Map<string, number>}
 */
function countsOf(trace) {
  const counts = new Map();
  const visibleOf = (/** @type {string} */ text) => charactersOf(text).filter((c) => !UNSEEN.test(c));
  const hasWords = piecesOf(trace).some((piece) => wordsOf(piece).length > 0);
  for (const piece of piecesOf(trace)) {
    const distinct = new Set(hasWords ? wordsOf(piece) : visibleOf(piece));
    for (const word of distinct) counts.set(word, (counts.get(word) ?? 0) + (distinct.size + 6) ** -0.5);
  }
  return counts;
}

/**
 * The text whose embedding stands for a trace.
 *
 * @param {Trace} trace
 */
function digestOf(trace) {
  const pieces = piecesOf(trace)
    .map((piece) => Array.from(piece))
    .filter((piece) => piece.length > 0);
  const cut = (/** @type {number} */ k) => pieces.map((piece) => piece.slice(0, k).join('')).join(' ');
  const longest = Math.max(...pieces.map((piece) => piece.length), 0);
  let k = Math.min(longest, DIGEST);
  while (k > 1 && Array.from(cut(k)).length > DIGEST) k -= 1;
  return Array.from(cut(k)).slice(0, DIGEST).join('');
}

/** @typedef {ArrayLike<number>} Vector */

/** @param {Vector} a @param {Vector} b */
function dot(a, b) {
  let sum = 0;
  for (let index = 0; index < a.length; index++) sum += a[index] * b[index];
  return sum;
}

/** @param {Vector} a @param {Vector} b */
const minus = (a, b) => Array.from(a, (x, index) => x - b[index]);

/**
 * P: what is subtracted from vectors, and which direction is then removed.
 *
 * @param {Vector[]} vectors
 * @returns {(vector: Vector) => Vector}
 */
function projectionOf(vectors) {
  if (vectors.length < 3) return (vector) => vector;
  const mean = Array.from(
    vectors[0],
    (_, index) => vectors.reduce((sum, v) => sum + v[index], 0) / vectors.length,
  );
  const centred = vectors.map((vector) => minus(vector, mean));
  let direction = centred.reduce((longest, v) => (dot(v, v) > dot(longest, longest) ? v : longest));
  for (let round = 0; round < ROUNDS; round++) {
    const next = new Array(mean.length).fill(0);
    for (const v of centred) {
      const along = dot(v, direction);
      for (let index = 0; index < next.length; index++) next[index] += along * v[index];
    }
    const norm = Math.sqrt(dot(next, next));
    if (norm === 0) break;
    direction = next.map((x) => x / norm);
  }
  const isDirection = dot(direction, direction) > 0;
  return (vector) => {
    const own = minus(vector, mean);
    const along = isDirection ? dot(own, direction) : 0;
    const left = own.map((x, index) => x - along * direction[index]);
    // What is left of it is mostly rounding errors.
    return dot(left, left) > SHORTEST ** 2 * dot(vector, vector) ? left : left.map(() => 0);
  };
}

/** @param {Vector} a @param {Vector} b */
function cosine(a, b) {
  const norms = Math.sqrt(dot(a, a) * dot(b, b));
  return norms === 0 ? 0 : dot(a, b) / norms;
}

/** A memory of traces that compares with all of them. */
class OracleMemory {
  /** @type {Array<{ counts: Map<string, number>, vector?: Vector, label?: string }>} */
  entries = [];

  /**
   * @param {Trace} trace
   * @param {Vector} [vector] the embedding of its digest
   */
  add(trace, vector) {
    this.entries.push({ counts: countsOf(trace), vector, label: trace.id });
  }

  /**
   * Whether two different embeddings are equally far from the mean, so that rounding decides which of them the power iteration begins
   * with. After its few rounds the direction then depends on that.
   */
  isUndecided() {
    const vectors = this.entries.map((entry) => Array.from(entry.vector ?? []));
    const mean = vectors[0]?.map(
      (_, index) => vectors.reduce((sum, v) => sum + v[index], 0) / vectors.length,
    );
    const distances = new Map(vectors.map((v) => [v.join(), dot(minus(v, mean), minus(v, mean))]));
    const [first = 0, second = 0] = [...distances.values()].sort((a, b) => b - a);
    return first - second <= 1e-6 * first;
  }

  /**
   * How similar a trace is to each remembered one, the oldest first.
   *
   * @param {Trace} trace
   * @param {Vector} [vector]
   */
  similarities(trace, vector) {
    const counts = countsOf(trace);
    const df = new Map();
    for (const entry of this.entries)
      for (const word of entry.counts.keys()) df.set(word, (df.get(word) ?? 0) + 1);
    const weigh = (/** @type {string} */ word) =>
      Math.log((this.entries.length + 1) / Math.max(1, df.get(word) ?? 0));
    const norm = (/** @type {Map<string, number>} */ all) =>
      Math.sqrt([...all].reduce((sum, [word, count]) => sum + (count * weigh(word)) ** 2, 0));
    const total = [...counts.keys()].reduce((sum, word) => sum + weigh(word), 0);
    const own = norm(counts);
    const project = vector && projectionOf(this.entries.map((entry) => entry.vector ?? []));
    const projected = vector && project?.(vector);
    return this.entries.map((entry) => {
      let product = 0;
      let shared = 0;
      for (const [word, count] of counts) {
        const other = entry.counts.get(word);
        if (other === undefined) continue;
        product += count * other * weigh(word) ** 2;
        shared += weigh(word);
      }
      const same = counts.size === 0 && entry.counts.size === 0;
      const lexical = same ? 1 : product === 0 ? 0 : product / (own * norm(entry.counts));
      const contained = same ? 1 : total === 0 ? 0 : shared / total;
      const embedded =
        project && projected ? Math.max(0, cosine(projected, project(entry.vector ?? []))) : undefined;
      const likeness = embedded === undefined ? lexical : 0.7 * lexical + 0.3 * embedded;
      return {
        label: entry.label,
        lexical,
        contained,
        embedded,
        similarity: Math.max(likeness, contained ** 4),
      };
    });
  }

  /**
   * @param {Trace} trace
   * @param {Vector} [vector]
   */
  novelty(trace, vector) {
    if (this.entries.length === 0) return 0.5;
    return 1 - Math.max(...this.similarities(trace, vector).map(({ similarity }) => similarity));
  }
}

module.exports = { OracleMemory, countsOf, digestOf, wordsOf };

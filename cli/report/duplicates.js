'use strict';

// Groups of near-duplicates: traces that are linked by their nearest remembered trace.

/** From this similarity on, two traces count as near-duplicates. */
const SIMILARITY = 0.95;

/**
 * How much a trace resembles what was remembered before it, whatever kind of memory that is; null if nothing was, or without an
 * embedder. Of a known trace that is not compared again, the earlier novelty says it.
 *
 * @param {import('../..').ScoreBreakdown} breakdown
 */
function resemblanceOf({ dimensions, nearest, noveltyBasis }) {
  if (noveltyBasis === 'given') return 1 - dimensions.novelty;
  return nearest === null ? null : nearest.similarity;
}

/**
 * Whether a trace with this {@link resemblanceOf} is a near-duplicate of an earlier one.
 *
 * @param {number | null} resemblance
 * @returns {resemblance is number}
 */
function isNearDuplicate(resemblance) {
  return resemblance !== null && resemblance >= SIMILARITY;
}

/** How many traces are known by their id at least: those added last, and those of groups that were used last. */
const KNOWN_TRACES = 5_000;
const KNOWN_LINKS = 10_000;

/** How many groups are held; beyond that the smallest are no longer listed, unless they grow. */
const HELD_GROUPS = 2_000;

const LISTED_GROUPS = 30;
const LISTED_MEMBERS = 8;
const POSITIONS = 256;

/**
 * What is listed of a trace of this run.
 *
 * @typedef {object} ListedTrace
 * @property {string | null} id
 * @property {number} position how many traces the report has got before it
 * @property {number} [index] how many traces were scored before it
 * @property {string} [source]
 * @property {number | null} [line]
 * @property {number | null} [element]
 * @property {number} [score]
 * @property {string} [excerpt]
 */

/**
 * A trace of a group: one of an earlier run has no position, and one that begins a group resembles no other.
 *
 * @typedef {Omit<ListedTrace, 'position'> & { position: number | null, nearest?: string | null, similarity?: number }} Member
 */

/**
 * @typedef {object} Group
 * @property {number} size
 * @property {Member[]} members the first ones
 * @property {number[]} positions
 * @property {number} minSimilarity
 * @property {number} maxSimilarity
 * @property {Group | null} mergedInto
 */

/**
 * A map of what was used last: between `limit` and twice as many entries.
 *
 * @template Value
 */
class Recent {
  #limit;
  /** @type {Map<string, Value>} */
  #newer = new Map();
  /** @type {Map<string, Value>} */
  #older = new Map();

  /** @param {number} limit */
  constructor(limit) {
    this.#limit = limit;
  }

  /** @param {string} key */
  get(key) {
    const value = this.#newer.get(key) ?? this.#older.get(key);
    if (value !== undefined) this.set(key, value);
    return value;
  }

  /**
   * @param {string} key
   * @param {Value} value
   */
  set(key, value) {
    this.#newer.set(key, value);
    if (this.#newer.size < this.#limit) return;
    this.#older = this.#newer;
    this.#newer = new Map();
  }
}

/**
 * What became of a group: itself, or the one that it was merged into, by any number of steps.
 *
 * @param {Group} group
 */
function current(group) {
  /** @type {Group} */
  let root = group;
  for (let next = root.mergedInto; next !== null; next = root.mergedInto) root = next;
  // So that the next look takes one step.
  for (let step = group; step.mergedInto !== null; ) {
    const next = step.mergedInto;
    step.mergedInto = root;
    step = next;
  }
  return root;
}

class NearDuplicates {
  /** @type {Recent<ListedTrace>} */
  #traces = new Recent(KNOWN_TRACES);
  /** @type {Recent<Group>} */
  #groups = new Recent(KNOWN_LINKS);
  /** @type {Set<Group>} */
  #held = new Set();
  /** How many traces resemble an earlier one so much. */
  #count = 0;
  #groupCount = 0;

  /**
   * @param {ListedTrace} trace what is listed of it; it is kept, so it must be small
   * @param {{ label: string | null } | null} nearest
   * @param {number | null} resemblance to it
   */
  add(trace, nearest, resemblance) {
    if (nearest !== null && isNearDuplicate(resemblance)) {
      this.#count += 1;
      this.#link({ ...trace, nearest: nearest.label, similarity: resemblance });
    }
    if (trace.id !== null) this.#traces.set(trace.id, trace);
  }

  /** @param {Member & { nearest: string | null, similarity: number }} trace */
  #link(trace) {
    let group = trace.nearest === null ? this.#begin() : this.#groupOf(trace.nearest);
    if (trace.id !== null && trace.id !== trace.nearest) {
      const own = this.#groups.get(trace.id);
      if (own !== undefined) group = this.#merge(group, current(own));
      this.#groups.set(trace.id, group);
    }
    this.#join(group, trace);
    group.minSimilarity = Math.min(group.minSimilarity, trace.similarity);
    group.maxSimilarity = Math.max(group.maxSimilarity, trace.similarity);
    this.#hold(group);
  }

  /**
   * The group of the trace that another one resembles; a new one holds that trace.
   *
   * @param {string} id
   */
  #groupOf(id) {
    const known = this.#groups.get(id);
    if (known !== undefined) return current(known);
    const group = this.#begin();
    this.#groups.set(id, group);
    // A trace that is not known is of an earlier run, or was long ago: then its id is all there is.
    this.#join(group, this.#traces.get(id) ?? { id, position: null });
    return group;
  }

  /** @returns {Group} */
  #begin() {
    this.#groupCount += 1;
    return {
      size: 0,
      members: [],
      positions: [],
      minSimilarity: Number.POSITIVE_INFINITY,
      maxSimilarity: Number.NEGATIVE_INFINITY,
      mergedInto: null,
    };
  }

  /**
   * @param {Group} group
   * @param {Member} trace
   */
  #join(group, trace) {
    group.size += 1;
    if (group.members.length < LISTED_MEMBERS) group.members.push(trace);
    if (trace.position !== null) group.positions.push(trace.position);
    thin(group);
  }

  /**
   * @param {Group} a
   * @param {Group} b
   */
  #merge(a, b) {
    if (a === b) return a;
    const [large, small] = a.size >= b.size ? [a, b] : [b, a];
    large.size += small.size;
    large.members = [...large.members, ...small.members].sort(byPosition).slice(0, LISTED_MEMBERS);
    large.positions.push(...small.positions);
    large.minSimilarity = Math.min(large.minSimilarity, small.minSimilarity);
    large.maxSimilarity = Math.max(large.maxSimilarity, small.maxSimilarity);
    thin(large);
    small.mergedInto = large;
    // What was merged is only a signpost from here on.
    small.members = [];
    small.positions = [];
    this.#held.delete(small);
    this.#groupCount -= 1;
    return large;
  }

  /** @param {Group} group */
  #hold(group) {
    this.#held.add(group);
    if (this.#held.size > HELD_GROUPS) this.#held = new Set(this.#largest(HELD_GROUPS / 2));
  }

  /** @param {number} limit */
  #largest(limit) {
    return [...this.#held].sort((a, b) => b.size - a.size).slice(0, limit);
  }

  /** The largest groups and how many near-duplicates there were. */
  summary() {
    const groups = this.#largest(LISTED_GROUPS).map(
      ({ size, members, positions, minSimilarity, maxSimilarity }) => ({
        size,
        minSimilarity,
        maxSimilarity,
        members: [...members].sort(byPosition),
        positions: [...positions].sort((a, b) => a - b),
      }),
    );
    return { similarity: SIMILARITY, count: this.#count, groupCount: this.#groupCount, groups };
  }
}

/**
 * Those of earlier runs come first.
 *
 * @param {Member} a
 * @param {Member} b
 */
function byPosition(a, b) {
  return (a.position ?? -1) - (b.position ?? -1);
}

/**
 * Keeps a group's positions few: of many, every other one shows as well where they lie.
 *
 * @param {Group} group
 */
function thin(group) {
  while (group.positions.length > POSITIONS) {
    group.positions = group.positions.sort((a, b) => a - b).filter((_, i) => i % 2 === 0);
  }
}

module.exports = { isNearDuplicate, NearDuplicates, resemblanceOf, SIMILARITY };

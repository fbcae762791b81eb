'use strict';

// Statistics in bounded memory, however many values they are given.

/**
 * How finely scores are counted, and dimensions: their quantiles are exact to the width of a bin. Both are multiples of the bins
 * that the page shows. The summary of kp-score and the report count alike, so that they tell the same figures.
 */
const SCORE_BINS = 10_000;
const DIMENSION_BINS = 1000;

/** Novelty may be as much; everything else is at most 1. */
const GREATEST = 2;

/**
 * Counts values of 0 to 2 in bins of equal width, of which `bins` are between 0 and 1; what lies outside counts in the first or
 * the last.
 */
class Histogram {
  #bins;
  #counts;
  #sums;
  #sum = 0;
  count = 0;
  min = Number.POSITIVE_INFINITY;
  max = Number.NEGATIVE_INFINITY;

  /** @param {number} bins */
  constructor(bins) {
    this.#bins = bins;
    this.#counts = new Float64Array(GREATEST * bins + 1);
    this.#sums = new Float64Array(GREATEST * bins + 1);
  }

  /** @param {number} value */
  add(value) {
    const bin = this.#binOf(value);
    this.#counts[bin] += 1;
    this.#sums[bin] += value;
    this.#sum += value;
    this.count += 1;
    this.min = Math.min(this.min, value);
    this.max = Math.max(this.max, value);
  }

  /**
   * The bin `k` with `k / bins <= value < (k + 1) / bins`, in just these terms: `value * bins` alone may round up.
   *
   * @param {number} value
   */
  #binOf(value) {
    const bins = this.#bins;
    const last = GREATEST * bins;
    let bin = Math.min(last, Math.max(0, Math.floor(value * bins)));
    if (bin > 0 && value < bin / bins) bin -= 1;
    if (bin < last && value >= (bin + 1) / bins) bin += 1;
    return bin;
  }

  get mean() {
    return this.count === 0 ? null : this.#sum / this.count;
  }

  /**
   * The value below which the share `p` of all lies, to the width of a bin; null without values. Between two values it lies in
   * proportion, as by default in NumPy and R: method 7 of Hyndman and Fan, "Sample Quantiles in Statistical Packages" (1996).
   *
   * @param {number} p
   */
  quantile(p) {
    if (this.count === 0) return null;
    const rank = p * (this.count - 1);
    const below = Math.floor(rank);
    const value = this.#valueAt(below);
    return rank === below ? value : value + (rank - below) * (this.#valueAt(below + 1) - value);
  }

  /**
   * The value at a rank in ascending order, counted from 0.
   *
   * @param {number} rank
   */
  #valueAt(rank) {
    if (rank === 0) return this.min;
    if (rank === this.count - 1) return this.max;
    let before = 0;
    const bin = this.#counts.findIndex((count) => {
      before += count;
      return before > rank;
    });
    // The mean of those in the bin, which is the value itself where there is one, or where all are the same.
    return this.#sums[bin] / this.#counts[bin];
  }

  /**
   * The bins that are not empty, as pairs of number and count, in a coarser division of 0 to 1 than it counts in.
   *
   * @param {number} bins
   */
  filled(bins) {
    const width = this.#bins / bins;
    /** @type {Array<[bin: number, count: number]>} */
    const filled = [];
    for (const [fine, count] of this.#counts.entries()) {
      if (count === 0) continue;
      const bin = Math.floor(fine / width);
      const last = filled.at(-1);
      if (last?.[0] === bin) last[1] += count;
      else filled.push([bin, count]);
    }
    return filled;
  }

  summary() {
    if (this.count === 0) return null;
    const { min, max } = this;
    const mean = /** @type {number} */ (this.mean);
    const [p10, p25, median, p75, p90] = [0.1, 0.25, 0.5, 0.75, 0.9].map(
      (p) => /** @type {number} */ (this.quantile(p)),
    );
    return { min, p10, p25, median, p75, p90, max, mean };
  }
}

/** A long sequence of values as at most `limit` buckets of equal width, in order. `limit` is even. */
class Sequence {
  /** @type {Array<{ count: number, sum: number, min: number, max: number }>} */
  #buckets = [];
  #limit;
  /** How many values a bucket takes. */
  width = 1;

  /** @param {number} limit */
  constructor(limit) {
    this.#limit = limit;
  }

  /** @param {number} value */
  add(value) {
    const last = this.#buckets.at(-1);
    if (last !== undefined && last.count < this.width) {
      last.count += 1;
      last.sum += value;
      last.min = Math.min(last.min, value);
      last.max = Math.max(last.max, value);
      return;
    }
    if (this.#buckets.length === this.#limit) this.#halve();
    this.#buckets.push({ count: 1, sum: value, min: value, max: value });
  }

  #halve() {
    /** @type {Array<{ count: number, sum: number, min: number, max: number }>} */
    const merged = [];
    for (let i = 0; i < this.#buckets.length; i += 2) {
      const [a, b] = this.#buckets.slice(i, i + 2);
      merged.push({
        count: a.count + b.count,
        sum: a.sum + b.sum,
        min: Math.min(a.min, b.min),
        max: Math.max(a.max, b.max),
      });
    }
    this.#buckets = merged;
    this.width *= 2;
  }

  /**
   * `[mean, min, max, count]` of each bucket.
   *
   * @returns {Array<[mean: number, min: number, max: number, count: number]>}
   */
  get buckets() {
    return this.#buckets.map(({ count, sum, min, max }) => [sum / count, min, max, count]);
  }
}

/**
 * The first `limit` items of a sequence in the order of `compare`, those that came first where it sees no difference.
 *
 * @template {Key} Item
 * @template Key what items are compared by
 */
class Top {
  #compare;
  #limit;
  /** @type {Item[]} */
  items = [];

  /**
   * @param {number} limit
   * @param {(a: Key, b: Key) => number} compare
   */
  constructor(limit, compare) {
    this.#limit = limit;
    this.#compare = compare;
  }

  /**
   * Takes the item that `make` makes, if one that compares like `key` belongs to the first.
   *
   * @param {Key} key
   * @param {() => Item} make
   */
  offer(key, make) {
    const { items } = this;
    if (items.length === this.#limit && this.#compare(key, items[items.length - 1]) >= 0) return;
    let at = items.length;
    while (at > 0 && this.#compare(key, items[at - 1]) < 0) at -= 1;
    items.splice(at, 0, make());
    if (items.length > this.#limit) items.pop();
  }
}

module.exports = { DIMENSION_BINS, Histogram, SCORE_BINS, Sequence, Top };

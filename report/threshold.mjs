// The threshold, which is dragged in the histogram.

/** @typedef {ReturnType<typeof makeThreshold>} Threshold */

/**
 * The threshold of a report, 0 to 1; it begins where the command had it, without one at 0, which keeps everything.
 *
 * @param {import('./data.js').Report} report
 */
export function makeThreshold(report) {
  const initial = report.threshold ?? 0;
  let value = initial;
  /** @type {Array<() => void>} */
  const listeners = [];
  return {
    get value() {
      return value;
    },
    initial,
    /** Whether there is one to tell of. */
    get isSet() {
      return report.threshold !== null || value > 0;
    },
    /** @param {number} next */
    set(next) {
      value = next;
      for (const listener of listeners) listener();
    },
    /**
     * Calls a function now and whenever the threshold has moved.
     *
     * @param {() => void} listener
     */
    follow(listener) {
      listeners.push(listener);
      listener();
    },
    /** How many traces are kept: exact where a bin begins at the threshold, as at every step of the slider. */
    get kept() {
      const { bins, filled } = report.scoreBins;
      if (value === report.threshold) return report.kept;
      const first = Math.round(value * bins);
      return filled.reduce((sum, [bin, count]) => (bin >= first ? sum + count : sum), 0);
    },
  };
}

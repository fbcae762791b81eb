// The threshold, which the slider moves.

const listeners = [];

/** What is counted at a threshold from bins is exact where a bin begins there, as at every step of the slider. */
function keptOf({ bins, filled }, threshold) {
  const first = Math.round(threshold * bins);
  return filled.reduce((sum, [bin, count]) => (bin >= first ? sum + count : sum), 0);
}

export function makeThreshold(report) {
  let value = report.threshold;
  return {
    get value() {
      return value;
    },
    get initial() {
      return report.threshold;
    },
    set(next) {
      value = next;
      for (const listener of listeners) listener();
    },
    /** Calls a function now and whenever the threshold has moved. */
    follow(listener) {
      listeners.push(listener);
      listener();
    },
    /** How many traces of the report, or of one of its domains, are kept. */
    kept(counted) {
      return value === report.threshold ? counted.kept : keptOf(counted.scoreBins, value);
    },
  };
}

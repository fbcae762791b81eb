// Resident memory over time.

/** Resident memory in MB, after a collection where the runtime lets us ask for one (`--expose-gc`, Bun). */
export function residentMegabytes() {
  globalThis.Bun?.gc(true);
  globalThis.gc?.();
  return process.memoryUsage.rss() / 2 ** 20;
}

/** The part of the calls after which memory should not grow any more. */
const WARM_UP = 0.3;

/**
 * The growth of memory after the warm-up.
 *
 * @param {Array<[number, number]>} samples of calls and megabytes, in their order
 */
export function growthOf(samples) {
  const [calls] = samples.at(-1);
  const settled = samples.filter(([count]) => count >= calls * WARM_UP);
  return { first: settled[0][1], last: settled.at(-1)[1], perTenThousand: slope(settled) * 10_000 };
}

/** How much `y` grows with each `x`: the least-squares line through `points`, which are pairs; 0 for fewer than two. */
function slope(points) {
  const mean = (index) => points.reduce((sum, point) => sum + point[index], 0) / points.length;
  const [meanX, meanY] = [mean(0), mean(1)];
  let [covariance, variance] = [0, 0];
  for (const [x, y] of points) {
    covariance += (x - meanX) * (y - meanY);
    variance += (x - meanX) ** 2;
  }
  return variance === 0 ? 0 : covariance / variance;
}

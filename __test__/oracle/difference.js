'use strict';

const { _getLocalCache, evaluateValue } = require('../..');
const { OracleScorer, textOf } = require('./score.js');

/**
 * Scores traces both ways, each from an empty memory, one after another.
 *
 * @param {import('./embedder.js').OracleEmbedder} embedder
 * @param {import('../..').ReasoningTrace[]} traces
 * @returns {Promise<number>} the largest difference of two scores
 */
async function largestDifference(embedder, traces) {
  _getLocalCache().clear();
  const scorer = new OracleScorer();
  let largest = 0;
  for (const trace of traces) {
    const expected = scorer.evaluate(trace, await embedder.embed(textOf(trace)));
    largest = Math.max(largest, Math.abs((await evaluateValue(trace)) - expected));
  }
  expect(_getLocalCache().size).toBe(scorer.size);
  return largest;
}

module.exports = { largestDifference };

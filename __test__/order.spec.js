'use strict';

const { evaluateValue } = require('..');
const { makeTrace } = require('./support/make-trace.js');

test('replies come in the order of the calls', async () => {
  const CALLS = 4000;
  const IN_FLIGHT = 32;
  const order = [];
  const waiting = [];
  // A text that is known already is replied to at once, so that many replies are on their way together.
  await evaluateValue(makeTrace());
  for (let call = 0; call < CALLS; call++) {
    if (waiting.length === IN_FLIGHT) await waiting.shift();
    waiting.push(evaluateValue(makeTrace()).then(() => order.push(call)));
  }
  await Promise.all(waiting);
  expect(order).toEqual([...Array(CALLS).keys()]);
});

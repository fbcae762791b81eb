'use strict';

const { setImmediate } = require('node:timers/promises');

const { ensureConfigured, tellWarning } = require('./embedder.js');
const { codedError, localError } = require('./errors.js');
const native = require('./loader.js').addon;
const { isArray, readFrom } = require('./reading.js');
const { adoptNative } = require('./vector-cache.js');

/** Settles when the batches that were begun have handed in all their traces; null if there are none. */
let batches = null;

// An async function turns what is thrown into a rejection, and makes the promise in the caller's realm.
async function evaluateValue(trace) {
  try {
    ensureConfigured();
    // The trace is read at once in any case: it may change after the call.
    const score = await inOrder(batches === null ? native.evaluate(trace) : evaluateAfterBatches(trace));
    tellWarning();
    return score;
  } catch (error) {
    throw localError(error);
  }
}

/** Settles, and never rejects, when the last call has. */
let lastReply;

/**
 * The reply to a call, after those to the calls before: each travels from the inference thread to the event
 * loop on its own, where it can overtake others.
 */
function inOrder(reply) {
  // Without an embedder there is nothing to wait for.
  if (typeof reply === 'number') return reply;
  const before = lastReply;
  const settled = (async () => {
    try {
      return await reply;
    } finally {
      await before;
    }
  })();
  const ignore = () => {};
  lastReply = settled.then(ignore, ignore);
  return settled;
}

async function evaluateAfterBatches(trace) {
  const prepared = native.PreparedTrace.read(trace);
  await batches;
  return prepared.evaluate();
}

async function evaluateValues(traces) {
  if (!isArray(traces)) {
    throw codedError(TypeError, 'ERR_INVALID_TRACE', 'traces must be an array');
  }
  const length = readFrom(traces, 'length', 'traces.length', 'ERR_INVALID_TRACE');
  ensureConfigured();
  const before = batches;
  let handedIn;
  const turn = new Promise((resolve) => {
    handedIn = resolve;
  });
  batches = turn;
  try {
    await before;
    return await evaluateInWindows(traces, length, handedIn);
  } catch (error) {
    throw localError(error);
  } finally {
    handedIn();
    if (batches === turn) batches = null;
    tellWarning();
  }
}

/** So many traces of a batch are in flight: enough for every lane, and little memory however large the batch. */
const WINDOW = 64;

/** After so many traces other work gets a turn, also where scoring one needs no waiting. */
const BREATH = 256;

async function evaluateInWindows(traces, length, handedIn) {
  const scores = [];
  const inFlight = [];
  let failure;
  for (let index = 0; index < length && failure === undefined; index++) {
    if (inFlight.length === WINDOW) scores.push(await inFlight.shift());
    if (index % BREATH === BREATH - 1) await setImmediate();
    try {
      inFlight.push(handled(native.evaluate(traces[index])));
    } catch (error) {
      failure = errorOfElement(index, localError(error));
    }
  }
  handedIn();
  // Those before a failure are scored and remembered, as they would be one after another.
  for (const score of inFlight) scores.push(await score);
  if (failure !== undefined) throw failure;
  return scores;
}

/** A promise whose rejection may be looked at later. */
function handled(score) {
  if (typeof score !== 'number') score.catch(() => {});
  return score;
}

function errorOfElement(index, error) {
  const path = `traces[${index}]`;
  if (error?.code !== 'ERR_INVALID_TRACE') {
    return codedError(TypeError, 'ERR_INVALID_TRACE', `${path} could not be read: it threw`, error);
  }
  // The message begins with the path, and that with `trace`.
  const message = path + error.message.slice('trace'.length);
  return codedError(error.constructor, error.code, message, error.cause);
}

let localCache;

function _getLocalCache() {
  localCache ??= adoptNative(native.localCache());
  return localCache;
}

module.exports = { _getLocalCache, evaluateValue, evaluateValues };

'use strict';

// How calls are refused: what they throw or reject with.

/** Calls `act`, which must throw, and returns what it threw. */
function thrownBy(act) {
  let result;
  try {
    result = act();
  } catch (error) {
    return error;
  }
  throw new Error(`nothing was thrown; the result is ${typeof result}`);
}

/** What a promise rejects with, which it must. */
function rejectionOf(promise) {
  return promise.then(
    () => {
      throw new Error('it was fulfilled');
    },
    (error) => error,
  );
}

/** A predicate for causes: whether one is `thrown` itself, which may be anything. */
const same = (thrown) => (cause) => Object.is(cause, thrown);

/** Expects an error of a class with a code, a message and, if a predicate for it is given, a cause. */
function expectError(error, [Class, code, message, isCause]) {
  if (typeof message === 'string') expect(error.message).toBe(message);
  else expect(error.message).toMatch(message);
  expect(error).toBeInstanceOf(Class);
  expect(error.code).toBe(code);
  if (isCause) expect(isCause(error.cause)).toBe(true);
  else expect(error.cause).toBe(undefined);
}

module.exports = { expectError, rejectionOf, same, thrownBy };

// What a call may end with, and nothing else.

/** The classes of the errors of each function, by code: the section "Errors" of the README. */
const ERRORS = {
  trace: { ERR_INVALID_TRACE: [TypeError, RangeError] },
  vector: {
    ERR_INVALID_VECTOR: [TypeError, RangeError],
    ERR_INVALID_LABEL: [TypeError, RangeError],
    ERR_INVALID_OPTION: [TypeError, RangeError],
    ERR_OUT_OF_MEMORY: [RangeError],
  },
  options: { ERR_INVALID_OPTION: [TypeError, RangeError] },
};

/** Checks an error of a call that takes a `kind` of argument. Returns what is wrong with it, or null. */
export function faultOfError(kind, error) {
  const classes = ERRORS[kind][error?.code];
  if (classes === undefined) return `an error without a code of its own: ${text(error)}`;
  if (!classes.includes(error.constructor)) return `not of a class of ${error.code}: ${text(error)}`;
  if (typeof error.message !== 'string' || error.message === '') return `no message: ${text(error)}`;
  return null;
}

/** Checks a score. */
export function faultOfScore(score) {
  return typeof score === 'number' && score >= 0 && score <= 1 ? null : `a score of ${text(score)}`;
}

/** Checks the similarity of vectors: rounding may take it a little beyond 1. */
export function faultOfSimilarity(similarity) {
  return typeof similarity === 'number' && Math.abs(similarity) <= 1 + 1e-6
    ? null
    : `a similarity of ${text(similarity)}`;
}

/** Checks the size of a cache. */
export function faultOfSize(size, most) {
  return Number.isInteger(size) && size >= 0 && size <= most ? null : `a size of ${text(size)}`;
}

/** A description of anything, also of what throws when it is described. */
function text(value) {
  try {
    return value instanceof Error ? `${value.name}: ${value.message}` : String(value);
  } catch {
    return `something that cannot be described (${typeof value})`;
  }
}

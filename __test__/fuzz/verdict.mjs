// What a call may end with, and nothing else.

/** The classes of the errors of each function, by code: docs/errors.md. */
const ERRORS = {
  trace: { ERR_INVALID_TRACE: [TypeError, RangeError] },
  vector: {
    ERR_INVALID_VECTOR: [TypeError, RangeError],
    ERR_INVALID_OPTION: [TypeError, RangeError],
    ERR_OUT_OF_MEMORY: [RangeError],
  },
  options: {
    ERR_INVALID_OPTION: [TypeError, RangeError],
    // A memory of another method than that of the scorer.
    ERR_MEMORY_MISMATCH: [Error],
  },
  call: {
    ERR_INVALID_TRACE: [TypeError, RangeError],
    ERR_INVALID_INPUT: [TypeError, RangeError],
    ERR_INVALID_OPTION: [TypeError, RangeError],
  },
};

/** Checks an error of a call that takes a `kind` of argument. Returns what is wrong with it, or null. */
export function faultOfError(kind, error) {
  const classes = ERRORS[kind][error?.code];
  if (classes === undefined) return `an error without a code of its own: ${text(error)}`;
  if (!classes.includes(error.constructor)) return `not of a class of ${error.code}: ${text(error)}`;
  if (typeof error.message !== 'string' || error.message === '') return `no message: ${text(error)}`;
  return null;
}

/** Whether a call was rejected with what an abort, a callback or a store gave it: one of `given`, or an `AbortError`. */
export function isGiven(error, given) {
  // Some of these cannot be looked at.
  if (given.some((one) => Object.is(one, error))) return true;
  return error instanceof DOMException && error.name === 'AbortError';
}

/** Checks what a call of a scorer or an embedder gives. */
export function faultOfResult(member, result) {
  if (member === 'score') return faultOfBreakdown(result);
  if (member === 'evaluateValue') return faultOfScore(result);
  const faultOf = member === 'embed' ? faultOfEmbedding : faultOfBreakdown;
  return result.map(faultOf).find((fault) => fault !== null) ?? null;
}

const BASES = ['memory', 'empty-memory', 'store', 'empty-store', 'no-embedder'];

function faultOfBreakdown({ value, dimensions, weights, overrides, basis, nearest }) {
  const names = Object.keys(weights);
  const composite = names.reduce((sum, name) => sum + dimensions[name] * weights[name], 0);
  if ((overrides.at(-1)?.after ?? composite) !== value) return 'overrides that do not lead to the value';
  if (!BASES.includes(basis)) return `a basis ${text(basis)}`;
  return faultOfScore(value) ?? (nearest && (faultOfSimilarity(nearest.similarity) ?? faultOfParts(nearest)));
}

/** Checks what the similarity of traces is made of, where they are compared by their words. */
function faultOfParts({ lexical, contained, embedded }) {
  const isPart = (part) => part === null || (part >= 0 && part <= 1);
  return [lexical, contained, embedded].every(isPart) ? null : `parts of ${[lexical, contained, embedded]}`;
}

function faultOfEmbedding(embedding) {
  if (!(embedding instanceof Float32Array) || embedding.length !== 384) return 'no embedding';
  const squares = embedding.reduce((sum, component) => sum + component * component, 0);
  return Math.abs(squares - 1) < 1e-5 ? null : `an embedding of length ${Math.sqrt(squares)}`;
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

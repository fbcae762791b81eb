'use strict';

/**
 * A public code, or that of a cancelled call, whose caller gets the signal's reason instead.
 *
 * @typedef {import('../../index.js').ErrorCode | 'ERR_ABORTED'} Code
 */

/** @typedef {KnowledgePulseError} CodedError */

/** @typedef {typeof Error | typeof RangeError | typeof TypeError} ErrorClass */

/**
 * Returns what `read` returns, or `otherwise` if it throws, as getters, proxies and the file system may.
 *
 * @template T
 * @template [Otherwise=T]
 * @param {() => T} read
 * @param {Otherwise} otherwise
 */
function attempt(read, otherwise) {
  try {
    return read();
  } catch {
    return otherwise;
  }
}

/** The name of the property that marks errors of this package, also those of another copy of it. */
const MARK = Symbol.for('@knowledgepulse/native.error');

/**
 * Marks an error as one of this package.
 *
 * @param {object} error
 */
const mark = (error) => Object.defineProperty(error, MARK, { value: true });

/**
 * The class of every error of this package, by which `instanceof` recognises it. The error itself is a `TypeError`, a `RangeError` or an
 * `Error`, as the SDK's and the language's are.
 */
class KnowledgePulseError extends Error {
  /** @private */
  constructor() {
    super();
    /** @type {import('../../index.js').ErrorCode} */
    this.code = 'ERR_INTERNAL';
  }

  /** @param {unknown} value */
  static [Symbol.hasInstance](value) {
    return attempt(() => /** @type {any} */ (value)?.[MARK] === true, false);
  }
}

/** @type {Record<string, ErrorClass>} */
const classes = { Error, RangeError, TypeError };

/**
 * @param {ErrorClass} Class
 * @param {Code} code
 * @param {string} message
 * @param {unknown} [cause]
 * @returns {CodedError}
 */
function codedError(Class, code, message, cause) {
  const error = cause === undefined ? new Class(message) : new Class(message, { cause });
  mark(error);
  return /** @type {CodedError} */ (Object.assign(error, { code }));
}

/** @param {string} message */
const invalidInput = (message) => codedError(TypeError, 'ERR_INVALID_INPUT', message);

/**
 * Converts an error of the addon to one of this realm, with a stack. Jest and `vm` run modules in other realms, where
 * `instanceof TypeError` is false for the addon's errors; an error that is made on no call has no stack.
 *
 * @param {unknown} thrown
 */
function localError(thrown) {
  const error = /** @type {Partial<CodedError> | null | undefined} */ (thrown);
  // The code of a panic that napi has caught.
  if (codeOf(error) === 'GenericFailure') {
    return codedError(Error, 'ERR_INTERNAL', `internal error: ${error?.message}; please report it`);
  }
  const isTraced = thrown instanceof Error && /\n\s+at /.test(thrown.stack ?? '');
  if (isTraced && codeOf(error)?.startsWith('ERR_')) attempt(() => mark(thrown), undefined);
  if (isTraced || !Object.hasOwn(classes, error?.name ?? '')) return thrown;
  const { name, code, message, cause } = /** @type {CodedError} */ (error);
  return codedError(classes[name], code, message, cause);
}

/**
 * Calls the addon and converts its errors, thrown or rejected, to this realm. Errors of the caller, such as a signal's reason, must not pass
 * through here, because they must stay the same objects.
 *
 * @template T
 * @param {() => T} ask
 * @returns {T}
 */
function fromAddon(ask) {
  let reply;
  try {
    reply = ask();
  } catch (error) {
    throw localError(error);
  }
  const promise = /** @type {Promise<unknown> | null | undefined} */ (reply);
  if (typeof promise?.then !== 'function') return reply;
  // In an async function, so that the stack of an error goes on in those that await the reply.
  const settled = async () => {
    try {
      return await promise;
    } catch (error) {
      throw localError(error);
    }
  };
  return /** @type {T} */ (settled());
}

/**
 * Returns the code of an error, if it is a string: other libraries have numbers.
 *
 * @param {unknown} error
 */
function codeOf(error) {
  const code = attempt(() => /** @type {{ code?: unknown } | null | undefined} */ (error)?.code, undefined);
  return typeof code === 'string' ? code : undefined;
}

/**
 * Adds the index of a trace to its error.
 *
 * @param {unknown} thrown
 * @param {number} index
 */
function errorOfTrace(thrown, index) {
  const error = /** @type {CodedError} */ (localError(thrown));
  if (error?.code !== 'ERR_INVALID_TRACE') return error;
  const message = error.message.replace(/^trace\b/, `traces[${index}]`);
  return codedError(/** @type {ErrorClass} */ (error.constructor), error.code, message, error.cause);
}

module.exports = {
  KnowledgePulseError,
  attempt,
  codeOf,
  codedError,
  errorOfTrace,
  fromAddon,
  invalidInput,
};

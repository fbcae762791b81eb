'use strict';

const classes = { Error, RangeError, TypeError };

/**
 * Makes an error with a stable code.
 *
 * @param {ErrorConstructor} Class
 * @param {string} code
 * @param {string} message
 * @param {unknown} [cause]
 */
function codedError(Class, code, message, cause) {
  const error = cause === undefined ? new Class(message) : new Class(message, { cause });
  error.code = code;
  return error;
}

/**
 * The error of this realm for an error of the addon's. Jest and `vm` run modules in realms of their own,
 * where `instanceof TypeError` is false for an error that the addon made.
 *
 * @param {unknown} error
 */
function localError(error) {
  // What napi makes of a panic that it has caught.
  if (error?.code === 'GenericFailure') {
    return codedError(Error, 'ERR_INTERNAL', `internal error: ${error.message}; please report it`);
  }
  if (error instanceof Error || !Object.hasOwn(classes, error?.name)) return error;
  return codedError(classes[error.name], error.code, error.message, error.cause);
}

/**
 * What the addon gives, or a promise of it, with errors of this realm. Other people's errors, such as an abort's reason, are
 * not to pass through here: they stay what they are.
 *
 * @template T
 * @param {() => T | Promise<T>} ask
 * @returns {T | Promise<T>}
 */
function fromAddon(ask) {
  let reply;
  try {
    reply = ask();
  } catch (error) {
    throw localError(error);
  }
  if (typeof reply?.then !== 'function') return reply;
  return reply.catch((error) => {
    throw localError(error);
  });
}

module.exports = { codedError, fromAddon, localError };

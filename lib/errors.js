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

module.exports = { codedError, localError };

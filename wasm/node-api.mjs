// Functions of Node-API that emnapi has otherwise than Node.js: what they replace there.

/**
 * @typedef {import('@emnapi/runtime').Context} Context
 * @typedef {(...args: number[]) => number} Call returns a `napi_status`
 */

/** `napi_ok`. */
const OK = 0;

/** How many code units one call of `String.fromCharCode` takes. */
const AT_A_TIME = 4096;

/**
 * What emnapi asks with `instanceof` or `Array.isArray`: of a revoked proxy both throw an error, which would pass through the Rust code.
 */
const QUESTIONS = [
  'napi_is_array',
  'napi_is_error',
  'napi_is_date',
  'napi_is_promise',
  'napi_is_arraybuffer',
];

/** @param {Call} question @param {WebAssembly.Memory} memory @returns {Call} */
function withoutException(question, memory) {
  return (env, value, result) => {
    try {
      return question(env, value, result);
    } catch {
      new DataView(memory.buffer).setUint8(result >>> 0, 0);
      return OK;
    }
  };
}

/**
 * @param {Context} context
 * @param {WebAssembly.Memory} memory
 * @param {Record<string, Call>} emnapi
 * @returns {Record<string, Call>}
 */
export function corrected(context, memory, emnapi) {
  // Without a byte order mark being taken for one.
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
  const write = (/** @type {number} */ result, /** @type {string} */ text) => {
    const handle = Number(context.napiValueFromJsValue(text));
    new DataView(memory.buffer).setUint32(result >>> 0, handle, true);
    return OK;
  };
  // Lengths are -1 for texts that end with a zero, which Rust has not; what else is wrong is for emnapi to tell.
  const isGiven = (/** @type {number[]} */ ...given) => given.every((number) => number > 0);
  return {
    // emnapi makes one character of a lone surrogate and the one after it.
    napi_get_value_string_utf8: (env, value, ...buffer) => {
      const text = context.jsValueFromNapiValue(value);
      const isText = typeof text === 'string' && LONE_SURROGATE.test(text);
      const handle = isText
        ? Number(context.napiValueFromJsValue(text.replace(LONE_SURROGATES, '\ufffd')))
        : value;
      return emnapi.napi_get_value_string_utf8(env, handle, ...buffer);
    },
    // emnapi drops a byte order mark at the beginning of all but short texts, and in UTF-16 replaces lone surrogates.
    napi_create_string_utf8: (env, start, length, result) => {
      if (!isGiven(env, length) || !start || !result)
        return emnapi.napi_create_string_utf8(env, start, length, result);
      return write(result, decoder.decode(new Uint8Array(memory.buffer, start >>> 0, length)));
    },
    napi_create_string_utf16: (env, start, length, result) => {
      if (!isGiven(env, length) || !start || !result)
        return emnapi.napi_create_string_utf16(env, start, length, result);
      const units = new Uint16Array(memory.buffer, start >>> 0, length);
      let text = '';
      for (let index = 0; index < length; index += AT_A_TIME) {
        text += String.fromCharCode(...units.subarray(index, index + AT_A_TIME));
      }
      return write(result, text);
    },
    ...Object.fromEntries(QUESTIONS.map((name) => [name, withoutException(emnapi[name], memory)])),
  };
}

const LONE_SURROGATE = /\p{Surrogate}/u;
const LONE_SURROGATES = /\p{Surrogate}/gu;

'use strict';

// Serialises plain data for the addon as a list of nodes: its objects and arrays, the value itself first. In a node, a scalar stands for
// itself, `[3]` for the node at 3, `[]` for undefined, and `["NaN"]` for a number that JSON lacks. So a shared object is written once.

const { types } = require('node:util');

const { codedError } = require('./errors.js');
const { describe, isArray } = require('./reading.js');

/** The nesting limit of the addon. It also bounds chains of `toJSON`. */
const MOST_LEVELS = 256;
/** The limit of values, because an array can claim to have billions. */
const MOST_VALUES = 10_000_000;

const JSON_VALUE = 'a value that JSON has';

/**
 * Serialises a trace as `JSON.stringify` reads it: own properties, and the results of `toJSON`.
 *
 * @param {unknown} trace
 * @throws `ERR_INVALID_TRACE`, with the path, if the trace is not an object, contains itself, is too deep or too large, cannot be
 * read, or has a value that JSON does not have.
 */
function writeNodes(trace) {
  return new Writer().write(trace);
}

/**
 * @param {string} written
 * @returns {unknown}
 */
function readNodes(written) {
  /** @type {Array<Record<string, unknown>>} */
  const nodes = JSON.parse(written);
  for (const node of nodes) {
    for (const key of Object.keys(node)) {
      const child = node[key];
      if (!Array.isArray(child)) continue;
      const [reference] = child;
      if (typeof reference === 'number') node[key] = nodes[reference];
      else node[key] = reference === undefined ? undefined : Number(reference);
    }
  }
  return nodes[0];
}

class Writer {
  /** @type {object[]} */
  #nodes = [];
  /** @type {Map<object, unknown>} the reference of each object; `null` while the object is being written */
  #written = new Map();
  /** @type {Array<string | number>} */
  #path = [];
  #levels = 0;
  #values = 0;

  /** @param {unknown} trace */
  write(trace) {
    if (trace === null || typeof trace !== 'object' || isArray(trace)) throw this.#wrong('an object', trace);
    this.#node(trace);
    return JSON.stringify(this.#nodes);
  }

  /**
   * @param {unknown} value
   * @returns {unknown}
   */
  #child(value) {
    switch (typeof value) {
      case 'string':
      case 'boolean':
        return value;
      case 'number':
        if (Object.is(value, -0)) return ['-0'];
        return Number.isFinite(value) ? value : [String(value)];
      case 'undefined':
        return [];
      case 'object':
        return value === null ? null : this.#object(value);
      default:
        throw this.#wrong(JSON_VALUE, value);
    }
  }

  /** @param {object} value */
  #object(value) {
    const known = this.#written.get(value);
    if (known === null) throw this.#invalid('must not contain itself');
    if (known !== undefined) return known;
    this.#written.set(value, null);
    const toJson = this.#read(value, 'toJSON');
    const json =
      typeof toJson === 'function'
        ? this.#guarded(() => toJson.call(value, String(this.#path.at(-1))), 'toJSON')
        : value;
    const written = json === value ? this.#node(value) : this.#nested(() => this.#child(json));
    // `toJSON` can return null, which would mean an object that is being written.
    if (written === null) this.#written.delete(value);
    else this.#written.set(value, written);
    return written;
  }

  /** @param {object} value */
  #node(value) {
    return this.#nested(() => {
      const place = this.#nodes.push({}) - 1;
      this.#nodes[place] = isArray(value) ? this.#array(value) : this.#properties(value);
      return [place];
    });
  }

  /**
   * @template T
   * @param {() => T} write
   * @returns {T}
   */
  #nested(write) {
    if (this.#levels === MOST_LEVELS) {
      // The path comes last, because it can be long and may be cut.
      throw tooLarge(`is nested deeper than ${MOST_LEVELS} levels, at ${pathOf(this.#path)}`);
    }
    this.#levels++;
    const written = write();
    this.#levels--;
    return written;
  }

  /** @param {readonly unknown[]} value */
  #array(value) {
    const length = this.#read(value, 'length');
    if (typeof length !== 'number' || !Number.isSafeInteger(length) || length < 0) {
      this.#path.push('length');
      throw this.#wrong('a safe integer of at least 0', length);
    }
    this.#countValues(length);
    /** @type {unknown[]} */
    const node = [];
    for (let index = 0; index < length; index++) node.push(this.#property(value, index));
    return node;
  }

  /** @param {object} value */
  #properties(value) {
    // JSON loses or changes these, so their texts would be lost or stay uncleaned.
    if (
      types.isMap(value) ||
      types.isSet(value) ||
      types.isBoxedPrimitive(value) ||
      types.isAnyArrayBuffer(value) ||
      ArrayBuffer.isView(value)
    ) {
      throw this.#wrong(JSON_VALUE, value);
    }
    /** @type {Record<string, unknown>} */
    const node = Object.create(null);
    const names = this.#guarded(() => Object.keys(value));
    this.#countValues(names.length);
    for (const name of names) node[name] = this.#property(value, name);
    return node;
  }

  /**
   * @param {object} value
   * @param {string | number} key
   */
  #property(value, key) {
    const property = this.#read(value, key);
    this.#path.push(key);
    const written = this.#child(property);
    this.#path.pop();
    return written;
  }

  /** @param {number} count */
  #countValues(count) {
    this.#values += count;
    if (this.#values > MOST_VALUES) {
      throw tooLarge(`has more than ${MOST_VALUES.toLocaleString('en')} values`);
    }
  }

  /**
   * @param {object} value
   * @param {string | number} key
   */
  #read(value, key) {
    return this.#guarded(() => /** @type {Record<PropertyKey, unknown>} */ (value)[key], key);
  }

  /**
   * @template T
   * @param {() => T} run code of the caller
   * @param {string | number} [key]
   */
  #guarded(run, key) {
    try {
      return run();
    } catch (cause) {
      const path = pathOf(key === undefined ? this.#path : [...this.#path, key]);
      throw codedError(TypeError, 'ERR_INVALID_TRACE', `${path} could not be read: it threw`, cause);
    }
  }

  /**
   * @param {string} expected
   * @param {unknown} found
   */
  #wrong(expected, found) {
    const isObject = found !== null && typeof found === 'object' && !isArray(found);
    const name = isObject ? Object.prototype.toString.call(found).slice(8, -1) : describe(found);
    return this.#invalid(`must be ${expected}, got ${name}`);
  }

  /** @param {string} what */
  #invalid(what) {
    return codedError(TypeError, 'ERR_INVALID_TRACE', `${pathOf(this.#path)} ${what}`);
  }
}

/** @param {string} problem */
function tooLarge(problem) {
  return codedError(RangeError, 'ERR_INVALID_TRACE', `trace ${problem}`);
}

/** @param {Array<string | number>} path */
function pathOf(path) {
  const parts = path.map((key) => {
    if (typeof key === 'string' && /^[A-Za-z_$][\w$]*$/.test(key)) return `.${key}`;
    return `[${JSON.stringify(key)}]`;
  });
  return `trace${parts.join('')}`;
}

module.exports = { readNodes, writeNodes };

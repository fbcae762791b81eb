'use strict';

// Cleaning a trace: a copy of it is made on the event loop, its strings are cleaned on another thread, and those that have
// changed are put into the copy.

const { types } = require('node:util');

const { codedError, fromAddon } = require('../calls/errors.js');
const { describe, isArray } = require('../calls/reading.js');
const native = require('../loader.js').addon;
const { readCallSettings, refuseMore } = require('./options.js');
const { cleanAll } = require('./text.js');

/** @import { CallOptions, CleanOptions, CleanedTrace, ReadonlyReasoningTrace } from '../../index.js' */

/**
 * Copies a trace with secrets and personal data replaced in all of its texts.
 *
 * @param {ReadonlyReasoningTrace} trace
 * @param {CleanOptions & CallOptions} [options]
 * @returns {Promise<CleanedTrace>}
 */
async function cleanTrace(trace, options) {
  // biome-ignore lint/complexity/noArguments: a rest parameter would change the signature.
  refuseMore(arguments);
  const settings = readCallSettings(options);
  const copier = new Copier(settings.strict);
  const copy = copier.copyTrace(trace);
  const { changed, redactions } = await cleanAll(copier.texts, settings);
  for (const [index, text] of changed) copier.places[index](text);
  copier.rename();
  if (copier.secrets > 0) {
    const passwords = redactions.find(({ type }) => type === 'password');
    if (passwords) passwords.count += copier.secrets;
    else redactions.push({ type: 'password', count: copier.secrets });
  }
  return { trace: /** @type {CleanedTrace['trace']} */ (copy), redactions };
}

/**
 * Fields whose strings stay as they are: names by which others know a trace, and words of the schema. `true` is a string that
 * stays, an object tells of the properties of an object, or of those of an array's elements.
 *
 * @typedef {{ [key: string]: true | Kept }} Kept
 */

/** @type {Kept} */
const KEPT = {
  '@context': true,
  '@type': true,
  id: true,
  source_skill: true,
  metadata: { created_at: true, task_domain: true, visibility: true, privacy_level: true },
  steps: { type: true },
  knowledge_graph_delta: { entities: { type: true }, relationships: { valid_from: true } },
};

/** More levels would need a stack that not every thread has; parsers of JSON have a limit like this one. */
const MOST_LEVELS = 256;
/** More values than these are a mistake or an attack: an array can claim to have billions. */
const MOST_VALUES = 10_000_000;
/** Strings in which nothing is found: the shortest that is redacted and is a word is a card number, of 13 digits. */
const PLAIN = /^\w{0,12}$/;

const SECRET = '[REDACTED:password]';
/** In a text, cookies are told by the name of their header, so they are cleaned with it. */
const COOKIE = 'Cookie: ';
/** What the two properties of a pair are called: `{ name: 'X-Api-Key', value: '…' }`. */
const PAIR_NAMES = ['name', 'key', 'header', 'field'];
const PAIR_VALUES = ['value', 'val', 'values'];
/** The types of JSON Schema: an object with one of them as its `type` describes a property. */
const SCHEMA_TYPES = ['array', 'boolean', 'integer', 'null', 'number', 'object', 'string'];

const JSON_VALUE = 'a value that JSON has';

/** @typedef {Record<string, unknown>} Properties */

/** Copies one trace. */
class Copier {
  /**
   * The strings that are to be cleaned.
   *
   * @type {string[]}
   */
  texts = [];
  /**
   * For each of them, what takes it when it has changed.
   *
   * @type {Array<(text: string) => void>}
   */
  places = [];
  /** How many strings were replaced because of their names. */
  secrets = 0;

  #strict;
  /**
   * The names of properties that change, by the copies that have these properties.
   *
   * @type {Map<Properties, Map<string, string>>}
   */
  #renamed = new Map();
  /**
   * The copies of objects in free data, by the names of secrets that they are under: what is there twice is copied once. `null` stands for
   * one that is being copied.
   *
   * @type {Map<string, Map<object, object | null>>}
   */
  #copies = new Map();
  /**
   * The names of secrets and of cookies that all values are under which are copied now.
   *
   * @type {string[]}
   */
  #outerNames = [];
  /** @type {Map<string, boolean>} */
  #isSecret = new Map();
  /** @type {Array<string | number>} */
  #path = [];
  #levels = 0;
  #values = 0;

  /** @param {boolean} strict */
  constructor(strict) {
    this.#strict = strict;
  }

  /** @param {unknown} trace */
  copyTrace(trace) {
    if (trace === null || typeof trace !== 'object' || isArray(trace)) throw this.#wrong('an object', trace);
    return this.#copyObject(trace, KEPT);
  }

  /** Gives the properties of the copies their clean names, in the order in which they are. */
  rename() {
    for (const [copy, names] of this.#renamed) {
      const entries = Object.entries(copy);
      const numbers = new Map();
      for (const [name] of entries) delete copy[name];
      for (const [name, value] of entries)
        define(copy, freeName(copy, names.get(name) ?? name, numbers), value);
    }
  }

  /**
   * A copy of a value. `place` puts another string where the copy is.
   *
   * @param {unknown} value
   * @param {true | Kept | undefined} kept
   * @param {(text: string) => void} place
   * @returns {unknown}
   */
  #copy(value, kept, place) {
    switch (typeof value) {
      case 'string':
        if (this.#isSecretValue(value)) return this.#secret();
        if (this.#outerNames.some(isCookieName)) this.#cleanCookies(value, place);
        else if (kept !== true) this.#clean(value, place);
        return value;
      case 'number':
        return this.#isSecretValue(String(value)) ? this.#secret() : value;
      case 'boolean':
      case 'undefined':
        return value;
      case 'object':
        if (value === null) return null;
        // What is in the place of a string that stays is not known, so nothing of it stays.
        return kept === undefined || kept === true
          ? this.#copyFree(value, place)
          : this.#copyObject(value, kept);
      default:
        throw this.#wrong(JSON_VALUE, value);
    }
  }

  /**
   * @param {string} text
   * @param {(text: string) => void} place
   */
  #clean(text, place) {
    if (PLAIN.test(text)) return;
    this.texts.push(text);
    this.places.push(place);
  }

  /**
   * @param {string} text
   * @param {(text: string) => void} place
   */
  #cleanCookies(text, place) {
    this.#clean(COOKIE + text, (clean) => place(clean.slice(COOKIE.length)));
  }

  #copiesHere() {
    const names = this.#outerNames.join('\n');
    const copies = this.#copies.get(names) ?? new Map();
    this.#copies.set(names, copies);
    return copies;
  }

  /**
   * A copy of an object that the schema says nothing of. As for JSON, an object that has a method `toJSON` is what that returns.
   *
   * @param {object} value
   * @param {(text: string) => void} place
   * @returns {unknown}
   */
  #copyFree(value, place) {
    const copies = this.#copiesHere();
    const known = copies.get(value);
    if (known) return known;
    if (known === null) throw this.#invalid(TypeError, 'must not contain itself');
    copies.set(value, null);
    const json = this.#jsonOf(value);
    const copy =
      json === value
        ? this.#copyObject(value, undefined)
        : this.#nested(() => this.#copy(json, undefined, place));
    // A string may change in each place where it is.
    if (copy !== null && typeof copy === 'object') copies.set(value, copy);
    else copies.delete(value);
    return copy;
  }

  /** @param {object} value */
  #jsonOf(value) {
    const toJson = this.#read(value, 'toJSON');
    if (typeof toJson !== 'function') return value;
    try {
      return toJson.call(value, String(this.#path.at(-1)));
    } catch (cause) {
      throw this.#unreadable('toJSON', cause);
    }
  }

  /**
   * @param {object} value
   * @param {Kept | undefined} kept
   * @returns {object}
   */
  #copyObject(value, kept) {
    return this.#nested(() =>
      isArray(value) ? this.#copyArray(value, kept) : this.#copyProperties(value, kept),
    );
  }

  /**
   * @template T
   * @param {() => T} copy
   * @returns {T}
   */
  #nested(copy) {
    if (this.#levels === MOST_LEVELS) {
      // The path comes last: it is long, and who shows the message may cut it.
      const message = `trace is nested deeper than ${MOST_LEVELS} levels, at ${pathOf(this.#path)}`;
      throw codedError(RangeError, 'ERR_INVALID_TRACE', message);
    }
    this.#levels++;
    const copied = copy();
    this.#levels--;
    return copied;
  }

  /**
   * @param {readonly unknown[]} value
   * @param {Kept | undefined} kept
   */
  #copyArray(value, kept) {
    const length = this.#read(value, 'length');
    if (typeof length !== 'number' || !Number.isSafeInteger(length) || length < 0) {
      this.#path.push('length');
      throw this.#wrong('a safe integer of at least 0', length);
    }
    this.#countValues(length);
    // A header and its value in a list of headers: `[['X-Api-Key', '…']]`. Lists of names have no values among them.
    const isPair = this.#strict && length === 2 && typeof this.#path.at(-1) === 'number';
    const name = isPair ? this.#read(value, 0) : undefined;
    const pairName = typeof name === 'string' && this.#namesSecret(name) ? name : null;
    /** @type {unknown[]} */
    const copy = [];
    for (let index = 0; index < length; index++) {
      const element = this.#read(value, index);
      const isValue = index === 1 && typeof element === 'string' && !/^[A-Za-z_.-]+$/.test(element);
      this.#path.push(index);
      copy.push(
        this.#under(isValue ? pairName : null, () =>
          this.#copy(element, kept, (text) => {
            copy[index] = text;
          }),
        ),
      );
      this.#path.pop();
    }
    return copy;
  }

  /**
   * @param {object} value
   * @param {Kept | undefined} kept
   */
  #copyProperties(value, kept) {
    // JSON makes nothing, or something else, of these: their texts would be lost, or leave uncleaned.
    if (types.isMap(value) || types.isSet(value) || types.isBoxedPrimitive(value)) {
      throw this.#wrong(JSON_VALUE, value);
    }
    if (types.isAnyArrayBuffer(value) || ArrayBuffer.isView(value)) {
      throw this.#wrong(JSON_VALUE, value);
    }
    /** @type {Properties} */
    const copy = {};
    const names = this.#namesOf(value);
    this.#countValues(names.length);
    const pairName = this.#strict && kept === undefined ? this.#pairNameOf(value, names) : null;
    for (const name of names) {
      const property = this.#read(value, name);
      const keptThere = kept !== undefined && Object.hasOwn(kept, name) ? kept[name] : undefined;
      const secretName = pairName !== null && PAIR_VALUES.includes(name.toLowerCase()) ? pairName : name;
      this.#path.push(name);
      define(copy, name, this.#copyProperty(copy, name, property, keptThere, secretName));
      this.#path.pop();
      this.#clean(name, (clean) => this.#renameLater(copy, name, clean));
    }
    return copy;
  }

  /**
   * @param {Properties} copy
   * @param {string} name
   * @param {unknown} property
   * @param {true | Kept | undefined} kept
   * @param {string} secretName the name that says whether the property is a secret
   */
  #copyProperty(copy, name, property, kept, secretName) {
    const place = (/** @type {string} */ text) => define(copy, name, text);
    if (!this.#strict || kept !== undefined) return this.#copy(property, kept, place);
    const isTold = isCookieName(secretName) || this.#namesSecret(secretName);
    return this.#under(isTold && !isSchema(property) ? secretName : null, () =>
      this.#copy(property, kept, place),
    );
  }

  /**
   * Copies with all values taken to be under a name of secrets or cookies too; `null` changes nothing.
   *
   * @template T
   * @param {string | null} name
   * @param {() => T} copy
   * @returns {T}
   */
  #under(name, copy) {
    if (name === null || this.#outerNames.includes(name)) return copy();
    this.#outerNames.push(name);
    const copied = copy();
    this.#outerNames.pop();
    return copied;
  }

  /** @param {string} value */
  #isSecretValue(value) {
    return this.#outerNames.some((name) => fromAddon(() => native.isSecret(name, value)));
  }

  #secret() {
    this.secrets++;
    return SECRET;
  }

  /**
   * The name in an object of a name and a value, if it is that of a secret.
   *
   * @param {object} value
   * @param {string[]} names
   */
  #pairNameOf(value, names) {
    if (!names.some((name) => PAIR_VALUES.includes(name.toLowerCase()))) return null;
    const name = names.find((each) => PAIR_NAMES.includes(each.toLowerCase()));
    const given = name === undefined ? undefined : this.#read(value, name);
    return typeof given === 'string' && this.#namesSecret(given) ? given : null;
  }

  /** @param {number} count */
  #countValues(count) {
    this.#values += count;
    if (this.#values <= MOST_VALUES) return;
    const message = `trace has more than ${MOST_VALUES.toLocaleString('en')} values`;
    throw codedError(RangeError, 'ERR_INVALID_TRACE', message);
  }

  /** @param {string} name */
  #namesSecret(name) {
    let isSecret = this.#isSecret.get(name);
    if (isSecret === undefined) {
      isSecret = fromAddon(() => native.isSecretName(name));
      this.#isSecret.set(name, isSecret);
    }
    return isSecret;
  }

  /**
   * @param {Properties} copy
   * @param {string} name
   * @param {string} clean
   */
  #renameLater(copy, name, clean) {
    const names = this.#renamed.get(copy) ?? new Map();
    this.#renamed.set(copy, names.set(name, clean));
  }

  /** @param {object} value */
  #namesOf(value) {
    try {
      return Object.keys(value);
    } catch (cause) {
      throw this.#unreadable(undefined, cause);
    }
  }

  /**
   * @param {object} value
   * @param {string | number} key
   */
  #read(value, key) {
    try {
      return /** @type {Record<PropertyKey, unknown>} */ (value)[key];
    } catch (cause) {
      throw this.#unreadable(key, cause);
    }
  }

  /**
   * @param {string | number | undefined} key
   * @param {unknown} cause
   */
  #unreadable(key, cause) {
    const path = pathOf(key === undefined ? this.#path : [...this.#path, key]);
    return codedError(TypeError, 'ERR_INVALID_TRACE', `${path} could not be read: it threw`, cause);
  }

  /**
   * @param {string} expected
   * @param {unknown} found
   */
  #wrong(expected, found) {
    const isObject = found !== null && typeof found === 'object' && !isArray(found);
    const name = isObject ? Object.prototype.toString.call(found).slice(8, -1) : describe(found);
    return this.#invalid(TypeError, `must be ${expected}, got ${name}`);
  }

  /**
   * @param {import('../calls/errors.js').ErrorClass} Class
   * @param {string} what
   */
  #invalid(Class, what) {
    return codedError(Class, 'ERR_INVALID_TRACE', `${pathOf(this.#path)} ${what}`);
  }
}

/**
 * Sets a property of a copy, also one of the name `__proto__`, which an assignment would make its prototype.
 *
 * @param {Properties} copy
 * @param {string} name
 * @param {unknown} value
 */
function define(copy, name, value) {
  Object.defineProperty(copy, name, { value, writable: true, enumerable: true, configurable: true });
}

/**
 * A name that the copy does not have yet: two addresses are one and the same once they are redacted.
 *
 * @param {Properties} copy
 * @param {string} name
 * @param {Map<string, number>} numbers the last number that a name was given
 */
function freeName(copy, name, numbers) {
  let free = name;
  while (Object.hasOwn(copy, free)) {
    const number = (numbers.get(name) ?? 1) + 1;
    numbers.set(name, number);
    free = `${name} (${number})`;
  }
  return free;
}

/** @param {string} name */
function isCookieName(name) {
  return /(?:^|-)cookies?$/i.test(name);
}

/**
 * Whether a value is the schema of a property, as the declarations of tools have it.
 *
 * @param {unknown} value
 */
function isSchema(value) {
  if (value === null || typeof value !== 'object' || isArray(value)) return false;
  try {
    const { type, value: own } = /** @type {Properties} */ (value);
    return typeof type === 'string' && SCHEMA_TYPES.includes(type) && own === undefined;
  } catch {
    // Whoever copies it reports what cannot be read.
    return false;
  }
}

/** @param {Array<string | number>} path */
function pathOf(path) {
  const parts = path.map((key) => {
    if (typeof key === 'string' && /^[A-Za-z_$][\w$]*$/.test(key)) return `.${key}`;
    return `[${JSON.stringify(key)}]`;
  });
  return `trace${parts.join('')}`;
}

module.exports = { cleanTrace };

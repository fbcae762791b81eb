'use strict';

// Which trace each of a million events is of, for formats whose events have ids.

const { randomBytes } = require('node:crypto');

/** How many events are remembered; after that, it begins anew. */
const MAX_EVENTS = 1_000_000;

const FIRST_CAPACITY = 64;

/** What an event takes up: two hashes of its id, and the place of the key of its trace, from 1; 0 is a free slot. */
const SLOT = 3;

/** So that no file can be made whose ids are taken for each other. */
const SEEDS = new Int32Array(new Uint8Array(randomBytes(8)).buffer);

/**
 * The keys of traces by the ids of their events, of which it keeps 64 bits each. A `Map` of a million ids looks at some of them for
 * each that is new, wherever they are in memory, which takes a tenth of the time of reading. Two of a million different ids are
 * taken for one once in 30 million times.
 */
class EventMemory {
  #capacity = FIRST_CAPACITY;
  #slots = new Uint32Array(SLOT * FIRST_CAPACITY);
  #size = 0;
  /** @type {string[]} */
  #keys = [];
  /** The id that was hashed last, and its hashes. @type {string | undefined} */
  #id;
  #first = 0;
  #second = 0;
  #most;

  /** @param {number} [most] how many events it remembers */
  constructor(most = MAX_EVENTS) {
    this.#most = most;
  }

  /**
   * The key of the trace that an event is of; undefined if the event is not known.
   *
   * @param {string} id
   */
  get(id) {
    this.#hash(id);
    const place = this.#slots[this.#find(this.#first, this.#second) + 2];
    return place === 0 ? undefined : this.#keys[place - 1];
  }

  /**
   * Remembers an event, or of which trace it is now.
   *
   * @param {string} id
   * @param {string} key
   */
  set(id, key) {
    this.#hash(id);
    let at = this.#find(this.#first, this.#second);
    if (this.#slots[at + 2] === 0) {
      const isFull = this.#size >= this.#most;
      if (isFull || 2 * this.#size >= this.#capacity) {
        if (isFull) this.#clear();
        else this.#grow();
        at = this.#find(this.#first, this.#second);
      }
      this.#size++;
    }
    // Events of a trace mostly follow each other.
    if (key !== this.#keys[this.#keys.length - 1]) this.#keys.push(key);
    this.#put(at, this.#first, this.#second, this.#keys.length);
  }

  /** @param {string} id */
  #hash(id) {
    if (id === this.#id) return;
    // Not destructured, which would go through an iterator.
    let first = SEEDS[0];
    let second = SEEDS[1];
    for (let at = 0; at < id.length; at++) {
      const unit = id.charCodeAt(at);
      first = Math.imul(first ^ unit, 0x9e3779b1);
      first ^= first >>> 15;
      second = Math.imul(second + unit, 0x85ebca6b);
      second ^= second >>> 13;
    }
    this.#id = id;
    this.#first = first >>> 0;
    this.#second = second >>> 0;
  }

  /**
   * Where the slot of an event is, or that where it would be.
   *
   * @param {number} first
   * @param {number} second
   */
  #find(first, second) {
    const slots = this.#slots;
    const mask = this.#capacity - 1;
    for (let place = first & mask; ; place = (place + 1) & mask) {
      const at = SLOT * place;
      if (slots[at + 2] === 0 || (slots[at] === first && slots[at + 1] === second)) return at;
    }
  }

  /**
   * @param {number} at
   * @param {number} first
   * @param {number} second
   * @param {number} key its place, from 1
   */
  #put(at, first, second, key) {
    this.#slots[at] = first;
    this.#slots[at + 1] = second;
    this.#slots[at + 2] = key;
  }

  #grow() {
    const slots = this.#slots;
    this.#capacity *= 2;
    this.#slots = new Uint32Array(SLOT * this.#capacity);
    for (let at = 0; at < slots.length; at += SLOT) {
      const [first, second, key] = [slots[at], slots[at + 1], slots[at + 2]];
      if (key !== 0) this.#put(this.#find(first, second), first, second, key);
    }
  }

  #clear() {
    this.#slots.fill(0);
    this.#size = 0;
    this.#keys = [];
  }
}

module.exports = { EventMemory };

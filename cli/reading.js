'use strict';

// Reads inputs: what their records come to, with the values that are scored and the texts that are written.

const { addon } = require('../lib/loader.js');
const { readText } = require('../lib/formats.js');

/**
 * @import { FormatName, Known } from '../formats.js'
 * @import { NativeForeign, NativeItem } from '../lib/binding.js'
 */

/**
 * What a record came to: a trace; a value that no format recognises, or that is a `ReasoningTrace` already; or an error.
 *
 * @typedef {object} Item
 * @property {number | null} line
 * @property {number | null} index
 * @property {number} size of it in the input, in bytes
 * @property {FormatName | null} format null if no format recognises the value
 * @property {unknown} [value] the trace, or the value as it is
 * @property {string} [text] the value in JSON, as it was read if it is as it is
 * @property {Known} [known] what of the outcome is known, if a format was converted
 * @property {string} [error]
 * @property {string} [skipped] why there is no trace: the records are not of a conversation
 */

/** Reads the inputs of a run, one after the other. */
class Reading {
  #settings;
  /** Files that were read, so that a trajectory in a file of its own counts once. */
  #files = new addon.NativeReadFiles();

  /** @param {{ format?: FormatName, success?: boolean, confidence?: number, domain?: string }} settings */
  constructor(settings) {
    this.#settings = settings;
  }

  /**
   * The items of an input, in batches.
   *
   * @param {AsyncIterable<Uint8Array>} chunks
   * @param {string | undefined} file the path of the input
   * @param {(foreign: NativeForeign) => Error} refused what is thrown if the input is no text that can be read
   * @returns {AsyncGenerator<Iterable<Item>, void>}
   */
  async *read(chunks, file, refused) {
    const reader = new addon.NativeTraceReader({ ...this.#settings, file }, this.#files);
    for await (const items of readText(chunks, reader, refused)) yield itemsOf(items);
  }
}

/**
 * @param {NativeItem[]} items
 * @returns {Generator<Item, void>}
 */
function* itemsOf(items) {
  for (const { line, index, size, format, json, known, error, skipped } of items) {
    const place = { line, index, size, format };
    if (error !== null) yield { ...place, error };
    else if (skipped !== null) yield { ...place, skipped };
    else
      yield {
        ...place,
        value: JSON.parse(json ?? 'null'),
        text: json ?? undefined,
        known: known ?? undefined,
      };
  }
}

module.exports = { Reading };

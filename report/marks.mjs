// Highlights in the text of a session what was replaced, what a person should look at, and what is struck out.

import { element } from './dom.mjs';

/** What cleaning writes in place of a finding. */
const MARKER = String.raw`\[REDACTED:[^\]]*\]|\b(?:user|host)-\d+\b`;

/** @param {string} words */
const escaped = (words) => words.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');

/** Longer words are not looked for, and no more of them: an expression has its limits. */
const LONGEST = 500;
const MOST = 1000;

/** The longest comes first, because the first alternative that matches is taken. @param {Iterable<string>} words */
export const anyOf = (words) =>
  [...words]
    .filter(({ length }) => length > 0 && length <= LONGEST)
    .slice(0, MOST)
    .sort((a, b) => b.length - a.length)
    .map(escaped)
    .join('|') || '(?!)';

/**
 * Returns what makes a text into nodes, with its highlights.
 *
 * @param {Iterable<string>} struck
 * @param {Iterable<string>} places
 */
export function marking(struck, places) {
  const pattern = new RegExp(
    `(?<struck>${anyOf(struck)})|(?<marker>${MARKER})|(?<place>${anyOf(places)})`,
    'g',
  );
  return (/** @type {string} */ text) => {
    const nodes = [];
    let end = 0;
    for (const { 0: words, index, groups } of text.matchAll(pattern)) {
      nodes.push(text.slice(end, index));
      if (groups?.struck) nodes.push(element('del', { title: 'struck out' }, words));
      else nodes.push(element('mark', { class: groups?.place && 'place' }, words));
      end = index + words.length;
    }
    nodes.push(text.slice(end));
    return element('bdi', {}, nodes);
  };
}

/** Texts shorter than this are in too many words to be struck out. */
const LEAST_LETTERS = 2;

/**
 * Returns what can be struck out of a selection: its parts between line ends and markers, which only the clean text has.
 *
 * @param {string} selection
 */
export function strikable(selection) {
  const parts = selection.split(new RegExp(`${MARKER}|[\\r\\n]+`)).map((part) => part.trim());
  return [...new Set(parts.filter((part) => part.length >= LEAST_LETTERS && /[\p{L}\p{N}]/u.test(part)))];
}

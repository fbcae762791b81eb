// What cleaning has replaced in a trace, for the preview.

/** What cleaning writes in place of a finding. */
const PLACEHOLDER = /(\[REDACTED:[^\]]*\]|\b(?:user|host)-\d+\b)/;

/** How much of the text beside a finding is shown. */
const BESIDE = 40;

/** @typedef {{ kept: string } | { gone: string, placeholder: string }} Piece */

/**
 * Returns the texts that cleaning has changed, with their paths. Names of members count as texts.
 *
 * @param {unknown} before
 * @param {unknown} after a clean copy of it
 * @param {string} [path]
 * @returns {Array<{ path: string, pieces: Piece[] }>}
 */
export function changesOf(before, after, path = '') {
  if (typeof before === 'string' && typeof after === 'string')
    return before === after ? [] : [{ path, pieces: piecesOf(before, after) }];
  if (before === null || typeof before !== 'object' || after === null || typeof after !== 'object') return [];
  const cleaned = Object.entries(after);
  return Object.entries(before).flatMap(([name, value], at) => {
    const [cleanName, cleanValue] = cleaned[at] ?? [name, value];
    const place = Array.isArray(before) ? `${path}[${name}]` : [path, cleanName].filter(Boolean).join('.');
    return [...changesOf(name, cleanName, `${place} (name)`), ...changesOf(value, cleanValue, place)];
  });
}

/**
 * Splits a text into the parts that stay, cut to what is beside a finding, and those that were replaced.
 *
 * @param {string} before
 * @param {string} after
 * @returns {Piece[]}
 */
export function piecesOf(before, after) {
  // Texts that stay are at even places, placeholders at odd ones.
  const parts = after.split(PLACEHOLDER);
  /** @type {Piece[]} */
  const pieces = [];
  let at = 0;
  for (let i = 0; i < parts.length; i += 2) {
    const kept = parts[i];
    const isLast = i === parts.length - 1;
    const start = isLast ? before.length - kept.length : before.indexOf(kept, at);
    if (start < at || before.slice(start, start + kept.length) !== kept)
      return [{ gone: before, placeholder: after }];
    if (i > 0) pieces.push({ gone: before.slice(at, start), placeholder: parts[i - 1] });
    if (kept !== '') pieces.push({ kept: excerpt(kept, i > 0, !isLast) });
    at = start + kept.length;
  }
  return pieces;
}

/** @param {string} text @param {boolean} follows it follows a finding @param {boolean} precedes it precedes one */
function excerpt(text, follows, precedes) {
  const first = follows ? text.slice(0, BESIDE) : '';
  const last = precedes ? text.slice(-BESIDE) : '';
  return first.length + last.length >= text.length ? text : `${first}…${last}`;
}

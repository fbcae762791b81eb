// Numbers and names as the page shows them.

const integers = new Intl.NumberFormat('en');
const compact = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 });

/** @param {number} value */
export const integer = (value) => integers.format(value);
/** @param {number} value */
export const short = (value) => (value < 100_000 ? integers.format(value) : compact.format(value));

/**
 * Returns a number with a fixed number of decimals, and a minus that is as wide as a plus.
 *
 * @param {number} value
 * @param {number} [digits]
 */
export function decimal(value, digits = 2) {
  const text = Math.abs(value).toFixed(digits);
  return value < 0 && Number(text) !== 0 ? `−${text}` : text;
}

/**
 * Returns a threshold, without zeros that say nothing.
 *
 * @param {number} value
 */
export const plain = (value) => decimal(value, 4).replace(/(\.\d\d\d*?)0+$/, '$1');

/**
 * Formats a share of a whole; only exact shares of 0 and 1 are shown as none and all.
 *
 * @param {number} part
 * @param {number} whole
 */
export function percent(part, whole) {
  if (whole === 0) return '0%';
  const share = (part / whole) * 100;
  if (part > 0 && share < 0.1) return '<0.1%';
  if (part < whole && share > 99.9) return '>99.9%';
  const digits = share > 0 && (share < 1 || (share > 99 && share < 100)) ? 1 : 0;
  return `${share.toFixed(digits)}%`;
}

/**
 * @param {number} number
 * @param {string} noun
 * @param {string} [plural]
 */
export const count = (number, noun, plural = `${noun}s`) =>
  `${integer(number)} ${number === 1 ? noun : plural}`;

/** @param {number} seconds */
export function duration(seconds) {
  if (seconds < 1) return `${Math.max(1, Math.round(seconds * 1000))} ms`;
  if (seconds < 60) return `${seconds.toFixed(1)} s`;
  const minutes = Math.round(seconds / 60);
  return minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/**
 * Returns the beginning of a text, to the end of a word if one ends near there.
 *
 * @param {string} text
 * @param {number} length
 */
export function cut(text, length) {
  const characters = [...text];
  if (characters.length <= length) return text;
  const beginning = characters.slice(0, length - 1).join('');
  const end = beginning.search(/\s+\S*$/);
  return `${end > length / 2 ? beginning.slice(0, end) : beginning}…`;
}

/**
 * Returns where a trace stands: the file need not be named where there is one file.
 *
 * @param {Pick<import('./data.js').ListedTrace, 'source' | 'line' | 'element'>} trace
 * @param {number} sourceCount how many files there are
 */
export function place({ source, line, element }, sourceCount) {
  const parts = [
    sourceCount > 1 && source,
    `line ${integer(line)}`,
    element !== null && `element ${integer(element)}`,
  ];
  return parts.filter(Boolean).join(', ');
}

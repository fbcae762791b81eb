// Calls of tools: a line for each, which opens to its arguments, its changes as a diff, and its result.

import { action, element } from './dom.mjs';
import { integer } from './format.mjs';

/** @import { Call } from './data.js' */

/** @typedef {(text: string) => Node} Mark makes a text into nodes with its highlights */

/** How many lines of a long text are shown before the reader asks for all. */
const SHOWN_LINES = 16;
/** The longest line of a summary, in characters. */
const SUMMARY = 120;

/** The arguments that say what a call is about, the most telling first. */
const SUBJECTS = [
  ...[
    'command',
    'cmd',
    'file_path',
    'filePath',
    'path',
    'absolute_path',
    'notebook_path',
    'pattern',
    'query',
  ],
  ...['url', 'prompt', 'description'],
];

/** How editors call the text that goes and the text that comes. */
const CHANGES = [
  ['old_string', 'new_string'],
  ['old_str', 'new_str'],
  ['oldString', 'newString'],
  ['oldText', 'newText'],
  ['search', 'replace'],
];

/** How a text begins a line that holds a diff. */
const DIFF = /^(?:@@ |diff --git |\*\*\* Begin Patch)/m;

/** @param {unknown} value */
const textOf = (value) => (typeof value === 'string' ? value : JSON.stringify(value, null, 2));

/** What a call is about, on one line. @param {Call['input']} input */
function subjectOf(input) {
  const named = SUBJECTS.map((name) => input[name]).find((value) => value !== undefined && value !== '');
  const value = named ?? Object.values(input).find((value) => typeof value === 'string');
  if (value === undefined) return '';
  // Codex gives a command as words: bash, -lc, and the script.
  const text = Array.isArray(value) ? String(value.at(-1)) : textOf(value);
  const line = text
    .slice(0, 4 * SUMMARY)
    .trim()
    .split('\n', 1)[0];
  return line.length > SUMMARY ? `${line.slice(0, SUMMARY)}…` : line;
}

/**
 * Returns the lines of a change, each with its sign. Lines that begin and end both texts stay.
 *
 * @param {string} before
 * @param {string} after
 */
export function changedLines(before, after) {
  const [gone, come] = [before, after].map((text) => (text === '' ? [] : text.split('\n')));
  const shorter = Math.min(gone.length, come.length);
  let first = 0;
  while (first < shorter && gone[first] === come[first]) first++;
  let last = 0;
  while (last < shorter - first && gone.at(-1 - last) === come.at(-1 - last)) last++;
  const signed = (/** @type {string} */ sign, /** @type {string[]} */ lines) =>
    lines.map((line) => `${sign} ${line}`);
  return [
    ...signed(' ', gone.slice(0, first)),
    ...signed('-', gone.slice(first, gone.length - last)),
    ...signed('+', come.slice(first, come.length - last)),
    ...signed(' ', gone.slice(gone.length - last)),
  ];
}

/** The changes that a call makes, as lines of a diff. @param {Call['input']} input @returns {string[]} */
function diffOf(input) {
  const pair = CHANGES.find((names) => names.every((name) => typeof input[name] === 'string'));
  const changed = pair
    ? changedLines(.../** @type {[string, string]} */ (pair.map((name) => input[name])))
    : [];
  const edits = Array.isArray(input.edits) ? input.edits : [];
  const patches = Object.values(input).filter((value) => typeof value === 'string' && DIFF.test(value));
  return [
    ...changed,
    ...edits.flatMap((edit) => diffOf(Object(edit))),
    ...patches.flatMap((patch) => String(patch).split('\n')),
  ];
}

/** The arguments that the summary and the diff do not show. @param {Call['input']} input */
function restOf(input) {
  const changing = ['edits', ...CHANGES.flat()];
  const isShown = (/** @type {string} */ name, /** @type {unknown} */ value) =>
    changing.includes(name) ||
    (typeof value === 'string' && (DIFF.test(value) || value === subjectOf(input)));
  const rest = Object.entries(input).filter(([name, value]) => !isShown(name, value));
  return rest.map(([name, value]) => `${name}: ${textOf(value)}`).join('\n');
}

/**
 * A text in lines, of which the first are shown; all of them are there to be found.
 *
 * @param {string[]} lines
 * @param {Mark} mark
 * @param {string} name
 */
export function block(lines, mark, name) {
  const isDiff = name === 'Changes' || DIFF.test(lines.slice(0, SHOWN_LINES).join('\n'));
  const sign = (/** @type {string} */ line) =>
    /^[+-](?![+-])/.test(line) && (line[0] === '+' ? 'ins.line' : 'span.del');
  const content = isDiff
    ? lines.map((line) => element(sign(line) || 'span.line', mark(`${line}\n`)))
    : [mark(lines.join('\n'))];
  // Scrolling elements must be reachable by keyboard.
  const pre = element('pre', { tabindex: '0', role: 'group', 'aria-label': name }, content);
  if (lines.length <= SHOWN_LINES) return [pre];
  pre.classList.add('cut');
  const all = action(`Show all ${integer(lines.length)} lines`, () => whole(pre), { class: 'all' });
  return [pre, all];
}

/** Shows a text whole that was cut. @param {Element} pre */
export function whole(pre) {
  pre.classList.remove('cut');
  if (pre.nextElementSibling?.matches('.all')) pre.nextElementSibling.remove();
}

/**
 * @param {Call} call
 * @param {Mark} mark
 */
export function callLine({ tool, input, result, failed }, mark) {
  const diff = diffOf(input);
  const rest = restOf(input);
  const [come, gone] = ['+', '-'].map((sign) => diff.filter((line) => line.startsWith(sign)).length);
  const size = result === undefined ? [] : result.split('\n');
  return element(
    'details.call',
    { open: diff.length > 0 },
    element(
      'summary',
      element('b', mark(tool)),
      ' ',
      element('span.subject', mark(subjectOf(input))),
      diff.length > 0 && element('span.size', `+${come} −${gone}`),
      failed && element('span.no', 'failed'),
      size.length > 1 && diff.length === 0 && element('span.size', `${integer(size.length)} lines`),
    ),
    rest !== '' && block(rest.split('\n'), mark, 'Arguments'),
    diff.length > 0 && block(diff, mark, 'Changes'),
    result === undefined ? element('p.soft', 'No result.') : block(size, mark, 'Result'),
  );
}

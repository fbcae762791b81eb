// Makes elements. Text goes in as text nodes and never as HTML: the text of a trace may be hostile.

import { DIMENSIONS } from './dimensions.mjs';

/** @typedef {string | Node | null | undefined | false} Child */

/** @typedef {Child | readonly Child[]} Children */

/**
 * The attributes of an element: a function listens to the event of its name; nothing is set for null, undefined and false.
 *
 * @typedef {Record<string, string | boolean | null | undefined | ((event: Event) => void)>} Attributes
 */

/**
 * An element: its tag, with a dot and a class behind it if it has one; then its attributes, if it has any; then its children.
 *
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag | `${Tag}.${string}`} name
 * @param {[Attributes, ...Children[]] | Children[]} content
 */
export function element(name, ...content) {
  const [tag, ...classes] = name.split('.');
  const made = document.createElement(/** @type {Tag} */ (tag));
  if (classes.length > 0) made.className = classes.join(' ');
  const attributes = isAttributes(content[0]) ? content.shift() : {};
  for (const [attribute, value] of Object.entries(/** @type {Attributes} */ (attributes))) {
    if (typeof value === 'function') made.addEventListener(attribute, value);
    else if (value !== null && value !== undefined && value !== false)
      made.setAttribute(attribute, value === true ? '' : value);
  }
  const isThere = (/** @type {unknown} */ child) => child !== null && child !== undefined && child !== false;
  made.append(.../** @type {Array<string | Node>} */ (content.flat().filter(isThere)));
  return made;
}

const isAttributes = (/** @type {Attributes | Children | undefined} */ first) =>
  typeof first === 'object' && first !== null && !Array.isArray(first) && !(first instanceof Node);

/**
 * Text from outside: its writing direction stays its own.
 *
 * @param {string} text
 * @param {Attributes} [attributes]
 */
export function foreign(text, attributes = {}) {
  return element('bdi', attributes, text);
}

/** What cleaning writes in place of a finding. */
const PLACEHOLDER = /(\[REDACTED:[^\]]*\]|\b(?:user|host)-\d+\b)/;

/**
 * Text from outside, with what was redacted marked.
 *
 * @param {string} text
 */
export function marked(text) {
  // Placeholders are at odd places.
  const parts = text.split(PLACEHOLDER).map((part, i) => (i % 2 === 1 ? element('mark', part) : part));
  return element('bdi', {}, parts);
}

/**
 * The colours of the dimensions.
 *
 * @param {Children} [note]
 */
export function legend(note) {
  return element(
    'p.legend.soft',
    DIMENSIONS.map(({ title, colour }) =>
      element('span', element('span.swatch', { style: `--colour: ${colour}` }), title),
    ),
    note && element('span', note),
  );
}

/**
 * @template Row
 * @typedef {{ title: string, number?: boolean, wide?: boolean, cell: (row: Row, index: number) => Children }} Column
 */

/**
 * @template Row
 * @param {string} caption
 * @param {Array<Column<Row>>} columns the first one names the row
 * @param {readonly Row[]} rows
 */
export function table(caption, columns, rows) {
  const classes = (/** @type {Column<Row>} */ { number, wide }) => (number && 'number') || (wide && 'wide');
  const head = columns.map((column) => element('th', { scope: 'col', class: classes(column) }, column.title));
  const body = rows.map((row, at) =>
    element(
      'tr',
      columns.map((column, i) =>
        i === 0
          ? element('th', { scope: 'row', class: classes(column) }, column.cell(row, at))
          : element('td', { class: classes(column) }, column.cell(row, at)),
      ),
    ),
  );
  return element(
    'div',
    // Scrolling elements must be reachable by keyboard.
    { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': caption },
    element(
      'table',
      element('caption', caption),
      element('thead', element('tr', head)),
      element('tbody', body),
    ),
  );
}

/**
 * @param {string} title
 * @param {Children[]} children
 */
export function more(title, ...children) {
  return element('details.more', element('summary', title), ...children);
}

/**
 * @param {string} title
 * @param {Children[]} children
 */
export function section(title, ...children) {
  const id = title.toLowerCase().replace(/[^a-z]+/g, '-');
  return element('section', { 'aria-labelledby': id }, element('h2', { id }, title), ...children);
}

/**
 * Links to sections.
 *
 * @param {HTMLElement[]} sections
 */
export function contents(sections) {
  const links = sections.map((made) => {
    const title = made.querySelector('h2');
    return title && element('li', element('a', { href: `#${title.id}` }, title.textContent));
  });
  return element('nav.contents', { 'aria-label': 'Contents' }, element('ul', links));
}

/** @param {Children[]} children */
export function finding(...children) {
  return element('p.finding', ...children);
}

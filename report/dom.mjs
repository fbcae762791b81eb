// Makes elements. Text goes in as text nodes and never as HTML: what a trace carries may be hostile.

/** An element with attributes, and children: elements, strings, and nothing for null, undefined and false. */
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === 'function') made.addEventListener(name, value);
    else if (value !== null && value !== undefined && value !== false)
      made.setAttribute(name, value === true ? '' : value);
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return made;
}

/** Text from outside: its writing direction stays its own. */
export function foreign(text, attributes = {}) {
  return element('bdi', attributes, text);
}

/**
 * A table.
 *
 * @param {Array<{ title: string, number?: boolean, wide?: boolean, cell: (row: object) => string | Node | null }>} columns
 * the first one names the row
 */
export function table(caption, columns, rows) {
  const classes = ({ number, wide }) => (number && 'number') || (wide && 'wide');
  const head = columns.map((column) => element('th', { scope: 'col', class: classes(column) }, column.title));
  const body = rows.map((row) =>
    element(
      'tr',
      {},
      columns.map((column, i) =>
        i === 0
          ? element('th', { scope: 'row', class: classes(column) }, column.cell(row))
          : element('td', { class: classes(column) }, column.cell(row)),
      ),
    ),
  );
  return element(
    'div',
    // What scrolls must be reachable by keyboard.
    { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': caption },
    element(
      'table',
      {},
      element('caption', {}, caption),
      element('thead', {}, element('tr', {}, head)),
      element('tbody', {}, body),
    ),
  );
}

/** A part that is there for who asks for it. */
export function more(title, ...children) {
  return element('details', { class: 'more' }, element('summary', {}, title), ...children);
}

export function section(title, ...children) {
  const id = title.toLowerCase().replace(/[^a-z]+/g, '-');
  return element('section', { 'aria-labelledby': id }, element('h2', { id }, title), ...children);
}

export function finding(...children) {
  return element('p', { class: 'finding' }, ...children);
}

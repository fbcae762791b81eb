// The report: figures in, page out. Everything is in this page; nothing is fetched.

import { drawReport } from './draw.mjs';

/** The element of page.html that has this id. */
const partOf = (/** @type {string} */ id) => /** @type {HTMLElement} */ (document.getElementById(id));

/** @type {import('./data.js').Report} */
const report = JSON.parse(/** @type {string} */ (partOf('figures').textContent));
partOf('report').append(...drawReport(report));

// On paper nothing can be opened.
/** @type {HTMLDetailsElement[]} */
const opened = [];
addEventListener('beforeprint', () => {
  /** @type {NodeListOf<HTMLDetailsElement>} */
  const closed = document.querySelectorAll('.groups details:not([open])');
  for (const details of closed) {
    details.open = true;
    // The browser tells of it only after it has printed.
    details.dispatchEvent(new Event('toggle'));
    opened.push(details);
  }
});
addEventListener('afterprint', () => {
  for (const details of opened.splice(0)) details.open = false;
});

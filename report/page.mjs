// The report: figures in, page out. Everything is in this page; nothing is fetched.

import { drawReport } from './draw.mjs';

/** The element of page.html that has this id. */
const partOf = (/** @type {string} */ id) => /** @type {HTMLElement} */ (document.getElementById(id));

/** @type {import('./data.js').Report} */
const report = JSON.parse(/** @type {string} */ (partOf('figures').textContent));
partOf('report').append(...drawReport(report));

// The report: figures in, page out. Everything is in this page; nothing is fetched.

import { domainsSection } from './domains.mjs';
import { duplicatesSection } from './duplicates.mjs';
import { header } from './header.mjs';
import { noveltySection } from './novelty.mjs';
import { errorsSection, footer } from './rest.mjs';
import { scoresSection } from './scores.mjs';
import { makeThreshold } from './threshold.mjs';
import { tracesSection } from './traces.mjs';

/** The element of page.html that has this id. */
const partOf = (/** @type {string} */ id) => /** @type {HTMLElement} */ (document.getElementById(id));

/** @type {import('../cli/report/collector.js').Report} */
const report = JSON.parse(/** @type {string} */ (partOf('figures').textContent));
const threshold = makeThreshold(report);

const sections = [
  scoresSection(report, threshold),
  domainsSection(report, threshold),
  noveltySection(report),
  duplicatesSection(report),
  tracesSection(report),
  errorsSection(report),
].filter((section) => section !== null);

const main = document.createElement('main');
main.append(...sections);
partOf('report').append(...header(report, threshold), main, footer(report));

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

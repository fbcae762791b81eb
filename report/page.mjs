// The report: figures in, page out. Everything is in this page; nothing is fetched.

import { domainsSection } from './domains.mjs';
import { duplicatesSection } from './duplicates.mjs';
import { header } from './header.mjs';
import { noveltySection } from './novelty.mjs';
import { errorsSection, footer } from './rest.mjs';
import { scoresSection } from './scores.mjs';
import { makeThreshold } from './threshold.mjs';
import { tracesSection } from './traces.mjs';

const report = JSON.parse(document.getElementById('figures').textContent);
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
document.getElementById('report').append(...header(report, threshold), main, footer(report));

// On paper nothing can be opened.
let opened = [];
addEventListener('beforeprint', () => {
  opened = [...document.querySelectorAll('.groups details:not([open])')];
  for (const details of opened) details.open = true;
});
addEventListener('afterprint', () => {
  for (const details of opened) details.open = false;
});

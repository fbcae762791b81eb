// Draws a report: figures in, elements out. Nothing is fetched.

import { chosenSection } from './chosen.mjs';
import { element } from './dom.mjs';
import { domainsSection } from './domains.mjs';
import { duplicatesSection } from './duplicates.mjs';
import { header } from './header.mjs';
import { noveltySection } from './novelty.mjs';
import { errorsSection, footer } from './rest.mjs';
import { scoresSection } from './scores.mjs';
import { makeThreshold } from './threshold.mjs';
import { tracesSection } from './traces.mjs';

/**
 * @param {import('./data.js').Report} report
 * @param {'main' | 'div'} [part] the element of the sections: a page has one `main`
 */
export function drawReport(report, part = 'main') {
  const threshold = makeThreshold(report);
  const sections = [
    chosenSection(report),
    scoresSection(report, threshold),
    domainsSection(report, threshold),
    noveltySection(report),
    duplicatesSection(report),
    tracesSection(report),
    errorsSection(report),
  ];
  return [...header(report, threshold), element(part, {}, sections), footer(report)];
}

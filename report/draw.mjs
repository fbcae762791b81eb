// Draws a report: figures in, elements out. Nothing is fetched.

import { chosenSection } from './chosen.mjs';
import { contents, element } from './dom.mjs';
import { duplicatesSection } from './duplicates.mjs';
import { header } from './header.mjs';
import { indexOf } from './index.mjs';
import { listSection } from './list.mjs';
import { domainsSection, errorsSection, footer, rulesSection } from './rest.mjs';
import { scoresSection } from './scores.mjs';
import { makeThreshold } from './threshold.mjs';
import { traceDialog } from './trace.mjs';

/**
 * @param {import('./data.js').Report} report
 * @param {'main' | 'div'} [part] the element of the sections: a page has one `main`
 */
export function drawReport(report, part = 'main') {
  const threshold = makeThreshold(report);
  const index = indexOf(report);
  const { dialog, open } = traceDialog(report, index);
  const sections = [
    listSection(report, index, open),
    chosenSection(report),
    scoresSection(report, threshold),
    duplicatesSection(report, index, open),
    domainsSection(report),
    errorsSection(report),
    rulesSection(report),
  ].filter((made) => made !== null);
  return [
    ...header(report, threshold),
    contents(sections),
    element(part, {}, sections),
    footer(report),
    dialog,
  ];
}

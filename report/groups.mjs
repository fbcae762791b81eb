// Lists of groups of traces: a line for each group, which opens to a table of its traces.

import { element, foreign, more, table } from './dom.mjs';
import { count, decimal, place } from './format.mjs';

/** @typedef {import('./data.js').Member} Member */

/** How many groups are shown before the reader asks for more. */
const SHOWN = 10;

/**
 * @template Group
 * @param {string} noun
 * @param {readonly Group[]} groups
 * @param {(group: Group) => HTMLElement} lineOf
 */
export function groupList(noun, groups, lineOf) {
  const listOf = (/** @type {readonly Group[]} */ some) => element('div.groups', some.map(lineOf));
  const rest = groups.length - SHOWN;
  return [
    listOf(groups.slice(0, SHOWN)),
    rest > 0 && more(count(rest, `more ${noun}`), listOf(groups.slice(SHOWN))),
  ];
}

/**
 * @param {[size: string, lead: string, strip: import('./dom.mjs').Child, range: string]} line
 * @param {string} caption of the table
 * @param {readonly Member[]} members
 * @param {number} sourceCount
 */
export function groupLine([size, lead, strip, range], caption, members, sourceCount) {
  const opened = element(
    'details',
    element(
      'summary',
      element('span.size', size),
      foreign(lead, { class: 'text' }),
      element('span.strip.soft', strip),
      element('span.range', range),
    ),
  );
  // Made when it is looked at: there may be hundreds of rows in all.
  const show = () =>
    opened.querySelector('.scroll') ?? opened.append(membersTable(caption, members, sourceCount));
  opened.addEventListener('toggle', show, { once: true });
  return opened;
}

/**
 * @param {string} caption
 * @param {readonly Member[]} members
 * @param {number} sourceCount
 */
function membersTable(caption, members, sourceCount) {
  /** @type {import('./dom.mjs').Column<Member>} */
  const nearest = {
    title: 'to',
    wide: true,
    cell: (member) => (member.nearest ? foreign(member.nearest, { class: 'mono' }) : ''),
  };
  return table(
    caption,
    [
      { title: 'Trace', wide: true, cell: (member) => traceOf(member, sourceCount) },
      { title: 'Score', number: true, cell: ({ score }) => (score === undefined ? '' : decimal(score)) },
      {
        title: 'Similarity',
        number: true,
        cell: ({ similarity }) => (similarity === undefined ? '' : decimal(similarity, 3)),
      },
      ...(members.some((member) => member.nearest !== undefined) ? [nearest] : []),
      { title: 'About', wide: true, cell: ({ excerpt }) => foreign(excerpt ?? '') },
    ],
    members,
  );
}

/**
 * @param {Member} member
 * @param {number} sourceCount
 */
function traceOf(member, sourceCount) {
  const where = member.position === null ? 'remembered from before' : place(member, sourceCount);
  return [member.id !== null && foreign(member.id, { class: 'mono' }), ' ', element('span.where', where)];
}

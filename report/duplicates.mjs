import { dotX, plot, ruleY, tickX } from '@observablehq/plot';

import { element, finding, foreign, more, section, table } from './dom.mjs';
import { count, decimal, integer, percent, place } from './format.mjs';

/** @typedef {import('./data.js').Report} Report */

/** @typedef {Report['duplicates']['groups'][number]} Group */

/** How many groups are shown before the reader asks for more. */
const SHOWN = 10;

/**
 * Where in the sequence the traces of a group lie, on the same axis for all groups.
 *
 * @param {number[]} positions
 * @param {number} scored
 */
function strip(positions, scored) {
  const made = plot({
    className: 'plot',
    width: 224,
    height: 18,
    margin: 0,
    marginLeft: 3,
    marginRight: 3,
    axis: null,
    x: { domain: [0, Math.max(1, scored - 1)] },
    marks: [
      ruleY([9], { y: null, stroke: 'var(--line)' }),
      positions.length > 60
        ? tickX(positions, { x: Number, stroke: 'var(--novelty)', strokeOpacity: 0.6 })
        : dotX(positions, { x: Number, r: 3, fill: 'var(--novelty)', fillOpacity: 0.75 }),
    ],
  });
  made.setAttribute('aria-hidden', 'true');
  return made;
}

/**
 * @param {Group} group
 * @param {Report} report
 */
function groupDetails(group, report) {
  const { members, positions, size } = group;
  const known = members.find(({ excerpt }) => excerpt);
  const lead = known?.excerpt ?? members[0].id ?? '';
  const rest = size - members.length;
  const opened = element(
    'details',
    {},
    element(
      'summary',
      {},
      element('span', { class: 'size' }, count(size, 'trace')),
      foreign(lead, { class: 'text' }),
      element('span', { class: 'strip' }, positions.length > 0 && strip(positions, report.count)),
      element('span', { class: 'range' }, rangeOf(group)),
    ),
  );
  // Made when it is looked at: there may be hundreds of rows in all.
  opened.addEventListener('toggle', () => opened.querySelector('.scroll') ?? opened.append(membersTable()), {
    once: true,
  });
  return opened;

  function membersTable() {
    const caption =
      rest > 0 ? `The first ${members.length} of ${integer(size)} traces` : `The ${members.length} traces`;
    return table(
      caption,
      [
        { title: 'Trace', wide: true, cell: (member) => traceOf(member, report) },
        { title: 'Score', number: true, cell: ({ score }) => (score === undefined ? '' : decimal(score)) },
        {
          title: 'Similarity',
          number: true,
          cell: ({ similarity }) => (similarity === undefined ? '' : decimal(similarity, 3)),
        },
        {
          title: 'to',
          wide: true,
          cell: ({ nearest }) => (nearest ? foreign(nearest, { class: 'mono' }) : ''),
        },
        { title: 'About', wide: true, cell: ({ excerpt }) => foreign(excerpt ?? '') },
      ],
      members,
    );
  }
}

/**
 * @param {Group['members'][number]} member
 * @param {Report} report
 */
function traceOf(member, { sourceCount }) {
  const where = member.position === null ? 'remembered from before' : place(member, sourceCount);
  return [
    member.id !== null && foreign(member.id, { class: 'mono' }),
    ' ',
    element('span', { class: 'where' }, where),
  ];
}

/** @param {Group} group */
function rangeOf({ minSimilarity, maxSimilarity }) {
  const [low, high] = [decimal(minSimilarity), decimal(maxSimilarity)];
  return low === high ? low : `${low}–${high}`;
}

/** @param {Report} report */
export function duplicatesSection(report) {
  const { bases, count: scored, duplicates } = report;
  const title = 'Near-duplicates';
  if (scored === 0) return null;
  if (bases['no-embedder'] === scored) {
    return section(title, finding('There was no embedder, so near-duplicates could not be looked for.'));
  }
  const similarity = decimal(duplicates.similarity);
  const criterion = `a similarity of ${similarity} or more to an earlier one`;
  if (duplicates.count === 0) return section(title, finding(`No trace has ${criterion}.`));
  const { groups, groupCount } = duplicates;
  /** @param {Group[]} some */
  const listOf = (some) =>
    element(
      'div',
      { class: 'groups' },
      some.map((group) => groupDetails(group, report)),
    );
  const unlisted = groupCount - groups.length;
  return section(
    title,
    finding(
      `${count(duplicates.count, 'trace')} ${duplicates.count === 1 ? 'has' : 'have'} ${criterion}; `,
      `that is ${percent(duplicates.count, scored)} of all, in ${count(groupCount, 'group')}. `,
      'Similarity tells topics apart, not meanings: a negation is close to what it negates.',
    ),
    listOf(groups.slice(0, SHOWN)),
    groups.length > SHOWN &&
      more(`${count(groups.length - SHOWN, 'more group')}`, listOf(groups.slice(SHOWN))),
    element(
      'p',
      { class: 'soft about' },
      'The marks show where in the sequence the traces of a group lie; to the right is the similarity of each to its nearest.',
      unlisted > 0 && ` ${count(unlisted, 'smaller group')} not listed.`,
    ),
  );
}

import { dotX, plot, ruleY, tickX } from '@observablehq/plot';

import { element, finding, section } from './dom.mjs';
import { count, decimal, integer, percent } from './format.mjs';
import { groupLine, groupList } from './groups.mjs';

/** @typedef {import('./data.js').Report} Report */

/** @typedef {Report['duplicates']['groups'][number]} Group */

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
function lineOf(group, { count: scored, sourceCount }) {
  const { members, positions, size } = group;
  const known = members.find(({ excerpt }) => excerpt);
  const lead = known?.excerpt ?? members[0].id ?? '';
  const caption =
    size > members.length
      ? `The first ${members.length} of ${integer(size)} traces`
      : `The ${members.length} traces`;
  const marks = positions.length > 0 && strip(positions, scored);
  return groupLine([count(size, 'trace'), lead, marks, rangeOf(group)], caption, members, sourceCount);
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
  const unlisted = groupCount - groups.length;
  return section(
    title,
    finding(
      `${count(duplicates.count, 'trace')} ${duplicates.count === 1 ? 'has' : 'have'} ${criterion}; `,
      `that is ${percent(duplicates.count, scored)} of all, in ${count(groupCount, 'group')}. `,
      'Similarity tells topics apart, not meanings: a negation is close to what it negates.',
    ),
    groupList('group', groups, (group) => lineOf(group, report)),
    element(
      'p.soft.about',
      'The marks show where in the sequence the traces of a group lie; to the right is the similarity of each to its nearest.',
      unlisted > 0 && ` ${count(unlisted, 'smaller group')} not listed.`,
    ),
  );
}

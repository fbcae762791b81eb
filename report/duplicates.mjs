import { element, finding, foreign, marked, more, section, table } from './dom.mjs';
import { count, decimal, integer, percent, place } from './format.mjs';
import { nameOf } from './index.mjs';

/** @import { Group, ListedTrace, Member, Report } from './data.js' */
/** @import { Index } from './index.mjs' */

/** How many groups are shown before the reader asks for more. */
const SHOWN = 10;

/** @param {Group} group */
function rangeOf({ minSimilarity, maxSimilarity }) {
  const [low, high] = [decimal(minSimilarity), decimal(maxSimilarity)];
  return low === high ? low : `${low}–${high}`;
}

/**
 * A line for a group, which opens to a table of its traces.
 *
 * @param {Group} group
 * @param {Report} report
 * @param {Index} index
 * @param {(trace: ListedTrace) => void} open
 */
function lineOf(group, { sourceCount }, index, open) {
  const { members, size } = group;
  const caption =
    size > members.length
      ? `The first ${members.length} of ${integer(size)} traces`
      : `The ${members.length} traces`;
  const known = members.map(index.find).find((trace) => trace !== undefined);
  const lead = known ? nameOf(known) : (members[0]?.id ?? 'traces that are not listed');
  /** @param {Member} member */
  const traceOf = (member) => {
    const trace = index.find(member);
    if (trace === undefined)
      return [
        foreign(member.id ?? '', { class: 'mono' }),
        element('span.where', 'remembered, or not listed'),
      ];
    return [
      element('button.open', { type: 'button', click: () => open(trace) }, marked(nameOf(trace))),
      element('span.where', foreign(place(trace, sourceCount))),
    ];
  };
  const tableOf = () =>
    table(
      caption,
      [
        { title: 'Trace', wide: true, cell: traceOf },
        { title: 'Score', number: true, cell: (member) => decimalOf(index.find(member)?.score, 2) },
        { title: 'Similarity', number: true, cell: ({ similarity }) => decimalOf(similarity, 3) },
        { title: 'to', wide: true, cell: ({ nearest }) => foreign(nearest ?? '', { class: 'mono' }) },
      ],
      members,
    );
  const details = element(
    'details',
    {
      // Made when it is looked at: there may be hundreds of rows in all.
      toggle: () => details.querySelector('table') ?? details.append(tableOf()),
    },
    element(
      'summary',
      element('span.size', count(size, 'trace')),
      element('span.text', marked(lead)),
      element('span.range', rangeOf(group)),
    ),
  );
  return details;
}

/** @param {number | undefined} value @param {number} digits */
const decimalOf = (value, digits) => (value === undefined ? '' : decimal(value, digits));

/**
 * @param {Report} report
 * @param {Index} index
 * @param {(trace: ListedTrace) => void} open
 */
export function duplicatesSection(report, index, open) {
  const { notCompared, count: scored, duplicates } = report;
  const title = 'Near-duplicates';
  if (scored === 0) return null;
  if (notCompared === scored) {
    return section(
      title,
      finding('There was no embedder, so nothing was compared: the novelty of every trace is 0.5.'),
    );
  }
  const similarity = decimal(duplicates.similarity);
  const criterion = `a similarity of ${similarity} or more to an earlier one`;
  if (duplicates.count === 0) return section(title, finding(`No trace has ${criterion}.`));
  const { groups, groupCount } = duplicates;
  const unlisted = groupCount - groups.length;
  const listOf = (/** @type {Group[]} */ some) =>
    element(
      'div.groups',
      some.map((group) => lineOf(group, report, index, open)),
    );
  const rest = groups.slice(SHOWN);
  return section(
    title,
    finding(
      `${count(duplicates.count, 'trace')} ${duplicates.count === 1 ? 'has' : 'have'} ${criterion}; `,
      `that is ${percent(duplicates.count, scored)} of all, in ${count(groupCount, 'group')}. `,
      'Similarity tells topics apart, not meanings: a negation is close to what it negates.',
    ),
    listOf(groups.slice(0, SHOWN)),
    rest.length > 0 && more(count(rest.length, 'more group'), listOf(rest)),
    unlisted > 0 && element('p.soft.about', `${count(unlisted, 'smaller group')} not listed.`),
  );
}

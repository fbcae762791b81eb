import { DIMENSIONS } from './dimensions.mjs';
import { element, finding, foreign, more, section, table } from './dom.mjs';
import { count, decimal, integer, place } from './format.mjs';

/** @param {import('./data.js').Report} report */
export function errorsSection({ errors, sourceCount }) {
  if (errors.count === 0) return null;
  const unlisted = errors.count - errors.first.length;
  const listed = table(
    unlisted > 0 ? `The first ${errors.first.length}` : 'All of them',
    [
      { title: 'Place', cell: (error) => foreign(place(error, sourceCount)) },
      { title: 'What is wrong', wide: true, cell: ({ message }) => foreign(message) },
    ],
    errors.first,
  );
  return section(
    'Bad lines',
    finding(`${count(errors.count, 'line')} could not be scored; the rest was.`),
    errors.first.length > 12 ? more('Show them', listed) : listed,
  );
}

/** @param {import('./data.js').Report} report */
export function domainsSection({ domains }) {
  if (domains.length < 2) return null;
  return section(
    'Domains',
    table(
      'Mean of each measure by domain',
      [
        { title: 'Domain', cell: ({ name }) => foreign(name || '(none)') },
        { title: 'Traces', number: true, cell: (domain) => integer(domain.count) },
        { title: 'Score', number: true, cell: ({ score }) => decimal(score) },
        ...DIMENSIONS.map(({ title }, i) => ({
          title,
          number: true,
          cell: (/** @type {typeof domains[number]} */ { dimensions }) => decimal(dimensions[i]),
        })),
      ],
      domains,
    ),
  );
}

/** The rules after the sum, in words. */
export const RULES = {
  'single-thought': 'a single thought scores 0.1',
  'recovery-bonus': 'more than two recoveries in a success add 0.1',
  'single-tool-penalty': 'using only one tool takes 0.1',
  clamp: 'what left the range of 0 to 1 was brought back',
};

/** @param {import('./data.js').Report} report */
export function rulesSection({ count: scored, profiles, rules }) {
  if (scored === 0) return null;
  const used = /** @type {Array<[rule: keyof typeof RULES, number: number]>} */ (Object.entries(rules));
  return section(
    'How scores are made',
    finding(
      'A score is the weighted sum of four dimensions. Complexity grows with kinds of steps, recoveries and length; ',
      'novelty is the distance to the nearest remembered trace; tool diversity relates distinct tools to steps; ',
      'outcome is the confidence in the result, and less than a third of it where the task failed.',
    ),
    table(
      'Weights of the profiles that were used',
      [
        { title: 'Profile', cell: ({ name }) => foreign(name ?? '') },
        { title: 'Traces', number: true, cell: (profile) => integer(profile.count) },
        ...DIMENSIONS.map(({ key, title }) => ({
          title,
          number: true,
          cell: (/** @type {typeof profiles[number]} */ { weights }) => decimal(weights[key]),
        })),
      ],
      profiles,
    ),
    used.length > 0 &&
      element(
        'p.finding',
        'Rules that applied: ',
        used.map(([rule, number]) => `${RULES[rule]} (${count(number, 'trace')})`).join('; '),
        '.',
      ),
  );
}

/** @param {import('./data.js').Report} report */
function embedderOf({ dtype, notCompared, count: scored, noveltyMode }) {
  if (noveltyMode === 'lexical') return 'words alone were compared';
  if (dtype === null || (scored > 0 && notCompared === scored))
    return 'without an embedder novelty is 0.5 throughout';
  const failed = notCompared > 0 ? `, which failed for ${count(notCompared, 'trace')}` : '';
  return `compared with ${dtype} weights${failed}`;
}

/** @param {import('./data.js').Report} report */
export function footer(report) {
  return element(
    'footer.soft',
    `@knowledgepulse/native ${report.version}; novelty: ${report.noveltyMode}, ${embedderOf(report)}. `,
    'Charts: Observable Plot. Licences are in the source of this page.',
  );
}

/** The four dimensions, in the order of the formula; a colour is a variable of the style. */
export const DIMENSIONS = /** @type {const} */ ([
  { key: 'complexity', title: 'Complexity', noun: 'complexity', colour: 'var(--complexity)' },
  { key: 'novelty', title: 'Novelty', noun: 'novelty', colour: 'var(--novelty)' },
  { key: 'toolDiversity', title: 'Tool diversity', noun: 'tool diversity', colour: 'var(--tools)' },
  { key: 'outcomeConfidence', title: 'Outcome', noun: 'outcome', colour: 'var(--outcome)' },
]);

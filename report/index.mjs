// Finds the traces of a report by what others call them.

/** @import { ChosenTrace, ListedTrace, Member, Report } from './data.js' */

/** @typedef {ReturnType<typeof indexOf>} Index */

/** @param {Report} report */
export function indexOf({ traces, selection }) {
  /** @type {Map<number, ListedTrace>} */
  const byPosition = new Map();
  /** @type {Map<string, ListedTrace>} */
  const byId = new Map();
  for (const trace of traces) {
    byPosition.set(trace.position, trace);
    // Of several with one id, others mean the first.
    const other = trace.id === null ? undefined : byId.get(trace.id);
    if (trace.id !== null && (other === undefined || other.position > trace.position))
      byId.set(trace.id, trace);
  }
  /** @type {Map<number, ChosenTrace>} */
  const chosen = new Map(selection?.traces.map((trace) => [trace.position, trace]));
  return {
    /** How it was chosen; undefined if it was not. @param {ListedTrace} trace */
    chosen: ({ position }) => chosen.get(position),
    /** @param {{ position: number | null, id?: string | null }} trace */
    find: ({ position, id }) =>
      position === null ? byId.get(/** @type {string} */ (id)) : byPosition.get(position),
  };
}

/** The names of outcomes, as filters and the list have them. */
export const OUTCOMES = /** @type {const} */ ({ yes: '✓ succeeded', no: '✗ failed', unknown: '? unknown' });

/** @param {ListedTrace} trace */
export const outcomeOf = ({ success }) => (success === null ? 'unknown' : success ? 'yes' : 'no');

/** What a trace is called. @param {ListedTrace} trace */
export const nameOf = ({ excerpt, id }) => excerpt || id || 'A trace without an objective';

// What the reader has decided. Nothing is stored in the browser: pages from a disk share one store, and struck words are private.

/** @import { Decision, SessionRow } from './data.js' */

/**
 * The decisions about sessions. A session that is proposed is kept until the reader says otherwise.
 *
 * @param {SessionRow[]} sessions
 */
export function makeDecisions(sessions) {
  /** @type {Map<string, NonNullable<Decision['decision']>>} */
  const decided = new Map();
  /** @type {Map<string, NonNullable<Decision['outcome']>>} */
  const outcomes = new Map();
  /** @type {Set<string>} */
  const struck = new Set();
  /** @type {Array<() => void>} */
  const followers = [];
  let isSaved = true;

  function changed() {
    isSaved = false;
    for (const follower of followers) follower();
  }

  /** @template Value @param {Map<string, Value>} values @param {SessionRow} session @param {Value} value */
  function set(values, { id }, value) {
    // The same key again takes it back.
    if (values.get(id) === value) values.delete(id);
    else values.set(id, value);
    changed();
  }

  const decisions = {
    struck: /** @type {ReadonlySet<string>} */ (struck),
    get isSaved() {
      return isSaved;
    },

    /** Calls back after each change. @param {() => void} follower */
    follow(follower) {
      followers.push(follower);
    },

    /** @param {SessionRow} session @returns {Decision['decision']} */
    of: ({ id, rank }) => decided.get(id) ?? (rank === null ? undefined : 'keep'),

    /** @param {SessionRow} session @returns {Decision['outcome']} */
    outcomeOf({ id, success }) {
      if (outcomes.has(id)) return outcomes.get(id);
      return success === null ? undefined : success ? 'succeeded' : 'failed';
    },

    /** @param {SessionRow} session @param {NonNullable<Decision['decision']>} decision */
    decide: (session, decision) => set(decided, session, decision),

    /** @param {SessionRow} session @param {NonNullable<Decision['outcome']>} outcome */
    tell: (session, outcome) => set(outcomes, session, outcome),

    /** @param {string[]} words */
    strike(words) {
      for (const each of words) struck.add(each);
      changed();
    },

    /** @param {string} words */
    restore(words) {
      struck.delete(words);
      changed();
    },

    /** The sessions that are kept. */
    kept: () => sessions.filter((session) => decisions.of(session) === 'keep'),

    /** Returns the decisions as a file, a line a session that something was decided about. */
    toJsonLines() {
      const strike = [...struck];
      const lines = sessions.flatMap((session) => {
        const decision = decisions.of(session);
        const outcome = outcomes.get(session.id);
        if (decision === undefined && outcome === undefined) return [];
        const isStruck = decision === 'keep' && strike.length > 0;
        /** @type {Decision} */
        const line = { session: session.id, decision, outcome, strike: isStruck ? strike : undefined };
        return [`${JSON.stringify(line)}\n`];
      });
      isSaved = true;
      return lines.join('');
    },

    /**
     * Takes the decisions of a file over.
     *
     * @param {string} text
     * @returns {number} how many of its lines are about sessions of this page
     */
    read(text) {
      const known = new Set(sessions.map(({ id }) => id));
      const lines = text.split('\n').filter((line) => line.trim() !== '');
      const parsed = lines.map((line) => /** @type {Decision} */ (JSON.parse(line)));
      const own = parsed.filter((line) => known.has(line?.session));
      for (const { session, decision, outcome, strike } of own) {
        if (decision) decided.set(session, decision);
        if (outcome) outcomes.set(session, outcome);
        for (const words of strike ?? []) struck.add(words);
      }
      changed();
      isSaved = true;
      return own.length;
    },
  };
  return decisions;
}

/** @typedef {ReturnType<typeof makeDecisions>} Decisions */

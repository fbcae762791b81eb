// The desk: a list of sessions, the one that is open, and what is decided. The command's page and the page to try it draw the same.

import { makeDecisions } from './decisions.mjs';
import { action, copies, download, element, foreign } from './dom.mjs';
import { count, integer, nameOfAgent, period } from './format.mjs';
import { sessionList } from './list.mjs';
import { overview } from './overview.mjs';
import { sessionPane } from './session.mjs';

/** @import { Conversation, Desk, SessionRow } from './data.js' */
/** @import { Decisions } from './decisions.mjs' */

/** @type {Array<[key: string, does: string]>} */
const KEYS = [
  ['k, x', 'keep the session, leave it out'],
  ['y, f', 'it succeeded, it failed'],
  ['n, p', 'next and previous mark'],
  ['s', 'strike out the selected words everywhere'],
  ['j, J', 'next and previous session'],
  ['/', 'search'],
  ['Esc', 'all sessions'],
  ['?', 'these keys'],
];

/** How many agents are named. */
const NAMED = 4;

/** @param {SessionRow[]} sessions */
function aboutOf(sessions) {
  /** @type {Map<string, number>} */
  const agents = new Map();
  for (const { agent } of sessions) agents.set(agent, (agents.get(agent) ?? 0) + 1);
  const byCount = [...agents].sort(([, a], [, b]) => b - a);
  const named = byCount.slice(0, byCount.length === NAMED + 1 ? NAMED + 1 : NAMED);
  const others = byCount.slice(named.length).reduce((sum, [, number]) => sum + number, 0);
  const projects = new Set(sessions.flatMap(({ project }) => project ?? [])).size;
  return [
    [
      ...named.map(([agent, number]) => `${integer(number)} of ${nameOfAgent(agent)}`),
      ...(others > 0 ? [`${integer(others)} of others`] : []),
    ].join(', '),
    period(sessions.map(({ began }) => began)),
    projects > 0 && count(projects, 'project'),
  ].filter(Boolean);
}

/**
 * Draws a desk.
 *
 * @param {Desk} desk
 * @param {object} source
 * @param {(position: number) => Promise<Conversation | null>} source.conversationOf reads a session; `null` if there is no conversation
 * @param {{ label: string, run: (decisions: Decisions) => void }} [source.save] what the first button does; without it, it saves the decisions
 */
export function drawDesk(desk, { conversationOf, save }) {
  const { sessions, raw, command } = desk;
  const own = sessions.filter(({ parent }) => parent === null);
  const byId = new Map(sessions.map((session) => [session.id, session]));
  const decisions = makeDecisions(own);
  const list = sessionList(sessions, decisions, show);
  const ending = new AbortController();
  const { signal } = ending;
  const opened = sessionPane(sessions, decisions, conversationOf, signal);
  const whole = overview(desk, decisions, list);

  const saveDecisions = () =>
    download('decisions.jsonl', new Blob([decisions.toJsonLines()], { type: 'application/jsonl' }));
  const told = element('span', { role: 'status' });
  const picker = element('input', {
    ...{ type: 'file', accept: '.jsonl', hidden: true },
    change: async () => {
      const file = picker.files?.[0];
      picker.value = '';
      if (!file) return;
      try {
        const taken = decisions.read(await file.text());
        told.append(` ${count(taken, 'decision')} taken from ${file.name}.`);
      } catch {
        told.append(` ${file.name} has no decisions: each line must be JSON.`);
      }
    },
  });
  const struck = element('details.struck', { hidden: true });
  const heading = element('h1');
  const keys = element(
    'dialog',
    { 'aria-label': 'Keys' },
    element(
      'dl',
      KEYS.map(([key, does]) => element('div', element('dt', element('kbd', key)), element('dd', does))),
    ),
    action('Close', () => keys.close()),
  );

  function tell() {
    const kept = decisions.kept().length;
    const left = own.filter((session) => decisions.of(session) === 'leave out').length;
    heading.textContent = `${count(own.length, 'session')}, ${integer(kept)} to share`;
    told.replaceChildren(element('b', `${integer(kept)} kept`), `, ${integer(left)} left out`);
    const words = [...decisions.struck];
    struck.hidden = words.length === 0;
    struck.replaceChildren(
      element('summary', `${count(words.length, 'text')} struck out`),
      element(
        'ul',
        words.map((each) =>
          element(
            'li',
            foreign(each),
            ' ',
            action('Restore', () => decisions.restore(each)),
          ),
        ),
      ),
    );
  }
  decisions.follow(tell);
  tell();

  const root = element(
    'div.desk',
    raw &&
      element(
        'p.raw',
        { role: 'alert' },
        element('b', 'Original text.'),
        ' Nothing on this page is cleaned: secrets and names stand as they were. Do not pass it on.',
      ),
    element(
      'header',
      heading,
      element(
        'p.soft',
        foreign([...aboutOf(own), raw ? 'nothing is cleaned' : 'cleaned text only'].join(' · ')),
      ),
    ),
    list.bar,
    element('main.panes', list.list, whole, opened.pane),
    element(
      'footer',
      told,
      struck,
      command !== '' && element('span.next', element('code', command), copies('Copy', command)),
      element(
        'span.actions',
        picker,
        action('Keys', () => keys.showModal()),
        action('Open decisions', () => picker.click()),
        save ? action('Save decisions', saveDecisions) : null,
        action(save?.label ?? 'Save decisions', () => (save ? save.run(decisions) : saveDecisions()), {
          class: 'first',
        }),
      ),
    ),
    keys,
  );

  /** The address that is shown. @type {string | undefined} */
  let shown;
  function route() {
    if (location.hash === shown) return;
    shown = location.hash;
    const session = byId.get(decodeURIComponent(location.hash.slice(1)));
    root.classList.toggle('reading', session !== undefined);
    whole.hidden = session !== undefined;
    opened.pane.hidden = session === undefined;
    list.mark(session && (session.parent === null ? session : sessions[session.parent]));
    if (!session) return opened.close();
    const wasInList = list.list.contains(document.activeElement);
    opened.open(session);
    // On a narrow screen the list is hidden.
    if (!wasInList || list.list.offsetParent === null) opened.pane.focus({ preventScroll: true });
  }
  /** Shows an address before the next key comes, which would otherwise decide about the session before. @param {string} address */
  function show(address) {
    location.hash = address;
    route();
  }
  /** @type {Record<string, () => void>} */
  const shortcuts = {
    ...opened.acts,
    j: () => list.go(1),
    J: () => list.go(-1),
    '/': () => list.search.focus(),
    Escape: () => show(''),
    '?': () => keys.showModal(),
  };
  function press(/** @type {KeyboardEvent} */ event) {
    const target = /** @type {Element} */ (event.target);
    if (
      event.ctrlKey ||
      event.metaKey ||
      event.altKey ||
      keys.open ||
      target.matches?.('input, select, textarea')
    )
      return;
    const act = shortcuts[event.key];
    if (!act) return;
    event.preventDefault();
    // The browser may not have told yet of a link or a point of the map that was opened.
    route();
    act();
  }
  const warn = (/** @type {BeforeUnloadEvent} */ event) => {
    if (!decisions.isSaved) event.preventDefault();
  };
  addEventListener('hashchange', route, { signal });
  addEventListener('keydown', press, { signal });
  addEventListener('beforeunload', warn, { signal });
  route();
  return {
    root,
    decisions,
    /** Ends what listens to the page. */
    close() {
      ending.abort();
      root.remove();
    },
  };
}

// The list of the sessions: searched, and filtered by what differs among them.

import { action, element, foreign } from './dom.mjs';
import { count, day, integer, nameOfAgent, short } from './format.mjs';
import { marking } from './marks.mjs';
import { addressOf } from './session.mjs';

/** @import { SessionRow } from './data.js' */
/** @import { Decisions } from './decisions.mjs' */

/** How many rows are drawn at once: more than a screen has. */
const ROWS = 300;

/** @type {Array<[title: string, takes: (session: SessionRow) => boolean]>} what may be dangerous in a session, the worst first */
const DANGERS = [
  ['secrets', ({ secrets }) => secrets > 0],
  ['personal data', ({ personal }) => personal > 0],
  ['places to look at', ({ places }) => places > 0],
  ['nothing found', ({ secrets, personal, places }) => secrets + personal + places === 0],
];

/** What can be searched. @param {SessionRow} session */
const wordsOf = ({ name, id, agent, model, project }) =>
  [name, id, agent, nameOfAgent(agent), model, project].join('\n').toLowerCase();

/**
 * @param {SessionRow[]} sessions
 * @param {Decisions} decisions
 * @param {(address: string) => void} show opens what an address of the page names
 */
export function sessionList(sessions, decisions, show) {
  // Sub-agents go with the sessions that started them.
  const own = sessions.filter(({ parent }) => parent === null);
  const subagents = new Map();
  for (const { parent } of sessions)
    if (parent !== null) subagents.set(parent, (subagents.get(parent) ?? 0) + 1);

  /** @type {Array<() => void>} */
  const followers = [];
  /** A period of time that the timeline has chosen. @type {(session: SessionRow) => boolean} */
  let isWithin = () => true;

  /** @type {Record<string, (session: SessionRow) => boolean>} */
  const VIEWS = {
    All: () => true,
    'To share': (session) => decisions.of(session) === 'keep',
    'Left out': (session) => decisions.of(session) === 'leave out',
    Undecided: (session) => decisions.of(session) === undefined,
  };
  let view = 'All';
  const chips = Object.keys(VIEWS).map((name) => {
    const number = element('span.number');
    const chip = action(
      `${name} `,
      () => {
        view = name;
        find();
      },
      { class: 'chip' },
    );
    chip.append(number);
    return { name, chip, number };
  });

  const search = element('input', {
    type: 'search',
    placeholder: 'Search words, projects, ids',
    'aria-label': 'Search',
    input: () => find(),
  });
  /** @param {string} title @param {Array<[name: string, takes: (session: SessionRow) => boolean]>} options */
  const filter = (title, options) => {
    const select = element(
      'select',
      { 'aria-label': title, change: () => find() },
      element('option', { value: '' }, title),
      options.map(([name], i) => element('option', { value: String(i + 1) }, name)),
    );
    return {
      field: options.length > 1 && select,
      takes: (/** @type {SessionRow} */ session) =>
        select.value === '' || options[Number(select.value) - 1][1](session),
    };
  };
  /** @param {'agent' | 'project'} name @param {(value: string) => string} titleOf */
  const valuesOf = (name, titleOf) => {
    const values = [...new Set(own.map((session) => session[name] ?? ''))].sort();
    return values.map(
      (value) =>
        /** @type {[string, (session: SessionRow) => boolean]} */ ([
          titleOf(value),
          (session) => (session[name] ?? '') === value,
        ]),
    );
  };
  const filters = [
    filter('Agent', valuesOf('agent', nameOfAgent)),
    filter(
      'Project',
      valuesOf('project', (value) => value || '(none)'),
    ),
    filter(
      'Danger',
      DANGERS.filter(([, takes]) => own.some(takes)),
    ),
  ];

  const positions = new Map(sessions.map((session, position) => [session, position]));
  const rows = own.map((session, i) => ({ session, number: i + 1, words: wordsOf(session) }));
  /** @typedef {{ item: HTMLLIElement, link: HTMLAnchorElement, showDecision: () => void }} Drawn */
  /** The rows that were drawn. @type {Map<typeof rows[number], Drawn>} */
  const drawn = new Map();

  /** @param {typeof rows[number]} row @returns {Drawn} */
  function draw(row) {
    const known = drawn.get(row);
    if (known) return known;
    const { session, number } = row;
    const { id, name, agent, project, began, turns, tokens, copies, standsFor, places, replaced, facts } =
      session;
    const helped = subagents.get(positions.get(session)) ?? 0;
    const about = [
      project,
      nameOfAgent(agent),
      day(began),
      count(turns, 'prompt'),
      `${short(tokens)} tokens`,
      helped > 0 && `+${count(helped, 'sub-agent')}`,
      copies > 0 && `${count(copies, 'copy', 'copies')} left out`,
      standsFor > 0 && `stands for ${integer(standsFor)} like it`,
    ];
    const link = element('a', { href: addressOf(id), tabindex: '-1' }, mark(name));
    const state = element('span.state');
    const item = element(
      'li',
      element('span.n', { 'aria-hidden': 'true' }, integer(number)),
      element(
        'div',
        link,
        element('div.meta', foreign(about.filter(Boolean).join(' · ')), state),
        element(
          'div.facts',
          facts.map(({ words, good }) =>
            element('span', { class: good === null ? null : good ? 'ok' : 'no' }, words),
          ),
          places > 0 && element('span.look', count(places, 'place to look at', 'places to look at')),
          replaced !== '' && element('span', replaced),
        ),
      ),
    );
    const showDecision = () => {
      const decision = decisions.of(session);
      const outcome = decisions.outcomeOf(session);
      item.classList.toggle('out', decision === 'leave out');
      item.classList.toggle('kept', decision === 'keep');
      state.textContent = [decision === 'leave out' && ' · left out', outcome && ` · ${outcome}`]
        .filter(Boolean)
        .join('');
    };
    showDecision();
    const made = { item, link, showDecision };
    drawn.set(row, made);
    return made;
  }
  const byId = new Map(rows.map((row) => [row.session.id, row]));
  const list = element('ol', { 'aria-label': 'Sessions' });
  /** It draws more rows when it comes near. */
  const end = element('div', { 'aria-hidden': 'true' });
  new IntersectionObserver(
    ([{ isIntersecting }]) => isIntersecting && drawTo(list.childElementCount + ROWS),
    {
      rootMargin: '1000px',
    },
  ).observe(end);
  const none = element('p.soft.none', { hidden: true }, 'No session is like that.');
  const status = element('span.soft', { role: 'status' });
  let markedStruck = '';
  let mark = marking([], []);
  /** @type {typeof rows} */
  let found = rows;
  /** @type {typeof rows[number] | undefined} */
  let current;

  function find() {
    const wanted = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    found = rows.filter(
      ({ session, words }) =>
        VIEWS[view](session) &&
        isWithin(session) &&
        wanted.every((word) => words.includes(word)) &&
        filters.every(({ takes }) => takes(session)),
    );
    list.replaceChildren();
    drawTo(ROWS);
    none.hidden = found.length > 0;
    status.textContent =
      found.length === rows.length ? '' : `${integer(found.length)} of ${integer(rows.length)}`;
    showDecisions();
    takeFocus(current && found.includes(current) ? current : found[0]);
  }

  /** Shows the first `wanted` of the sessions that were found. @param {number} wanted */
  function drawTo(wanted) {
    list.append(...found.slice(list.childElementCount, wanted).map((row) => draw(row).item));
  }

  /** One link takes the focus; arrows go on from it. @param {typeof rows[number]} [row] */
  function takeFocus(row) {
    for (const { link } of drawn.values()) link.tabIndex = -1;
    if (row) draw(row).link.tabIndex = 0;
  }

  function showDecisions() {
    for (const { name, chip, number } of chips) {
      number.textContent = integer(own.filter(VIEWS[name]).length);
      chip.setAttribute('aria-pressed', String(name === view));
    }
    const struck = [...decisions.struck].join('\n');
    const hasChanged = struck !== markedStruck;
    if (hasChanged) mark = marking(decisions.struck, []);
    markedStruck = struck;
    for (const [{ session }, { link, showDecision }] of drawn) {
      if (hasChanged) link.replaceChildren(mark(session.name));
      showDecision();
    }
    for (const follower of followers) follower();
  }

  list.addEventListener('keydown', (event) => {
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (by === undefined) return;
    event.preventDefault();
    go(by);
    if (current) draw(current).link.focus();
  });

  /** Opens the next session of those that are shown, or the one before. @param {number} by */
  function go(by) {
    const at = current === undefined ? -1 : found.indexOf(current);
    const next = found[Math.min(Math.max(at + by, 0), found.length - 1)];
    if (next) show(addressOf(next.session.id));
  }

  decisions.follow(showDecisions);
  find();
  return {
    bar: element(
      'div.bar',
      { role: 'search' },
      search,
      chips.map(({ chip }) => chip),
      filters.map(({ field }) => field),
      status,
    ),
    list: element('div.list', list, none, end),
    search,
    go,
    shown: () => found.map(({ session }) => session),
    /** Calls back when other sessions are shown, or decided about. @param {() => void} follower */
    follow: (follower) => followers.push(follower),
    /** @param {(session: SessionRow) => boolean} takes */
    within(takes) {
      isWithin = takes;
      find();
    },
    /** Marks the session that is open; `undefined` for none. @param {SessionRow} [session] */
    mark(session) {
      if (current) {
        const { item, link } = draw(current);
        item.classList.remove('here');
        link.removeAttribute('aria-current');
      }
      current = session && byId.get(session.id);
      if (!current) return;
      drawTo(found.indexOf(current) + 1);
      const { item, link } = draw(current);
      item.classList.add('here');
      link.setAttribute('aria-current', 'true');
      takeFocus(current);
      item.scrollIntoView({ block: 'nearest' });
    },
  };
}

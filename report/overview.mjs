// What is there as a whole: when sessions took place, and which are alike.

import { forceLink, forceManyBody, forceSimulation, forceX, forceY } from 'd3-force';

import { action, element, foreign } from './dom.mjs';
import { count, integer, period } from './format.mjs';
import { addressOf } from './session.mjs';

/** @import { Desk, SessionRow } from './data.js' */
/** @import { Decisions } from './decisions.mjs' */

const DAY = 86_400_000;
/** The most bars of the timeline. */
const BARS = 60;
/** How long the map is laid out at once, in milliseconds, and how often its forces act. */
const SLICE = 12;
const TICKS = 120;
/** The most points of the map: the first sessions, which are the most worth sharing. */
const POINTS = 2000;
const DOCS = 'https://openknowledgepulse.github.io/native/docs/';

/**
 * When sessions began: bars that show those of their days.
 *
 * @param {SessionRow[]} sessions
 * @param {(takes: (session: SessionRow) => boolean) => void} within
 */
function timeline(sessions, within) {
  const timeOf = (/** @type {SessionRow} */ { began }) => Math.floor(Date.parse(began ?? '') / DAY);
  const days = sessions.map(timeOf).filter((day) => !Number.isNaN(day));
  if (days.length === 0) return null;
  const first = days.reduce((a, b) => Math.min(a, b));
  const last = days.reduce((a, b) => Math.max(a, b));
  const width = Math.ceil((last - first + 1) / BARS);
  const bars = Array.from({ length: Math.floor((last - first) / width) + 1 }, () => 0);
  for (const day of days) bars[Math.floor((day - first) / width)]++;
  const most = Math.max(...bars);
  const iso = (/** @type {number} */ day) => new Date((day + 0.5) * DAY).toISOString();
  let chosen = -1;
  const buttons = bars.map((number, at) => {
    const from = first + at * width;
    const title = `${period([iso(from), iso(Math.min(from + width - 1, last))])}: ${count(number, 'session')}`;
    const press = () => {
      chosen = chosen === at ? -1 : at;
      within(chosen < 0 ? () => true : (session) => Math.floor((timeOf(session) - first) / width) === chosen);
      for (const [i, button] of buttons.entries()) button.setAttribute('aria-pressed', String(i === chosen));
    };
    return action('', press, {
      title,
      'aria-label': title,
      'aria-pressed': 'false',
      disabled: number === 0,
      style: `--part: ${number / most}`,
    });
  });
  return element(
    'section',
    element('h2', 'When'),
    element('p.soft', period([iso(first), iso(last)]), '. A bar shows its sessions alone.'),
    element('div.timeline', { role: 'group', 'aria-label': 'Sessions by day' }, buttons),
  );
}

/**
 * What is alike: points that lie close.
 *
 * @param {SessionRow[]} all
 * @param {Decisions} decisions
 * @param {(follower: () => void) => void} follow
 * @param {() => SessionRow[]} shown
 */
function map(all, decisions, follow, shown) {
  const own = all.flatMap((session, position) =>
    session.parent === null ? [{ session, position, x: undefined, y: undefined }] : [],
  );
  const nodes = own.slice(0, POINTS);
  const places = new Map(nodes.map(({ position }, at) => [position, at]));
  const links = nodes.flatMap(({ session }, source) =>
    session.alike.flatMap(([position, similarity]) => {
      const target = places.get(position);
      return target === undefined || target === source ? [] : [{ source, target, similarity }];
    }),
  );
  if (links.length === 0) return null;
  const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
  svg.setAttribute('role', 'img');
  svg.setAttribute(
    'aria-label',
    `${count(nodes.length, 'session')}: those that are alike lie close. The list has the same sessions.`,
  );
  const simulation = forceSimulation(nodes)
    .force(
      'link',
      forceLink(links)
        .distance(({ similarity }) => 4 + 24 * (1 - similarity))
        .strength(({ similarity }) => similarity),
    )
    .force('charge', forceManyBody().strength(-12).distanceMax(200))
    .force('x', forceX(0).strength(0.08))
    .force('y', forceY(0).strength(0.12))
    .stop();
  /** @type {Array<{ session: SessionRow, point: SVGElement }>} */
  const points = [];
  function show() {
    const visible = new Set(shown());
    for (const { session, point } of points) {
      const decision = decisions.of(session);
      point.setAttribute(
        'class',
        [
          decision === 'keep' ? 'kept' : decision === 'leave out' ? 'out' : '',
          visible.has(session) ? '' : 'hidden',
        ].join(' '),
      );
    }
  }
  let ticks = 0;
  const layOut = () => {
    const end = performance.now() + SLICE;
    while (ticks < TICKS && performance.now() < end) {
      simulation.tick();
      ticks++;
    }
    if (ticks < TICKS) return setTimeout(layOut);
    const [xs, ys] = [nodes.map(({ x }) => x ?? 0), nodes.map(({ y }) => y ?? 0)];
    const [left, top] = [Math.min(...xs) - 8, Math.min(...ys) - 8];
    svg.setAttribute('viewBox', `${left} ${top} ${Math.max(...xs) + 8 - left} ${Math.max(...ys) + 8 - top}`);
    const lines = document.createElementNS(svg.namespaceURI, 'path');
    const ends = links.map(({ source, target }) => [source, target].map((end) => Object(end)));
    lines.setAttribute('d', ends.map(([a, b]) => `M${a.x},${a.y}L${b.x},${b.y}`).join(''));
    svg.append(lines);
    for (const { session, x, y } of nodes) {
      const point = document.createElementNS(svg.namespaceURI, 'circle');
      const title = document.createElementNS(svg.namespaceURI, 'title');
      title.textContent = session.name;
      point.append(title);
      for (const [name, value] of Object.entries({ cx: x, cy: y, r: 3 }))
        point.setAttribute(name, String(value));
      point.addEventListener('click', () => {
        location.hash = addressOf(session.id);
      });
      svg.append(point);
      points.push({ session, point: /** @type {SVGElement} */ (point) });
    }
    show();
  };
  setTimeout(layOut);
  follow(show);
  return element(
    'section',
    element('h2', 'What is alike'),
    element(
      'p.soft',
      'Points that lie close are alike; filled ones are shared. A click opens one.',
      own.length > nodes.length && ` The first ${integer(nodes.length)} sessions are on it.`,
    ),
    element('div.map', svg),
  );
}

/**
 * @param {Desk} desk
 * @param {Decisions} decisions
 * @param {ReturnType<typeof import('./list.mjs').sessionList>} list
 */
export function overview({ sessions, explanation, unread }, decisions, list) {
  const own = sessions.filter(({ parent }) => parent === null);
  const doc = (/** @type {string} */ page, /** @type {string} */ words) =>
    element('a', { href: DOCS + page, target: '_blank', rel: 'noreferrer' }, words);
  return element(
    'div.overview',
    { tabindex: '0', role: 'region', 'aria-label': 'Overview' },
    explanation !== '' &&
      element('p.explanation', foreign(explanation), '. Open a session, read what is marked, and decide.'),
    element(
      'p.soft',
      'Cleaning does not find names of people whom a session only mentions, companies, most street addresses and what pictures show. ',
      doc('cleaning.html#review', 'What to look for'),
      ' · ',
      doc('what-a-score-means.html', 'What facts mean'),
      ' · ',
      doc('where-to-share.html', 'Where to share'),
    ),
    timeline(own, list.within),
    map(sessions, decisions, list.follow, list.shown),
    unread !== undefined &&
      unread.count > 0 &&
      element(
        'details',
        element('summary', `${count(unread.count, 'record')} could not be read`),
        element(
          'ul',
          unread.first.map(({ place, reason }) =>
            element('li', foreign(place, { class: 'mono' }), ' ', foreign(reason)),
          ),
        ),
        unread.count > unread.first.length &&
          element('p.soft', `and ${integer(unread.count - unread.first.length)} more`),
      ),
  );
}

// An opened session: what is decided about it, its conversation, and its sub-agents.

import { block, callLine, whole } from './calls.mjs';
import { action, copies, element, foreign } from './dom.mjs';
import { count, minute, nameOfAgent, short } from './format.mjs';
import { marking, strikable } from './marks.mjs';

/** @import { Conversation, SessionRow, Turn } from './data.js' */
/** @import { Decisions } from './decisions.mjs' */

/** How much of a selection a button shows, in characters. */
const MOST_SELECTED = 24;

/** @param {string} id */
export const addressOf = (id) => `#${encodeURIComponent(id)}`;

/**
 * @param {Turn} turn
 * @param {boolean} goesOn whether the turn before is of the same speaker
 * @param {string} agent
 * @param {(text: string) => Node} mark
 */
function turnOf({ by, text, reasoning, calls = [] }, goesOn, agent, mark) {
  return element(
    `div.turn.${by}`,
    !goesOn && element('small', by === 'user' ? 'user' : nameOfAgent(agent)),
    reasoning !== undefined &&
      element(
        'details.thought',
        element('summary', 'Reasoning'),
        block(reasoning.split('\n'), mark, 'Reasoning'),
      ),
    text !== undefined && element('p.said', mark(text)),
    calls.map((call) => callLine(call, mark)),
  );
}

/**
 * The pane of one session at a time.
 *
 * @param {SessionRow[]} sessions
 * @param {Decisions} decisions
 * @param {(position: number) => Promise<Conversation | null>} conversationOf
 * @param {AbortSignal} signal ends what listens to the page
 */
export function sessionPane(sessions, decisions, conversationOf, signal) {
  const pane = element('article', { tabindex: '0', 'aria-labelledby': 'opened' });
  /** @type {SessionRow | undefined} */
  let opened;
  /** @type {Conversation | null} */
  let conversation = null;
  let at = -1;

  /** @param {string} label @param {string} key @param {() => void} click */
  const verdict = (label, key, click) => {
    const button = action(label, click, { 'aria-pressed': 'false', 'aria-keyshortcuts': key });
    button.append(element('kbd', { 'aria-hidden': 'true' }, key));
    return button;
  };
  const acts = {
    k: () => opened && decisions.decide(opened, 'keep'),
    x: () => opened && decisions.decide(opened, 'leave out'),
    y: () => opened && decisions.tell(opened, 'succeeded'),
    f: () => opened && decisions.tell(opened, 'failed'),
    s: strike,
    n: () => step(1),
    p: () => step(-1),
  };
  const buttons = {
    keep: verdict('Keep', 'k', acts.k),
    'leave out': verdict('Leave out', 'x', acts.x),
    succeeded: verdict('It succeeded', 'y', acts.y),
    failed: verdict('It failed', 'f', acts.f),
  };
  const striking = verdict('Strike out', 's', strike);
  striking.removeAttribute('aria-pressed');
  const where = element('span.soft', { role: 'status' });
  const marks = element(
    'span.steps',
    action('‹', acts.p, { 'aria-label': 'Previous mark', 'aria-keyshortcuts': 'p' }),
    where,
    action('›', acts.n, { 'aria-label': 'Next mark', 'aria-keyshortcuts': 'n' }),
  );
  const bar = element(
    'div.verdict',
    element('span.group', buttons.keep, buttons['leave out']),
    element('span.group', buttons.succeeded, buttons.failed),
    element('span.group', striking, marks),
  );

  function showDecision() {
    if (!opened) return;
    const [decision, outcome] = [decisions.of(opened), decisions.outcomeOf(opened)];
    for (const [name, button] of Object.entries(buttons))
      button.setAttribute('aria-pressed', String(name === decision || name === outcome));
  }

  /** The words that are selected in the conversation. */
  function selected() {
    const selection = document.getSelection();
    const isInside =
      selection?.anchorNode && pane.querySelector('.conversation')?.contains(selection.anchorNode);
    return isInside ? strikable(selection.toString()) : [];
  }

  function strike() {
    const words = selected();
    if (words.length === 0) return;
    document.getSelection()?.empty();
    decisions.strike(words);
  }

  /** Says on the button what it would strike out. */
  function showSelection() {
    const [first = '', ...others] = selected();
    const more = others.length > 0 || first.length > MOST_SELECTED ? '…' : '';
    striking.disabled = first === '';
    striking.firstChild?.replaceWith(
      `Strike out ${first && `“${first.slice(0, MOST_SELECTED)}${more}”`}`.trim(),
    );
  }
  document.addEventListener('selectionchange', showSelection, { signal });
  striking.disabled = true;

  const all = () => /** @type {NodeListOf<HTMLElement>} */ (pane.querySelectorAll('.conversation mark'));

  function showMarks() {
    const found = all().length;
    where.textContent =
      found === 0 ? 'nothing marked' : at < 0 ? count(found, 'mark') : `${at + 1} of ${count(found, 'mark')}`;
  }

  /** Goes to the next mark, or to the one before. @param {number} by */
  function step(by) {
    const found = all();
    if (found.length === 0) return;
    found[at]?.classList.remove('here');
    at = at < 0 && by < 0 ? found.length - 1 : (at + by + found.length) % found.length;
    const mark = found[at];
    for (let above = mark.parentElement; above && above !== pane; above = above.parentElement) {
      if (above instanceof HTMLDetailsElement) above.open = true;
      if (above.matches('.cut')) whole(above);
    }
    mark.classList.add('here');
    mark.scrollIntoView({ block: 'center' });
    showMarks();
  }

  /** @param {SessionRow} session */
  function drawConversation(session) {
    const mark = marking(decisions.struck, conversation?.places ?? []);
    const drawn =
      conversation === null
        ? [
            element(
              'p.notice',
              'This page does not hold its conversation: it would be too large. ',
              element('code', `kp-score show ${session.id}`),
              ' prints it.',
            ),
          ]
        : conversation.turns.map((turn, i, all) =>
            turnOf(turn, all[i - 1]?.by === turn.by, session.agent, mark),
          );
    at = -1;
    pane.querySelector('.conversation')?.replaceChildren(...drawn);
    for (const part of pane.querySelectorAll('[data-text]'))
      part.replaceChildren(mark(part.getAttribute('data-text') ?? ''));
    showMarks();
  }

  /** @param {SessionRow} session */
  function factsOf({ agent, model, project, began, turns, calls, failedCalls, tokens }) {
    const failed = failedCalls > 0 ? `, ${count(failedCalls, 'call')} failed` : '';
    return [
      project,
      [nameOfAgent(agent), model].filter(Boolean).join(', '),
      minute(began),
      `${count(turns, 'prompt')}, ${count(calls, 'call')}${failed}`,
      `${short(tokens)} tokens`,
    ]
      .filter(Boolean)
      .join(' · ');
  }

  /** @param {SessionRow} session */
  function belongingTo(session) {
    const position = sessions.indexOf(session);
    const own = sessions.filter(({ parent }) => parent === position);
    const parent = session.parent === null ? undefined : sessions[session.parent];
    const link = (/** @type {SessionRow} */ other) =>
      element(
        'li',
        element('a', { href: addressOf(other.id) }, foreign(other.name)),
        element(
          'span.soft',
          ` ${count(other.calls, 'call')}${other.replaced && `, ${other.replaced} replaced`}`,
        ),
      );
    return [
      parent &&
        element(
          'p',
          'A sub-agent of ',
          element('a', { href: addressOf(parent.id) }, foreign(parent.name)),
          ', with which it is shared.',
        ),
      own.length > 0 &&
        element('section', element('h3', count(own.length, 'sub-agent')), element('ul', own.map(link))),
    ];
  }

  decisions.follow(() => {
    showDecision();
    if (!opened || !conversation || drawnStruck === [...decisions.struck].join('\n')) return;
    drawnStruck = [...decisions.struck].join('\n');
    const top = pane.scrollTop;
    const openOnes = [...pane.querySelectorAll('details')].map(({ open }) => open);
    drawConversation(opened);
    for (const [i, details] of [...pane.querySelectorAll('details')].entries()) details.open = openOnes[i];
    pane.scrollTop = top;
  });
  let drawnStruck = '';

  return {
    pane,
    acts,

    /** Shows a session. @param {SessionRow} session */
    async open(session) {
      opened = session;
      conversation = null;
      const { name, id, facts, places, replaced, why, standsFor, parent } = session;
      const [above, below] = belongingTo(session);
      const conversing = element('div.conversation', { 'aria-busy': 'true' });
      const signs = facts.map(({ words, good }) =>
        element('span', { class: good === null ? null : good ? 'ok' : 'no' }, words),
      );
      pane.replaceChildren(
        element('p.back', element('a', { href: '#' }, '‹ All sessions')),
        element('h2', { id: 'opened', tabindex: '-1', 'data-text': name }),
        element('p.soft', foreign(factsOf(session)), ' ', copies('Copy id', id)),
        element(
          'p.facts',
          ...signs,
          places > 0 && element('span.look', count(places, 'place to look at', 'places to look at')),
          replaced !== '' && element('span', `${replaced} replaced`),
          standsFor > 0 && element('span.soft', `stands for ${count(standsFor, 'other')} like it`),
          why !== null && element('span.soft', `not proposed: ${why}`),
        ),
        ...(above ? [above] : []),
        ...(parent === null ? [bar] : [element('div.verdict', striking, marks)]),
        conversing,
        ...(below ? [below] : []),
      );
      pane.scrollTop = 0;
      showDecision();
      const position = sessions.indexOf(session);
      const read = await conversationOf(position);
      // Another one may have been opened meanwhile.
      if (opened !== session) return;
      conversation = read;
      drawnStruck = [...decisions.struck].join('\n');
      drawConversation(session);
      conversing.removeAttribute('aria-busy');
    },

    close() {
      opened = undefined;
      pane.replaceChildren();
    },
  };
}

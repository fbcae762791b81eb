// The page that the command writes: its data stand in it, each conversation compressed, behind the program.

import { drawDesk } from './desk.mjs';

/** @import { Conversation, Desk } from './data.js' */

const figures = /** @type {HTMLElement} */ (document.getElementById('figures'));
/** @type {Desk} */
const desk = JSON.parse(figures.textContent ?? '');

/** All of the page, once it is read: the list is drawn before. */
const read = new Promise((resolve) =>
  document.readyState === 'loading' ? addEventListener('DOMContentLoaded', resolve) : resolve(undefined),
);

/** @param {number} position @returns {Promise<Conversation | null>} */
async function conversationOf(position) {
  if (!desk.sessions[position].isWhole) return null;
  await read;
  const text = document.getElementById(`session-${position}`)?.textContent ?? '';
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
  return new Response(stream).json();
}

const { root } = drawDesk(desk, { conversationOf });
document.title = `${desk.raw ? 'Original text: ' : ''}${root.querySelector('h1')?.textContent}`;
document.getElementById('report')?.append(root);

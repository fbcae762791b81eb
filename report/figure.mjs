import { plot } from '@observablehq/plot';

import { element } from './dom.mjs';

/** @typedef {import('@observablehq/plot').PlotOptions} PlotOptions */

/** The margins of a chart with a slider in it, in pixels: the slider lies over the axes. */
export const LEFT = 48;
export const RIGHT = 16;
export const BOTTOM = 40;

/** The height of such a chart. @param {number} width */
export const heightOf = (width) => (width < 600 ? 220 : 260);

/**
 * An element whose contents `draw` makes for its width in pixels: once it has one, and again when that changes.
 *
 * @param {(width: number) => Node} draw
 */
export function drawn(draw) {
  const frame = element('div');
  let width = 0;
  const redraw = () => {
    if (width > 0) frame.replaceChildren(draw(width));
  };
  // One for each element: the element is free when nothing else refers to it, and its observer with it.
  new ResizeObserver(([{ contentRect }]) => {
    const now = Math.floor(contentRect.width);
    if (now === 0 || now === width) return;
    width = now;
    redraw();
  }).observe(frame);
  return { frame, redraw };
}

/**
 * Returns a chart with the parts that all charts share; `label` describes it in words.
 *
 * @param {string} label
 * @param {PlotOptions & { marks: Array<import('@observablehq/plot').Markish> }} options
 */
export function chart(label, options) {
  const made = plot({
    className: 'plot',
    style: { fontSize: '12px' },
    ...options,
  });
  made.setAttribute('role', 'img');
  made.setAttribute('aria-label', label);
  // The library names the groups of marks too, and only what has a role may have a name.
  for (const group of made.querySelectorAll('g[aria-label]')) group.setAttribute('role', 'group');
  return made;
}

/**
 * @param {string} id
 * @param {[min: number, max: number, step: number]} range
 * @param {number} value
 * @param {(value: number) => void} onInput
 */
export function slider(id, range, value, onInput) {
  const [min, max, step] = range.map(String);
  const input = element('input', {
    ...{ type: 'range', id, min, max, step, value: String(value) },
    input: () => onInput(input.valueAsNumber),
  });
  return input;
}

/**
 * A chart with a line in it that is dragged.
 *
 * @param {HTMLElement} frame
 * @param {HTMLInputElement} input
 * @param {string} label
 * @param {HTMLElement} verdict
 */
export const figureWithSlider = (frame, input, label, verdict) =>
  element(
    'figure',
    element(
      'div.dragged',
      { style: `--left: ${LEFT}px; --right: ${RIGHT}px; --bottom: ${BOTTOM}px` },
      frame,
      input,
    ),
    element('figcaption', element('label', { for: input.id }, label), verdict),
  );

import { plot } from '@observablehq/plot';

import { element } from './dom.mjs';

/** @typedef {import('@observablehq/plot').PlotOptions} PlotOptions */

/**
 * Everything that is drawn again when it gets another width.
 *
 * @type {Map<Element, { width: number, redraw: () => void }>}
 */
const figures = new Map();

const observer = new ResizeObserver((entries) => {
  for (const { target, contentRect } of entries) {
    const width = Math.floor(contentRect.width);
    const known = figures.get(target);
    if (known !== undefined && width > 0 && known.width !== width) {
      known.width = width;
      known.redraw();
    }
  }
});

/**
 * An element whose contents `draw` makes for its width in pixels: once it has one, and again when that changes.
 *
 * @param {(width: number) => Node | Node[]} draw
 * @param {import('./dom.mjs').Attributes} attributes
 */
export function drawn(attributes, draw) {
  const frame = element('div', attributes);
  const state = { width: 0, redraw: () => frame.replaceChildren(...[draw(state.width)].flat()) };
  figures.set(frame, state);
  observer.observe(frame);
  return { frame, redraw: () => state.width > 0 && state.redraw() };
}

/**
 * A chart, with what all of them share; `label` says in words what it shows. Marks that are not there are left out.
 *
 * @param {string} label
 * @param {Omit<PlotOptions, 'marks' | 'style'> & { marks: Array<import('@observablehq/plot').Markish | false>, style?: object }} options
 */
export function chart(label, options) {
  const { marks, style, ...others } = options;
  const made = plot({
    className: 'plot',
    style: { fontSize: '12px', ...style },
    ...others,
    marks: marks.filter((mark) => mark !== false),
  });
  made.setAttribute('role', 'img');
  made.setAttribute('aria-label', label);
  return made;
}

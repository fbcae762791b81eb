import { plot } from '@observablehq/plot';

import { element } from './dom.mjs';

/** Everything that is drawn again when it gets another width. */
const figures = new Map();

const observer = new ResizeObserver((entries) => {
  for (const { target, contentRect } of entries) {
    const width = Math.floor(contentRect.width);
    const known = figures.get(target);
    if (width > 0 && known.width !== width) {
      known.width = width;
      known.redraw();
    }
  }
});

/**
 * An element whose contents `draw` makes for its width in pixels: once it has one, and again when that changes.
 *
 * @param {(width: number) => Node | Node[]} draw
 */
export function drawn(attributes, draw) {
  const frame = element('div', attributes);
  const state = { width: 0, redraw: () => frame.replaceChildren(...[draw(state.width)].flat()) };
  figures.set(frame, state);
  observer.observe(frame);
  return { frame, redraw: () => state.width > 0 && state.redraw() };
}

/** A chart, with what all of them share; `label` says in words what it shows. Marks that are not there are left out. */
export function chart(label, options) {
  const { marks, style, ...others } = options;
  const made = plot({
    className: 'plot',
    style: { fontSize: '12px', ...style },
    ...others,
    marks: marks.filter(Boolean),
  });
  made.setAttribute('role', 'img');
  made.setAttribute('aria-label', label);
  return made;
}

// Makes elements. Text goes in as text nodes and never as HTML: the text of a session may be hostile.

/** @typedef {string | Node | null | undefined | false} Child */

/** @typedef {Child | readonly Child[]} Children */

/**
 * The attributes of an element: a function listens to the event of its name; nothing is set for null, undefined and false.
 *
 * @typedef {Record<string, string | boolean | null | undefined | ((event: any) => void)>} Attributes
 */

/**
 * An element: its tag, with a dot and a class behind it if it has one; then its attributes, if it has any; then its children.
 *
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag | `${Tag}.${string}`} name
 * @param {[Attributes, ...Children[]] | Children[]} content
 */
export function element(name, ...content) {
  const [tag, ...classes] = name.split('.');
  const made = document.createElement(/** @type {Tag} */ (tag));
  if (classes.length > 0) made.className = classes.join(' ');
  const attributes = isAttributes(content[0]) ? content.shift() : {};
  for (const [attribute, value] of Object.entries(/** @type {Attributes} */ (attributes))) {
    if (typeof value === 'function') made.addEventListener(attribute, value);
    else if (value !== null && value !== undefined && value !== false)
      made.setAttribute(attribute, value === true ? '' : value);
  }
  const isThere = (/** @type {unknown} */ child) => child !== null && child !== undefined && child !== false;
  made.append(.../** @type {Array<string | Node>} */ (content.flat().filter(isThere)));
  return made;
}

const isAttributes = (/** @type {Attributes | Children | undefined} */ first) =>
  typeof first === 'object' && first !== null && !Array.isArray(first) && !(first instanceof Node);

/**
 * Text from outside: its writing direction stays its own.
 *
 * @param {string} text
 * @param {Attributes} [attributes]
 */
export function foreign(text, attributes = {}) {
  return element('bdi', attributes, text);
}

/** @param {string} label @param {() => void} click @param {Attributes} [attributes] */
export function action(label, click, attributes = {}) {
  return element('button', { type: 'button', click, ...attributes }, label);
}

/**
 * A button that copies a text, and says that it has.
 *
 * @param {string} label
 * @param {string} text
 */
export function copies(label, text) {
  const button = action(label, async () => {
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = 'Copied';
    } catch {
      button.textContent = 'Not allowed here: select it and copy';
    }
    setTimeout(() => {
      button.textContent = label;
    }, 2000);
  });
  return button;
}

/**
 * Gives the reader a file.
 *
 * @param {string} name
 * @param {Blob} content
 */
export function download(name, content) {
  const href = URL.createObjectURL(content);
  element('a', { href, download: name }).click();
  // The browser has begun to read it by then.
  setTimeout(() => URL.revokeObjectURL(href), 60_000);
}

// Renders the documentation for the site: README.md, SECURITY.md and docs/*.md as pages without scripts.

import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import path from 'node:path';

import GithubSlugger from 'github-slugger';
import MarkdownIt from 'markdown-it';
import anchor from 'markdown-it-anchor';

import { readManifest, root as repository } from './platform.mjs';

const GITHUB = readManifest()
  .repository.url.replace(/^git\+/, '')
  .replace(/\.git$/, '');

/** The page whose lists are the navigation. */
const CONTENTS = 'docs/README.md';

/** Something that has a scheme, and so leaves the site. */
const EXTERNAL = /^[a-z][a-z0-9+.-]*:/i;

/**
 * @typedef {object} Site
 * @property {Map<string, string>} pages the HTML by the path of its file
 * @property {string[]} images paths in the repository, which are those in the site
 */

/**
 * @param {string} [root] the folder of the repository
 * @returns {Site}
 * @throws `Error` that lists the links to files and headings that do not exist
 */
export function renderDocs(root = repository) {
  const docs = readdirSync(path.join(root, 'docs')).filter((name) => name.endsWith('.md'));
  const sources = ['README.md', 'SECURITY.md', ...docs.map((name) => `docs/${name}`)];
  const outputs = new Map(sources.map((source) => [source, outputOf(source)]));
  const known = new Map();
  /** @type {Set<string>} */
  const images = new Set();
  /** @type {string[]} */
  const broken = [];

  /** The headings' ids of a Markdown file. @param {string} file */
  const headings = (file) => {
    if (!known.has(file)) {
      const text = readFileSync(path.join(root, file), 'utf8');
      known.set(
        file,
        new Set(
          [
            ...renderer()
              .render(text)
              .matchAll(/ id="([^"]+)"/g),
          ].map(([, id]) => id),
        ),
      );
    }
    return known.get(file);
  };

  /** What a link in the page of `source` must be. @param {string} source @param {string} link */
  const resolve = (source, link) => {
    if (EXTERNAL.test(link)) return link;
    const [place, fragment] = decodeURI(link).split('#', 2);
    const target = place === '' ? source : path.posix.join(path.posix.dirname(source), place);
    const exists = !target.startsWith('..') && existsSync(path.join(root, target));
    if (!exists || (fragment && target.endsWith('.md') && !headings(target).has(fragment))) {
      broken.push(`${source}: ${link}`);
      return link;
    }
    const hash = fragment ? `#${fragment}` : '';
    const output = outputs.get(target);
    if (output !== undefined) {
      return place === '' ? hash : relative(outputOf(source), output) + hash;
    }
    if (/\.(png|svg)$/.test(target)) {
      images.add(target);
      return relative(outputOf(source), target);
    }
    const kind = statSync(path.join(root, target)).isDirectory() ? 'tree' : 'blob';
    return `${GITHUB}/${kind}/main/${target}${hash}`;
  };

  const template = readFileSync(path.join(repository, 'site', 'page.html'), 'utf8');
  const groups = contentsOf(readFileSync(path.join(root, CONTENTS), 'utf8'));
  const pages = new Map();
  for (const [source, output] of outputs) {
    const text = readFileSync(path.join(root, source), 'utf8');
    const rendered = renderer((link) => resolve(source, link)).render(text);
    // The corner of a table names nothing, and the page's policy allows no styles in elements.
    const content = rendered
      .replaceAll('<th></th>', '<td></td>')
      .replaceAll(/ style="text-align:(right|center)"/g, ' class="$1"');
    const title = /^# (.+)$/m.exec(text)?.[1] ?? source;
    const linkTo = (/** @type {string} */ link) => {
      const target = resolve(CONTENTS, link);
      const href = EXTERNAL.test(target) ? target : relative(output, path.posix.join('docs', target));
      return `href="${escapeHtml(href)}"${href === path.posix.basename(output) ? ' aria-current="page"' : ''}`;
    };
    const parts = {
      TITLE: escapeHtml(`${title.replaceAll('`', '')} – KnowledgePulse native`),
      ROOT: '../'.repeat(output.split('/').length - 1),
      REPOSITORY: GITHUB,
      CONTENT: content,
      PAGES: groups
        .map(({ title, links }) => {
          const items = links.map(({ link, name }) => `<li><a ${linkTo(link)}>${escapeHtml(name)}</a></li>`);
          return `<h2>${escapeHtml(title)}</h2>\n<ul>\n${items.join('\n')}\n</ul>`;
        })
        .join('\n'),
    };
    pages.set(
      output,
      template.replaceAll(/<!-- ([A-Z]+) -->/g, (_, name) => parts[/** @type {keyof typeof parts} */ (name)]),
    );
  }
  if (broken.length > 0)
    throw new Error(`links to nothing:\n${[...new Set(broken)].map((link) => `  ${link}`).join('\n')}`);
  return { pages, images: [...images] };
}

/** The page that a Markdown file becomes. @param {string} source */
function outputOf(source) {
  return source.replace(/(^|\/)README\.md$/, '$1index.md').replace(/\.md$/, '.html');
}

/** @param {string} from the path of a page @param {string} to */
function relative(from, to) {
  return path.posix.relative(path.posix.dirname(from), to);
}

/** @param {string} text */
function escapeHtml(text) {
  return MarkdownIt().utils.escapeHtml(text);
}

/**
 * A renderer of GitHub's Markdown, whose ids of headings are GitHub's.
 *
 * @param {(link: string) => string} [rewrite] changes the addresses of links and images
 */
function renderer(rewrite = (link) => link) {
  const slugger = new GithubSlugger();
  const markdown = new MarkdownIt({ html: true });
  markdown.use(anchor, { slugify: (title) => slugger.slug(title), uniqueSlugStartIndex: 0, tabIndex: false });
  markdown.core.ruler.push('links', ({ tokens }) => {
    for (const token of tokens.flatMap(({ children }) => children ?? [])) {
      const attribute = { link_open: 'href', image: 'src' }[token.type];
      if (attribute !== undefined)
        token.attrSet(attribute, rewrite(/** @type {string} */ (token.attrGet(attribute))));
    }
  });
  // What scrolls must be reachable by keyboard.
  const fence = markdown.renderer.rules.fence;
  markdown.renderer.rules.fence = (...args) =>
    (fence?.(...args) ?? '').replace('<pre>', '<pre tabindex="0">');
  let tables = 0;
  markdown.renderer.rules.table_open = () =>
    `<div class="scroll" tabindex="0" role="region" aria-label="Table ${++tables}">\n<table>\n`;
  markdown.renderer.rules.table_close = () => '</table>\n</div>\n';
  return markdown;
}

/**
 * The lists of the page of contents: a paragraph that ends with a colon is the title of the list that follows.
 *
 * @param {string} text
 */
function contentsOf(text) {
  /** @type {Array<{ title: string, links: Array<{ link: string, name: string }> }>} */
  const groups = [];
  for (const { type, level, content, children } of MarkdownIt().parse(text, {})) {
    if (type !== 'inline') continue;
    if (level === 1 && content.endsWith(':')) groups.push({ title: content.slice(0, -1), links: [] });
    const at = (children ?? []).findIndex(({ type }) => type === 'link_open');
    const [open, name] = (children ?? []).slice(at);
    if (level > 1 && at >= 0)
      groups.at(-1)?.links.push({ link: String(open.attrGet('href')), name: name.content });
  }
  return groups;
}

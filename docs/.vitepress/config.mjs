// The site: README.md, SECURITY.md and docs/*.md. `docs/README.md` is its list of pages.

import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';

import { slug } from 'github-slugger';
import { defineConfig } from 'vitepress';

import { readManifest, root } from '../../scripts/platform.mjs';

const GITHUB = readManifest()
  .repository.url.replace(/^git\+/, '')
  .replace(/\.git$/, '');

/** Folders with Markdown that GitHub alone shows. */
const ELSEWHERE = [
  '__test__',
  'bench',
  'crates',
  'examples',
  'fuzz',
  'model',
  'npm',
  'python',
  'target',
  'tools',
  'wasm',
];

/** The groups of the list of pages: a line that ends with a colon names the list that follows. */
function sidebar() {
  /** @type {import('vitepress').DefaultTheme.SidebarItem[]} */
  const groups = [];
  for (const line of readFileSync(path.join(root, 'docs', 'README.md'), 'utf8').split('\n')) {
    const [, title] = /^(\w.*):$/.exec(line) ?? [];
    if (title) groups.push({ text: title, items: [] });
    const [, text, link] = /^- \[(.+?)\]\((.+?)\)/.exec(line) ?? [];
    if (link) groups.at(-1)?.items?.push({ text, link: `/${path.posix.join('docs', link)}` });
  }
  return groups;
}

/** Lets links to files that are no pages lead to the repository. @param {import('vitepress').MarkdownRenderer} markdown */
function linkToRepository(markdown) {
  markdown.core.ruler.push('repository', ({ tokens, env }) => {
    const folder = path.posix.dirname(env.relativePath);
    for (const token of tokens.flatMap(({ children }) => children ?? [])) {
      const link = token.type === 'link_open' ? token.attrGet('href') : null;
      if (!link || /^([a-z]+:|#|\/)/.test(link)) continue;
      const [file] = path.posix.join(folder, link).split('#');
      const isPage = /^((docs\/)?\w[\w-]*)\.md$/.test(file) && !/^(CHANGELOG|CONTRIBUTING)/.test(file);
      if (isPage || !existsSync(path.join(root, file))) continue;
      token.attrSet('href', `${GITHUB}/blob/main/${path.posix.join(folder, link)}`);
    }
  });
}

export default defineConfig({
  title: 'kp-score',
  description:
    'Finds the sessions of AI agents on your disk that are worth sharing, and makes them fit to share',
  srcDir: root,
  srcExclude: [...ELSEWHERE.map((folder) => `${folder}/**`), 'CHANGELOG.md', 'CONTRIBUTING.md'],
  rewrites: { 'README.md': 'index.md', 'docs/README.md': 'docs/index.md' },
  outDir: path.join(root, 'dist', 'site'),
  cacheDir: path.join(root, 'target', 'vitepress'),
  themeConfig: {
    nav: [
      { text: 'Try it', link: '/try/index.html', target: '_self' },
      { text: 'All pages', link: '/docs/' },
    ],
    sidebar: sidebar(),
    search: { provider: 'local' },
    // The label that a reader of the screen hears, which otherwise is not what the link says.
    notFound: { linkLabel: 'Take me home' },
    socialLinks: [{ icon: 'github', link: GITHUB }],
    outline: [2, 3],
  },
  // GitHub's anchors, because the same links are followed there.
  markdown: {
    anchor: { slugify: (title) => slug(title) },
    config: linkToRepository,
    theme: { light: 'github-light-high-contrast', dark: 'github-dark-high-contrast' },
  },
});

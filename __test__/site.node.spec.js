'use strict';

// The documentation: the pages that its list names, and links to headings. VitePress refuses links to missing pages when it builds the site.

const { execFileSync } = require('node:child_process');
const fs = require('node:fs');
const path = require('node:path');

const { root } = require('./support/paths.js');

const names = fs.readdirSync(path.join(root, 'docs')).filter((name) => name.endsWith('.md'));
const others = ['README.md', 'SECURITY.md', 'model/README.md', 'examples/fleet/README.md'];
const pages = [...others, ...names.map((name) => `docs/${name}`)];
const read = (page) => fs.readFileSync(path.join(root, page), 'utf8');
/** The text without blocks of code, in which `#` begins a comment. */
const proseOf = (page) => read(page).replaceAll(/^```[\s\S]*?^```/gm, '');

/** The anchors of each page's headings. Jest cannot load the package that makes them. */
const anchors = JSON.parse(
  execFileSync(
    process.execPath,
    [
      '--input-type=module',
      '--eval',
      `import GithubSlugger from 'github-slugger';
      const anchorsOf = (titles) => { const slugger = new GithubSlugger(); return titles.map((title) => slugger.slug(title)); };
      console.log(JSON.stringify(JSON.parse(process.argv[1]).map(anchorsOf)));`,
      JSON.stringify(
        pages.map((page) =>
          [...proseOf(page).matchAll(/^#+ (.+)$/gm)].map(([, title]) =>
            title.replaceAll(/[`*]|\[(.+?)\]\(.+?\)/g, '$1'),
          ),
        ),
      ),
    ],
    { cwd: root, encoding: 'utf8' },
  ),
);

it('docs/README.md lists every page', () => {
  const listed = [...read('docs/README.md').matchAll(/^- \[.+?\]\((.+?)\)/gm)].map(([, link]) => link);
  const expected = names.filter((name) => name !== 'README.md');
  expect(listed).toEqual(expect.arrayContaining([...expected, '../SECURITY.md']));
});

it.each(pages)('%s links to files and headings that exist, by the anchors of GitHub', (page) => {
  const broken = [...proseOf(page).matchAll(/\]\(([^)\s]+)\)/g)]
    .map(([, link]) => link)
    .filter((link) => !/^[a-z]+:/.test(link))
    .filter((link) => {
      const [place, anchor] = decodeURI(link).split('#');
      const file = place === '' ? page : path.posix.join(path.posix.dirname(page), place);
      if (file.startsWith('..') || !fs.existsSync(path.join(root, file))) return true;
      return anchor !== undefined && pages.includes(file) && !anchors[pages.indexOf(file)].includes(anchor);
    });
  expect(broken).toEqual([]);
});

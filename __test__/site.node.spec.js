'use strict';

// The documentation as pages: links, anchors and what a reader without scripts needs.

const { execFileSync } = require('node:child_process');
const fs = require('node:fs');
const path = require('node:path');

const { root } = require('./support/paths.js');
const { scratchDirectory } = require('./support/scratch.js');

const scratch = scratchDirectory('site');
const module_ = path.join(root, 'scripts', 'site-docs.mjs');

/** What `renderDocs` returns for a folder with documents, or what it throws. */
function render(folder) {
  const script = `
    import { renderDocs } from ${JSON.stringify(`file://${module_.replaceAll('\\', '/').replace(/^(?!\/)/, '/')}`)};
    try {
      const { pages, images } = renderDocs(${JSON.stringify(folder)});
      console.log(JSON.stringify({ pages: Object.fromEntries(pages), images }));
    } catch (error) {
      console.log(JSON.stringify({ thrown: error.message }));
    }`;
  const args = ['--input-type=module', '--eval', script];
  return JSON.parse(execFileSync(process.execPath, args, { cwd: root, encoding: 'utf8', maxBuffer: 1e8 }));
}

/** A folder with these documents beside those that every folder has. */
function documents(files) {
  const folder = fs.mkdtempSync(path.join(scratch, 'docs-'));
  const all = { 'README.md': '# A\n', 'SECURITY.md': '# B\n', 'docs/README.md': '# C\n', ...files };
  fs.mkdirSync(path.join(folder, 'docs'));
  for (const [name, text] of Object.entries(all)) fs.writeFileSync(path.join(folder, name), text);
  return folder;
}

const { pages, images } = render(root);

it('the site has a page for README.md, SECURITY.md and each file of docs', () => {
  const docs = fs.readdirSync(path.join(root, 'docs')).filter((name) => name.endsWith('.md'));
  const expected = docs.map((name) => `docs/${name === 'README.md' ? 'index' : name.slice(0, -3)}.html`);
  expect(Object.keys(pages).sort()).toEqual(['SECURITY.html', 'index.html', ...expected].sort());
});

it('the site links to pages, anchors, images and files of the repository that exist', () => {
  const idsOf = (page) => new Set([...page.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id));
  // Built beside the documents, by scripts/site.mjs.
  const others = new Set(['site.css', 'try/index.html', ...images]);
  const broken = [];
  for (const [name, page] of Object.entries(pages)) {
    for (const [, link] of page.matchAll(/ (?:href|src)="([^"]+)"/g)) {
      const ours = /^https:\/\/github\.com\/openknowledgepulse\/native\/(?:blob|tree)\/main\/([^#]+)/.exec(
        link,
      );
      if (ours && !fs.existsSync(path.join(root, ours[1]))) broken.push(`${name}: ${link}`);
      if (/^[a-z]+:/.test(link)) continue;
      const [place, fragment] = link.split('#');
      const target = place === '' ? name : path.posix.join(path.posix.dirname(name), place);
      const isThere = fragment
        ? pages[target] !== undefined && idsOf(pages[target]).has(fragment)
        : pages[target] !== undefined || others.has(target);
      if (!isThere) broken.push(`${name}: ${link}`);
    }
  }
  expect(broken).toEqual([]);
});

it('the site leads from each page to all pages that docs/README.md lists', () => {
  const listed = Object.keys(pages).filter((name) => name !== 'index.html' && name !== 'docs/index.html');
  for (const [name, page] of Object.entries(pages)) {
    const navigation = page.slice(page.indexOf('<nav'));
    const targets = [...navigation.matchAll(/href="([^"]+)"/g)].map(([, link]) =>
      path.posix.join(path.posix.dirname(name), link),
    );
    expect(targets).toEqual(expect.arrayContaining(listed));
  }
});

it('the site needs neither scripts nor styles in elements', () => {
  for (const page of Object.values(pages))
    expect(page).not.toMatch(/<script|javascript:| (?:on[a-z]+|style)="/);
});

it.each([
  ['a missing file', '[x](missing.md)', 'missing.md'],
  ['a missing heading of the page', '[x](#missing)', '#missing'],
  ['a missing heading of another page', '[x](../README.md#missing)', '../README.md#missing'],
  ['a missing image', '![x](missing.png)', 'missing.png'],
  ['a file outside the repository', '[x](../../etc)', '../../etc'],
  ['a reference to a missing file', '[x][y]\n\n[y]: missing.md', 'missing.md'],
])('the site refuses a page with a link to %s', (_, markdown, link) => {
  const { thrown } = render(documents({ 'docs/page.md': `# Page\n\n${markdown}\n` }));
  expect(thrown).toBe(`links to nothing:\n  docs/page.md: ${link}`);
});

it('the site has the anchors of GitHub, also for headings that occur twice', () => {
  const headings = '# `kp-score`: what & how?\n\n## Über 1.5\n\n## Twice\n\n## Twice\n';
  const links = '[a](#kp-score-what--how) [b](#über-15) [c](#twice-1)\n';
  expect(render(documents({ 'docs/page.md': headings + links })).thrown).toBeUndefined();
});

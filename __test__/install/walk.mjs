// The commands of README.md and docs/walk.md, word for word, by a user whose npm knows a registry with our packages alone. What
// needs the Hugging Face Hub is left out. Run by `npm run test:wheels`, which builds the program.

import assert from 'node:assert/strict';
import { cpSync, mkdirSync, readdirSync, readFileSync, utimesSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { after, test } from 'node:test';

import { root, temporaryDirectory, venvPython } from '../../scripts/platform.mjs';
import { runSuccessfully } from './processes.mjs';
import { startRegistry } from './registry.mjs';
import { NPM } from './tools.mjs';

/** The disk whose sessions README.md lists. */
const DISK = path.join(root, 'crates', 'command', 'tests', 'transcripts', 'files', 'home');
/** Sessions that were written to just now are left for next time. */
const SETTLED = new Date('2026-04-01');

const scratch = temporaryDirectory('walk');
const [home, work, programs] = ['home', 'work', 'programs'].map((name) => path.join(scratch, name));
const registry = await startRegistry(scratch);
after(() => registry.close());

cpSync(DISK, home, { recursive: true });
for (const name of readdirSync(home, { recursive: true, encoding: 'utf8' }))
  utimesSync(path.join(home, name), SETTLED, SETTLED);
for (const folder of [work, programs]) mkdirSync(folder);
writeFileSync(path.join(home, '.npmrc'), `registry=${registry.url}\nupdate-notifier=false\n`);
const npx = path.join(path.dirname(NPM.at(-1)), 'npx-cli.js');
writeFileSync(path.join(programs, 'npx'), `#!/bin/sh\nexec '${process.execPath}' '${npx}' "$@"\n`, {
  mode: 0o755,
});

/** @param {string} page @param {string} language */
const blocksOf = (page, language) =>
  [...readFileSync(path.join(root, page), 'utf8').matchAll(/^```(\w+)\n(.*?)^```/gms)]
    .filter(([, of]) => of === language)
    .map(([, , text]) => text);

/** @param {string[]} command @param {Record<string, string>} [env] */
const run = (command, env) =>
  runSuccessfully(command, {
    cwd: work,
    home,
    env: { PATH: `${programs}${path.delimiter}${process.env.PATH}`, ...env },
  });

/** Runs a line in a terminal, where each question is answered with yes. @param {string} line */
const type = (line) =>
  run(['sh', '-c', 'printf "y\\n" | script -qec "$LINE" /dev/null'], { LINE: line, PAGER: 'cat' });

for (const page of ['README.md', 'docs/walk.md']) {
  test(`the commands of ${page} end with success`, async () => {
    const lines = blocksOf(page, 'sh')
      .join('')
      .split('\n')
      .filter((line) => line.startsWith('npx kp-score'));
    assert.ok(lines.length > 2);
    for (const line of lines) {
      const [id] = line.includes(' ID ') ? ids('my-sessions') : [];
      await type(id === undefined ? line : line.replace(' ID ', ` ${id} `));
    }
  });
}

test('README.md shows what kp-score lists', async () => {
  const [shown] = blocksOf('README.md', 'console');
  const [, listed] = /^\$ npx (kp-score --quiet)\n/.exec(shown) ?? [];
  const { stdout } = await run(['npx', ...listed.split(' ')]);
  assert.equal(stdout, shown.slice(shown.indexOf('\n') + 1));
});

test("docs/walk.md's program loads the set", async () => {
  const [program] = blocksOf('docs/walk.md', 'python');
  const { stdout } = await run([venvPython, '-c', program.replace('YOU/', '')]);
  assert.match(stdout, new RegExp(`^${ids('my-sessions').length} `));
});

/** @param {string} folder */
function ids(folder) {
  const manifest = readFileSync(path.join(work, folder, 'manifest.jsonl'), 'utf8');
  return manifest
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line).id);
}

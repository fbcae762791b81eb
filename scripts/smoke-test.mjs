// Installs this machine's packages from their tarballs into empty projects, without network and scripts, and scores a trace
// there. Needs nothing but Node.js, so that it runs on every platform of a release.
//
//   node scripts/smoke-test.mjs TARBALL_DIRECTORY
//   node scripts/smoke-test.mjs --published           this version from the registry, with its network

import { execFileSync } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';

import { commandPackages, hostPackages, publishedManifests, tarballName } from './pack.mjs';
import { hostPlatform, isProgram, temporaryDirectory } from './platform.mjs';
import { npm, runScript } from './setup.mjs';

const PROGRAM = `
import { createRequire } from 'node:module';
import { embedderStatus, evaluateValue } from '@knowledgepulse/native';

const trace = {
  task: { objective: 'Find the cause of the failing build' },
  steps: [{ type: 'thought', content: 'The log ends in a linker error.' }, { type: 'observation' }],
  outcome: { confidence: 0.9 },
  metadata: { task_domain: 'code', success: true },
};
const first = await evaluateValue(trace);
const second = await createRequire(import.meta.url)('@knowledgepulse/native').evaluateValue(trace);
console.log(JSON.stringify({ first, second, status: await embedderStatus() }));
`;

/** The scores of PROGRAM's trace, by hand: C = 0.27, D = 0, O = 0.9; N is 0.5, and then 0. */
const SECOND_SCORE = 0.2 * 0.27 + 0.2 * 0.9;
const FIRST_SCORE = SECOND_SCORE + 0.3 * 0.5;

/**
 * Installs packages into an empty project; returns its folder.
 *
 * @param {string | undefined} tarballs their folder; the registry without it
 * @param {string[]} names
 */
function install(tarballs, names) {
  const manifests = publishedManifests().filter(({ name }) => names.includes(name));
  const packages =
    tarballs === undefined
      ? manifests.map(({ name, version }) => `${name}@${version}`)
      : ['--offline', ...manifests.map((manifest) => path.resolve(tarballs, tarballName(manifest)))];
  const project = temporaryDirectory('smoke');
  writeFileSync(path.join(project, 'package.json'), '{ "private": true }');
  npm(['install', '--ignore-scripts', '--no-audit', '--no-fund', ...packages], { cwd: project });
  return project;
}

/** @param {string | undefined} tarballs */
function checkLibrary(tarballs) {
  const project = install(
    tarballs,
    hostPackages().filter((name) => !name.endsWith('-q8')),
  );
  writeFileSync(path.join(project, 'program.mjs'), PROGRAM);
  const output = execFileSync(process.execPath, ['program.mjs'], { cwd: project, encoding: 'utf8' });
  /** @type {{ first: number, second: number, status: import('../index.js').EmbedderStatus }} */
  const { first, second, status } = JSON.parse(output);
  const right = Math.abs(first - FIRST_SCORE) < 1e-5 && Math.abs(second - SECOND_SCORE) < 1e-5;
  if (!status.available || !right) throw new Error(`wrong: ${output}`);
  runCommand(project, 'kp-score-native');
}

/**
 * The command is there under its name, which on Windows takes a script of npm's.
 *
 * @param {string} project
 * @param {string} name
 */
function runCommand(project, name) {
  const page = path.join(project, 'page.html');
  const trace = {
    task: { objective: '' },
    steps: [],
    outcome: { confidence: 1 },
    metadata: { success: true },
  };
  writeFileSync(path.join(project, 'traces.json'), JSON.stringify([trace]));
  const run = (/** @type {string[]} */ ...args) =>
    npm(['exec', '--offline', '--', name, ...args], { cwd: project, stdio: ['ignore', 'pipe', 'inherit'] });
  const output = run('score', 'traces.json', '--format', 'jsonl');
  run('report', 'traces.json', '--out', page, '--quiet');
  // By the default profile: a novelty of 0.5 and an outcome of 1.
  const { score } = JSON.parse(output);
  if (Math.abs(score - (0.35 * 0.5 + 0.25)) > 1e-9 || !existsSync(page)) throw new Error(`wrong: ${output}`);
}

/**
 * Checks the packages in a folder of tarballs, or those of the registry.
 *
 * @param {string | undefined} tarballs
 * @param {{ commandOnly?: boolean }} [options]
 */
export function smokeTest(tarballs, { commandOnly = false } = {}) {
  if (!commandOnly) checkLibrary(tarballs);
  runCommand(install(tarballs, commandPackages()), 'kp-score');
  console.log(`${hostPlatform()}: installed and scored with Node.js ${process.versions.node}`);
}

if (isProgram(import.meta)) {
  await runScript(() => {
    const { values, positionals } = parseArgs({
      options: { published: { type: 'boolean' } },
      allowPositionals: true,
    });
    const [tarballs] = positionals;
    if ((tarballs === undefined) !== (values.published === true)) {
      throw new Error('usage: node scripts/smoke-test.mjs TARBALL_DIRECTORY|--published');
    }
    smokeTest(tarballs);
  });
}

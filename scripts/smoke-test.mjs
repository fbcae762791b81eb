// Installs this machine's packages from their tarballs into an empty project, without network and scripts, and
// scores a trace there. Needs nothing but Node.js, so that it runs on every platform of a release.
//
//   node scripts/smoke-test.mjs TARBALL_DIRECTORY

import { execFileSync } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import path from 'node:path';

import { hostPlatform, readManifest, temporaryDirectory } from './platform.mjs';
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

/** @param {string} tarballs */
function smokeTest(tarballs) {
  const platform = hostPlatform();
  const { version } = readManifest();
  const names = ['native', `native-${platform}`, 'all-minilm-l6-v2'];
  const files = names.map((name) => path.resolve(tarballs, `knowledgepulse-${name}-${version}.tgz`));
  const project = temporaryDirectory('smoke');
  writeFileSync(path.join(project, 'package.json'), '{ "private": true }');
  writeFileSync(path.join(project, 'program.mjs'), PROGRAM);
  npm(['install', '--offline', '--ignore-scripts', '--no-audit', '--no-fund', ...files], { cwd: project });
  const output = execFileSync(process.execPath, ['program.mjs'], { cwd: project, encoding: 'utf8' });
  /** @type {{ first: number, second: number, status: import('../index.js').EmbedderStatus }} */
  const { first, second, status } = JSON.parse(output);
  const right = Math.abs(first - FIRST_SCORE) < 1e-5 && Math.abs(second - SECOND_SCORE) < 1e-5;
  if (!status.available || !right) throw new Error(`wrong: ${output}`);
  checkCommand(project);
  console.log(`${platform}: installed and scored with Node.js ${process.versions.node}`);
}

/**
 * The command is there under its name, which on Windows takes a script of npm's.
 *
 * @param {string} project
 */
function checkCommand(project) {
  const page = path.join(project, 'page.html');
  const trace = {
    task: { objective: '' },
    steps: [],
    outcome: { confidence: 1 },
    metadata: { success: true },
  };
  writeFileSync(path.join(project, 'traces.json'), JSON.stringify([trace]));
  const args = ['score', '--format', 'jsonl', '--report', page, 'traces.json'];
  const output = npm(['exec', '--offline', '--', 'kp-score', ...args], {
    cwd: project,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  // By the default profile: a novelty of 0.5 and an outcome of 1.
  const { score } = JSON.parse(output);
  if (Math.abs(score - (0.35 * 0.5 + 0.25)) > 1e-9 || !existsSync(page)) throw new Error(`wrong: ${output}`);
}

await runScript(() => {
  const [tarballs] = process.argv.slice(2);
  if (!tarballs) throw new Error('usage: node scripts/smoke-test.mjs TARBALL_DIRECTORY');
  smokeTest(tarballs);
});

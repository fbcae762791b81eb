// `npm run test:wheels`: builds the wheels of this machine and the npm package of the same program, installs them into empty
// environments, the wheels from a registry and without Node.js, and runs the transcripts with that program and with the command of
// `@knowledgepulse/native`, and the commands of README.md and docs/walk.md from a registry.

import { spawn } from 'node:child_process';
import { readdirSync, rmSync } from 'node:fs';
import path from 'node:path';
import { setTimeout } from 'node:timers/promises';

import { prepareTools } from '../__test__/install/tools.mjs';
import { freePort } from '../__test__/support/free-port.js';
import { commandPackages, pack } from './pack.mjs';
import {
  assertPublishable,
  builtProgram,
  root,
  temporaryDirectory,
  venvBin,
  venvPython,
} from './platform.mjs';
import { pipInstall, run, runScript, setup } from './setup.mjs';
import { smokeTest } from './smoke-test.mjs';
import { runSuites, transcripts } from './suites.mjs';
import { buildWheels } from './wheels.mjs';

/**
 * Publishes wheels to a registry on this machine, and installs them from there by pip and uv.
 *
 * @param {string} wheels a folder
 */
async function tryPublished(wheels) {
  pipInstall('scripts/registry.txt');
  const port = await freePort();
  const options = ['--interface', '127.0.0.1', '--port', String(port), '--disable-fallback'];
  const everybody = ['--passwords', '.', '--authenticate', '.'];
  const served = temporaryDirectory('registry');
  const server = spawn(path.join(venvBin, 'pypi-server'), ['run', ...options, ...everybody, served], {
    stdio: 'ignore',
  });
  try {
    const url = `http://127.0.0.1:${port}/`;
    while (!(await answers(url))) {
      if (server.exitCode !== null) throw new Error(`the registry ended with code ${server.exitCode}`);
    }
    const uv = path.join(venvBin, 'uv');
    const files = readdirSync(wheels).map((name) => path.join(wheels, name));
    run(uv, ['publish', '--publish-url', url, '--username', 'anyone', '--password', 'any', ...files]);
    const index = `${url}simple/`;
    run(venvPython, ['scripts/try-wheels.py', '--published'], {
      env: { ...process.env, PIP_INDEX_URL: index },
    });
    run(uv, ['tool', 'run', '--no-config', '--no-cache', '--default-index', index, 'kp-score', '--version']);
  } finally {
    server.kill();
  }
}

/** @param {string} url */
async function answers(url) {
  await setTimeout(100);
  return fetch(url).then(
    ({ ok }) => ok,
    () => false,
  );
}

await runScript(async () => {
  await setup();
  prepareTools();
  const wheels = path.join(root, 'target', 'wheels');
  rmSync(wheels, { recursive: true, force: true });
  buildWheels(wheels);
  assertPublishable(builtProgram(), 'bring the program, ');
  const tarballs = temporaryDirectory('tarballs');
  pack(tarballs, commandPackages());
  smokeTest(tarballs, { commandOnly: true });
  await tryPublished(wheels);
  await runSuites([
    {
      name: 'README.md and docs/walk.md, word for word',
      command: process.execPath,
      args: ['--test-reporter=spec', '__test__/install/walk.mjs'],
    },
    transcripts(builtProgram(), 'the transcripts with the program of the wheel'),
    transcripts(
      path.join(root, 'bin', 'kp-score.js'),
      'the transcripts with the command of @knowledgepulse/native',
    ),
  ]);
});

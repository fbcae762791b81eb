// An unusual surrounding does no harm, and a missing library is told, on Node.js and on Bun.

import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';

import { hostPlatform } from '../../scripts/platform.mjs';
import { runtimeFiles } from '../../scripts/stage-runtime.mjs';
import { Project, packageManagers } from './package-managers.mjs';
import { MAIN, PLATFORM } from './packages.mjs';
import { expectNeutral, expectScores, probe, writeProbes } from './probes.mjs';
import { once } from './processes.mjs';
import { runtimes } from './tools.mjs';

/** ONNX Runtime's library, where the package carries one. */
const [LIBRARY] = runtimeFiles(hostPlatform());

/**
 * Registers the cases. Without the platform's package process.spec.js loads it, never.node.spec.js sees that scoring writes nothing, and the
 * specs of the doctor and of the embedder break what is there.
 */
export function checkFailures({ registry, scratch }) {
  const npm = packageManagers.find(({ name }) => name === 'npm');
  const installed = once(async () => {
    const project = new Project(npm, path.join(scratch, 'whole'), { registry: registry.url });
    await project.add(MAIN);
    writeProbes(project.directory);
    return project.directory;
  });
  for (const { name, command } of runtimes().filter(({ name }) => ['Node 20', 'Bun'].includes(name))) {
    const report = async (env) => {
      const directory = await installed();
      return probe([...command, 'require.cjs'], { cwd: directory, home: directory, env });
    };
    test(`HOME is unset, on ${name}`, async () =>
      expectScores(await report({ HOME: undefined, USERPROFILE: undefined }), 'fp32'));
    test(`the library is missing, on ${name}`, { skip: LIBRARY === undefined }, async () => {
      const file = path.join(await installed(), 'node_modules', PLATFORM, LIBRARY);
      fs.renameSync(file, `${file}.away`);
      expectNeutral(await report().finally(() => fs.renameSync(`${file}.away`, file)));
    });
  }
}

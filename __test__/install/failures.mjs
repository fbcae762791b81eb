// What is missing is told as documented, at once, on Node.js and on Bun, and an unusual surrounding does no harm.

import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';

import { hostPlatform } from '../../scripts/platform.mjs';
import { runtimeFiles } from '../../scripts/stage-runtime.mjs';
import { Project, packageManagers } from './package-managers.mjs';
import { MAIN, PLATFORM } from './packages.mjs';
import { expectLoadError, expectNeutral, expectScores, probe, writeProbes } from './probes.mjs';
import { once } from './processes.mjs';
import { READ_ONLY } from './read-only.mjs';
import { runtimes } from './tools.mjs';

/**
 * From the start of a process to its last score: a fraction of a second on an idle machine, and no test may fail
 * because a machine is busy.
 */
const LIMIT = 5000;

/** ONNX Runtime's library, where the package carries one. */
const [LIBRARY] = runtimeFiles(hostPlatform());

/**
 * What an installation lacks, in its `node_modules`, or how it is used; and what then holds, if not that it scores. The specs of the doctor and
 * of the embedder, and cargo's tests of crates/embed, break what is there.
 *
 * @type {Array<{ name: string, lacks?: string, expects?: (report: any) => void, env?: object, readOnly?: boolean }>}
 */
const cases = [
  { name: 'the platform package is missing', lacks: PLATFORM, expects: expectLoadError },
  { name: 'HOME is unset', env: { HOME: undefined, USERPROFILE: undefined } },
  { name: 'the file system is read-only', readOnly: true },
];
if (LIBRARY !== undefined) {
  const lacks = path.join(PLATFORM, LIBRARY);
  cases.push({ name: 'the library is missing', lacks, expects: expectNeutral });
}

/** Registers the cases. */
export function checkFailures({ registry, scratch }) {
  const npm = packageManagers.find(({ name }) => name === 'npm');
  const installed = once(async () => {
    const project = new Project(npm, path.join(scratch, 'whole'), { registry: registry.url });
    await project.add(MAIN);
    writeProbes(project.directory);
    return project.directory;
  });
  const tried = runtimes().filter(({ name, kind }) => name === 'Node 20' || kind === 'Bun');

  for (const { name, lacks, expects, env, readOnly } of cases) {
    for (const runtime of tried) {
      test(`${name}, on ${runtime.name}`, async (context) => {
        if (readOnly && READ_ONLY.reason) {
          return context.skip(READ_ONLY.reason);
        }
        const directory = await installed();
        const command = [...runtime.command, 'require.cjs'];
        const wrapped = readOnly ? READ_ONLY.command(directory, command) : command;
        const [there, away] = [lacks && path.join(directory, 'node_modules', lacks), `${directory}-lacks`];
        if (there) fs.renameSync(there, away);
        const probing = probe(wrapped, { cwd: directory, home: directory, env });
        const report = await probing.finally(() => there && fs.renameSync(away, there));
        context.diagnostic(`${report.milliseconds.toFixed()} ms after the start of the process`);
        if (expects === undefined) return expectScores(report, 'fp32');
        expects(report);
        assert.ok(report.milliseconds < LIMIT, `it took ${report.milliseconds} ms`);
      });
    }
  }
}

// What is missing or broken is told as documented, at once, on Node.js and on Bun.

import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';

import { hostPlatform } from '../../scripts/platform.mjs';
import { runtimeFiles } from '../../scripts/stage-runtime.mjs';
import { check, once } from './cases.mjs';
import { Project, packageManagers } from './package-managers.mjs';
import { FP32, MAIN, PLATFORM } from './packages.mjs';
import { expectLoadError, expectNeutral, expectScores, probe, writeProbes } from './probes.mjs';
import { READ_ONLY } from './read-only.mjs';
import { runtimes } from './tools.mjs';

/**
 * From the start of a process to its last score: a fraction of a second on an idle machine, and no test may fail
 * because a machine is busy.
 */
const LIMIT = 5000;

/** ONNX Runtime's library, where the package carries one. */
const [LIBRARY] = runtimeFiles(hostPlatform());

const WEIGHTS = 'model.safetensors';

/**
 * What is done to an installation, and what then holds: a load error, a neutral status with a reason, or nothing: it works. `damage` is a
 * package that is removed, or one of its files; or what replaces that. The specs of the doctor and of the embedder, and cargo's tests of
 * crates/embed, break copies of the packages in other ways.
 *
 * @type {Array<{ name: string, damage?: [string, string?, ((bytes: Buffer) => Buffer)?], loadError?: string[], neutral?: object, env?: object, readOnly?: boolean }>}
 */
const cases = [
  {
    name: 'the platform package is missing',
    damage: [PLATFORM],
    loadError: [
      ...[PLATFORM, `${process.platform}-${process.arch}`],
      ...['optional dependencies', 'KNOWLEDGEPULSE_NATIVE_ADDON'],
    ],
  },
  {
    name: 'the model is truncated',
    damage: [FP32, WEIGHTS, (bytes) => bytes.subarray(0, bytes.length >> 1)],
    neutral: { code: 'ERR_MODEL_UNUSABLE', reason: /model\.safetensors .*bytes instead of/, warns: true },
  },
  { name: 'HOME is unset', env: { HOME: undefined, USERPROFILE: undefined } },
  { name: 'the file system is read-only', readOnly: true },
];
if (LIBRARY !== undefined) {
  const reason = /does not exist; reinstall .*KNOWLEDGEPULSE_ONNXRUNTIME/;
  const neutral = { code: 'ERR_RUNTIME_UNUSABLE', reason, warns: false };
  cases.push({ name: 'the library is missing', damage: [PLATFORM, LIBRARY], neutral });
}

/** Registers the cases. */
export function checkFailures({ registry, scratch }) {
  const npm = packageManagers.find(({ name }) => name === 'npm');
  const whole = once(async () => {
    const project = new Project(npm, path.join(scratch, 'whole'), { registry: registry.url });
    await project.add(MAIN);
    writeProbes(project.directory);
    return project.directory;
  });
  const tried = runtimes().filter(({ name, kind }) => name === 'Node 20' || kind === 'Bun');

  for (const [index, { name, damage, ...expected }] of cases.entries()) {
    const broken = once(async () => {
      const directory = path.join(scratch, `case ${index}`);
      link(await whole(), directory);
      if (damage) harm(directory, ...damage);
      return directory;
    });
    for (const runtime of tried) {
      check(`${name}, on ${runtime.name}`, async (context) => {
        if (expected.readOnly && READ_ONLY.reason) {
          return context.skip(READ_ONLY.reason);
        }
        const directory = await broken();
        const command = [...runtime.command, 'require.cjs'];
        const wrapped = expected.readOnly ? READ_ONLY.command(directory, command) : command;
        const report = await probe(wrapped, { cwd: directory, home: directory, env: expected.env });
        context.diagnostic(`${report.milliseconds.toFixed()} ms after the start of the process`);
        if (expected.loadError) expectLoadError(report, expected.loadError);
        else if (expected.neutral) expectNeutral(report, expected.neutral);
        else return expectScores(report, 'fp32');
        assert.ok(report.milliseconds < LIMIT, `it took ${report.milliseconds} ms`);
      });
    }
  }
}

/** The same files at another place, without copying their contents. */
function link(from, to) {
  fs.mkdirSync(to);
  for (const entry of fs.readdirSync(from, { withFileTypes: true })) {
    const [source, target] = [path.join(from, entry.name), path.join(to, entry.name)];
    if (entry.isDirectory()) link(source, target);
    else if (entry.isFile()) fs.linkSync(source, target);
  }
}

/** Removes a file of a package in the installation in `directory`, or the package; `change` gives the contents of another. */
function harm(directory, packageName, name = '', change = undefined) {
  const file = path.join(directory, 'node_modules', packageName, name);
  const bytes = change && fs.readFileSync(file);
  // The file is a link, and others must keep what it had.
  fs.rmSync(file, { recursive: true });
  if (change) fs.writeFileSync(file, change(bytes));
}

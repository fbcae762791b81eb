// What is missing or broken is told as documented, at once, on Node.js and on Bun.

import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';

import { addonName, hostPlatform } from '../../scripts/platform.mjs';
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
const ADDON = addonName();

/** What an addon that cannot be loaded is told with, beside the attempts. */
const LOAD_HELP = [
  `${process.platform}-${process.arch}`,
  'optional dependencies',
  'KNOWLEDGEPULSE_NATIVE_ADDON',
];

/**
 * `damage` changes an installation; `file` gives the path of a file in a package of it. What then holds is one of
 * `loadError` (what the message names), `neutral` (the status) and nothing: it works.
 */
const cases = [
  {
    name: 'the platform package is missing',
    damage: ({ remove }) => remove(PLATFORM),
    loadError: [PLATFORM, ...LOAD_HELP],
  },
  {
    name: 'the addon is missing',
    damage: ({ remove }) => remove(PLATFORM, ADDON),
    loadError: [PLATFORM, ...LOAD_HELP],
  },
  {
    name: 'the addon is a text file',
    damage: ({ replace }) => replace(PLATFORM, ADDON, () => 'this is no addon'),
    loadError: [PLATFORM, ADDON, ...LOAD_HELP],
  },
  {
    name: 'the addon is truncated',
    damage: ({ replace }) => replace(PLATFORM, ADDON, half),
    loadError: [PLATFORM, ADDON, 'truncated', ...LOAD_HELP],
  },
  {
    name: 'the model package is missing',
    damage: ({ remove }) => remove(FP32),
    neutral: {
      code: 'ERR_MODEL_NOT_FOUND',
      reason: /install @knowledgepulse\/all-minilm-l6-v2/,
      warns: false,
    },
  },
  ...(LIBRARY === undefined ? [] : brokenLibraries(LIBRARY)),
  {
    name: 'the model is truncated',
    damage: ({ replace }) => replace(FP32, 'model.safetensors', half),
    neutral: { code: 'ERR_MODEL_DAMAGED', reason: /model\.safetensors .*bytes instead of/, warns: true },
  },
  {
    name: 'the tokenizer has a wrong checksum',
    damage: ({ replace }) =>
      replace(FP32, 'tokenizer.json', (bytes) => {
        bytes[bytes.length >> 1] ^= 1;
        return bytes;
      }),
    neutral: { code: 'ERR_MODEL_DAMAGED', reason: /SHA-256/, warns: true },
  },
  {
    name: 'the model is a Git LFS pointer',
    damage: ({ replace }) =>
      replace(
        FP32,
        'model.safetensors',
        () => 'version https://git-lfs.example/spec/v1\noid sha256:0\nsize 9\n',
      ),
    neutral: { code: 'ERR_MODEL_DAMAGED', reason: /Git LFS pointer/, warns: true },
  },
  {
    name: 'the manifest of the model is missing',
    damage: ({ remove }) => remove(FP32, 'manifest.json'),
  },
  { name: 'HOME is unset', env: { HOME: undefined, USERPROFILE: undefined } },
  { name: 'the file system is read-only', readOnly: true },
];

/**
 * Where the package carries ONNX Runtime, that may be broken too.
 *
 * @param {string} library its file
 */
function brokenLibraries(library) {
  return [
    {
      name: 'the library is missing',
      damage: ({ remove }) => remove(PLATFORM, library),
      neutral: {
        code: 'ERR_RUNTIME_NOT_FOUND',
        reason: /does not exist; reinstall .*KNOWLEDGEPULSE_ONNXRUNTIME/,
        warns: false,
      },
    },
    {
      name: 'the library is truncated',
      damage: ({ replace }) => replace(PLATFORM, library, half),
      neutral: { code: 'ERR_RUNTIME_UNUSABLE', reason: /truncated/, warns: true },
    },
    {
      name: 'the library is a text file',
      damage: ({ replace }) => replace(PLATFORM, library, () => 'this is no library'),
      neutral: { code: 'ERR_RUNTIME_UNUSABLE', reason: /no shared library of this platform/, warns: true },
    },
    {
      name: 'the library is a foreign one',
      damage: ({ replace, file }) => replace(PLATFORM, library, () => fs.readFileSync(file(PLATFORM, ADDON))),
      neutral: { code: 'ERR_RUNTIME_UNUSABLE', reason: /OrtGetApiBase/, warns: true },
    },
  ];
}

function half(bytes) {
  return bytes.subarray(0, bytes.length >> 1);
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
      damage?.(toolsFor(directory));
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

/** What damages the installation in `directory`. */
function toolsFor(directory) {
  const file = (...parts) => path.join(directory, 'node_modules', ...parts);
  const remove = (...parts) => fs.rmSync(file(...parts), { recursive: true });
  const replace = (packageName, name, change) => {
    const bytes = fs.readFileSync(file(packageName, name));
    // The file is a link, and others must keep what it had.
    remove(packageName, name);
    fs.writeFileSync(file(packageName, name), change(bytes));
  };
  return { file, remove, replace };
}

// Builds the wheels of PyPI into a folder: kp-score for platforms, this machine's by default, or its model.
//
//   node scripts/wheels.mjs OUTPUT_DIRECTORY [PLATFORM...] [model]

import { copyFileSync, mkdirSync } from 'node:fs';
import path from 'node:path';

import { compilerEnvironment, isGlibc, OLDEST_GLIBC, targetOf } from './build-platform.mjs';
import { copyLicence } from './pack.mjs';
import { builtProgram, hostPlatform, isProgram, root, venvBin, venvPython } from './platform.mjs';
import { INT8_MODEL, pipInstall, run, runScript, setupSteps } from './setup.mjs';

/** The name by which {@link buildWheels} takes the model for one of the platforms. */
const MODEL = 'model';

/** The oldest musl that Python's packages are made for. */
const MUSL = '1.2';

/** The time of the files in a wheel: the earliest that it can tell, whenever it is built. */
const EPOCH = '315532800';

/**
 * @param {string} directory
 * @param {string[]} [names] platforms, or `model`
 */
export function buildWheels(directory, names = [hostPlatform(), MODEL]) {
  setupSteps(['python tools', 'report', ...(names.includes(MODEL) ? ['model', INT8_MODEL] : [])]);
  pipInstall('scripts/wheels.txt');
  for (const name of names) (name === MODEL ? buildModel : buildProgram)(path.resolve(directory), name);
}

/** @param {string} directory */
function buildModel(directory) {
  copyLicence(path.join(root, 'python', 'kp-score-model'));
  run(venvPython, ['-m', 'hatchling', 'build', '--target', 'wheel', '--directory', directory], {
    cwd: path.join(root, 'python', 'kp-score-model'),
  });
}

/**
 * @param {string} directory
 * @param {string} platform
 */
function buildProgram(directory, platform) {
  const project = path.join(root, 'python', 'kp-score');
  // A package's licences must be in its folder.
  copyLicence(project);
  copyFileSync(path.join(root, 'npm', 'THIRD-PARTY-LICENSES'), path.join(project, 'THIRD-PARTY-LICENSES'));
  const options = ['--release', '--locked', '--target', targetOf(platform), '--out', directory];
  if (platform.startsWith('linux-')) {
    const tag = isGlibc(platform) ? `manylinux_${OLDEST_GLIBC}` : `musllinux_${MUSL}`;
    options.push('--zig', '--compatibility', tag.replace('.', '_'));
  }
  run(path.join(venvBin, 'maturin'), ['build', ...options], {
    cwd: project,
    env: { ...compilerEnvironment(platform), SOURCE_DATE_EPOCH: EPOCH },
  });
  // The packages of npm have the same program.
  const program = builtProgram(platform);
  mkdirSync(path.dirname(program), { recursive: true });
  copyFileSync(path.join(root, 'target', targetOf(platform), 'release', path.basename(program)), program);
}

if (isProgram(import.meta)) {
  await runScript(() => {
    const [directory, ...names] = process.argv.slice(2);
    if (!directory) throw new Error('usage: node scripts/wheels.mjs OUTPUT_DIRECTORY [PLATFORM...] [model]');
    buildWheels(directory, names.length > 0 ? names : undefined);
  });
}

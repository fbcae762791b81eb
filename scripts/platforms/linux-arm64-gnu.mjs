// linux-arm64-gnu: built as for a release, and run under QEMU.

import path from 'node:path';

import { pack } from '../pack.mjs';
import { readManifest } from '../platform.mjs';
import { crateChecks } from './crates.mjs';
import { makeProject, smokeChecks } from './smoke.mjs';
import { debianCompiler, execute, fetchNode, installDebianPackages, logFile, workshop } from './tools.mjs';

const platform = 'linux-arm64-gnu';
const QEMU = 'qemu-aarch64-static';
const COMPILER = ['libstd-rust-web-dev:arm64', 'gcc-aarch64-linux-gnu', 'libc6-dev-arm64-cross'];
const EMULATOR = ['qemu-user-static', 'libc6:arm64', 'libgcc-s1:arm64', 'libstdc++6:arm64'];
/**
 * Everything that QEMU knows but SME: with that, ONNX Runtime's int8 is wrong under QEMU 7.2, and no Linux machine at hand tells which
 * of the two is at fault.
 */
const PROCESSOR = { QEMU_CPU: 'max,sme=off' };
/** All kernels that the built-in engine has for arm64. */
const kernels = () => ['neon-i8mm', 'neon-dot', 'neon', 'portable'];

const targetDirectory = path.join(workshop, platform, 'target');

/** @type {import('./smoke.mjs').Runner & { project: string }} */
let runner;

const compiler = () => {
  installDebianPackages([...COMPILER, ...EMULATOR]);
  return { ...debianCompiler(), ...PROCESSOR, CARGO_TARGET_DIR: targetDirectory };
};

/** @type {import('./tools.mjs').Platform} */
export default {
  platform,
  checks: [
    {
      name: 'build and pack, as for a release',
      essential: true,
      run: () => {
        const log = logFile(`${platform}-build`);
        execute(process.execPath, ['scripts/build-platform.mjs', platform], {
          env: compiler(),
          log,
          minutes: 60,
        });
        const { name } = readManifest();
        const tarballs = pack(path.join(workshop, platform, 'tarballs'), [`${name}-${platform}`, name]);
        const project = makeProject(platform, tarballs);
        runner = { command: QEMU, args: [fetchNode('linux-arm64')], env: PROCESSOR, project };
      },
    },
    ...smokeChecks(platform, () => runner, { kernels }),
    ...crateChecks({
      platform,
      target: 'aarch64-unknown-linux-gnu',
      env: () => ({
        ...compiler(),
        CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER: 'aarch64-linux-gnu-gcc',
        CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER: QEMU,
      }),
      emulated: true,
      kernels,
    }),
  ],
};

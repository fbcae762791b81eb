// linux-x64-musl: built as for a release. No Node.js for musl runs on a Linux with glibc, so a C program on musl's own loader
// loads the addon; the Rust tests are static programs.

import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';

import { addonName, platformDirectory, venvPython } from '../platform.mjs';
import { crateChecks } from './crates.mjs';
import {
  debianCompiler,
  execute,
  installDebianPackages,
  installZig,
  logFile,
  unpackDebianPackage,
  workshop,
} from './tools.mjs';

const platform = 'linux-x64-musl';
const target = 'x86_64-unknown-linux-musl';
const directory = path.join(workshop, platform);
const addon = path.join(platformDirectory(platform), addonName(platform));

const env = () => ({
  ...debianCompiler({ sources: true }),
  CARGO_TARGET_DIR: path.join(directory, 'target'),
  PATH: `${installZig()}${path.delimiter}${process.env.PATH}`,
});

/** A compiler that leaves a static program's first and last files to the linker. */
const WRAPPER = `#!/bin/sh
case " $* " in
  *" --target ${target} "*) exec "$@" -C link-self-contained=no ;;
  *) exec "$@" ;;
esac
`;

/** The same for the wheel: maturin replaces flags in the environment. */
function wheelEnv() {
  const wrapper = path.join(directory, 'rustc-for-zig');
  mkdirSync(directory, { recursive: true });
  writeFileSync(wrapper, WRAPPER, { mode: 0o755 });
  return { ...env(), RUSTC_WRAPPER: wrapper };
}

/** Loads a library and looks for the function by which Node.js enters it. */
const LOADER = `
  #include <dlfcn.h>
  #include <stdio.h>
  int main(int count, char **arguments) {
    void *library = dlopen(arguments[1], RTLD_NOW);
    if (!library || !dlsym(library, "napi_register_module_v1")) {
      puts(dlerror());
      return 1;
    }
    return 0;
  }
`;

/** @type {import('./tools.mjs').Platform} */
export default {
  platform,
  checks: [
    {
      name: 'build, as for a release',
      essential: true,
      run: () => {
        const log = logFile(`${platform}-build`);
        execute(process.execPath, ['scripts/build-platform.mjs', platform], { env: env(), log, minutes: 60 });
      },
    },
    {
      name: 'the addon needs the C library alone',
      run: () => {
        installDebianPackages(['binutils']);
        const section = execFileSync('objdump', ['--private-headers', addon], { encoding: 'utf8' });
        const needed = [...section.matchAll(/^\s*NEEDED\s+(\S+)/gm)].map(([, name]) => name);
        if (needed.join() !== 'libc.so')
          throw new Error(`it needs ${needed.join(', ') || 'nothing, so it is not for musl'}`);
      },
    },
    {
      name: 'musl loads the addon with all it needs',
      run: () => {
        mkdirSync(directory, { recursive: true });
        const [source, program] = ['c', 'out'].map((ending) => path.join(directory, `load.${ending}`));
        writeFileSync(source, LOADER);
        const log = logFile(`${platform}-load`);
        installZig();
        const zig = [
          '-m',
          'ziglang',
          'cc',
          '-target',
          'x86_64-linux-musl',
          '-dynamic',
          source,
          '-o',
          program,
        ];
        execute(venvPython, zig, { log });
        // musl's library is its loader too.
        const musl = path.join(unpackDebianPackage('musl'), 'lib', 'x86_64-linux-musl', 'libc.so');
        execute(musl, [program, addon], { log });
      },
    },
    {
      name: 'the wheel, installed, scores',
      run: () => {
        const log = logFile(`${platform}-wheel`);
        const wheels = path.join(directory, 'wheels');
        const build = ['scripts/wheels.mjs', wheels, platform, 'model'];
        execute(process.execPath, build, { env: wheelEnv(), log, minutes: 60 });
        // The program is static, so it runs here too.
        const tag = 'musllinux_1_2_x86_64';
        execute(venvPython, ['scripts/try-wheels.py', wheels, '--platform', tag], { log });
      },
    },
    ...crateChecks({
      platform,
      target,
      cargo: 'cargo-zigbuild',
      // zig brings the files with which a static program begins and ends; Debian's compiler expects to have its own.
      env: () => ({
        ...env(),
        CARGO_TARGET_X86_64_UNKNOWN_LINUX_MUSL_RUSTFLAGS: '-C link-self-contained=no',
      }),
      emulated: false,
    }),
  ],
};

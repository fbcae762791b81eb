// `npm run check`: formats, lints, types, and that generated files are committed as they are generated.

import { execFileSync } from 'node:child_process';
import path from 'node:path';

import { root, venvBin } from './platform.mjs';
import { pipInstall, RUST_TEST_OPTIONS, runScript, setup } from './setup.mjs';

/** @type {Array<[command: string, args: string[]]>} */
const checks = [
  ['cargo', ['fmt', '--all', '--check']],
  ['cargo', ['clippy', ...RUST_TEST_OPTIONS, '--all-targets', '--', '--deny', 'warnings']],
  [
    process.execPath,
    ['node_modules/@biomejs/biome/bin/biome', 'ci', ...(process.stdout.isTTY ? [] : ['--colors=off'])],
  ],
  // Types: of the code for Node.js, and of the pages, which run in a browser.
  [process.execPath, ['node_modules/typescript/bin/tsc', '--project', '.']],
  [process.execPath, ['node_modules/typescript/bin/tsc', '--project', 'report']],
  [process.execPath, ['node_modules/typescript/bin/tsc', '--project', 'wasm']],
  // Both check the published files: whether every way to import them finds code and types.
  [process.execPath, ['node_modules/publint/src/cli.js', '--strict']],
  [
    process.execPath,
    ['node_modules/@arethetypeswrong/cli/dist/index.js', '--pack', '.', '--no-color', '--no-emoji'],
  ],
  // Both lint the workflows.
  [path.join(venvBin, 'actionlint'), []],
  [path.join(venvBin, 'zizmor'), ['--offline', '--pedantic', '--quiet', '.github']],
  [process.execPath, ['scripts/third-party.mjs']],
  ['git', ['diff', '--exit-code', '--', 'Cargo.lock', 'package-lock.json', 'npm/THIRD-PARTY-LICENSES']],
];

await runScript(async () => {
  await setup();
  pipInstall('.github/lint.txt');
  for (const [command, args] of checks) {
    console.log(`\n── ${path.basename(command)} ${args.join(' ')}`);
    execFileSync(command, args, { cwd: root, stdio: 'inherit' });
  }
});

'use strict';

// The types resolve and hold in a project that has installed the package, whatever it resolves modules by.

const fs = require('node:fs');
const path = require('node:path');

const { root } = require('./support/paths.js');
const { readmeExample } = require('./support/readme.js');
const { run } = require('./support/run-script.js');
const { copyPackage, scratchDirectory } = require('./support/scratch.js');

const scratch = scratchDirectory('types');

/** The newest TypeScript has dropped `node10`, which many projects still resolve by. */
const RESOLUTIONS = {
  node10: { compiler: 'typescript-5', module: 'commonjs' },
  node16: { compiler: 'typescript', module: 'node16' },
  nodenext: { compiler: 'typescript', module: 'nodenext' },
  bundler: { compiler: 'typescript', module: 'esnext' },
};

beforeAll(() => {
  copyPackage(path.join(scratch, 'node_modules', '@knowledgepulse', 'native'));
  fs.cpSync(path.join(__dirname, 'types'), path.join(scratch, 'types'), { recursive: true });
  fs.mkdirSync(path.join(scratch, 'readme'));
  fs.writeFileSync(path.join(scratch, 'readme', 'example.mjs'), readmeExample().script);
  const console = 'declare const console: { log(...values: string[]): void };';
  fs.writeFileSync(path.join(scratch, 'readme', 'console.d.ts'), console);
});

test.each(Object.entries(RESOLUTIONS))('moduleResolution %s', async (moduleResolution, settings) => {
  const { compiler, module } = settings;
  const project = path.join(scratch, `${moduleResolution}.json`);
  const compilerOptions = { module, moduleResolution, allowJs: true, checkJs: true };
  const include = ['types/**/*.ts'];
  // The example of the README awaits at its top level, which only modules may.
  if (module !== 'commonjs') include.push('readme/*');
  const config = { extends: './types/tsconfig.json', compilerOptions, include };
  fs.writeFileSync(project, JSON.stringify(config));
  const tsc = path.join(root, 'node_modules', compiler, 'bin', 'tsc');
  const { code, stdout } = await run(process.execPath, [tsc, '--project', project]);
  expect({ code, stdout }).toEqual({ code: 0, stdout: '' });
});

test('a pool of the package pg is one for a store', async () => {
  const tsc = path.join(root, 'node_modules', 'typescript', 'bin', 'tsc');
  const file = path.join(__dirname, 'store', 'pool.ts');
  const flags = ['--noEmit', '--strict', '--module', 'nodenext', '--target', 'es2022', '--types', 'node'];
  const args = [tsc, '--ignoreConfig', ...flags, '--skipLibCheck', file];
  const { code, stdout } = await run(process.execPath, args, {}, root);
  expect({ code, stdout }).toEqual({ code: 0, stdout: '' });
});

'use strict';

// The types resolve and hold in a project that has installed the package, whatever it resolves modules by.

const fs = require('node:fs');
const path = require('node:path');

const { root } = require('./support/paths.js');
const { apiProgram, readmeExample } = require('./support/readme.js');
const { run } = require('./support/run-script.js');
const { copyPackage, linkPackages, scratchDirectory } = require('./support/scratch.js');

const scratch = scratchDirectory('types');

/** The newest compiler, and the oldest one that users may have. */
const [NEWEST, OLDEST] = ['typescript', 'typescript-5.4'];

/** Which compiler resolves modules by which rules. The newest has dropped `node10`, which many projects still use. */
const RESOLUTIONS = [
  ['node10', 'commonjs', OLDEST],
  ['node16', 'node16', OLDEST],
  ['nodenext', 'nodenext', NEWEST],
  ['bundler', 'esnext', NEWEST],
];

beforeAll(() => {
  copyPackage(path.join(scratch, 'node_modules', '@knowledgepulse', 'native'));
  fs.cpSync(path.join(__dirname, 'types'), path.join(scratch, 'types'), { recursive: true });
  fs.mkdirSync(path.join(scratch, 'readme'));
  fs.writeFileSync(path.join(scratch, 'readme', 'example.mjs'), readmeExample().script);
  const console =
    'declare const console: { log(...values: unknown[]): void; error(...values: unknown[]): void };';
  fs.writeFileSync(path.join(scratch, 'readme', 'console.d.ts'), console);
});

test.each(RESOLUTIONS)('programs with moduleResolution %s and module %s compile with %s', async (...row) => {
  const [moduleResolution, module, compiler] = row;
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

test.each([
  [NEWEST, 'nodenext', 'mts'],
  [NEWEST, 'nodenext', 'cts'],
  [OLDEST, 'node16', 'mts'],
  [OLDEST, 'node16', 'cts'],
])(
  'the program of docs/api.md compiles with %s as %s in a .%s file, and runs',
  async (compiler, module, ending) => {
    const directory = path.join(scratch, `program-${compiler}-${ending}`);
    fs.mkdirSync(directory);
    const program = apiProgram();
    expect(program.trimEnd().split('\n').length).toBeLessThanOrEqual(85);
    fs.writeFileSync(path.join(directory, `program.${ending}`), program);
    fs.copyFileSync(path.join(scratch, 'readme', 'console.d.ts'), path.join(directory, 'console.d.ts'));
    const compilerOptions = { module, moduleResolution: module, noEmit: false };
    const config = { extends: '../types/tsconfig.json', compilerOptions, include: ['*'] };
    fs.writeFileSync(path.join(directory, 'tsconfig.json'), JSON.stringify(config));
    const tsc = path.join(root, 'node_modules', compiler, 'bin', 'tsc');
    const compiled = await run(process.execPath, [tsc, '--project', directory]);
    expect({ code: compiled.code, stdout: compiled.stdout }).toEqual({ code: 0, stdout: '' });
    linkPackages(directory, { '@knowledgepulse/native': root });
    const file = path.join(directory, `program.${ending.replace('ts', 'js')}`);
    for (const like of ['nothing', /kp:trace:[\w-]+/]) {
      const { code, stdout, stderr } = await run(process.execPath, [file], {}, directory);
      expect({ code, stderr }).toEqual({ code: 0, stderr: expect.stringMatching(/^\[?line 2|^line 2/) });
      expect(stdout).toMatch(
        new RegExp(`^score 0\\.\\d\\d, novelty \\d\\.\\d\\d, like ${like.source ?? like}$`, 'm'),
      );
      expect(stdout).toMatch(/^1 of 1$/m);
      expect(stdout).toMatch(/^kp:trace:[\w-]+ \d email$/m);
    }
  },
);

test('a pool of the package pg compiles as the pool of a PostgresStore', async () => {
  const tsc = path.join(root, 'node_modules', NEWEST, 'bin', 'tsc');
  const file = path.join(__dirname, 'store', 'pool.ts');
  const flags = ['--noEmit', '--strict', '--module', 'nodenext', '--target', 'es2022', '--types', 'node'];
  const args = [tsc, '--ignoreConfig', ...flags, '--skipLibCheck', file];
  const { code, stdout } = await run(process.execPath, args, {}, root);
  expect({ code, stdout }).toEqual({ code: 0, stdout: '' });
});

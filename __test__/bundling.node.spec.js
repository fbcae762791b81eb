'use strict';

// The package in the hands of bundlers, compilers and test runners, each in a process of its own.

const { spawnSync } = require('node:child_process');
const fs = require('node:fs');
const path = require('node:path');

const loader = require('../lib/loader.js');
const { scoreOf } = require('./oracle/score.js');
const { makeTrace } = require('./support/make-trace.js');
const { modelDirectory, root } = require('./support/paths.js');
const { run, success } = require('./support/run-script.js');
const { copyModel, copyPackage, linkPackages, scratchDirectory } = require('./support/scratch.js');

const scratch = scratchDirectory('bundling');
const trace = JSON.stringify(makeTrace());

/** A project that has installed the package, with `files`. */
function project(name, files) {
  const directory = path.join(scratch, name);
  copyPackage(path.join(directory, 'node_modules', '@knowledgepulse', 'native'));
  linkPackages(directory, {
    [`@knowledgepulse/native-${path.basename(loader.directory)}`]: loader.directory,
  });
  copyModel(path.join(directory, 'node_modules', '@knowledgepulse', 'all-minilm-l6-v2'));
  for (const [file, contents] of Object.entries({ 'package.json': '{ "name": "project" }', ...files })) {
    fs.mkdirSync(path.dirname(path.join(directory, file)), { recursive: true });
    fs.writeFileSync(path.join(directory, file), contents);
  }
  return directory;
}

/** Runs a tool of the repository in `directory`. */
const tool = (script, args, directory, env) =>
  success(run(process.execPath, [path.join(root, 'node_modules', script), ...args], env, directory));

const output = async (...command) => JSON.parse((await success(run(...command))).stdout);

// Without the file that is compiled alone.
const tree = path.join(__dirname, 'types', 'sdk');
const files = fs.readdirSync(tree, { recursive: true }).filter((file) => /(?<!use)\.ts$/.test(file));
const sources = Object.fromEntries(
  files.map((file) => [`src/${file}`, fs.readFileSync(path.join(tree, file), 'utf8')]),
);
const use = `(async () => {
    const score = await sdk.evaluateValue(${trace});
    const cache = sdk._getLocalCache();
    const { cleaned } = sdk.cleanPii('mail bob@example.com');
    console.log(JSON.stringify({ score, size: cache.size, isCache: cache instanceof sdk.VectorCache, cleaned }));
  })();`;
const scripts = {
  'use.mjs': `import * as sdk from './dist/index.mjs';\n${use}`,
  'use.cjs': `const sdk = require('./dist/index.cjs');\n${use}`,
};
test("the SDK's modules as one-line re-exports work, bundled by tsup", async () => {
  const dependencies = { '@knowledgepulse/native': '*' };
  const directory = project('tsup', {
    ...sources,
    ...scripts,
    // What a project depends on is external by default.
    'package.json': JSON.stringify({ name: 'project', type: 'module', dependencies }),
    'tsup.config.mjs': `export default {
        entry: ['src/index.ts'],
        format: ['esm', 'cjs'],
        outExtension: ({ format }) => ({ js: format === 'esm' ? '.mjs' : '.cjs' }),
      };`,
  });
  await tool('tsup/dist/cli-default.js', ['--silent'], directory);
  for (const script of Object.keys(scripts)) {
    expect(await output(process.execPath, [path.join(directory, script)])).toEqual({
      ...{ score: expect.closeTo(scoreOf(makeTrace(), 0.5), 6), size: 1, isCache: true },
      cleaned: 'mail [REDACTED:email]',
    });
  }
});

describe('bun build --compile', () => {
  const bun = path.join(root, 'node_modules', 'bun', 'bin', 'bun.exe');
  const main = `import { embedderStatus, evaluateValue } from '@knowledgepulse/native';
    const scores = [await evaluateValue(${trace}), await evaluateValue(${trace})];
    console.log(JSON.stringify({ scores, status: await embedderStatus() }));`;
  const installed = path.join(scratch, 'installed');
  const program = path.join(installed, process.platform === 'win32' ? 'program.exe' : 'program');

  async function compile(directory, outfile) {
    const args = ['build', '--compile', 'main.mjs', '--outfile', outfile];
    await success(run(bun, args, {}, directory));
    fs.rmSync(directory, { recursive: true });
  }

  beforeAll(async () => {
    const directory = project('compile', { 'main.mjs': main });
    // Bun would note where the model is on this machine; a program is run elsewhere.
    fs.rmSync(path.join(directory, 'node_modules', '@knowledgepulse', 'all-minilm-l6-v2'), {
      recursive: true,
    });
    fs.mkdirSync(installed);
    await compile(directory, program);
  });

  test('bun build --compile: with the model in it, it is one file that scores by itself', async () => {
    const example = fs.readFileSync(path.join(root, 'examples', 'one-file.mjs'), 'utf8');
    const directory = project('one-file', { 'main.mjs': example });
    linkPackages(directory, { '@knowledgepulse/all-minilm-l6-v2-q8': `${modelDirectory}-q8` });
    const alone = path.join(scratch, 'alone');
    fs.mkdirSync(alone);
    const file = path.join(alone, path.basename(program));
    await compile(directory, file);
    expect(fs.readdirSync(alone)).toEqual([path.basename(file)]);
    const { status, stdout, stderr } = spawnSync(file, {
      cwd: alone,
      env: {},
      input: `${trace}\n${trace}\n`,
      encoding: 'utf8',
    });
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    const [first, second] = stdout.trim().split('\n').map(Number);
    expect(first).toBeCloseTo(scoreOf(makeTrace(), 0.5), 6);
    expect(second).toBeCloseTo(scoreOf(makeTrace(), 0), 6);
  });

  test('bun build --compile: the program scores with a novelty of 0.5, and says why', async () => {
    const { scores, status } = await output(program, [], {}, installed);
    for (const score of scores) expect(score).toBeCloseTo(scoreOf(makeTrace(), 0.5), 12);
    expect(status.available).toBe(false);
    expect(status.code).toBe('ERR_MODEL_NOT_FOUND');
    expect(status.reason).toContain('KNOWLEDGEPULSE_MODEL_DIR');
  });

  test('bun build --compile is complete when the variable points to a model', async () => {
    const env = { KNOWLEDGEPULSE_MODEL_DIR: modelDirectory };
    const { scores, status } = await output(program, [], env, installed);
    expect(status).toMatchObject({ available: true, modelDirectory, engine: 'builtin' });
    expect(scores[0]).toBeCloseTo(scoreOf(makeTrace(), 0.5), 6);
    expect(scores[1]).toBeCloseTo(scoreOf(makeTrace(), 0), 6);
  });
});

for (const pool of ['threads', 'forks']) {
  test(`Vitest scores in its pool of ${pool}`, async () => {
    const test = `
        import { expect, test } from 'vitest';
        import { _getLocalCache, embedderStatus, evaluateValue, VectorCache } from '@knowledgepulse/native';
        const trace = ${trace};
        test('scores', async () => {
          const first = await evaluateValue(trace);
          expect(await embedderStatus()).toMatchObject({ available: true });
          expect(await evaluateValue(trace)).toBeLessThanOrEqual(first);
          expect(_getLocalCache()).toBeInstanceOf(VectorCache);
          expect(() => new VectorCache({ dimensions: 3 }).add([1])).toThrow(RangeError);
          await expect(evaluateValue({})).rejects.toThrow(TypeError);
        });`;
    const directory = project(`vitest-${pool}`, { 'one.test.mjs': test, 'two.test.mjs': test });
    linkPackages(directory, { vitest: path.join(root, 'node_modules', 'vitest') });
    const { stdout } = await tool('vitest/vitest.mjs', ['run', '--pool', pool], directory, {
      NO_COLOR: '1',
    });
    expect(stdout).toMatch(/Tests +2 passed/);
  });
}

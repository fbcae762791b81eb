'use strict';

// `kp-score doctor` on healthy and broken installations.

const fs = require('node:fs');
const path = require('node:path');

const { embedderStatus } = require('..');
const { render } = require('../lib/doctor/doctor.js');
const { version } = require('../package.json');
const { addon } = require('./support/addon.js');
const { modelDirectory, root } = require('./support/paths.js');
const { run } = require('./support/run-script.js');
const { copyModel, copyPackage, replaceFile, scratchDirectory, writerIn } = require('./support/scratch.js');

const scratch = scratchDirectory('doctor');
const write = writerIn(scratch);

/** The files of the fp32 model by name, as its manifest describes them. */
function manifestFiles() {
  const manifest = JSON.parse(fs.readFileSync(path.join(modelDirectory, 'manifest.json'), 'utf8'));
  return Object.entries(manifest.files);
}

/** Runs the command line of the package in `from`. */
const native = (args, { env, from = root } = {}) =>
  run(process.execPath, [path.join(from, 'bin', 'kp-score.js'), ...args], env);

async function report(options) {
  const { code, signal, stdout, stderr } = await native(['doctor', '--json'], options);
  expect({ signal, stderr }).toEqual({ signal: null, stderr: '' });
  const parsed = JSON.parse(stdout);
  expect(code).toBe(parsed.healthy ? 0 : 1);
  return parsed;
}

describe('a healthy installation', () => {
  test('kp-score doctor --json tells everything of a healthy installation', async () => {
    const found = await report();
    expect(found).toEqual({
      healthy: true,
      version,
      directory: root,
      platform: { os: process.platform, arch: process.arch },
      engine: { name: 'node', version: process.versions.node },
      addon,
      embedder: await embedderStatus(),
      checksums: Object.fromEntries(manifestFiles().map(([name, { sha256 }]) => [name, sha256])),
      embedding: {
        text: 'This is an example sentence',
        loadMilliseconds: expect.any(Number),
        milliseconds: expect.any(Number),
        largestDifference: expect.any(Number),
        tolerance: 1e-5,
      },
      residentBytes: expect.any(Number),
      freeBytes: expect.any(Number),
      warnings: [],
      problems: [],
    });
    expect(found.embedding.milliseconds).toBeGreaterThan(0);
    expect(found.embedding.loadMilliseconds).toBeGreaterThan(0);
    expect(found.embedding.largestDifference).toBeLessThan(1e-5);
    // The weights alone are 90 MB.
    expect(found.residentBytes).toBeGreaterThan(90e6);
  });

  test('kp-score doctor says the same in text', async () => {
    const { code, stdout, stderr } = await native(['doctor']);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const { kernel } = await embedderStatus();
    const checksums = manifestFiles().map(([name, { sha256 }]) => `${name}: ${sha256}`);
    for (const part of [version, addon, `kernel: ${kernel}`, modelDirectory, ...checksums]) {
      expect(stdout).toContain(part);
    }
    expect(stdout.trimEnd().endsWith('Healthy.')).toBe(true);
  });

  test('kp-score doctor holds the int8 model to a tolerance of its own', async () => {
    const found = await report({ env: { KNOWLEDGEPULSE_DTYPE: 'q8' } });
    expect(found.problems).toEqual([]);
    expect(found.embedder.dtype).toBe('q8');
    expect(found.embedding.tolerance).toBe(1e-2);
    expect(found.embedding.largestDifference).toBeGreaterThan(1e-5);
  });

  test('kp-score doctor of a model without a manifest is healthy, without checksums', async () => {
    const directory = copyModel(path.join(scratch, 'no-manifest'));
    fs.rmSync(path.join(directory, 'manifest.json'));
    const env = { KNOWLEDGEPULSE_MODEL_DIR: directory };
    const found = await report({ env });
    expect(found).not.toHaveProperty('checksums');
    expect(found).toMatchObject({
      healthy: true,
      embedder: { modelDirectory: directory },
    });
  });

  test('kp-score doctor passes over what is printed while it examines', async () => {
    const prelude = write('prints.cjs', "console.log('loaded');");
    const env = { NODE_OPTIONS: `--require ${JSON.stringify(prelude)}` };
    const { code, stdout } = await native(['doctor'], { env });
    expect([code, stdout.trimEnd().split('\n').at(-1)]).toEqual([0, 'Healthy.']);
  });

  test('kp-score doctor warns of a variable that is ignored', async () => {
    const found = await report({ env: { KNOWLEDGEPULSE_THREADS: 'many' } });
    expect(found.healthy).toBe(true);
    expect(found.warnings).toHaveLength(1);
    expect(found.warnings[0].code).toBe('ERR_INVALID_OPTION');
    expect(found.warnings[0].message).toContain('KNOWLEDGEPULSE_THREADS');
  });
});

describe('a broken installation', () => {
  /** A copy of the fp32 model in which `change` was done to the bytes of a file; without a manifest, unless it is kept. */
  const changedModel = (name, file, change, { keeps = false } = {}) => {
    const directory = copyModel(path.join(scratch, name));
    if (!keeps) fs.rmSync(path.join(directory, 'manifest.json'));
    replaceFile(path.join(directory, file), change(fs.readFileSync(path.join(modelDirectory, file))));
    return { KNOWLEDGEPULSE_MODEL_DIR: directory };
  };
  const flipBit = (bytes) => {
    bytes[20_000_000] ^= 1;
    return bytes;
  };
  const swapWords = (bytes) => {
    const tokenizer = JSON.parse(bytes);
    const { vocab } = tokenizer.model;
    [vocab.example, vocab.sentence] = [vocab.sentence, vocab.example];
    return JSON.stringify(tokenizer);
  };
  const ofAddon = (file) => ({ KNOWLEDGEPULSE_NATIVE_ADDON: file });
  const inScratch = (name) => path.join(scratch, name);
  const otherVersion = () => {
    const from = copyPackage(inScratch('other-version'));
    const manifest = { ...require('../package.json'), version: '99.0.0' };
    replaceFile(path.join(from, 'package.json'), JSON.stringify(manifest));
    return from;
  };
  const example = 'This is an example sentence';
  const words = 'tokenizer.json';

  // What is broken: the environment, the code that says so, what the message or the remedy must name, and the package, if it
  // is not that of the repository.
  test.each([
    ['no addon', () => ofAddon(inScratch('none.node')), 'ERR_ADDON_LOAD', ['NATIVE_ADDON', 'none.node']],
    ['an addon that is text', () => ofAddon(write('text.node', 'text')), 'ERR_ADDON_LOAD', ['text.node']],
    [
      'a missing model directory',
      () => ({ KNOWLEDGEPULSE_MODEL_DIR: inScratch('nowhere') }),
      'ERR_MODEL_NOT_FOUND',
      ['KNOWLEDGEPULSE_MODEL_DIR', 'nowhere'],
    ],
    [
      'a flipped bit in the weights of a word, with which the model loads and works',
      () => changedModel('flipped', 'model.safetensors', flipBit, { keeps: true }),
      'ERR_MODEL_UNUSABLE',
      ['model.safetensors', 'SHA-256', 'KNOWLEDGEPULSE_MODEL_DIR'],
    ],
    [
      'a tokenizer with another vocabulary: all loads, and the embedding is wrong',
      () => changedModel('vocabulary', words, swapWords),
      'ERR_MODEL_UNUSABLE',
      [example, 'KNOWLEDGEPULSE_MODEL_DIR'],
    ],
    [
      'an addon of another version',
      () => ({ ...ofAddon(addon), KNOWLEDGEPULSE_MODEL_DIR: modelDirectory }),
      'ERR_ADDON_LOAD',
      [version, '99.0.0'],
      otherVersion,
    ],
  ])('doctor reports %s', async (...row) => {
    const [, environment, code, names, packageOf] = row;
    const found = await report({ env: environment(), from: packageOf?.() });
    expect(found.healthy).toBe(false);
    expect(found.problems).toHaveLength(1);
    const [problem] = found.problems;
    expect(problem).toEqual({ code, message: expect.any(String), remedy: expect.any(String) });
    const told = JSON.stringify([problem.message, problem.remedy]);
    for (const name of names) expect(told).toContain(name);

    const text = render(found);
    expect(text).toContain(`${code}: ${problem.message}`);
    expect(text).toContain(`What to do: ${problem.remedy}`);
    expect(text.endsWith('Not healthy.')).toBe(true);
  });

  test('doctor reports nothing of packages as npm lays them out, and what a part of them lacks', async () => {
    const scope = path.join(scratch, 'node_modules', '@knowledgepulse');
    const from = copyPackage(path.join(scope, 'native'));
    const { name, ...manifest } = require(path.join(path.dirname(addon), 'package.json'));
    const platform = path.join(scope, name.split('/')[1]);
    fs.mkdirSync(platform);
    fs.copyFileSync(addon, path.join(platform, path.basename(addon)));
    fs.writeFileSync(path.join(platform, 'package.json'), JSON.stringify({ name, ...manifest }));
    const model = copyModel(path.join(scope, 'all-minilm-l6-v2'));
    // Node.js follows links, and looks where they lead for what is beside it.
    replaceFile(path.join(model, 'package.json'), fs.readFileSync(path.join(modelDirectory, 'package.json')));
    expect(await report({ from })).toMatchObject({
      ...{ problems: [], addon: path.join(platform, path.basename(addon)) },
      embedder: { engine: 'builtin', modelDirectory: model },
    });
    for (const [harm, code, ...names] of [
      [() => fs.rmSync(path.join(model, 'model.safetensors')), 'ERR_MODEL_UNUSABLE', 'it is missing'],
      [() => fs.renameSync(model, `${model}-old`), 'ERR_MODEL_NOT_FOUND', 'install'],
      [() => fs.rmSync(platform, { recursive: true }), 'ERR_ADDON_LOAD', 'optional dependencies'],
    ]) {
      harm();
      const found = await report({ from });
      expect(found.problems.map((problem) => problem.code)).toEqual([code]);
      for (const part of names) expect(render(found)).toContain(part);
    }
  });

  test('kp-score doctor reports that no process may be started', async () => {
    const { code, stdout, stderr } = await run(process.execPath, [
      '-e',
      `
        // As the permission model of Node.js does it.
        require('node:child_process').spawnSync = () => { throw new Error('Access to this API has been restricted'); };
        process.argv = [process.execPath, 'kp-score.js', 'doctor', '--json'];
        require(${JSON.stringify(path.join(root, 'bin', 'kp-score.js'))});
      `,
    ]);
    expect({ code, stderr }).toEqual({ code: 1, stderr: '' });
    const { problems } = JSON.parse(stdout);
    expect(problems.map((problem) => problem.code)).toEqual(['ERR_INTERNAL']);
    expect(problems[0].message).toContain('restricted');
    expect(problems[0].remedy).toContain('--allow-child-process');
  });

  test('kp-score doctor reports an addon that is cut off, which may end the process that loads it', async () => {
    const bytes = fs.readFileSync(addon);
    const file = write('half.node', bytes.subarray(0, bytes.length >> 1));
    const found = await report({ env: { KNOWLEDGEPULSE_NATIVE_ADDON: file } });
    expect(found.problems).toHaveLength(1);
    expect(['ERR_INTERNAL', 'ERR_ADDON_LOAD']).toContain(found.problems[0].code);
    expect(JSON.stringify(found.problems[0])).toContain('half.node');
  });
});

describe('the command line', () => {
  test('kp-score doctor with a wrong argument prints its usage, and ends with 2', async () => {
    const { code, stdout, stderr } = await native(['doctor', '--jsn']);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain('Usage: npx @knowledgepulse/native doctor');
    expect(await native(['doctor', '--help'])).toMatchObject({ code: 0, stderr: '' });
  });

  const testWithFullDisk = fs.existsSync('/dev/full') ? test : test.skip;
  testWithFullDisk('kp-score doctor whose report cannot be written ends with 1', async () => {
    const script = `"$0" "$1" doctor --json > /dev/full`;
    const { code, stderr } = await run('sh', [
      ...['-c', script, process.execPath, path.join(root, 'bin', 'kp-score.js')],
    ]);
    expect(code).toBe(1);
    expect(stderr).toMatch(/^kp-score doctor: the report could not be written: .*ENOSPC/);
  });

  test('npx runs it by the name of the package: all its bins are one command', () => {
    const { bin } = require('../package.json');
    const [file, ...others] = new Set(Object.values(bin));
    // Where bins differ, npx would run the one that is called as the package, `native`, and fail without it.
    expect(others).toEqual([]);
    // Not `kp-score`: the package of that name must install globally beside this one.
    expect(Object.keys(bin)).toEqual(['kp-score-native']);
    expect(fs.readFileSync(path.join(root, file), 'utf8').startsWith('#!/usr/bin/env node\n')).toBe(true);
  });
});

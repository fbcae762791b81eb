'use strict';

// `kp-score doctor` on healthy and broken installations.

const fs = require('node:fs');
const path = require('node:path');

const { embedderStatus } = require('..');
const { render } = require('../lib/doctor/doctor.js');
const { version } = require('../package.json');
const { addon } = require('./support/addon.js');
const { modelDirectory, root, runtimeLibrary: library } = require('./support/paths.js');
const { permissions } = require('./support/permissions.js');
const { run } = require('./support/run-script.js');
const { copyModel, copyPackage, replaceFile, scratchDirectory, writerIn } = require('./support/scratch.js');

const scratch = scratchDirectory('doctor');
const write = writerIn(scratch);
/** The engine alone: which library it takes is what these cases are about. */
const ONNXRUNTIME = { KNOWLEDGEPULSE_ENGINE: 'onnxruntime' };

/** The files of the fp32 model by name, as its manifest describes them. */
function manifestFiles() {
  const manifest = JSON.parse(fs.readFileSync(path.join(modelDirectory, 'manifest.json'), 'utf8'));
  return Object.entries(manifest.files);
}

/** Runs the command line of the package in `from`; `unprivileged`: without root's rights, so that permissions count also if root runs the tests. */
function native(args, { env = {}, from = root, unprivileged = false } = {}) {
  const command = [process.execPath, path.join(from, 'bin', 'kp-score.js'), ...args];
  if (unprivileged) command.unshift(...permissions.prefix);
  return run(command[0], command.slice(1), env);
}

const testWithPermissions = permissions.reason === undefined ? test : test.skip;

async function report(options) {
  const { code, signal, stdout, stderr } = await native(['doctor', '--json'], options);
  expect({ signal, stderr }).toEqual({ signal: null, stderr: '' });
  const parsed = JSON.parse(stdout);
  expect(code).toBe(parsed.healthy ? 0 : 1);
  return parsed;
}

describe('a healthy installation', () => {
  test('--json tells everything', async () => {
    const found = await report();
    expect(found).toEqual({
      healthy: true,
      version,
      directory: root,
      platform: { os: process.platform, arch: process.arch },
      engine: process.versions.bun
        ? { name: 'bun', version: process.versions.bun }
        : { name: 'node', version: process.versions.node },
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

  test('the text says the same', async () => {
    const { code, stdout, stderr } = await native(['doctor']);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const { kernel } = await embedderStatus();
    const checksums = manifestFiles().map(([name, { sha256 }]) => `${name}: ${sha256}`);
    for (const part of [version, addon, `kernel: ${kernel}`, modelDirectory, ...checksums]) {
      expect(stdout).toContain(part);
    }
    expect(stdout.trimEnd().endsWith('Healthy.')).toBe(true);
  });

  test('the int8 model is held to a tolerance of its own', async () => {
    const found = await report({ env: { KNOWLEDGEPULSE_DTYPE: 'q8' } });
    expect(found.problems).toEqual([]);
    expect(found.embedder.dtype).toBe('q8');
    expect(found.embedding.tolerance).toBe(1e-2);
    expect(found.embedding.largestDifference).toBeGreaterThan(1e-5);
  });

  test('a model without a manifest works, and has no checksums', async () => {
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

  test('a variable that is ignored is a warning', async () => {
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
  const ofRuntime = (file) => ({ ...ONNXRUNTIME, KNOWLEDGEPULSE_ONNXRUNTIME: file });
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
    ['another addon', () => ofAddon(copy(library, 'other.node')), 'ERR_ADDON_LOAD', ['other.node']],
    [
      'a missing model directory',
      () => ({ KNOWLEDGEPULSE_MODEL_DIR: inScratch('nowhere') }),
      'ERR_MODEL_NOT_FOUND',
      ['KNOWLEDGEPULSE_MODEL_DIR', 'nowhere'],
    ],
    [
      'a flipped bit in the weights of a word, with which the model loads and works',
      () => changedModel('flipped', 'model.safetensors', flipBit, { keeps: true }),
      'ERR_MODEL_DAMAGED',
      ['model.safetensors', 'SHA-256', 'KNOWLEDGEPULSE_MODEL_DIR'],
    ],
    [
      'a cut tokenizer',
      () => changedModel('cut', words, () => '{"added_tokens":'),
      'ERR_MODEL_DAMAGED',
      ['EOF'],
    ],
    [
      'a tokenizer with another vocabulary: all loads, and the embedding is wrong',
      () => changedModel('vocabulary', words, swapWords),
      'ERR_MODEL_DAMAGED',
      [example, 'KNOWLEDGEPULSE_MODEL_DIR'],
    ],
    [
      'no runtime',
      () => ofRuntime(inScratch('none.so')),
      'ERR_RUNTIME_NOT_FOUND',
      ['ONNXRUNTIME', 'none.so'],
    ],
    ['another runtime', () => ofRuntime(addon), 'ERR_RUNTIME_UNUSABLE', ['OrtGetApiBase']],
    [
      'an addon without its runtime',
      () => ({ ...ONNXRUNTIME, ...ofAddon(copy(addon, 'alone', path.basename(addon))) }),
      'ERR_RUNTIME_NOT_FOUND',
      ['KNOWLEDGEPULSE_ONNXRUNTIME'],
    ],
    [
      'no model package',
      () => ofAddon(addon),
      'ERR_MODEL_NOT_FOUND',
      ['install @knowledgepulse/all-minilm-l6-v2'],
      () => copyPackage(inScratch('no-model')),
    ],
    [
      'no model package of the dtype that is asked for',
      () => ({ ...ofAddon(addon), KNOWLEDGEPULSE_DTYPE: 'q8' }),
      'ERR_MODEL_NOT_FOUND',
      ['-q8', 'KNOWLEDGEPULSE_DTYPE'],
      () => copyPackage(inScratch('no-q8')),
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

  test('a package without any platform package: every attempt is told', async () => {
    const found = await report({ from: copyPackage(path.join(scratch, 'no-platform')) });
    const [{ code, message }] = found.problems;
    expect(code).toBe('ERR_ADDON_LOAD');
    expect(message).toContain('optional dependencies');
    const attempts = message.split('\n').filter((line) => line.startsWith('  '));
    expect(attempts.length).toBeGreaterThan(0);
    for (const attempt of attempts) {
      const name = `@knowledgepulse/native-${process.platform}-${process.arch}`;
      expect(attempt).toMatch(new RegExp(`^  ${name}\\S*: Cannot find module '${name}`));
    }
  });

  describe('of packages, as they are installed', () => {
    /** What is done to a file or a folder. */
    const deleted = (file) => fs.rmSync(file, { recursive: true });
    const isLink = (file) => deleted(file) ?? fs.symlinkSync('nowhere', file);
    const mayNotBeRead = (file) => fs.chmodSync(file, 0);

    /** What is done to which part of an installation, the code that says so, and what the text names. Cargo's tests of crates/embed have more. */
    const damages = [
      ['addon', deleted, 'ERR_ADDON_LOAD', ['Cannot find module', 'optional dependencies']],
      ['library', mayNotBeRead, 'ERR_RUNTIME_UNUSABLE', ['cannot be read', 'permissions']],
      ['model/model.safetensors', deleted, 'ERR_MODEL_DAMAGED', ['it is missing']],
      ['model', isLink, 'ERR_MODEL_NOT_FOUND', ['a link to nowhere', 'install']],
    ].map(([part, harm, ...rest]) => [part, harm.name, harm, ...rest]);

    let count = 0;
    /** The package with that of this platform and the model, as npm lays them out. */
    function install() {
      const scope = path.join(scratch, `installed-${++count}`, 'node_modules', '@knowledgepulse');
      const from = copyPackage(path.join(scope, 'native'));
      const platform = path.join(
        scope,
        require(path.join(path.dirname(addon), 'package.json')).name.split('/')[1],
      );
      fs.mkdirSync(platform);
      for (const file of [addon, library]) fs.copyFileSync(file, path.join(platform, path.basename(file)));
      // As where the package carries ONNX Runtime, which not all do.
      const { files, ...more } = require(path.join(path.dirname(addon), 'package.json'));
      const carried = [...new Set([...files, path.basename(library)])];
      fs.writeFileSync(path.join(platform, 'package.json'), JSON.stringify({ ...more, files: carried }));
      const model = copyModel(path.join(scope, 'all-minilm-l6-v2'));
      // Node.js follows links, and looks where they lead for what is beside it.
      const manifest = fs.readFileSync(path.join(model, 'package.json'));
      replaceFile(path.join(model, 'package.json'), manifest);
      const inPlatform = (file) => path.join(platform, path.basename(file));
      return { from, platform, model, addon: inPlatform(addon), library: inPlatform(library) };
    }

    test('whole, they are healthy', async () => {
      const installed = install();
      const found = await report(installed);
      expect(found.problems).toEqual([]);
      expect(found).toMatchObject({
        addon: installed.addon,
        embedder: { engine: 'builtin', modelDirectory: installed.model },
      });
    });

    const needsPermissions = ([, name]) => name.startsWith('mayNot');
    const tell = (unprivileged) => async (part, _, harm, code, names) => {
      const installed = install();
      const [first, ...within] = part.split('/');
      const file = path.join(installed[first], ...within);
      harm(file);
      const env = first === 'library' ? ONNXRUNTIME : {};
      // One process less, where it need not be another user's.
      const found =
        unprivileged || first === 'library'
          ? await report({ env, unprivileged, from: installed.from })
          : await require(path.join(installed.from, 'lib', 'doctor', 'doctor.js')).diagnose();
      // Otherwise it could not be removed after the tests.
      fs.rmSync(path.dirname(installed.platform), { recursive: true });
      expect(found.problems.map((problem) => problem.code)).toEqual([code]);
      const text = render(found);
      // A missing addon is told by its package, and models by their folder.
      const told = first === 'model' || (first === 'addon' && harm === deleted) ? within : file;
      for (const expected of [told, ...names].flat()) expect(text).toContain(expected);
      if (part === 'model') expect(text).toContain(installed.model);
    };

    test.each(damages.filter((row) => !needsPermissions(row)))('doctor reports: %s %s', tell(false));
    testWithPermissions.each(damages.filter(needsPermissions))('doctor reports: %s %s', tell(true));
  });

  test('no process may be started: the report says so', async () => {
    const { code, stdout, stderr } = await run(process.execPath, [
      '-e',
      `
        // As the permission model of Node.js does it.
        require('node:child_process').fork = () => { throw new Error('Access to this API has been restricted'); };
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

  test('an addon that is cut off, which may end the process that loads it', async () => {
    const bytes = fs.readFileSync(addon);
    const file = write('half.node', bytes.subarray(0, bytes.length >> 1));
    const found = await report({ env: { KNOWLEDGEPULSE_NATIVE_ADDON: file } });
    expect(found.problems).toHaveLength(1);
    expect(['ERR_INTERNAL', 'ERR_ADDON_LOAD']).toContain(found.problems[0].code);
    expect(JSON.stringify(found.problems[0])).toContain('half.node');
  });

  function copy(source, ...names) {
    const file = path.join(scratch, ...names);
    fs.mkdirSync(path.dirname(file), { recursive: true });
    fs.copyFileSync(source, file);
    return file;
  }
});

describe('the command line', () => {
  const misuses = {
    'an unknown option': ['doctor', '--jsn'],
    'an argument too many': ['doctor', 'now'],
    'a value for a flag': ['doctor', '--json=yes'],
  };
  test.each(Object.entries(misuses))('%s: usage on stderr, code 2', async (_, args) => {
    const { code, stdout, stderr } = await native(args);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain('Usage: kp-score doctor');
  });

  test.each(['--help', '-h'])('%s: usage on stdout', async (option) => {
    const { code, stdout, stderr } = await native(['doctor', option]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toContain('doctor');
  });

  const testWithFullDisk = fs.existsSync('/dev/full') ? test : test.skip;
  testWithFullDisk('a report that cannot be written is no success', async () => {
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
    expect(Object.keys(bin).sort()).toEqual(['knowledgepulse-native', 'kp-score']);
    expect(fs.readFileSync(path.join(root, file), 'utf8').startsWith('#!/usr/bin/env node\n')).toBe(true);
  });
});

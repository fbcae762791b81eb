'use strict';

// `kp-score doctor` on healthy and broken installations.

const fs = require('node:fs');
const path = require('node:path');

const { embedderStatus } = require('..');
const { REMEDIES, render } = require('../lib/doctor/doctor.js');
const { systemLibc } = require('../lib/installation/libc.js');
const { version } = require('../package.json');
const { addon } = require('./support/addon.js');
const { modelDirectory, root, runtimeLibrary: library } = require('./support/paths.js');
const { permissions } = require('./support/permissions.js');
const { run } = require('./support/run-script.js');
const { copyModel, copyPackage, replaceFile, scratchDirectory } = require('./support/scratch.js');

const scratch = scratchDirectory('doctor');
const ESCAPE = '\u001b';
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
    const { dtype, dimensions, engine, kernel, threads } = await embedderStatus();
    const isLinux = process.platform === 'linux';
    expect(found).toEqual({
      healthy: true,
      version,
      directory: root,
      platform: {
        os: process.platform,
        arch: process.arch,
        libc: isLinux ? expect.stringMatching(/^(glibc|musl)$/) : null,
        libcVersion: isLinux ? expect.stringMatching(/^\d+\.\d+/) : null,
      },
      engine: process.versions.bun
        ? { name: 'bun', version: process.versions.bun }
        : { name: 'node', version: process.versions.node },
      addon: { path: addon, version, attempts: [] },
      inference: { engine, kernel },
      runtime: { path: null, version: null },
      model: {
        directory: modelDirectory,
        dtype,
        dimensions,
        files: manifestFiles().map(([name, { sha256 }]) => ({ name, sha256, expectedSha256: sha256 })),
        verified: true,
      },
      threads,
      embedding: {
        text: 'This is an example sentence',
        loadMilliseconds: expect.any(Number),
        milliseconds: expect.any(Number),
        largestDifference: expect.any(Number),
        tolerance: 1e-5,
        correct: true,
      },
      memory: {
        residentBytes: expect.any(Number),
        freeBytes: expect.any(Number),
        totalBytes: expect.any(Number),
      },
      warnings: [],
      problems: [],
    });
    expect(found.embedding.milliseconds).toBeGreaterThan(0);
    expect(found.embedding.loadMilliseconds).toBeGreaterThan(0);
    expect(found.embedding.largestDifference).toBeLessThan(1e-5);
    // The weights alone are 90 MB.
    expect(found.memory.residentBytes).toBeGreaterThan(90e6);
  });

  test('the text says the same, without colours where it goes to a file', async () => {
    const { code, stdout, stderr } = await native(['doctor']);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).not.toContain(ESCAPE);
    const { kernel } = await embedderStatus();
    const checksums = manifestFiles().map(([name, { sha256 }]) => `${name} ${sha256}`);
    for (const part of [version, addon, `built in, ${kernel}`, modelDirectory, ...checksums]) {
      expect(stdout).toContain(part);
    }
    expect(stdout).not.toMatch(/[✗–]/);
    expect(stdout.trimEnd().endsWith('Healthy.')).toBe(true);
  });

  test('colours change nothing but the colour', async () => {
    const found = await report({ env: { KNOWLEDGEPULSE_MODEL_DIR: path.join(scratch, 'nowhere') } });
    const coloured = render(found, { colours: true });
    expect(coloured).toContain(`${ESCAPE}[31m`);
    const codes = new RegExp(`${ESCAPE}\\[\\d+m`, 'g');
    expect(coloured.replace(codes, '')).toBe(render(found, { colours: false }));
  });

  test('the int8 model is held to a tolerance of its own', async () => {
    const found = await report({ env: { KNOWLEDGEPULSE_DTYPE: 'q8' } });
    expect(found.problems).toEqual([]);
    expect(found.model).toMatchObject({ dtype: 'q8', verified: true });
    expect(found.embedding.tolerance).toBe(1e-2);
    expect(found.embedding.largestDifference).toBeGreaterThan(1e-5);
  });

  test('a model without a manifest works, and is not called verified', async () => {
    const directory = copyModel(path.join(scratch, 'no-manifest'));
    fs.rmSync(path.join(directory, 'manifest.json'));
    const env = { KNOWLEDGEPULSE_MODEL_DIR: directory };
    expect(await report({ env })).toMatchObject({
      healthy: true,
      model: { directory, files: [], verified: false },
    });
    expect((await native(['doctor'], { env })).stdout).toContain('not verified');
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
  /** What is broken, the code that says so, and what the message or the remedy must name. */
  const cases = {
    'no addon': () => ({
      env: { KNOWLEDGEPULSE_NATIVE_ADDON: path.join(scratch, 'none.node') },
      code: 'ERR_ADDON_LOAD',
      names: ['KNOWLEDGEPULSE_NATIVE_ADDON', 'none.node'],
    }),
    'an addon that is a text file': () => ({
      env: { KNOWLEDGEPULSE_NATIVE_ADDON: write('text.node', 'this is no addon') },
      code: 'ERR_ADDON_LOAD',
      names: ['text.node'],
    }),
    'an addon of another package': () => ({
      env: { KNOWLEDGEPULSE_NATIVE_ADDON: copy(library, 'other.node') },
      code: 'ERR_ADDON_LOAD',
      names: ['other.node'],
    }),
    'a configured model that is missing': () => ({
      env: { KNOWLEDGEPULSE_MODEL_DIR: path.join(scratch, 'nowhere') },
      code: 'ERR_MODEL_NOT_FOUND',
      names: ['KNOWLEDGEPULSE_MODEL_DIR', 'nowhere'],
    }),
    'a flipped bit in the weights of a word, with which the model loads and works': () => {
      const directory = copyModel(path.join(scratch, 'flipped'));
      const bytes = fs.readFileSync(path.join(directory, 'model.safetensors'));
      bytes[20_000_000] ^= 1;
      replaceFile(path.join(directory, 'model.safetensors'), bytes);
      return {
        env: { KNOWLEDGEPULSE_MODEL_DIR: directory },
        code: 'ERR_MODEL_DAMAGED',
        names: ['model.safetensors', 'SHA-256', 'KNOWLEDGEPULSE_MODEL_DIR'],
      };
    },
    'a tokenizer that is cut off': () => {
      const directory = copyModel(path.join(scratch, 'tokenizer'));
      fs.rmSync(path.join(directory, 'manifest.json'));
      replaceFile(path.join(directory, 'tokenizer.json'), '{"added_tokens":');
      return { env: { KNOWLEDGEPULSE_MODEL_DIR: directory }, code: 'ERR_TOKENIZER', names: ['EOF'] };
    },
    'a tokenizer with another vocabulary: all loads, and the embedding is wrong': () => {
      const directory = copyModel(path.join(scratch, 'vocabulary'));
      fs.rmSync(path.join(directory, 'manifest.json'));
      const tokenizer = JSON.parse(fs.readFileSync(path.join(modelDirectory, 'tokenizer.json'), 'utf8'));
      const { vocab } = tokenizer.model;
      [vocab.example, vocab.sentence] = [vocab.sentence, vocab.example];
      replaceFile(path.join(directory, 'tokenizer.json'), JSON.stringify(tokenizer));
      return {
        env: { KNOWLEDGEPULSE_MODEL_DIR: directory },
        code: 'ERR_EMBEDDING_WRONG',
        names: ['This is an example sentence', 'KNOWLEDGEPULSE_MODEL_DIR'],
      };
    },
    'a configured runtime that is missing': () => ({
      env: { ...ONNXRUNTIME, KNOWLEDGEPULSE_ONNXRUNTIME: path.join(scratch, 'none.so') },
      code: 'ERR_RUNTIME_NOT_FOUND',
      names: ['KNOWLEDGEPULSE_ONNXRUNTIME', 'none.so'],
    }),
    'a runtime that is something else': () => ({
      env: { ...ONNXRUNTIME, KNOWLEDGEPULSE_ONNXRUNTIME: addon },
      code: 'ERR_RUNTIME_UNUSABLE',
      names: ['OrtGetApiBase'],
    }),
    'an addon without its runtime': () => ({
      env: { ...ONNXRUNTIME, KNOWLEDGEPULSE_NATIVE_ADDON: copy(addon, 'alone', path.basename(addon)) },
      code: 'ERR_RUNTIME_NOT_FOUND',
      names: ['KNOWLEDGEPULSE_ONNXRUNTIME'],
    }),
    'no model package': () => ({
      from: copyPackage(path.join(scratch, 'no-model')),
      env: { KNOWLEDGEPULSE_NATIVE_ADDON: addon },
      code: 'ERR_MODEL_NOT_FOUND',
      names: ['npm install @knowledgepulse/all-minilm-l6-v2'],
    }),
    'no model package of the dtype that is asked for': () => ({
      from: copyPackage(path.join(scratch, 'no-q8')),
      env: { KNOWLEDGEPULSE_NATIVE_ADDON: addon, KNOWLEDGEPULSE_DTYPE: 'q8' },
      code: 'ERR_MODEL_NOT_FOUND',
      names: ['Run: npm install', 'all-minilm-l6-v2-q8', 'KNOWLEDGEPULSE_DTYPE'],
    }),
    'an addon of another version': () => {
      const from = copyPackage(path.join(scratch, 'other-version'));
      const manifest = path.join(from, 'package.json');
      replaceFile(manifest, JSON.stringify({ ...require('../package.json'), version: '99.0.0' }));
      return {
        from,
        env: { KNOWLEDGEPULSE_NATIVE_ADDON: addon, KNOWLEDGEPULSE_MODEL_DIR: modelDirectory },
        code: 'ERR_VERSION_MISMATCH',
        names: [version, '99.0.0'],
      };
    },
  };

  test.each(Object.entries(cases))('%s', async (_, prepare) => {
    const { env, from, code, names } = prepare();
    const found = await report({ env, from });
    expect(found.healthy).toBe(false);
    expect(found.problems).toHaveLength(1);
    const [problem] = found.problems;
    expect(problem).toEqual({ code, message: expect.any(String), remedy: expect.any(String) });
    const told = JSON.stringify([problem.message, problem.remedy, found.addon.attempts]);
    for (const name of names) expect(told).toContain(name);

    const text = render(found, { colours: false });
    expect(text).toContain(`${code}: ${problem.message}`);
    expect(text).toContain(`What to do: ${problem.remedy}`);
    expect(text.endsWith('Not healthy.')).toBe(true);
  });

  test('a package without any platform package: every attempt is told', async () => {
    const found = await report({ from: copyPackage(path.join(scratch, 'no-platform')) });
    expect(found.problems[0].code).toBe('ERR_ADDON_LOAD');
    expect(found.problems[0].remedy).toContain('optional dependencies');
    expect(found.addon.attempts.length).toBeGreaterThan(0);
    for (const { name, reason } of found.addon.attempts) {
      expect(name).toContain(`${process.platform}-${process.arch}`);
      expect(reason).not.toBe('');
    }
  });

  describe('of packages, as they are installed', () => {
    const isLinux = process.platform === 'linux';
    const PERMISSIONS = ['read that file', 'search the directories'];
    const REINSTALL = ['einstall', 'optional dependencies'];
    const WHERE = ['on the platform that it will run on'];
    const ADDON = 'ERR_ADDON_LOAD';

    /** What is broken, the code that says so, and what the text names and must not name. */
    const damages = {
      'the addon is deleted': ({ addon }) => {
        fs.rmSync(addon);
        return { code: ADDON, names: [addon, 'does not exist', 'optional dependencies'] };
      },
      'the addon is cut off': ({ addon }) => {
        fs.truncateSync(addon, fs.statSync(addon).size >> 1);
        return { code: ADDON, names: [addon, ...(isLinux ? ['truncated', 'Remove'] : [])], not: WHERE };
      },
      'the addon is empty': ({ addon }) => {
        fs.truncateSync(addon, 0);
        return { code: ADDON, names: [addon, 'is empty', 'Remove', ...REINSTALL], not: WHERE };
      },
      'the addon is a directory': ({ addon }) => {
        fs.rmSync(addon);
        fs.mkdirSync(addon);
        return { code: ADDON, names: [addon, 'is a directory', 'Remove', ...REINSTALL], not: WHERE };
      },
      'the addon is a link that leads nowhere': ({ addon }) => {
        fs.rmSync(addon);
        fs.symlinkSync('nowhere.node', addon);
        return { code: ADDON, names: [addon, 'a link to nowhere.node'] };
      },
      'the addon may not be read': ({ addon }) => {
        fs.chmodSync(addon, 0);
        return { code: ADDON, names: [addon, 'cannot be read', 'EACCES', ...PERMISSIONS] };
      },
      'the platform package may not be searched': ({ platform, addon }) => {
        fs.chmodSync(platform, 0);
        return { code: ADDON, names: [addon, 'cannot be read', 'EACCES', ...PERMISSIONS] };
      },
      'the manifest of the platform package is deleted': ({ platform }) => {
        const manifest = path.join(platform, 'package.json');
        fs.rmSync(manifest);
        return { code: ADDON, names: [manifest, 'does not exist', 'Remove', ...REINSTALL] };
      },
      'the library is deleted': ({ library }) => {
        fs.rmSync(library);
        const code = 'ERR_RUNTIME_NOT_FOUND';
        return {
          code,
          env: ONNXRUNTIME,
          names: [library, 'does not exist', ...REINSTALL],
          not: ['none came with this program'],
        };
      },
      'the library is a link that leads nowhere': ({ library }) => {
        fs.rmSync(library);
        fs.symlinkSync('nowhere.so', library);
        return {
          code: 'ERR_RUNTIME_NOT_FOUND',
          env: ONNXRUNTIME,
          names: [library, 'a link to nowhere.so', ...REINSTALL],
        };
      },
      'the library is a directory': ({ library }) => {
        fs.rmSync(library);
        fs.mkdirSync(library);
        return {
          code: 'ERR_RUNTIME_UNUSABLE',
          env: ONNXRUNTIME,
          names: [library, 'is a directory', ...REINSTALL],
        };
      },
      'the library may not be read': ({ library }) => {
        fs.chmodSync(library, 0);
        return {
          code: 'ERR_RUNTIME_UNREADABLE',
          env: ONNXRUNTIME,
          names: [library, 'cannot be read', ...PERMISSIONS],
        };
      },
      'the platform has no library': ({ platform, library }) => {
        fs.rmSync(library);
        const manifest = path.join(platform, 'package.json');
        const { files, ...more } = JSON.parse(fs.readFileSync(manifest, 'utf8'));
        const others = files.filter((file) => file !== path.basename(library));
        fs.writeFileSync(manifest, JSON.stringify({ ...more, files: others }));
        return {
          code: 'ERR_RUNTIME_NOT_FOUND',
          env: ONNXRUNTIME,
          names: ['none came with this program', 'install it from elsewhere'],
        };
      },
      'a model file is deleted': ({ model }) => {
        fs.rmSync(path.join(model, 'model.safetensors'));
        return { code: 'ERR_MODEL_DAMAGED', names: [model, 'model.safetensors', 'it is missing'] };
      },
      'a model file is a directory': ({ model }) => {
        fs.rmSync(path.join(model, 'config.json'));
        fs.mkdirSync(path.join(model, 'config.json'));
        return { code: 'ERR_MODEL_DAMAGED', names: ['config.json', 'it is a directory'] };
      },
      'a model file is a link that leads nowhere': ({ model }) => {
        fs.rmSync(path.join(model, 'model.safetensors'));
        fs.symlinkSync('nowhere.onnx', path.join(model, 'model.safetensors'));
        return { code: 'ERR_MODEL_DAMAGED', names: ['model.safetensors', 'a link to nowhere.onnx'] };
      },
      'a model file may not be read': ({ model }) => {
        fs.rmSync(path.join(model, 'tokenizer.json'));
        fs.writeFileSync(path.join(model, 'tokenizer.json'), '', { mode: 0 });
        const names = ['tokenizer.json', 'cannot be read', ...PERMISSIONS];
        return { code: 'ERR_MODEL_UNREADABLE', names, not: ['damaged'] };
      },
      'the model package may not be searched': ({ model }) => {
        fs.chmodSync(model, 0);
        const names = [model, 'cannot be read', ...PERMISSIONS];
        return { code: 'ERR_MODEL_UNREADABLE', names, not: ['npm install'] };
      },
      'the model package is a link that leads nowhere': ({ model }) => {
        fs.rmSync(model, { recursive: true });
        fs.symlinkSync('nowhere', model);
        return { code: 'ERR_MODEL_NOT_FOUND', names: [model, 'a link to nowhere', 'npm install'] };
      },
    };
    if (isLinux) {
      damages['the addon is a text file'] = ({ addon }) => {
        fs.writeFileSync(addon, 'this is no addon');
        return { code: ADDON, names: [addon, 'is no addon for Linux', 'Remove', ...REINSTALL], not: WHERE };
      };
      damages['the addon is for another processor'] = ({ addon }) => {
        const other = process.arch === 'x64' ? ['arm64', 183] : ['x64', 62];
        overwrite(addon, 18, other[1]);
        return { code: ADDON, names: [addon, `is for ${other[0]}`, `is ${process.arch}`, ...WHERE] };
      };
    }
    if (systemLibc().libc === 'glibc') {
      damages['the addon is for musl'] = ({ addon }) => {
        // The names of what it needs are changed: no system has that, and nothing in it bears the name of glibc any more.
        const text = fs.readFileSync(addon, 'latin1').replaceAll('GLIBC_2.', 'MUSLC_2.');
        fs.writeFileSync(addon, text, 'latin1');
        return { code: ADDON, names: [addon, 'is for musl', 'has glibc', ...WHERE] };
      };
    }

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

    function overwrite(file, position, byte) {
      const descriptor = fs.openSync(file, 'r+');
      fs.writeSync(descriptor, Buffer.from([byte]), 0, 1, position);
      fs.closeSync(descriptor);
    }

    test('whole, they are healthy', async () => {
      const installed = install();
      const found = await report(installed);
      expect(found.problems).toEqual([]);
      expect(found).toMatchObject({
        addon: { path: installed.addon },
        inference: { engine: 'builtin' },
        model: { directory: installed.model },
      });
    });

    test.each(Object.keys(damages).filter((name) => !name.includes(' may not be ')))('%s', (name) =>
      tells(damages[name]),
    );

    testWithPermissions.each(Object.keys(damages).filter((name) => name.includes(' may not be ')))(
      '%s',
      (name) => tells(damages[name], { unprivileged: true }),
    );

    async function tells(damage, { unprivileged = false } = {}) {
      const installed = install();
      const { code, env = {}, names, not = [] } = damage(installed);
      // One process less, where it need not be another user's.
      const found =
        unprivileged || Object.keys(env).length > 0
          ? await report({ env, unprivileged, from: installed.from })
          : await require(path.join(installed.from, 'lib', 'doctor', 'doctor.js')).diagnose();
      // Otherwise it could not be removed after the tests.
      fs.rmSync(path.dirname(installed.platform), { recursive: true });
      expect(found.problems.map((problem) => problem.code)).toEqual([code]);
      const text = render(found, { colours: false });
      for (const part of names) expect(text).toContain(part);
      for (const part of not) expect(text).not.toContain(part);
    }
  });

  test('the system has no directory of libraries, and the engine names no C library', async () => {
    const { code, stdout, stderr } = await run(process.execPath, [
      '-e',
      `
        const fs = require('node:fs');
        const { readdirSync } = fs;
        fs.readdirSync = (directory, ...more) => readdirSync(directory === '/lib' ? '/nowhere' : directory, ...more);
        Object.defineProperty(process, 'report', { value: undefined });
        const { diagnose } = require(${JSON.stringify(path.join(root, 'lib', 'doctor', 'doctor.js'))});
        diagnose().then(({ healthy, platform }) => console.log(JSON.stringify({ healthy, platform })));
      `,
    ]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const { os, arch } = { os: process.platform, arch: process.arch };
    expect(JSON.parse(stdout)).toEqual({
      healthy: true,
      platform: { os, arch, libc: null, libcVersion: null },
    });
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
    expect(problems.map((problem) => problem.code)).toEqual(['ERR_NO_PROCESS']);
    expect(problems[0].message).toContain('restricted');
    expect(problems[0].remedy).toContain('--allow-child-process');
  });

  test('every code of an embedder has a remedy of its own', () => {
    const types = fs.readFileSync(path.join(root, 'index.d.ts'), 'utf8');
    const [, union] = /export type EmbedderErrorCode =([^;]*);/.exec(types);
    const codes = union.match(/ERR_\w+/g).filter((code) => code !== 'ERR_INTERNAL');
    expect(codes.length).toBeGreaterThan(9);
    const remedies = codes.filter((code) => !Object.hasOwn(REMEDIES, code));
    expect(remedies).toEqual([]);
  });

  test('an addon that is cut off, which may end the process that loads it', async () => {
    const bytes = fs.readFileSync(addon);
    const file = write('half.node', bytes.subarray(0, bytes.length >> 1));
    const found = await report({ env: { KNOWLEDGEPULSE_NATIVE_ADDON: file } });
    expect(found.problems).toHaveLength(1);
    expect(['ERR_CRASHED', 'ERR_ADDON_LOAD']).toContain(found.problems[0].code);
    expect(found.problems[0].remedy).toContain('half.node');
  });

  function write(name, contents) {
    const file = path.join(scratch, name);
    fs.writeFileSync(file, contents);
    return file;
  }

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

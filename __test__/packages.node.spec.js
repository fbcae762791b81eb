'use strict';

// The packages as npm gets them: manifests in step, tarballs with what they should hold, sizes; and the examples of the pages.

const fs = require('node:fs');
const path = require('node:path');

const { root } = require('./support/paths.js');
const { readmeExample } = require('./support/readme.js');
const { evaluate, run, runForResult, success } = require('./support/run-script.js');
const { linkPackages, scratchDirectory } = require('./support/scratch.js');

const scratch = scratchDirectory('packages');

/** The target, the operating system, the processor and the libc of each platform, and its ONNX Runtime if its package carries one. */
const PLATFORMS = Object.fromEntries(
  [
    ['linux-x64-gnu', 'x86_64-unknown-linux-gnu', 'glibc'],
    ['linux-arm64-gnu', 'aarch64-unknown-linux-gnu', 'glibc', 'libknowledgepulse_onnxruntime.so'],
    ['linux-x64-musl', 'x86_64-unknown-linux-musl', 'musl'],
    ['linux-arm64-musl', 'aarch64-unknown-linux-musl', 'musl'],
    ['darwin-arm64', 'aarch64-apple-darwin', undefined, 'libknowledgepulse_onnxruntime.dylib'],
    ['darwin-x64', 'x86_64-apple-darwin'],
    ['win32-x64-msvc', 'x86_64-pc-windows-msvc'],
    ['win32-arm64-msvc', 'aarch64-pc-windows-msvc', undefined, 'knowledgepulse_onnxruntime.dll'],
  ].map(([name, target, libc, library]) => {
    const [os, cpu] = name.split('-');
    return [name, { target, os, cpu, libc, library }];
  }),
);
const MODELS = ['all-minilm-l6-v2', 'all-minilm-l6-v2-q8'];
const MODEL_FILES =
  'manifest.json model.safetensors model.onnx tokenizer.json tokenizer_config.json config.json'.split(' ');
const WEBASSEMBLY = 'wasm32';
const DOCUMENTS = ['LICENSE', 'README.md'];
const NAMES = Object.keys(PLATFORMS);
const COMMAND = 'kp-score';
const PACKAGES = [...NAMES, ...MODELS, WEBASSEMBLY, COMMAND];

const read = (file) => fs.readFileSync(path.join(root, file), 'utf8');
const readManifest = (directory) => JSON.parse(read(path.join(directory, 'package.json')));
const main = readManifest('.');

function runtimeFiles({ library }) {
  return library ? [library, 'runtime.json', 'ONNXRUNTIME_LICENSE.txt', 'ONNXRUNTIME_NOTICES.txt'] : [];
}

let manifests;
/** The manifests of all packages as they are published. */
const publishedManifests = () => {
  manifests ??= evaluate('pack.mjs', 'script.publishedManifests()');
  return manifests;
};

describe('manifests', () => {
  test('npm/ has a folder for each package, and no other', () => {
    const folders = fs.readdirSync(path.join(root, 'npm'), { withFileTypes: true });
    const names = folders.filter((entry) => entry.isDirectory()).map(({ name }) => name);
    expect(names.sort()).toEqual([...PACKAGES].sort());
  });

  test.each(PACKAGES)('%s is in step with the main package', (name) => {
    const directory = `npm/${name}`;
    const { version, engines, repository } = readManifest(directory);
    // Models have versions of their own.
    const expected = MODELS.includes(name) ? expect.stringMatching(/^\d+\.\d+\.\d+$/) : main.version;
    expect({ version, engines, repository }).toEqual({
      version: expected,
      engines: main.engines,
      repository: { ...main.repository, directory },
    });
    expect(read(`${directory}/README.md`)).toContain(`# ${readManifest(directory).name}\n`);
  });

  /** What the manifests of a platform have in common. */
  const commonOf = ({ os, cpu, libc }) => ({
    ...{ version: main.version, description: expect.any(String), repository: expect.any(Object) },
    ...{ os: [os], cpu: [cpu], ...(libc && { libc: [libc] }), engines: main.engines, preferUnplugged: true },
  });

  test.each(Object.entries(PLATFORMS))(
    'the manifest of %s is for that platform, and names the files that it needs',
    (name, platform) => {
      const addon = `knowledgepulse.${name}.node`;
      expect(readManifest(`npm/${name}`)).toEqual({
        ...{ ...commonOf(platform), name: `@knowledgepulse/native-${name}`, main: addon },
        license: platform.library ? 'Apache-2.0 AND MIT' : 'Apache-2.0',
        files: [addon, 'THIRD-PARTY-LICENSES', ...runtimeFiles(platform), ...DOCUMENTS],
      });
    },
  );

  test.each(MODELS)('the manifest of %s names the files of a model', (name) => {
    const { files, license, ...manifest } = readManifest(`npm/${name}`);
    expect([files, license]).toEqual([[...MODEL_FILES, ...DOCUMENTS], 'Apache-2.0']);
    expect(manifest).not.toHaveProperty('os');
  });

  test('the package for WebAssembly is for every platform', () => {
    const { main: entry, exports, files, ...manifest } = readManifest(`npm/${WEBASSEMBLY}`);
    const { types, default: browser } = exports['.'].default;
    const named = [types, browser].map((file) => path.basename(file));
    expect(files).toEqual(expect.arrayContaining([entry, ...named, 'postgres.d.ts', ...DOCUMENTS]));
    expect(exports['.'].node).toBe(`./${entry}`);
    for (const limit of ['os', 'cpu', 'libc']) expect(manifest).not.toHaveProperty(limit);
  });

  test('Cargo.toml and package-lock.json have the version of package.json', () => {
    const [, version] = read('Cargo.toml').match(/^version = "(.*)"$/m);
    expect(version).toBe(main.version);
    expect(JSON.parse(read('package-lock.json')).packages[''].version).toBe(main.version);
  });

  test('the wheel of kp-score needs no other, and its extra is the version of the int8 model, which has the files of the npm package', () => {
    const { version } = readManifest(`npm/${MODELS[1]}`);
    const project = read('python/kp-score/pyproject.toml');
    expect(project).not.toMatch(/^dependencies/m);
    expect(project).toContain(`[project.optional-dependencies]\nmodel = ["kp-score-model==${version}"]\n`);
    const files = read('python/kp-score-model/pyproject.toml').matchAll(/^".*\/(.*)" = "share\/.*\/\1"$/gm);
    expect([...files].map(([, file]) => file).sort()).toEqual([...MODEL_FILES].sort());
  });

  test('no package has an install script or a dependency that has one', () => {
    for (const directory of ['.', ...PACKAGES.map((name) => `npm/${name}`)]) {
      const { scripts = {}, dependencies = {} } = readManifest(directory);
      expect(Object.keys(scripts).filter((name) => /^(pre|post)?(install|prepare|pack)$/.test(name))).toEqual(
        [],
      );
      expect(dependencies).toEqual({});
    }
  });

  test('napi builds a target for each platform', () => {
    const targets = Object.values(PLATFORMS).map(({ target }) => target);
    expect([...main.napi.targets].sort()).toEqual(targets.sort());
  });

  test('the published packages ask for those that they load, in their versions', async () => {
    const published = new Map((await publishedManifests()).map((manifest) => [manifest.name, manifest]));
    const asked = (names) =>
      Object.fromEntries(
        names.map((name) => [
          `@knowledgepulse/${name}`,
          (MODELS.includes(name) ? readManifest(`npm/${name}`) : main).version,
        ]),
      );
    const command = published.get(COMMAND);
    expect(command.optionalDependencies).toEqual(asked(NAMES.map((name) => `kp-score-${name}`)));
    expect(command.peerDependencies).toEqual(asked(MODELS));
    const manifest = published.get(main.name);
    const names = NAMES.map((name) => `native-${name}`);
    expect(manifest.optionalDependencies).toEqual(asked([...names, 'all-minilm-l6-v2']));
    // A package is published after those that it asks for.
    expect([...published.keys()].slice(-2)).toEqual([COMMAND, main.name]);
    const peers = asked(['all-minilm-l6-v2-q8', 'native-wasm32']);
    expect(manifest.peerDependencies).toEqual({ ...main.peerDependencies, ...peers });
    const optional = Object.keys(manifest.peerDependencies).map((name) => [name, { optional: true }]);
    expect(manifest.peerDependenciesMeta).toEqual(Object.fromEntries(optional));
    expect(manifest).not.toHaveProperty('devDependencies');
    expect(manifest).not.toHaveProperty('scripts');
    expect(manifest).not.toHaveProperty('workspaces');
    // A checkout builds them; see publishedManifests.
    expect(main).not.toHaveProperty('optionalDependencies');
  });

  test.each(Object.entries(PLATFORMS))(
    'the program for %s is alone in its package',
    async (name, platform) => {
      const program = `bin/kp-score${platform.os === 'win32' ? '.exe' : ''}`;
      const named = { name: `@knowledgepulse/kp-score-${name}`, license: 'Apache-2.0' };
      const found = (await publishedManifests()).find((manifest) => manifest.name === named.name);
      const files = [program, ...DOCUMENTS, 'THIRD-PARTY-LICENSES'];
      expect(found).toEqual({ ...commonOf(platform), ...named, files });
    },
  );

  test('the runtime is staged where the manifests say, and not over that of another platform', async () => {
    const staged = await evaluate(
      'stage-runtime.mjs',
      `${JSON.stringify(NAMES)}.map((name) => [script.runtimeFiles(name), script.runtimeDirectory(name)])`,
    );
    expect(staged.map(([files]) => files)).toEqual(Object.values(PLATFORMS).map(runtimeFiles));
    expect(new Set(staged.map(([, folder]) => folder)).size).toBe(NAMES.length);
  });

  test('the loader tries the packages of the platform it runs on', async () => {
    const directory = fs.mkdtempSync(path.join(scratch, 'loader-'));
    // Away from the checkout, where it finds nothing and says what it tried.
    fs.cpSync(path.join(root, 'lib'), path.join(directory, 'lib'), { recursive: true });
    const known = Object.values(PLATFORMS).map(({ os, cpu }) => `${os} ${cpu}`);
    const hosts = [...new Set([...known, 'freebsd x64', 'linux riscv64'])];
    const { result } = await runForResult(
      `
      const loader = ${JSON.stringify(path.join(directory, 'lib', 'loader.js'))};
      const attempts = {};
      for (const host of ${JSON.stringify(hosts)}) {
        const [platform, arch] = host.split(' ');
        Object.defineProperties(process, { platform: { value: platform }, arch: { value: arch } });
        try { require(loader); } catch (error) {
          attempts[host] = error.message.split('\\n').flatMap((line) => {
            const [, name, message] = /^  (\\S+): (.*)/.exec(line) ?? [];
            return name === undefined ? [] : [{ name, message }];
          });
        }
      }
      console.log(JSON.stringify(attempts));
      `,
      { env: { KNOWLEDGEPULSE_NATIVE_ADDON: undefined } },
    );
    for (const host of hosts) {
      const names = NAMES.filter((name) => `${PLATFORMS[name].os} ${PLATFORMS[name].cpu}` === host);
      const tried = result[host].filter(({ name }) => name.startsWith('@'));
      expect(tried.map(({ name }) => name).sort()).toEqual(
        (names.length > 0 ? names : [WEBASSEMBLY]).map((name) => `@knowledgepulse/native-${name}`).sort(),
      );
      for (const { name, message } of tried) expect(message).toContain(`'${name}'`);
    }
  });
});

describe('the launcher of kp-score', () => {
  /** Installs the launcher, with a program that tells how it was called, and packages of these models. */
  async function installation(models = []) {
    const directory = fs.mkdtempSync(path.join(scratch, 'launcher-'));
    const modules = path.join(directory, 'node_modules');
    fs.cpSync(path.join(root, 'npm', COMMAND), path.join(modules, COMMAND), { recursive: true });
    const platform = await evaluate('platform.mjs', 'script.hostPlatform()');
    const program = path.join(modules, `@knowledgepulse/kp-score-${platform}`);
    fs.mkdirSync(path.join(program, 'bin'), { recursive: true });
    for (const folder of [program, ...models.map((model) => path.join(modules, '@knowledgepulse', model))]) {
      fs.mkdirSync(folder, { recursive: true });
      fs.writeFileSync(path.join(folder, 'package.json'), '{}');
    }
    const file = path.join(program, 'bin', 'kp-score');
    fs.writeFileSync(
      file,
      `#!/bin/sh
case "$1" in
  wait) trap 'echo terminated; exit 7' TERM; echo ready; while :; do sleep 0.05; done;;
  die) kill -KILL $$;;
  *) printf '%s\\n' "$*" "$KNOWLEDGEPULSE_MODEL_DIR"; cat; exit 5;;
esac
`,
      { mode: 0o755 },
    );
    return { program, modules, launcher: path.join(modules, COMMAND, 'kp-score.js') };
  }

  const NO_MODEL = { KNOWLEDGEPULSE_MODEL_DIR: undefined, KNOWLEDGEPULSE_DTYPE: undefined };
  const unix = process.platform === 'win32' ? test.skip : test;
  const launch = (launcher, args, env = {}, watch = (child) => child.stdin.end('input')) =>
    run(process.execPath, [launcher, ...args], { ...NO_MODEL, ...env }, undefined, watch);

  unix('the launcher of kp-score hands arguments, input, output and the exit code through', async () => {
    const { launcher } = await installation();
    const { code, stdout, stderr } = await launch(launcher, ['score', 'a b', '--format=jsonl']);
    expect({ code, stdout, stderr }).toEqual({
      ...{ code: 5, stdout: 'score a b --format=jsonl\n\ninput', stderr: '' },
    });
  });

  unix(
    'the launcher of kp-score names an installed model, by its dtype if both are, and none where one is named',
    async () => {
      const { launcher, modules } = await installation(MODELS);
      const modelFor = async (env) => (await launch(launcher, ['x'], env)).stdout.split('\n')[1];
      const folder = fs.realpathSync(path.join(modules, '@knowledgepulse'));
      expect(await modelFor({})).toBe(path.join(folder, MODELS[0]));
      expect(await modelFor({ KNOWLEDGEPULSE_DTYPE: 'q8' })).toBe(path.join(folder, MODELS[1]));
      expect(await modelFor({ KNOWLEDGEPULSE_MODEL_DIR: '/mine' })).toBe('/mine');
    },
  );

  unix('the launcher of kp-score forwards SIGTERM, and ends as the program ends', async () => {
    const { launcher } = await installation();
    const { code, stdout } = await launch(launcher, ['wait'], {}, (child) => {
      child.stdout.once('data', () => child.kill('SIGTERM'));
    });
    expect({ code, stdout }).toEqual({ code: 7, stdout: 'ready\nterminated\n' });
    expect((await launch(launcher, ['die'])).code).toBe(128 + 9);
  });

  unix('the launcher of kp-score leaves Ctrl-C of a terminal to the program', async () => {
    const { launcher } = await installation();
    const { code } = await launch(launcher, ['wait'], {}, (child) => {
      child.stdout.once('data', () => {
        child.kill('SIGINT');
        setTimeout(() => child.kill('SIGTERM'), 300);
      });
    });
    expect(code).toBe(7);
  });

  test('the launcher of kp-score without its program tells an error with the package and the way out', async () => {
    const { launcher, program } = await installation();
    fs.rmSync(program, { recursive: true });
    const { code, stdout, stderr } = await launch(launcher, []);
    expect({ code, stdout }).toEqual({ code: 3, stdout: '' });
    expect(stderr).toContain(path.basename(program));
    expect(stderr).toContain('optional dependencies');
  });
});

/** Runs an example where the package is installed. */
async function runExample(script) {
  const directory = fs.mkdtempSync(path.join(scratch, 'example-'));
  linkPackages(directory, { [main.name]: root });
  const chats = path.join(root, 'crates/command/tests/transcripts/pages/runs/chat.jsonl');
  fs.copyFileSync(chats, path.join(directory, 'chats.jsonl'));
  const file = path.join(directory, 'example.mjs');
  fs.writeFileSync(file, script);
  const { code, stdout, stderr } = await run(process.execPath, [file], {}, directory);
  return { code, stdout, stderr };
}

test('the example of the README prints the output in the README', async () => {
  const { script, printed } = readmeExample();
  expect(await runExample(script)).toEqual({ code: 0, stdout: printed, stderr: '' });
});

test('the other examples of the pages run after it', async () => {
  // That of the fleet needs a database; __test__/store has it.
  const examples = ['README.md', 'docs/api.md', 'docs/memory.md', 'docs/cleaning.md'].flatMap((page) =>
    [...read(page).matchAll(/```js\n(.*?)```/gs)].map(([, script]) => script),
  );
  const [first, ...others] = examples.filter((script) => !script.includes("from 'pg'"));
  expect(others).toHaveLength(3);
  // Each in a scope of its own, and all in one process, because loading the model takes longest.
  const scoped = others.map((script) => {
    const imported = script.replace(/^import (\{.*?\}) from ('.*?');$/gm, 'const $1 = await import($2);');
    return `{\n${imported}\n}\n`;
  });
  const script = `${first}\nconst [traces, another] = [[trace, trace], trace];\n${scoped.join('')}console.log('all');`;
  expect(await runExample(script)).toEqual({ code: 0, stdout: expect.stringMatching(/all\n$/), stderr: '' });
});

describe('tarballs', () => {
  const q8 = '@knowledgepulse/all-minilm-l6-v2-q8';
  let directory;
  let host;
  /** The sizes of the files in each tarball, by package and file. */
  const contents = {};

  beforeAll(async () => {
    directory = fs.mkdtempSync(path.join(scratch, 'tarballs-'));
    const platform = await evaluate('platform.mjs', 'script.hostPlatform()');
    host = { name: `@knowledgepulse/native-${platform}`, platform };
    const names = [main.name, host.name, q8];
    const { stdout } = await success(run('node', ['scripts/pack.mjs', directory, ...names], {}, root));
    const tarballs = JSON.parse(stdout.trim().split('\n').at(-1));
    for (const name of names) contents[name] = await unpack(tarballs[name]);
  });

  async function unpack(tarball) {
    const target = `${tarball}.d`;
    fs.mkdirSync(target);
    await success(run('tar', ['-xzf', tarball, '-C', target]));
    const sizes = {};
    for (const entry of fs.readdirSync(path.join(target, 'package'), { recursive: true })) {
      const stat = fs.statSync(path.join(target, 'package', entry));
      if (stat.isFile()) sizes[entry.replaceAll('\\', '/')] = stat.size;
    }
    return sizes;
  }

  const sum = (sizes) => Object.values(sizes).reduce((all, size) => all + size, 0);
  const sizeOf = (name) => sum(contents[name]);
  /** The size of the package of the other model, which is not packed. */
  const sizeOfFp32 = () => {
    const sizeIn = (file) => fs.statSync(path.join(root, 'npm', MODELS[0], file)).size;
    return sum({ ...contents[q8], ...Object.fromEntries(MODEL_FILES.map((file) => [file, sizeIn(file)])) });
  };

  test('tarballs hold the allowed files and nothing else', () => {
    const { platform } = host;
    expect(Object.keys(contents[host.name]).sort()).toEqual(
      ['package.json', ...readManifest(`npm/${platform}`).files].sort(),
    );
    expect(Object.keys(contents[q8]).sort()).toEqual(['package.json', ...MODEL_FILES, ...DOCUMENTS].sort());
    const ours = Object.keys(contents[main.name]).filter(
      (file) => !/^(bin|lib)\/(?:[\w-]+\/)*[\w-]+\.js$/.test(file),
    );
    const entries = ['index', 'postgres'].flatMap((name) => [`${name}.d.ts`, `${name}.js`]);
    expect(ours.sort()).toEqual(['CHANGELOG.md', ...DOCUMENTS, ...entries, 'package.json'].sort());
  });

  test('docs/installing.md tells the sizes of the packages that are the same on all platforms', () => {
    const page = read('docs/installing.md');
    const told = (name) => new RegExp(`^- \`${name}\`: .+?; ([\\d.]+) MB$`, 'm').exec(page)?.[1];
    const fp32 = [`@knowledgepulse/${MODELS[0]}`, sizeOfFp32()];
    for (const [name, size] of [fp32, ...[main.name, q8].map((name) => [name, sizeOf(name)])])
      expect([name, told(name)]).toEqual([name, (size / 1e6).toFixed(1)]);
  });

  // A megabyte is 10^6 bytes. The SDK with its embedder installs 370 of them; see docs/installing.md.
  test('tarballs keep to their budgets', () => {
    const withoutModel = sizeOf(main.name) + sizeOf(host.name);
    const megabytes = {
      platform: sizeOf(host.name) / 1e6,
      withFp32: (withoutModel + sizeOfFp32()) / 1e6,
      withQ8: (withoutModel + sizeOf(q8)) / 1e6,
    };
    const { library } = PLATFORMS[host.platform];
    // A checkout's addon is three times as large as that of a release, whose size scripts/build-platform.mjs limits.
    expect(megabytes.platform).toBeLessThan(library ? 66 : 30);
    expect(megabytes.withFp32).toBeLessThan(370 / 3);
    expect(megabytes.withQ8).toBeLessThan(370 / 6);
  });
});

// GitHub and npm resolve relative links, npm by the repository that package.json names.
test('README.md has at most 700 words and no absolute link into this repository', () => {
  const [, repository] = /(github\.com\/.+)\.git$/.exec(main.repository.url);
  expect(read('README.md').trim().split(/\s+/).length).toBeLessThanOrEqual(700);
  expect(read('README.md')).not.toMatch(new RegExp(`\\]\\(https://${repository}/(blob|raw)`));
});

test('each help text has at most 40 lines of 100 characters', () => {
  const commands = read('crates/command/tests/transcripts/help.md').split(/^\$ (?=kp-score)/m);
  const texts = commands.filter((text) => /^kp-score( \w+)? (--help|-h)$/m.test(text.split('\n')[0]));
  expect(texts.length).toBeGreaterThan(5);
  for (const text of texts) {
    const lines = text.split('```')[0].trim().split('\n').slice(1);
    expect(lines.filter((line) => line !== '').length).toBeLessThanOrEqual(40);
    expect(lines.filter((line) => line.length > 100)).toEqual([]);
  }
});

test('every option that docs/command-line.md names is in --help', () => {
  // The transcript of all help texts.
  const help = read('crates/command/tests/transcripts/help.md').match(/(?<= )--[a-z][a-z-]*/g);
  const named = read('docs/command-line.md').match(/(?<=`)--[a-z][a-z-]*/g);
  expect(named.filter((option) => !help.includes(option))).toEqual([]);
});

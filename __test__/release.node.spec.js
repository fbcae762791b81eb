'use strict';

// The release: what its workflow waits for, its text, and in which order packages are published.

const { execFileSync } = require('node:child_process');
const fs = require('node:fs');
const http = require('node:http');
const path = require('node:path');

const { root } = require('./support/paths.js');
const { evaluate, run, success } = require('./support/run-script.js');
const { scratchDirectory } = require('./support/scratch.js');

const scratch = scratchDirectory('release');
const read = (file) => fs.readFileSync(path.join(root, file), 'utf8');
const main = JSON.parse(read('package.json'));

/** The repository by the one field that says so. */
const REPOSITORY = /github\.com\/(.+)\.git$/.exec(main.repository.url)[1];

/** The text of each job of a workflow. */
function jobsOf(workflow) {
  const [, text] = read(`.github/workflows/${workflow}`).split(/^jobs:\n/m);
  const parts = text.split(/^ {2}([\w-]+):\n/m).slice(1);
  return new Map(parts.flatMap((part, at) => (at % 2 === 0 ? [[part, parts[at + 1]]] : [])));
}

/** The jobs that a job waits for, and those that they wait for. */
function needsOf(jobs, name) {
  const [, list = ''] = /^ {4}needs: \[?([\w, -]+)\]?$/m.exec(jobs.get(name)) ?? [];
  const direct = list.split(', ').filter((other) => other !== '');
  return [...new Set(direct.flatMap((other) => [other, ...needsOf(jobs, other)]))];
}

const usesChecks = (job) => job.includes('uses: ./.github/workflows/checks.yml');

test('a release waits for the checks of CI, and for no job that may take more than 40 minutes', () => {
  const jobs = jobsOf('release.yml');
  const gate = needsOf(jobs, 'npm').map((name) => jobs.get(name));
  expect(gate.filter(usesChecks)).toHaveLength(1);
  const timed = [...gate.filter((job) => !usesChecks(job)), ...jobsOf('checks.yml').values()];
  expect(timed.length).toBeGreaterThan(10);
  for (const job of timed) expect(Number(/timeout-minutes: (\d+)/.exec(job)[1])).toBeLessThanOrEqual(40);
});

test('the site waits for the checks of CI', () => {
  const jobs = jobsOf('ci.yml');
  const needs = needsOf(jobs, 'publish-site').map((name) => jobs.get(name));
  expect(needs.some(usesChecks)).toBe(true);
});

test('the repository is that of package.json in the crates, the wheels and the check of a release', () => {
  const address = `https://github.com/${REPOSITORY}`;
  expect(read('Cargo.toml')).toContain(`\nrepository = "${address}"\n`);
  for (const wheel of ['kp-score', 'kp-score-model']) {
    expect(read(`python/${wheel}/pyproject.toml`)).toContain(`\nRepository = "${address}"\n`);
  }
  expect(jobsOf('release.yml').get('version')).toContain(
    'run: node scripts/release.mjs check "$GITHUB_REF_NAME" "$GITHUB_REPOSITORY"\n',
  );
});

test('the compiler of a release has a version', () => {
  expect(read('rust-toolchain.toml')).toMatch(/^channel = "\d+\.\d+\.\d+"$/m);
});

/** Runs the script in a checkout with this changelog. */
async function release(changelog, ...args) {
  const checkout = fs.mkdtempSync(path.join(scratch, 'checkout-'));
  fs.cpSync(path.join(root, 'scripts'), path.join(checkout, 'scripts'), { recursive: true });
  fs.copyFileSync(path.join(root, 'package.json'), path.join(checkout, 'package.json'));
  fs.writeFileSync(path.join(checkout, 'CHANGELOG.md'), changelog);
  const { code, stdout, stderr } = await run('node', ['scripts/release.mjs', ...args], {}, checkout);
  return { code, stdout, stderr };
}

const tag = `v${main.version}`;
const changelog = `# Changelog\n\n## Unreleased\n\nLater.\n\n## ${main.version} - 2030-01-01\n\nOne.\n\n### Two\n\n## 0.0.1\n\nOld.\n`;

test('release.mjs notes prints what the changelog says of the version', async () => {
  const { code, stdout } = await release(changelog, 'notes', tag);
  expect({ code, stdout }).toEqual({ code: 0, stdout: 'One.\n\n### Two\n' });
});

test('release.mjs check accepts the tag, the repository and a changelog with the version', async () => {
  expect(await release(changelog, 'check', tag, REPOSITORY)).toEqual({ code: 0, stdout: '', stderr: '' });
});

test.each([
  ['another tag', changelog, ['v9.9.9', REPOSITORY], 'v9.9.9'],
  ['a fork', changelog, [tag, 'fork/native'], 'fork/native'],
  ['a changelog without the version', '## Unreleased\n', [tag, REPOSITORY], `## ${main.version}`],
  ['an empty section', `## ${main.version}\n\n## 0.0.1\n\nOld.\n`, [tag, REPOSITORY], `## ${main.version}`],
])('release.mjs check refuses %s', async (_, text, args, named) => {
  const { code, stderr } = await release(text, 'check', ...args);
  expect(code).toBe(1);
  expect(stderr).toContain(named);
});

describe('publishing', () => {
  let packages;
  let tarballs;
  let registry;
  /** The versions that the registry has, by package. */
  let published;
  /** The trusted publishers, by package. */
  let trusted = {};

  beforeAll(async () => {
    packages = await evaluate('pack.mjs', 'script.publishedManifests()');
    // Their manifests alone: here it is about names, versions and order.
    tarballs = path.join(scratch, 'tarballs');
    for (const { name, version } of packages) {
      const file = `${name.replace('@', '').replace('/', '-')}-${version}.tgz`;
      const folder = path.join(tarballs, `${file}.d`, 'package');
      fs.mkdirSync(folder, { recursive: true });
      fs.writeFileSync(path.join(folder, 'package.json'), JSON.stringify({ name, version }));
      execFileSync('tar', ['-czf', path.join(tarballs, file), '-C', path.dirname(folder), 'package']);
    }
    registry = http.createServer((request, response) => {
      const [, trustedName] = /^\/-\/package\/(.+)\/trust$/.exec(request.url) ?? [];
      if (trustedName) {
        response.writeHead(200, { 'content-type': 'application/json' });
        response.end(JSON.stringify(trusted[decodeURIComponent(trustedName)] ?? []));
        return;
      }
      const name = decodeURIComponent(request.url.slice(1));
      const versions = published[name];
      response.writeHead(versions ? 200 : 404, { 'content-type': 'application/json' });
      const known = Object.fromEntries((versions ?? []).map((version) => [version, { name, version }]));
      response.end(JSON.stringify({ name, versions: known, 'dist-tags': { latest: versions?.at(-1) } }));
    });
    await new Promise((resolve) => registry.listen(0, '127.0.0.1', resolve));
  });
  afterAll(() => registry.close());

  const runPublish = (...args) => {
    const env = {
      npm_config_registry: `http://127.0.0.1:${registry.address().port}/`,
      npm_config_fetch_retries: '0',
      npm_config_cache: path.join(scratch, 'cache'),
      npm_execpath: undefined,
    };
    return run('node', ['scripts/publish.mjs', ...args], env, root);
  };

  /** Rehearses publishing; returns what would be published and where to, and what would be trusted. */
  async function publish(...args) {
    const { stdout, stderr } = await success(runPublish(...args, '--dry-run'));
    const tags = [...stderr.matchAll(/with tag (\S+)/g)].map(([, tag]) => tag);
    const names = [...stdout.matchAll(/^\+ (\S+)@[^@\s]+$/gm)].map(([, name]) => name);
    return { names, tags, trusts: [...stdout.matchAll(/^package: (\S+)$/gm)].map(([, name]) => name) };
  }

  test('publish.mjs publishes the versions that the registry lacks, those last that depend on others', async () => {
    const [model] = packages.map(({ name }) => name);
    const lacked = [model, '@knowledgepulse/kp-score-linux-x64-gnu', 'kp-score', main.name];
    published = Object.fromEntries(
      packages.map(({ name, version }) => [name, [lacked.includes(name) ? '0.0.0' : version]]),
    );
    expect(await publish(tarballs)).toMatchObject({
      names: lacked,
      tags: ['latest', 'latest', 'latest', 'latest'],
    });
  });

  test('publish.mjs names the tarballs that are missing, and publishes nothing', async () => {
    published = {};
    const empty = path.join(scratch, 'empty');
    await expect(publish(empty)).rejects.toThrow(/no tarballs of .*kp-score/);
  });

  test('publish.mjs --placeholders reserves the names that the registry lacks, and trusts the workflow for all', async () => {
    published = Object.fromEntries(packages.slice(2).map(({ name }) => [name, ['0.0.0']]));
    const { names, tags, trusts } = await publish('--placeholders');
    expect(names).toEqual(packages.slice(0, 2).map(({ name }) => name));
    expect(tags).toEqual(['placeholder', 'placeholder']);
    expect(trusts).toEqual(packages.map(({ name }) => name));
  });

  test('publish.mjs --check-trust names the packages that do not trust the environment of the job that publishes', async () => {
    const job = jobsOf('release.yml').get('npm');
    const [, environment] = /^ {4}environment: (\S+)$/m.exec(job);
    const claims = { repository: REPOSITORY, workflow_ref: { file: 'release.yml' }, environment };
    trusted = Object.fromEntries(packages.map(({ name }) => [name, [{ type: 'github', claims }]]));
    const [first, second] = packages.map(({ name }) => name);
    trusted[first] = [];
    trusted[second] = [{ type: 'github', claims: { ...claims, environment: 'pypi' } }];
    const { code, stderr } = await runPublish('--check-trust');
    expect(code).toBe(1);
    expect(stderr).toContain(`: ${first}, ${second};`);
  });

  test('each wheel is published by a job with an environment of its own', () => {
    const jobs = jobsOf('release.yml');
    const wheels = ['pypi-kp-score', 'pypi-kp-score-model'].map((name) => jobs.get(name));
    const environments = wheels.map((job) => /^ {4}environment: (\S+)$/m.exec(job)[1]);
    expect(new Set([...environments, 'npm']).size).toBe(3);
  });

  test('archives.mjs writes the program of each platform for cargo binstall, with its checksum', async () => {
    const { targets } = main.napi;
    const tarballs = fs.mkdtempSync(path.join(scratch, 'programs-'));
    for (const { name } of packages.filter(({ name }) => /[/]kp-score-/.test(name))) {
      const folder = name.replace('@', '').replace('/', '-');
      const content = path.join(tarballs, folder, 'package');
      fs.mkdirSync(path.join(content, 'bin'), { recursive: true });
      fs.writeFileSync(
        path.join(content, 'bin', folder.includes('win32') ? 'kp-score.exe' : 'kp-score'),
        folder,
      );
      for (const licence of ['LICENSE', 'THIRD-PARTY-LICENSES'])
        fs.writeFileSync(path.join(content, licence), '');
      const file = path.join(tarballs, `${folder}-${main.version}.tgz`);
      execFileSync('tar', ['-czf', file, '-C', path.dirname(content), 'package']);
    }
    const written = path.join(tarballs, 'archives');
    const { code, stderr } = await run('node', ['scripts/archives.mjs', tarballs, written], {}, root);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    execFileSync('sha256sum', ['--check', '--quiet', 'SHA256SUMS'], { cwd: written });
    const names = targets.map((target) => `kp-score-${target}.tar.gz`);
    expect(fs.readdirSync(written).sort()).toEqual([...names, 'SHA256SUMS'].sort());
    for (const name of names) {
      const program = name.includes('windows') ? 'kp-score.exe' : 'kp-score';
      const listed = execFileSync('tar', ['-tzf', path.join(written, name)], { encoding: 'utf8' });
      expect(listed.split('\n')).toEqual([program, 'LICENSE', 'THIRD-PARTY-LICENSES', '']);
    }
    const [, address] = /^pkg-url = "(.+)"$/m.exec(read('crates/command/Cargo.toml'));
    expect(address).toBe('{ repo }/releases/download/v{ version }/kp-score-{ target }.tar.gz');
  });
});

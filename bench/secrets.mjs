// How many secrets the strict cleaner finds, and how often it takes something harmless for one; beside it, if it is installed, gitleaks
// on the same texts. `npm run bench:secrets` prints the figures of docs/cleaning.md; `--seed N` draws other secrets (choose
// with 1, report with 2).
//
// GITLEAKS names the program.

import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';

import { isLeft, plantedSecrets } from '../__test__/support/secret-kinds.js';
import { clean } from '../index.js';
import { root, temporaryDirectory } from '../scripts/platform.mjs';

const { values: options } = parseArgs({
  options: { seed: { type: 'string', default: '2' } },
});

/** @typedef {{ name: string, text: string }} Sample */

/** Files of a directory with these endings; the tests of this cleaner are left out, because they have secrets in them. */
function filesIn(/** @type {string} */ directory, /** @type {RegExp} */ ending) {
  const absolute = path.resolve(root, directory);
  if (!existsSync(absolute)) return [];
  return readdirSync(absolute, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && ending.test(entry.name))
    .map((entry) => path.join(entry.parentPath, entry.name))
    .filter((file) => !/secret|clean|pii|credential|betterleaks/i.test(path.relative(absolute, file)))
    .sort();
}

/** Returns a log, drawn by the seed: hashes, identifiers, versions, times and addresses of things. */
function log(/** @type {number} */ lines) {
  const hash = (
    /** @type {unknown} */ of,
    /** @type {string} */ algorithm,
    /** @type {BufferEncoding} */ as = 'hex',
  ) => createHash(algorithm).update(`${options.seed} ${of}`).digest().toString(as);
  const uuid = (/** @type {number} */ at) =>
    hash(at, 'md5').replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
  /** @type {Array<(at: number) => string>} */
  const forms = [
    (at) => `commit ${hash(at, 'sha1')}`,
    (at) => `index ${hash(at, 'sha1').slice(0, 7)}..${hash(-at, 'sha1').slice(0, 7)} 100644`,
    (at) => `"integrity": "sha512-${hash(at, 'sha512', 'base64')}",`,
    (at) => `digest: sha256:${hash(at, 'sha256')}`,
    (at) => `GET /v1/items/${uuid(at)} 200 ${at % 97}ms request_id=${uuid(-at)}`,
    (at) => `x-request-id: ${hash(at, 'md5')}`,
    (at) => `etag: W/"${hash(at, 'md5', 'base64')}"`,
    (at) =>
      `Downloading react-${at % 19}.${at % 7}.${at % 31}-canary-${hash(at, 'sha1').slice(0, 8)}-20260101.tgz`,
    (at) => `heroku[router]: at=info method=GET path="/api/${at}" request_id=${uuid(at)} status=200`,
    (at) => `tokens: ${at * 7}, cache key: page-${at}, next_page_token=${at % 9}`,
    (at) =>
      `{"id":"msg_${hash(at, 'sha1', 'base64').replace(/\W/g, '').slice(0, 22)}","usage":{"input_tokens":${at}}}`,
    (at) => `docker pull registry.example.com/app@sha256:${hash(at, 'sha256')}`,
  ];
  return Array.from({ length: lines }, (_, at) => forms[at % forms.length](at)).join('\n');
}

/** @type {Record<string, () => Sample[]>} */
const HARMLESS = {
  'traces of agents': () => samples(filesIn('../shared/traces', /\.jsonl$/)),
  'source code': () =>
    samples(
      filesIn('node_modules', /\.(?:[cm]?js|[cm]?ts)$/).filter((_, at) => at % 8 === 0),
      300_000,
    ),
  'lockfiles, manifests': () =>
    samples([
      path.join(root, 'package-lock.json'),
      path.join(root, 'Cargo.lock'),
      ...filesIn('node_modules', /^package\.json$/),
    ]),
  'logs, hashes, versions': () => [{ name: 'log', text: log(60_000) }],
};

/** Reads text files, up to so many lines; bundles are one line of many, so long lines count as many. */
function samples(/** @type {string[]} */ files, most = Number.POSITIVE_INFINITY) {
  const read = [];
  let lines = 0;
  for (const name of files) {
    const text = readFileSync(name, 'utf8');
    lines += linesOf(text);
    if (lines > most) break;
    read.push({ name: path.relative(root, name), text });
  }
  return read;
}

/** @param {string} text */
const linesOf = (text) => text.split('\n').length;

/**
 * What was found in a text: how much, and whether a secret is.
 *
 * @typedef {{ count: number, has: (secret: string) => boolean }} Findings
 */

/** @typedef {(samples: Sample[]) => Findings[] | Promise<Findings[]>} Finder */

/** A secret is found if nothing of it is left. @type {(strict: boolean) => Finder} */
const ours = (strict) => (texts) =>
  Promise.all(
    texts.map(async ({ text }) => {
      const { cleaned, redactions } = await clean(text, { level: 'private', strict });
      const count = redactions.reduce((sum, { count }) => sum + count, 0);
      return { count, has: (secret) => !isLeft(cleaned, secret) };
    }),
  );

/** Writes each text to a file of its own, and has gitleaks look at the folder. @type {(program: string) => Finder} */
const gitleaks = (program) => (texts) => {
  const folder = path.join(temporaryDirectory('secrets'), 'texts');
  mkdirSync(folder);
  texts.forEach(({ text }, at) => {
    writeFileSync(path.join(folder, `${at}.txt`), text);
  });
  const report = `${folder}.json`;
  const flags = ['--no-banner', '--log-level=error', '--exit-code=0', '--report-format=json'];
  execFileSync(program, ['dir', folder, ...flags, `--report-path=${report}`], { stdio: 'ignore' });
  /** @type {string[][]} */
  const found = texts.map(() => []);
  for (const { File, Secret } of JSON.parse(readFileSync(report, 'utf8')))
    found[Number.parseInt(path.basename(File), 10)].push(Secret);
  return found.map((all) => ({
    count: all.length,
    has: (secret) =>
      all.some((one) => one.includes(secret) || (secret.includes(one) && one.length > 0.8 * secret.length)),
  }));
};

/** @type {Record<string, Finder>} */
const finders = {
  '`strict`': ours(true),
  'without `strict`': ours(false),
  ...(process.env.GITLEAKS && { 'gitleaks 8.30.1': gitleaks(process.env.GITLEAKS) }),
};

const planted = plantedSecrets(Number(options.seed));
const harmless = Object.entries(HARMLESS).map(([name, make]) => {
  const texts = make();
  return { name, texts, lines: texts.reduce((sum, { text }) => sum + linesOf(text), 0) };
});
const texts = harmless.map(({ name, lines }) => `${name}: ${lines.toLocaleString('en')} lines`);
const columns = [['texts', '---', 'secrets found', ...texts]];
for (const [name, find] of Object.entries(finders)) {
  const found = await find(planted.map(({ kind, text }) => ({ name: kind, text })));
  const rate = found.filter(({ has }, at) => has(planted[at].secret)).length / planted.length;
  const column = [name, '---', rate.toFixed(3)];
  for (const { texts, lines } of harmless) {
    const alarms = (await find(texts)).reduce((sum, { count }) => sum + count, 0);
    column.push(`${alarms} (${((alarms / lines) * 10_000).toFixed(2)} in 10,000)`);
  }
  columns.push(column);
}
for (const row of columns[0].keys()) console.log(`| ${columns.map((column) => column[row]).join(' | ')} |`);

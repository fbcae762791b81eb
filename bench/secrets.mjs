// How many secrets the strict cleaner finds, and how often it takes something harmless for one; beside it, if it is installed, gitleaks
// on the same texts. `npm run bench:secrets` prints the figures of docs/cleaning.md; `--seed N` draws other secrets (choose
// with 1, report with 2), `--misses` lists what was missed and what was taken for a secret.
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
  options: { seed: { type: 'string', default: '2' }, misses: { type: 'boolean', default: false } },
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

/** @param {Sample[]} texts */
const allLinesOf = (texts) => texts.reduce((sum, { text }) => sum + linesOf(text), 0);

/**
 * @typedef {(samples: Sample[]) => string[][] | Promise<string[][]>} Finder Finds the secrets in each text; a planted secret is found if nothing
 * of it is left.
 */

/** @type {(strict: boolean) => Finder} */
const ours = (strict) => (texts) =>
  Promise.all(
    texts.map(async ({ text }) => {
      const { cleaned, redactions } = await clean(text, { level: 'private', strict });
      const count = redactions.reduce((sum, { count }) => sum + count, 0);
      return [cleaned, ...Array(count).fill('')];
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
  return found;
};

const [strict, sdk] = [ours(true), ours(false)];

/** @type {Array<[name: string, finder: Finder | undefined]>} */
const finders = [
  ['`strict`', strict],
  ['without `strict`', sdk],
  ['gitleaks 8.30.1', process.env.GITLEAKS ? gitleaks(process.env.GITLEAKS) : undefined],
];

const planted = plantedSecrets(Number(options.seed));
const places = [...new Set(planted.map(({ where }) => where))];
const table = places.map((where) => [where]);
table.push(['**all**']);
const harmless = Object.entries(HARMLESS).map(([name, make]) => ({ name, texts: make() }));
for (const { name, texts } of harmless) {
  const lines = allLinesOf(texts);
  table.push([`${name}: ${lines.toLocaleString('en')} lines`]);
}
const header = ['texts'];
for (const [name, find] of finders) {
  if (!find) continue;
  header.push(name);
  const isOurs = find === strict || find === sdk;
  const found = await find(planted.map(({ kind, text }) => ({ name: kind, text })));
  const isFound = planted.map(({ secret }, at) =>
    isOurs
      ? !isLeft(found[at][0], secret)
      : found[at].some(
          (each) => each.includes(secret) || (secret.includes(each) && each.length > 0.8 * secret.length),
        ),
  );
  if (options.misses && find === strict)
    planted.forEach(({ kind, where, text }, at) => {
      if (!isFound[at])
        console.error(
          `missed: ${kind} in ${where}: ${JSON.stringify(text)} → ${JSON.stringify(found[at][0])}`,
        );
    });
  const rate = (/** @type {number[]} */ of) => (of.filter((at) => isFound[at]).length / of.length).toFixed(3);
  places.forEach((where, row) => {
    table[row].push(rate([...planted.keys()].filter((at) => planted[at].where === where)));
  });
  table[places.length].push(`**${rate([...planted.keys()])}**`);
  for (const [row, { texts }] of harmless.entries()) {
    const alarms = (await find(texts)).map((each) => (isOurs ? each.length - 1 : each.length));
    if (options.misses && find === strict) {
      for (const [at, count] of alarms.entries()) if (count > 0) await showAlarms(texts[at]);
    }
    const lines = allLinesOf(texts);
    const sum = alarms.reduce((all, count) => all + count, 0);
    table[places.length + 1 + row].push(`${sum} (${((sum / lines) * 10_000).toFixed(2)} in 10,000)`);
  }
}

async function showAlarms(/** @type {Sample} */ { name, text }) {
  for (const [at, line] of text.split('\n').entries()) {
    const { cleaned, redactions } = await clean(line, { level: 'private' });
    const where = cleaned.indexOf('[REDACTED');
    if (redactions.length > 0)
      console.error(
        `${name}:${at + 1}: ${cleaned.slice(Math.max(0, where - 60), where + 60)} ← ${line.slice(Math.max(0, where - 40), where + 60)}`,
      );
  }
}

const line = (/** @type {string[]} */ cells) => `| ${cells.join(' | ')} |`;
console.log([line(header), line(header.map(() => '---')), ...table.map(line)].join('\n'));

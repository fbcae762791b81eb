// How long `kp-score share` takes for 1,000 sessions of 100 MB, how much memory, how many planted secrets it leaves out of the folder, and how
// many names of users and machines it leaves in: `node bench/share.mjs PROGRAM`. `--seed N` draws other secrets.

import { spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';

import { plantedSecrets } from '../__test__/support/secret-kinds.js';
import { claudeSession } from '../__test__/support/sessions.js';
import { root, temporaryDirectory } from '../scripts/platform.mjs';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { seed: { type: 'string', default: '2' }, sessions: { type: 'string', default: '1000' } },
});
const count = Number(values.sessions);
/** So many letters of source code in a session, which is 100 kB with the rest. */
const SIZE = 72_000;

const planted = plantedSecrets(Number(values.seed));
const sources = readdirSync(path.join(root, 'crates'), { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.rs') && !/clean|secret/.test(file))
  .map((file) => readFileSync(path.join(root, 'crates', file), 'utf8'));
const source = sources.join('\n');

/** A name of letters that no text has. */
const nameOf = (/** @type {number} */ at) =>
  `qv${[at % 26, Math.floor(at / 26) % 26, Math.floor(at / 676) % 26].map((letter) => String.fromCharCode(97 + letter)).join('')}xo`;

/** A session of Claude Code, with every `count`th of the planted secrets, and with its user and machine in several shapes. */
function session(/** @type {number} */ at) {
  const [user, host] = [nameOf(at), `${nameOf(at)}zbox`];
  /** @type {Array<[string, unknown]>} */
  const said = [];
  const say = (/** @type {string} */ type, /** @type {unknown} */ content) => said.push([type, content]);
  const own = planted.filter((_, index) => index % count === at);
  say('user', `Look at item ${at} of the list, which ${user} has begun.\n${own[0]?.text ?? ''}`);
  let length = 0;
  for (let turn = 0; length < SIZE || turn + 1 < own.length; turn += 1) {
    const from = (at * 7919 + turn * 104_729) % (source.length - 4000);
    const text = source.slice(from, from + 2000 + (turn % 2000));
    const prompt = `${user}@${host}:~/shop$ ls /home/${user}/shop # by ${user}, on ${host}`;
    const id = `toolu_${String(at).padStart(6, '0')}${String(turn).padStart(6, '0')}`;
    say('assistant', [{ type: 'tool_use', id, name: 'Bash', input: { command: `cat ${turn}.txt` } }]);
    say('user', [
      { type: 'tool_result', tool_use_id: id, content: `${prompt}\n${own[turn + 1]?.text ?? ''}\n${text}` },
    ]);
    length += text.length;
  }
  say('assistant', [{ type: 'text', text: `Done, ${user}.` }]);
  const common = { sessionId: `session-${at}`, cwd: `/home/${user}/shop` };
  return claudeSession(said, { ...common, timestamp: '2026-10-01T09:00:00.000Z' });
}

const directory = temporaryDirectory('bench');
const logs = path.join(directory, 'logs');
mkdirSync(logs);
let bytes = 0;
for (let at = 0; at < count; at++) {
  const text = session(at);
  bytes += Buffer.byteLength(text);
  writeFileSync(path.join(logs, `${nameOf(at)}-${at}.jsonl`), text);
}
const folder = path.join(directory, 'shared');
const begun = performance.now();
const [program = 'kp-score'] = positionals;
const args = ['-f', '%M %U', program, 'share', String(count), logs, '-o', folder, '--yes', '--quiet'];
const { status, stderr } = spawnSync('/usr/bin/time', args, { encoding: 'utf8', maxBuffer: 1e9 });
const seconds = (performance.now() - begun) / 1000;
const [kilobytes, user] = (stderr.trim().split('\n').at(-1) ?? '').split(' ').map(Number);
if (status !== 0) throw new Error(stderr);
const files = readdirSync(folder, { recursive: true, withFileTypes: true, encoding: 'utf8' }).filter((file) =>
  file.isFile(),
);
const texts = files.map((file) => {
  const text = readFileSync(path.join(file.parentPath, file.name), 'utf8');
  return `${file.name}\n${text.replaceAll('\\n', '\n').replaceAll('\\"', '"')}`;
});
const sessionOf = (/** @type {string} */ text) =>
  /^[^\n]*\n\{"type":"user",[^\n]*"sessionId":"session-(\d+)"/.exec(text)?.[1];
const bySession = new Map(texts.map((text) => [sessionOf(text), text]));
if (bySession.size !== count + 1) throw new Error(`${bySession.size - 1} sessions are in the folder`);
const others = texts.filter((text) => sessionOf(text) === undefined).join('\n');
// Half of a secret is as bad as all of it.
const left = planted.filter(({ secret }, at) => {
  const part = secret.length < 16 ? secret : secret.slice(secret.length / 4, (secret.length * 3) / 4);
  return `${bySession.get(String(at % count))}\n${others}`.includes(part);
});
const isName = new Set(Array.from({ length: count }, (_, at) => nameOf(at)));
const found = texts.flatMap((text) => text.match(/qv[a-z]{3}xo/g) ?? []);
const names = new Set(found.filter((name) => isName.has(name)));
const figures = {
  ...{
    sessions: files.length - 2,
    megabytes: Math.round(bytes / 1e6),
    seconds: seconds.toFixed(1),
    userSeconds: user,
  },
  ...{ megabytesOfMemory: Math.round((kilobytes ?? 0) / 1024), identities: names.size },
  ...{
    recall: (1 - left.length / planted.length).toFixed(4),
    left: left.slice(0, 10).map(({ kind, where }) => `${kind}: ${where}`),
  },
};
process.stdout.write(`${JSON.stringify(figures, null, 2)}\n`);

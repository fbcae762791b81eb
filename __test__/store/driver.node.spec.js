'use strict';

// `kp-score --store` loads the driver `pg` from beside the package, and never from the working directory. No server is needed: a planted driver
// would be run before it connects.

const fs = require('node:fs');
const path = require('node:path');

const { command, jsonLines, tracesOf } = require('../support/kp-score.js');
const { root } = require('../support/paths.js');
const { run } = require('../support/run-script.js');
const { scratchDirectory } = require('../support/scratch.js');

const scratch = scratchDirectory('driver');
const url = 'postgres://agent:secret@127.0.0.1:1/none';

/** Installs the command in a directory from which no package is found. */
function installWithoutPackages(directory) {
  fs.mkdirSync(directory);
  for (const name of fs.readdirSync(root)) {
    if (name === 'node_modules') continue;
    const [source, target] = [path.join(root, name), path.join(directory, name)];
    if (['bin', 'lib'].includes(name)) fs.cpSync(source, target, { recursive: true });
    else fs.symlinkSync(source, target, fs.statSync(source).isDirectory() ? 'junction' : 'file');
  }
  return path.join(directory, 'bin', 'kp-score.js');
}

/** Makes a working directory with a driver that tells that it runs, and with what it is handed. */
function plantDriver(directory) {
  const home = path.join(directory, 'node_modules', 'pg');
  fs.mkdirSync(home, { recursive: true });
  fs.writeFileSync(path.join(directory, 'package.json'), '{}');
  fs.writeFileSync(
    path.join(home, 'index.js'),
    `process.stderr.write('planted pg\\n');
     class Client { constructor(options) { process.stderr.write(JSON.stringify(options)); } }
     module.exports = { Client, Pool: Client };`,
  );
  fs.writeFileSync(path.join(directory, 'traces.jsonl'), jsonLines(tracesOf(0.5)));
  return directory;
}

describe('a package pg in the working directory', () => {
  const directory = plantDriver(path.join(scratch, 'current'));
  const alone = installWithoutPackages(path.join(scratch, 'installed'));

  test.each([
    ['installs without pg', alone, 'npm install pg'],
    ['has its own pg', command, 'ECONNREFUSED'],
  ])('kp-score that %s does not run it, and fails', async (_, program, message) => {
    const args = [program, 'score', '--store', url, '--novelty', 'lexical', 'traces.jsonl'];
    const { code, stderr } = await run(process.execPath, args, {}, directory);
    expect(code).toBe(3);
    expect(stderr).toContain(message);
    expect(stderr).not.toContain('planted pg');
    expect(stderr).not.toContain('secret');
  });
});

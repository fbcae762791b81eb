// A registry on this machine, to which the packages are published as a release publishes them, so that they are installed as
// users install them: by name, with the packages of other platforms left out by the package manager.

import { once } from 'node:events';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';

import { root } from '../../scripts/platform.mjs';
import { packAll } from './packages.mjs';
import { runSuccessfully } from './processes.mjs';
import { NPM, TOOLS } from './tools.mjs';

/** Some package managers refuse versions that were published within the last day. */
const PUBLISHED = '2020-01-01T00:00:00.000Z';

/**
 * Packs every package, starts Verdaccio, which passes no request on to another registry, and publishes them there by
 * `scripts/publish.mjs`.
 *
 * @param {string} scratch a folder for the tarballs and the registry
 * @returns {Promise<{ url: string, takeRequests: () => { fetched: string[], unknown: string[] }, close: () => void }>}
 * `takeRequests`: which packages were fetched since the last call, and what was asked for that is not here
 */
export async function startRegistry(scratch) {
  const [tarballs, storage] = ['packages', 'registry'].map((name) => path.join(scratch, name));
  packAll(tarballs);
  const { runServer } = createRequire(path.join(TOOLS, 'package.json'))('verdaccio');
  const everybody = { access: '$all', publish: '$all' };
  const server = await runServer({
    ...{ storage, self_path: storage, uplinks: {}, packages: { '**': everybody } },
    ...{ log: { type: 'stdout', level: 'fatal' }, max_body_size: '500mb', web: { enable: false } },
    publish: { allow_offline: true },
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${server.address().port}/`;
  await publish(tarballs, storage, url);
  const fetched = new Set();
  const unknown = new Set();
  server.prependListener('request', (request, response) => {
    const wanted = decodeURIComponent(request.url.slice(1));
    response.once('finish', () => {
      if (response.statusCode === 404) unknown.add(wanted);
      else if (wanted.endsWith('.tgz')) fetched.add(wanted.split('/-/')[0]);
    });
  });
  const takeRequests = () => {
    const taken = { fetched: [...fetched].sort(), unknown: [...unknown].sort() };
    fetched.clear();
    unknown.clear();
    return taken;
  };
  return { url, takeRequests, close: () => server.close() };
}

/**
 * @param {string} tarballs
 * @param {string} storage
 * @param {string} url
 */
async function publish(tarballs, storage, url) {
  const home = `${storage}-publisher`;
  mkdirSync(home);
  // npm asks for a token, and this registry for none.
  writeFileSync(path.join(home, '.npmrc'), `registry=${url}\n${url.replace('http:', '')}:_authToken=none\n`);
  const env = { npm_config_registry: url, npm_execpath: NPM.at(-1) };
  const command = [process.execPath, path.join(root, 'scripts', 'publish.mjs'), tarballs];
  await runSuccessfully(command, { cwd: home, home, env });
  for (const file of readdirSync(storage, { recursive: true, encoding: 'utf8' })) {
    if (path.basename(file) !== 'package.json') continue;
    const document = JSON.parse(readFileSync(path.join(storage, file), 'utf8'));
    for (const name of Object.keys(document.time)) document.time[name] = PUBLISHED;
    writeFileSync(path.join(storage, file), JSON.stringify(document));
  }
}

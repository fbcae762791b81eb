// A registry on this machine that holds our packages and nothing else, so that they are installed as users
// install them: by name, with the packages of other platforms left out by the package manager.

import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createReadStream, readFileSync, statSync } from 'node:fs';
import { createServer } from 'node:http';
import path from 'node:path';

// Some package managers refuse what was published within the last day.
const PUBLISHED = '2020-01-01T00:00:00.000Z';

/**
 * Starts a registry.
 *
 * @param {{ manifest: object, tarball: string }[]} packages
 * @returns {Promise<{ url: string, takeRequests: () => { fetched: string[], unknown: string[] }, close: () => void }>}
 * `takeRequests`: which packages were fetched since the last call, and what was asked for that is not here
 */
export async function startRegistry(packages) {
  const fetched = new Set();
  const unknown = new Set();
  const tarballs = new Map();
  const documents = new Map();

  const server = createServer((request, response) => {
    const wanted = decodeURIComponent(request.url.slice(1));
    if (tarballs.has(wanted)) {
      const { name, file } = tarballs.get(wanted);
      fetched.add(name);
      response.writeHead(200, { 'content-length': statSync(file).size });
      createReadStream(file).pipe(response);
    } else if (documents.has(wanted)) {
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(documents.get(wanted));
    } else {
      unknown.add(wanted);
      response.writeHead(404, { 'content-type': 'application/json' });
      response.end('{"error":"not found"}');
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');

  const url = `http://127.0.0.1:${server.address().port}/`;
  for (const { manifest, tarball } of packages) {
    const { name, version } = manifest;
    const location = `${name}/-/${path.basename(name)}-${version}.tgz`;
    tarballs.set(location, { name, file: tarball });
    documents.set(name, JSON.stringify(packageDocument(manifest, url + location, readFileSync(tarball))));
  }
  const takeRequests = () => {
    const taken = { fetched: [...fetched].sort(), unknown: [...unknown].sort() };
    fetched.clear();
    unknown.clear();
    return taken;
  };
  return { url, takeRequests, close: () => server.close() };
}

/** What a registry tells of a package that has one version. */
function packageDocument(manifest, tarball, bytes) {
  const { name, version } = manifest;
  const dist = {
    tarball,
    shasum: createHash('sha1').update(bytes).digest('hex'),
    integrity: `sha512-${createHash('sha512').update(bytes).digest('base64')}`,
  };
  return {
    name,
    'dist-tags': { latest: version },
    versions: { [version]: { ...manifest, dist } },
    time: { created: PUBLISHED, modified: PUBLISHED, [version]: PUBLISHED },
  };
}

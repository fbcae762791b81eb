'use strict';

// The crates build on each other in one direction, and the addon alone knows Node-API.

const { execFileSync } = require('node:child_process');
const path = require('node:path');

const { root } = require('./support/paths.js');

/** The crates in the order of the data: each depends only on those before it. */
const LAYERS = 'error os json trace formats clean encoder embed index score command'
  .split(' ')
  .map((name) => `knowledgepulse-${name}`);

/** Programs that build what the addon needs; it contains none of them. */
const TOOLS = ['knowledgepulse-quantize'];

const ADDON = 'knowledgepulse-native';

const { packages } = JSON.parse(
  execFileSync('cargo', ['metadata', '--no-deps', '--format-version=1', '--locked'], {
    cwd: root,
    encoding: 'utf8',
  }),
);

test('every crate of the workspace has its layer', () => {
  expect(packages.map(({ name }) => name).sort()).toEqual([...LAYERS, ...TOOLS, ADDON].sort());
});

test.each(LAYERS)('%s depends on lower layers alone, and not on Node-API', (name) => {
  const { dependencies } = packages.find((crate) => crate.name === name);
  const lower = LAYERS.slice(0, LAYERS.indexOf(name));
  for (const { name: dependency, path: folder } of dependencies) {
    if (folder) expect(lower).toContain(dependency);
    else expect(dependency).not.toMatch(/^napi/);
  }
});

test('the addon contains layers alone', () => {
  const { dependencies } = packages.find(({ name }) => name === ADDON);
  const own = dependencies.filter(({ path: folder }) => folder).map(({ name }) => name);
  expect(LAYERS).toEqual(expect.arrayContaining(own));
});

test('each crate says in one sentence what it is for', () => {
  for (const { manifest_path, description } of packages) {
    expect({ crate: path.dirname(manifest_path), description }).toEqual({
      crate: expect.any(String),
      description: expect.stringMatching(/^\w.{10,}[^.]$/),
    });
  }
});

// The installed package scores with every package manager and every runtime.

import assert from 'node:assert/strict';
import path from 'node:path';
import { test } from 'node:test';

import { Project, packageManagers } from './package-managers.mjs';
import { FP32, MAIN, PLATFORM, Q8 } from './packages.mjs';
import { expectScores, SCRIPTS, writeProbes } from './probes.mjs';
import { once } from './processes.mjs';
import { runtimes } from './tools.mjs';
import { traces } from './traces.mjs';

/** Registers the cases of every package manager. */
export function checkInstalls({ registry, scratch }) {
  for (const manager of packageManagers) {
    const install = (label, overrides) =>
      once(async () => {
        const parent = path.join(scratch, `${manager.name} ${label}`);
        const project = new Project(manager, parent, { registry: registry.url, overrides });
        registry.takeRequests();
        await project.add(MAIN);
        writeProbes(project.directory);
        return { project, requests: registry.takeRequests() };
      });
    const plain = install('plain');
    const small = install('q8', { [FP32]: `npm:${Q8}@*` });
    const able = runtimes().filter(({ kind }) => (manager.only ?? kind) === kind);

    test(`${manager.name} installs what this platform needs`, async () => {
      const { requests } = await plain();
      expectRequests(requests, [MAIN, PLATFORM, FP32], manager);
    });
    for (const runtime of able) {
      for (const script of SCRIPTS) {
        test(`${manager.name}: ${script} on ${runtime.name}`, async () => {
          const { project } = await plain();
          await expectScores(await project.probe(runtime, script), 'fp32');
        });
      }
    }

    test(`${manager.name}: the command kp-score-native`, async () => {
      const { project } = await plain();
      const { stdout } = await project.exec(
        'kp-score-native',
        'score',
        '--format',
        'jsonl',
        '--quiet',
        'traces.json',
      );
      const results = stdout.split('\n').filter((line) => line.startsWith('{'));
      assert.deepEqual(
        results.map((line) => JSON.parse(line).id),
        traces.map(({ id }) => id),
      );
    });

    test(`${manager.name} installs the int8 model instead`, async () => {
      const { project, requests } = await small();
      expectRequests(requests, [MAIN, PLATFORM, Q8], manager);
      await expectScores(await project.probe(able[0], 'require.cjs'), 'q8');
    });
    test(`${manager.name}: the int8 model instead, asked for by its dtype`, async () => {
      const { project } = await small();
      const env = { KNOWLEDGEPULSE_DTYPE: 'q8' };
      await expectScores(await project.probe(able[0], 'require.cjs', env), 'q8');
    });
    test(`${manager.name} installs the int8 model beside the other`, async () => {
      const { project } = await plain();
      await project.add(Q8);
      await expectScores(await project.probe(able[0], 'require.cjs'), 'fp32');
      const env = { KNOWLEDGEPULSE_DTYPE: 'q8' };
      await expectScores(await project.probe(able[0], 'require.cjs', env), 'q8');
    });
  }
}

/** Optional peers: a package manager may ask about them, and none installs them unasked. */
const OPTIONAL_PEERS = ['pg'];

/** Expects that these packages were fetched and nothing else was asked for. */
function expectRequests({ fetched, unknown }, packages, { bringsBothLibcs }) {
  const own = bringsBothLibcs ? fetched.filter((name) => !name.endsWith('-musl')) : fetched;
  assert.deepEqual(own, [...packages].sort());
  assert.deepEqual(
    unknown.filter((name) => !OPTIONAL_PEERS.includes(name)),
    [],
  );
}

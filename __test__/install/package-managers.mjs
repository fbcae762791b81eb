// How users of each package manager install the package.

import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';

import { probe } from './probes.mjs';
import { runSuccessfully } from './processes.mjs';
import { BUN, DENO, NPM, PNPM, YARN } from './tools.mjs';

const npmrc = (registry) =>
  [`registry=${registry}`, 'ignore-scripts=true', 'audit=false', 'update-notifier=false', ''].join('\n');

const filesOfNpm = ({ registry, overrides }) => ({
  'package.json': { private: true, overrides },
  '.npmrc': npmrc(registry),
});

/** Settings of Yarn that differ from its defaults, in YAML, of which JSON is a part. */
const yarnrc = (registry, linker) => ({
  nodeLinker: linker,
  // Without it, Plug'n'Play is for `require` alone.
  pnpEnableEsmLoader: linker === 'pnp',
  npmRegistryServer: registry,
  unsafeHttpWhitelist: ['127.0.0.1'],
  enableScripts: false,
  // On by default where it sees a CI service, and there is no lockfile yet.
  enableImmutableInstalls: false,
  enableTelemetry: false,
});

const yarn = (name, linker) => ({
  name,
  add: (names) => [process.execPath, YARN, 'add', ...names],
  exec: (command) => [process.execPath, YARN, 'run', command],
  files: ({ registry, overrides }) => ({
    'package.json': { private: true, resolutions: overrides },
    'yarn.lock': '',
    '.yarnrc.yml': yarnrc(registry, linker),
  }),
});

/**
 * `add`: the command that adds packages to a project. `exec`: what runs a command of theirs. `files`: the project before that. `node`: how Node.js runs a
 * script in it, if not directly. `only`: the runtime that can run it, if not all can. `bringsBothLibcs`: does not
 * know the field `libc` of a manifest.
 */
export const packageManagers = [
  {
    name: 'npm',
    add: (names) => [...NPM, 'install', ...names],
    exec: (command) => [...NPM, 'exec', '--offline', '--', command],
    files: filesOfNpm,
  },
  {
    name: 'Bun',
    add: (names) => [BUN, 'add', ...names],
    exec: (command) => [BUN, 'run', '--bun', command],
    files: filesOfNpm,
  },
  {
    name: 'pnpm',
    add: (names) => [...PNPM, 'add', ...names],
    exec: (command) => [...PNPM, 'exec', command],
    files: ({ registry, overrides }) => ({
      'package.json': { private: true },
      'pnpm-workspace.yaml': { overrides, updateNotifier: false },
      '.npmrc': npmrc(registry),
    }),
  },
  yarn('Yarn', 'node-modules'),
  { ...yarn("Yarn's Plug'n'Play", 'pnp'), only: 'Node', node: (command) => [...command, YARN, 'node'] },
  {
    name: 'Deno',
    only: 'Deno',
    bringsBothLibcs: true,
    add: (names) => [DENO, 'add', ...names.map((name) => `npm:${name}`)],
    exec: (command) => [DENO, 'run', '--allow-all', '--cached-only', `npm:@knowledgepulse/native/${command}`],
    files: filesOfNpm,
  },
];

/** A project with nothing installed yet, of a user who has installed nothing yet. */
export class Project {
  #manager;
  #home;

  /**
   * @param {typeof packageManagers[number]} manager
   * @param {string} parent a directory for it
   * @param {{ registry: string, overrides?: Record<string, string> }} options `overrides`: what takes the place of
   * packages
   */
  constructor(manager, parent, { registry, overrides = {} }) {
    this.#manager = manager;
    this.#home = path.join(parent, 'home');
    this.directory = path.join(parent, 'project');
    mkdirSync(this.#home, { recursive: true });
    mkdirSync(this.directory);
    for (const [name, contents] of Object.entries(manager.files({ registry, overrides }))) {
      const text = typeof contents === 'string' ? contents : JSON.stringify(contents);
      writeFileSync(path.join(this.directory, name), text);
    }
  }

  /** Adds packages by name. */
  add(...names) {
    return runSuccessfully(this.#manager.add(names), { cwd: this.directory, home: this.#home });
  }

  /** Runs a command of an installed package. */
  exec(command, ...args) {
    return runSuccessfully([...this.#manager.exec(command), ...args], {
      cwd: this.directory,
      home: this.#home,
    });
  }

  /** Runs a script of the project on a runtime, and returns what it reports. */
  probe(runtime, script, env) {
    const { node = (command) => command } = this.#manager;
    const command = runtime.kind === 'Node' ? node(runtime.command) : runtime.command;
    return probe([...command, script], { cwd: this.directory, home: this.#home, env });
  }
}

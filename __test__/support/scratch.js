'use strict';

const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');

const { modelDirectory, root } = require('./paths.js');

/** A directory for the tests of a file, removed after them. */
function scratchDirectory(name) {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), `knowledgepulse-${name}-`));
  afterAll(() => fs.rmSync(directory, { recursive: true }));
  return directory;
}

/** Returns a function that writes a file into `directory`, with the folders of its name, and returns its path. */
const writerIn = (directory) => (name, contents) => {
  const file = path.join(directory, name);
  fs.mkdirSync(path.dirname(file), { recursive: true });
  fs.writeFileSync(file, contents);
  return file;
};

/** Makes a call in one new folder of `directory` and awaits it in another; returns its result, and what is in both folders then. */
async function fromFolder(directory, prepare, call) {
  const [before, after] = ['before', 'after'].map((name) => path.join(directory, name));
  for (const folder of [before, after]) fs.mkdirSync(folder);
  const home = process.cwd();
  try {
    process.chdir(before);
    await prepare();
    const reply = call();
    process.chdir(after);
    return { result: await reply, before: fs.readdirSync(before).sort(), after: fs.readdirSync(after) };
  } finally {
    process.chdir(home);
  }
}

/** A path for the file of a cache, in a new directory within `directory`. */
function cacheFileIn(directory) {
  return path.join(fs.mkdtempSync(path.join(directory, 'cache-')), 'memory.safetensors');
}

/** A copy of the model package in `directory`; links, because the model is large. */
function copyModel(directory) {
  fs.mkdirSync(directory, { recursive: true });
  for (const file of fs.readdirSync(modelDirectory)) {
    fs.symlinkSync(path.join(modelDirectory, file), path.join(directory, file));
  }
  return directory;
}

/** Puts `contents` in place of a file that may be a link. */
function replaceFile(file, contents) {
  fs.rmSync(file);
  fs.writeFileSync(file, contents);
}

/** A copy of the package alone, without the repository around it. */
function copyPackage(directory) {
  const { files } = require('../../package.json');
  fs.mkdirSync(directory, { recursive: true });
  for (const name of ['package.json', ...files.map((file) => file.replace(/\/\*.*/, ''))]) {
    fs.cpSync(path.join(root, name), path.join(directory, name), { recursive: true });
  }
  return directory;
}

/** Links packages of the repository into the `node_modules` of `directory`. */
function linkPackages(directory, packages) {
  for (const [name, target] of Object.entries(packages)) {
    const link = path.join(directory, 'node_modules', name);
    fs.mkdirSync(path.dirname(link), { recursive: true });
    fs.symlinkSync(target, link, 'junction');
  }
}

module.exports = {
  cacheFileIn,
  copyModel,
  copyPackage,
  fromFolder,
  linkPackages,
  replaceFile,
  scratchDirectory,
  writerIn,
};

'use strict';

// What the specs of the readers share.

const fs = require('node:fs');
const path = require('node:path');

const { readMap, readPlaced } = require('../../lib/read-traces.js');

/** The folder of the recordings that the specs read. */
const folder = path.join(__dirname, '..', 'formats');

/** All that is read of an input, with places. */
async function read(input, { map, ...options } = {}) {
  const results = [];
  const settings = map === undefined ? options : { ...options, map: readMap(map, 'options.map') };
  for await (const result of readPlaced(input, settings)) results.push(result);
  return results;
}

/** All traces of an input in which nothing is bad. */
async function tracesOf(input, options) {
  return (await read(input, options)).map(({ error, trace }) => {
    if (error) throw error;
    return trace;
  });
}

/** The only trace of an input. */
async function traceOf(input, options) {
  const [trace, ...others] = await tracesOf(input, options);
  if (others.length > 0) throw new Error(`${others.length} more traces`);
  return trace;
}

/** The steps of a trace, each as its type and what novelty compares. */
const stepsOf = ({ steps }) => steps.map(({ type, content }) => [type, content]);

/** The lines of a recording. */
const linesOf = (name) => fs.readFileSync(path.join(folder, name), 'utf8').trim().split('\n');

/** The records of a recording, one a line. */
const recordsOf = (name) => linesOf(name).map((line) => JSON.parse(line));

/** A recording as a stream. */
const streamOf = (name) => fs.createReadStream(path.join(folder, name));

/** The bytes of an input in chunks of some size. */
function* chunksOf(bytes, size) {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

module.exports = { chunksOf, folder, linesOf, read, recordsOf, stepsOf, streamOf, traceOf, tracesOf };

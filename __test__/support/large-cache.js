'use strict';

const { root } = require('./paths.js');

/** A program with a cache that takes a while to write; its argument is the file. */
const LARGE = `
  const { VectorCache } = require(${JSON.stringify(root)});
  const file = process.argv.at(-1);
  const cache = new VectorCache({ maxElements: 2000 });
  const vector = new Float32Array(384);
  let added = 0;
  const add = () => {
    vector[0] = added;
    cache.add(vector, String(added++));
  };
  for (let i = 0; i < 2000; i++) add();
`;

module.exports = { LARGE };

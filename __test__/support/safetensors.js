// Files of safetensors: the length of a header in 8 bytes, the header in JSON, the tensors.

/** Returns the header of a file, and where its tensors begin. */
function headerOf(bytes) {
  const start = 8 + Number(bytes.readBigUInt64LE());
  return { header: JSON.parse(bytes.subarray(8, start).toString()), start };
}

/** Returns a file of a header and its tensors. */
function safetensors(header, tensors) {
  const json = Buffer.from(JSON.stringify(header));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(json.length));
  return Buffer.concat([length, json, tensors]);
}

module.exports = { headerOf, safetensors };

// A port for a server that takes none of its own choice.

const net = require('node:net');

/**
 * Returns a port of this machine that nothing listens at.
 *
 * @returns {Promise<number>}
 */
function freePort() {
  return new Promise((resolve, reject) => {
    const listener = net.createServer();
    listener.once('error', reject);
    listener.listen(0, '127.0.0.1', () => {
      const { port } = /** @type {net.AddressInfo} */ (listener.address());
      listener.close(() => resolve(port));
    });
  });
}

module.exports = { freePort };

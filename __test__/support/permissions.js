'use strict';

const { spawnSync } = require('node:child_process');

/** What goes before a command so that permissions count for it; `reason`: why they cannot. */
const permissions = (() => {
  if (process.platform === 'win32') return { reason: 'Windows has other permissions' };
  if (process.getuid() !== 0) return { prefix: [] };
  const prefix = ['setpriv', '--bounding-set=-dac_override,-dac_read_search', '--inh-caps=-all'];
  if (spawnSync(prefix[0], [...prefix.slice(1), 'true']).status === 0) return { prefix };
  return { reason: 'root may read everything, and setpriv cannot take that away' };
})();

module.exports = { permissions };

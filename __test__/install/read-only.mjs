// A file system on which nothing can be written, as of a container or a function service.

import { spawnSync } from 'node:child_process';

/** In a namespace of mounts of its own, the directory is mounted over itself, read-only. */
const SCRIPT = `
set -e
mount --bind "$0" "$0"
mount --options remount,bind,ro "$0"
cd "$0"
if touch written 2>/dev/null; then echo 'it is not read-only' >&2; exit 1; fi
exec "$@"
`;

const command = (directory, args) => [
  'unshare',
  '--mount',
  '--map-root-user',
  'sh',
  '-c',
  SCRIPT,
  directory,
  ...args,
];

/** `command` wraps a command, unless there is a `reason` why that cannot be. */
export const READ_ONLY = { command, reason: whyNot() };

function whyNot() {
  const [program, ...args] = command('/tmp', ['true']);
  const { error, status, stderr } = spawnSync(program, args, { encoding: 'utf8' });
  return status === 0 ? undefined : `no read-only mount here: ${error?.message ?? stderr.trim()}`;
}

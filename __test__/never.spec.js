'use strict';

// What SECURITY.md says that the package never does, seen from the system: strace lists the calls of a process that
// scores.

const { spawnSync } = require('node:child_process');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');

const { root } = require('./support/paths.js');

const hasStrace = process.platform === 'linux' && spawnSync('strace', ['-V']).status === 0;
if (!hasStrace) console.warn('skipped: strace, which lists the system calls of a process, is not there');

const SCRIPT = `
  const { makeTrace } = require(process.argv[2]);
  require('node:fs').writeSync(2, 'begin\\n');
  const kp = require(process.argv[1]);
  (async () => {
    const steps = [{ type: 'thought', content: '\${require("node:fs")} $(touch x) <script> ' + 'word '.repeat(600) }];
    await kp.evaluateValue(makeTrace());
    await kp.evaluateValues([makeTrace({ steps }), makeTrace({ objective: 'https://example.com/' })]);
    await kp.evaluateValue({}).catch(() => {});
    const status = await kp.embedderStatus();
    require('node:fs').writeSync(2, 'end ' + status.available + '\\n');
  })();
`;

/** The system calls of the process between its marks, in all its threads, as `name(arguments`. */
function systemCalls() {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'knowledgepulse-strace-'));
  try {
    const log = path.join(directory, 'log');
    const calls = 'trace=%process,%network,%file,write,ftruncate,fchmod,fchown,memfd_create,io_uring_setup';
    const script = ['-e', SCRIPT, root, path.join(__dirname, 'support', 'make-trace.js')];
    // With this, Node.js refuses to run text as code.
    const flags = process.versions.bun ? [] : ['--disallow-code-generation-from-strings'];
    const command = ['-f', '-qq', '-s', '300', '-o', log, '-e', calls, process.execPath, ...flags, ...script];
    // Otherwise Bun writes what it made of the JavaScript to a cache.
    const env = { ...process.env, BUN_RUNTIME_TRANSPILER_CACHE_PATH: '0' };
    const { status, stderr } = spawnSync('strace', command, { encoding: 'utf8', env });
    if (/ptrace|Operation not permitted/.test(stderr)) return { refused: stderr };
    expect({ status, stderr }).toEqual({ status: 0, stderr: 'begin\nend true\n' });
    const lines = fs.readFileSync(log, 'utf8').split('\n');
    const begin = lines.findIndex((line) => line.includes('"begin\\n"'));
    const end = lines.findIndex((line) => line.includes('"end true\\n"'));
    expect(begin).toBeGreaterThan(0);
    expect(end).toBeGreaterThan(begin);
    // Without the number of the thread.
    return { calls: lines.slice(begin + 1, end).map((line) => line.replace(/^\d+\s+/, '')) };
  } finally {
    fs.rmSync(directory, { recursive: true });
  }
}

/** What tells a system call that changes something outside the process. */
const DOES = {
  'talk to a network': /^(socket|connect|bind|listen|accept|sendto|sendmsg)\w*\(/,
  'start programs': /^(execve|execveat|fork|vfork)\(|^clone3?\((?!.*CLONE_THREAD)/,
  'write files':
    /^open(at)?\(.*O_(WRONLY|RDWR|CREAT|TRUNC)|^(creat|ftruncate|truncate|memfd_create|io_uring_setup)\(/,
  'change the file system':
    /^(unlink|rename|mkdir|rmdir|link|symlink|chmod|fchmod|chown|fchown|lchown|mknod|utime|setxattr|mount)\w*\(/,
};

(hasStrace ? describe : describe.skip)('scoring does not', () => {
  let traced;
  beforeAll(() => {
    traced = systemCalls();
    if (traced.refused) console.warn(`skipped: strace may not trace here: ${traced.refused}`);
  });

  test.each(Object.entries(DOES))('%s', (_, pattern) => {
    if (traced.refused) return;
    expect(traced.calls.filter((call) => pattern.test(call))).toEqual([]);
  });

  test('go unseen: it reads the model', () => {
    if (traced.refused) return;
    expect(traced.calls.some((call) => /^open(at)?\(.*model\.onnx/.test(call))).toBe(true);
  });
});

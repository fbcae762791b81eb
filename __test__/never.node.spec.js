'use strict';

// What SECURITY.md says that the package never does, seen from the system: strace lists the calls of a process that
// scores.

const { spawnSync } = require('node:child_process');
const fs = require('node:fs');
const path = require('node:path');

const { needing } = require('./support/needs.js');
const { root } = require('./support/paths.js');
const { scratchDirectory } = require('./support/scratch.js');

const scratch = scratchDirectory('never');

// A container may forbid tracing.
const canTrace =
  process.platform === 'linux' && spawnSync('strace', ['-o', '/dev/null', 'true']).status === 0;

const SCRIPT = `
  const { makeTrace } = require(process.argv[2]);
  require('node:fs').writeSync(2, 'begin\\n');
  const kp = require(process.argv[1]);
  (async () => {
    const steps = [{ type: 'thought', content: '\${require("node:fs")} $(touch x) <script> ' + 'word '.repeat(600) }];
    await kp.evaluateValue(makeTrace());
    await new kp.Scorer().scoreAll([makeTrace({ steps }), makeTrace({ objective: 'https://example.com/' })]);
    await kp.evaluateValue({}).catch(() => {});
    const status = await kp.embedderStatus();
    require('node:fs').writeSync(2, 'end ' + status.available + '\\n');
  })();
`;

/** Saves a cache and loads it; the file is the third argument. */
const FILE_SCRIPT = `
  const kp = require(process.argv[1]);
  const { makeTrace } = require(process.argv[2]);
  const memory = new kp.TraceMemory({ method: 'lexical' });
  require('node:fs').writeSync(2, 'begin\\n');
  (async () => {
    await memory.add({ ...makeTrace(), id: '../id' });
    for (let i = 0; i < 2; i++) await memory.save(process.argv[3]);
    const { size } = await kp.TraceMemory.load(process.argv[3]);
    require('node:fs').writeSync(2, 'end ' + (size === 1) + '\\n');
  })();
`;

/** The system calls of a process between its marks, in all its threads, as `name(arguments`. */
function systemCalls(program, ...parameters) {
  const directory = fs.mkdtempSync(path.join(scratch, 'strace-'));
  const log = path.join(directory, 'log');
  const calls = 'trace=%process,%network,%file,write,ftruncate,fchmod,fchown,memfd_create,io_uring_setup';
  const script = ['-e', program, root, path.join(__dirname, 'support', 'make-trace.js'), ...parameters];
  // Node.js refuses to run text as code.
  const flag = '--disallow-code-generation-from-strings';
  const command = ['-f', '-qq', '-s', '300', '-o', log, '-e', calls, process.execPath, flag, ...script];
  const { status, stderr } = spawnSync('strace', command, { encoding: 'utf8' });
  expect({ status, stderr }).toEqual({ status: 0, stderr: 'begin\nend true\n' });
  const lines = fs.readFileSync(log, 'utf8').split('\n');
  const begin = lines.findIndex((line) => line.includes('"begin\\n"'));
  const end = lines.findIndex((line) => line.includes('"end true\\n"'));
  expect(begin).toBeGreaterThan(0);
  expect(end).toBeGreaterThan(begin);
  // Without the number of the thread.
  return lines.slice(begin + 1, end).map((line) => line.replace(/^\d+\s+/, ''));
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

needing(
  canTrace,
  'strace, and the permission to trace',
  describe,
)('strace', () => {
  let calls;
  beforeAll(() => {
    calls = systemCalls(SCRIPT);
  });

  test.each(Object.entries(DOES))('scoring does not %s', (_, pattern) => {
    expect(calls.filter((call) => pattern.test(call))).toEqual([]);
  });

  test('scoring reads the model, as strace sees', () => {
    expect(calls.some((call) => /^open(at)?\(.*model\.safetensors/.test(call))).toBe(true);
  });
});

needing(
  canTrace,
  'strace, and the permission to trace',
  test,
)('saving writes the file that it is told to, and a temporary one beside it', () => {
  const directory = fs.mkdtempSync(path.join(scratch, 'saved-'));
  const file = path.join(directory, 'memory.safetensors');
  const calls = systemCalls(FILE_SCRIPT, file);
  const writes = calls.filter((call) =>
    [DOES['write files'], DOES['change the file system']].some((pattern) => pattern.test(call)),
  );
  const kinds = writes.map((call) => {
    const name = call.match(/^\w+/)[0].replace(/at2?$/, '');
    const paths = [...call.matchAll(/"([^"]*)"/g)].map(([, one]) => one);
    expect(paths.map((one) => path.dirname(one))).toEqual(paths.map(() => directory));
    const isTemporary = (one) => /^\.knowledgepulse-\w+\.tmp$/.test(path.basename(one));
    return [name, ...paths.map((one) => (isTemporary(one) ? 'temporary' : path.basename(one)))].join(' ');
  });
  const saved = ['open temporary', 'rename temporary memory.safetensors'];
  // The second file takes over the permissions of the first.
  expect(kinds.filter((kind) => kind !== 'fchmod')).toEqual([...saved, ...saved]);
  for (const name of ['talk to a network', 'start programs']) {
    expect(calls.filter((call) => DOES[name].test(call))).toEqual([]);
  }
  expect(fs.readdirSync(directory)).toEqual(['memory.safetensors']);
});

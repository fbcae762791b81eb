'use strict';

const { spawn } = require('node:child_process');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { pathToFileURL } = require('node:url');

const { root } = require('./paths.js');

/**
 * Runs a script in a process of its own, on the runtime that runs the tests. In the script, `kp` is the
 * package and `makeTrace` the helper of that name.
 *
 * @param {string} body the body of an async function
 * @param {{ env?: Record<string, string | undefined>, from?: string }} [options] `from`: another directory
 * to load the package from
 * @returns {Promise<{ code: number | null, signal: string | null, stdout: string, stderr: string }>}
 */
async function runScript(body, { env = {}, from = root } = {}) {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'knowledgepulse-test-'));
  const file = path.join(directory, 'script.cjs');
  const makeTrace = path.join(__dirname, 'make-trace.js');
  fs.writeFileSync(
    file,
    `'use strict';
const { makeTrace } = require(${JSON.stringify(makeTrace)});
const kp = require(${JSON.stringify(from)});
(async () => {
${body}
})();
`,
  );
  try {
    return await run(process.execPath, [file], env);
  } finally {
    fs.rmSync(directory, { recursive: true });
  }
}

/** Runs a command to its end; `watch` gets the child process at its beginning. */
function run(command, args, env = {}, cwd = undefined, watch = () => {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { cwd, env: { ...process.env, ...env } });
    watch(child);
    let stdout = '';
    let stderr = '';
    child.stdout.on('data', (chunk) => {
      stdout += chunk;
    });
    child.stderr.on('data', (chunk) => {
      stderr += chunk;
    });
    child.on('error', reject);
    child.on('close', (code, signal) => resolve({ code, signal, stdout, stderr }));
  });
}

/** Settles with how a command ended, which must be with success; `name` is what an error calls it. */
async function success(ending, name = 'it') {
  const { code, signal, stdout, stderr } = await ending;
  if (code !== 0) throw new Error(`${name} ended with ${signal ?? `code ${code}`}:\n${stdout}${stderr}`);
  return { code, stdout, stderr };
}

/** As {@link runScript}, for a script that prints one JSON value and succeeds. */
async function runForResult(body, options) {
  const { stdout, stderr } = await success(runScript(body, options));
  return { result: JSON.parse(stdout), stderr };
}

/** What an expression gives of `script`, a module of scripts/, which are of another kind than Jest runs. */
async function evaluate(script, expression) {
  const url = pathToFileURL(path.join(root, 'scripts', script)).href;
  const { result } = await runForResult(`
    const script = await import(${JSON.stringify(url)});
    console.log(JSON.stringify(${expression}));
  `);
  return result;
}

module.exports = { evaluate, run, runForResult, runScript, success };

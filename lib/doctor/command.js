'use strict';

// `kp-score doctor`, which runs even if the rest of the package does not.

const { parseArgs } = require('node:util');

const { diagnose, render } = require('./doctor.js');

const NAME = 'kp-score doctor';

const USAGE = `Usage: kp-score doctor [--json]

Checks this installation and says what to do about anything wrong.

Options:
  --json            prints JSON
  -h, --help        prints this

Exit code: 0 healthy, 1 not healthy, 2 wrong usage`;

const OPTIONS = /** @type {const} */ ({
  help: { type: 'boolean', short: 'h' },
  json: { type: 'boolean' },
});

/** @param {{ json?: boolean }} values */
async function examine({ json = false }) {
  const report = await diagnose();
  const colours = process.stdout.isTTY === true && process.stdout.hasColors();
  const failure = await write(json ? JSON.stringify(report, null, 2) : render(report, { colours }));
  if (failure !== undefined) {
    console.error(`${NAME}: the report could not be written: ${failure.message}`);
    return 1;
  }
  return report.healthy ? 0 : 1;
}

/**
 * Writes a text and a line feed to the standard output. Resolves with the error, unless its reader has closed the pipe.
 *
 * @param {string} text
 * @returns {Promise<Error | undefined>}
 */
function write(text) {
  return new Promise((resolve) => {
    // The callback gets the error too. Without a listener it would end the process.
    process.stdout.on('error', () => {});
    process.stdout.write(`${text}\n`, (/** @type {NodeJS.ErrnoException | null | undefined} */ error) =>
      resolve(error?.code === 'EPIPE' ? undefined : (error ?? undefined)),
    );
  });
}

async function runProcess() {
  let values;
  try {
    ({ values } = parseArgs({ args: process.argv.slice(3), options: OPTIONS }));
  } catch (error) {
    console.error(`${NAME}: ${/** @type {Error} */ (error).message}\n\n${USAGE}`);
    process.exitCode = 2;
    return;
  }
  if (values.help) console.log(USAGE);
  else process.exitCode = await examine(values);
}

module.exports = { runProcess };

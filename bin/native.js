#!/usr/bin/env node
'use strict';

// The command line of the package: `npx @knowledgepulse/native COMMAND`.

const { parseArgs } = require('node:util');

const { diagnose, render } = require('../lib/doctor/doctor.js');

const NAME = '@knowledgepulse/native';

const USAGE = `Usage: npx ${NAME} COMMAND

Commands:
  doctor [--json]   checks this installation and says what to do about anything wrong

Options:
  --json            prints JSON
  --version         prints the version of the package
  -h, --help        prints this

Exit code: 0 healthy, 1 not healthy, 2 wrong usage`;

const OPTIONS = {
  help: { type: 'boolean', short: 'h' },
  json: { type: 'boolean' },
  version: { type: 'boolean' },
};

const commands = { doctor };

async function doctor({ json = false }) {
  const report = await diagnose();
  const colours = process.stdout.isTTY === true && process.stdout.hasColors();
  const failure = await write(json ? JSON.stringify(report, null, 2) : render(report, { colours }));
  if (failure !== undefined) {
    console.error(`${NAME}: the report could not be written: ${failure.message}`);
    return 1;
  }
  return report.healthy ? 0 : 1;
}

/** Writes a text and a line feed to the standard output. Resolves with the error, unless whoever read it had enough. */
function write(text) {
  return new Promise((resolve) => {
    // It is told to the callback too, and would end the process if nobody listened.
    process.stdout.on('error', () => {});
    process.stdout.write(`${text}\n`, (error) =>
      resolve(error?.code === 'EPIPE' ? undefined : (error ?? undefined)),
    );
  });
}

async function main(args) {
  let parsed;
  try {
    parsed = parseArgs({ args, options: OPTIONS, allowPositionals: true });
  } catch (error) {
    return misused(error.message);
  }
  const { values, positionals } = parsed;
  if (values.help) {
    console.log(USAGE);
    return 0;
  }
  if (values.version) {
    console.log(require('../package.json').version);
    return 0;
  }
  const [name, ...others] = positionals;
  if (name === undefined) return misused('a command is missing');
  if (!Object.hasOwn(commands, name)) return misused(`there is no command '${name}'`);
  if (others.length > 0) return misused(`${name} takes no argument '${others[0]}'`);
  return commands[name](values);
}

function misused(message) {
  console.error(`${NAME}: ${message}\n\n${USAGE}`);
  return 2;
}

main(process.argv.slice(2)).then((code) => {
  process.exitCode = code;
});

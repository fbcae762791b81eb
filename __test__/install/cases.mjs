// One test a case, under a name that tells everything, because `--only` selects by it.

import { test } from 'node:test';
import { parseArgs } from 'node:util';

const { values } = parseArgs({
  options: { only: { type: 'string', default: '' }, installed: { type: 'boolean', default: false } },
});
const only = new RegExp(values.only, 'i');

/** Whether only what is installed already is to be looked at. */
export const installedOnly = values.installed;

/** Registers a case, if it was asked for. */
export function check(name, body, options = {}) {
  if (only.test(name)) test(name, options, body);
}

/** A function that makes something when it is first asked for it, and gives the same thing from then on. */
export function once(make) {
  let made;
  return () => {
    made ??= make();
    return made;
  };
}

// One test a case, under a name that tells everything, because `--only` selects by it.

import { test } from 'node:test';
import { parseArgs } from 'node:util';

const { values } = parseArgs({ options: { only: { type: 'string', default: '' } } });
const only = new RegExp(values.only, 'i');

/** Registers a case, if it was asked for. */
export function check(name, body) {
  if (only.test(name)) test(name, body);
}

/** A function that makes something when it is first asked for it, and gives the same thing from then on. */
export function once(make) {
  let made;
  return () => {
    made ??= make();
    return made;
  };
}

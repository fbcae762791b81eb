// Tests of a program that runs them one after another, and ends with the first that fails.

/** Some of the tests, by a regular expression. */
const only = new RegExp(process.argv[2] ?? '');

/** @param {string} name @param {() => unknown} run returns what is said of it, if anything */
export async function test(name, run) {
  if (!only.test(name)) return;
  const start = performance.now();
  const said = await run();
  console.log(`ok  ${name} (${((performance.now() - start) / 1000).toFixed(1)} s)${said ? `: ${said}` : ''}`);
}

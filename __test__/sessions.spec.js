'use strict';

// sessions(): what agents have left in a home folder, with filters. The places are tested in crates/formats, and what is refused in
// refused-arguments.node.spec.js.

const fs = require('node:fs');

const { sessions } = require('..');
const { rejectionOf } = require('./support/refusals.js');
const { runForResult } = require('./support/run-script.js');
const { scratchDirectory, writerIn } = require('./support/scratch.js');
const { claudeSession, codexSession } = require('./support/sessions.js');

const home = scratchDirectory('sessions');

const writeFile = writerIn(home);

/** A session of Codex that began on a day of October, and of Claude Code. */
function codex(day, project) {
  const timestamp = `2026-10-${day}T09:00:00.000Z`;
  const common = { id: `${project}-id`, cwd: `/work/${project}`, timestamp };
  const name = `.codex/sessions/2026/10/${day}/rollout-2026-10-${day}T09-00-00-${project}.jsonl`;
  return writeFile(name, codexSession(`Mend the ${project}`, common));
}
function claude(day, project) {
  const said = [
    ['user', `Mend the ${project}`],
    ['assistant', [{ type: 'text', text: 'Done.' }]],
  ];
  const timestamp = `2026-10-${day}T09:00:00.000Z`;
  const text = claudeSession(said, { sessionId: `${project}-id`, cwd: `/work/${project}`, timestamp });
  return writeFile(`.claude/projects/-work-${project}/${project}-id.jsonl`, text);
}

let files;
beforeAll(() => {
  files = [claude('05', 'Shop'), codex('10', 'bakery'), codex('20', 'garden')];
});

/** What is found in the home folder with options, which are an expression. */
async function found(options) {
  const { result, stderr } = await runForResult(
    `
    const all = [];
    const reading = kp.sessions(${options});
    process.chdir('/');
    for await (const { trace, error, ...rest } of reading)
      all.push({ ...rest, objective: trace?.task.objective, code: error?.code });
    console.log(JSON.stringify(all));
  `,
    { env: { HOME: home, USERPROFILE: home, CODEX_HOME: '', CLAUDE_CONFIG_DIR: '', XDG_CONFIG_HOME: '' } },
  );
  expect(stderr).toBe('');
  return result;
}

test('sessions yields the sessions of all agents, each with what is told of it', async () => {
  const outcome = { success: null, confidence: null };
  const facts = [{ name: 'answered', step: expect.any(Number), count: 1 }];
  expect(await found('')).toEqual([
    {
      ...{ file: files[0], agent: 'claude-code', project: 'Shop', createdAt: '2026-10-05T09:00:00.000Z' },
      ...{ facts, outcome, objective: 'Mend the Shop' },
    },
    {
      ...{ file: files[1], agent: 'codex', project: 'bakery', createdAt: '2026-10-10T09:00:00.000Z' },
      ...{ facts, outcome, objective: 'Mend the bakery' },
    },
    expect.objectContaining({ file: files[2], project: 'garden' }),
  ]);
});

test.each([
  ["{ agent: 'codex' }", ['bakery', 'garden']],
  ["{ agent: ['claude-code', 'pi'] }", ['Shop']],
  ["{ project: 'shop' }", ['Shop']],
  ["{ since: '2026-10-10T09:00:00Z' }", ['bakery', 'garden']],
  ["{ since: new Date('2026-10-10T09:00:00.001Z') }", ['garden']],
  ["{ since: '2026-10-01', agent: 'codex', ignore: 'garden-id' }", ['bakery']],
  ["{ ignore: [require('node:os').homedir() + '/.codex'] }", ['Shop']],
  // The working directory is another one when it is read.
  ["(process.chdir(require('node:os').homedir()), { ignore: '.codex' })", ['Shop']],
  ["{ since: '2999-01-01' }", []],
])('sessions(%s) yields those for which all hold', async (options, projects) => {
  expect((await found(options)).map(({ project }) => project)).toEqual(projects);
});

test('sessions yields the file and the error of a bad record, and goes on', async () => {
  const whole = fs.readFileSync(files[0]);
  fs.writeFileSync(files[0], Buffer.concat([whole, Buffer.from('{"type":\n')]));
  const [first, second] = await found("{ agent: 'claude-code' }");
  fs.writeFileSync(files[0], whole);
  expect([first, second]).toContainEqual({ file: files[0], code: 'ERR_INVALID_RECORD' });
  expect([first.objective, second.objective]).toContain('Mend the Shop');
});

const isUsual = process.platform === 'linux';
(isUsual ? test : test.skip)(
  'sessions leaves out what the file ignore in the settings folder names',
  async () => {
    const ignore = writeFile('.config/kp-score/ignore', '# of my employer\n/work/garden\nBAKERY\n');
    const projects = (await found('')).map(({ project }) => project);
    fs.rmSync(ignore);
    expect(projects).toEqual(['Shop']);
  },
);

test('sessions yields nothing once its signal has aborted', async () => {
  const all = sessions({ signal: AbortSignal.abort('enough') });
  expect(await rejectionOf(all.next())).toBe('enough');
});

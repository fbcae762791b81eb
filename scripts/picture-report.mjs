// Makes docs/report.png, the picture in the README: the page of `kp-score report` about plausible sessions, with the first one open; and,
// where the site is built, docs/try.png, the page to try it with these sessions. It needs an installed Chromium (see
// __test__/support/browser.js).
//
//   node scripts/picture-report.mjs

import { execFileSync } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

import { root, temporaryDirectory } from './platform.mjs';
import { runScript } from './setup.mjs';
import { serveSite, site } from './site.mjs';

const require = createRequire(import.meta.url);
const { findChromium, launchChromium } = require('../__test__/support/browser.js');

const [WIDTH, HEIGHT] = [1280, 860];

/** Sessions: their agents, projects, days of September, and what was to be done. */
const SESSIONS = [
  [
    'claude-code',
    'orderdesk',
    1,
    'Add pagination to GET /shipments. Cursor based please, 50 per page. Nina Berg <nina.berg@nordfrakt.example> asked for it.',
  ],
  [
    'codex',
    'infra',
    12,
    'CI is red since yesterday evening: the docker build fails in the layer that installs the certificates.',
  ],
  [
    'opencode',
    'infra',
    30,
    'terraform plan wants to recreate the RDS instance. Find out which attribute forces that.',
  ],
  ['claude-code', 'shop-web', 7, 'Playwright tests of the basket are flaky on CI but pass on my machine.'],
  [
    'claude-code',
    'orderdesk',
    4,
    'Write a migration which splits customers.address into street, postcode and city.',
  ],
  [
    'codex',
    'telescope',
    9,
    'The night plan puts the supernova after moonrise. Weigh the moon by distance and phase.',
  ],
  [
    'claude-code',
    'linter',
    18,
    'Titles are cut in the middle of an emoji. Cut them between grapheme clusters.',
  ],
  [
    'opencode',
    'images',
    21,
    'The thumbnail service grows until it is killed, every six hours. Find the leak.',
  ],
  [
    'claude-code',
    'ledger',
    23,
    'Import the bank statements of April for four accounts, and close the month.',
  ],
  [
    'codex',
    'audio',
    27,
    'Make the release build of the plug-in reproducible: two builds of one commit must be equal.',
  ],
];

/** What each session edits, so that no two are alike. */
const WORDS = [
  'shipments cursor limit',
  'certificates layer cache',
  'storage engine replica',
  'basket locator retry',
  'postcode street backfill',
  'moon altitude weight',
  'grapheme cluster width',
  'buffer pool release',
  'statement account balance',
  'timestamp archive linker',
];

/** A session as a trace. @param {number} at */
function traceOf(at) {
  const [agent, project, day, objective] = SESSIONS[at];
  const [noun, ...others] = WORDS[at].split(' ');
  const cwd = `/home/maja/code/${project}`;
  const file = `${cwd}/src/${noun}.py`;
  const call = (
    /** @type {string} */ name,
    /** @type {object} */ input,
    /** @type {string} */ result,
    failed = false,
  ) => [
    { type: 'tool_call', content: name, tool: { name }, input },
    { type: failed ? 'error_recovery' : 'observation', content: result },
  ];
  const key = Buffer.from(`${noun} of a picture`).toString('hex').slice(0, 36);
  const steps = [
    { type: 'thought', content: `I will look at the ${noun} and its tests first.` },
    ...call(
      'Read',
      { file_path: file },
      `def ${noun}(db):\n    rows = db.query(${noun}).all()\n    return rows\n`,
    ),
    ...call(
      'Edit',
      {
        file_path: file,
        old_string: `    rows = db.query(${noun}).all()`,
        new_string: `    rows = page(db.query(${noun}), ${others[0]}, limit=50)`,
      },
      'The file has been updated.',
    ),
    ...call(
      'Bash',
      { command: `pytest -q tests/test_${noun}.py` },
      `E   KeyError: '${others[1] ?? others[0]}'\n    headers = {'Authorization': 'Bearer ghp_${key}'}\n2 failed, ${11 + at} passed in 1.8${at}s`,
      true,
    ),
    { type: 'thought', content: `The last ${others[0]} has none. I will return null there.` },
    ...call('Bash', { command: `pytest -q tests/test_${noun}.py` }, `${13 + at} passed in 1.7${at}s`),
    ...(at % 3 === 2
      ? []
      : call(
          'Bash',
          { command: `git commit -am "Limit ${noun}"` },
          `[main 3f2${at}a1c] Limit ${noun}\n 2 files changed`,
        )),
    { type: 'thought', content: `Done: ${noun} and ${others.join(' and ')} are covered by a test.` },
  ];
  return {
    '@context': 'https://openknowledgepulse.org/schema/v1',
    '@type': 'ReasoningTrace',
    id: `kp:trace:picture-${at}`,
    metadata: {
      ...{
        created_at: `2026-09-${String(day).padStart(2, '0')}T0${at % 10}:26:00.000Z`,
        task_domain: 'code',
        success: false,
      },
      ...{ quality_score: 0, visibility: 'private', privacy_level: 'aggregated' },
      imported: { format: agent, cwd, known: { success: false, confidence: false } },
    },
    task: { objective },
    steps: steps.map((step, number) => ({ step_id: number, ...step })),
    outcome: { result_summary: '', confidence: 0.5 },
  };
}

await runScript(async () => {
  const chromium = findChromium();
  if (!chromium) throw new Error('there is no Chromium; install one, or name it by CHROME_BIN');
  const browser = await launchChromium(chromium);
  try {
    const directory = temporaryDirectory('picture');
    const [file, input] = ['report.html', 'sessions.jsonl'].map((name) => path.join(directory, name));
    writeFileSync(input, SESSIONS.map((_, at) => `${JSON.stringify(traceOf(at))}\n`).join(''));
    const command = process.env.KP_SCORE ?? path.join(root, 'bin', 'kp-score.js');
    const program = command.endsWith('.js') ? [process.execPath, command] : [command];
    execFileSync(program[0], [...program.slice(1), 'report', path.basename(input), '--quiet', '-o', file], {
      cwd: directory,
    });
    const viewport = { width: WIDTH, height: HEIGHT };
    const page = await browser.newPage({ viewport, colorScheme: 'light', timezoneId: 'UTC' });
    await page.goto(pathToFileURL(file).href);
    await page.locator('.list a').first().click();
    await page.locator('.turn').first().waitFor();
    await page
      .locator('.call')
      .nth(2)
      .evaluate((/** @type {any} */ call) => {
        call.open = true;
      });
    await page.screenshot({ path: path.join(root, 'docs', 'report.png') });
    if (!existsSync(path.join(site, 'try'))) return;
    const { address, close } = await serveSite();
    await page.goto(`${address}try/index.html`);
    await page.locator('.choices input').first().setInputFiles(input);
    await page.locator('.list a').first().waitFor();
    await page.locator('body[aria-busy=false]').waitFor();
    await page.screenshot({ path: path.join(root, 'docs', 'try.png') });
    await close();
  } finally {
    await browser.close();
  }
});

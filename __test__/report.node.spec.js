'use strict';

// The page of a report as text: what it holds, and what it allows. The figures are tested in crates/command/src/desk.

const fs = require('node:fs');
const path = require('node:path');

const { addon } = require('../lib/loader.js');
const { examples, expectRun, readLines } = require('./support/kp-score.js');
const { carrying } = require('./support/make-breakdown.js');
const { readTemplate, renderReport, summaryOf } = require('./support/report.js');
const { scratchDirectory } = require('./support/scratch.js');

const FIGURES = /<script type="application\/json" id="figures">([^<]*)<\/script>/;
const scratch = scratchDirectory('report');
const template = readTemplate();

const HOSTILE = [
  '</script><script>alert(1)</script>',
  '<!--<script>',
  '<img src=x onerror=alert(1)>',
  'a\u2028\u2029b',
  '__KNOWLEDGEPULSE_REPORT__',
  '$& $1 $`',
  '\u202e\u0000"\\',
  '&lt;&#60;',
];

test('the page of a report as text holds what traces carry as text only', () => {
  const [traces, described] = carrying(HOSTILE);
  const html = renderReport(traces, described);
  const json = FIGURES.exec(html)?.[1] ?? '';
  expect(json).not.toMatch(/[<>\u2028\u2029]/);
  expect(JSON.parse(json)).toEqual(summaryOf(traces, described));
  // Outside the figures the page is the template.
  expect(html.split(json).join('__KNOWLEDGEPULSE_REPORT__')).toBe(template);
  const { errors, traces: listed } = JSON.parse(json);
  expect(errors.first.map(({ message }) => message)).toEqual(
    HOSTILE.map((text) => text.replace(/\s+/g, ' ').trim()),
  );
  expect(listed.map(({ id }) => id)).toEqual(HOSTILE.toReversed());
});

test('the page of a report as text allows nothing but its own script, and no connections', () => {
  const policy = /http-equiv="Content-Security-Policy" content="([^"]*)"/.exec(template)[1];
  const [, hash] = /script-src 'sha256-([^']+)'/.exec(policy);
  const [, script] = /<script>([\s\S]*?)<\/script>/.exec(template);
  const digest = require('node:crypto').createHash('sha256').update(script).digest('base64');
  expect(digest).toBe(hash);
  expect(policy.split('; ')).toEqual([
    "default-src 'none'",
    `script-src 'sha256-${hash}'`,
    "style-src 'unsafe-inline'",
    'img-src data:',
    "base-uri 'none'",
    "form-action 'none'",
  ]);
  expect(template).not.toMatch(/<(?:script|img|link|iframe)[^>]*(?:src|href)="(?!data:,")/);
});

test('the page of a report as text carries the licences of what is inlined', () => {
  const script = template.lastIndexOf('</script>');
  const licences = template.slice(script);
  for (const name of ['@observablehq/plot', 'd3-array', 'd3-scale', 'isoformat']) {
    expect(licences).toContain(`${name} ${require(`../node_modules/${name}/package.json`).version} (ISC)`);
  }
  expect(licences).toContain('Permission to use, copy, modify, and/or distribute this software');
});

test('NativeReport gives the figures of kp-score score --report, which names invalid traces', async () => {
  const file = path.join(scratch, 'report.html');
  const lines = readLines(examples);
  const invalid = '{"@type":"ReasoningTrace","task":{"objective":5}}';
  await expectRun(
    ['score', '--quiet', '--report', file, '-'],
    { code: 1 },
    { input: [...lines, invalid].join('\n') },
  );
  const { finishedAt, seconds, ...expected } = JSON.parse(FIGURES.exec(fs.readFileSync(file, 'utf8'))[1]);
  const report = new addon.NativeReport('lexical', new Date().toISOString());
  const add = (line, at) =>
    report.add(
      { file: 'stdin', line: at + 1, index: null },
      'trace',
      { success: true, confidence: true },
      line,
    );
  expect(lines.map(add)).toEqual(lines.map(() => true));
  expect(add(invalid, lines.length)).toBe(false);
  const figures = JSON.parse(report.figures(['stdin'], null, 1.5, []));
  expect(figures).toEqual({ ...expected, finishedAt: expect.any(String), seconds: 1.5 });
  expect(figures.errors.count).toBe(1);
  const last = lines.length - 1;
  expect(JSON.parse(report.figures(['stdin'], null, 1.5, [last])).traces[0].position).toBe(last);
});

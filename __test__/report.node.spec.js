'use strict';

// What a report collects, held to the plainest way to get the same figures from all traces at once.

const fs = require('node:fs');
const path = require('node:path');
const { gunzipSync } = require('node:zlib');

const { ReportCollector } = require('../cli/report/collector.js');
const { Summary } = require('../cli/summary.js');
const { Histogram, Sequence, Top } = require('../cli/report/statistics.js');
const { REPORT_OPTIONS, makeBreakdown, makeScored, randomNumbers } = require('./support/make-breakdown.js');
const { root } = require('./support/paths.js');
const { run } = require('./support/run-script.js');

const RUN = { finishedAt: new Date('2026-01-02T03:04:05Z'), seconds: 1.5, interrupted: false };

function collect(traces, options = {}) {
  const collector = new ReportCollector({ ...REPORT_OPTIONS, ...options });
  for (const trace of traces) collector.add(trace);
  return collector;
}

const summaryOf = (traces, options) => collect(traces, options).summary(RUN);

/** The quantile as NumPy computes it by default. */
function quantile(values, p) {
  const sorted = [...values].sort((a, b) => a - b);
  const rank = p * (sorted.length - 1);
  const [low, high] = [sorted[Math.floor(rank)], sorted[Math.ceil(rank)]];
  return low + (rank % 1) * (high - low);
}

const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;

/** Traces of all kinds, some of which resemble an earlier one. */
function randomTraces(count, seed) {
  const random = randomNumbers(seed);
  return Array.from({ length: count }, (_, i) => {
    const similarity = random() < 0.3 ? 0.95 + random() * 0.05 : random() * 0.95;
    const nearest = i === 0 ? null : { label: `kp:trace:${Math.floor(random() * i)}`, similarity };
    const breakdown = makeBreakdown({
      complexity: random(),
      novelty: 1 - similarity,
      toolDiversity: random(),
      outcome: random(),
      nearest,
      overrides: random() < 0.2 ? [['single-tool-penalty', (score) => Math.max(0, score - 0.1)]] : [],
    });
    return makeScored(i, {
      breakdown,
      domain: ['code', 'finance', 'medical'][Math.floor(random() * 3)],
      success: random() < 0.5,
    });
  });
}

describe('the statistics', () => {
  test('a value counts in the bin whose bounds it lies between, also at the bounds themselves', () => {
    for (const bins of [100, 200, 1000]) {
      for (let k = 0; k < bins; k++) {
        const histogram = new Histogram(bins);
        histogram.add(k / bins);
        expect(histogram.filled(bins)).toEqual([[k, 1]]);
        // A bin of fewer begins where a bin of more does.
        expect(histogram.filled(bins / 10)).toEqual([[Math.floor(k / 10), 1]]);
      }
    }
  });

  test('what lies outside 0 to 2 counts in the bins at the ends', () => {
    const histogram = new Histogram(10);
    for (const value of [-0.2, 1 - Number.EPSILON, 1, 1.35, 2, 2.3]) histogram.add(value);
    expect(histogram.filled(10)).toEqual([
      [0, 1],
      [9, 1],
      [10, 1],
      [13, 1],
      [20, 2],
    ]);
    expect(histogram.summary()).toMatchObject({ min: -0.2, max: 2.3 });
  });

  test('quantiles are those of the sorted values, to the width of a bin', () => {
    const random = randomNumbers(7);
    for (const count of [1, 2, 3, 4, 10, 999, 1000]) {
      for (const scale of [1, 1.9]) {
        const histogram = new Histogram(1000);
        const values = Array.from({ length: count }, () => scale * random());
        for (const value of values) histogram.add(value);
        for (const p of [0, 0.1, 0.25, 0.5, 0.75, 0.9, 1]) {
          expect(Math.abs(histogram.quantile(p) - quantile(values, p))).toBeLessThan(0.001);
        }
      }
    }
  });

  test('the median of two is in their middle', () => {
    const histogram = new Histogram(1000);
    for (const value of [0.25, 0.75]) histogram.add(value);
    expect([0.1, 0.5, 0.9].map((p) => histogram.quantile(p))).toEqual([
      expect.closeTo(0.3, 12),
      0.5,
      expect.closeTo(0.7, 12),
    ]);
  });

  test.each([1, 2, 9, 10, 11, 20, 21, 1000, 4097])(
    'a sequence of %i keeps its order in ten buckets',
    (count) => {
      const values = Array.from({ length: count }, (_, i) => Math.sin(i));
      const sequence = new Sequence(10);
      for (const value of values) sequence.add(value);
      const { buckets, width } = sequence;
      expect(buckets.length).toBeLessThanOrEqual(10);
      const expected = [];
      for (let i = 0; i < count; i += width) {
        const part = values.slice(i, i + width);
        expected.push([expect.closeTo(mean(part), 9), Math.min(...part), Math.max(...part), part.length]);
      }
      expect(buckets).toEqual(expected);
    },
  );

  test('the first of equals stay the first', () => {
    const top = new Top(3, (a, b) => b.value - a.value);
    [5, 1, 5, 7, 5, 7].forEach((value, at) => {
      top.offer({ value }, () => ({ value, at }));
    });
    expect(top.items).toEqual([
      { value: 7, at: 3 },
      { value: 7, at: 5 },
      { value: 5, at: 0 },
    ]);
  });
});

describe('a report has', () => {
  const traces = randomTraces(3000, 1);
  const summary = summaryOf(traces);
  const scores = traces.map(({ breakdown }) => breakdown.score);

  test('counts, mean and quantiles of the scores', () => {
    expect(summary).toMatchObject({
      count: 3000,
      kept: scores.filter((score) => score >= 0.6).length,
      succeeded: traces.filter(({ success }) => success).length,
      rules: {
        'single-tool-penalty': traces.filter(({ breakdown }) => breakdown.overrides.length > 0).length,
      },
      bases: { 'empty-memory': 1, memory: 2999 },
      profiles: [{ name: 'default', count: 3000, weights: makeBreakdown().weights }],
    });
    expect(summary.scores.mean).toBeCloseTo(mean(scores), 9);
    const sorted = [...scores].sort((a, b) => a - b);
    for (const [name, p] of Object.entries({ p10: 0.1, p25: 0.25, median: 0.5, p75: 0.75, p90: 0.9 })) {
      expect(Math.abs(summary.scores[name] - quantile(scores, p))).toBeLessThan(0.001);
    }
    expect([summary.scores.min, summary.scores.max]).toEqual([sorted[0], sorted.at(-1)]);
  });

  test.each([1, 2, 7, 8, 2999, 3000])('the figures that the summary of %i traces has', (count) => {
    const some = traces.slice(0, count);
    const { scores, domains } = summaryOf(some);
    const other = new Summary();
    const known = { success: true, confidence: true };
    other.begin();
    for (const trace of some) other.add({ ...trace, kept: trace.breakdown.score >= 0.6, known });
    const figures = other.figures({});
    for (const name of ['mean', 'median', 'p10', 'p90']) expect(figures[name]).toBe(scores[name]);
    expect(figures.domains).toEqual(
      domains.map(({ name, count, kept, score }) => ({
        domain: name,
        scored: count,
        kept,
        mean: score.mean,
        median: score.median,
      })),
    );
  });

  test('a trace that scores just the threshold among the kept', () => {
    const { score } = makeBreakdown();
    const { kept, domains } = summaryOf([makeScored(0)], { threshold: score });
    expect([kept, domains[0].kept]).toEqual([1, 1]);
  });

  test('bins that tell exactly what each step of the slider keeps', () => {
    const best = makeBreakdown({ complexity: 1, novelty: 1, toolDiversity: 1, outcome: 1 });
    const all = [...traces, makeScored(traces.length, { breakdown: best })];
    const scores = all.map(({ breakdown }) => breakdown.score);
    expect(scores.at(-1)).toBe(1);
    const { bins, filled } = summaryOf(all).scoreBins;
    for (let step = 0; step <= 100; step++) {
      const kept = filled.reduce(
        (sum, [bin, number]) => (bin >= (step * bins) / 100 ? sum + number : sum),
        0,
      );
      expect(kept).toBe(scores.filter((score) => score >= step / 100).length);
    }
  });

  test('the dimensions by domain, the largest first', () => {
    const counts = summary.domains.map(({ count }) => count);
    expect(counts).toEqual([...counts].sort((a, b) => b - a));
    for (const domain of summary.domains) {
      const own = traces.filter((trace) => trace.domain === domain.name).map(({ breakdown }) => breakdown);
      expect(domain.count).toBe(own.length);
      expect(domain.kept).toBe(own.filter(({ score }) => score >= 0.6).length);
      expect(domain.score.mean).toBeCloseTo(mean(own.map(({ score }) => score)), 9);
      for (const key of ['complexity', 'novelty', 'toolDiversity', 'outcome']) {
        const values = own.map(({ dimensions }) => dimensions[key]);
        expect(domain[key].mean).toBeCloseTo(mean(values), 9);
        expect(Math.abs(domain[key].median - quantile(values, 0.5))).toBeLessThan(0.001);
        expect(Math.abs(domain[key].p90 - quantile(values, 0.9))).toBeLessThan(0.001);
      }
      expect(
        Math.abs(
          domain.score.median -
            quantile(
              own.map(({ score }) => score),
              0.5,
            ),
        ),
      ).toBeLessThan(0.001);
    }
  });

  test('novelty over the sequence, thinned', () => {
    const { width, buckets } = summary.novelty;
    expect([width, buckets.length]).toEqual([2, 1500]);
    const novelty = traces.map(({ breakdown }) => breakdown.dimensions.novelty);
    expect(buckets[700]).toEqual([
      expect.closeTo((novelty[1400] + novelty[1401]) / 2, 3),
      expect.closeTo(Math.min(novelty[1400], novelty[1401]), 3),
      expect.closeTo(Math.max(novelty[1400], novelty[1401]), 3),
      2,
    ]);
  });

  test('the best and the worst ten with all that explains them', () => {
    const byScore = [...traces].sort((a, b) => b.breakdown.score - a.breakdown.score || a.index - b.index);
    const ids = (list) => list.map(({ id }) => id);
    expect(ids(summary.best)).toEqual(ids(byScore.slice(0, 10)));
    const worst = [...traces].sort((a, b) => a.breakdown.score - b.breakdown.score || a.index - b.index);
    expect(ids(summary.worst)).toEqual(ids(worst.slice(0, 10)));
    expect(summary.best[0].breakdown).toEqual(byScore[0].breakdown);
    expect(summary.best[0]).toMatchObject({ line: byScore[0].line, domain: byScore[0].domain });
  });

  test('no trace among the worst that is among the best', () => {
    for (const [count, worst] of [
      [1, 0],
      [10, 0],
      [11, 1],
      [15, 5],
      [20, 10],
    ]) {
      const few = summaryOf(traces.slice(0, count));
      expect([few.best.length, few.worst.length]).toEqual([Math.min(10, count), worst]);
      const ids = [...few.best, ...few.worst].map(({ id }) => id);
      expect(new Set(ids).size).toBe(ids.length);
    }
  });

  test('the first hundred errors, and how many there were', () => {
    const collector = collect([]);
    for (let line = 1; line <= 150; line++) {
      collector.addError({ source: 'a.jsonl', line, message: `wrong ${line}` });
    }
    const { errors } = collector.summary(RUN);
    expect(errors.count).toBe(150);
    expect(errors.first).toHaveLength(100);
    expect(errors.first[99]).toEqual({ source: 'a.jsonl', line: 100, element: null, message: 'wrong 100' });
  });

  test('no names of which nothing can be seen', () => {
    const blank = ['', ' ', '\u200b\u2066\t'];
    const { best, domains } = summaryOf(blank.map((text, i) => makeScored(i, { id: text, domain: text })));
    expect(best.map(({ id, domain }) => [id, domain])).toEqual(blank.map(() => [null, null]));
    expect(domains).toMatchObject([{ name: '', count: 3 }]);
  });

  test('where each source begins', () => {
    const sources = ['a.jsonl', 'a.jsonl', 'b.jsonl', 'c.jsonl'];
    const { starts } = summaryOf(sources.map((source, i) => makeScored(i, { source })));
    expect(starts).toEqual([
      { source: 'a.jsonl', position: 0 },
      { source: 'b.jsonl', position: 2 },
      { source: 'c.jsonl', position: 3 },
    ]);
  });
});

describe('near-duplicates', () => {
  const similar = (label, similarity = 0.97) =>
    makeBreakdown({ novelty: 1 - similarity, nearest: { label, similarity } });

  test('are grouped as connected components', () => {
    const traces = randomTraces(800, 3);
    const neighbours = new Map(traces.map(({ id }) => [id, []]));
    const linked = traces.filter(({ breakdown }) => breakdown.nearest?.similarity >= 0.95);
    for (const { id, breakdown } of linked) {
      neighbours.get(id).push(breakdown.nearest.label);
      neighbours.get(breakdown.nearest.label).push(id);
    }
    const seen = new Set();
    const components = [];
    for (const { id } of traces) {
      const component = [];
      const queue = seen.has(id) ? [] : [id];
      while (queue.length > 0) {
        const next = queue.pop();
        if (seen.has(next)) continue;
        seen.add(next);
        component.push(next);
        queue.push(...neighbours.get(next));
      }
      if (component.length > 1) components.push(component);
    }
    components.sort((a, b) => b.length - a.length);

    const { duplicates } = summaryOf(traces);
    expect(duplicates).toMatchObject({
      similarity: 0.95,
      count: linked.length,
      groupCount: components.length,
    });
    expect(components.length).toBeGreaterThan(30);
    expect(duplicates.groups.map(({ size }) => size)).toEqual(
      components.slice(0, 30).map(({ length }) => length),
    );
    for (const { members, positions, size } of duplicates.groups) {
      const component = components.find((ids) => ids.includes(members[0].id));
      expect(component).toHaveLength(size);
      const expected = component.map((id) => Number(id.split(':').at(-1))).sort((a, b) => a - b);
      expect(positions).toEqual(expected);
      expect(members.map(({ position }) => position)).toEqual(expected.slice(0, 8));
    }
  });

  test('name the trace that was first, with what it was about', () => {
    const { duplicates } = summaryOf([
      makeScored(0),
      makeScored(1, { breakdown: similar('kp:trace:0', 0.98) }),
    ]);
    expect(duplicates.groups).toEqual([
      {
        size: 2,
        minSimilarity: 0.98,
        maxSimilarity: 0.98,
        positions: [0, 1],
        members: [
          expect.objectContaining({ id: 'kp:trace:0', excerpt: 'Objective 0', line: 1 }),
          expect.objectContaining({ id: 'kp:trace:1', nearest: 'kp:trace:0', similarity: 0.98 }),
        ],
      },
    ]);
  });

  test('may resemble what was remembered from an earlier run', () => {
    const { duplicates } = summaryOf([makeScored(0, { breakdown: similar('earlier') })]);
    expect(duplicates).toMatchObject({ count: 1, groupCount: 1 });
    expect(duplicates.groups[0]).toMatchObject({
      size: 2,
      positions: [0],
      members: [{ id: 'earlier', position: null }, { id: 'kp:trace:0' }],
    });
  });

  test.each(['cache', 'store'])('are those of the most similar trace, in a %s', (memory) => {
    const traces = [0.5, 0.97, 0.8].map((similarity, i) => {
      const nearest = {
        label: 'kp:trace:0',
        similarity,
        lexical: 0.8,
        contained: 0.9,
        embedded: null,
        sharedWords: null,
        newWords: null,
      };
      const compared = i === 0 ? { noveltyBasis: `empty-${memory}` } : { nearest, noveltyBasis: memory };
      return makeScored(i, { breakdown: makeBreakdown(compared) });
    });
    const { bases, duplicates } = summaryOf(traces, { novelty: 'lexical' });
    expect(duplicates).toMatchObject({ count: 1, groups: [{ positions: [0, 1], minSimilarity: 0.97 }] });
    expect(bases).toEqual({ 'empty-memory': 1, memory: 2 });
  });

  test('may have the same id, or none', () => {
    const same = { id: 'same' };
    const copies = [makeScored(0, same), makeScored(1, { ...same, breakdown: similar('same', 1) })];
    expect(summaryOf(copies).duplicates).toMatchObject({
      count: 1,
      groupCount: 1,
      groups: [{ size: 2, positions: [0, 1] }],
    });
    const nameless = { id: null, breakdown: similar(null) };
    expect(summaryOf([makeScored(0, nameless), makeScored(1, nameless)]).duplicates).toMatchObject({
      count: 2,
      groupCount: 2,
    });
  });

  test('are listed by size, however many groups there are', () => {
    const traces = [];
    const add = (label) => traces.push(makeScored(traces.length, label && { breakdown: similar(label) }));
    add();
    for (let i = 0; i < 5; i++) add('kp:trace:0');
    for (let pair = 0; pair < 4000; pair++) {
      add();
      add(`kp:trace:${traces.length - 1}`);
    }
    // It is still known which group this one belongs to.
    add('kp:trace:0');
    const { duplicates } = summaryOf(traces);
    expect(duplicates).toMatchObject({ count: 4006, groupCount: 4001 });
    expect(duplicates.groups.map(({ size }) => size)).toEqual([7, ...new Array(29).fill(2)]);
  });

  test('are merged where a trace is in two groups', () => {
    const links = [
      [1, 0],
      [3, 2],
      [1, 2],
    ];
    const traces = [0, 1, 2, 3].map((i) => makeScored(i));
    for (const [id, nearest] of links) {
      traces.push(
        makeScored(traces.length, { id: `kp:trace:${id}`, breakdown: similar(`kp:trace:${nearest}`) }),
      );
    }
    const { duplicates } = summaryOf(traces);
    // The four of them, and the three that repeat an id.
    expect(duplicates).toMatchObject({ count: 3, groupCount: 1 });
    expect(duplicates.groups[0].members.map(({ id }) => id.at(-1))).toEqual(['0', '2', '1', '3', '1']);
  });
});

describe('the page', () => {
  const template = gunzipSync(fs.readFileSync(path.join(root, 'dist', 'report.html.gz'))).toString();
  const figuresOf = (html) =>
    /<script type="application\/json" id="figures">([^<]*)<\/script>/.exec(html)?.[1] ?? '';

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

  test('holds what traces carry as text only', () => {
    const traces = HOSTILE.map((text, i) =>
      makeScored(i, {
        id: text,
        source: text,
        domain: text,
        excerpt: text,
        breakdown: makeBreakdown({ profile: text, nearest: { label: text, similarity: 0.99 } }),
      }),
    );
    const collector = collect(traces, { sources: HOSTILE });
    for (const message of HOSTILE) collector.addError({ source: message, line: 1, message });
    const html = collector.render(RUN);
    const json = figuresOf(html);
    expect(json).not.toMatch(/[<>\u2028\u2029]/);
    expect(JSON.parse(json)).toEqual(JSON.parse(JSON.stringify(collector.summary(RUN))));
    // Outside the figures the page is the template.
    expect(html.split(json).join('__KNOWLEDGEPULSE_REPORT__')).toBe(template);
    const { errors, best } = JSON.parse(json);
    expect(errors.first.map(({ message }) => message)).toEqual(
      HOSTILE.map((text) => text.replace(/\s+/g, ' ').trim()),
    );
    expect(best.map(({ id }) => id)).toEqual(HOSTILE);
  });

  test('holds no half characters, and cuts what is long', () => {
    const long = `${'x'.repeat(239)}😀${'y'.repeat(1e6)}`;
    const { best } = summaryOf([makeScored(0, { id: `\ud800${long}`, excerpt: long })]);
    expect(best[0].excerpt).toBe(`${'x'.repeat(239)}…`);
    expect(best[0].id).toMatch(/^\ufffdx{199}… \(1000242\)$/);
  });

  test('allows nothing but its own script, and no connections', () => {
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

  test('carries the licences of what is inlined', () => {
    const script = template.lastIndexOf('</script>');
    const licences = template.slice(script);
    for (const name of ['@observablehq/plot', 'd3-array', 'd3-scale', 'isoformat']) {
      expect(licences).toContain(`${name} ${require(`../node_modules/${name}/package.json`).version} (ISC)`);
    }
    expect(licences).toContain('Permission to use, copy, modify, and/or distribute this software');
  });

  test('is small however many traces it is about', () => {
    // All that is listed by name has a long one of its own.
    const long = (i) => `${i}${'<'.repeat(300)}`;
    const collector = collect([], { sources: Array.from({ length: 200 }, (_, i) => long(i)) });
    for (let i = 0; i < 30_000; i++) {
      const nearest = { label: long(i - (i % 40)), similarity: 0.96 };
      const breakdown = makeBreakdown({ outcome: (i % 997) / 997, nearest, profile: long(i) });
      breakdown.overrides.push({ rule: long(i), before: 0, after: 0 });
      const name = long(i);
      collector.add(makeScored(i, { id: name, domain: name, source: name, excerpt: name, breakdown }));
      collector.addError({ source: name, line: i, message: name });
    }
    const { domains, novelty, duplicates, errors, starts } = collector.summary(RUN);
    expect([domains.length, domains.at(0).name, starts.length]).toEqual([41, '(others)', 50]);
    expect([novelty.buckets.length, duplicates.groups.length, errors.first.length]).toEqual([1875, 30, 100]);
    // Of `<` alone, each of which takes six bytes.
    expect(collector.render(RUN).length - template.length).toBeLessThan(2e6);
  });

  // The flag is Node.js's.
  (process.versions.bun ? test.skip : test)('is collected in bounded memory', async () => {
    const script = `
      const { ReportCollector } = require(${JSON.stringify(path.join(root, 'cli', 'report', 'collector.js'))});
      const { makeBreakdown, makeScored } = require(${JSON.stringify(path.join(__dirname, 'support', 'make-breakdown.js'))});
      const collector = new ReportCollector(${JSON.stringify(REPORT_OPTIONS)});
      // Without white space, which would be copied for being replaced.
      const filler = 'x'.repeat(20_000);
      for (let i = 0; i < 100_000; i++) {
        const nearest = { label: 'kp:trace:' + (i - (i % 2)), similarity: 0.96 };
        const breakdown = makeBreakdown({ nearest });
        collector.add(makeScored(i, { excerpt: i + filler, domain: 'domain ' + i, breakdown }));
      }
      console.log(collector.render({ finishedAt: new Date(), seconds: 1 }).length);
    `;
    const { code, stderr } = await run(process.execPath, ['--max-old-space-size=64', '-e', script]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  });
});

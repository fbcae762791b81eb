'use strict';

// `kp-score --store`: runs that share a memory.

const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');

const { TraceMemory } = require('../..');
const { Scorer, explain } = require('../../lib/scorer.js');
const { expectRun, jsonLines, kpScore, linesOf, readLines } = require('../support/kp-score.js');
const { makeTrace } = require('../support/make-trace.js');
const { describeWithPostgres, useServer } = require('../support/store.js');

// Of two steps, because a set has no trace of one.
const steps = [
  { type: 'thought', content: 'I look.' },
  { type: 'observation', content: 'It is there.' },
];
const traces = ['book a flight', 'book the flight', 'fix the build'].map((objective, index) => ({
  ...makeTrace({ objective, steps }),
  id: `kp:trace:${index}`,
}));
const input = jsonLines(traces);

describeWithPostgres('kp-score --store', () => {
  const context = useServer();
  const score = async (...args) => {
    const { code, stdout, stderr } = await kpScore(['score', '--format', 'jsonl', '--explain', ...args], {
      input,
    });
    const results = linesOf(stdout).map((line) => JSON.parse(line));
    return { code, stderr, results };
  };

  test('creates its table, and the next run finds the traces', async () => {
    const scorer = new Scorer();
    for (const before of [0, 3]) {
      const { code, stderr, results } = await score('--store', context.url(), '--novelty', 'prefix');
      expect(code).toBe(0);
      for (const [index, trace] of traces.entries()) {
        const expected = await explain(scorer, trace, true);
        expect(results[index].score).toBeCloseTo(expected.score, 6);
        expect(results[index].breakdown.nearest?.label).toBe(expected.nearest?.label);
      }
      expect(stderr).toContain(`${before} → ${before + 3} traces`);
    }
    const { rows } = await context.pool().query('SELECT count(*)::int AS count FROM knowledgepulse_novelty');
    expect(rows).toEqual([{ count: 6 }]);
  });

  test('keeps words where these are compared, without a model', async () => {
    const scorer = new Scorer({ memory: new TraceMemory({ method: 'lexical' }) });
    for (const trace of traces) await scorer.evaluateValue(trace);
    const words = ['--store', context.url(), '--store-table', 'words', '--novelty', 'lexical'];
    expect((await score(...words)).code).toBe(0);
    const { code, results } = await score(...words);
    expect(code).toBe(0);
    for (const [index, trace] of traces.entries()) {
      const { nearest } = await explain(scorer, trace, true);
      expect(results[index].breakdown.nearest.label).toBe(nearest.label);
      expect(results[index].breakdown.nearest.lexical).toBeCloseTo(1, 9);
    }
    const { code: refused, stderr } = await score(
      '--store',
      context.url(),
      '--store-table',
      'words',
      '--novelty',
      'full',
    );
    expect(refused).not.toBe(0);
    expect(stderr).toContain("is of novelty 'lexical', not of 'full'");
  });

  test('other tables are other memories', async () => {
    const { code, results } = await score('--store', context.url(), '--store-table', 'another one');
    expect(code).toBe(0);
    expect(results[0].breakdown.noveltyBasis).toBe('empty-store');
  });

  test('--memory-size is the number of traces that stay', async () => {
    const args = ['--store', context.url(), '--store-table', 'small', '--memory-size', '2'];
    const { code, stderr } = await score(...args);
    expect(code).toBe(0);
    expect(stderr).toContain('0 → 2 traces');
  });

  test('a name that cannot be a table is told by the option', async () => {
    const { code, stderr } = await score('--store', context.url(), '--store-table', 'x'.repeat(58));
    expect(code).toBe(2);
    expect(stderr).toContain('--store-table must be a name of 1 to 57 bytes');
  });

  test('a table may be named with its schema, which is not made', async () => {
    const args = ['--store', context.url(), '--store-table', 'fleet.traces'];
    const schemas = () => context.pool().query("SELECT FROM pg_namespace WHERE nspname = 'fleet'");
    const { code, stderr, results } = await score(...args);
    expect({ code, results }).toEqual({ code: 3, results: [] });
    expect(linesOf(stderr)).toEqual([
      expect.stringMatching(/^kp-score: the tables .* schema "fleet" does not exist$/),
    ]);
    expect((await schemas()).rowCount).toBe(0);
    await context.pool().query('CREATE SCHEMA fleet');
    expect((await score(...args)).code).toBe(0);
    const { rows } = await context.pool().query('SELECT count(*)::int AS count FROM fleet.traces');
    expect(rows).toEqual([{ count: 3 }]);
    const none = await score('--store', context.url(), '--store-table', '.traces');
    expect(none.code).toBe(2);
    expect(none.stderr).toContain('--store-table must be a name');
  });

  test('a server that does not answer is an error before anything is read', async () => {
    const { code, stderr, results } = await score('--store', 'postgres://nobody@127.0.0.1:1/none');
    expect({ code, results }).toEqual({ code: 3, results: [] });
    expect(stderr).toMatch(/^kp-score: /);
    expect(stderr).not.toContain(' at ');
  });

  test('a store that fails during a run ends it, with the results in FILE.partial', async () => {
    const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'knowledgepulse-store-'));
    try {
      const table = 'full soon';
      expect((await score('--store', context.url(), '--store-table', table)).code).toBe(0);
      await context.pool().query(`
        CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
          IF NEW.label LIKE '%:70' THEN RAISE EXCEPTION 'no space left' USING ERRCODE = '53100'; END IF;
          RETURN NEW;
        END $$;
        CREATE TRIGGER refuse BEFORE INSERT ON "${table}" FOR EACH ROW EXECUTE FUNCTION refuse();`);
      const many = Array.from({ length: 100 }, (_, index) => ({ ...traces[index % 3], id: `many:${index}` }));
      const out = path.join(directory, 'out.jsonl');
      await expectRun(
        ['score', '--store', context.url(), '--store-table', table, '--out', out],
        { code: 3, stderr: 'no space left' },
        {
          input: jsonLines(many),
        },
      );
      const written = readLines(`${out}.partial`).map((line) => JSON.parse(line).id);
      expect(written).not.toContain('many:70');
      // What is in the store has its score in the file, in order.
      const stored = await context
        .pool()
        .query(`SELECT label FROM "${table}" WHERE label LIKE 'many:%' ORDER BY position`);
      expect(written).toEqual(stored.rows.map(({ label }) => label));
      expect(fs.readdirSync(directory)).toEqual(['out.jsonl.partial']);
    } finally {
      fs.rmSync(directory, { recursive: true });
    }
  });
});

describeWithPostgres('kp-score --store on a server without pgvector', () => {
  const context = useServer({ settings: { extension_control_path: '/nonexistent' } });

  test('names the novelty that needs no extension, and that one works', async () => {
    const url = context.url();
    const { code, stderr } = await kpScore(['score', '--store', url, '--novelty', 'prefix'], { input });
    expect(code).toBe(3);
    expect(linesOf(stderr)).toEqual([
      expect.stringMatching(
        /^kp-score: novelty 'prefix' needs the extension pgvector.* use --novelty lexical or/,
      ),
    ]);
    expect((await kpScore(['score', '--store', url], { input })).code).toBe(0);
  });
});

describe('wrong usage', () => {
  test.each([
    [['--store', 'mysql://host/db'], '--store must be a URL that begins with postgres://'],
    [
      ['--store', 'postgres://host/db', '--memory', 'file'],
      "'--store <URL>' cannot be used with '--memory <FILE>'",
    ],
    [['--store-table', 'name'], '--store <URL>'],
    [['--store', 'postgres://agent:secret@host:port/db'], '--store must be like postgres://'],
    [['--store', 'postgres://agent:se/cret@host/db'], '--store must be like postgres://'],
    [['--store', 'postgres://agent:secret@host/db?port=x'], '--store must be like postgres://'],
    [['--store', 'postgres://agent:secret@[::1/db'], '--store must be like postgres://'],
  ])('%j', async (args, message) => {
    const { code, stderr } = await kpScore(['score', ...args], { input });
    expect(code).toBe(2);
    expect(stderr).toContain(message);
    expect(stderr).not.toMatch(/secret|cret@/);
  });
});

'use strict';

// Another role may create objects in the schema of the store. It plants functions, operators and types whose names or argument types
// the statements of the store could mean: none of them may ever run, because it would run with the rights of the caller.

const { makeTrace } = require('../support/make-trace.js');
const { MODEL, describeWithPostgres, entry, rejection, useServer } = require('../support/store.js');
const { entriesOf } = require('../support/memory-store.js');
const { randomVector } = require('../support/vectors.js');

/** What each planted object does: count the call, which no rollback undoes, and fail. */
const TRAP = `'BEGIN
  PERFORM pg_catalog.nextval(''public.planted_calls'');
  RAISE EXCEPTION ''a planted function was called'';
END'`;

/** Makes what is planted in a database, as the role `planter`. Skips what PostgreSQL refuses. */
const PLANT = `
SET ROLE planter;
DO $plant$
DECLARE
  planted record;
  kind text;
  other text;
  symbol text;
  number integer := 0;
  kinds constant text[] := '{bigint,bigint[],boolean,bytea,double precision,integer,name,oid,regclass,regnamespace,smallint,text,text[],timestamptz}';
BEGIN
  -- Those of PostgreSQL, under the same names with the same arguments, and with one text for each argument.
  FOR planted IN
    SELECT p.oid, p.proname, p.pronargs, p.proretset, p.prorettype::regtype AS result, oidvectortypes(p.proargtypes) AS arguments
    FROM pg_proc p WHERE p.pronamespace = 'pg_catalog'::regnamespace AND p.prokind IN ('f', 'a') AND p.pronargs < 5
  LOOP
    FOREACH kind IN ARRAY ARRAY[planted.arguments, array_to_string(array_fill('text'::text, ARRAY[planted.pronargs]), ', ')] LOOP
      BEGIN
        EXECUTE format('CREATE FUNCTION public.%I(%s) RETURNS %s %s LANGUAGE plpgsql AS %L',
          planted.proname, kind, CASE WHEN planted.proretset THEN 'SETOF' END, planted.result, ${TRAP});
      EXCEPTION WHEN OTHERS THEN NULL;
      END;
    END LOOP;
  END LOOP;
  FOREACH kind IN ARRAY kinds LOOP
    EXECUTE format('CREATE OR REPLACE FUNCTION public.count(%s) RETURNS bigint LANGUAGE plpgsql AS %L', kind, ${TRAP});
  END LOOP;
  -- Operators, those of PostgreSQL and those that it has for no such pair.
  FOREACH symbol IN ARRAY '{=,<>,<,>,<=,>=,||,+,-,*,/}'::text[] LOOP
    FOREACH kind IN ARRAY kinds LOOP
      FOREACH other IN ARRAY kinds LOOP
        number := number + 1;
        EXECUTE format('CREATE FUNCTION public.trap_%s(%s, %s) RETURNS %s LANGUAGE plpgsql AS %L', number, kind, other,
          CASE WHEN symbol = '||' THEN 'bigint[]' WHEN symbol IN ('+', '-', '*', '/') THEN 'bigint' ELSE 'boolean' END, ${TRAP});
        EXECUTE format('CREATE OPERATOR public.%s (LEFTARG = %s, RIGHTARG = %s, FUNCTION = public.trap_%s)', symbol, kind, other, number);
      END LOOP;
    END LOOP;
  END LOOP;
  -- Types whose values a planted function checks.
  CREATE FUNCTION public.trap() RETURNS boolean LANGUAGE plpgsql AS ${TRAP};
  FOREACH kind IN ARRAY '{bytea,name,regclass,regnamespace,text,timestamptz,uuid}'::text[] LOOP
    EXECUTE format('CREATE DOMAIN public.%I AS pg_catalog.%I CHECK (public.trap())', kind, kind);
  END LOOP;
  -- Views in place of the catalog.
  FOREACH kind IN ARRAY '{pg_am,pg_class,pg_extension,pg_index,pg_namespace,pg_proc,pg_settings,pg_stat_activity}'::text[] LOOP
    EXECUTE format('CREATE VIEW public.%I AS SELECT * FROM pg_catalog.%I WHERE public.trap()', kind, kind);
  END LOOP;
  GRANT SELECT ON ALL TABLES IN SCHEMA public TO PUBLIC;
END
$plant$;
RESET ROLE;`;

const traces = Array.from({ length: 120 }, (_, seed) => ({
  ...makeTrace({ objective: `task${seed % 7} of user${seed}` }),
  id: `${seed}`,
}));

describeWithPostgres('objects that another role has planted in the schema of a store', () => {
  const context = useServer();
  const { pool, store } = context;

  /** For statements of these tests, which no planted object may meet. */
  const admin = () => pool({ options: '-c search_path=pg_catalog' });

  beforeAll(async () => {
    if (context.server === undefined) return;
    await admin().query(`
      CREATE ROLE planter;
      CREATE SEQUENCE public.planted_calls;
      GRANT USAGE ON SEQUENCE public.planted_calls TO PUBLIC;
      GRANT USAGE, CREATE ON SCHEMA public TO planter`);
    await admin().query(PLANT);
  });

  /** How many planted functions were called. */
  async function calls() {
    const { rows } = await admin().query(
      'SELECT CASE WHEN is_called THEN last_value ELSE 0::bigint END AS calls FROM public.planted_calls',
    );
    return Number(rows[0].calls);
  }

  test('a statement that names nothing by its schema calls one of them', async () => {
    const naive = pool({ options: '-c search_path=public' });
    const before = await calls();
    await rejection(naive.query('SELECT pg_advisory_xact_lock($1)', ['1']));
    await rejection(naive.query("SELECT 1::oid = 'public'::regnamespace"));
    await rejection(naive.query('SELECT count(relname) FROM pg_class'));
    expect((await calls()) - before).toBe(3);
  });

  // With `pg_catalog` at the end of the path, even a function of PostgreSQL's with the same arguments comes after the planted one.
  const paths = ['public', 'public,pg_catalog'];
  const kinds = [
    ['prefix', false],
    ['prefix', true],
    ['lexical', false],
    ['full', false],
  ];
  const cases = paths.flatMap((searchPath) => kinds.map((kind) => [searchPath, ...kind]));
  test.each(cases)(
    'search path %s, novelty %s, hnsw %s: no statement calls one',
    async (searchPath, novelty, hnsw) => {
      const table = `guarded_${novelty}_${hnsw}_${searchPath.length}`;
      const before = await calls();
      const database = pool({ options: `-c search_path=${searchPath}` });
      const options = { pool: database, table, method: novelty, hnsw, maxElements: 100 };
      const made = store(options);
      expect(await made.size()).toBe(0);
      // A second store finds the tables.
      expect(await store(options).size()).toBe(0);

      const entries =
        novelty === 'prefix'
          ? Array.from({ length: 120 }, (_, seed) => entry(`${seed}`, randomVector(seed)))
          : (await entriesOf(traces)).map((each, seed) =>
              novelty === 'lexical' ? each : { ...each, model: MODEL, vector: randomVector(seed) },
            );
      await made.compareAndAdd(entries.slice(0, 1));
      await made.compareAndAdd(entries.slice(1, 100));
      const call = '8c5ad0c3-0d36-4d4e-b2a5-0a3a5d8f6c11';
      const answer = await made.compareAndAdd(entries.slice(100), call);
      expect(await made.compareAndAdd(entries.slice(100), call)).toHaveLength(answer.length);
      expect((await made.compare(entries[110])).id).toBe('110');
      expect(await made.size()).toBe(100);
      expect((await calls()) - before).toBe(0);
    },
  );
});

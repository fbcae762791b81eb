'use strict';

// Another role may create objects in the schema of the store. It plants functions, operators and types whose names or argument types
// the statements of the store could mean: none of them may ever run, because it would run with the rights of the caller.

const { setTimeout: sleep } = require('node:timers/promises');

const { makeTrace } = require('../support/make-trace.js');
const {
  MODEL,
  describeWithPostgres,
  entriesOf,
  entry,
  randomVector,
  rejection,
  useServer,
} = require('../support/store.js');

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

/** Plants overloads of the functions of a store, as the role `planter`. */
const PLANT_OVERLOADS = `
SET ROLE planter;
DO $plant$
DECLARE
  planted record;
  kind text;
BEGIN
  FOR planted IN
    SELECT p.proname, p.pronargs FROM pg_proc p
    WHERE p.pronamespace = 'public'::regnamespace AND p.proowner <> current_user::regrole AND p.proname LIKE 'guarded%'
  LOOP
    FOREACH kind IN ARRAY '{text,varchar,bigint,smallint,numeric,double precision,text[]}'::text[] LOOP
      BEGIN
        EXECUTE format('CREATE FUNCTION public.%I(%s) RETURNS SETOF record LANGUAGE plpgsql AS %L',
          planted.proname, array_to_string(array_fill(kind, ARRAY[planted.pronargs]), ', '), ${TRAP});
      EXCEPTION WHEN OTHERS THEN NULL;
      END;
    END LOOP;
  END LOOP;
END
$plant$;
RESET ROLE;`;

const traces = Array.from({ length: 90 }, (_, seed) => ({
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
    ['prefix', 'exact'],
    ['prefix', 'hnsw'],
    ['lexical', undefined],
    ['full', undefined],
  ];
  const cases = paths.flatMap((searchPath) => kinds.map((kind) => [searchPath, ...kind]));
  test.each(cases)(
    'search path %s, novelty %s, index %s: no statement calls one',
    async (searchPath, novelty, index) => {
      const table = `guarded_${novelty}_${index}_${searchPath.length}`;
      const before = await calls();
      const database = pool({ options: `-c search_path=${searchPath}` });
      const made = store({ pool: database, table, novelty, index, maxElements: 100 });
      await made.migrate();
      await admin().query(PLANT_OVERLOADS);
      await made.migrate();

      const entries =
        novelty === 'prefix'
          ? Array.from({ length: 90 }, (_, seed) => entry(`${seed}`, randomVector(seed)))
          : (await entriesOf(traces)).map((each, seed) =>
              novelty === 'lexical'
                ? each
                : { ...each, method: novelty, model: MODEL, vectors: [randomVector(seed)] },
            );
      await made.compareAndAdd(entries[0]);
      await made.compareAndAddBatch(entries.slice(1, 80));
      const call = '8c5ad0c3-0d36-4d4e-b2a5-0a3a5d8f6c11';
      const answer = await made.compareAndAddBatch(entries.slice(80), { call });
      expect(await made.compareAndAddBatch(entries.slice(80), { call })).toEqual(answer);
      const [nearest] =
        novelty === 'prefix'
          ? await made.nearest(randomVector(3), 1, MODEL)
          : await made.nearestTraces(entries[3], 1);
      expect(nearest.label).toBe('3');
      expect(await made.size()).toBe(90);
      expect(await made.setLimits({ maxElements: 80 })).toMatchObject({ maxElements: 80 });
      expect(await made.sweep()).toBe(10);

      // The cancellation of a statement is a statement too.
      const locking = await admin().connect();
      await locking.query(`BEGIN; LOCK TABLE public.${table} IN ACCESS EXCLUSIVE MODE`);
      const controller = new AbortController();
      const cancelled = rejection(made.size({ signal: controller.signal }));
      await sleep(100);
      controller.abort('enough');
      expect(await cancelled).toBe('enough');
      await locking.query('ROLLBACK');
      locking.release();

      expect((await calls()) - before).toBe(0);
    },
  );
});

'use strict';

const fc = require('fast-check');

const kp = require('..');
const oracle = require('./oracle/clean.js');
const { hostileText, level, slowTexts } = require('./support/clean-texts.js');
const { hostile, revoked, throwingGetter } = require('./support/hostile.js');
const { makeTrace } = require('./support/make-trace.js');
const { rejectionOf } = require('./support/refusals.js');

const { cleanPii, cleanPiiAsync, cleanTrace } = kp;

describe('cleanPii', () => {
  test('gives what the SDK gives', () => {
    const property = fc.property(hostileText, level, (text, each) => {
      expect(cleanPii(text, each)).toEqual(oracle.cleanPii(text, each));
    });
    // Lone surrogates around what is found, and every type in another order than that in which they are counted.
    const examples = [
      '\ud800a@b.cc\udc00\ud83d',
      'a@b.cc /home/bob token=abc xoxp-1 kp_0123456789abcdef x@y.zz',
    ];
    fc.assert(property, {
      numRuns: 2000,
      examples: examples.flatMap((text) => [undefined, 'private'].map((each) => [text, each])),
    });
  });

  test('takes what it has cleaned, and leaves its markers', () => {
    const property = fc.property(hostileText, fc.boolean(), (text, strict) => {
      const { cleaned } = cleanPii(text, { strict });
      expect(cleanPii(cleaned)).toEqual(oracle.cleanPii(cleaned));
    });
    fc.assert(property, { numRuns: 200 });
  });

  // Where time grew with the square, each would take hours.
  test.each(Object.entries(slowTexts))('two megabytes of %s', (_, make) => {
    const text = make(2 ** 21);
    expect(typeof cleanPii(text, { strict: true }).cleaned).toBe('string');
    expect(typeof cleanPii(text).cleaned).toBe('string');
  });

  test.each([[undefined], [null], [7], [['a@b.cc']], [{}], [new String('a@b.cc')], [Symbol('text')]])(
    'refuses %p as a text',
    async (text) => {
      const error = {
        name: 'TypeError',
        code: 'ERR_INVALID_TEXT',
        message: expect.stringMatching(/^text must be a string, got /),
      };
      expect(() => cleanPii(text)).toThrow(expect.objectContaining(error));
      await expect(cleanPiiAsync(text)).rejects.toMatchObject(error);
    },
  );

  const levels = "'aggregated', 'federated' or 'private'";
  const unreadable = throwingGetter({}, 'level', hostile);

  test.each([
    ['a level that there is not', 'secret', RangeError, `level must be ${levels}, got "secret"`],
    ['one among the options', { level: 'x' }, RangeError, `options.level must be ${levels}, got "x"`],
    ['a level that is no string', { level: 1 }, TypeError, 'options.level must be a string'],
    ['an index', 0, TypeError, 'options must be an object, got 0'],
    ['strict that is no boolean', { strict: 'yes' }, TypeError, 'options.strict must be a boolean'],
    ['a getter that throws', unreadable, TypeError, 'options.level could not be read: it threw'],
  ])('refuses %s', async (_, options, Class, message) => {
    const error = expect.objectContaining({ code: 'ERR_INVALID_OPTION', message });
    const thrown = await rejectionOf(cleanPiiAsync('text', options));
    expect(thrown).toEqual(error);
    expect(thrown).toBeInstanceOf(Class);
    expect(() => cleanPii('text', options)).toThrow(error);
    if (typeof options !== 'string') await expect(cleanTrace(makeTrace(), options)).rejects.toEqual(error);
  });

  test.each([[undefined], ['private'], [{ level: 'private' }]])(
    'cleanPii, cleanPiiAsync and cleanTrace refuse a third argument after %p',
    async (second) => {
      const error = {
        name: 'TypeError',
        code: 'ERR_INVALID_OPTION',
        message: 'this call takes two arguments, got 3: pass the level as an option, { level, strict }',
      };
      const third = { strict: true };
      expect(() => cleanPii('text', second, third)).toThrow(expect.objectContaining(error));
      await expect(cleanPiiAsync('text', second, third)).rejects.toMatchObject(error);
      await expect(cleanTrace(makeTrace(), { level: 'private' }, third)).rejects.toMatchObject(error);
      expect(cleanPii('text', second, undefined).cleaned).toBe('text');
    },
  );

  test('has no signal, because nothing can abort it while it runs', () => {
    expect(() => cleanPii('text', { signal: new AbortController().signal })).toThrow(
      'options.signal is not an option of this call; its options are level, strict',
    );
  });
});

describe('cleanPiiAsync', () => {
  test('gives what cleanPii gives', async () => {
    const property = fc.asyncProperty(hostileText, level, fc.boolean(), async (text, each, strict) => {
      expect(await cleanPiiAsync(text, { level: each, strict })).toEqual(
        cleanPii(text, { level: each, strict }),
      );
      expect(await cleanPiiAsync(text, each)).toEqual(cleanPii(text, each));
    });
    await fc.assert(property, { numRuns: 100 });
  });

  test('rejects with the reason of a signal that aborts before or meanwhile', async () => {
    const reason = new Error('enough');
    await expect(cleanPiiAsync('a@b.cc', { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
    await expect(cleanTrace(makeTrace(), { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
    const controller = new AbortController();
    const cleaned = cleanPiiAsync('a@b.cc '.repeat(1e6), { signal: controller.signal });
    controller.abort(reason);
    await expect(cleaned).rejects.toBe(reason);
  });

  test('leaves the event loop free', async () => {
    let turns = 0;
    const timer = setInterval(() => turns++, 1);
    await cleanPiiAsync('a@b.cc '.repeat(1e6), { strict: true });
    clearInterval(timer);
    expect(turns).toBeGreaterThan(2);
  });
});

describe('cleanTrace', () => {
  const SECRET = 'mail bob@example.com';
  const CLEAN = 'mail [REDACTED:email]';

  /** Gives every string of a value. */
  function* stringsOf(value) {
    if (typeof value === 'string') yield value;
    else if (value !== null && typeof value === 'object')
      for (const each of Object.values(value)) yield* stringsOf(each);
  }

  test('cleans every text of a trace, and keeps what others know it by', async () => {
    const kept = {
      '@context': SECRET,
      '@type': SECRET,
      id: 'kp:trace:12345678-1234-1234-1234-123456789012',
      source_skill: SECRET,
      metadata: { created_at: SECRET, task_domain: SECRET, visibility: SECRET, privacy_level: SECRET },
      steps: [{ step_id: 0, type: SECRET }],
      knowledge_graph_delta: { entities: [{ type: SECRET }], relationships: [{ valid_from: SECRET }] },
    };
    expect(await cleanTrace(kept)).toEqual({ trace: kept, redactions: [] });

    const texts = (text) => ({
      metadata: {
        agent_id: text,
        framework: text,
        validated_by: [text],
        success: true,
        quality_score: 0.5,
        other: text,
      },
      task: { objective: text, input_schema: { a: [text, { b: text }] } },
      steps: [
        {
          content: text,
          tool: { name: text, mcp_server: text },
          input: { id: text, type: text, nested: [[text], null, 7, true] },
          output_summary: text,
          latency_ms: 7,
          unknown: text,
        },
        text,
      ],
      outcome: { result_summary: text, confidence: 0.5 },
      knowledge_graph_delta: { entities: [{ name: text }], relationships: [{ fact: text }] },
      unknown: { deep: [text] },
    });
    const trace = texts(SECRET);
    expect(await cleanTrace(trace)).toEqual({
      trace: texts(CLEAN),
      redactions: [{ type: 'email', count: [...stringsOf(trace)].length }],
    });
    expect(trace).toEqual(texts(SECRET));
    expect((await cleanTrace(trace, { level: 'private' })).trace).toEqual(trace);
  });

  test('scores as before where nothing is found, and is a new object throughout', async () => {
    const trace = makeTrace();
    const { trace: copy, redactions } = await cleanTrace(Object.freeze(trace));
    expect(copy).toEqual(trace);
    expect(redactions).toEqual([]);
    expect(copy).not.toBe(trace);
    expect(copy.steps[0]).not.toBe(trace.steps[0]);
  });

  test('cleans the names of properties, and none is lost', async () => {
    const input = { 'bob@example.com': 1, plain: 2, 'eve@example.com': 3, 7: 4 };
    const { trace } = await cleanTrace({ input });
    expect(trace.input).toEqual({ '[REDACTED:email]': 1, plain: 2, '[REDACTED:email] (2)': 3, 7: 4 });
    expect(Object.keys(trace.input)).toEqual(['7', '[REDACTED:email]', 'plain', '[REDACTED:email] (2)']);
    const many = Object.fromEntries(
      Array.from({ length: 5_000 }, (_, index) => [`a${index}@example.com`, SECRET]),
    );
    const { trace: cleaned } = await cleanTrace({ many });
    expect(Object.keys(cleaned.many)).toHaveLength(5_000);
    expect(new Set(Object.values(cleaned.many))).toEqual(new Set([CLEAN]));
  });

  test('copies as JSON does: own properties, what toJSON returns, and no foreign prototype', async () => {
    const input = JSON.parse('{"__proto__": {"polluted": "bob@example.com"}, "constructor": 1}');
    const date = new Date(0);
    class Point {
      x = 'bob@example.com';
    }
    const { trace } = await cleanTrace({ input, date, again: [date], point: new Point() });
    expect(Object.getPrototypeOf(trace.input)).toBe(Object.prototype);
    expect(Object.getOwnPropertyDescriptor(trace.input, '__proto__').value).toEqual({
      polluted: '[REDACTED:email]',
    });
    expect(trace.date).toBe(date.toJSON());
    expect(trace.again).toEqual([date.toJSON()]);
    expect(trace.point).toEqual({ x: '[REDACTED:email]' });
  });

  const cyclic = { steps: [{ input: { a: {} } }] };
  cyclic.steps[0].input.a.b = cyclic.steps[0].input;
  /** Gives an object in an object, and so on. */
  function nested(levels) {
    let deep = {};
    for (let level = 0; level < levels; level++) deep = { deep };
    return deep;
  }
  const deep = nested(300);
  // What the engine throws for a result that is too long, without making one.
  const tooLong = { toJSON: () => 'x'.repeat(2 ** 31) };
  test.each([
    ['null', null, TypeError, 'trace must be an object, got null'],
    ['a string', 'trace', TypeError, 'trace must be an object, got string'],
    ['an array', [], TypeError, 'trace must be an object, got array'],
    ['what contains itself', cyclic, TypeError, /^trace has no JSON: .*(circular|cyclic)/i],
    [
      'what is too deep',
      { deep },
      RangeError,
      /^trace is nested deeper than 256 levels, at trace(\.deep){256}$/,
    ],
    ['what is far too deep', { deep: nested(2_000) }, RangeError, 'trace is nested deeper than 256 levels'],
    [
      'what overflows the stack',
      nested(50_000),
      RangeError,
      /^trace .*nested (too deeply|deeper than 256 levels)/,
    ],
    ['what is too long', tooLong, RangeError, 'trace has no JSON: it is longer than a string can be'],
    ['a bigint', { a: [1n] }, TypeError, /^trace has no JSON: .*BigInt/i],
    [
      'a getter that throws',
      throwingGetter({}, 'steps', hostile),
      TypeError,
      'trace has no JSON: it could not be read',
    ],
    ['a revoked proxy', { a: revoked({}) }, TypeError, /^trace has no JSON: .*revoked/],
  ])('refuses %s', async (_, trace, Class, message) => {
    const error = await rejectionOf(cleanTrace(trace));
    expect(error).toBeInstanceOf(Class);
    const text = typeof message === 'string' ? message : expect.stringMatching(message);
    expect(error).toMatchObject({ code: 'ERR_INVALID_TRACE', message: text });
  });

  test('copies what JSON lacks as JSON.stringify does', async () => {
    const input = {
      nan: Number.NaN,
      zero: -0,
      map: new Map([[SECRET, SECRET]]),
      call() {},
      list: [undefined],
    };
    const { trace } = await cleanTrace({ input, date: new Date(0) });
    expect(trace).toEqual(JSON.parse(JSON.stringify({ input, date: new Date(0) })));
  });
});

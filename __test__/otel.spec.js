'use strict';

// Traces of OpenTelemetry, whose spans tell a conversation in parts and again and again.

const fc = require('fast-check');

const { read, recordsOf, stepsOf, tracesOf } = require('./support/reading-traces.js');

const attributesOf = (values) =>
  Object.entries(values)
    .filter(([, value]) => value !== undefined)
    .map(([key, value]) => ({
      key,
      value: { stringValue: typeof value === 'string' ? value : JSON.stringify(value) },
    }));

/** A span that begins and ends at these times, in nanoseconds, with attributes that are JSON unless they are text. */
const spanOf = (start, values, { end = start, events, ...more } = {}) => ({
  ...{ traceId: 't', startTimeUnixNano: `${start}`, endTimeUnixNano: `${end}`, ...more },
  attributes: attributesOf(values),
  events: events?.map(([name, fields]) => ({ name, attributes: attributesOf(fields) })),
});

const batchOf = (...spans) => ({ resourceSpans: [{ scopeSpans: [{ spans }] }] });

describe('readTraces of spans of the AI SDK', () => {
  const records = recordsOf('ai-sdk-spans.jsonl');
  test('one file with these and others has the traces of both', async () => {
    const [inference] = recordsOf('captured-spans.jsonl');
    const traces = await tracesOf([inference, records[1]].map((record) => JSON.stringify(record)).join('\n'));
    expect(traces.map(({ steps }) => steps.length)).toEqual([4, 5, 9, 1]);
  });
});

describe('readTraces of a call in messages and in the span of a tool', () => {
  const turn = (number, id) => ({
    asked: { type: 'tool_call', id, name: 'f', arguments: { number } },
    answered: { type: 'tool_call_response', id, response: `result ${number}` },
    thought: `I call ${number}.`,
    tool: {
      'gen_ai.operation.name': 'execute_tool',
      'gen_ai.tool.name': 'f',
      'gen_ai.tool.call.id': id,
      'gen_ai.tool.call.arguments': { number },
      'gen_ai.tool.call.result': `result ${number}`,
    },
  });

  /**
   * The spans of a run of as many calls, one after the other: those of the model, which is given all that was before, and those of the
   * tool. `lost` says what the spans of the model do not have; the last one has all.
   */
  function spansOf(turns, lost) {
    const history = [{ role: 'user', parts: [{ type: 'text', content: 'Go' }] }];
    const spans = [];
    for (const [at, { asked, answered, thought, tool }] of turns.entries()) {
      const output = { role: 'assistant', parts: [{ type: 'text', content: thought }, asked] };
      const values = {
        'gen_ai.input.messages': lost[at].input ? undefined : [...history],
        'gen_ai.output.messages': lost[at].output ? undefined : [output],
      };
      if (!lost[at].span) spans.push(spanOf(10 * at + 1, values));
      if (!lost[at].tool) spans.push(spanOf(10 * at + 2, tool));
      history.push(output, { role: 'tool', parts: [answered] });
    }
    const last = { role: 'assistant', parts: [{ type: 'text', content: 'Done' }] };
    spans.push(spanOf(1000, { 'gen_ai.input.messages': history, 'gen_ai.output.messages': [last] }));
    return spans;
  }

  const expected = (turns) => [
    ...turns.flatMap((_, number) => [
      ['thought', `I call ${number}.`],
      ['tool_call', `f\nnumber: ${number}`],
      ['observation', `result ${number}`],
    ]),
    ['thought', 'Done'],
  ];

  test('whatever spans lack, each step is there once, in order', async () => {
    const losses = fc.record({
      ...{ input: fc.boolean(), output: fc.boolean(), span: fc.boolean(), tool: fc.boolean() },
    });
    await fc.assert(
      fc.asyncProperty(
        fc.array(losses, { minLength: 1, maxLength: 5 }),
        fc.boolean(),
        async (lost, hasIds) => {
          const turns = lost.map((_, number) => turn(number, hasIds ? `${number}` : undefined));
          // Without ids, a span of a tool is of the first call that has none: they are all there, or none is.
          const spans = spansOf(turns, hasIds ? lost : lost.map((each) => ({ ...each, tool: lost[0].tool })));
          const [trace] = await tracesOf(batchOf(...spans));
          expect(trace.task.objective).toBe('Go');
          expect(stepsOf(trace)).toEqual(expected(turns));
        },
      ),
      { numRuns: 200 },
    );
  });
});

describe('readTraces of what Grafana Tempo and Jaeger export', () => {
  const records = recordsOf('spans.jsonl');
  const toBase64 = (id) => id && Buffer.from(id, 'hex').toString('base64');
  const inBase64 = (resource) => ({
    ...resource,
    scopeSpans: resource.scopeSpans.map((scope) => ({
      ...scope,
      spans: scope.spans.map((span) => ({ ...span, traceId: toBase64(span.traceId) })),
    })),
  });
  const withLibraries = ({ scopeSpans, ...resource }) => ({
    ...resource,
    instrumentationLibrarySpans: scopeSpans.map(({ scope, ...rest }) => ({
      ...rest,
      instrumentationLibrary: scope,
    })),
  });

  test.each([
    ['batches', ({ resourceSpans }) => ({ batches: resourceSpans })],
    ['batches, ids in base64', ({ resourceSpans }) => ({ batches: resourceSpans.map(inBase64) })],
    ['batches of libraries', ({ resourceSpans }) => ({ batches: resourceSpans.map(withLibraries) })],
    [
      'resourceSpans of libraries',
      ({ resourceSpans }) => ({ resourceSpans: resourceSpans.map(withLibraries) }),
    ],
    ['trace.resourceSpans', (trace) => ({ trace, metrics: {}, status: 'complete' })],
    ['trace.batches', ({ resourceSpans }) => ({ trace: { batches: resourceSpans } })],
    ['result.resourceSpans', (result) => ({ result })],
    ['data.resourceSpans', (data) => ({ data })],
  ])('%s: the traces are those of OTLP, with their ids', async (_, write) => {
    expect(await read(records.map(write))).toEqual(await read(records));
  });
});

describe('readTraces of spans', () => {
  test('a message that is said twice is there twice, and once for each span that repeats it', async () => {
    const said = (role, content) => ({ role, parts: [{ type: 'text', content }] });
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(fc.constantFrom('yes', 'no'), fc.constantFrom('go on', 'stop')), {
          minLength: 1,
          maxLength: 8,
        }),
        fc.boolean(),
        async (turns, isReversed) => {
          const history = [];
          const spans = turns.map(([answer, order], at) => {
            history.push(said('user', order));
            const input = JSON.stringify(history);
            const output = said('assistant', answer);
            history.push(output);
            const values = {
              'gen_ai.input.messages': input,
              'gen_ai.output.messages': JSON.stringify([{ ...output, finish_reason: 'stop' }]),
            };
            return { traceId: 't', startTimeUnixNano: `${at + 1}`, attributes: attributesOf(values) };
          });
          const [trace] = await tracesOf(batchOf(...(isReversed ? spans.reverse() : spans)));
          expect(trace.steps.map(({ content }) => content)).toEqual(
            history.slice(1).map(({ parts }) => parts[0].content),
          );
        },
      ),
      { numRuns: 50 },
    );
  });

  test('what a model is given again is read as if it were alone', async () => {
    const said = (content) => JSON.stringify({ role: 'user', content });
    const lists = [
      ...['[]', '[1]', '[12]', '[1 ]', '[1 ,2]', '[1,]', '[,1]', '["]"]', '["]","a"]', '{"a":[]}'],
      ...[`[${said('a')}]`, `[${said('a')}]x`, `[${said('a')},${said('b')}]`, `[${said('a')},]`],
      `[${said('ab')},${said('c')}]`,
    ];
    const span = (json, at) => ({
      ...{ traceId: 't', startTimeUnixNano: `${at + 1}` },
      attributes: attributesOf({ 'gen_ai.input.messages': json }),
    });
    const saidBy = async (...spans) =>
      (await read(batchOf(...spans))).flatMap(({ error, trace }) =>
        error
          ? error.code
          : [
              ...[trace.task.objective, ...trace.steps.map(({ content }) => content)].sort(),
              trace.metadata.imported.left_out,
            ],
      );
    for (const first of lists) {
      for (const second of lists) {
        // A list that has nothing in common comes between, so that it is not compared with the first.
        const [one, between, two] = [span(first, 0), span('[0]', 2), span(second, 1)];
        expect([first, second, await saidBy(one, two, between)]).toEqual([
          ...[first, second],
          await saidBy(one, between, two),
        ]);
      }
    }
  });

  test('attributes that are nested deeply, and spans without an id, cost an error', async () => {
    let value = { stringValue: 'x' };
    for (let depth = 0; depth < 10_000; depth++) value = { arrayValue: { values: [value] } };
    const good = { traceId: 't', attributes: attributesOf({ 'input.value': 'Hello' }) };
    const results = await read([
      batchOf({ traceId: 't', attributes: [{ key: 'k', value }] }),
      batchOf({}, good),
    ]);
    expect(results.pop().trace.task.objective).toBe('Hello');
    expect(results.map(({ error }) => error.message)).toEqual(
      ['[0]', '[1]'].map(() =>
        expect.stringMatching(/^(it is nested too deeply|not otel: a span has no traceId)$/),
      ),
    );
  });
});

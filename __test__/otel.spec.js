'use strict';

// Traces of OpenTelemetry.

const fs = require('node:fs');
const path = require('node:path');

const { toTraces } = require('../formats.js');

const folder = path.join(__dirname, 'formats');

async function read(input) {
  const results = [];
  for await (const result of toTraces(input)) results.push(result);
  return results;
}

const recordsOf = (name) =>
  fs.readFileSync(path.join(folder, name), 'utf8').trim().split('\n').map(JSON.parse);

describe('toTraces of what Grafana Tempo and Jaeger export', () => {
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

  test('batches of something else: no format', async () => {
    for (const value of [{ batches: [] }, { batches: [{ spans: [] }] }, { trace: 'x' }]) {
      const [{ error }] = await read([value]);
      expect(error.message).toContain('of no format that is known');
    }
  });
});

'use strict';

// toTraces with a map of a format that has no reader, and what it says of records of no format.

const fs = require('node:fs');
const path = require('node:path');

const { toTraces } = require('../formats.js');
const { root } = require('./support/paths.js');
const { read, stepsOf, traceOf, tracesOf } = require('./support/reading-traces.js');

const folder = path.join(root, 'examples', 'maps');
const mapOf = (name) => JSON.parse(fs.readFileSync(path.join(folder, `${name}.json`), 'utf8'));
const inputOf = (name) => fs.readFileSync(path.join(folder, `${name}.jsonl`), 'utf8');

describe('toTraces with a map', () => {
  test('reads examples/maps/react: thoughts with a call and its result', async () => {
    const [solved, cut] = await read(inputOf('react'), { map: mapOf('react') });
    expect(solved.format).toBe('map');
    expect(solved.known).toEqual({ success: true, confidence: false });
    expect(solved.trace).toMatchObject({
      task: { objective: 'How many users signed up in May?' },
      metadata: { success: true, imported: { format: 'map', id: 'r-1' } },
      outcome: { result_summary: '412 users signed up.' },
    });
    expect(stepsOf(solved.trace)).toEqual([
      ['thought', 'The table is called users.'],
      ['tool_call', 'sql\nquery: select count(*) from user'],
      ['error_recovery', 'no such table: user'],
      ['thought', 'The name has an s.'],
      ['error_recovery', 'sql\nquery: select count(*) from users'],
      ['observation', '412'],
      ['thought', '412 users signed up.'],
    ]);
    expect(cut.trace.metadata).toMatchObject({
      success: false,
      imported: { left_out: { 'call without a result': 1 } },
    });
  });

  test('reads examples/maps/support: roles with words of their own', async () => {
    const trace = await traceOf(inputOf('support'), { map: mapOf('support') });
    expect(trace).toMatchObject({
      task: { objective: 'Where is my parcel?' },
      metadata: { created_at: '2026-03-04T10:00:00.000Z', success: true, imported: { id: 4711 } },
      outcome: { confidence: 0.8 },
    });
    expect(trace.metadata.imported.left_out).toEqual({ 'skipped message': 1 });
    expect(stepsOf(trace)).toEqual([
      ['thought', 'The order tells.'],
      ['thought', 'I look it up.'],
      ['tool_call', 'orders/find\ncustomer: 7'],
      ['error_recovery', 'no answer in 30 s'],
      ['error_recovery', 'orders/find\ncustomer: 7'],
      ['observation', 'with the carrier'],
      ['thought', 'The carrier has it.'],
      ['observation', 'Thank you.'],
    ]);
  });

  test('follows names, pointers, * and JSON in text', async () => {
    const turn = { who: 'user', said: 'Hello' };
    const records = {
      'a.b': { a: { b: [turn] } },
      '/a~1b/0/c': { 'a/b': [{ c: [turn] }] },
      'runs.*.turns': { runs: [{ turns: [turn] }, { turns: [] }] },
      json: { json: JSON.stringify([turn]) },
      '': turn,
    };
    for (const [messages, record] of Object.entries(records)) {
      const trace = await traceOf(record, { map: { messages, role: 'who', text: 'said' } });
      expect([messages, trace.task.objective]).toEqual([messages, 'Hello']);
    }
  });

  test('takes a first turn that repeats the task once, and keeps traces as they are', async () => {
    const map = { messages: 'log', role: 'by', text: 'text', task: 'goal' };
    const log = [
      { by: 'user', text: 'Hello' },
      { by: 'assistant', text: 'Good day' },
      { by: 'user', text: 'Hello' },
    ];
    const native = { '@type': 'ReasoningTrace' };
    const [trace, same] = await tracesOf([{ goal: 'Hello', log }, native], { map });
    expect(stepsOf(trace)).toEqual([
      ['thought', 'Good day'],
      ['observation', 'Hello'],
    ]);
    expect(same).toBe(native);
  });

  test.each([
    [{}, 'not map: it has no messages at `log`'],
    [{ log: [{ text: 'a' }] }, 'not map: messages[0]: it has no role at `by`'],
    [{ log: [{ by: 'cat' }] }, 'not map: messages[0]: it has a role that `roles` of the map does not name'],
    [{ log: [] }, 'map without a turn of a user or a step'],
  ])('yields an error for the record %j', async (record, message) => {
    const [{ error }] = await read(record, { map: { messages: 'log', role: 'by', text: 'text' } });
    expect(error).toMatchObject({ code: 'ERR_INVALID_RECORD', message });
  });

  test.each([
    [[], 'options.map must be an object, got array'],
    [{}, "options.map.messages is missing: the path of a record's messages"],
    [{ messages: 1 }, 'options.map.messages must be a path, which is a string, got number'],
    [
      { messages: '', roles: { bot: 'robot' } },
      'options.map.roles.bot must be one of system, user, assistant, reasoning, tool, skip',
    ],
    [
      { messages: '', call: { nam: '' } },
      'options.map.call.nam is not known: there are id, name, input, result, failed',
    ],
    [{ messages: '', success: { at: 'a' } }, 'options.map.success.is is missing'],
    [
      { messages: '', calls: '' },
      "options.map.call.name is missing: the path of a tool's name in one of `calls`",
    ],
    [1n, 'options.map has no JSON: '],
  ])('throws ERR_INVALID_OPTION for %p', (map, message) => {
    expect(() => toTraces('', { map })).toThrow(
      expect.objectContaining({ code: 'ERR_INVALID_OPTION', message: expect.stringContaining(message) }),
    );
  });
});

describe('toTraces of a record of no format', () => {
  test.each([
    [{ sessionId: 'x', log: [] }, 'its keys are sessionId, log'],
    [{ 'password=1': 1, a: 2 }, 'its keys are …, a'],
    [{}, 'its keys are none'],
    [12, 'it is a number'],
    [Object.fromEntries(Array.from({ length: 20 }, (_, at) => [`k${at}`, at])), 'k11, …;'],
  ])('names the formats that were tried and the keys of %j', async (record, found) => {
    const [{ error }] = await read([record]);
    expect(error.code).toBe('ERR_INVALID_RECORD');
    expect(error.message).toMatch(/^of no format that is known: tried atif, .*otel; /);
    expect(error.message).toContain(found);
    expect(error.message).toContain('--map FILE');
  });
});

// What it adds to `kp-score --no-embedder` that traces are converted from another format, in two or three rows for each:
//
// - the command on files of the format, against the same traces as ReasoningTraces. That is what its user waits for; of it, the
//   format has a share: what has more bytes or records, or JSON within JSON, takes longer to parse whoever reads it.
// - for Claude Code the same on a file for each session, as it writes them, against files of a trace each.
// - reading and scoring in one process, against parsing the same records and scoring the same traces. What is left is the reader's
//   own. By the time of all processors: it does not depend on what else the machine does.
//
// A large input of another format is read on a thread of its own (cli/reading.js), beside the event loop that scores and writes;
// ReasoningTraces are not. In µs for each trace, medians, on 2 cores of an AMD EPYC; `before` is without that thread:
//
//   | format                     | 2,000 traces, wall time | 20,000 traces: before, now, all processors now | traces: wall, all processors |
//   | -------------------------- | ----------------------- | ---------------------------------------------- | ---------------------------- |
//   | atif                       | 86 and 74, 1.09         | 87, 71, 123                                    | 73, 90                       |
//   | openai-chat                | 87 and 72, 1.19         | 81, 66, 120                                    | as above                     |
//   | swe-agent                  | 89 and 84, 1.06         | 87, 68, 121                                    | 73, 88                       |
//   | claude-code                | 180 and 74, 2.39        | 191, 154, 237                                  | as for atif                  |
//   | claude-code, a file each   | 299 and 151, 2.00       |                                                |                              |
//   | otel                       | 151 and 78, 1.90        | 153, 129, 208                                  | as for atif                  |
//
// The machine is shared: of 2,000 traces the ratios of atif, openai-chat and swe-agent are 1.02 to 1.63 in other runs, because the
// thread starts and compiles the reader in up to 0.1 s; of 20,000 atif has 0.84 to 1.10 there, otel 1.6 to 2.2 and claude-code 1.9 to
// 3.1. The wall times of 2,000 traces were measured before outlines were read. The rows below take 10,000, of which the start of the
// thread is a tenth still: 1.16, 1.09, 1.16, 2.15 and 2.07, and 1.77 for a file each. So the target is met for the first three where
// there is much to read, and missed for otel (1.8 by the medians) and claude-code (2.1), of whose files a trace has 1.6 times the bytes.
// What bounds them:
//
// - Reading a trace of atif takes 54 µs without handing it over, of which parsing is 26 and the collector 10; by a profile, the event
//   loop takes about 45 for the rest. With the threads of the collector both cores are busy: what is left is processor time, of which
//   two threads take an eighth more than one (137 and 120 µs). Starting the thread takes 35 ms, 17 µs for each of 2,000 traces.
// - claude-code has 27 records for a trace, whose parsing takes 45 to 50 µs where that of a trace of atif takes 17: each is an object of
//   a dozen fields in another, and the time goes into making these, not into the bytes. Decoding takes 5, mapping 35, collecting 10
//   to 15, handing over 8. So beside parsing, a tenth would leave 30 µs for all else.
// - Looking up the ids of events in a `Map` is the largest part after parsing, 15 µs: each miss follows ids that were not used for
//   long, wherever they are in memory. Two 32-bit hashes of each in an array of our own took a quarter to a half of it, but could take two
//   events for one and leave one out, so they went.
// - otel has JSON within JSON: parsing both takes 32 µs. The collector copies what 1,024 open traces hold, whose messages are compared
//   with those of later spans: with 16 of them the thread takes 5 to 15 % less.
// - Another thread for reading would have no core of its own here, so it was not tried: all processors take more than twice 79 µs.
// - Of small files, opening and reading take most of the time, whatever is in them. They are read on the event loop, at once: by the
//   least of 3 rounds, 2,000 files took 149 µs each (a trace) and 288 (a session), and 626 and 961 by streams.
//
// In one process, on whole traces: atif 64 and 49 µs, openai-chat 66 and 46, swe-agent 67 and 44, claude-code 162 and 70, otel 152 and
// 47 (medians of 7 rounds of 10,000 traces). So the reader of the first three adds 15 to 23 µs for 26 steps, where a tenth would be 5.
// No part of it (the hash of the id, the text of calls, the search for failures, the count of unknown fields) takes more than 3 µs.
//
// What was worst is gone: `result.json` was looked for once a trajectory (100 µs), each step was hashed by a call of its own
// (30 µs) and copied twice by spreads (20 µs), records that end no trace took two generators each and two waits, an open trace
// of spans kept its whole record, and each message of a span was written again to tell whether an earlier span had it.
// Where nothing is compared or written, contents are let go of at once: the thread takes 127 µs instead of 147 for a trace of claude-code
// (20,000 of them, all processors 152 instead of 181), and for otel 124 to 130 instead of 127 to 146 (pairs of runs, on a busy machine).
//
// Tried without a gain: messages of spans kept as JSON until their trace is complete (a fifth longer: what has left the caches is
// parsed, and copying strings costs as much as objects), the same as bytes outside of the heap (longer still), forgetting the events
// of finished traces (of 5,000 traces: deleting costs what it saves), decoding 64 KB of lines at once and slicing them (10 µs, half
// of it for what is not ASCII, where a line at a time takes 5), parsing up to 256 lines of ASCII as one array (39 to 45 µs instead of
// 42 to 45) or the lines of a chunk (twice as long: one character beyond Latin-1 makes all of its text two bytes wide), a young
// generation that begins with 16 MB (4 µs, within the noise), is collected by one thread, or has up to 192 MB, handing over 256 KB or
// 2 MB of records instead of 512 KB, handing over steps instead of the list of different ones (a tenth longer), `crypto.hash` instead
// of `createHash`, one frozen object and list for all fields that are missing.

import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { createReadStream, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import os from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';

import { toTraces } from '../../formats.js';
import { root } from '../../scripts/platform.mjs';
import { atMost, comparison } from '../measure.mjs';
import { makeTrace } from '../workload.mjs';

const require = createRequire(import.meta.url);
const { Scorer } = require('../../index.js');
const { TraceReader } = require('../../lib/formats/reader.js');
const { readRecords } = require('../../lib/formats/records.js');

const COMMAND = { row: 'kp-score --no-embedder', against: 'traces' };
const FILES = { row: 'kp-score --no-embedder, a file each', against: 'traces' };
const READER = { row: 'read and score', against: 'parse and score' };
const TARGET = atMost(1.1, 'x');

/** How many traces are scored at a time, as by the command. */
const IN_FLIGHT = 64;

/** How many files are named on a command line, which is not as long as one likes everywhere. */
const MOST_FILES = 2000;

/** How many real traces there are to take. */
const DIFFERENT = 50;

/** @typedef {import('../../index.js').ReasoningTrace} ReasoningTrace */

/**
 * A record of each format that a trace could have come from. All but the first have no name for a trace.
 *
 * @type {Record<string, (trace: ReasoningTrace, run: number) => unknown[]>}
 */
const WRITERS = {
  atif: (trace, run) => [
    {
      ...{ schema_version: 'ATIF-v1.8', session_id: uuid(run), agent: { name: 'bench', version: '1' } },
      steps: [
        { step_id: 1, source: 'user', message: trace.task.objective },
        ...turnsOf(trace).map(({ message, call, result }, at) => ({
          ...{ step_id: at + 2, source: 'agent', message },
          ...(call && {
            tool_calls: [{ tool_call_id: `${at}`, function_name: call.name, arguments: call.input }],
          }),
          ...(result && { observation: { results: [{ source_call_id: call && `${at}`, content: result }] } }),
        })),
      ],
    },
  ],
  'openai-chat': (trace, run) => [
    {
      id: uuid(run),
      messages: [{ role: 'user', content: trace.task.objective }, ...turnsOf(trace).flatMap(chatMessages)],
    },
  ],
  'claude-code': (trace, run) =>
    [
      { type: 'user', message: { role: 'user', content: trace.task.objective } },
      ...turnsOf(trace).flatMap(({ message, call, result }, at) => [
        {
          type: 'assistant',
          message: {
            role: 'assistant',
            content: [
              { type: 'text', text: message },
              ...(call ? [{ type: 'tool_use', id: `${at}`, name: call.name, input: call.input }] : []),
            ],
          },
        },
        ...(result
          ? [
              {
                type: 'user',
                message: {
                  role: 'user',
                  content: [
                    call
                      ? { type: 'tool_result', tool_use_id: `${at}`, content: result }
                      : { type: 'text', text: result },
                  ],
                },
              },
            ]
          : []),
      ]),
    ].map((event, at) => ({
      ...{ sessionId: uuid(run), uuid: uuid(run, at), parentUuid: at === 0 ? null : uuid(run, at - 1) },
      ...{ timestamp: '2026-01-01T00:00:00.000Z', version: '2.0.0', cwd: '/work', isSidechain: false },
      ...event,
    })),
  'swe-agent': (trace, run) => [
    {
      ...{ environment: 'bench', instance_id: `bench__bench-${run}`, info: { exit_status: 'submitted' } },
      history: [{ role: 'user', content: trace.task.objective }],
      trajectory: turnsOf(trace).map(({ message, call, result }) => ({
        ...{ thought: message, response: message, observation: result ?? '' },
        action: call ? `${call.name} ${JSON.stringify(call.input)}` : '',
      })),
    },
  ],
  otel: (trace, run) => [
    {
      resourceSpans: [
        {
          scopeSpans: [
            {
              spans: [
                {
                  ...{ traceId: uuid(run).replaceAll('-', ''), spanId: '0000000000000001' },
                  ...{ startTimeUnixNano: '1767225600000000000', endTimeUnixNano: '1767225601000000000' },
                  attributes: [
                    attribute('gen_ai.operation.name', 'chat'),
                    attribute(
                      'gen_ai.input.messages',
                      JSON.stringify([
                        { role: 'user', parts: [{ type: 'text', content: trace.task.objective }] },
                      ]),
                    ),
                    attribute('gen_ai.output.messages', JSON.stringify(turnsOf(trace).flatMap(parts))),
                  ],
                },
              ],
            },
          ],
        },
      ],
    },
  ],
};

/**
 * An id as programs make them: a short one would be found faster, or slower, than these are.
 *
 * @param {...number} of
 */
function uuid(...of) {
  const hex = createHash('md5').update(of.join()).digest('hex');
  return hex.replace(/(.{8})(.{4})(.{4})(.{4})(.{12})/, '$1-$2-$3-$4-$5');
}

/** @param {string} key @param {string} stringValue */
const attribute = (key, stringValue) => ({ key, value: { stringValue } });

/** @typedef {{ message: string, call?: { name: string, input: object }, result?: string }} Turn */

/**
 * The steps of a trace as turns of an agent: what it says, a call, and what comes of it.
 *
 * @param {ReasoningTrace} trace
 * @returns {Turn[]}
 */
function turnsOf({ steps }) {
  /** @type {Turn[]} */
  const turns = [];
  for (const { type, content = '', tool, input } of steps) {
    const last = turns.at(-1);
    if (type === 'tool_call')
      turns.push({ message: '', call: { name: tool?.name ?? 'tool', input: input ?? { content } } });
    else if (type === 'thought' || last === undefined || last.result !== undefined)
      turns.push({ message: content || '-' });
    else last.result = content;
  }
  return turns;
}

/** @param {Turn} turn @param {number} at */
function chatMessages({ message, call, result }, at) {
  const tool_calls = call && [
    { id: `${at}`, type: 'function', function: { name: call.name, arguments: JSON.stringify(call.input) } },
  ];
  const answer = call
    ? { role: 'tool', tool_call_id: `${at}`, content: result }
    : { role: 'user', content: result };
  return [{ role: 'assistant', content: message, tool_calls }, ...(result === undefined ? [] : [answer])];
}

/** @param {Turn} turn @param {number} at */
function parts({ message, call, result }, at) {
  const said = message === '' ? [] : [{ type: 'text', content: message }];
  const called = call ? [{ type: 'tool_call', id: `${at}`, name: call.name, arguments: call.input }] : [];
  const answer = call
    ? { role: 'tool', parts: [{ type: 'tool_call_response', id: `${at}`, response: result }] }
    : { role: 'user', parts: [{ type: 'text', content: result }] };
  return [{ role: 'assistant', parts: [...said, ...called] }, ...(result === undefined ? [] : [answer])];
}

/** @param {import('../run.mjs').Bench} bench */
export async function formats(bench) {
  const rowsOf = (/** @type {string} */ format) =>
    (format === 'claude-code' ? [COMMAND, FILES, READER] : [COMMAND, READER])
      .map((kind) => ({ kind, against: kind.against, row: `${kind.row}, ${format}` }))
      .filter(({ row, against }) => bench.wants(`${row} ${against}`));
  const wanted = Object.keys(WRITERS).filter((format) => rowsOf(format).length > 0);
  if (wanted.length === 0) return [];
  const directory = mkdtempSync(path.join(os.tmpdir(), 'knowledgepulse-bench-'));
  const rows = [];
  try {
    for (const format of wanted) {
      const count = bench.rounds(10_000, 2_000);
      const { file, traces, examples } = await write(directory, format, count);
      for (const { row: name, kind, against } of rowsOf(format)) {
        bench.say(name);
        const isCommand = kind !== READER;
        const [ours, theirs] =
          kind === FILES
            ? [split(file, 'sessionId'), split(traces, 'id')].map((names) => names.slice(0, MOST_FILES))
            : [[file], [traces]];
        const scored = kind === FILES ? ours.length : count;
        /** @type {{ ours: number[][], theirs: number[][] }} */
        const samples = { ours: [], theirs: [] };
        // Compiling takes as long as the first thousands of traces.
        for (let round = 0; !isCommand && round < 2; round++) await byReader(file, count);
        for (let round = 0; round < bench.rounds(7, 5); round++) {
          samples.ours.push([isCommand ? await byCommand(ours, scored) : await byReader(file, count)]);
          samples.theirs.push([
            isCommand ? await byCommand(theirs, scored) : await byParser(file, examples, count),
          ]);
        }
        rows.push(comparison({ name, unit: 'µs', ...samples, against, target: TARGET }));
      }
    }
  } finally {
    rmSync(directory, { recursive: true });
  }
  return rows;
}

/**
 * Writes runs in a format, and the traces that they become, all those that differ of which are returned.
 *
 * @param {string} directory
 * @param {string} format
 * @param {number} count
 */
async function write(directory, format, count) {
  const records = Array.from({ length: count }, (_, run) => {
    const trace = makeTrace({ kind: 'real', index: run % DIFFERENT });
    return WRITERS[format](trace, run).map((record) => `${JSON.stringify(record)}\n`);
  });
  const text = records.flat().join('');
  const traces = [];
  const examples = [];
  for await (const { error, trace } of toTraces(text)) {
    if (error !== undefined) throw error;
    traces.push(`${JSON.stringify(trace)}\n`);
    if (examples.length < DIFFERENT) examples.push(trace);
  }
  if (traces.length !== count) throw new Error(`${count} runs of ${format} are ${traces.length} traces`);
  const [file, converted] = [format, `${format}.traces`].map((name) => path.join(directory, name));
  writeFileSync(file, text);
  writeFileSync(converted, traces.join(''));
  return { file, traces: converted, examples };
}

/**
 * Writes what has one id to a file of its own; returns the files.
 *
 * @param {string} file of JSON Lines
 * @param {string} id the name of the field
 */
function split(file, id) {
  const directory = mkdtempSync(`${file}-`);
  /** @type {Map<string, string>} */
  const contents = new Map();
  for (const line of readFileSync(file, 'utf8').split('\n')) {
    if (line === '') continue;
    const key = JSON.parse(line)[id];
    contents.set(key, `${contents.get(key) ?? ''}${line}\n`);
  }
  return [...contents.values()].map((text, at) => {
    const name = path.join(directory, String(at));
    writeFileSync(name, text);
    return name;
  });
}

/**
 * How long the command takes for each trace, without its start.
 *
 * @param {string[]} files in one directory
 * @param {number} count
 */
async function byCommand(files, count) {
  const command = path.join(root, 'bin', 'kp-score.js');
  const names = files.map((file) => path.basename(file));
  const args = [command, '--no-embedder', '--no-progress', '--format', 'json', ...names];
  const { stdout } = await promisify(execFile)(process.execPath, args, {
    cwd: path.dirname(files[0]),
    maxBuffer: 2 ** 30,
  });
  const { scored, seconds } = JSON.parse(stdout).summary;
  if (scored !== count) throw new Error(`${scored} of ${count} traces were scored`);
  return (seconds / count) * 1e6;
}

/**
 * The time of all processors for each trace, in µs.
 *
 * @param {number} count
 * @param {(score: (trace: ReasoningTrace) => Promise<void>) => Promise<void>} work
 */
async function processorTime(count, work) {
  const scorer = new Scorer({ embedder: null });
  let scored = 0;
  /** @type {Promise<unknown>[]} */
  let inFlight = [];
  const before = process.cpuUsage();
  await work(async (trace) => {
    scored++;
    inFlight.push(scorer.explain(trace));
    if (inFlight.length < IN_FLIGHT) return;
    await Promise.all(inFlight);
    inFlight = [];
  });
  await Promise.all(inFlight);
  const { user, system } = process.cpuUsage(before);
  if (scored !== count) throw new Error(`${scored} of ${count} traces were scored`);
  return (user + system) / count;
}

/**
 * @param {string} file
 * @param {number} count
 */
const byReader = (file, count) =>
  processorTime(count, async (score) => {
    const reader = new TraceReader();
    for await (const records of readRecords(createReadStream(file))) {
      for (const record of records) {
        for (const { value } of reader.read(record)) await score(/** @type {ReasoningTrace} */ (value));
      }
    }
    for (const { value } of reader.end()) await score(/** @type {ReasoningTrace} */ (value));
  });

/**
 * @param {string} file
 * @param {ReasoningTrace[]} traces
 * @param {number} count
 */
const byParser = (file, traces, count) =>
  processorTime(count, async (score) => {
    for await (const _ of readRecords(createReadStream(file)));
    for (let at = 0; at < count; at++) await score(traces[at % traces.length]);
  });

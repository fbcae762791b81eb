// The cost of converting traces from another format, added to `kp-score --no-embedder`, in two or three rows for each:
//
// - the command on files of the format, against the same traces as ReasoningTraces. That is the user's waiting time; the
//   format has a share in it: a format with more bytes or records, or with JSON within JSON, takes longer to parse for any
//   reader.
// - for Claude Code the same on a file for each session, as it writes them, against files of a trace each.
// - the same on each recording of __test__/formats, repeated with other ids, against its traces repeated up to the same
//   number of bytes. By the time of all processors, without that of the start.
// - reading and scoring in one process, against parsing the same records and scoring the same traces. The difference is
//   the reader's own. By the time of all processors, which does not depend on other load.

import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { createReadStream, mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { promisify } from 'node:util';

import { toTraces } from '../../formats.js';
import { root, temporaryDirectory } from '../../scripts/platform.mjs';
import { atMost, comparison } from '../measure.mjs';
import { makeTrace } from '../workload.mjs';

const require = createRequire(import.meta.url);
const { Scorer } = require('../../index.js');

const COMMAND = { row: 'kp-score --no-embedder', against: 'traces' };
const FILES = { row: 'kp-score --no-embedder, a file each', against: 'traces' };
const READER = { row: 'read and score', against: 'parse and score' };
const RECORDED = { row: 'kp-score --no-embedder, recorded', against: 'traces of the same bytes' };
const TARGET = atMost(1.3, 'x');

/** How many traces are scored at a time, as by the command. */
const IN_FLIGHT = 64;

/** How many files are named on a command line, which is not as long as one likes everywhere. */
const MOST_FILES = 2000;

/** How many real traces there are to take. */
const DIFFERENT = 50;

/** The bytes of a recording that was repeated. */
const RECORDED_SIZE = 24_000_000;

const RECORDINGS = path.join(root, '__test__', 'formats');

/** Has a program print the time of all processors that it took, in µs. */
const TELL_TIME = `data:text/javascript,process.on('exit', () => {
  const { user, system } = process.cpuUsage();
  process.stderr.write(String(user + system));
});`;

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
 * Returns an id as programs make them: a short one would be found faster, or slower, than these are.
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
 * Returns the steps of a trace as turns of an agent: its message, a call, and the result.
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
  const recordings = readdirSync(RECORDINGS, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.jsonl') && !name.startsWith('expected'))
    .map((name) => ({ name, row: `${RECORDED.row} ${name.replace('.jsonl', '')}` }))
    .filter(({ row }) => bench.wants(`${row} ${RECORDED.against}`));
  if (wanted.length + recordings.length === 0) return [];
  const directory = temporaryDirectory('bench');
  const rows = [];
  for (const { name, row } of recordings) {
    bench.say(row);
    const [start, ours, theirs] = await writeRecorded(directory, name);
    /** @type {{ ours: number[][], theirs: number[][] }} */
    const samples = { ours: [], theirs: [] };
    for (let round = 0; round < bench.rounds(7, 3); round++) {
      const before = await processorTimeOf(start);
      samples.ours.push([(await processorTimeOf(ours)) - before]);
      samples.theirs.push([(await processorTimeOf(theirs)) - before]);
    }
    const inMilliseconds = (/** @type {number[][]} */ rounds) => rounds.map(([time]) => [time / 1000]);
    rows.push(
      comparison({
        name: row,
        unit: 'ms',
        ours: inMilliseconds(samples.ours),
        against: RECORDED.against,
        theirs: inMilliseconds(samples.theirs),
        target: TARGET,
      }),
    );
  }
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
  return rows;
}

/**
 * Writes runs in a format, and the traces that they become. Returns the distinct traces.
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
 * Writes a recording as it is, the recording many times with other ids, and its traces many times. Returns the files.
 *
 * @param {string} directory
 * @param {string} name of the recording
 */
async function writeRecorded(directory, name) {
  const recorded = readFileSync(path.join(RECORDINGS, name), 'utf8').trim();
  const records = recorded.split('\n').map((line) => JSON.parse(line));
  const again = (/** @type {number} */ run) =>
    records.map((record) => `${JSON.stringify(withOtherIds(record, run))}\n`).join('');
  /** @type {string[]} */
  const traces = [];
  for await (const { trace } of toTraces(again(0))) if (trace) traces.push(`${JSON.stringify(trace)}\n`);
  const texts = [`${recorded}\n`, upTo(RECORDED_SIZE, again), upTo(RECORDED_SIZE, () => traces.join(''))];
  return texts.map((text, at) => {
    const file = path.join(directory, String(at));
    writeFileSync(file, text);
    return file;
  });
}

/** @param {number} size @param {(run: number) => string} make */
function upTo(size, make) {
  const parts = [];
  for (let length = 0; length < size; length += parts[parts.length - 1].length)
    parts.push(make(parts.length));
  return parts.join('');
}

/**
 * Returns a record whose ids are those of another run: hexadecimal ones stay hexadecimal.
 *
 * @param {unknown} value
 * @param {number} run
 * @returns {unknown}
 */
function withOtherIds(value, run, name = '') {
  if (Array.isArray(value)) return value.map((element) => withOtherIds(element, run));
  if (typeof value === 'object' && value !== null)
    return Object.fromEntries(
      Object.entries(value).map(([key, inner]) => [key, withOtherIds(inner, run, key)]),
    );
  if (typeof value !== 'string' || !/(?:id|uuid)$/i.test(name)) return value;
  const digits = run.toString(16).padStart(8, '0');
  return /^[\da-f]{8}/.test(value) ? digits + value.slice(8) : `${value}-${digits}`;
}

/**
 * Returns the time of all processors that the command takes for a file, in µs.
 *
 * @param {string} file
 */
async function processorTimeOf(file) {
  const command = path.join(root, 'bin', 'kp-score.js');
  const args = ['--import', TELL_TIME, command, '--no-embedder', '--no-progress', '--format', 'json', file];
  const { stderr } = await promisify(execFile)(process.execPath, args, { maxBuffer: 2 ** 30 });
  return Number(stderr.slice(stderr.lastIndexOf('\n') + 1));
}

/**
 * Writes the records of one id to a file of its own; returns the files.
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
 * Returns how long the command takes for each trace, without its start.
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
 * Returns the time of all processors for each trace, in µs.
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
    for await (const { trace } of toTraces(createReadStream(file)))
      await score(/** @type {ReasoningTrace} */ (trace));
  });

/**
 * @param {string} file
 * @param {ReasoningTrace[]} traces
 * @param {number} count
 */
const byParser = (file, traces, count) =>
  processorTime(count, async (score) => {
    for await (const _ of toTraces(createReadStream(file), { format: 'trace' }));
    for (let at = 0; at < count; at++) await score(traces[at % traces.length]);
  });

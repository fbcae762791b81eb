// What it adds to `kp-score --no-embedder` that traces are converted from another format: the same traces, read as they are.
//
// The target is missed. By the time of the processor, of 4,000 runs of tau-airline on a machine that was not idle (provisional): atif
// 1.7 times, openai-chat 1.4, swe-agent 1.7, claude-code 3.4, otel 3.6. A trace of 25 steps takes 120 µs as it is, so a tenth is half a
// microsecond for each step. What was worst is gone: `result.json` was looked for once a trajectory (100 µs), and each step was
// hashed by a call of its own (30 µs). What is left is mostly parsing and collecting garbage: claude-code has 50 small records a
// trace, and otel has JSON within JSON, each message of which is written again to tell whether an earlier span had it.

import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';

import { toTraces } from '../../formats.js';
import { root } from '../../scripts/platform.mjs';
import { atMost, comparison } from '../measure.mjs';
import { makeTrace } from '../workload.mjs';

const AGAINST = 'traces';
const TARGET = atMost(1.1, 'x');

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
      ...{ schema_version: 'ATIF-v1.8', session_id: `run ${run}`, agent: { name: 'bench', version: '1' } },
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
      id: `run ${run}`,
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
      ...{ sessionId: `run ${run}`, uuid: `${run}-${at}`, parentUuid: at === 0 ? null : `${run}-${at - 1}` },
      ...{ timestamp: '2026-01-01T00:00:00.000Z', version: '2.0.0', cwd: '/work', isSidechain: false },
      ...event,
    })),
  'swe-agent': (trace, run) => [
    {
      ...{ environment: 'bench', instance_id: `run ${run}`, info: { exit_status: 'submitted' } },
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
                  ...{ traceId: `run ${run}`, spanId: '1', startTimeUnixNano: '1', endTimeUnixNano: '2' },
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
  const rowName = (/** @type {string} */ format) => `kp-score --no-embedder, ${format}`;
  const wanted = Object.keys(WRITERS).filter((format) => bench.wants(`${rowName(format)} ${AGAINST}`));
  if (wanted.length === 0) return [];
  const directory = mkdtempSync(path.join(os.tmpdir(), 'knowledgepulse-bench-'));
  const rows = [];
  try {
    for (const format of wanted) {
      bench.say(rowName(format));
      const count = bench.rounds(10_000, 2_000);
      const [file, traces] = await write(directory, format, count);
      /** @type {{ ours: number[][], theirs: number[][] }} */
      const samples = { ours: [], theirs: [] };
      for (let round = 0; round < bench.rounds(7, 5); round++) {
        samples.ours.push([await microseconds(file, count)]);
        samples.theirs.push([await microseconds(traces, count)]);
      }
      const { ours, theirs } = samples;
      rows.push(
        comparison({ name: rowName(format), unit: 'µs', ours, against: AGAINST, theirs, target: TARGET }),
      );
    }
  } finally {
    rmSync(directory, { recursive: true });
  }
  return rows;
}

/**
 * Writes runs in a format, and the traces that they become.
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
  for await (const { error, trace } of toTraces(text)) {
    if (error !== undefined) throw error;
    traces.push(`${JSON.stringify(trace)}\n`);
  }
  if (traces.length !== count) throw new Error(`${count} runs of ${format} are ${traces.length} traces`);
  const files = [format, `${format}.traces`].map((name) => path.join(directory, name));
  writeFileSync(files[0], text);
  writeFileSync(files[1], traces.join(''));
  return files;
}

/**
 * How long the command takes for each trace, without its start.
 *
 * @param {string} file
 * @param {number} count
 */
async function microseconds(file, count) {
  const command = path.join(root, 'bin', 'kp-score.js');
  const args = [command, '--no-embedder', '--no-progress', '--format', 'json', file];
  const { stdout } = await promisify(execFile)(process.execPath, args, { maxBuffer: 2 ** 30 });
  const { scored, seconds } = JSON.parse(stdout).summary;
  if (scored !== count) throw new Error(`${scored} of ${count} traces were scored`);
  return (seconds / count) * 1e6;
}

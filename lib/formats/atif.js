'use strict';

// The Agent Trajectory Interchange Format of Harbor, versions 1.0 to 1.8, one trajectory in a record:
// https://github.com/harbor-framework/harbor/blob/main/rfcs/0001-trajectory-format.md
//
// | trajectory                                        | trace                                                                     |
// | ------------------------------------------------- | ------------------------------------------------------------------------- |
// | first step of `source` `user`                     | `task.objective`                                                          |
// | later steps of `source` `user`                    | `observation`                                                             |
// | steps of `source` `system`                        | none; counted. Their `observation` is one                                 |
// | `reasoning_content`, then `message`               | a `thought` each                                                          |
// | `tool_calls`                                      | `tool_call` each                                                          |
// | `observation.results`                             | `observation` or `error_recovery` each                                    |
// | steps with `is_copied_context`                    | none; counted: they are of the trajectory that is continued               |
// | `subagent_trajectories`                           | a trace each, whose success is not known                                  |
// | `subagent_trajectory_ref` without content         | an `observation` that names it                                            |
// | `agent.name`, first `timestamp`                   | `metadata.framework`, `metadata.created_at`                               |
// | `result.json` beside it, or up to three folders up | success and confidence by `verifier_result`, or failure by `exception_info` |
// | version, ids, model, metrics, notes, `extra`      | `metadata.imported`                                                       |

const fs = require('node:fs');
const path = require('node:path');

const { isObject, listOf, numberOf, objectOf, stringOf, TraceBuilder } = require('./mapping.js');

/** @import { Entry, Reader } from './reader.js' */

const VERSION = /^ATIF-v1\.\d+$/;

const ROOT_FIELDS = new Set([
  ...['schema_version', 'session_id', 'trajectory_id', 'agent', 'steps', 'notes', 'final_metrics', 'extra'],
  ...['continued_trajectory_ref', 'subagent_trajectories'],
]);
const STEP_FIELDS = new Set([
  ...['step_id', 'timestamp', 'source', 'model_name', 'reasoning_effort', 'message', 'reasoning_content'],
  ...['tool_calls', 'observation', 'metrics', 'llm_call_count', 'is_copied_context'],
]);

/** Harbor keeps a trajectory in `TRIAL/agent/`, and one of several steps in `TRIAL/steps/NAME/agent/`. */
const FOLDERS_UP = 4;
const RESULT_FILE = 'result.json';
/** A result is some kilobytes long. */
const MAX_RESULT_SIZE = 16 * 1024 * 1024;

/** @param {unknown} value */
const recognises = (value) =>
  isObject(value) && typeof value.schema_version === 'string' && VERSION.test(value.schema_version);

/**
 * @param {{ file?: string }} context
 * @returns {Reader}
 */
function createReader({ file }) {
  return {
    *read(entry) {
      const { value } = entry;
      if (!recognises(value)) throw new TypeError('it has no schema_version of ATIF, such as "ATIF-v1.6"');
      // Not recursive: a file may nest them more deeply than the stack is.
      const waiting = [{ trajectory: objectOf(value), depth: 0 }];
      for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
        const { trajectory, depth } = next;
        const subagents = listOf(trajectory.subagent_trajectories).map((each) => ({
          trajectory: objectOf(each),
          depth: depth + 1,
        }));
        waiting.push(...subagents.reverse());
        const builder = build(trajectory, entry);
        if (depth > 0) builder.details.is_subagent = true;
        else builder.size = entry.size;
        if (depth === 0 && file !== undefined) addResultFile(builder, file);
        yield builder;
      }
    },
  };
}

/**
 * @param {Record<string, unknown>} trajectory
 * @param {Entry} entry
 */
function build(trajectory, entry) {
  const builder = new TraceBuilder('atif', entry);
  if (!Array.isArray(trajectory.steps)) throw new TypeError('steps must be an array');
  const agent = objectOf(trajectory.agent);
  const { schema_version, session_id, trajectory_id } = trajectory;
  builder.ids = [trajectory_id, session_id].filter((id) => typeof id === 'string');
  builder.framework = stringOf(agent.name);
  builder.keep('version', schema_version);
  builder.keep('session_id', session_id);
  builder.keep('trajectory_id', trajectory_id);
  builder.keep('agent_version', agent.version);
  builder.keep('model', agent.model_name);
  builder.keep('notes', trajectory.notes);
  builder.keep('final_metrics', trajectory.final_metrics);
  builder.keep('continued_trajectory_ref', trajectory.continued_trajectory_ref);
  builder.keep('extra', trajectory.extra);
  builder.countUnknown(trajectory, ROOT_FIELDS);
  for (const [at, step] of trajectory.steps.entries()) {
    if (!isObject(step)) throw new TypeError(`steps[${at}] must be an object`);
    addStep(builder, step, at);
  }
  return builder;
}

/**
 * @param {InstanceType<typeof TraceBuilder>} builder
 * @param {Record<string, unknown>} step
 * @param {number} at
 */
function addStep(builder, step, at) {
  if (step.is_copied_context === true) return builder.leaveOut('copied step');
  builder.countUnknown(step, STEP_FIELDS);
  builder.at(step.timestamp);
  switch (step.source) {
    case 'system':
      builder.system(step.message);
      break;
    case 'user':
      builder.user(step.message);
      break;
    case 'agent':
      if (step.reasoning_content !== undefined && step.reasoning_content !== null)
        builder.reasoning(step.reasoning_content);
      builder.message(step.message);
      break;
    default:
      throw new TypeError(`steps[${at}].source must be system, user or agent`);
  }
  for (const call of listOf(step.tool_calls).map(objectOf)) {
    builder.call({ id: call.tool_call_id, name: call.function_name, args: call.arguments });
  }
  for (const result of listOf(objectOf(step.observation).results).map(objectOf)) addResult(builder, result);
}

/**
 * @param {InstanceType<typeof TraceBuilder>} builder
 * @param {Record<string, unknown>} result
 */
function addResult(builder, result) {
  const references = listOf(result.subagent_trajectory_ref).map(objectOf);
  const names = references.map(({ trajectory_id, trajectory_path, session_id }) =>
    String(trajectory_id ?? trajectory_path ?? session_id ?? 'unnamed'),
  );
  const delegated = names.length > 0 ? `[sub-agent ${names.join(', ')}]` : '';
  const content = result.content ?? delegated;
  const { is_error, tool_result_is_error, exit_code } = objectOf(result.extra);
  const isError = is_error ?? tool_result_is_error;
  const code = numberOf(exit_code);
  const failed = typeof isError === 'boolean' ? isError : code === undefined ? undefined : code !== 0;
  if (result.source_call_id === undefined || result.source_call_id === null) builder.event(content);
  else builder.result({ id: result.source_call_id, content, failed });
}

/**
 * Success and confidence of the trial that a trajectory is of, by the file `result.json` of Harbor.
 *
 * @param {InstanceType<typeof TraceBuilder>} builder
 * @param {string} file
 */
function addResultFile(builder, file) {
  const result = readResult(file);
  if (result === undefined) return;
  builder.keep('trial', result.trial_name);
  builder.keep('task', result.task_name);
  const exception = objectOf(result.exception_info).exception_type;
  builder.keep('exception', exception);
  const rewards = objectOf(objectOf(result.verifier_result).rewards);
  const values = Object.values(rewards);
  // By the name that Harbor gives to the only one.
  const reward = rewards.reward ?? (values.length === 1 ? values[0] : undefined);
  if (reward !== undefined) builder.reward(reward);
  else if (exception !== undefined) builder.success = false;
}

/**
 * The result of the trial; undefined without one. The result of a job, one level up, has neither of these fields.
 *
 * @param {string} file
 */
function readResult(file) {
  let folder = path.dirname(path.resolve(file));
  for (let up = 0; up < FOLDERS_UP; up++) {
    const name = path.join(folder, RESULT_FILE);
    try {
      const stat = fs.statSync(name);
      if (stat.isFile() && stat.size <= MAX_RESULT_SIZE) {
        const result = objectOf(JSON.parse(fs.readFileSync(name, 'utf8')));
        if ('verifier_result' in result || 'exception_info' in result) return result;
      }
    } catch {
      // None, or of something else.
    }
    folder = path.dirname(folder);
  }
  return undefined;
}

module.exports = { createReader, name: /** @type {const} */ ('atif'), recognises };

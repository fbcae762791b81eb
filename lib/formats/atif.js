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
// | steps with `is_copied_context`                    | none; counted: they are of the trajectory that is continued. Their first  |
// |                                                   | user is the objective where no other step has one                         |
// | `subagent_trajectories`                           | a trace each, whose success is not known                                  |
// | `trajectory_path` of a `subagent_trajectory_ref`  | the same, of a file in the folder of the one that is read, or below       |
// | `subagent_trajectory_ref` without content         | an `observation` that names it                                            |
// | `agent.name`, first `timestamp`                   | `metadata.framework`, `metadata.created_at`                               |
// | `result.json` beside it, or up to three folders up | success and confidence by `verifier_result`, or failure by `exception_info` |
// | version, ids, model, metrics, notes, `extra`      | `metadata.imported`                                                       |

const fs = require('node:fs');
const { basename, dirname, join, resolve, sep } = require('node:path');

const { DEFAULT_LIMIT } = require('./records.js');
const { isObject, listOf, numericOf, objectOf, stringOf, TraceBuilder, truthOf } = require('./mapping.js');

/** @import { Context, Entry, Reader } from './reader.js' */

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
/** The result is that of these files; others beside the first are of sub-agents. */
const MAIN_FILE = 'trajectory.json';
const CONTINUATION = /^trajectory\.cont-\d+\.json$/;
/** A result is some kilobytes long. */
const MAX_RESULT_SIZE = 16 * 1024 * 1024;

/** Takes a byte order mark away. */
const utf8 = new TextDecoder('utf-8', { fatal: true });

/** @param {unknown} value */
const recognises = (value) =>
  isObject(value) && typeof value.schema_version === 'string' && VERSION.test(value.schema_version);

/**
 * A trajectory that is to be read: here, or from a file.
 *
 * @typedef {{ value: unknown, folder: string | undefined, file?: undefined, name?: string }
 *   | { file: string, name: string, value?: undefined, folder?: undefined }} Waiting `folder` is that of the file which it is in,
 * `name` what the file is called by the trajectory that refers to it
 */

/**
 * @param {Context} context
 * @returns {Reader}
 */
function createReader({ file, files }) {
  const path = file === undefined ? undefined : realPathOf(file);
  // A trajectory that refers to it was read before.
  const isFollowed = path !== undefined && files.get(path) === 'followed';
  if (path !== undefined && !isFollowed) files.set(path, 'named');
  const root = path === undefined ? undefined : dirname(path);
  /** Read once, however many trajectories the file has; null until then. */
  /** @type {Record<string, unknown> | undefined | null} */
  let result = null;
  return {
    *read(entry) {
      const { value } = entry;
      if (!recognises(value)) throw new TypeError('it has no schema_version of ATIF, such as "ATIF-v1.6"');
      if (isFollowed) return;
      if (result === null) result = file === undefined ? undefined : readResult(file);
      const builder = build(objectOf(value), entry);
      builder.size = entry.size;
      if (result !== undefined) addOutcome(builder, result);
      yield builder;
      // Not recursive: a file may nest them more deeply than the stack is.
      const waiting = subagentsOf(objectOf(value), root);
      for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
        try {
          const found = next.file === undefined ? next : readFile(next, root, files);
          if (found === undefined) continue;
          const trajectory = objectOf(found.value);
          waiting.push(...subagentsOf(trajectory, found.folder));
          const subagent = build(trajectory, entry);
          subagent.details.is_subagent = true;
          subagent.keep('trajectory_path', found.name);
          yield subagent;
        } catch (error) {
          const which = next.name === undefined ? 'a sub-agent' : `the sub-agent in ${next.name}`;
          yield new TypeError(
            `${which}: ${error instanceof TypeError ? error.message : 'it is nested too deeply'}`,
          );
        }
      }
    },
  };
}

/**
 * The sub-agents of a trajectory, the first one last: those that it has, and then those that it refers to.
 *
 * @param {Record<string, unknown>} trajectory
 * @param {string | undefined} folder that of its file, if that is known
 * @returns {Waiting[]}
 */
function subagentsOf(trajectory, folder) {
  const embedded = listOf(trajectory.subagent_trajectories);
  /** @type {Waiting[]} */
  const found = embedded.map((value) => ({ value, folder }));
  if (folder !== undefined) {
    const ids = new Set(embedded.map((each) => objectOf(each).trajectory_id));
    for (const { trajectory_id, trajectory_path } of referencesIn(trajectory)) {
      const name = stringOf(trajectory_path);
      if (name === undefined || (typeof trajectory_id === 'string' && ids.has(trajectory_id))) continue;
      found.push({ file: resolve(folder, name), name });
    }
  }
  return found.reverse();
}

/**
 * The references to sub-agents.
 *
 * @param {Record<string, unknown>} trajectory
 */
function* referencesIn(trajectory) {
  for (const step of listOf(trajectory.steps)) {
    for (const result of listOf(objectOf(objectOf(step).observation).results)) {
      for (const reference of listOf(objectOf(result).subagent_trajectory_ref)) yield objectOf(reference);
    }
  }
}

/**
 * The trajectory in a file that another one refers to. Undefined if it was read already, if it is not there, as where only the
 * other one was copied, or if it is not in the folder `root` nor below: a trajectory does not say which files of a machine are read.
 *
 * @param {{ file: string, name: string }} reference
 * @param {string | undefined} root
 * @param {Context['files']} files
 * @returns {{ value: unknown, folder: string, name: string } | undefined}
 * @throws {TypeError} if something else is in it
 */
function readFile({ file, name }, root, files) {
  const path = realPathOf(file);
  if (path === undefined || root === undefined || !path.startsWith(root + sep) || files.has(path))
    return undefined;
  let bytes;
  try {
    const stat = fs.statSync(path);
    if (!stat.isFile()) return undefined;
    files.set(path, 'followed');
    if (stat.size > DEFAULT_LIMIT) throw new TypeError(`longer than ${DEFAULT_LIMIT / 1024 / 1024} MB`);
    bytes = fs.readFileSync(path);
  } catch (error) {
    if (error instanceof TypeError) throw error;
    throw new TypeError('it cannot be read');
  }
  let value;
  try {
    value = JSON.parse(utf8.decode(bytes));
  } catch {
    throw new TypeError('not JSON in UTF-8');
  }
  if (!recognises(value)) throw new TypeError('it has no schema_version of ATIF');
  return { value, folder: dirname(path), name };
}

/**
 * The path of a file, links followed; undefined if there is none.
 *
 * @param {string} file
 */
function realPathOf(file) {
  try {
    return fs.realpathSync(file);
  } catch {
    return undefined;
  }
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
  if (step.is_copied_context === true) {
    if (step.source === 'user') builder.userBefore(step.message);
    return builder.leaveOut('copied step');
  }
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
  const calls = listOf(step.tool_calls).map(objectOf);
  for (const call of calls) {
    builder.call({ id: call.tool_call_id, name: call.function_name, args: call.arguments });
  }
  const results = listOf(objectOf(step.observation).results).map(objectOf);
  // Some agents do not say which result is of which call.
  const isPaired =
    results.length === calls.length && results.every(({ source_call_id }) => source_call_id == null);
  for (const [place, result] of results.entries()) {
    addResult(builder, result, isPaired ? calls[place].tool_call_id : result.source_call_id);
  }
}

/**
 * @param {InstanceType<typeof TraceBuilder>} builder
 * @param {Record<string, unknown>} result
 * @param {unknown} id of its call
 */
function addResult(builder, result, id) {
  const references = listOf(result.subagent_trajectory_ref).map(objectOf);
  const names = references.map(({ trajectory_id, trajectory_path, session_id }) =>
    String(trajectory_id ?? trajectory_path ?? session_id ?? 'unnamed'),
  );
  const delegated = names.length > 0 ? `[sub-agent ${names.join(', ')}]` : '';
  const content = result.content ?? delegated;
  const { is_error, tool_result_is_error, exit_code, returncode } = objectOf(result.extra);
  const code = numericOf(exit_code ?? returncode);
  const failed = truthOf(is_error ?? tool_result_is_error) ?? (code === undefined ? undefined : code !== 0);
  if (id === undefined || id === null) builder.event(content);
  else builder.result({ id, content, failed });
}

/**
 * Success and confidence of the trial that a trajectory is of, by the file `result.json` of Harbor.
 *
 * @param {InstanceType<typeof TraceBuilder>} builder
 * @param {Record<string, unknown>} result
 */
function addOutcome(builder, result) {
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
 * The result of the trial; undefined without one, or if it belongs to another file. That of a job, which is further up, has neither
 * of these fields.
 *
 * @param {string} file
 */
function readResult(file) {
  let folder = dirname(resolve(file));
  const name = basename(file);
  if (name !== MAIN_FILE && !CONTINUATION.test(name) && fs.existsSync(join(folder, MAIN_FILE)))
    return undefined;
  for (let up = 0; up < FOLDERS_UP; up++) {
    const name = join(folder, RESULT_FILE);
    try {
      const stat = fs.statSync(name);
      if (stat.isFile() && stat.size <= MAX_RESULT_SIZE) {
        const result = objectOf(JSON.parse(fs.readFileSync(name, 'utf8')));
        if ('verifier_result' in result || 'exception_info' in result) return result;
      }
    } catch {
      // None, or of something else.
    }
    folder = dirname(folder);
  }
  return undefined;
}

module.exports = { createReader, name: /** @type {const} */ ('atif'), recognises };

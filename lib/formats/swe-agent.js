'use strict';

// The `.traj` files of SWE-agent, of versions 0 and 1, and those of mini-SWE-agent: https://swe-agent.com/latest/usage/trajectories/
//
// | file                                                            | trace                                                        |
// | --------------------------------------------------------------- | ------------------------------------------------------------ |
// | first user message of `history` that is no demonstration        | `task.objective`                                             |
// | `thought` of each of `trajectory`; `response` without one       | `thought`                                                    |
// | `action`                                                        | `tool_call`; its first word is the tool, `input.command` all |
// | `observation`                                                   | `observation` or `error_recovery`, by its text               |
// | `history`, where there is no `trajectory`, as in demonstrations | `thought`, `action` and the message after it, as above       |
// | `execution_time`, in seconds                                    | `latency_ms` of the call                                     |
// | `messages` of mini-SWE-agent                                    | as in `openai-chat`; a command in a code block is a call     |
// | `extra.returncode`, `extra.exception_info` of its results       | whether the command failed                                   |
// | `info.exit_status`                                              | success: it is `submitted`, and nothing more                 |
// | `info` without the `submission`, `environment`                  | `metadata.imported`; the patch is only counted               |
// |                                                                 | `metadata.task_domain` is `code`                             |

const { isObject, listOf, numberOf, objectOf, stringOf, TraceBuilder } = require('./mapping.js');
const { addMessage } = require('./messages.js');

/** @import { Entry, Reader } from './reader.js' */

const ROOT_FIELDS = new Set([
  ...['trajectory', 'history', 'info', 'environment', 'replay_config', 'attempts', 'instance_id'],
  ...['messages', 'trajectory_format'],
]);
const TURN_FIELDS = new Set([
  ...['action', 'observation', 'response', 'thought', 'execution_time', 'state'],
  // What the model was shown, which is in the turns before.
  ...['query', 'messages', 'extra_info'],
]);

/** How mini-SWE-agent has a command in a message. It runs none where there are several. */
const COMMAND = /```(?:bash|mswea_bash_command)[^\S\n]*\n([\s\S]*?)\n?```/g;

/** What the two agents put before and after a command that was stopped. */
const STOPPED = [
  ["The command '", "' was cancelled because it took more than "],
  ['The last command <command>', '</command> timed out and has been killed'],
];

/** What SWE-agent puts before the message of a command that it could not parse. */
const NOT_RUN = 'Your bash command contained syntax errors and was NOT executed';

/** How the output of a command that was stopped ends in SWE-agent 0. */
const TIMED_OUT = /(?:^|\n)EXECUTION TIMED OUT(?: AND INTERRUPT FAILED\. RESTARTING PROCESS\.)?\s*$/;
const TIMED_OUT_LENGTH = 100;

/** @param {Record<string, unknown>} record */
const isMini = (record) =>
  typeof record.trajectory_format === 'string' && record.trajectory_format.startsWith('mini-swe-agent');

/** @param {Record<string, unknown>} message */
const isDemonstration = (message) => message.is_demo === true || message.message_type === 'demonstration';

/**
 * Whether a history is all there is of a run, as of demonstrations: messages that say of which agent or kind they are.
 *
 * @param {Record<string, unknown>} record
 */
function isHistory({ trajectory, history }) {
  if (trajectory !== undefined || !Array.isArray(history)) return false;
  const first = objectOf(history[0]);
  return (
    typeof first.role === 'string' && ('agent' in first || 'message_type' in first || 'is_demo' in first)
  );
}

/** @param {unknown} value */
function recognises(value) {
  if (!isObject(value)) return false;
  if (isMini(value) || isHistory(value)) return true;
  const first = listOf(value.trajectory)[0];
  if (first === undefined)
    return Array.isArray(value.trajectory) && Array.isArray(value.history) && isObject(value.info);
  return isObject(first) && 'action' in first && 'observation' in first;
}

/** @returns {Reader} */
function createReader() {
  return {
    *read(entry) {
      if (!recognises(entry.value)) throw new TypeError('it has no trajectory of actions and observations');
      yield read(entry);
    },
  };
}

/** @param {Entry} entry */
function read(entry) {
  const record = objectOf(entry.value);
  const builder = new TraceBuilder('swe-agent', entry);
  builder.size = entry.size;
  builder.framework = isMini(record) ? 'mini-swe-agent' : 'swe-agent';
  builder.domain = 'code';
  builder.countUnknown(record, ROOT_FIELDS);
  const { exit_status, submission, ...info } = objectOf(record.info);
  builder.keep('environment', record.environment);
  builder.keep('instance_id', record.instance_id);
  builder.keep('version', record.trajectory_format);
  builder.keep('exit_status', exit_status);
  if (Object.keys(info).length > 0) builder.keep('info', info);
  if (submission !== undefined && submission !== null) builder.leaveOut('submission');
  if (typeof exit_status === 'string') builder.success = exit_status.toLowerCase() === 'submitted';
  if (isMini(record)) addMessages(builder, listOf(record.messages));
  else if (listOf(record.trajectory).length > 0) addTurns(builder, record);
  else addHistory(builder, listOf(record.history));
  return builder;
}

/**
 * @param {InstanceType<typeof TraceBuilder>} builder
 * @param {Record<string, unknown>} record
 */
function addTurns(builder, record) {
  for (const message of listOf(record.history).map(objectOf)) {
    if (isDemonstration(message)) builder.leaveOut('demonstration');
    else if (message.role === 'system') builder.system(message.content);
    else if (message.role === 'user') {
      builder.user(message.content);
      // The messages after it are the turns once more.
      break;
    }
  }
  for (const [at, turn] of listOf(record.trajectory).entries()) {
    if (!isObject(turn)) throw new TypeError(`trajectory[${at}] must be an object`);
    builder.countUnknown(turn, TURN_FIELDS);
    builder.message(stringOf(turn.thought) ?? turn.response);
    const command = builder.textOf(turn.action).trim();
    if (command === '') {
      if (stringOf(turn.observation)) builder.event(turn.observation);
      continue;
    }
    addCommand(builder, command);
    const seconds = numberOf(turn.execution_time);
    if (seconds !== undefined) builder.took(undefined, seconds * 1000);
    if (turn.observation !== undefined && turn.observation !== null) addResult(builder, turn.observation);
  }
}

/**
 * The messages of a run without a trajectory. Where all are a demonstration, that is the run.
 *
 * @param {InstanceType<typeof TraceBuilder>} builder
 * @param {unknown[]} history
 */
function addHistory(builder, history) {
  const messages = history.map(objectOf);
  const isRun = messages.some((message) => message.role !== 'system' && !isDemonstration(message));
  let isWaiting = false;
  for (const [at, message] of messages.entries()) {
    const { role, content } = message;
    if (isRun && isDemonstration(message)) builder.leaveOut('demonstration');
    else if (role === 'system') builder.system(content);
    else if (role === 'assistant') {
      builder.message(stringOf(message.thought) ?? content);
      const command = builder.textOf(message.action).trim();
      isWaiting = command !== '';
      if (isWaiting) addCommand(builder, command);
    } else if (role !== 'user' && role !== 'tool') {
      throw new TypeError(`history[${at}] has a role that is not known`);
    } else {
      if (isWaiting) addResult(builder, content);
      else if (role === 'tool') builder.event(content);
      else builder.user(content);
      isWaiting = false;
    }
  }
}

/**
 * @param {InstanceType<typeof TraceBuilder>} builder
 * @param {string} command
 */
function addCommand(builder, command) {
  const [name] = command.split(/\s/, 1);
  builder.call({ name, args: { command } });
}

/**
 * The result of the command before.
 *
 * @param {InstanceType<typeof TraceBuilder>} builder
 * @param {unknown} content
 * @param {boolean} [failed] what the agent says of it; undefined if it says nothing, and the text decides
 */
function addResult(builder, content, failed) {
  const text = builder.textOf(content);
  const isStopped = STOPPED.some(([before, after]) => text.startsWith(before) && text.includes(after));
  const isOver = isStopped || text.startsWith(NOT_RUN) || TIMED_OUT.test(text.slice(-TIMED_OUT_LENGTH));
  builder.result({ content: text, failed: failed ?? (isOver ? true : undefined) });
}

/**
 * Whether a command of mini-SWE-agent failed; undefined where it does not say so, as in version 1.
 *
 * @param {Record<string, unknown>} extra
 */
function failureOf({ returncode, exception_info }) {
  if (stringOf(exception_info) !== undefined) return true;
  const code = numberOf(returncode);
  return code === undefined ? undefined : code !== 0;
}

/**
 * The command that a message of the agent has in its text; undefined without one.
 *
 * @param {InstanceType<typeof TraceBuilder>} builder
 * @param {Record<string, unknown>} message
 * @param {unknown} actions what was run, which version 1 does not say
 */
function commandOf(builder, { role, content, tool_calls }, actions) {
  if (role !== 'assistant' || listOf(tool_calls).length > 0) return undefined;
  const commands = Array.isArray(actions)
    ? actions.map((action) => objectOf(action).command)
    : Array.from(builder.textOf(content).matchAll(COMMAND), ([, command]) => command);
  return commands.length === 1 ? stringOf(builder.textOf(commands[0]).trim()) : undefined;
}

/**
 * @param {InstanceType<typeof TraceBuilder>} builder
 * @param {unknown[]} messages
 */
function addMessages(builder, messages) {
  let isWaiting = false;
  for (const value of messages) {
    const { extra, ...message } = objectOf(value);
    const { timestamp, actions, ...ending } = objectOf(extra);
    const failed = failureOf(ending);
    builder.at(new Date((numberOf(timestamp) ?? Number.NaN) * 1000).toJSON());
    // How it ended, which `info` says too.
    if (message.role === 'exit') builder.leaveOut('exit message');
    else if (isWaiting && message.role === 'user') addResult(builder, message.content, failed);
    // A reply of the Responses API.
    else if (message.object === 'response')
      for (const item of listOf(message.output)) addMessage(builder, item);
    else addMessage(builder, failed === undefined ? message : { ...message, is_error: failed });
    const command = commandOf(builder, message, actions);
    isWaiting = command !== undefined;
    if (command !== undefined) addCommand(builder, command);
  }
}

module.exports = { createReader, name: /** @type {const} */ ('swe-agent'), recognises };

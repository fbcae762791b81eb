'use strict';

// Sessions of Claude Code, an event a line: the files in `~/.claude/projects/`, and what `--output-format stream-json` prints. They
// are not documented; Harbor reads them too (`claude_code.py`).
//
// | event                                                   | trace                                                            |
// | ------------------------------------------------------- | ---------------------------------------------------------------- |
// | all with one `sessionId` or `session_id`                | a trace                                                          |
// | with `isSidechain`: of one `agentId`, or of one chain of `parentUuid`; with one `parent_tool_use_id` | a trace, whose success is not known |
// | `type` `user` and `assistant`: `message`                | as a message of Anthropic in `openai-chat`                       |
// | a `tool_result` of a `toolUseResult` that is `interrupted`, or that a user refused | `observation`: the tool did not fail |
// | calls without a result, as of a session that was killed | `tool_call`                                                      |
// | `isCompactSummary`                                      | none; counted: it repeats what was                               |
// | an event whose `uuid` was there before, as in a session that was continued | none; counted                                 |
// | `isMeta`, `isApiErrorMessage`                           | none; counted: the program speaks, not the user nor the agent    |
// | commands that the program carries out, as `/clear`, and what they print | none; counted                                    |
// | commands that the user runs in a shell, and what they print | `observation`                                                |
// | `type` `result`                                         | success, by `is_error` and by a `subtype` that begins with `error` |
// | `type` `system`, `summary`, `file-history-snapshot`, …  | none; counted                                                    |
// | `timestamp`, `version`, `cwd`, `gitBranch`, `message.model` | `metadata.created_at`, `metadata.imported`                   |
// |                                                         | `metadata.framework` is `claude-code`, `task_domain` is `code`   |

const { isObject, listOf, objectOf, stringOf, TraceBuilder } = require('./mapping.js');
const { addMessage } = require('./messages.js');
const { OpenTraces } = require('./open-traces.js');

/** @import { Entry, Reader } from './reader.js' */

/** Types of events without a message; there are more, which are recognised by their session. */
const OTHER_TYPES = new Set(['summary', 'file-history-snapshot', 'queue-operation']);

/** How many events are remembered of all open traces, to tell those that come again and the chains that they are of. */
const MAX_EVENTS = 1_000_000;

/** How results begin that say that the user has stopped the tool. */
const INTERRUPTED = /^(?:\[Request interrupted by user|The user doesn't want to (?:proceed with|take) this)/;

/** How turns of a user begin that are for the program. A command that becomes a prompt begins with its message, not with its name. */
const OF_PROGRAM = /^<(?:command-name>\/|local-command-)/;

/** How turns of a user begin that are the commands of a shell, or what it has printed. */
const OF_SHELL = /^<bash-(?:input|stdout|stderr)>/;

/** @param {Record<string, unknown>} event */
const sessionOf = (event) => stringOf(event.sessionId) ?? stringOf(event.session_id);

/** @param {unknown} value */
function recognises(value) {
  if (!isObject(value) || typeof value.type !== 'string' || 'role' in value) return false;
  if (sessionOf(value) !== undefined) return true;
  return OTHER_TYPES.has(value.type) && ('leafUuid' in value || 'messageId' in value || 'operation' in value);
}

/** @returns {Reader} */
function createReader() {
  /** @type {InstanceType<typeof OpenTraces<InstanceType<typeof TraceBuilder>>>} */
  const open = new OpenTraces();
  /**
   * By the id of an event, the trace that it is of.
   *
   * @type {Map<string, string>}
   */
  const events = new Map();
  return {
    read(entry) {
      const event = objectOf(entry.value);
      if (!recognises(event)) throw new TypeError('it is no event of a session');
      const session = sessionOf(event);
      if (session === undefined) return [];
      const id = stringOf(event.uuid);
      const known = id === undefined ? undefined : events.get(id);
      const key = known ?? keyOf(event, session, events);
      if (id !== undefined && known === undefined) {
        if (events.size >= MAX_EVENTS) events.clear();
        events.set(id, key);
      }
      const builder = open.add(key, entry.size, () => begin(entry, event, session, key));
      builder.size += entry.size;
      if (known === undefined) addEvent(builder, event);
      else builder.leaveOut('repeated event');
      return open.overflow();
    },
    *end() {
      yield* open.takeAll();
    },
  };
}

/**
 * What the events of a trace have in common.
 *
 * @param {Record<string, unknown>} event
 * @param {string} session
 * @param {ReadonlyMap<string, string>} events
 */
function keyOf(event, session, events) {
  const task = stringOf(event.parent_tool_use_id);
  if (event.isSidechain !== true) return task === undefined ? session : `${session} ${task}`;
  const agent = stringOf(event.agentId);
  if (agent !== undefined) return `${session} ${agent}`;
  const parent = events.get(stringOf(event.parentUuid) ?? '');
  // The first of a chain has no parent, or one of the session itself.
  return parent === undefined || parent === session ? `${session} ${event.uuid ?? 'sidechain'}` : parent;
}

/**
 * @param {Entry} entry
 * @param {Record<string, unknown>} event
 * @param {string} session
 * @param {string} key
 */
function begin(entry, event, session, key) {
  const builder = new TraceBuilder('claude-code', entry);
  builder.ids = [key];
  builder.framework = 'claude-code';
  builder.domain = 'code';
  builder.agentId = stringOf(event.agentId);
  builder.keep('session_id', session);
  if (key !== session) builder.keep('is_subagent', true);
  // Until a message was read.
  builder.isConversation = false;
  return builder;
}

/**
 * @param {InstanceType<typeof TraceBuilder>} builder
 * @param {Record<string, unknown>} event
 */
function addEvent(builder, event) {
  const { type, message } = event;
  const { details } = builder;
  if (details.version === undefined) builder.keep('version', event.version);
  if (details.cwd === undefined) builder.keep('cwd', event.cwd);
  if (details.gitBranch === undefined) builder.keep('gitBranch', event.gitBranch);
  if (type === 'result') {
    // A run that had no turns left says so there alone in some versions.
    const isError = event.is_error === true || stringOf(event.subtype)?.startsWith('error') === true;
    if (isError || event.is_error === false) builder.success = !isError;
    builder.isConversation = true;
    builder.leaveOut('event result');
    for (const name of ['num_turns', 'total_cost_usd', 'duration_ms', 'subtype'])
      builder.keep(name, event[name]);
    return;
  }
  if ((type !== 'user' && type !== 'assistant') || !isObject(message))
    return builder.leaveOut(`event ${type}`);
  builder.at(event.timestamp);
  if (event.isCompactSummary === true) return builder.leaveOut('summary of a compaction');
  if (event.isMeta === true) return builder.leaveOut('meta message');
  if (event.isApiErrorMessage === true) return builder.leaveOut('error of the API');
  if (details.model === undefined) builder.keep('model', stringOf(message.model));
  const text = type === 'user' ? firstTextOf(message.content) : undefined;
  if (text !== undefined && OF_PROGRAM.test(text)) return builder.leaveOut('command of the program');
  if (text !== undefined && OF_SHELL.test(text)) return builder.event(message.content);
  const role = stringOf(message.role) ?? type;
  addMessage(builder, {
    role,
    content: type === 'user' ? withoutFailure(message.content, event) : message.content,
  });
  builder.isConversation = true;
}

/**
 * The content of a message in which tools that the user has stopped did not fail.
 *
 * @param {unknown} content
 * @param {Record<string, unknown>} event
 */
function withoutFailure(content, event) {
  if (!Array.isArray(content)) return content;
  const isInterrupted = objectOf(event.toolUseResult).interrupted === true;
  return content.map((part) => {
    const { type, content: result } = objectOf(part);
    if (type !== 'tool_result') return part;
    const isStopped = isInterrupted || INTERRUPTED.test(firstTextOf(result) ?? '');
    return isStopped ? { ...objectOf(part), is_error: false } : part;
  });
}

/**
 * A text, or that of the first part; undefined without one.
 *
 * @param {unknown} content
 */
function firstTextOf(content) {
  return typeof content === 'string' ? content : stringOf(objectOf(listOf(content)[0]).text);
}

module.exports = { createReader, name: /** @type {const} */ ('claude-code'), recognises };

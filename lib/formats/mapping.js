'use strict';

// How what an agent did becomes the steps of a trace: the rules that all formats share, written once. A reader only says what it
// has found, in order: a user's turn, a thought, a call, a result.
//
// | found                                               | becomes                                                              |
// | --------------------------------------------------- | -------------------------------------------------------------------- |
// | the first message of a user that has text           | `task.objective`                                                     |
// | every later one                                     | `observation`                                                        |
// | reasoning, or a message of the agent                | `thought`, one for each                                              |
// | a call of a tool                                    | `tool_call`: `tool.name`, the arguments in `input`, and in `content` |
// | its result                                          | `observation`                                                        |
// | a result that says that the call failed             | `error_recovery`                                                     |
// | the next call of the same tool whose result does not | `error_recovery`, with its `tool`, `input` and `content`            |
// | the last message of the agent                       | `outcome.result_summary`                                             |
// | system prompts, images, empty messages              | no step; counted in `metadata.imported.left_out`                     |

const { createHash } = require('node:crypto');

/** @import { FormatName, ImportedTrace, Known } from '../../formats.js' */

/**
 * What is found of a call.
 *
 * @typedef {object} Call
 * @property {unknown} [id] that its result refers to
 * @property {unknown} name of the tool
 * @property {unknown} args an object, or JSON of one
 * @property {string} [server] of the Model Context Protocol
 */

/**
 * What is found of a result.
 *
 * @typedef {object} Result
 * @property {unknown} [id] of its call; without one it belongs to the first call that has no result yet
 * @property {unknown} content text, parts of a message, or any other JSON
 * @property {boolean} [failed] what the format says of it; undefined if it says nothing, and the text decides
 */

/** @typedef {import('../../index.js').ReasoningTraceStep} Step */

/**
 * Where a trace begins, and how much of it is wanted.
 *
 * @typedef {object} Place
 * @property {number | null} line in the input, from 1
 * @property {number | null} index in the array that it is an element of, from 0
 * @property {boolean} [isOutline] whether an outline is enough
 */

/**
 * The outcome of a trace where neither the trace nor the caller states one: no success, because none was seen, and a confidence of a half.
 */
const DEFAULT_OUTCOME = { success: false, confidence: 0.5 };

/** How many names of unknown fields are told apart: files decide which names there are. */
const MAX_COUNTED = 50;

/** How many of the things that were left out are named in an error. */
const MAX_NAMED = 3;

/** A name of a field that is longer is cut. */
const NAME_LENGTH = 100;

/**
 * How a result begins that says that its call failed, where its format says nothing of it: the words of shells, of Python and
 * JavaScript, and of the tools of benchmarks, such as mini-SWE-agent. Only the first `FAILURE_LENGTH` characters are looked at, because a result may be
 * megabytes long.
 */
const FAILURE =
  /^\s{0,64}(?:error\b|traceback \(most recent call last\)|(?:[\w.]{1,100})?(?:error|exception):|<exception>|<returncode>(?!0<))/i;
const FAILURE_LENGTH = 256;

/** A result that is JSON is searched for a failure if it has at most this many characters. */
const JSON_LENGTH = 64 * 1024;

/**
 * Whether a result says itself that its call failed.
 *
 * @param {string} text
 */
function saysFailure(text) {
  if (FAILURE.test(text.slice(0, FAILURE_LENGTH))) return true;
  if (text[0] !== '{' || text.length > JSON_LENGTH) return false;
  // Most results have no such field, and searching for its name costs less than parsing.
  if (!/"(?:error|isError|is_error|exit_code|exitCode|returncode|exception_info)"/.test(text)) return false;
  try {
    const { error, isError, is_error, exit_code, exitCode, returncode, exception_info } = JSON.parse(text);
    const isFailed = isError === true || is_error === true || Boolean(error) || Boolean(exception_info);
    return isFailed || [exit_code, exitCode, returncode].some((code) => numericOf(code) ?? 0);
  } catch {
    return false;
  }
}

/**
 * @param {unknown} value
 * @returns {value is Record<string, unknown>}
 */
const isObject = (value) => value !== null && typeof value === 'object' && !Array.isArray(value);

/**
 * The value if it is an object, otherwise an empty object.
 *
 * @param {unknown} value
 * @returns {Record<string, unknown>}
 */
const objectOf = (value) => (isObject(value) ? value : {});

/**
 * The value if it is a list, otherwise an empty list.
 *
 * @param {unknown} value
 * @returns {unknown[]}
 */
const listOf = (value) => (Array.isArray(value) ? value : []);

/**
 * A string with something in it, or undefined.
 *
 * @param {unknown} value
 */
const stringOf = (value) => (typeof value === 'string' && value !== '' ? value : undefined);

/**
 * A finite number, or undefined.
 *
 * @param {unknown} value
 */
const numberOf = (value) => (typeof value === 'number' && Number.isFinite(value) ? value : undefined);

/**
 * A finite number, which may be written as text; otherwise undefined.
 *
 * @param {unknown} value
 */
const numericOf = (value) =>
  numberOf(typeof value === 'string' && value.trim() !== '' ? Number(value) : value);

/** Words for yes and no. */
const WORDS = new Map([
  ['true', true],
  ['yes', true],
  ['false', false],
  ['no', false],
]);

/**
 * A yes or no, which may be written as a number or as text; otherwise undefined.
 *
 * @param {unknown} value
 */
function truthOf(value) {
  if (typeof value === 'boolean') return value;
  const number = numericOf(value);
  if (number === 0 || number === 1) return number === 1;
  return typeof value === 'string' ? WORDS.get(value.trim().toLowerCase()) : undefined;
}

/**
 * The arguments of a call as an object. Text that is not JSON is kept as it is: a model may have written it wrongly.
 *
 * @param {unknown} args
 * @returns {Record<string, unknown>}
 */
function inputOf(args) {
  if (isObject(args)) return args;
  if (args === undefined || args === null || args === '') return {};
  if (typeof args !== 'string') return { arguments: args };
  if (args.trimStart().startsWith('{')) {
    try {
      return objectOf(JSON.parse(args));
    } catch {
      // Kept as text.
    }
  }
  return { arguments: args };
}

/**
 * A call as text, which is what novelty compares: the tool, then a line for each argument, `name: value`. Strings stay as they
 * are, everything else is JSON.
 *
 * @param {string} name
 * @param {Record<string, unknown>} input
 */
function renderCall(name, input) {
  let text = name;
  for (const key of Object.keys(input)) {
    const value = input[key];
    text += `\n${key}: ${typeof value === 'string' ? value : JSON.stringify(value)}`;
  }
  return text;
}

/** How agents call the tools of a server: by its name and theirs. */
const MCP_TOOL = /^mcp__(.+?)__./;

/** @param {string} tool */
const serverOf = (tool) => (tool.startsWith('mcp__') ? MCP_TOOL.exec(tool)?.[1] : undefined);

/** The fields in which a part has its text, whatever its type. */
const TEXT_FIELDS = ['text', 'content', 'refusal'];

/**
 * Puts a trace together, or its outline: all but the contents and inputs of its steps and its summary, which are let go of as soon
 * as the rules have looked at them. That is enough to score it where nothing is compared.
 */
class TraceBuilder {
  #format;
  #isOutline;
  /** @type {Step[]} */
  #steps = [];
  /** @type {string | undefined} */
  #objective;
  /** @type {string | undefined} */
  #objectiveBefore;
  #summary = '';
  /** @type {Map<string, number>} */
  #leftOut = new Map();
  /**
   * By the id of a call, its steps, several where ids are used again, and how many of them have their results.
   *
   * @type {Map<string, { steps: number[], answered: number }>}
   */
  #calls = new Map();
  #callCount = 0;
  /** The steps of calls that have a result. @type {Set<number>} */
  #answered = new Set();
  #firstUnanswered = 0;
  /** By the name of a tool, the number of steps there were when a call of it had failed. */
  /** @type {Map<string, number>} */
  #failed = new Map();

  /** Where it begins in the input. */
  line;
  index;
  /** Of the input that it was read from, in bytes. */
  size = 0;
  /**
   * What the format calls it, from the most particular to the most general; its id is made of these.
   *
   * @type {string[]}
   */
  ids = [];
  /**
   * What is kept in `metadata.imported`.
   *
   * @type {Record<string, unknown>}
   */
  details = {};
  /** @type {string | undefined} */
  createdAt;
  /** @type {string | undefined} */
  framework;
  /** @type {string | undefined} */
  agentId;
  domain = 'default';
  /** @type {boolean | undefined} */
  success;
  /** @type {number | undefined} */
  confidence;
  /** Whether it is part of a conversation at all. Spans of other programs are not, nor are sessions of commands alone. */
  isConversation = true;

  /**
   * @param {FormatName} format
   * @param {Place} place
   */
  constructor(format, { line, index, isOutline = false }) {
    this.#format = format;
    this.#isOutline = isOutline;
    this.line = line;
    this.index = index;
  }

  /** Whether nothing was found that belongs to a trace. */
  get isEmpty() {
    return this.#objective === undefined && this.#steps.length === 0;
  }

  /**
   * What is wrong with it if it is empty. It names what was left out, the most frequent first; not the unknown fields, which may be many.
   */
  get emptyReason() {
    const counts = [...this.#leftOut].filter(([name]) => !name.startsWith('field '));
    counts.sort(([, a], [, b]) => b - a);
    const named = counts.slice(0, MAX_NAMED).map(([name, times]) => `${name} (${times})`);
    const leftOut = named.length > 0 ? `; left out: ${named.join(', ')}` : '';
    return `${this.#format} without a turn of a user or a step${leftOut}`;
  }

  /**
   * Counts something that becomes no step.
   *
   * @param {string} what
   * @param {number} [times]
   */
  leaveOut(what, times = 1) {
    let name = what.length > NAME_LENGTH ? `${what.slice(0, NAME_LENGTH)}…` : what;
    if (!this.#leftOut.has(name) && this.#leftOut.size >= MAX_COUNTED) name = 'others';
    this.#leftOut.set(name, (this.#leftOut.get(name) ?? 0) + times);
  }

  /**
   * Counts the fields of an object that its format does not have, or that are newer than this reader.
   *
   * @param {Record<string, unknown>} object
   * @param {ReadonlySet<string>} known
   */
  countUnknown(object, known) {
    // Makes no list of the names, of which nearly all are known: it is done for every message.
    for (const name in object) {
      if (!known.has(name) && Object.hasOwn(object, name)) this.leaveOut(`field ${name}`);
    }
  }

  /**
   * Keeps a value in `metadata.imported`, if there is one.
   *
   * @param {string} name
   * @param {unknown} value
   */
  keep(name, value) {
    if (value !== undefined && value !== null) this.details[name] = value;
  }

  /**
   * The time of something that was found, in ISO 8601; the first one is that of the trace.
   *
   * @param {unknown} time
   */
  at(time) {
    if (this.createdAt !== undefined || typeof time !== 'string' || time.length > 64) return;
    const date = new Date(time);
    if (!Number.isNaN(date.getTime())) this.createdAt = date.toISOString();
  }

  /**
   * The text of a message or a result: a string, or parts with text. A part without text is counted and named by its type in
   * brackets, so that a step that has nothing else is not lost.
   *
   * @param {unknown} content
   * @returns {string}
   */
  textOf(content) {
    if (typeof content === 'string') return content;
    if (content === undefined || content === null) return '';
    if (!Array.isArray(content)) {
      const text = textOfPart(content);
      return text ?? JSON.stringify(content);
    }
    return content
      .map((part) => {
        const text = textOfPart(part);
        if (text !== undefined) return text;
        const type = stringOf(objectOf(part).type);
        if (type === undefined) return JSON.stringify(part);
        this.leaveOut(`${type} part`);
        return `[${type.slice(0, NAME_LENGTH)}]`;
      })
      .filter((text) => text !== '')
      .join('\n');
  }

  /**
   * A system prompt, which is not what the agent did.
   *
   * @param {unknown} _content
   */
  system(_content) {
    this.leaveOut('system message');
  }

  /**
   * A turn of a user.
   *
   * @param {unknown} content
   */
  user(content) {
    const text = this.textOf(content);
    if (isBlank(text)) this.leaveOut('empty message');
    else if (this.#objective === undefined) this.#objective = text;
    else this.#add('observation', text);
  }

  /**
   * A turn of a user in a trace that this one goes on with: the objective, where none of its own turns is.
   *
   * @param {unknown} content
   */
  userBefore(content) {
    const text = this.textOf(content);
    if (!isBlank(text)) this.#objectiveBefore ??= text;
  }

  /**
   * What the environment says without having been called.
   *
   * @param {unknown} content
   */
  event(content) {
    const text = this.textOf(content);
    if (isBlank(text)) this.leaveOut('empty message');
    else this.#add('observation', text);
  }

  /**
   * What the agent thinks.
   *
   * @param {unknown} content
   */
  reasoning(content) {
    const text = this.textOf(content);
    if (isBlank(text)) this.leaveOut('empty reasoning');
    else this.#add('thought', text);
  }

  /**
   * What the agent says.
   *
   * @param {unknown} content
   */
  message(content) {
    const text = this.textOf(content);
    // Most messages that call tools have no text, which is not worth counting.
    if (isBlank(text)) return;
    if (!this.#isOutline) this.#summary = text;
    this.#add('thought', text);
  }

  /**
   * A call of a tool.
   *
   * @param {Call} call
   */
  call({ id, name, args, server }) {
    const tool = stringOf(name) ?? 'unknown';
    const mcp_server = serverOf(tool) ?? server;
    const input = inputOf(args);
    const key = keyOf(id);
    const at = this.#add('tool_call', renderCall(tool, input), {
      tool: mcp_server === undefined ? { name: tool } : { name: tool, mcp_server },
      input,
    });
    this.#callCount++;
    const calls = this.#calls.get(key);
    if (calls) calls.steps.push(at);
    else this.#calls.set(key, { steps: [at], answered: 0 });
  }

  /**
   * The result of a call.
   *
   * @param {Result} result
   */
  result({ id, content, failed }) {
    const text = this.textOf(content);
    const isFailed = failed ?? saysFailure(text);
    const at = this.#callOf(keyOf(id));
    const call = at === undefined ? undefined : this.#steps[at];
    this.#add(isFailed ? 'error_recovery' : 'observation', text);
    if (at === undefined || call === undefined) return;
    this.#answered.add(at);
    const name = call.tool?.name ?? '';
    if (isFailed) {
      if (!this.#failed.has(name)) this.#failed.set(name, this.#steps.length);
      return;
    }
    const failedAt = this.#failed.get(name);
    // A call that was made before the other one had failed repairs nothing.
    if (failedAt === undefined || at < failedAt) return;
    call.type = 'error_recovery';
    this.#failed.delete(name);
  }

  /**
   * How long the last call with this id took.
   *
   * @param {unknown} id
   * @param {number} milliseconds
   */
  took(id, milliseconds) {
    const at = this.#calls.get(keyOf(id))?.steps.at(-1);
    if (at !== undefined && milliseconds >= 0) this.#steps[at].latency_ms = milliseconds;
  }

  /**
   * The step of the call that a result belongs to.
   *
   * @param {string} key
   */
  #callOf(key) {
    if (key !== '') {
      const calls = this.#calls.get(key);
      return calls?.steps[calls.answered++];
    }
    while (this.#firstUnanswered < this.#steps.length) {
      const at = this.#firstUnanswered;
      if (this.#steps[at].tool !== undefined && !this.#answered.has(at)) return at;
      this.#firstUnanswered++;
    }
    return undefined;
  }

  /**
   * Adds a step; returns its place.
   *
   * @param {Step['type']} type
   * @param {string} content
   * @param {{ tool: NonNullable<Step['tool']>, input: Record<string, unknown> }} [call]
   */
  #add(type, content, call) {
    const step_id = this.#steps.length;
    // What the format gives no name gets one that is made of the contents.
    const isWhole = !this.#isOutline || this.ids.length === 0;
    /** @type {Step} */
    const step = isWhole ? { step_id, type, content } : { step_id, type };
    if (call !== undefined) step.tool = call.tool;
    if (call !== undefined && isWhole) step.input = call.input;
    this.#steps.push(step);
    return step_id;
  }

  /**
   * What a verifier says of the outcome: a reward above 0 is a success, as Harbor counts them, and the confidence is the reward,
   * kept within 0 and 1, because it says how far the result is right.
   *
   * @param {unknown} reward
   */
  reward(reward) {
    const value =
      typeof reward === 'boolean' ? Number(reward) : this.#readable('reward', reward, numericOf(reward));
    if (value === undefined) return;
    this.success = value > 0;
    this.confidence = Math.min(1, Math.max(0, value));
    this.details.reward = value;
  }

  /**
   * What a format says of the success and of the confidence.
   *
   * @param {{ success?: unknown, confidence?: unknown }} outcome
   */
  outcome({ success, confidence }) {
    this.success = this.#readable('success', success, truthOf(success)) ?? this.success;
    const number = numericOf(confidence);
    const isInRange = number !== undefined && number >= 0 && number <= 1;
    this.confidence =
      this.#readable('confidence', confidence, isInRange ? number : undefined) ?? this.confidence;
  }

  /**
   * What was read of a field; it is counted if there is something else in it.
   *
   * @template Read
   * @param {string} name
   * @param {unknown} value of the field
   * @param {Read | undefined} read
   */
  #readable(name, value, read) {
    if (read === undefined && value !== undefined && value !== null) this.leaveOut(`unreadable ${name}`);
    return read;
  }

  /**
   * The trace.
   *
   * @param {{ success?: boolean, confidence?: number, domain?: string }} given what the caller says; it goes before the format
   * @returns {{ trace: ImportedTrace, known: Known }}
   */
  finish(given) {
    const success = given.success ?? this.success;
    const confidence = given.confidence ?? this.confidence;
    const known = { success: success !== undefined, confidence: confidence !== undefined };
    const unanswered = this.#callCount - this.#answered.size;
    if (unanswered > 0) this.leaveOut('call without a result', unanswered);
    const objective = this.#objective ?? this.#objectiveBefore ?? '';
    const imported = { format: this.#format, known, ...this.details };
    if (this.#leftOut.size > 0) Object.assign(imported, { left_out: Object.fromEntries(this.#leftOut) });
    /** @type {ImportedTrace} */
    const trace = {
      '@context': 'https://openknowledgepulse.org/schema/v1',
      '@type': 'ReasoningTrace',
      id: `kp:trace:${this.#uuid(objective)}`,
      metadata: {
        created_at: this.createdAt ?? new Date().toISOString(),
        ...(this.agentId === undefined ? {} : { agent_id: this.agentId }),
        ...(this.framework === undefined ? {} : { framework: this.framework }),
        task_domain: given.domain ?? this.domain,
        success: success ?? DEFAULT_OUTCOME.success,
        quality_score: 0,
        visibility: 'private',
        privacy_level: 'aggregated',
        imported,
      },
      task: { objective },
      steps: this.#steps,
      outcome: {
        result_summary: this.#summary,
        confidence: confidence ?? DEFAULT_OUTCOME.confidence,
      },
    };
    return { trace, known };
  }

  /**
   * The same for the same trace, so that reading it again is recognised: made of what the format calls it, or else of all it has.
   *
   * @param {string} objective
   */
  #uuid(objective) {
    let text = '';
    for (const part of [this.#format, ...this.ids, String(this.#steps.length), objective]) {
      text += `${part.length}:${part}`;
    }
    if (this.ids.length === 0) {
      for (const { content = '' } of this.#steps) text += `${content.length}:${content}`;
    }
    // At once: each call of the hash costs as much as some kilobytes.
    const hex = createHash('sha256').update(text).digest('hex');
    // Version 8 of RFC 9562: made in a way of our own.
    const variant = '89ab'[Number.parseInt(hex[16], 16) & 3];
    return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
  }
}

/** @param {string} text */
const isBlank = (text) => !/\S/.test(text);

/** @param {unknown} id */
const keyOf = (id) => (typeof id === 'string' || typeof id === 'number' ? String(id) : '');

/**
 * The text of a part of a message; undefined if it holds none.
 *
 * @param {unknown} part
 */
function textOfPart(part) {
  if (typeof part === 'string') return part;
  const fields = objectOf(part);
  for (const name of TEXT_FIELDS) {
    if (typeof fields[name] === 'string') return /** @type {string} */ (fields[name]);
  }
  return undefined;
}

module.exports = {
  DEFAULT_OUTCOME,
  inputOf,
  isObject,
  listOf,
  numberOf,
  numericOf,
  objectOf,
  stringOf,
  textOfPart,
  truthOf,
  TraceBuilder,
};

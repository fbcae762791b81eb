'use strict';

// Spans of OpenTelemetry in OTLP JSON, as the Collector's file exporter and Grafana Tempo write them, with the attributes of the GenAI
// conventions
// (https://opentelemetry.io/docs/specs/semconv/gen-ai/) or of OpenInference (https://arize-ai.github.io/openinference/spec/).
//
// | spans                                                         | trace                                                       |
// | ------------------------------------------------------------- | ----------------------------------------------------------- |
// | all with one `traceId`, by their start                        | a trace                                                     |
// | `gen_ai.input.messages`, `gen_ai.output.messages`             | messages, as in `openai-chat`                               |
// | `llm.input_messages.N.message.…`, `llm.output_messages.N.…`   | messages                                                    |
// | `gen_ai.prompt.N.…`, `gen_ai.completion.N.…`                  | messages, of older instrumentations                         |
// | events `gen_ai.user.message`, `gen_ai.choice`, …              | messages, of older instrumentations                         |
// | a message that an earlier span of the trace had too           | none: every call of a model repeats what was before         |
// | `gen_ai.operation.name` `execute_tool`, or kind `TOOL`        | a call and its result, where the messages do not have them  |
// | such a span without the name of its tool, beside messages     | none; counted: a handoff, which the messages call by a name |
// | `status` of such a span                                       | whether the call failed                                     |
// | duration of such a span                                       | `latency_ms` of the call                                    |
// | `input.value`, `output.value` of the first span, without messages | `task.objective`, and a message of the agent            |
// | `status` of the span that has no parent: ok, or error         | success                                                     |
// | `gen_ai.agent.name`, `service.name`, `gen_ai.request.model`   | `metadata.agent_id`, `framework`, `imported.model`          |
// | spans of anything else                                        | none; counted                                               |

const { isObject, listOf, objectOf, stringOf, TraceBuilder } = require('./mapping.js');
const { addMessage, isMessage } = require('./messages.js');
const { OpenTraces } = require('./open-traces.js');

/** @import { Entry, Reader } from './reader.js' */

/** @typedef {Map<string, unknown>} Attributes */

/**
 * What is kept of a span until its trace is complete.
 *
 * @typedef {object} Span
 * @property {bigint} start in nanoseconds
 * @property {bigint} end
 * @property {boolean} isRoot
 * @property {boolean} isOfAgent whether it is of an agent or a model by its attributes, not of any other program
 * @property {number} status 0 unset, 1 ok, 2 error
 * @property {string} statusMessage
 * @property {Attributes} attributes those that are looked at
 * @property {unknown[]} messages that the model was given and returned, in order
 */

/**
 * Messages that a model was given, and the JSON that they were read from.
 *
 * @typedef {{ json: string, messages: readonly unknown[] }} MessageList
 */

/** Attributes by the beginnings of their names; the others are not kept. */
const LOOKED_AT =
  /^(?:gen_ai\.|llm\.|tool\.|tool_call\.|openinference\.|input\.value$|output\.value$|session\.id$)/;

/** Attributes that are not kept, because their messages were read already. */
const NOT_KEPT = /messages|\.(?:prompt|completion)\./;

/** Attributes of agents and models, by the beginnings of their names. */
const OF_AGENTS =
  /^(?:gen_ai|llm|ai|openinference|traceloop|langfuse|langsmith|mlflow)\.|^(?:input|output)\.value$/;

/** What a model was given. */
const INPUT = 'gen_ai.input.messages';

const MAX_DEPTH = 64;

const STATUS = { ok: 1, error: 2 };

/**
 * The spans of all resources in a record: of OTLP, of Grafana Tempo (`batches`, or a `trace` in version 2 of its API), of Jaeger's
 * API (`result`), or in `data`.
 *
 * @param {unknown} value
 * @returns {unknown[] | undefined}
 */
function resourcesOf(value) {
  if (!isObject(value)) return undefined;
  for (const { resourceSpans, batches } of [value, value.trace, value.result, value.data].map(objectOf)) {
    if (Array.isArray(resourceSpans)) return resourceSpans;
    if (listOf(batches).some((batch) => scopesOf(objectOf(batch)) !== undefined)) return listOf(batches);
  }
  return undefined;
}

/**
 * The spans of a resource by their instrumentations, which were called libraries once.
 *
 * @param {Record<string, unknown>} resource
 */
const scopesOf = ({ scopeSpans, instrumentationLibrarySpans }) => scopeSpans ?? instrumentationLibrarySpans;

/** @param {unknown} value */
const recognises = (value) => resourcesOf(value) !== undefined;

/** A trace whose spans are still coming. */
class OpenTrace {
  /** @type {Span[]} */
  spans = [];
  /** What the model was given in the span that came last, if it was JSON. @type {MessageList | undefined} */
  input;
  framework = '';
  size = 0;

  /**
   * @param {string} id
   * @param {Entry} place of the record that it begins in, whose value is not kept
   */
  constructor(id, { line, index, isOutline }) {
    this.id = id;
    this.place = { line, index, isOutline };
  }
}

/** @returns {Reader} */
function createReader() {
  /** @type {InstanceType<typeof OpenTraces<OpenTrace>>} */
  const open = new OpenTraces();
  return {
    *read(entry) {
      const resources = resourcesOf(entry.value);
      if (resources === undefined) throw new TypeError('it has no resourceSpans and no batches');
      const found = [...spansOf(resources)];
      // Of each span its share.
      const size = Math.ceil(entry.size / Math.max(1, found.length));
      /** What was wrong first; the other spans are read. */
      /** @type {{ error: unknown } | undefined} */
      let failure;
      for (const { span, service } of found) {
        try {
          const id = traceIdOf(span.traceId);
          if (id === undefined) throw new TypeError('a span has no traceId');
          const { input, ...kept } = read(span, open.get(id)?.input);
          const trace = open.add(id, size, () => new OpenTrace(id, entry));
          trace.size += size;
          trace.framework ||= service;
          trace.input = input ?? trace.input;
          trace.spans.push(kept);
        } catch (error) {
          failure ??= { error };
        }
      }
      for (const trace of open.overflow()) yield assembled(trace);
      if (failure !== undefined) throw failure.error;
    },
    *end() {
      for (const trace of open.takeAll()) yield assembled(trace);
    },
  };
}

/** @param {unknown[]} resources */
function* spansOf(resources) {
  for (const batch of resources.map(objectOf)) {
    const service = attributesOf(objectOf(batch.resource).attributes).get('service.name');
    for (const { spans } of listOf(scopesOf(batch)).map(objectOf)) {
      for (const span of listOf(spans).map(objectOf)) yield { span, service: stringOf(service) ?? '' };
    }
  }
}

/** An id of 16 bytes in base64, as Tempo writes it. */
const BASE64_ID = /^[A-Za-z0-9+/]{22}==$/;

/**
 * The id of a trace, in the hexadecimal digits of OTLP JSON where it has the length of one.
 *
 * @param {unknown} id
 */
function traceIdOf(id) {
  const text = stringOf(id);
  if (text !== undefined && BASE64_ID.test(text)) return Buffer.from(text, 'base64').toString('hex');
  return text?.length === 32 ? text.toLowerCase() : text;
}

/**
 * @param {Record<string, unknown>} span
 * @param {MessageList | undefined} before what the model was given in an earlier span of the trace
 * @returns {Span & { input?: MessageList }}
 */
function read(span, before) {
  const all = attributesOf(span.attributes);
  const input = listIn(all.get(INPUT), before);
  if (input !== undefined) all.set(INPUT, input.messages);
  const messages = messagesOf(all);
  for (const event of listOf(span.events)) messages.push(...messagesOfEvent(objectOf(event)));
  /** @type {Attributes} */
  const attributes = new Map();
  for (const [name, value] of all) {
    if (LOOKED_AT.test(name) && !NOT_KEPT.test(name)) attributes.set(name, value);
  }
  const { code, message } = objectOf(span.status);
  return {
    start: timeOf(span.startTimeUnixNano),
    end: timeOf(span.endTimeUnixNano),
    isRoot: stringOf(span.parentSpanId) === undefined,
    isOfAgent: [...all.keys()].some((name) => OF_AGENTS.test(name)),
    status:
      code === STATUS.error || code === 'STATUS_CODE_ERROR'
        ? STATUS.error
        : code === STATUS.ok || code === 'STATUS_CODE_OK'
          ? STATUS.ok
          : 0,
    statusMessage: stringOf(message) ?? '',
    attributes,
    messages,
    input,
  };
}

/**
 * The list that is written in JSON. A model is mostly given again what it was given before, and more: then only what was added is
 * parsed, and the rest are the same objects. So a run of many calls takes no more time and memory than what is said in it.
 *
 * @param {unknown} json
 * @param {MessageList | undefined} before
 * @returns {MessageList | undefined} undefined if it is something else
 */
function listIn(json, before) {
  if (typeof json !== 'string') return undefined;
  if (before !== undefined && before.messages.length > 0 && before.json.endsWith(']')) {
    const end = before.json.length - 1;
    if (json.startsWith(before.json.slice(0, end)) && (json[end] === ',' || json === before.json)) {
      if (json === before.json) return before;
      const added = parsed(`[${json.slice(end + 1)}`);
      if (Array.isArray(added) && added.length > 0) return { json, messages: [...before.messages, ...added] };
    }
  }
  const messages = parsed(json);
  return Array.isArray(messages) ? { json, messages } : undefined;
}

/** How many digits a time can have, in 64 bits: reading a number of millions of digits takes seconds. */
const TIME_LENGTH = 20;

/** @param {unknown} time */
function timeOf(time) {
  if (typeof time === 'string' && time.length > TIME_LENGTH) return 0n;
  try {
    return BigInt(/** @type {string} */ (time));
  } catch {
    return 0n;
  }
}

/** @param {unknown} list */
function attributesOf(list) {
  /** @type {Attributes} */
  const attributes = new Map();
  for (const { key, value } of listOf(list).map(objectOf)) {
    if (typeof key === 'string') attributes.set(key, unwrap(value, 0));
  }
  return attributes;
}

/**
 * The value of an attribute, which OTLP wraps by its type.
 *
 * @param {unknown} wrapped
 * @param {number} depth
 * @returns {unknown}
 */
function unwrap(wrapped, depth) {
  if (depth > MAX_DEPTH) throw new RangeError('nested too deeply');
  const value = objectOf(wrapped);
  if ('stringValue' in value) return value.stringValue;
  if ('boolValue' in value) return value.boolValue;
  if ('intValue' in value) return Number(value.intValue);
  if ('doubleValue' in value) return Number(value.doubleValue);
  if ('arrayValue' in value)
    return listOf(objectOf(value.arrayValue).values).map((each) => unwrap(each, depth + 1));
  if (!('kvlistValue' in value)) return undefined;
  const members = listOf(objectOf(value.kvlistValue).values).map(objectOf);
  return Object.fromEntries(members.map(({ key, value: inner }) => [String(key), unwrap(inner, depth + 1)]));
}

/**
 * What the model was given, and what it returned.
 *
 * @param {Attributes} attributes
 */
function messagesOf(attributes) {
  const messages = [INPUT, 'gen_ai.output.messages'].flatMap((name) => listOf(parsed(attributes.get(name))));
  if (messages.length > 0) return messages;
  const flat = ['llm.input_messages', 'llm.output_messages', 'gen_ai.prompt', 'gen_ai.completion'];
  return flat.flatMap((prefix) => unflatten(attributes, prefix).map(messageOf));
}

/**
 * A list whose members are attributes, as `PREFIX.0.message.role`.
 *
 * @param {Attributes} attributes
 * @param {string} prefix
 */
function unflatten(attributes, prefix) {
  /** @type {Map<string, Record<string, unknown>>} */
  const list = new Map();
  for (const [name, value] of attributes) {
    if (!name.startsWith(`${prefix}.`)) continue;
    const [index, ...path] = name.slice(prefix.length + 1).split('.');
    if (!/^\d{1,9}$/.test(index) || path.length === 0) continue;
    const member = list.get(index) ?? Object.create(null);
    member[path.join('.')] = value;
    list.set(index, member);
  }
  return [...list].sort(([a], [b]) => Number(a) - Number(b)).map(([, member]) => member);
}

/**
 * A message of the flattened kinds as one of a chat.
 *
 * @param {Record<string, unknown>} member
 */
function messageOf(member) {
  /** @type {Attributes} */
  const fields = new Map(
    Object.entries(member).map(([name, value]) => [name.replace(/^message\./, ''), value]),
  );
  const calls = unflatten(fields, 'tool_calls').map(callOf);
  const ids = new Set(calls.map(({ id }) => id));
  /** @type {Array<{ type: unknown, text: unknown }>} */
  const parts = [];
  for (const part of unflatten(fields, 'contents')) {
    const type = part['message_content.type'] ?? 'text';
    if (type !== 'tool_use') parts.push({ type, text: part['message_content.text'] });
    // OpenInference has a call of Anthropic's API in both places.
    else if (!ids.has(part['tool_call.id'])) calls.push(callOf(part));
  }
  // A message has its only text in either way, and once more in the other when it is given again.
  const text = parts.length === 1 && parts[0].type === 'text' ? parts[0].text : undefined;
  return {
    role: fields.get('role') ?? 'assistant',
    content: fields.get('content') ?? text ?? parts,
    ...(calls.length > 0 ? { tool_calls: calls } : {}),
    ...(fields.has('tool_call_id') ? { tool_call_id: fields.get('tool_call_id') } : {}),
  };
}

/**
 * A call of the flattened kinds as one of a chat.
 *
 * @param {Record<string, unknown>} call
 */
const callOf = (call) => ({
  id: call['tool_call.id'] ?? call.id,
  name: call['tool_call.function.name'] ?? call.name,
  arguments: call['tool_call.function.arguments'] ?? call.arguments,
});

/** Events that were messages, before messages were attributes, and their roles. */
const EVENT_ROLES = new Map([
  ['gen_ai.system.message', 'system'],
  ['gen_ai.user.message', 'user'],
  ['gen_ai.assistant.message', 'assistant'],
  ['gen_ai.tool.message', 'tool'],
  ['gen_ai.choice', 'assistant'],
]);

/** @param {Record<string, unknown>} event */
function messagesOfEvent({ name, attributes: list }) {
  const attributes = attributesOf(list);
  const role = EVENT_ROLES.get(String(name));
  if (role === undefined) return messagesOf(attributes);
  const { message, ...body } = objectOf(
    parsed(attributes.get('gen_ai.event.content') ?? attributes.get('message')),
  );
  const fields = isObject(message) ? message : body;
  const content = fields.content ?? attributes.get('content');
  const { id, ...rest } = fields;
  return [
    { ...rest, role, content, ...(role === 'tool' ? { tool_call_id: id ?? attributes.get('id') } : {}) },
  ];
}

/**
 * JSON in a string, or the value that is no JSON.
 *
 * @param {unknown} value
 */
function parsed(value) {
  if (typeof value !== 'string') return value;
  try {
    return JSON.parse(value);
  } catch {
    return value;
  }
}

/** Messages that the trace has had, by what they say, and how often. */
class Heard {
  /** @type {Map<string, number>} */
  #total = new Map();
  /** What they say, which is written once for each. @type {Map<unknown, string>} */
  #keys = new Map();
  /** The messages of the first span, until there is another to compare with. @type {unknown[] | undefined} */
  #first;
  #isAlone = true;

  /**
   * The messages of a span that no span before had: one that was said twice is there twice.
   *
   * @param {unknown[]} messages
   */
  newOf(messages) {
    if (this.#first === undefined) {
      this.#first = messages;
      return messages;
    }
    if (this.#isAlone) this.#count(this.#first);
    this.#isAlone = false;
    return this.#count(messages);
  }

  /** @param {unknown[]} messages */
  #count(messages) {
    /** @type {Map<string, number>} */
    const seen = new Map();
    return messages.filter((message) => {
      const key = this.#keys.get(message) ?? keyOf(message);
      this.#keys.set(message, key);
      const times = (seen.get(key) ?? 0) + 1;
      seen.set(key, times);
      if (times <= (this.#total.get(key) ?? 0)) return false;
      this.#total.set(key, times);
      return true;
    });
  }
}

/**
 * What a message says, without what differs between a reply and its repetition.
 *
 * @param {unknown} message
 */
function keyOf(message) {
  const { finish_reason, id, name, ...rest } = objectOf(message);
  return JSON.stringify(rest);
}

/**
 * A trace, or what is wrong with it: others that end with it are sound.
 *
 * @param {OpenTrace} trace
 */
function assembled(trace) {
  try {
    return assemble(trace);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    const { line } = trace.place;
    const which = line === null ? 'a trace' : `the trace that begins in line ${line}`;
    return new TypeError(`${which} is nested too deeply`);
  }
}

/** @param {OpenTrace} trace */
function assemble({ id, place, spans, framework, size }) {
  const builder = new TraceBuilder('otel', place);
  builder.size = size;
  builder.ids = [id];
  builder.framework = stringOf(framework);
  builder.keep('trace_id', id);
  builder.keep('spans', spans.length);
  builder.isConversation = spans.some(({ isOfAgent }) => isOfAgent);
  spans.sort((a, b) => (a.start < b.start ? -1 : a.start > b.start ? 1 : 0));
  const [first] = spans;
  if (first.start > 0n) builder.at(new Date(Number(first.start / 1_000_000n)).toJSON());
  const heard = new Heard();
  const calls = new Calls();
  const hasMessages = spans.some(({ messages }) => messages.length > 0);
  const outer = spans.find(({ attributes }) => attributes.has('input.value') && !isTool(attributes));
  if (!hasMessages && outer !== undefined) builder.user(outer.attributes.get('input.value'));
  for (const span of spans) {
    const { attributes } = span;
    builder.agentId ??= stringOf(attributes.get('gen_ai.agent.name'));
    const model =
      attributes.get('gen_ai.response.model') ??
      attributes.get('gen_ai.request.model') ??
      attributes.get('llm.model_name');
    if (!('model' in builder.details)) builder.keep('model', model);
    if (span.isRoot && span.status !== 0) builder.success = span.status === STATUS.ok;
    if (isTool(attributes)) {
      if (hasMessages && toolOf(attributes) === undefined) builder.leaveOut('tool span without a name');
      else calls.addSpan(builder, span);
    } else if (span.messages.length > 0) {
      for (const message of heard.newOf(span.messages)) {
        if (isMessage(message)) calls.addMessage(builder, message);
        else builder.leaveOut('malformed message');
      }
    } else if (span !== outer) builder.leaveOut('span without messages');
  }
  if (!hasMessages && outer !== undefined) builder.message(outer.attributes.get('output.value'));
  return builder;
}

/** @param {Attributes} attributes */
const isTool = (attributes) =>
  attributes.get('gen_ai.operation.name') === 'execute_tool' ||
  attributes.get('openinference.span.kind') === 'TOOL';

/** @param {Attributes} attributes */
const toolOf = (attributes) => attributes.get('gen_ai.tool.name') ?? attributes.get('tool.name');

/** The calls of one tool, which are taken in their order, or by their ids. */
class Asked {
  /** @type {Array<string | undefined>} */
  #ids = [];
  #next = 0;
  /** How many of each id are left. @type {Map<string | undefined, number>} */
  #left = new Map();
  /** How many of each id were taken before it was their turn. @type {Map<string | undefined, number>} */
  #early = new Map();

  /** @param {string | undefined} id */
  add(id) {
    this.#ids.push(id);
    count(this.#left, id, 1);
  }

  /**
   * The call of this id, or the next one; undefined if there is none.
   *
   * @param {string | undefined} id
   * @returns {{ id: string | undefined } | undefined}
   */
  take(id) {
    if (id !== undefined) {
      if (!this.#left.get(id)) return undefined;
      count(this.#left, id, -1);
      count(this.#early, id, 1);
      return { id };
    }
    while (this.#next < this.#ids.length) {
      const next = this.#ids[this.#next++];
      if (this.#early.get(next)) count(this.#early, next, -1);
      else {
        count(this.#left, next, -1);
        return { id: next };
      }
    }
    return undefined;
  }
}

/**
 * @template Key
 * @param {Map<Key, number>} counts
 * @param {Key} key
 * @param {number} more
 */
function count(counts, key, more) {
  counts.set(key, (counts.get(key) ?? 0) + more);
}

/** Calls that both a message and a span may have, which are steps once. */
class Calls {
  /** Those of messages that no span has had yet, by their tools. @type {Map<string, Asked>} */
  #asked = new Map();
  /** Ids, and else texts, of results that a span has had. @type {Map<string, number>} */
  #answered = new Map();

  /**
   * @param {InstanceType<typeof TraceBuilder>} builder
   * @param {Record<string, unknown>} message
   */
  addMessage(builder, message) {
    for (const call of listOf(message.tool_calls)) this.#ask(objectOf(call));
    const parts = listOf(message.parts ?? message.content);
    let hasResults = false;
    /** Those that no span has had: all but results. @type {unknown[]} */
    const left = [];
    for (const part of parts) {
      const { type, id, tool_call_id } = objectOf(part);
      if (type === 'tool_call' || type === 'tool_use') this.#ask(objectOf(part));
      const isResult = type === 'tool_call_response';
      hasResults ||= isResult;
      if (!isResult || !this.#take(id ?? tool_call_id)) left.push(part);
    }
    // Results are in messages of tools, or of the user as Pydantic AI has them.
    if (hasResults) {
      if (left.length > 0) addMessage(builder, { role: message.role, parts: left });
    } else if (message.role !== 'tool' || !this.#take(message.tool_call_id)) addMessage(builder, message);
  }

  /** @param {Record<string, unknown>} call */
  #ask(call) {
    const name = String(objectOf(call.function ?? call).name);
    const asked = this.#asked.get(name) ?? new Asked();
    this.#asked.set(name, asked);
    asked.add(stringOf(call.id));
  }

  /** @param {unknown} id */
  #take(id) {
    const left = this.#answered.get(String(id ?? '')) ?? 0;
    if (left > 0) this.#answered.set(String(id ?? ''), left - 1);
    return left > 0;
  }

  /**
   * @param {InstanceType<typeof TraceBuilder>} builder
   * @param {Span} span
   */
  addSpan(builder, { attributes, end, start, status, statusMessage }) {
    const name = toolOf(attributes);
    const own = stringOf(attributes.get('gen_ai.tool.call.id') ?? attributes.get('tool_call.id'));
    const asked = this.#asked.get(String(name))?.take(own);
    const id = own ?? asked?.id;
    if (asked === undefined) {
      const args =
        attributes.get('gen_ai.tool.call.arguments') ??
        attributes.get('tool.parameters') ??
        attributes.get('input.value');
      builder.call({ id, name, args });
    }
    if (end >= start && start > 0n) builder.took(id, Number(end - start) / 1e6);
    const failed = status === STATUS.error ? true : status === STATUS.ok ? false : undefined;
    const content =
      attributes.get('gen_ai.tool.call.result') ??
      attributes.get('output.value') ??
      (failed ? statusMessage || 'error' : undefined);
    if (content === undefined) return;
    builder.result({ id, content, failed });
    const key = id ?? '';
    count(this.#answered, key, 1);
  }
}

module.exports = { createReader, name: /** @type {const} */ ('otel'), recognises };

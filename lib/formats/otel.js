'use strict';

// Spans of OpenTelemetry in OTLP JSON, as the Collector's file exporter and Grafana Tempo write them, with the attributes of the GenAI
// conventions (https://opentelemetry.io/docs/specs/semconv/gen-ai/), of OpenInference
// (https://arize-ai.github.io/openinference/spec/) or of Vercel's AI SDK (https://ai-sdk.dev/docs/ai-sdk-core/telemetry).
//
// | spans                                                         | trace                                                       |
// | ------------------------------------------------------------- | ----------------------------------------------------------- |
// | all with one `traceId`, by their start                        | a trace                                                     |
// | `gen_ai.input.messages`, `gen_ai.output.messages`             | messages, as in `openai-chat`                               |
// | `llm.input_messages.N.message.…`, `llm.output_messages.N.…`   | messages                                                    |
// | `gen_ai.prompt`, `gen_ai.completion`; both with `.N.…`        | messages, of older instrumentations                         |
// | events `gen_ai.user.message`, `gen_ai.choice`, …              | messages, of older instrumentations                         |
// | `ai.prompt`, `ai.prompt.messages`, `ai.response.…`            | messages of the AI SDK                                      |
// | `input.value`, `output.value` of a call of a model            | its messages, where no other attribute has them             |
// | a message that another span of the trace has too              | none: every call of a model repeats what was before         |
// | the output of a span that has others with messages within it  | messages after theirs, as far as they are new               |
// | `gen_ai.operation.name` `execute_tool`, kind `TOOL`, `ai.toolCall.name` | a call and its result, where no message has them  |
// | such a span without the name of its tool, beside messages     | none; counted: a handoff, which the messages call by a name |
// | `status` of such a span                                       | whether the call failed                                     |
// | duration of such a span                                       | `latency_ms` of the call                                    |
// | `input.value`, `output.value` of the first span, without messages | `task.objective`, and a message of the agent            |
// | `status` of the span that has no parent: ok, or error         | success                                                     |
// | `gen_ai.agent.name`, `service.name`, `gen_ai.request.model`   | `metadata.agent_id`, `framework`, `imported.model`          |
// | spans of anything else                                        | none; counted                                               |

const { Conversation } = require('./conversation.js');
const { isObject, listOf, objectOf, stringOf, TraceBuilder } = require('./mapping.js');
const { isMessage } = require('./messages.js');
const { OpenTraces } = require('./open-traces.js');
const { messagesOf: messagesOfRecord } = require('./openai-chat.js');

/**
 * @import { Entry, Reader } from './reader.js'
 * @import { ToolSpan } from './conversation.js'
 */

/** @typedef {Map<string, unknown>} Attributes */

/**
 * What is kept of a span until its trace is complete.
 *
 * @typedef {object} Span
 * @property {string | undefined} id
 * @property {string | undefined} parent
 * @property {bigint} start in nanoseconds
 * @property {bigint} end 0 if it is not known, or before the start
 * @property {boolean} isOfAgent whether it is of an agent or a model by its attributes, not of any other program
 * @property {number} status 0 unset, 1 ok, 2 error
 * @property {unknown} model
 * @property {string | undefined} agent
 * @property {ToolSpan | undefined} tool if it is the span of a tool
 * @property {readonly unknown[]} input messages that the model was given
 * @property {readonly unknown[]} output messages that it returned
 * @property {boolean} isOuter whether it is what the AI SDK puts around its calls of a model
 * @property {{ input: unknown, output: unknown } | undefined} values that are read where no span of the trace has messages
 */

/**
 * Messages that a model was given, and the JSON that they were read from.
 *
 * @typedef {{ json: string, messages: readonly unknown[] }} MessageList
 */

/** Attributes with what a model was given, in JSON. */
const INPUTS = ['gen_ai.input.messages', 'ai.prompt.messages'];

/** Operations that call a model to say something. */
const MODEL_CALLS = new Set(['chat', 'text_completion', 'generate_content']);

/** Attributes of agents and models, by the beginnings of their names. */
const OF_AGENTS =
  /^(?:gen_ai|llm|ai|openinference|traceloop|langfuse|langsmith|mlflow)\.|^(?:input|output)\.value$/;

/** Operations and kinds of spans of models that are no conversation. */
const SEARCHES = /^(?:embeddings|EMBEDDING|RETRIEVER|RERANKER|ai\.(?:embed|rerank).*)$/;

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
  given;
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
          const { given, ...kept } = read(span, open.get(id)?.given);
          const trace = open.add(id, size, () => new OpenTrace(id, entry));
          trace.size += size;
          trace.framework ||= service;
          trace.given = given ?? trace.given;
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
 * @returns {Span & { given?: MessageList }}
 */
function read(span, before) {
  const all = attributesOf(span.attributes);
  /** @type {MessageList | undefined} */
  let given;
  for (const name of INPUTS) {
    const list = listIn(all.get(name), given ?? before);
    if (list === undefined) continue;
    all.set(name, list.messages);
    given ??= list;
  }
  const start = timeOf(span.startTimeUnixNano);
  const end = timeOf(span.endTimeUnixNano);
  const { code, message } = objectOf(span.status);
  const status = statusOf(code);
  const milliseconds = end >= start && start > 0n ? Number(end - start) / 1e6 : undefined;
  const tool = isTool(all) ? toolOf(all, { status, message: stringOf(message), milliseconds }) : undefined;
  const said = tool === undefined ? saidIn(all, listOf(span.events).map(objectOf)) : NOTHING_SAID;
  const isSilent = tool === undefined && !hasSaid(said);
  return {
    id: stringOf(span.spanId),
    parent: stringOf(span.parentSpanId),
    ...{ start, end, status, tool, given },
    isOfAgent: isOfAgent(all),
    model:
      all.get('gen_ai.response.model') ??
      all.get('gen_ai.request.model') ??
      all.get('llm.model_name') ??
      all.get('ai.model.id'),
    agent: stringOf(all.get('gen_ai.agent.name')) ?? stringOf(all.get('ai.telemetry.functionId')),
    ...said,
    isOuter: all.has('ai.prompt'),
    values:
      isSilent && all.has('input.value')
        ? { input: all.get('input.value'), output: all.get('output.value') }
        : undefined,
  };
}

/** @param {Attributes} attributes */
function isOfAgent(attributes) {
  const kinds = ['gen_ai.operation.name', 'openinference.span.kind', 'ai.operationId'];
  if (kinds.some((name) => SEARCHES.test(String(attributes.get(name))))) return false;
  for (const name of attributes.keys()) if (OF_AGENTS.test(name)) return true;
  return false;
}

/** @param {unknown} code */
function statusOf(code) {
  if (code === STATUS.error || code === 'STATUS_CODE_ERROR') return STATUS.error;
  return code === STATUS.ok || code === 'STATUS_CODE_OK' ? STATUS.ok : 0;
}

/** @param {Attributes} attributes */
const isTool = (attributes) =>
  attributes.get('gen_ai.operation.name') === 'execute_tool' ||
  attributes.get('openinference.span.kind') === 'TOOL' ||
  attributes.has('ai.toolCall.name');

/**
 * @param {Attributes} attributes
 * @param {{ status: number, message: string | undefined, milliseconds: number | undefined }} span
 * @returns {ToolSpan}
 */
function toolOf(attributes, { status, message, milliseconds }) {
  const first = (/** @type {string[]} */ ...names) =>
    names.map((name) => attributes.get(name)).find((value) => value !== undefined);
  const failed = status === STATUS.error ? true : status === STATUS.ok ? false : undefined;
  const content = first('gen_ai.tool.call.result', 'ai.toolCall.result', 'output.value');
  return {
    id: stringOf(first('gen_ai.tool.call.id', 'ai.toolCall.id', 'tool_call.id')),
    name: first('gen_ai.tool.name', 'ai.toolCall.name', 'tool.name'),
    // OpenInference has what the tool takes in `tool.parameters`, and what it was given in `input.value`.
    args: first('gen_ai.tool.call.arguments', 'ai.toolCall.args', 'input.value', 'tool.parameters'),
    content: content === undefined && failed ? (message ?? 'error') : textIn(content),
    ...{ failed, milliseconds },
  };
}

/**
 * The text in a string of JSON, or the value that is something else.
 *
 * @param {unknown} value
 */
function textIn(value) {
  if (typeof value !== 'string' || value[0] !== '"') return value;
  const text = parsed(value);
  return typeof text === 'string' ? text : value;
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

/** What a model was given, and what it returned. @typedef {{ input: readonly unknown[], output: readonly unknown[] }} Said */

/** @type {Said} */
const NOTHING_SAID = { input: [], output: [] };

/**
 * What a model was given and what it returned: in attributes, or else in events.
 *
 * @param {Attributes} attributes
 * @param {Array<Record<string, unknown>>} events
 * @returns {Said}
 */
function saidIn(attributes, events) {
  const { input, output } = messagesOf(attributes);
  const told = events.map(messagesOfEvent);
  return {
    input: input.length > 0 ? input : told.flatMap((said) => said.input),
    output: output.length > 0 ? output : told.flatMap((said) => said.output),
  };
}

/**
 * The messages in attributes: those of the first convention that has any.
 *
 * @param {Attributes} attributes
 * @returns {Said}
 */
function messagesOf(attributes) {
  /** @param {Array<() => readonly unknown[]>} conventions */
  const first = (conventions) => {
    for (const messages of conventions) {
      const found = messages();
      if (found.length > 0) return found;
    }
    return [];
  };
  const flat = (/** @type {string} */ prefix) => () => unflatten(attributes, prefix).map(messageOf);
  const value = (/** @type {string} */ name, /** @type {string} */ role) => () =>
    messagesIn(attributes.get(name), role);
  const list = (/** @type {string} */ name, /** @type {string} */ role) => () => {
    const found = parsed(attributes.get(name));
    return Array.isArray(found) ? found : messagesIn(found, role);
  };
  const isModelCall = callsModel(attributes);
  return {
    input: first([
      ...INPUTS.map((name) => list(name, 'user')),
      flat('llm.input_messages'),
      flat('gen_ai.prompt'),
      value('gen_ai.prompt', 'user'),
      value('ai.prompt', 'user'),
      ...(isModelCall ? [value('input.value', 'user')] : []),
    ]),
    output: first([
      list('gen_ai.output.messages', 'assistant'),
      flat('llm.output_messages'),
      flat('gen_ai.completion'),
      value('gen_ai.completion', 'assistant'),
      () => responseOf(attributes, 'ai.response'),
      () => responseOf(attributes, 'ai.result'),
      ...(isModelCall ? [value('output.value', 'assistant')] : []),
    ]),
  };
}

/**
 * Whether a span is the call of a model, whose values are its messages.
 *
 * @param {Attributes} attributes
 */
function callsModel(attributes) {
  const kind = attributes.get('openinference.span.kind');
  const operation = attributes.get('gen_ai.operation.name');
  if (kind !== undefined) return kind === 'LLM';
  if (operation !== undefined) return MODEL_CALLS.has(String(operation));
  return attributes.has('llm.model_name') || attributes.has('gen_ai.request.model');
}

/**
 * The messages in the value of an attribute: those in its JSON, if there are any, or else all of it as one.
 *
 * @param {unknown} value
 * @param {string} role of the one
 * @returns {readonly unknown[]}
 */
function messagesIn(value, role) {
  if (value === undefined || value === null || value === '') return [];
  const found = parsed(value);
  if (Array.isArray(found)) {
    const list = Array.isArray(found[0]) ? found.flat() : found;
    if (list.length === 0) return [];
    if (list.some(isMessage)) return list;
    if (list.every((each) => typeof each === 'string')) return list.map((content) => ({ role, content }));
  } else if (isObject(found)) {
    if (isMessage(found)) return [found];
    // What was asked of a model, and what it replied.
    const { system, prompt } = found;
    const messages = messagesOfRecord(found) ?? messagesIn(prompt, role);
    if (messages.length > 0) return [...(system ? [{ role: 'system', content: system }] : []), ...messages];
  }
  return [{ role, content: typeof value === 'object' ? JSON.stringify(value) : value }];
}

/**
 * What a model replied to the AI SDK, as a message.
 *
 * @param {Attributes} attributes
 * @param {string} prefix
 */
function responseOf(attributes, prefix) {
  const text = attributes.get(`${prefix}.text`) ?? attributes.get(`${prefix}.object`);
  const reasoning = attributes.get(`${prefix}.reasoning`);
  const calls = listOf(parsed(attributes.get(`${prefix}.toolCalls`))).map(objectOf);
  if ((text ?? reasoning) === undefined && calls.length === 0) return [];
  const parts = calls.map((call) => ({ ...call, type: 'tool-call' }));
  return [{ role: 'assistant', reasoning, content: [{ type: 'text', text: text ?? '' }, ...parts] }];
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

/**
 * @param {Record<string, unknown>} event
 * @returns {Said}
 */
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
  const tool_call_id = id ?? attributes.get('id');
  const said = [{ ...rest, role, content, ...(role === 'tool' ? { tool_call_id } : {}) }];
  return name === 'gen_ai.choice' ? { input: [], output: said } : { input: said, output: [] };
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
  builder.isConversation = spans.some((span) => span.isOfAgent);
  spans.sort((a, b) => compare(a.start, b.start));
  const [first] = spans;
  if (first.start > 0n) builder.at(new Date(Number(first.start / 1_000_000n)).toJSON());
  const hasMessages = spans.some(hasSaid);
  if (!hasMessages) readOuterValues(spans);
  const aroundTools = spansAround(spans, ({ tool }) => tool !== undefined);
  const aroundMessages = spansAround(spans, hasSaid);
  const conversation = new Conversation();
  /** @type {Act[]} */
  const acts = [];
  for (const span of spans) {
    builder.agentId ??= span.agent;
    if (!('model' in builder.details)) builder.keep('model', span.model);
    if (span.parent === undefined && span.status !== 0) builder.success = span.status === STATUS.ok;
    const repeats = aroundMessages.has(span.id) || span.end === LATEST;
    const isAround = repeats || aroundTools.has(span.id);
    if (span.tool !== undefined) {
      if (hasMessages && span.tool.name === undefined) builder.leaveOut('tool span without a name');
      else acts.push(...actsOfTool(span, span.tool, isAround, conversation));
    } else if (hasSaid(span)) {
      // The AI SDK puts the texts of all calls together in the span around them.
      if (span.isOuter && repeats) span.output = [];
      acts.push(...actsOfModel(span, { isAround, repeats }, conversation));
    } else builder.leaveOut('span without messages');
  }
  // What begins when another ends comes after it.
  acts.sort((a, b) => compare(a.at, b.at) || Number(b.isEnd) - Number(a.isEnd));
  for (const { add } of acts) add();
  conversation.tell(builder);
  return builder;
}

/** What a span adds to the conversation, and when. @typedef {{ at: bigint, isEnd: boolean, add: () => void }} Act */

/**
 * @param {bigint} a
 * @param {bigint} b
 */
const compare = (a, b) => (a < b ? -1 : a > b ? 1 : 0);

/** @param {Said} span */
const hasSaid = ({ input, output }) => input.length > 0 || output.length > 0;

/** The end of a span that is around all others, or around others with its own end not known. */
const LATEST = 2n ** 64n;

/**
 * The acts of a span: one at its start, and one at its end if that is known or the span has others within it.
 *
 * @param {Span} span
 * @param {boolean} isAround
 * @param {{ begin: () => void, end: () => void }} acts
 * @returns {Act[]}
 */
function actsOf({ start, end: last }, isAround, { begin, end }) {
  const isEnd = isAround || last > start;
  return [
    { at: start, isEnd: false, add: begin },
    { at: last > start ? last : isAround ? LATEST : start, isEnd, add: end },
  ];
}

/**
 * Reads the values of the first span that has any. Where no span has messages, it is around the others.
 *
 * @param {readonly Span[]} spans
 */
function readOuterValues(spans) {
  const outer = spans.find(({ values }) => values !== undefined);
  if (outer?.values === undefined) return;
  outer.input = messagesIn(outer.values.input, 'user');
  outer.output = messagesIn(outer.values.output, 'assistant');
  outer.end = LATEST;
}

/**
 * The ids of the spans that others are in of which something holds.
 *
 * @param {readonly Span[]} spans
 * @param {(span: Span) => boolean} holds
 */
function spansAround(spans, holds) {
  /** @type {Map<string | undefined, string | undefined>} */
  const parents = new Map(spans.map(({ id, parent }) => [id, parent]));
  /** @type {Set<string | undefined>} */
  const around = new Set();
  for (const span of spans) {
    if (!holds(span)) continue;
    for (let id = span.parent; id !== undefined && !around.has(id); id = parents.get(id)) around.add(id);
  }
  return around;
}

/**
 * @param {Span} span
 * @param {ToolSpan} tool
 * @param {boolean} isAround
 * @param {InstanceType<typeof Conversation>} conversation
 * @returns {Act[]}
 */
function actsOfTool(span, tool, isAround, conversation) {
  /** @type {ReturnType<typeof conversation.addCall>} */
  let call;
  const begin = () => {
    call = conversation.addCall(tool);
  };
  return actsOf(span, isAround, { begin, end: () => conversation.addResult(call, tool) });
}

/**
 * What a model was given and has returned. Where there are spans of tools within its own, it has returned after them; where there are
 * messages in them, as within the span of an agent, it repeats some of these.
 *
 * @param {Span} span
 * @param {{ isAround: boolean, repeats: boolean }} within
 * @param {InstanceType<typeof Conversation>} conversation
 * @returns {Act[]}
 */
function actsOfModel(span, { isAround, repeats }, conversation) {
  /** @type {ReturnType<typeof conversation.add>} */
  let list;
  const begin = () => {
    list = conversation.add(span.input);
  };
  const end = () => conversation.add(span.output, repeats ? undefined : list);
  // Nothing comes between what a model was given and what it returned, but for what is within its span.
  return actsOf(isAround ? span : { ...span, end: span.start }, isAround, { begin, end });
}

module.exports = { createReader, name: /** @type {const} */ ('otel'), recognises };

'use strict';

// Messages of chat APIs, which several formats hold: those of OpenAI's Chat Completions and of Anthropic's Messages, the items of
// OpenAI's Responses, and the parts of OpenTelemetry's GenAI messages. They are told apart by what is in them. parts.js has what other
// APIs write: Bedrock's Converse, Gemini and the AI SDK of Vercel.

const { isObject, listOf, objectOf, stringOf, textOfPart, truthOf } = require('./mapping.js');
const { translated } = require('./parts.js');

/** @typedef {InstanceType<typeof import('./mapping.js').TraceBuilder>} TraceBuilder */

/** Fields of messages that have been used, or say nothing of what the agent did. */
const KNOWN = new Set([
  ...[
    'role',
    'content',
    'name',
    'tool_calls',
    'tool_call_id',
    'function_call',
    'refusal',
    'reasoning_content',
  ],
  ...['reasoning', 'thinking', 'reasoning_details', 'audio', 'annotations', 'id', 'type', 'status', 'model'],
  ...[
    'stop_reason',
    'stop_sequence',
    'usage',
    'parts',
    'finish_reason',
    'is_error',
    'phase',
    'context_management',
  ],
  // Of the AI SDK.
  ...[
    'createdAt',
    'metadata',
    'toolInvocations',
    'experimental_attachments',
    'providerOptions',
    'revisionId',
  ],
]);

/** Parts and items that call a tool. */
const CALLS = new Set([
  'tool_use',
  'server_tool_use',
  'mcp_tool_use',
  'tool_call',
  'function_call',
  'custom_tool_call',
]);

/** Those that are the result of a call; Anthropic's server tools have a kind each, as `web_search_tool_result`. */
const isResultType = (/** @type {string} */ type) =>
  type === 'tool_call_response' || type.endsWith('tool_result') || type.endsWith('_call_output');

/** Calls of the tools that OpenAI runs itself, each named after its tool; some come with the result. */
const HOSTED_CALLS = new Set([
  ...['web_search_call', 'file_search_call', 'computer_call', 'code_interpreter_call', 'mcp_call'],
  ...['image_generation_call', 'local_shell_call', 'shell_call', 'apply_patch_call'],
]);

/** Fields of a hosted call that are not arguments of it. */
const NO_ARGUMENTS = new Set([
  'id',
  'call_id',
  'type',
  'status',
  'output',
  'outputs',
  'results',
  'result',
  'error',
]);

/**
 * Whether a value is a message or an item that `addMessage` takes.
 *
 * @param {unknown} value
 * @returns {value is Record<string, unknown>}
 */
function isMessage(value) {
  if (!isObject(value)) return false;
  if (typeof value.role === 'string')
    return 'content' in value || 'tool_calls' in value || 'parts' in value || 'function_call' in value;
  return typeof value.type === 'string' && isItemType(value.type);
}

/** @param {string} type */
function isItemType(type) {
  return (
    type === 'message' ||
    type === 'reasoning' ||
    CALLS.has(type) ||
    isResultType(type) ||
    HOSTED_CALLS.has(type)
  );
}

/**
 * Adds a message, whichever kind it is of.
 *
 * | found                                                              | taken for              |
 * | ------------------------------------------------------------------ | ---------------------- |
 * | `role` `system` or `developer`                                     | a system prompt        |
 * | `role` `user`, text parts                                          | a user's turn          |
 * | `role` `assistant` or `model`, text parts, `refusal`               | a message of the agent |
 * | `reasoning_content`, `reasoning`, `thinking` parts                 | reasoning              |
 * | `tool_calls`, `function_call`, `tool_use` parts                    | calls                  |
 * | `role` `tool` or `function`, `tool_result` parts                   | results                |
 * | items `function_call`, `custom_tool_call`, `…_call`                | calls                  |
 * | items `…_call_output`; `output` of an `mcp_call`                   | results                |
 * | `is_error`, `status` `failed` or `error`, `error` of an `mcp_call` | that the call failed   |
 *
 * @param {TraceBuilder} builder
 * @param {unknown} value
 * @returns {void}
 * @throws {TypeError} if it is no message
 */
function addMessage(builder, value) {
  if (!isObject(value)) throw new TypeError('a message must be an object');
  const role = stringOf(value.role);
  const type = stringOf(value.type);
  if (role === undefined) {
    if (type === undefined || !isItemType(type))
      throw new TypeError('a message must have a role, or a type that is known');
    return addItem(builder, value, type);
  }
  builder.countUnknown(value, KNOWN);
  builder.at(value.createdAt);
  // Messages of a UI may have their text in both; their tools are in the parts.
  const content = listOf(value.parts).length > 0 ? value.parts : (value.content ?? value.parts);
  switch (role) {
    case 'system':
    case 'developer':
      return builder.system(content);
    case 'user':
    case 'human':
      return addParts(builder, content, (text) => builder.user(text));
    case 'tool':
    case 'function':
      return addResults(builder, value, content);
    case 'assistant':
    case 'model':
    case 'ai':
      break;
    default:
      throw new TypeError('a message has a role that is not known');
  }
  const reasoning = value.reasoning_content ?? value.reasoning ?? value.thinking;
  if (reasoning !== undefined && reasoning !== null) builder.reasoning(reasoning);
  addParts(builder, content, (text) => builder.message(text));
  if (typeof value.refusal === 'string') builder.message(value.refusal);
  if (content !== value.parts) {
    const tools = listOf(value.toolInvocations);
    const parts = tools.map((toolInvocation) => ({ type: 'tool-invocation', toolInvocation }));
    addParts(builder, parts, (text) => builder.message(text));
  }
  for (const call of listOf(value.tool_calls)) addChatCall(builder, call);
  if (isObject(value.function_call)) addChatCall(builder, { function: value.function_call });
}

/**
 * The message of a tool. Several APIs have more than one result in it.
 *
 * @param {TraceBuilder} builder
 * @param {Record<string, unknown>} message
 * @param {unknown} content
 */
function addResults(builder, message, content) {
  const parts = listOf(content).flatMap((part) => translated(part) ?? [part]);
  if (parts.some((part) => isResultType(stringOf(objectOf(part).type) ?? '')))
    return addParts(builder, content, (text) => builder.event(text));
  builder.result({ id: message.tool_call_id, content, failed: failureOf(message) });
}

/**
 * @param {TraceBuilder} builder
 * @param {unknown} value one of `tool_calls`, with `function` or `custom`, or with `name` and `arguments` themselves
 */
function addChatCall(builder, value) {
  const call = objectOf(value);
  const inner = objectOf(call.function ?? call.custom ?? call);
  builder.call({ id: call.id, name: inner.name, args: inner.arguments ?? inner.input ?? inner.args });
}

/**
 * The content of a message in the order of its parts; text that follows text is one message.
 *
 * @param {TraceBuilder} builder
 * @param {unknown} content
 * @param {(text: unknown) => void} addText
 */
function addParts(builder, content, addText) {
  if (!Array.isArray(content))
    return content === undefined || content === null ? undefined : addText(content);
  /** @type {unknown[]} */
  let text = [];
  const flush = () => {
    if (text.length > 0) addText(text);
    text = [];
  };
  const add = (/** @type {unknown} */ part) => {
    const type = stringOf(objectOf(part).type) ?? '';
    if (isActType(type)) {
      flush();
      return addItem(builder, objectOf(part), type);
    }
    if (type === '' && textOfPart(part) === undefined) builder.leaveOut('part of an unknown kind');
    text.push(part);
  };
  for (const part of content) {
    const others = translated(part);
    if (others === undefined) add(part);
    else if (others.length > 0) others.forEach(add);
    else builder.leaveOut(`${part.type ?? Object.keys(part)[0]} part`);
  }
  flush();
}

/** @param {string} type */
const isActType = (type) =>
  type === 'thinking' || type === 'redacted_thinking' || (type !== 'message' && isItemType(type));

/**
 * A part or an item that is more than text.
 *
 * @param {TraceBuilder} builder
 * @param {Record<string, unknown>} item
 * @param {string} type
 * @returns {void}
 */
function addItem(builder, item, type) {
  if (type === 'message') return addMessage(builder, { role: 'assistant', ...item });
  if (type === 'redacted_thinking') return builder.leaveOut('encrypted reasoning');
  if (type === 'thinking' || type === 'reasoning') return addReasoning(builder, item);
  const id = item.call_id ?? item.tool_use_id ?? item.id;
  if (isResultType(type)) {
    const content = item.content ?? item.output ?? item.response ?? item.result;
    return builder.result({ id, content, failed: failureOf(item) });
  }
  if (CALLS.has(type)) {
    const args = item.input ?? item.arguments;
    return builder.call({ id, name: item.name, args, server: stringOf(item.server_name) });
  }
  addHostedCall(builder, item, type, id);
}

/**
 * Whether the call failed, if the format says so; that it did not is not said of the text.
 *
 * @param {Record<string, unknown>} item
 */
function failureOf({ is_error, status, error }) {
  const said = truthOf(is_error);
  if (said !== undefined) return said;
  return status === 'failed' || status === 'error' || status === 'incomplete' || error ? true : undefined;
}

/**
 * @param {TraceBuilder} builder
 * @param {Record<string, unknown>} item
 */
function addReasoning(builder, item) {
  const text = [...listOf(item.summary), ...listOf(item.content)];
  const single =
    item.thinking ??
    item.text ??
    item.reasoning ??
    (typeof item.content === 'string' ? item.content : undefined);
  if (single !== undefined) text.push(single);
  if (text.length === 0) return builder.leaveOut('encrypted reasoning');
  builder.reasoning(text);
}

/**
 * A call of a tool that the API runs itself, and its result where it is there.
 *
 * @param {TraceBuilder} builder
 * @param {Record<string, unknown>} item
 * @param {string} type
 * @param {unknown} id
 */
function addHostedCall(builder, item, type, id) {
  const isMcp = type === 'mcp_call';
  const rest = Object.fromEntries(Object.entries(item).filter(([name]) => !NO_ARGUMENTS.has(name)));
  builder.call({
    id,
    name: isMcp ? item.name : type.slice(0, -'_call'.length),
    args: isMcp ? item.arguments : rest,
    server: isMcp ? stringOf(item.server_label) : undefined,
  });
  const failed = failureOf(item);
  const content =
    item.output ?? item.outputs ?? item.results ?? item.result ?? (failed ? item.error : undefined);
  if (content !== undefined && content !== null) builder.result({ id, content, failed });
}

module.exports = { addMessage, isMessage };

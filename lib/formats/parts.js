'use strict';

// Parts of messages that other APIs write, in the terms of Anthropic and OpenAI, which messages.js takes.
//
// | API                        | part                                                | becomes                          |
// | -------------------------- | --------------------------------------------------- | -------------------------------- |
// | Converse of Bedrock        | `toolUse`                                           | call                             |
// |                            | `toolResult`, by `status` failed or not             | result                           |
// |                            | `reasoningContent`                                  | reasoning                        |
// |                            | `citationsContent`, `guardContent`, `searchResult`  | their text                       |
// |                            | `cachePoint`, `toolAddition`, `toolRemoval`         | none; counted                    |
// | AI SDK, messages of a UI   | `tool-NAME`, `dynamic-tool`, `tool-invocation`      | call, and the result that it has |
// |                            | `state` `output-error`                              | the call failed                  |
// |                            | `state` `output-denied`: the user refused the call  | a result that is no failure      |
// |                            | `step-start`, `source…`, `data-…`                   | none; counted                    |
// | AI SDK, messages of models | `tool-call`                                         | call                             |
// |                            | `tool-result`, by `output.type` or `isError` failed | result                           |
// |                            | `tool-approval-…`                                   | none; counted                    |
// | Gemini                     | `functionCall`                                      | call                             |
// |                            | `functionResponse`                                  | result                           |
// |                            | `text` with `thought`                               | reasoning                        |
//
// The shapes are those of @aws-sdk/client-bedrock-runtime 3, of ai 4 and 6, and of @google/genai 2.

const { isObject, listOf, objectOf, stringOf } = require('./mapping.js');

/** @typedef {Record<string, unknown>} Part */

/**
 * Blocks that are named by their only field, by its name.
 *
 * @type {Map<string, (value: any) => unknown[]>}
 */
const BLOCKS = new Map(
  /** @type {Array<[string, (value: Part) => unknown[]]>} */ ([
    ['toolUse', ({ toolUseId, name, input }) => [callOf(toolUseId, name, input)]],
    [
      'toolResult',
      ({ toolUseId, content, status }) => {
        const failed = status === 'error' ? true : status === 'success' ? false : undefined;
        return [resultOf(toolUseId, contentOf(content), failed)];
      },
    ],
    ['reasoningContent', reasoningOf],
    ['citationsContent', ({ content }) => listOf(content)],
    ['searchResult', ({ content }) => listOf(content)],
    ['guardContent', ({ text }) => [isObject(text) ? text : { type: 'image' }]],
    ['json', (value) => [{ type: 'text', text: jsonOf(value) }]],
    ...['image', 'document', 'video', 'audio', 'inlineData', 'fileData'].map((type) => [
      type,
      () => [{ type }],
    ]),
    ...['cachePoint', 'toolAddition', 'toolRemoval'].map((type) => [type, () => []]),
    ['functionCall', ({ id, name, args }) => [callOf(id, name, args)]],
    ['functionResponse', ({ id, response }) => [resultOf(id, jsonOf(response), undefined)]],
  ]),
);

/** Types of parts of the AI SDK that are for the page, not of what the agent did; there are also those that begin with `data-`. */
const FOR_THE_PAGE = new Set([
  ...['step-start', 'source', 'source-url', 'source-document'],
  ...['tool-approval-request', 'tool-approval-response'],
]);

const TOOL = 'tool-';

/**
 * The parts that this one stands for, none if it is no step; undefined if it is one that needs no translation.
 *
 * @param {unknown} part
 * @returns {unknown[] | undefined}
 */
function translated(part) {
  if (!isObject(part)) return undefined;
  const { type } = part;
  if (typeof type === 'string') return ofAiSdk(part, type);
  if (typeof part.text === 'string') {
    return part.thought === true ? [{ type: 'thinking', thinking: part.text }] : undefined;
  }
  for (const name of Object.keys(part)) {
    const value = part[name];
    if (isObject(value) || name === 'json') {
      const parts = BLOCKS.get(name)?.(value);
      if (parts !== undefined) return parts;
    }
  }
  return undefined;
}

/**
 * @param {Part} part
 * @param {string} type
 * @returns {unknown[] | undefined}
 */
function ofAiSdk(part, type) {
  if (FOR_THE_PAGE.has(type)) return [];
  // Every other one has a hyphen.
  if (!type.includes('-')) return undefined;
  if (type.startsWith('data-')) return [];
  const { toolCallId, toolName, state } = part;
  if (typeof state === 'string' && (type === 'dynamic-tool' || type.startsWith(TOOL))) {
    return ofTool(part, type === 'dynamic-tool' ? toolName : type.slice(TOOL.length));
  }
  if (type === 'tool-invocation') return ofInvocation(objectOf(part.toolInvocation));
  if (type === 'tool-call') return [callOf(toolCallId, toolName, part.input ?? part.args)];
  if (type === 'tool-result') return [ofToolResult(part)];
  return undefined;
}

/**
 * A tool in a message of a UI: its call, and the result where it is there.
 *
 * @param {Part} part
 * @param {unknown} name
 */
function ofTool({ toolCallId, state, input, rawInput, output, errorText, approval }, name) {
  const call = callOf(toolCallId, name, input ?? rawInput);
  if (state === 'output-available') return [call, resultOf(toolCallId, jsonOf(output), undefined)];
  if (state === 'output-error') return [call, resultOf(toolCallId, errorText, true)];
  if (state === 'output-denied')
    return [call, resultOf(toolCallId, deniedOf(objectOf(approval).reason), false)];
  return [call];
}

/**
 * The same in a message of version 4 and before.
 *
 * @param {Part} invocation
 */
function ofInvocation({ toolCallId, toolName, state, args, result }) {
  const call = callOf(toolCallId, toolName, args);
  return state === 'result' ? [call, resultOf(toolCallId, jsonOf(result), undefined)] : [call];
}

/** @param {Part} part */
function ofToolResult({ toolCallId, output, result, isError }) {
  if (!isObject(output))
    return resultOf(toolCallId, jsonOf(result ?? output), isError === true ? true : undefined);
  const { type, value, reason } = output;
  if (type === 'execution-denied') return resultOf(toolCallId, deniedOf(reason), false);
  const failed = type === 'error-text' || type === 'error-json' ? true : undefined;
  return resultOf(toolCallId, type === 'content' ? value : jsonOf(value), failed);
}

/** @param {unknown} reason */
const deniedOf = (reason) => `denied by the user${stringOf(reason) === undefined ? '' : `: ${reason}`}`;

/** @param {Part} content */
function reasoningOf({ reasoningText }) {
  const text = isObject(reasoningText) ? reasoningText.text : reasoningText;
  return [typeof text === 'string' ? { type: 'thinking', thinking: text } : { type: 'redacted_thinking' }];
}

/**
 * The content of a result, each of its blocks translated.
 *
 * @param {unknown} content
 */
const contentOf = (content) =>
  Array.isArray(content) ? content.flatMap((block) => translated(block) ?? [block]) : content;

/**
 * @param {unknown} id
 * @param {unknown} name
 * @param {unknown} input
 */
const callOf = (id, name, input) => ({ type: 'tool_use', id, name, input });

/**
 * @param {unknown} tool_use_id
 * @param {unknown} content
 * @param {boolean | undefined} is_error
 */
const resultOf = (tool_use_id, content, is_error) => ({
  type: 'tool_result',
  tool_use_id,
  content,
  is_error,
});

/**
 * A value as text: strings as they are, everything else as JSON.
 *
 * @param {unknown} value
 */
const jsonOf = (value) => (typeof value === 'string' ? value : JSON.stringify(value));

module.exports = { translated };

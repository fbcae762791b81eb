'use strict';

// Conversations with a model, as chat APIs take and return them: OpenAI's Chat Completions and Responses, Anthropic's Messages,
// Bedrock's Converse, Gemini, and the AI SDK of Vercel. messages.js has how a message or an item becomes steps.
//
// | record                                                                     | trace                                            |
// | -------------------------------------------------------------------------- | ------------------------------------------------ |
// | `messages`, `contents` of Gemini, or `traj`                                | its messages; a trace each                       |
// | `choices[0].message`, in the record or in its `response`                   | the last message                                 |
// | `output.message` of Converse, `candidates[0].content` of Gemini            | the last message, in the same places             |
// | `input` and `output` of Responses                                          | its items; a string as `input` is a user's turn  |
// | `content` of a reply of Anthropic, with `type` `message`                   | the last message                                 |
// | `body`, `request`: requests of batches and of logs                         | as if what is in it were in the record           |
// | `input.inputBodyJson`, `output.outputBodyJson` of Bedrock's invocation log | the same                                         |
// | an array of messages; a whole input that is one                            | a trace                                          |
// | messages that stand alone, one a line                                      | a trace, of all of them                          |
// | `system`, `instructions`, messages of `system`, `developer`                | none; counted                                    |
// | `reward`, `success`, `confidence`                                          | success and confidence                           |
// | `id`, `custom_id`, `task_id`, `conversation_id`, `session_id`              | makes `id`; kept in `metadata.imported`          |
// | `created`, `created_at`, `timestamp`, `model`                              | `metadata.created_at`, `metadata.imported.model` |
// | `metadata`                                                                 | `metadata.imported.metadata`                     |

const { OpenTraces } = require('./open-traces.js');
const { addMessage, isMessage } = require('./messages.js');
const { isObject, listOf, numberOf, objectOf, stringOf, TraceBuilder } = require('./mapping.js');

/** @import { Entry, Reader } from './reader.js' */

const IDS = [
  'id',
  'custom_id',
  'task_id',
  'conversation_id',
  'session_id',
  'trial',
  'requestId',
  'responseId',
];

const FIELDS = new Set([
  ...[
    ...IDS,
    'messages',
    'traj',
    'choices',
    'response',
    'request',
    'body',
    'input',
    'output',
    'content',
    'role',
  ],
  ...[
    'type',
    'system',
    'instructions',
    'reward',
    'success',
    'confidence',
    'created',
    'created_at',
    'timestamp',
  ],
  // What the model was asked for, not what the agent did.
  ...[
    'model',
    'metadata',
    'object',
    'usage',
    'tools',
    'tool_choice',
    'parallel_tool_calls',
    'temperature',
    'top_p',
  ],
  ...[
    'max_tokens',
    'max_completion_tokens',
    'max_output_tokens',
    'stream',
    'status',
    'method',
    'url',
    'service_tier',
  ],
  ...[
    'system_fingerprint',
    'stop_reason',
    'stop_sequence',
    'reasoning',
    'text',
    'truncation',
    'store',
    'user',
    'error',
  ],
  ...[
    'previous_response_id',
    'incomplete_details',
    'thinking',
    'stop',
    'n',
    'seed',
    'response_format',
    'functions',
  ],
  // Of Converse, and of the invocation log of Bedrock.
  ...['modelId', 'inferenceConfig', 'toolConfig', 'guardrailConfig', 'additionalModelRequestFields', 'trace'],
  ...[
    'additionalModelResponseFieldPaths',
    'additionalModelResponseFields',
    'promptVariables',
    'outputConfig',
  ],
  ...['requestMetadata', 'performanceConfig', 'serviceTier', 'stopReason', 'metrics', 'schemaType'],
  ...['schemaVersion', 'accountId', 'identity', 'region', 'operation'],
  // Of Gemini.
  ...['contents', 'candidates', 'systemInstruction', 'generationConfig', 'safetySettings', 'usageMetadata'],
  ...['modelVersion', 'createTime', 'config'],
]);

/** A number of seconds since 1970 is less, one of milliseconds is more. */
const SECONDS = 1e11;

/** @param {unknown} value */
function recognises(value) {
  if (Array.isArray(value)) return isMessage(value[0]);
  if (!isObject(value)) return false;
  if (isMessage(value)) return true;
  return messagesOf(value) !== undefined;
}

/**
 * The messages of a record that is a conversation, in order; undefined for any other record.
 *
 * @param {Record<string, unknown>} record
 * @returns {unknown[] | undefined}
 */
function messagesOf(record) {
  const { response, request, body } = record;
  for (const list of [record.messages, record.contents, record.traj]) {
    if (Array.isArray(list) && (list.length === 0 || isMessage(list[0]))) {
      return [...list, ...replyOf(record), ...replyOf(objectOf(response))];
    }
  }
  for (const inner of [request, body, objectOf(record.input).inputBodyJson]) {
    const asked = isObject(inner) ? messagesOf(inner) : undefined;
    if (asked !== undefined) return [...asked, ...replyOf(record), ...replyOf(objectOf(response))];
  }
  const output = listOf(record.output);
  if (isMessage(output[0]) || record.object === 'response') return [...inputOf(record.input), ...output];
  const input = listOf(record.input);
  if (isMessage(input[0])) return [...input, ...replyOf(objectOf(response))];
  // A reply alone, as in the output of a batch.
  for (const reply of [record, objectOf(response)]) {
    const message = messageOf(isObject(reply.body) ? reply.body : reply);
    if (message !== undefined) return [message];
  }
  // The request with a text only, and its reply in another field.
  if (typeof record.input === 'string' && replyOf(objectOf(response)).length > 0) {
    return [...inputOf(record.input), ...replyOf(objectOf(response))];
  }
  return undefined;
}

/** @param {unknown} input */
function inputOf(input) {
  return typeof input === 'string' ? [{ role: 'user', content: input }] : listOf(input);
}

/**
 * What the model replied: the message of the reply, a message of Anthropic, or items; nothing without any of these.
 *
 * @param {Record<string, unknown>} reply
 * @returns {unknown[]}
 */
function replyOf(reply) {
  const { outputBodyJson } = objectOf(reply.output);
  for (const inner of [reply.body, outputBodyJson]) if (isObject(inner)) return replyOf(inner);
  const message = messageOf(reply);
  if (message !== undefined) return [message];
  if (reply.type === 'message' && reply.role === 'assistant') return [reply];
  return listOf(reply.output);
}

/**
 * The message that a reply has in a field of its own, by its API: Chat Completions, Converse or Gemini; undefined without one.
 *
 * @param {Record<string, unknown>} reply
 */
function messageOf({ choices, output, candidates }) {
  const { message } = objectOf(listOf(choices)[0]);
  if (isObject(message)) return message;
  return [objectOf(output).message, objectOf(listOf(candidates)[0]).content].find(isMessage);
}

/** @returns {Reader} */
function createReader() {
  /** @type {InstanceType<typeof OpenTraces<InstanceType<typeof TraceBuilder>>>} */
  const open = new OpenTraces();
  let conversation = 0;
  /** The place of the last message that stood alone in its array; null if it had a line of its own, undefined at first. */
  /** @type {number | null | undefined} */
  let last;
  return {
    *read(entry) {
      const { value, index, size } = entry;
      const standsAlone = isObject(value) && isMessage(value) && !isReply(value);
      // The elements of one array follow each other, and so do lines.
      const goesOn =
        standsAlone && (index === null ? last === null : typeof last === 'number' && index === last + 1);
      if (!goesOn) yield* open.take(String(conversation++));
      last = standsAlone ? index : undefined;
      if (standsAlone) {
        const builder = open.add(String(conversation), size, () => new TraceBuilder('openai-chat', entry));
        builder.size += size;
        // A message that cannot be read is named already.
        builder.isConversation = false;
        addMessage(builder, value);
        builder.isConversation = true;
      } else yield read(entry);
    },
    *end() {
      yield* open.takeAll();
    },
  };
}

/**
 * A whole reply of Anthropic looks like a message, and says more.
 *
 * @param {Record<string, unknown>} value
 */
const isReply = (value) =>
  value.type === 'message' && isObject(value.usage) && typeof value.model === 'string';

/** @param {Entry} entry */
function read(entry) {
  const { value } = entry;
  const builder = new TraceBuilder('openai-chat', entry);
  builder.size = entry.size;
  const record = Array.isArray(value) ? { messages: value } : objectOf(value);
  const messages = isReply(record) ? [record] : messagesOf(record);
  if (messages === undefined) throw new TypeError('it has no messages, and no items');
  addDetails(builder, record);
  const { body, request, response, input, output } = record;
  const { inputBodyJson } = objectOf(input);
  const { outputBodyJson } = objectOf(output);
  for (const each of [body, request, response, inputBodyJson, outputBodyJson])
    addDetails(builder, objectOf(each));
  for (const [at, message] of messages.entries()) {
    try {
      addMessage(builder, message);
    } catch (error) {
      if (!(error instanceof TypeError)) throw error;
      throw new TypeError(`messages[${at}]: ${error.message}`);
    }
  }
  return builder;
}

/**
 * @param {InstanceType<typeof TraceBuilder>} builder
 * @param {Record<string, unknown>} record
 */
function addDetails(builder, record) {
  for (const name of IDS) {
    const id = record[name];
    if (typeof id !== 'string' && typeof id !== 'number') continue;
    builder.ids.push(`${name} ${id}`);
    builder.keep(name, id);
  }
  for (const time of [record.created_at, record.created, record.timestamp]) {
    const number = numberOf(time);
    if (number === undefined) builder.at(time);
    else if (number > 0 && number < SECONDS * 1000)
      builder.at(new Date(number < SECONDS ? number * 1000 : number).toISOString());
  }
  builder.keep('model', stringOf(record.model) ?? stringOf(record.modelId) ?? stringOf(record.modelVersion));
  builder.keep('metadata', record.metadata);
  for (const prompt of [record.system, record.systemInstruction])
    if (prompt !== undefined) builder.system(prompt);
  if (typeof record.instructions === 'string') builder.system(record.instructions);
  builder.reward(record.reward);
  builder.outcome(record);
  builder.countUnknown(record, FIELDS);
}

module.exports = { createReader, messagesOf, name: /** @type {const} */ ('openai-chat'), recognises };

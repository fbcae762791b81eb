// Prints, as OTLP JSON in a line, the spans that the AI SDK of Vercel records of three runs with a model that is none: a text with a call
// of a tool, a conversation of two turns with a call each, and an object.
//
//     node capture-ai-sdk-spans.mjs FOLDER [legacy]
//
// FOLDER has the packages: ai, zod, @opentelemetry/api, @opentelemetry/resources, @opentelemetry/sdk-trace-node,
// @opentelemetry/otlp-transformer, and @ai-sdk/otel for version 7, which with `legacy` names attributes as the versions before it do.
//
// `ai-sdk-spans.jsonl` is what it printed with ai 4.3.19, 6.0.326 and 7.0.173 (with @ai-sdk/otel 1.0.173), and the latter with `legacy`
// (all Apache-2.0). No test runs it: the packages are not among those of this repository.

import { createRequire } from 'node:module';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

const [folder, legacy] = process.argv.slice(2);
const require = createRequire(path.join(path.resolve(folder), 'x.js'));
const load = (name) => import(pathToFileURL(require.resolve(name)));
const { resourceFromAttributes } = require('@opentelemetry/resources');
const {
  InMemorySpanExporter,
  NodeTracerProvider,
  SimpleSpanProcessor,
} = require('@opentelemetry/sdk-trace-node');
const { JsonTraceSerializer } = require('@opentelemetry/otlp-transformer');
const { trace } = require('@opentelemetry/api');

const memory = new InMemorySpanExporter();
const provider = new NodeTracerProvider({
  resource: resourceFromAttributes({ 'service.name': 'weather-agent' }),
  spanProcessors: [new SimpleSpanProcessor(memory)],
});
provider.register();

const version = Number.parseInt(require('ai/package.json').version, 10);
const ai = await load('ai');
const { generateObject, generateText, streamText, tool } = ai;
const test = await load('ai/test');
const { z } = await load('zod');
if (version >= 7) {
  const { LegacyOpenTelemetry, OpenTelemetry } = await load('@ai-sdk/otel');
  ai.registerTelemetry(legacy ? new LegacyOpenTelemetry() : new OpenTelemetry());
}
const MockModel = test[`MockLanguageModelV${version - 3}`];

const isOld = version === 4;
const usage =
  version >= 6
    ? { inputTokens: { total: 5 }, outputTokens: { total: 5 } }
    : isOld
      ? { promptTokens: 5, completionTokens: 5 }
      : { inputTokens: 5, outputTokens: 5, totalTokens: 10 };
const reasonOf = (unified) => (version >= 6 ? { unified, raw: unified } : unified);

/** A reply: what the model thinks, says and calls. */
function replyOf({ reasoning, text, call }) {
  const finishReason = reasonOf(call ? 'tool-calls' : 'stop');
  const input = JSON.stringify(call?.args);
  if (isOld) {
    const toolCalls = call && [
      { toolCallType: 'function', toolCallId: call.id, toolName: call.name, args: input },
    ];
    return { rawCall: { rawPrompt: null, rawSettings: {} }, finishReason, usage, text, reasoning, toolCalls };
  }
  const content = [];
  if (reasoning) content.push({ type: 'reasoning', text: reasoning });
  if (text) content.push({ type: 'text', text });
  if (call) content.push({ type: 'tool-call', toolCallId: call.id, toolName: call.name, input });
  return { finishReason, usage, content, warnings: [] };
}

/** The same in parts. */
function streamOf(reply) {
  const { finishReason, content = [], text, toolCalls = [] } = replyOf(reply);
  const parts = isOld
    ? [{ type: 'text-delta', textDelta: text }, ...toolCalls.map((call) => ({ type: 'tool-call', ...call }))]
    : [
        { type: 'stream-start', warnings: [] },
        ...content.flatMap((part, at) =>
          part.type === 'tool-call'
            ? [part]
            : [
                { type: `${part.type}-start`, id: `${at}` },
                { type: `${part.type}-delta`, id: `${at}`, delta: part.text },
                { type: `${part.type}-end`, id: `${at}` },
              ],
        ),
      ];
  const stream = ReadableStream.from([...parts, { type: 'finish', finishReason, usage }]);
  return isOld ? { rawCall: { rawPrompt: null, rawSettings: {} }, stream } : { stream };
}

/** A model that replies in turn. */
function modelOf(replies) {
  let next = 0;
  return new MockModel({
    provider: 'example',
    modelId: 'example-1',
    defaultObjectGenerationMode: 'json',
    doGenerate: async () => replyOf(replies[next++]),
    doStream: async () => streamOf(replies[next++]),
  });
}

const schema = z.object({ location: z.string() });
const tools = {
  get_weather: tool({
    description: 'The weather of a place.',
    [isOld ? 'parameters' : 'inputSchema']: schema,
    execute: async ({ location }) => ({ location, sky: location === 'Paris' ? 'rainy' : 'sunny' }),
  }),
};
const telemetry =
  version >= 7
    ? { telemetry: { functionId: 'weather' } }
    : { experimental_telemetry: { isEnabled: true, functionId: 'weather' } };
const steps = isOld ? { maxSteps: 3 } : { stopWhen: ai.stepCountIs(3) };
const system = { [version >= 7 ? 'instructions' : 'system']: 'Be brief.' };

const ask = (id, location) => ({
  text: 'I ask the tool.',
  call: { id, name: 'get_weather', args: { location } },
});

await generateText({
  ...{ ...telemetry, ...steps, ...system, tools, prompt: 'Weather in Paris?' },
  model: modelOf([
    { reasoning: 'The tool knows.', ...ask('call_1', 'Paris') },
    { text: 'It rains in Paris.' },
  ]),
});

await trace.getTracer('app').startActiveSpan('agent run', async (span) => {
  const model = modelOf([
    ask('call_2', 'Paris'),
    { text: 'It rains in Paris.' },
    ask('call_3', 'Rome'),
    { text: 'The sun shines in Rome.' },
  ]);
  const messages = [];
  for (const content of ['Weather in Paris?', 'And in Rome?']) {
    messages.push({ role: 'user', content });
    const result = streamText({
      ...{ ...telemetry, ...steps, ...system, tools, model },
      messages: [...messages],
    });
    await result.consumeStream();
    messages.push(...(await result.response).messages);
  }
  span.end();
});

await generateObject({
  ...{ ...telemetry, schema, prompt: 'Where does it rain?' },
  model: modelOf([{ text: '{"location":"Paris"}' }]),
});

await provider.forceFlush();
console.log(new TextDecoder().decode(JsonTraceSerializer.serializeRequest(memory.getFinishedSpans())));

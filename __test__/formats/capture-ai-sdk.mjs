// Prints, a line each, the messages of a UI and those of a model that the AI SDK of Vercel makes of one conversation: two calls of
// which one fails, one of a tool that is not known beforehand, and one that waits for the user.
//
// `ai-sdk.jsonl` is what it printed with ai 6.0.326 (Apache-2.0). No test runs it: the package is not among those of this repository.
import { dynamicTool, jsonSchema, readUIMessageStream, stepCountIs, streamText, tool } from 'ai';
import { MockLanguageModelV3, simulateReadableStream } from 'ai/test';

const usage = { inputTokens: { total: 5 }, outputTokens: { total: 5 } };
const text = (id, delta) => [
  { type: 'text-start', id },
  { type: 'text-delta', id, delta },
  { type: 'text-end', id },
];
const call = (toolCallId, toolName, input, rest) => ({
  ...{ type: 'tool-call', toolCallId, toolName, input: JSON.stringify(input) },
  ...rest,
});
const finish = (unified) => ({ type: 'finish', finishReason: { unified, raw: unified }, usage });
const replies = [
  [
    { type: 'reasoning-start', id: 'r' },
    { type: 'reasoning-delta', id: 'r', delta: 'The tool knows.' },
    { type: 'reasoning-end', id: 'r' },
    ...text('1', 'I ask the tool.'),
    call('call-1', 'getWeather', { city: 'Pariss' }),
    finish('tool-calls'),
  ],
  [
    call('call-2', 'getWeather', { city: 'Paris' }),
    call('call-3', 'lookUp', { word: 'rain' }, { dynamic: true }),
    finish('tool-calls'),
  ],
  [...text('2', 'It rains in Paris.'), call('call-4', 'book', { hotel: 'Ritz' }), finish('tool-calls')],
];
const inputSchema = jsonSchema({ type: 'object', properties: {} });
const tools = {
  getWeather: tool({
    inputSchema,
    execute: ({ city }) => {
      if (city !== 'Paris') throw new Error(`there is no ${city}`);
      return { sky: 'rain', degrees: 12 };
    },
  }),
  lookUp: dynamicTool({ inputSchema, execute: () => 'water that falls' }),
  book: tool({ inputSchema, needsApproval: true, execute: () => 'booked' }),
};
const prompt = 'What is the weather in Paris?';
let turn = 0;
const model = new MockLanguageModelV3({
  doStream: async () => ({ stream: simulateReadableStream({ chunks: replies[turn++] }) }),
});
const result = streamText({ model, prompt, tools, stopWhen: stepCountIs(3), onError: () => {} });
let last;
for await (const message of readUIMessageStream({ stream: result.toUIMessageStream({ sendSources: true }) }))
  last = message;
const user = { id: 'u-1', role: 'user', parts: [{ type: 'text', text: prompt }] };
console.log(JSON.stringify({ id: 'chat-1', messages: [user, { ...last, id: 'a-1' }] }));
const { messages } = await result.response;
console.log(JSON.stringify({ messages: [{ role: 'user', content: prompt }, ...messages] }));

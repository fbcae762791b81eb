'use strict';

const fs = require('node:fs');
const path = require('node:path');

const { Scorer } = require('..');
const { toTraces } = require('../formats.js');

const folder = path.join(__dirname, 'formats');

/** All that is read of an input. */
async function read(input, options) {
  const results = [];
  for await (const result of toTraces(input, options)) results.push(result);
  return results;
}

/** The only trace of an input. */
async function traceOf(input, options) {
  const [{ error, trace }, ...others] = await read(input, options);
  if (error) throw error;
  expect(others).toEqual([]);
  return trace;
}

/** The steps of a trace, each as its type and what novelty compares. */
const stepsOf = ({ steps }) => steps.map(({ type, content }) => [type, content]);

const jsonLines = (name) =>
  fs.readFileSync(path.join(folder, name), 'utf8').trim().split('\n').map(JSON.parse);

/** What `traceOf` must say of the conversation about the weather, with what the first call of the tool has failed with. */
function weather(failure) {
  return [
    ['thought', 'The tool knows.'],
    ['thought', 'I ask the tool.'],
    ['tool_call', 'getWeather\ncity: Pariss'],
    ['error_recovery', failure],
    ['error_recovery', 'getWeather\ncity: Paris'],
    ['observation', '{"sky":"rain","degrees":12}'],
    ['tool_call', 'lookUp\nword: rain'],
    ['observation', 'water that falls'],
    ['thought', 'It rains in Paris.'],
  ];
}

describe('toTraces of messages of the AI SDK', () => {
  const [ui, model] = jsonLines('ai-sdk.jsonl');

  test.each([
    ['a chat', ui],
    ['its messages in an array', [ui.messages]],
    ['its messages, one a line', ui.messages.map((each) => JSON.stringify(each)).join('\n')],
  ])('reads %s of a UI: every part is a step', async (_, input) => {
    const trace = await traceOf(input);
    expect(trace.task.objective).toBe('What is the weather in Paris?');
    expect(stepsOf(trace)).toEqual([...weather('An error occurred.'), ['tool_call', 'book\nhotel: Ritz']]);
    expect(trace.metadata.imported.left_out).toEqual({ 'step-start part': 3, 'call without a result': 1 });
    expect(trace.steps[2]).toMatchObject({ tool: { name: 'getWeather' }, input: { city: 'Pariss' } });
  });

  test('reads messages of a model: every part is a step', async () => {
    const trace = await traceOf(model);
    const steps = weather('there is no Pariss');
    // Both calls come before both results there.
    [steps[5], steps[6]] = [steps[6], steps[5]];
    expect(stepsOf(trace)).toEqual([...steps, ['tool_call', 'book\nhotel: Ritz']]);
    expect(trace.metadata.imported.left_out).toEqual({
      'tool-approval-request part': 1,
      'call without a result': 1,
    });
  });

  test('reads a call that the user has denied: it did not fail', async () => {
    const tool = { toolCallId: '1', input: { hotel: 'Ritz' } };
    const approval = { id: 'a', approved: false, reason: 'too dear' };
    const parts = [{ ...tool, type: 'tool-book', state: 'output-denied', approval }];
    const ofModel = [
      { role: 'assistant', content: [{ ...tool, type: 'tool-call', toolName: 'book' }] },
      {
        role: 'tool',
        content: [
          { type: 'tool-result', toolCallId: '1', output: { type: 'execution-denied', reason: 'too dear' } },
        ],
      },
    ];
    for (const messages of [[{ role: 'assistant', parts }], ofModel]) {
      expect(stepsOf(await traceOf({ messages }))).toEqual([
        ['tool_call', 'book\nhotel: Ritz'],
        ['observation', 'denied by the user: too dear'],
      ]);
    }
  });

  test('reads messages of version 4, whose text is in the content and in the parts', async () => {
    const invocation = { toolCallId: '1', toolName: 'read', args: { path: 'a' }, step: 0 };
    const results = [
      { ...invocation, state: 'result', result: { error: 'no such file' } },
      { ...invocation, toolCallId: '2', state: 'result', result: 'milk' },
      { ...invocation, toolCallId: '3', state: 'call' },
    ];
    const message = {
      id: '1',
      role: 'assistant',
      content: 'I read it.',
      createdAt: '2025-01-02T00:00:00.000Z',
    };
    const steps = [
      ['thought', 'I read it.'],
      ['tool_call', 'read\npath: a'],
      ['error_recovery', '{"error":"no such file"}'],
      ['error_recovery', 'read\npath: a'],
      ['observation', 'milk'],
      ['tool_call', 'read\npath: a'],
    ];
    const parts = [
      { type: 'reasoning', reasoning: 'Where?', details: [] },
      { type: 'text', text: 'I read it.' },
      ...results.map((toolInvocation) => ({ type: 'tool-invocation', toolInvocation })),
      { type: 'source', source: { url: 'https://example.com' } },
    ];
    const withParts = await traceOf({ messages: [{ ...message, parts }] });
    expect(stepsOf(withParts)).toEqual([['thought', 'Where?'], ...steps]);
    expect(withParts.metadata.created_at).toBe(message.createdAt);
    expect(stepsOf(await traceOf({ messages: [{ ...message, toolInvocations: results }] }))).toEqual(steps);
  });
});

describe('toTraces of conversations with the Converse API of Bedrock', () => {
  const request = {
    modelId: 'example.model-v1:0',
    system: [{ text: 'prompt' }],
    inferenceConfig: { maxTokens: 512 },
    messages: [
      {
        role: 'user',
        content: [{ text: 'What is the weather in Paris?' }, { cachePoint: { type: 'default' } }],
      },
      {
        role: 'assistant',
        content: [
          { reasoningContent: { reasoningText: { text: 'The tool knows.', signature: 'x' } } },
          { text: 'I ask the tool.' },
          { toolUse: { toolUseId: '1', name: 'getWeather', input: { city: 'Pariss' } } },
        ],
      },
      {
        role: 'user',
        content: [{ toolResult: { toolUseId: '1', content: [{ text: 'not a city' }], status: 'error' } }],
      },
      {
        role: 'assistant',
        content: [
          { reasoningContent: { redactedContent: 'AAAA' } },
          { toolUse: { toolUseId: '2', name: 'getWeather', input: { city: 'Paris' } } },
        ],
      },
      {
        role: 'user',
        content: [
          {
            toolResult: {
              toolUseId: '2',
              content: [{ json: { sky: 'rain' } }, { image: { format: 'png', source: { bytes: 'AAAA' } } }],
              status: 'success',
            },
          },
        ],
      },
    ],
  };
  const response = {
    output: {
      message: {
        role: 'assistant',
        content: [{ citationsContent: { content: [{ text: 'It rains.' }], citations: [] } }],
      },
    },
    ...{ stopReason: 'end_turn', usage: { totalTokens: 42 }, metrics: { latencyMs: 302 } },
  };
  const log = {
    ...{ schemaType: 'ModelInvocationLog', schemaVersion: '1.0', timestamp: '2026-01-02T00:00:00Z' },
    ...{ accountId: '1', region: 'us-east-1', requestId: 'r-1', operation: 'Converse' },
    modelId: 'example.model-v1:0',
    input: { inputContentType: 'application/json', inputBodyJson: request, inputTokenCount: 4 },
    output: { outputContentType: 'application/json', outputBodyJson: response, outputTokenCount: 38 },
  };

  test.each([
    ['a request with its response', { ...request, ...response }],
    ['a request and its response', { request, response }],
    ['a record of the invocation log', log],
  ])('reads %s: every block is a step', async (_, record) => {
    const trace = await traceOf(record);
    expect(trace.task.objective).toBe('What is the weather in Paris?');
    expect(stepsOf(trace)).toEqual([
      ['thought', 'The tool knows.'],
      ['thought', 'I ask the tool.'],
      ['tool_call', 'getWeather\ncity: Pariss'],
      ['error_recovery', 'not a city'],
      ['error_recovery', 'getWeather\ncity: Paris'],
      ['observation', '{"sky":"rain"}\n[image]'],
      ['thought', 'It rains.'],
    ]);
    expect(trace.metadata.imported).toMatchObject({ model: 'example.model-v1:0' });
    expect(trace.metadata.imported.left_out).toEqual({
      ...{ 'system message': 1, 'cachePoint part': 1, 'encrypted reasoning': 1, 'image part': 1 },
    });
    const { dimensions } = await new Scorer({ embedder: null }).explain(trace);
    expect(dimensions.toolDiversity).toBeGreaterThan(0);
  });

  test('reads a response alone, and messages that stand alone', async () => {
    expect(stepsOf(await traceOf(response))).toEqual([['thought', 'It rains.']]);
    const lines = request.messages.map((message) => JSON.stringify(message)).join('\n');
    expect(stepsOf(await traceOf(lines))).toHaveLength(6);
  });
});

test('toTraces reads a conversation with Gemini: every part is a step', async () => {
  const record = {
    systemInstruction: { parts: [{ text: 'prompt' }] },
    contents: [
      { role: 'user', parts: [{ text: 'What is the weather in Paris?' }] },
      {
        role: 'model',
        parts: [
          { text: 'The tool knows.', thought: true },
          { functionCall: { name: 'getWeather', args: { city: 'Paris' } }, thoughtSignature: 'AAAA' },
        ],
      },
      { role: 'user', parts: [{ functionResponse: { name: 'getWeather', response: { sky: 'rain' } } }] },
    ],
    response: { candidates: [{ content: { role: 'model', parts: [{ text: 'It rains.' }] } }] },
  };
  const trace = await traceOf(record);
  expect(trace.task.objective).toBe('What is the weather in Paris?');
  expect(stepsOf(trace)).toEqual([
    ['thought', 'The tool knows.'],
    ['tool_call', 'getWeather\ncity: Paris'],
    ['observation', '{"sky":"rain"}'],
    ['thought', 'It rains.'],
  ]);
  expect(trace.metadata.imported.left_out).toEqual({ 'system message': 1 });
});

test('toTraces counts a part of a message that it does not know', async () => {
  const trace = await traceOf([
    [{ role: 'assistant', content: [{ text: 'Hm' }, { widget: { colour: 'red' } }] }],
  ]);
  expect(stepsOf(trace)).toEqual([['thought', 'Hm\n{"widget":{"colour":"red"}}']]);
  expect(trace.metadata.imported.left_out).toEqual({ 'part of an unknown kind': 1 });
});

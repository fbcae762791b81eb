// node record.mjs FOLDER NAME…: writes what frameworks in TypeScript make of a run, by the names of the functions, as the folders in agents/
// have it. A server in this process is the model. ai 6.0.326 (aiSdk7: 7.0.173 with @ai-sdk/devtools 0.0.24) with @ai-sdk/openai-compatible 2, @openai/agents 0.20.0, langchain 1.5.14 with
// @langchain/openai, genkit 1.42.0 with @genkit-ai/compat-oai, @voltagent/core 2.10.0, @mastra/core 1.71.0 with libsql 1.23, memory and
// observability (Node 24), llamaindex 0.12.1 with @llamaindex/openai and workflow, @inngest/agent-kit 0.13.2.
import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { z } from 'zod';

const OUT = process.argv[2];
const TASK = 'How deep is the Elbe in Dresden?';
const TURNS = [
  { thought: 'Ask the gauge.', text: 'Let me see.', call: { river: 'Elbe' } },
  { text: 'Once more.', call: { river: 'Elbe', place: 'Dresden' } },
  { text: 'The Elbe is 2.1 m deep in Dresden.' },
];

const schema = z.object({ river: z.string(), place: z.string().nullish() });
const depth = ({ place }) => {
  if (!place) throw new Error('name a place');
  return { depth: '2.1 m' };
};

function write(name, value) {
  const file = path.join(OUT, name);
  fs.mkdirSync(path.dirname(file), { recursive: true });
  const text = typeof value === 'string' ? value : `${JSON.stringify(value)}\n`;
  fs.writeFileSync(file, text.replace(/(\\n +at [^"\\]+)+/g, ''));
}

async function writeAll(name, events, isKept = () => true) {
  let lines = '';
  for await (const event of events) if (isKept(event)) lines += `${JSON.stringify(event)}\n`;
  write(name, lines);
}

const ofChat = ({ thought, text, call }, id) => ({
  role: 'assistant',
  content: text ?? '',
  ...(thought && { reasoning_content: thought }),
  ...(call && {
    tool_calls: [
      { index: 0, id, type: 'function', function: { name: 'depth', arguments: JSON.stringify(call) } },
    ],
  }),
});

const ofResponses = ({ thought, text, call }, id) => [
  ...(thought
    ? [{ type: 'reasoning', id: `r${id}`, summary: [{ type: 'summary_text', text: thought }] }]
    : []),
  ...(text
    ? [
        {
          type: 'message',
          id: `m${id}`,
          role: 'assistant',
          content: [{ type: 'output_text', text, annotations: [] }],
        },
      ]
    : []),
  ...(call
    ? [{ type: 'function_call', id: `f${id}`, call_id: id, name: 'depth', arguments: JSON.stringify(call) }]
    : []),
];

const server = http.createServer(async (request, response) => {
  let body = '';
  for await (const chunk of request) body += chunk;
  const { messages, input, stream } = JSON.parse(body);
  const isResult = ({ role, type }) => role === 'tool' || type === 'function_call_output';
  const at = (messages ?? input).filter(isResult).length;
  const [turn, id] = [TURNS[at], `c${at + 1}`];
  const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 };
  const finish_reason = turn.call ? 'tool_calls' : 'stop';
  if (stream) {
    const delta = (delta, finish_reason = null) =>
      `data: ${JSON.stringify({ id, object: 'chat.completion.chunk', choices: [{ index: 0, delta, finish_reason }] })}\n\n`;
    response.setHeader('content-type', 'text/event-stream');
    response.end(`${delta(ofChat(turn, id))}${delta({}, finish_reason)}data: [DONE]\n\n`);
  } else {
    const reply = messages
      ? { id, choices: [{ index: 0, message: ofChat(turn, id), finish_reason }], usage }
      : { id, object: 'response', status: 'completed', output: ofResponses(turn, id), usage };
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify(reply));
  }
});
await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
const baseURL = `http://127.0.0.1:${server.address().port}/v1`;
const tell = { name: 'depth', description: 'Says how deep a river is.' };

/** The model as the AI SDK takes it. */
async function compatibleModel() {
  const { createOpenAICompatible } = await import('@ai-sdk/openai-compatible');
  return createOpenAICompatible({ name: 'script', baseURL })('script');
}

/** The options of the AI SDK but for the prompt. */
async function optionsOfAiSdk() {
  const { stepCountIs, tool } = await import('ai');
  const tools = { depth: tool({ inputSchema: schema, execute: depth }) };
  return { model: await compatibleModel(), tools, stopWhen: stepCountIs(5) };
}

async function aiSdk() {
  const { generateText, streamText } = await import('ai');
  const options = { ...(await optionsOfAiSdk()), prompt: TASK };
  write('openai-chat-typescript/ai-sdk.json', await generateText(options));
  await writeAll('streams/ai-sdk.jsonl', streamText(options).fullStream);
}

async function aiSdk7() {
  const { generateText, wrapLanguageModel } = await import('ai');
  const { devToolsMiddleware } = await import('@ai-sdk/devtools');
  const options = { ...(await optionsOfAiSdk()), prompt: TASK };
  const result = await generateText(options);
  write('openai-chat-turns/ai-sdk-7.json', result);
  write('openai-chat-turns/ai-sdk-7-steps.json', result.steps);
  const model = wrapLanguageModel({ model: options.model, middleware: devToolsMiddleware() });
  await generateText({ ...options, model });
  await new Promise((resolve) => setTimeout(resolve, 1000));
  write('openai-chat-turns/devtools.json', fs.readFileSync('.devtools/generations.json', 'utf8'));
}

async function aiSdkSpans() {
  const { generateText } = await import('ai');
  const { JsonTraceSerializer } = await import('@opentelemetry/otlp-transformer');
  const { InMemorySpanExporter, NodeTracerProvider, SimpleSpanProcessor } = await import(
    '@opentelemetry/sdk-trace-node'
  );
  const exporter = new InMemorySpanExporter();
  new NodeTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }).register();
  const image =
    'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
  const content = [
    { type: 'text', text: TASK },
    { type: 'image', image },
  ];
  await generateText({
    ...(await optionsOfAiSdk()),
    messages: [{ role: 'user', content }],
    experimental_telemetry: { isEnabled: true },
  });
  const bytes = JsonTraceSerializer.serializeRequest(exporter.getFinishedSpans());
  write('otel-ai-sdk/spans.json', `${Buffer.from(bytes)}\n`);
}

async function openaiAgents() {
  const { Agent, OpenAIChatCompletionsModel, run, tool } = await import('@openai/agents');
  const { default: OpenAI } = await import('openai');
  const model = new OpenAIChatCompletionsModel(new OpenAI({ apiKey: 'none', baseURL }), 'script');
  const tools = [tool({ ...tell, parameters: schema, execute: depth })];
  const agent = new Agent({ name: 'Gauge', model, tools });
  const result = await run(agent, TASK);
  write('openai-chat-typescript/openai-agents-state.json', result.state.toString());
  write('openai-chat-typescript/openai-agents-history.json', result.history);
  await writeAll('streams/openai-agents.jsonl', await run(agent, TASK, { stream: true }));
}

async function langchain() {
  const { createAgent, tool } = await import('langchain');
  const { MemorySaver } = await import('@langchain/langgraph');
  const { ChatOpenAI } = await import('@langchain/openai');
  const tools = [tool(depth, { ...tell, schema })];
  const options = { model: 'script', apiKey: 'none', configuration: { baseURL } };
  const messages = [{ role: 'user', content: TASK }];
  const responses = createAgent({ model: new ChatOpenAI({ ...options, useResponsesApi: true }), tools });
  write('langchain-typescript/messages.json', (await responses.invoke({ messages })).messages);
  const checkpointer = new MemorySaver();
  const configurable = { thread_id: 'river' };
  await createAgent({ model: new ChatOpenAI(options), tools, checkpointer }).invoke(
    { messages },
    { configurable },
  );
  await writeAll('langchain-typescript/checkpoints.jsonl', checkpointer.list({ configurable }, { limit: 2 }));
  const chat = createAgent({ model: new ChatOpenAI(options), tools });
  const isKept = ({ event }) => !/^on_(chain_(stream|end)|chat_model_s)/.test(event);
  await writeAll('streams/langgraph-js.jsonl', chat.streamEvents({ messages }, { version: 'v2' }), isKept);
  const streamMode = ['updates', 'messages'];
  await writeAll('streams/langgraph-js-modes.jsonl', await chat.stream({ messages }, { streamMode }));
}

async function genkit() {
  const { genkit } = await import('genkit');
  const { openAICompatible } = await import('@genkit-ai/compat-oai');
  const ai = genkit({ plugins: [openAICompatible({ name: 'script', apiKey: 'none', baseURL })] });
  const failing = async (input) => {
    try {
      return depth(input);
    } catch (error) {
      return { error: error.message };
    }
  };
  const tools = [ai.defineTool({ ...tell, inputSchema: schema }, failing)];
  const reply = await ai.generate({ model: 'script/script', prompt: TASK, tools });
  write('openai-chat-typescript/genkit.json', reply.toJSON());
}

async function voltAgent() {
  const { Agent, InMemoryStorageAdapter, Memory, createTool } = await import('@voltagent/core');
  const memory = new Memory({ storage: new InMemoryStorageAdapter() });
  const model = await compatibleModel();
  const tools = [createTool({ ...tell, parameters: schema, execute: async (input) => depth(input) })];
  const agent = new Agent({ name: 'Gauge', instructions: 'You know rivers.', model, tools, memory });
  await agent.generateText(TASK, { userId: 'mia', conversationId: 'river' });
  await new Promise((resolve) => setTimeout(resolve, 2000));
  write('openai-chat-typescript/voltagent.json', await memory.getMessages('mia', 'river'));
}

async function mastra() {
  const { Agent } = await import('@mastra/core/agent');
  const { Mastra } = await import('@mastra/core');
  const { createTool } = await import('@mastra/core/tools');
  const { LibSQLStore } = await import('@mastra/libsql');
  const { Memory } = await import('@mastra/memory');
  const { DefaultExporter, Observability } = await import('@mastra/observability');
  const { DatabaseSync } = await import('node:sqlite');
  const spans = [];
  const exporter = { name: 'list', init() {}, async flush() {}, async shutdown() {} };
  exporter.exportTracingEvent = async ({ type, exportedSpan: { requestContext, ...span } }) => {
    if (type === 'span_ended' && !/memory|processor|chunk/.test(span.type)) spans.push(span);
  };
  const model = await compatibleModel();
  const tools = {
    depth: createTool({ ...tell, id: 'depth', inputSchema: schema, execute: async (input) => depth(input) }),
  };
  const storage = new LibSQLStore({ id: 'river', url: 'file:mastra.db' });
  const memory = new Memory({ storage });
  const gauge = new Agent({
    id: 'gauge',
    name: 'Gauge',
    instructions: 'You know rivers.',
    model,
    tools,
    memory,
  });
  const exporters = [exporter, new DefaultExporter()];
  const configs = { default: { serviceName: 'river', exporters } };
  const observability = new Observability({ configs });
  const agent = new Mastra({ agents: { gauge }, storage, observability }).getAgent('gauge');
  await agent.generate(TASK, { memory: { thread: 'river', resource: 'mia' } });
  await new Promise((resolve) => setTimeout(resolve, 2000));
  await writeAll('mastra/spans.jsonl', spans);
  await new Promise((resolve) => setTimeout(resolve, 6000));
  const store = await storage.getStore('observability');
  const trace = await store.getTrace({ traceId: spans[0].traceId });
  const isSaid = ({ spanType }) => !/memory|processor/.test(spanType);
  const said = trace.spans.filter(isSaid).map(({ requestContext, metadata, attributes, ...span }) => span);
  write('mastra/trace.json', { ...trace, spans: said });
  const database = new DatabaseSync('mastra.db');
  const [{ sql }] = database.prepare("SELECT sql FROM sqlite_master WHERE name = 'mastra_messages'").all();
  const quoted = (value) => `'${value.replaceAll("'", "''")}'`;
  const rows = database.prepare('SELECT * FROM mastra_messages').all();
  const inserts = rows.map(
    (row) => `INSERT INTO mastra_messages VALUES (${Object.values(row).map(quoted)});\n`,
  );
  write('openai-chat-typescript/mastra.db.sql', `${sql};\n${inserts.join('')}`);
}

async function llamaIndex() {
  const { agent } = await import('@llamaindex/workflow');
  const { OpenAI } = await import('@llamaindex/openai');
  const { createMemory, tool } = await import('llamaindex');
  const memory = createMemory();
  const llm = new OpenAI({ model: 'gpt-4o', apiKey: 'none', baseURL });
  const tools = [tool({ ...tell, parameters: schema, execute: depth })];
  await agent({ llm, tools, memory }).run(TASK);
  write('openai-chat-typescript/llamaindex.json', await memory.get());
  const events = agent({ llm, tools }).runStream(TASK);
  const data = (async function* () {
    for await (const event of events) yield event.data;
  })();
  await writeAll('streams/llama-index-js.jsonl', data);
}

async function agentKit() {
  const { createAgent, createNetwork, createTool, openai } = await import('@inngest/agent-kit');
  const tools = [createTool({ ...tell, parameters: schema, handler: async (input) => depth(input) })];
  const model = openai({ model: 'script', apiKey: 'none', baseUrl: baseURL });
  const agent = createAgent({ name: 'Gauge', system: 'You know rivers.', tools, model });
  const router = ({ callCount }) => (callCount < TURNS.length ? agent : undefined);
  const { state } = await createNetwork({ name: 'Rivers', agents: [agent], router }).run(TASK);
  const results = state.results.map((result) => result.export());
  await writeAll('openai-chat-typescript/agentkit.jsonl', results);
  write('openai-chat-typescript/agentkit-state.json', state);
}

const recordings = {
  mastra,
  llamaIndex,
  agentKit,
  aiSdk,
  aiSdk7,
  aiSdkSpans,
  openaiAgents,
  langchain,
  genkit,
  voltAgent,
};
for (const name of process.argv.slice(3)) await recordings[name]();
process.exit();

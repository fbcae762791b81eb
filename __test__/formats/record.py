"""python3 record.py FOLDER NAME...: writes what frameworks store of a run with a scripted model, by the names of the functions, as the
folders in agents/ have it. `npm run check:fix` lays out their JSON.

pydantic-ai-slim 2.68.0, openai-agents 0.24.0, google-adk[db] 2.13.0, autogen-agentchat 0.7.5, smolagents 1.26.0,
langgraph-checkpoint-sqlite 3.1.2 with langgraph 1.2.24 and langchain-openai 1.7.4, strands-agents[openai] 1.62.0, datasets 5.2.0 with teich 0.3.6, dspy 3.4.1, agno 3.1.10, mlflow 3.17.2,
openai 3.57.0, crewai 1.15.30, llama-index-core 0.14.25 with llama-index-llms-openai-like 0.8.1, posthog 7.91.1, llm 0.36, google-genai 3.6.1.
For `spans_of_google_adk` google-adk 1.14.1, for `traced_langgraph` openinference-instrumentation-langchain 0.1.80, for `traced_smolagents` openinference-instrumentation-smolagents 0.1.43, for `traced_dspy` -dspy 0.1.48, for `spans_of_openai` -openai 0.1.66, for `traced_autogen` -autogen-agentchat 0.1.22; all with opentelemetry-sdk.
For `agno_older` agno 2.1.0.
"""

import asyncio, inspect, json, os, re, sqlite3, sys
from pathlib import Path

OUT = Path(sys.argv[1])
TASK = "How deep is the Elbe in Dresden?"
ANSWER = "The Elbe is 2.1 m deep in Dresden."
CALLS = [{"river": "Elbe"}, {"river": "Elbe", "place": "Dresden"}]


def depth(river: str, place: str = "") -> str:
    """Says how deep a river is.

    Args:
        river: The river.
        place: The place.
    """
    if not place:
        raise ValueError("name a place")
    return "2.1 m"


def write(name, text):
    (OUT / name).parent.mkdir(parents=True, exist_ok=True)
    (OUT / name).write_text(text + "\n")


def dump(name, path):
    """Writes a database as the statements that make it."""
    with sqlite3.connect(path) as database:
        write(name, "\n".join(["PRAGMA foreign_keys = OFF;", *database.iterdump()]))
    os.unlink(path)


def pydantic_ai():
    from pydantic_ai import Agent, ModelRetry
    from pydantic_ai.messages import ModelResponse, TextPart, ThinkingPart, ToolCallPart
    from pydantic_ai.models.function import FunctionModel

    replies = iter([
        [ThinkingPart("Ask the gauge."), ToolCallPart("depth", CALLS[0], "c1")],
        [TextPart("Once more."), ToolCallPart("depth", json.dumps(CALLS[1]), "c2")],
        [TextPart(ANSWER)],
    ])
    agent = Agent(FunctionModel(lambda messages, info: ModelResponse(next(replies))), instructions="You know rivers.")

    @agent.tool_plain(name="depth")
    def tool(river: str, place: str = "") -> str:
        try:
            return depth(river, place)
        except ValueError as error:
            raise ModelRetry(str(error))

    write("pydantic-ai/messages.json", agent.run_sync(TASK).all_messages_json().decode())


async def openai_agents():
    from agents import Agent, OpenAIChatCompletionsModel, Runner, SQLiteSession, function_tool, set_trace_processors
    from agents.tracing import TracingProcessor
    from openai import AsyncOpenAI

    class Keep(TracingProcessor):
        lines = []
        on_trace_start = lambda self, trace: self.lines.append(json.dumps(trace.export()))
        on_span_end = lambda self, span: self.lines.append(json.dumps(span.export()))
        on_trace_end = on_span_start = lambda self, _: None
        shutdown = force_flush = lambda self, *_: None

    set_trace_processors([Keep()])
    session = SQLiteSession("river-1", "river.db")
    model = OpenAIChatCompletionsModel("script", AsyncOpenAI(api_key="none", http_client=scripted_client(is_async=True)))
    agent = Agent(name="Gauge", instructions="You know rivers.", model=model, tools=[function_tool(depth)])
    result = await Runner.run(agent, TASK, session=session)
    session.close()
    write("openai-chat-session/state.json", result.to_state().to_string())
    items = [{"type": item.type, "raw_item": item.to_input_item()} for item in result.new_items]
    row = {"input": result.input, "new_items": items, "final_output": result.final_output}
    write("openai-chat-session/result.json", json.dumps(row))
    dump("openai-chat-session/session.db.sql", "river.db")
    write("openai-agents/spans.jsonl", "\n".join(Keep.lines))


def call_of_google(at):
    from google.genai import types

    return types.Part(function_call=types.FunctionCall(name="depth", args=CALLS[at]))


def agent_of_google(replies):
    from google.adk.agents import LlmAgent
    from google.adk.models import BaseLlm, LlmResponse
    from google.genai import types

    class Script(BaseLlm):
        async def generate_content_async(self, request, stream=False):
            yield LlmResponse(content=types.Content(role="model", parts=next(replies)))

    def safe(river: str, place: str = "") -> dict:
        try:
            return {"status": "success", "depth": depth(river, place)}
        except ValueError as error:
            return {"status": "error", "error_message": str(error)}

    safe.__name__ = "depth"
    return LlmAgent(name="gauge", model=Script(model="script"), tools=[safe])


async def run_of_google(runner):
    from google.genai import types

    await runner.session_service.create_session(app_name="rivers", user_id="u", session_id="river-1")
    message = types.Content(role="user", parts=[types.Part(text=TASK)])
    async for _ in runner.run_async(user_id="u", session_id="river-1", new_message=message):
        pass


async def google_adk():
    from google.adk.runners import Runner
    from google.adk.sessions import DatabaseSessionService
    from google.adk.sessions.schemas import v0
    from google.adk.sessions.sqlite_session_service import SqliteSessionService
    from google.genai import types
    from sqlalchemy import create_engine

    thought = types.Part(text="Ask the gauge.", thought=True)
    replies = iter([[thought, call_of_google(0)], [types.Part(text="Once more."), call_of_google(1)], [types.Part(text=ANSWER)]])

    service = SqliteSessionService("adk.db")
    await run_of_google(Runner(agent=agent_of_google(replies), app_name="rivers", session_service=service))
    session = await service.get_session(app_name="rivers", user_id="u", session_id="river-1")
    write("google-adk/session.json", session.model_dump_json(by_alias=True, exclude_none=True))
    write("google-adk/session-snake.json", session.model_dump_json())
    dump("google-adk/sessions.db.sql", "adk.db")
    for schema in ["v0", "v1"]:
        if schema == "v0":
            v0.Base.metadata.create_all(create_engine("sqlite:///adk.db"))
        service = DatabaseSessionService("sqlite+aiosqlite:///adk.db")
        copy = await service.create_session(app_name="rivers", user_id="u", session_id="river-1")
        for event in session.events:
            await service.append_event(copy, event)
        dump(f"google-adk/database-{schema}.db.sql", "adk.db")


async def autogen():
    from autogen_agentchat.agents import AssistantAgent
    from autogen_agentchat.conditions import MaxMessageTermination
    from autogen_agentchat.teams import RoundRobinGroupChat
    from autogen_core import FunctionCall
    from autogen_core.models import CreateResult, RequestUsage
    from autogen_ext.models.replay import ReplayChatCompletionClient

    def reply(content, thought=None):
        usage = RequestUsage(prompt_tokens=1, completion_tokens=1)
        return CreateResult(finish_reason="stop", content=content, usage=usage, cached=False, thought=thought)

    def call(at):
        return [FunctionCall(id=f"c{at}", name="depth", arguments=json.dumps(CALLS[at]))]

    replies = [reply(call(0), "Ask the gauge."), reply(call(1)), reply(ANSWER)]
    information = {"function_calling": True, "vision": False, "json_output": False, "family": "unknown", "structured_output": False}
    client = ReplayChatCompletionClient(replies, model_info=information)
    agent = AssistantAgent("gauge", client, tools=[depth], max_tool_iterations=3)
    team = RoundRobinGroupChat([agent], termination_condition=MaxMessageTermination(2))
    result = await team.run(task=TASK)
    write("autogen/result.json", json.dumps(result.model_dump(mode="json")))
    write("autogen/messages.jsonl", "\n".join(message.model_dump_json() for message in result.messages))
    write("autogen/team.json", json.dumps(await team.save_state()))
    # An agent that is a tool of another one.
    from autogen_agentchat.tools import AgentTool

    def agent_of(name, tool, replies):
        client = ReplayChatCompletionClient(replies, model_info=information)
        return AssistantAgent(name, client, tools=[tool], max_tool_iterations=3)

    inner = agent_of("gauge", depth, [reply(call(1)), reply(ANSWER)])
    asked = FunctionCall(id="c9", name="gauge", arguments=json.dumps({"task": "Measure the Elbe."}))
    outer = agent_of("rivers", AgentTool(inner), [reply([asked], "Ask the gauge."), reply(ANSWER)])
    messages = (await outer.run(task=TASK)).messages
    write("autogen/tool.jsonl", "\n".join(message.model_dump_json() for message in messages))


def smolagents():
    from smolagents import CodeAgent, ToolCallingAgent, tool
    from smolagents.models import ChatMessage, ChatMessageToolCall, ChatMessageToolCallFunction, MessageRole, Model

    class Script(Model):
        def __init__(self, replies):
            super().__init__()
            self.replies = iter(replies)

        def generate(self, messages, **rest):
            text, *calls = next(self.replies)
            calls = [
                ChatMessageToolCall(id=f"c{at}", type="function", function=ChatMessageToolCallFunction(name=name, arguments=arguments))
                for at, (name, arguments) in enumerate(calls)
            ]
            return ChatMessage(role=MessageRole.ASSISTANT, content=text, tool_calls=calls or None)

    of_tools = [("Ask.", ("depth", CALLS[0])), ("Once more.", ("depth", CALLS[1])), ("", ("final_answer", {"answer": ANSWER}))]
    codes = ["depth(river='Elbe')", "print(depth(river='Elbe', place='Dresden'))", f"final_answer('{ANSWER}')"]
    of_code = [(f"Thought: ask.\n<code>\n{code}\n</code>",) for code in codes]
    for name, kind, replies in [("tools", ToolCallingAgent, of_tools), ("code", CodeAgent, of_code)]:
        agent = kind(tools=[tool(depth)], model=Script(replies), verbosity_level=0)
        agent.run(TASK)
        steps = agent.memory.get_succinct_steps()
        write(f"smolagents/{name}.json", json.dumps(steps, default=str))
    write("smolagents/row.json", json.dumps({"task": TASK, "agent_memory": steps}, default=str))
    from datasets import Dataset

    of_tools = json.loads((OUT / "smolagents/tools.json").read_text())
    Dataset.from_list([{"task": TASK, "agent_memory": of_tools}]).to_json(OUT / "smolagents/table.jsonl")


def react_agent(is_whole=False, **settings):
    """Returns LangGraph's agent with the scripted model, which gives its replies in a stream unless `is_whole`."""
    from langchain_openai import ChatOpenAI
    from langgraph.prebuilt import ToolNode, create_react_agent

    clients = {"http_client": scripted_client(), "http_async_client": scripted_client(is_async=True)}
    model = ChatOpenAI(model="script", api_key="none", disable_streaming=is_whole, **clients)
    return create_react_agent(model, ToolNode([depth], handle_tool_errors=lambda error: f"Error: {error}"), **settings)


def langgraph():
    from langchain_core.messages import RemoveMessage
    from langgraph.checkpoint.sqlite import SqliteSaver

    at = {"configurable": {"thread_id": "river-1"}}
    for name in ["checkpoints", "removed"]:
        with SqliteSaver.from_conn_string("graph.db") as saver:
            graph = react_agent(checkpointer=saver)
            messages = graph.invoke({"messages": [("user", TASK)]}, at)["messages"]
            if name == "removed":
                # A graph that sums up takes messages away.
                graph.update_state(at, {"messages": [RemoveMessage(message.id) for message in messages[:-1]]})
        dump(f"langchain-checkpoints/{name}.db.sql", "graph.db")


async def streams():
    from langgraph.checkpoint.memory import InMemorySaver

    graph, whole = react_agent(), react_agent(is_whole=True)
    given = {"messages": [("user", TASK)]}
    plain = lambda value: value.model_dump() if hasattr(value, "model_dump") else str(value)
    lines = lambda rows: "\n".join(json.dumps(row, default=plain) for row in rows)
    saved = react_agent(checkpointer=InMemorySaver())
    debugged = saved.stream(given, {"configurable": {"thread_id": "river-1"}}, stream_mode="debug")
    write("streams/checkpoints.jsonl", lines(debugged))
    for mode in ["messages", "debug"]:
        write(f"streams/{mode}.jsonl", lines(graph.stream(given, stream_mode=mode)))
    write("langchain-stream/whole.jsonl", lines(whole.stream(given, stream_mode="messages")))
    write("streams/modes.jsonl", lines(graph.stream(given, stream_mode=["messages", "values"])))
    kinds = ["on_chain_start", "on_chat_model_stream", "on_chat_model_end", "on_tool_end", "on_tool_error"]
    events = [event async for event in graph.astream_events(given) if event["event"] in kinds]
    write("streams/events.jsonl", lines(events))


def printed_spans():
    """Returns a tracer provider, and a function that returns its spans as its kit prints them, without the folders of this machine."""
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    lines = lambda: "\n".join(span.to_json(indent=None) for span in exporter.get_finished_spans())
    return provider, lambda: re.sub(r"/[\w./-]*/(?=\w+\.py)", "", lines())


def spans_of_openai():
    """Writes spans of a program that asks the model and calls the tools itself, each in a trace of its own."""
    from openai import OpenAI
    from openinference.instrumentation.openai import OpenAIInstrumentor

    provider, printed = printed_spans()
    OpenAIInstrumentor().instrument(tracer_provider=provider)
    client = OpenAI(api_key="none", http_client=scripted_client())
    converse(lambda messages: client.chat.completions.create(model="script", messages=messages))
    write("otel-openai/spans.jsonl", printed())


def traced_langgraph():
    from langchain_core.tracers.run_collector import RunCollectorCallbackHandler
    from openinference.instrumentation.langchain import LangChainInstrumentor

    given, runs = {"messages": [("user", TASK)]}, RunCollectorCallbackHandler()
    react_agent().invoke(given, {"callbacks": [runs]})
    write("langsmith-tree/run.json", runs.traced_runs[0].model_dump_json(exclude_none=True))
    provider, printed = printed_spans()
    LangChainInstrumentor().instrument(tracer_provider=provider)
    react_agent().invoke(given)
    write("otel-langchain/spans.jsonl", printed())


def traced_smolagents():
    from openinference.instrumentation.smolagents import SmolagentsInstrumentor
    from smolagents import OpenAIServerModel, ToolCallingAgent, tool

    provider, printed = printed_spans()
    SmolagentsInstrumentor().instrument(tracer_provider=provider)
    model = OpenAIServerModel("script", api_key="none", client_kwargs={"http_client": scripted_client()})
    agent = ToolCallingAgent(tools=[tool(depth)], model=model, verbosity_level=0)
    agent.prompt_templates["system_prompt"] = "You know rivers."
    agent.run(TASK)
    spans = [json.loads(line) for line in printed().splitlines()]
    for span in spans:
        kept = lambda name: not name.startswith(("llm.tools", "tool.", "smolagents.")) or name == "tool.name"
        span["attributes"] = {name: value for name, value in span["attributes"].items() if kept(name)}
    write("otel-smolagents/spans.jsonl", "\n".join(json.dumps(span) for span in spans))


def kept_spans(name, printed, kinds, attributes):
    """Writes the spans of these kinds of OpenInference, with the attributes whose names begin so."""
    spans = [json.loads(line) for line in printed().splitlines()]
    spans = [span for span in spans if span["attributes"]["openinference.span.kind"] in kinds]
    for span in spans:
        kept = {name: value for name, value in span["attributes"].items() if name.startswith(attributes)}
        span["attributes"] = {name: "You know rivers." if str(value).startswith(("Your input fields", "You are a helpful")) else value for name, value in kept.items()}
    write(name, "\n".join(json.dumps(span) for span in spans))


def traced_dspy():
    from openinference.instrumentation.dspy import DSPyInstrumentor

    provider, printed = printed_spans()
    DSPyInstrumentor().instrument(tracer_provider=provider)
    dspy()
    kept_spans("otel-dspy/spans.jsonl", printed, ["LLM", "TOOL"], ("openinference", "llm.input_m", "llm.output_m"))


async def traced_autogen():
    from autogen_agentchat.agents import AssistantAgent
    from autogen_ext.models.openai import OpenAIChatCompletionClient
    from openinference.instrumentation.autogen_agentchat import AutogenAgentChatInstrumentor

    provider, printed = printed_spans()
    AutogenAgentChatInstrumentor().instrument(tracer_provider=provider)
    client = OpenAIChatCompletionClient(model="gpt-4o", api_key="none", http_client=scripted_client(is_async=True))
    await AssistantAgent("gauge", client, tools=[depth], max_tool_iterations=3, reflect_on_tool_use=False).run(task=TASK)
    names = ("openinference", "llm.input_m", "llm.output_m", "input.value", "output.value", "tool.name")
    kept_spans("otel-autogen/spans.jsonl", printed, ["LLM", "TOOL", "AGENT"], names)


async def spans_of_google_adk():
    from google.adk.runners import InMemoryRunner
    from google.genai import types
    from opentelemetry import trace

    provider, printed = printed_spans()
    trace.set_tracer_provider(provider)

    replies = iter([[types.Part(text="Ask the gauge."), call_of_google(0)], [types.Part(text="Once more."), call_of_google(1), call_of_google(1)], [types.Part(text=ANSWER)]])

    await run_of_google(InMemoryRunner(agent=agent_of_google(replies), app_name="rivers"))
    write("otel-google-adk/spans.jsonl", printed())


def strands():
    os.environ["OTEL_SEMCONV_STABILITY_OPT_IN"] = "gen_ai_latest_experimental"
    from opentelemetry import trace
    from openai import AsyncOpenAI
    from strands import Agent, tool
    from strands.models.openai import OpenAIModel
    from strands.session.file_session_manager import FileSessionManager

    provider, printed = printed_spans()
    trace.set_tracer_provider(provider)
    manager = FileSessionManager(session_id="river-1", storage_dir="strands")
    model = OpenAIModel(AsyncOpenAI(api_key="none", http_client=scripted_client(is_async=True)), model_id="script")
    Agent(model=model, tools=[tool(depth)], session_manager=manager, callback_handler=None)(TASK)
    files = Path("strands/session_river-1/agents/agent_default/messages")
    messages = [json.dumps(json.loads((files / f"message_{at}.json").read_text())) for at in range(6)]
    write("strands/messages.jsonl", "\n".join(messages))
    write("otel-strands/spans.jsonl", printed())


def dspy():
    import dspy
    from dspy.utils import DummyLM

    name = lambda tool, thought, args: {"next_thought": thought, "next_tool_name": tool, "next_tool_args": json.dumps(args)}
    replies = [name("depth", "Ask the gauge.", CALLS[0]), name("depth", "Once more.", CALLS[1]), name("finish", "Done.", {})]
    dspy.configure(lm=DummyLM([*replies, {"reasoning": "It said so.", "answer": ANSWER}]))
    prediction = dspy.ReAct("question -> answer", tools=[depth])(question=TASK).toDict()
    write("openai-chat-dspy/prediction.json", json.dumps({"question": TASK, **prediction}))
    history = json.dumps(dspy.settings.lm.history, default=str)
    write("openai-chat-dspy/history.json", history.replace(os.path.dirname(dspy.__file__), "dspy"))


def call_of_chat(at):
    return {"id": f"c{at + 1}", "type": "function", "function": {"name": "depth", "arguments": json.dumps(CALLS[at])}}


def scripted_client(is_async=False):
    """Returns a client for HTTP that answers as a model of Chat Completions, at once or in a stream of pieces."""
    import httpx

    def streamed(message, finish_reason):
        text, calls = message["content"], message.get("tool_calls", [])
        deltas = [{"role": "assistant", "content": text[:3]}, {"content": text[3:]}]
        for call in calls:
            arguments = call["function"]["arguments"]
            deltas.append({"tool_calls": [{**call, "index": 0, "function": {"name": "depth", "arguments": arguments[:9]}}]})
            deltas.append({"tool_calls": [{"index": 0, "function": {"arguments": arguments[9:]}}]})
        chunk = {"id": "r", "object": "chat.completion.chunk", "created": 0, "model": "script"}
        choices = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
        choices.append({"index": 0, "delta": {}, "finish_reason": finish_reason})
        lines = [json.dumps({**chunk, "choices": [choice]}) for choice in choices]
        return "".join(f"data: {line}\n\n" for line in [*lines, "[DONE]"])

    def reply(request):
        asked = json.loads(request.content)
        at = sum(message["role"] == "assistant" for message in asked["messages"])
        message = {"role": "assistant", "content": ["Ask the gauge.", "Once more.", ANSWER][at]}
        if at < 2:
            message["tool_calls"] = [call_of_chat(at)]
        elif b"final_answer" in request.content:
            function = {"name": "final_answer", "arguments": json.dumps({"answer": ANSWER})}
            message = {"role": "assistant", "content": "", "tool_calls": [{"id": "c3", "type": "function", "function": function}]}
        finish_reason = "tool_calls" if "tool_calls" in message else "stop"
        if asked.get("stream"):
            return httpx.Response(200, text=streamed(message, finish_reason), headers={"content-type": "text/event-stream"})
        choice = {"index": 0, "message": message, "finish_reason": finish_reason}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        reply = {"id": "r", "object": "chat.completion", "created": 0, "model": "script", "choices": [choice], "usage": usage}
        return httpx.Response(200, json=reply)

    return (httpx.AsyncClient if is_async else httpx.Client)(transport=httpx.MockTransport(reply))


def result_of(arguments):
    """Returns what a model is told of a call with these arguments in JSON."""
    try:
        return depth(**json.loads(arguments))
    except ValueError as error:
        return f"Error: {error}"


def converse(ask):
    """Has the task done by Chat Completions: `ask` gets the messages so far and returns the reply, until that has no calls."""
    messages, wanted = [{"role": "user", "content": TASK}], True
    while wanted:
        message = ask(list(messages)).choices[0].message
        messages.append(message.model_dump(exclude_none=True))
        wanted = message.tool_calls or []
        for call in wanted:
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result_of(call.function.arguments)})


def logged_requests():
    """Writes the requests and replies of a run, as programs log them."""
    from openai import OpenAI

    client = OpenAI(api_key="none", http_client=scripted_client())
    requests, sides = [], []

    def ask(messages):
        request = {"model": "script", "messages": messages}
        response = client.chat.completions.create(**request)
        requests.append(json.dumps({"request": request, "response": response.model_dump()}))
        sides.append(json.dumps({"input": messages, "output": response.model_dump()}))
        return response

    converse(ask)
    write("openai-chat-log/requests.jsonl", "\n".join(requests))
    write("openai-chat-log/sides.jsonl", "\n".join(sides))
    texts = [{name: json.dumps(side) for name, side in json.loads(row).items()} for row in requests]
    write("openai-chat-log/texts.jsonl", "\n".join(map(json.dumps, texts)))


def logged_responses():
    """Writes the requests and responses of a run, each of which names the response before it."""
    import httpx
    from openai import OpenAI

    text = lambda words: {"type": "message", "id": "m", "role": "assistant", "content": [{"type": "output_text", "text": words, "annotations": []}]}
    call = lambda at: {"type": "function_call", "call_id": f"c{at}", "name": "depth", "arguments": json.dumps(CALLS[at])}
    thought = {"type": "reasoning", "id": "t", "summary": [{"type": "summary_text", "text": "Ask the gauge."}]}
    more = [text("In Meissen, 1.9 m.")], [text("In Pirna, 2.4 m.")]
    outputs = enumerate([[thought, call(0)], [text("Once more."), call(1)], [text(ANSWER)], *more], 1)

    def reply(request):
        given = json.loads(request.content)
        at, output = next(outputs)
        reply = {"id": f"resp_{at}", "object": "response", "created_at": at, "model": "script", "output": output}
        return httpx.Response(200, json={**reply, "previous_response_id": given.get("previous_response_id")})

    client = OpenAI(api_key="none", http_client=httpx.Client(transport=httpx.MockTransport(reply)))
    given, more, rows = TASK, {}, []

    def ask(given):
        request = {"model": "script", "input": given, **more}
        response = client.responses.create(**request)
        rows.append(json.dumps({"request": request, "response": response.model_dump(mode="json", exclude_none=True)}))
        return response

    while given:
        response = ask(given)
        given, more = [], {"previous_response_id": response.id}
        for call in response.output:
            if call.type == "function_call":
                output = result_of(call.arguments)
                given.append({"type": "function_call_output", "call_id": call.call_id, "output": output})
    write("openai-chat-log/responses.jsonl", "\n".join(rows))
    whole, before = [], [{"role": "user", "content": TASK}]
    for row in map(json.loads, rows):
        new = row["request"]["input"]
        before += new if isinstance(new, list) else []
        whole.append({"request": {"input": list(before) if whole else TASK}, "response": row["response"]})
        before += row["response"]["output"]
    write("openai-chat-log/responses-whole.jsonl", "\n".join(map(json.dumps, whole)))
    ask("And in Meissen?")
    ask("And in Pirna?")
    write("openai-chat-log/responses-forked.jsonl", "\n".join(rows))


def posthog():
    """Writes the events of a run, which PostHog counts one for each call of the model."""
    from posthog import Posthog
    from posthog.ai.openai import OpenAI

    events = []

    class Script(Posthog):
        def capture(self, event, **fields):
            events.append(json.dumps({"event": event, "properties": fields["properties"]}, default=str))

    counter = Script("key", host="http://127.0.0.1:1", send=False)
    client = OpenAI(api_key="none", http_client=scripted_client(), posthog_client=counter)
    converse(lambda messages: client.chat.completions.create(model="script", messages=messages, posthog_trace_id="river-1"))
    write("openai-chat-log/posthog.jsonl", "\n".join(events))


def crewai_in_texts():
    from crewai import Agent, BaseLLM, Crew, Task
    from crewai.tools import tool

    class Script(BaseLLM):
        supports_function_calling = lambda self: False

        def call(self, messages, *rest, **named):
            at = sum(message["content"].count("\nObservation: ") for message in messages[1:])
            thought = ["Ask the gauge.", "Once more.", "I now know the final answer"][at]
            said = f"Action: depth\nAction Input: {json.dumps(CALLS[at])}" if at < 2 else f"Final Answer: {ANSWER}"
            return f"Thought: {thought}\n{said}"

    gauge = Agent(role="Gauge", goal="Know rivers", backstory="You know rivers.", llm=Script(model="script"), tools=[tool("depth")(depth)])
    task = Task(description=TASK, expected_output="a depth", agent=gauge)
    write("openai-chat-crewai/texts.json", Crew(agents=[gauge], tasks=[task]).kickoff().model_dump_json())


def crewai():
    from crewai import Agent, BaseLLM, Crew, Task
    from crewai.events import crewai_event_bus
    from crewai.events.types import agent_events, crew_events, task_events, tool_usage_events
    from crewai.tools import tool

    class Script(BaseLLM):
        supports_function_calling = lambda self: True

        def call(self, messages, *rest, **named):
            at = sum(message["role"] == "tool" for message in messages)
            return [call_of_chat(at)] if at < 2 else ANSWER

    events = []
    keep = lambda source, event: events.append(event.to_json(exclude={"agent", "crew", "from_agent", "from_task", "tools", "source"}))
    kinds = [
        crew_events.CrewKickoffStartedEvent, task_events.TaskStartedEvent, agent_events.AgentExecutionStartedEvent,
        tool_usage_events.ToolUsageStartedEvent, tool_usage_events.ToolUsageFinishedEvent, tool_usage_events.ToolUsageErrorEvent,
        agent_events.AgentExecutionCompletedEvent, task_events.TaskCompletedEvent,
    ]
    for kind in kinds:
        crewai_event_bus.on(kind)(keep)
    gauge = Agent(role="Gauge", goal="Know rivers", backstory="You know rivers.", llm=Script(model="script"), tools=[tool("depth")(depth)])
    task = Task(description=TASK, expected_output="a depth", agent=gauge)
    write("openai-chat-crewai/output.json", Crew(agents=[gauge], tasks=[task]).kickoff().model_dump_json())
    crewai_event_bus.flush()
    for event in events:
        if isinstance(event.get("task"), dict):
            event["task"] = {"description": event["task"]["description"]}
    events.sort(key=lambda event: event["emission_sequence"])
    write("streams/crewai.jsonl", "\n".join(json.dumps(event, default=str) for event in events))


async def llama_index():
    from llama_index.core.agent.workflow import FunctionAgent
    from llama_index.llms.openai_like import OpenAILike

    kinds = {"is_chat_model": True, "is_function_calling_model": True}
    llm = OpenAILike(model="script", api_key="none", async_http_client=scripted_client(is_async=True), **kinds)
    run = FunctionAgent(name="gauge", tools=[depth], llm=llm, system_prompt="You know rivers.").run(user_msg=TASK)
    events = [event.model_dump_json() async for event in run.stream_events()]
    write("streams/llama-index.jsonl", "\n".join(events))


async def llama_index_react():
    from llama_index.core.agent.workflow import ReActAgent
    from llama_index.core.llms import ChatMessage, ChatResponse, LLMMetadata
    from llama_index.core.llms.custom import CustomLLM

    action = lambda thought, at: f"Thought: {thought}\nAction: depth\nAction Input: {json.dumps(CALLS[at])}"
    replies = iter([action("Ask the gauge.", 0), action("Once more.", 1), f"Thought: I can answer.\nAnswer: {ANSWER}"])

    class Script(CustomLLM):
        metadata = property(lambda self: LLMMetadata(model_name="script"))
        complete = stream_complete = lambda self, *rest, **named: None

        async def astream_chat(self, messages, **named):
            async def pieces():
                text = next(replies)
                yield ChatResponse(message=ChatMessage(role="assistant", content=text), delta=text)

            return pieces()

    run = ReActAgent(name="gauge", tools=[depth], llm=Script(), streaming=True).run(user_msg=TASK)
    events = [event.model_dump(mode="json") async for event in run.stream_events()]
    for event in events:
        if event.get("input"):
            event["input"][0]["blocks"][0]["text"] = "You are designed to help."
    write("streams/llama-index-react.jsonl", "\n".join(map(json.dumps, events)))


def agno_older():
    """Version 3 of Agno has runs in a table of their own, version 2.1.0 in a column of the sessions."""
    agno("older")


def agno(name="sessions"):
    from agno.agent import Agent
    from agno.db.sqlite import SqliteDb
    from agno.models.openai import OpenAIChat

    model = OpenAIChat("script", api_key="none", http_client=scripted_client())
    settings = {"db": SqliteDb(db_file="agno.db"), "session_id": "river-1", "telemetry": False}
    Agent(model=model, tools=[depth], instructions="You know rivers.", **settings).run(TASK)
    dump(f"openai-chat-agno/{name}.db.sql", "agno.db")


def mlflow_frame():
    import mlflow

    mlflow.set_tracking_uri("sqlite:///mlflow.db")
    call = lambda at: [{"id": f"c{at}", "type": "function", "function": {"name": "depth", "arguments": json.dumps(CALLS[at])}}]
    replies = iter([{"content": "Ask the gauge.", "tool_calls": call(0)}, {"content": "Once more.", "tool_calls": call(1)}, {"content": ANSWER}])
    traced = mlflow.trace(depth, span_type="TOOL")

    @mlflow.trace(span_type="CHAT_MODEL")
    def model(messages):
        return {"choices": [{"message": {"role": "assistant", **next(replies)}}]}

    @mlflow.trace(span_type="AGENT")
    def agent(question):
        messages = [{"role": "user", "content": question}]
        while True:
            reply = model(list(messages))["choices"][0]["message"]
            messages.append(reply)
            for wanted in reply.get("tool_calls", []):
                try:
                    result = traced(**json.loads(wanted["function"]["arguments"]))
                except ValueError as error:
                    result = f"Error: {error}"
                messages.append({"role": "tool", "tool_call_id": wanted["id"], "content": result})
            if not reply.get("tool_calls"):
                return reply["content"]

    agent(TASK)
    mlflow.flush_trace_async_logging()
    rows = mlflow.search_traces().drop(columns=["trace", "trace_metadata", "tags"])
    write("mlflow/frame.jsonl", rows.to_json(orient="records", lines=True, default_handler=str).strip())
    os.unlink("mlflow.db")


def llm_log():
    """Writes the database of llm, and its log in JSON."""
    import llm, subprocess
    from llm.migrations import migrate
    from sqlite_utils import Database

    class Script(llm.Model):
        model_id, supports_tools, can_stream = "script", True, False

        def execute(self, prompt, stream, response, conversation):
            at = len(conversation.responses)
            if at < 2:
                response.add_tool_call(llm.ToolCall("depth", CALLS[at], tool_call_id=f"c{at}"))
            yield ["Ask the gauge.", "Once more.", ANSWER][at]

    database = Database("logs.db")
    migrate(database)
    chain = llm.Conversation(Script(), tools=[depth]).chain(TASK, system="You know rivers.")
    chain.text()
    chain.log_to_db(database)
    log = ["llm", "logs", "list", "--json", "-n", "0", "-d", "logs.db"]
    write("openai-chat-turns/llm.json", subprocess.run(log, capture_output=True, text=True).stdout)
    kept = re.compile(r"(CREATE TABLE|INSERT INTO) .(threads|turns|messages|parts)\W")
    lines = filter(kept.match, database.conn.iterdump())
    write("openai-chat-turns/llm.db.sql", "\n".join(["PRAGMA foreign_keys = OFF;", *lines]))
    os.unlink("logs.db")


def google_genai():
    """Writes a response whose tools were called by the client."""
    import httpx
    from google import genai
    from google.genai import types

    call = lambda at: {"functionCall": {"id": f"c{at}", "name": "depth", "args": CALLS[at]}}
    turns = [[{"text": "Ask the gauge.", "thought": True}, call(0)], [{"text": "Once more."}, call(1)], [{"text": ANSWER}]]

    def reply(request):
        at = sum(content["role"] == "model" for content in json.loads(request.content)["contents"])
        candidate = {"content": {"role": "model", "parts": turns[at]}, "finishReason": "STOP"}
        return httpx.Response(200, json={"candidates": [candidate], "modelVersion": "script"})

    options = types.HttpOptions(httpx_client=httpx.Client(transport=httpx.MockTransport(reply)))
    client = genai.Client(api_key="none", http_options=options)
    config = types.GenerateContentConfig(tools=[depth])
    response = client.models.generate_content(model="script", contents=TASK, config=config)
    write("openai-chat-turns/gemini.json", response.model_dump_json(exclude_none=True))


def data_sets():
    from datasets import Dataset, load_dataset
    from pyarrow import parquet

    call = lambda at: {"type": "function", "function": {"name": "depth", "arguments": CALLS[at]}}
    messages = [
        {"role": "user", "content": TASK},
        {"role": "assistant", "content": None, "tool_calls": [call(0)]},
        {"role": "tool", "content": "Error: name a place"},
        {"role": "assistant", "content": "Once more.", "tool_calls": [call(1)]},
        {"role": "tool", "content": "2.1 m"},
        {"role": "assistant", "content": ANSWER},
    ]
    (OUT / "openai-chat-parquet-json").mkdir(exist_ok=True)
    table = Dataset.from_list([{"prompt": messages[:1], "completion": messages[1:]}])
    table.to_parquet(OUT / "openai-chat-parquet-json/rows.parquet")
    parquet.write_table(table.data.table, OUT / "openai-chat-parquet-json/zstd.parquet", compression="zstd")
    parquet.write_table(table.data.table, OUT / "brotli.parquet", compression="brotli")
    (OUT / "openai-chat-session-row").mkdir(exist_ok=True)
    session = load_dataset("json", data_files=str(Path(__file__).with_name("codex.jsonl")), split="train")
    session.remove_columns("file_path").to_json(OUT / "openai-chat-session-row/rows.jsonl")


if __name__ == "__main__":
    for recording in map(globals().get, sys.argv[2:]):
        made = recording()
        if inspect.iscoroutine(made):
            asyncio.run(made)

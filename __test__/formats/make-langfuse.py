"""Prints a run of an agent of LangGraph as Langfuse exports it: its observations, as the API lists them, and as a trace of the page.

`langfuse.jsonl` is what it printed with langfuse 5.0.4 (MIT), langchain 1.4.7 and langgraph 1.2.22 (MIT). No test runs it: these packages
are many. The spans of the SDK become observations as the service makes them, by the types of its API.
"""

import json
import os
from datetime import datetime, timezone

os.environ.update(LANGFUSE_PUBLIC_KEY="pk", LANGFUSE_SECRET_KEY="sk", LANGFUSE_HOST="http://127.0.0.1:9")

from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import tool
from langfuse import Langfuse
from langfuse.api.commons.types import ObservationV2
from langfuse.langchain import CallbackHandler
from langgraph.prebuilt import ToolNode, create_react_agent
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter


@tool
def get_weather(city: str):
    """Returns the weather of a city."""
    if city != "Paris":
        raise ValueError(f"there is no {city}")
    return "rain"


def call(identity, city):
    return {"type": "tool_call", "id": identity, "name": "get_weather", "args": {"city": city}}


class Model(GenericFakeChatModel):
    def bind_tools(self, tools, **options):
        return self


said = AIMessage("I ask the tool.", tool_calls=[call("call-1", "Pariss")], id="a-1")
replies = [said, AIMessage("", tool_calls=[call("call-2", "Paris")], id="a-2"), AIMessage("It rains in Paris.", id="a-3")]
memory = InMemorySpanExporter()
client = Langfuse(span_exporter=memory)
agent = create_react_agent(Model(messages=iter(replies)), ToolNode([get_weather], handle_tool_errors=True))
agent.invoke({"messages": [HumanMessage("Weather in Paris?", id="h-1")]}, {"callbacks": [CallbackHandler()]})
client.flush()


def time_of(nanoseconds):
    return datetime.fromtimestamp(nanoseconds / 1e9, timezone.utc)


def parsed(text):
    try:
        return json.loads(text)
    except (TypeError, ValueError):
        return text


observations = []
for span in memory.get_finished_spans():
    given = {name.removeprefix("langfuse.observation."): value for name, value in span.attributes.items()}
    observation = ObservationV2(
        id=f"{span.context.span_id:016x}",
        trace_id=f"{span.context.trace_id:032x}",
        parent_observation_id=f"{span.parent.span_id:016x}" if span.parent else None,
        project_id="project-1",
        name=span.name,
        type=given.get("type", "span").upper(),
        start_time=time_of(span.start_time),
        end_time=time_of(span.end_time),
        level=given.get("level", "DEFAULT"),
        status_message=given.get("status_message"),
        input=parsed(given.get("input")),
        output=parsed(given.get("output")),
    )
    observations.append(json.loads(observation.json(by_alias=True)))

print(json.dumps({"data": observations, "meta": {"cursor": None}}))
# The page has no input and output of the trace if it was given none, and is asked for a verdict.
root = next(observation for observation in observations if not observation["parentObservationId"])
score = {"id": "score-1", "name": "Correctness", "value": 0, "stringValue": "False", "dataType": "BOOLEAN", "source": "ANNOTATION"}
trace = {"id": "trace-2", "timestamp": root["startTime"], "name": "weather", "sessionId": "s-1", "tags": ["demo"], "public": False}
kept = [{**each, "traceId": "trace-2"} for each in observations if each["type"] in ("GENERATION", "TOOL")]
for observation in kept:
    observation["parentObservationId"] = None
question = {"input": {"question": "Weather in Paris?"}, "output": {"answer": "It rains in Paris."}}
print(json.dumps({**trace, **question, "observations": kept, "scores": [score]}))

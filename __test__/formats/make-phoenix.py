"""Prints the spans of a run as Arize Phoenix exports them: the rows of its data frame, then a page of its API.

    make-phoenix.py URL      of a Phoenix that runs, as `phoenix serve`

`phoenix.jsonl` is what it printed with arize-phoenix 20.26.1 (Elastic-2.0, of which only the output is here), arize-phoenix-client
3.5.0 and openinference-instrumentation 0.1.72 (Apache-2.0). No test runs it: these packages are many.
"""

import json
import sys
import time
import urllib.request

from openinference.semconv.resource import ResourceAttributes
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.trace import Status, StatusCode
from phoenix.client import Client

url = sys.argv[1]
KIND = "openinference.span.kind"


def messages(side, *list):
    """The messages of a call of a model as OpenInference's instrumentations write them."""
    found = {}
    for at, message in enumerate(list):
        place = f"llm.{side}_messages.{at}.message"
        for name in ("role", "content", "tool_call_id"):
            if name in message:
                found[f"{place}.{name}"] = message[name]
        if city := message.get("city"):
            call = f"{place}.tool_calls.0.tool_call"
            found[f"{call}.id"] = message["id"]
            found[f"{call}.function.name"] = "get_weather"
            found[f"{call}.function.arguments"] = json.dumps({"city": city})
    return found


def tool(tracer, city, result, is_ok):
    with tracer.start_as_current_span("get_weather") as span:
        span.set_attributes({KIND: "TOOL", "tool.name": "get_weather", "input.value": json.dumps({"city": city})})
        if is_ok:
            span.set_attribute("output.value", result)
        span.set_status(Status(StatusCode.OK) if is_ok else Status(StatusCode.ERROR, result))


replies = [
    {"role": "assistant", "content": "I ask the tool.", "id": "call-1", "city": "Pariss"},
    {"role": "assistant", "id": "call-2", "city": "Paris"},
    {"role": "assistant", "content": "It rains in Paris."},
]
results = ["there is no Pariss", "rain"]


def run(project):
    provider = TracerProvider(resource=Resource({ResourceAttributes.PROJECT_NAME: project}))
    provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter(f"{url}/v1/traces")))
    tracer = provider.get_tracer("weather")
    conversation = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Weather in Paris?"}]
    with tracer.start_as_current_span("agent") as agent:
        agent.set_attributes({KIND: "AGENT", "input.value": "Weather in Paris?", "output.value": "It rains in Paris."})
        for at, reply in enumerate(replies):
            with tracer.start_as_current_span("chat") as span:
                model = {KIND: "LLM", "llm.model_name": "example-1"}
                span.set_attributes({**model, **messages("input", *conversation), **messages("output", reply)})
            conversation.append(reply)
            if at < len(results):
                tool(tracer, reply["city"], results[at], at > 0)
                conversation.append({"role": "tool", "content": results[at], "tool_call_id": reply["id"]})
        agent.set_status(Status(StatusCode.OK))
    provider.force_flush()


run("weather-frame")
run("weather-page")
time.sleep(5)

frame = Client(base_url=url).spans.get_spans_dataframe(project_identifier="weather-frame")
print(frame.to_json(orient="records", lines=True, date_format="epoch").strip())
with urllib.request.urlopen(f"{url}/v1/projects/weather-page/spans") as response:
    print(json.dumps(json.load(response)))

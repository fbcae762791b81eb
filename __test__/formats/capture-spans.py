"""Prints the spans of an instrumentation, as OTLP JSON, of a conversation with a server of this program.

    capture-spans.py openinference|traceloop chat|responses|anthropic

`captured-spans.jsonl` is what it printed for openinference chat, anthropic and responses, then traceloop chat and anthropic, with
opentelemetry-sdk 1.45.2, openinference-instrumentation-openai 0.1.66 and -anthropic 3.1.0 (Apache-2.0), and
opentelemetry-instrumentation-openai and -anthropic 0.62.4 (Apache-2.0). No test runs it: these packages are many.
"""
import base64, json, os, sys, threading
from http.server import BaseHTTPRequestHandler, HTTPServer

os.environ["TRACELOOP_TRACE_CONTENT"] = "true"

TOOL_ARGS = {"location": "Paris"}
class Handler(BaseHTTPRequestHandler):
    def log_message(self, *a): pass
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        answered = any(m.get("role") == "tool" or (isinstance(m.get("content"), list) and any(p.get("type") == "tool_result" for p in m["content"])) for m in body.get("messages", [])) or any(isinstance(i, dict) and i.get("type") == "function_call_output" for i in (body.get("input") if isinstance(body.get("input"), list) else []))
        if self.path.endswith("/chat/completions"):
            message = {"role": "assistant", "content": "It rains in Paris."} if answered else {"role": "assistant", "content": "I ask the tool.", "tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": json.dumps(TOOL_ARGS)}}]}
            reply = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "example-1", "choices": [{"index": 0, "finish_reason": "stop" if answered else "tool_calls", "message": message}], "usage": {"prompt_tokens": 5, "completion_tokens": 5, "total_tokens": 10}}
        elif self.path.endswith("/responses"):
            output = [{"type": "message", "id": "msg_1", "status": "completed", "role": "assistant", "content": [{"type": "output_text", "text": "It rains in Paris.", "annotations": []}]}] if answered else [{"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "The tool knows."}]}, {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "get_weather", "arguments": json.dumps(TOOL_ARGS), "status": "completed"}]
            reply = {"id": "resp_1", "object": "response", "created_at": 1, "status": "completed", "model": "example-1", "output": output, "parallel_tool_calls": True, "tool_choice": "auto", "tools": [], "usage": {"input_tokens": 5, "output_tokens": 5, "total_tokens": 10, "input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}}
        else:
            content = [{"type": "text", "text": "It rains in Paris."}] if answered else [{"type": "text", "text": "I ask the tool."}, {"type": "tool_use", "id": "toolu_1", "name": "get_weather", "input": TOOL_ARGS}]
            reply = {"id": "msg_1", "type": "message", "role": "assistant", "model": "example-1", "content": content, "stop_reason": "end_turn" if answered else "tool_use", "stop_sequence": None, "usage": {"input_tokens": 5, "output_tokens": 5}}
        data = json.dumps(reply).encode()
        self.send_response(200); self.send_header("content-type", "application/json"); self.send_header("content-length", str(len(data))); self.end_headers(); self.wfile.write(data)

server = HTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
url = f"http://127.0.0.1:{server.server_port}"

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from google.protobuf.json_format import MessageToDict

memory = InMemorySpanExporter()
provider = TracerProvider(resource=Resource.create({"service.name": "weather-agent"}))
provider.add_span_processor(SimpleSpanProcessor(memory))
trace.set_tracer_provider(provider)

which, api = sys.argv[1], sys.argv[2]
if which == "openinference":
    if api == "anthropic":
        from openinference.instrumentation.anthropic import AnthropicInstrumentor as I
    else:
        from openinference.instrumentation.openai import OpenAIInstrumentor as I
elif api == "anthropic":
    from opentelemetry.instrumentation.anthropic import AnthropicInstrumentor as I
else:
    from opentelemetry.instrumentation.openai import OpenAIInstrumentor as I
I().instrument(tracer_provider=provider)

tracer = trace.get_tracer("app")
question = "Weather in Paris?"
with tracer.start_as_current_span("agent run"):
    if api == "anthropic":
        import anthropic
        client = anthropic.Anthropic(api_key="x", base_url=url)
        tools = [{"name": "get_weather", "description": "w", "input_schema": {"type": "object", "properties": {"location": {"type": "string"}}}}]
        messages = [{"role": "user", "content": question}]
        first = client.messages.create(model="example-1", max_tokens=100, system="Be brief.", messages=messages, tools=tools)
        messages += [{"role": "assistant", "content": [b.model_dump(include={"type", "text", "id", "name", "input"}) for b in first.content]}, {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "rainy, 14 degrees"}]}]
        client.messages.create(model="example-1", max_tokens=100, system="Be brief.", messages=messages, tools=tools)
    elif api == "responses":
        import openai
        client = openai.OpenAI(api_key="x", base_url=url + "/v1")
        tools = [{"type": "function", "name": "get_weather", "parameters": {"type": "object", "properties": {}}}]
        items = [{"role": "user", "content": question}]
        first = client.responses.create(model="example-1", input=items, instructions="Be brief.", tools=tools)
        items = items + [o.model_dump(exclude_none=True) for o in first.output] + [{"type": "function_call_output", "call_id": "call_1", "output": "rainy, 14 degrees"}]
        client.responses.create(model="example-1", input=items, instructions="Be brief.", tools=tools)
    else:
        import openai
        client = openai.OpenAI(api_key="x", base_url=url + "/v1")
        tools = [{"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object", "properties": {"location": {"type": "string"}}}}}]
        messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": question}]
        first = client.chat.completions.create(model="example-1", messages=messages, tools=tools)
        messages += [first.choices[0].message.model_dump(exclude_none=True), {"role": "tool", "tool_call_id": "call_1", "content": "rainy, 14 degrees"}]
        client.chat.completions.create(model="example-1", messages=messages, tools=tools)

data = MessageToDict(encode_spans(memory.get_finished_spans()))
for r in data["resourceSpans"]:
    for s in r["scopeSpans"]:
        for span in s["spans"]:
            for k in ("traceId", "spanId", "parentSpanId"):
                if k in span: span[k] = base64.b64decode(span[k]).hex()
print(json.dumps(data))

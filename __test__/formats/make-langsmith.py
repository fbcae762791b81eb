"""Prints the runs of an agent of LangGraph as LangSmith's client lists them: flat, newest first, then as the tree of another run.

`langsmith.jsonl` is what it printed with langchain-core 1.7.2, langgraph 1.2.22 and langsmith 0.15.0 (MIT). No test runs it: these
packages are many.
"""

import json

from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import tool
from langchain_core.tracers import LangChainTracer
from langgraph.prebuilt import ToolNode, create_react_agent
from langsmith import Client
from langsmith._internal._serde import dumps_json
from langsmith.schemas import Run


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


class Service(Client):
    """Keeps the runs that it is sent, as JSON has them."""

    def __init__(self):
        super().__init__(api_key="x", auto_batch_tracing=False)
        self.kept = {}

    def create_run(self, name, inputs, run_type, **run):
        self.keep({"name": name, "inputs": inputs, "run_type": run_type, **run})

    def update_run(self, run_id, **run):
        self.keep({"id": run_id, **run})

    def keep(self, run):
        run = {name: value for name, value in run.items() if value is not None and name in Run.model_fields}
        self.kept.setdefault(str(run["id"]), {}).update(json.loads(dumps_json(run)))

    def exported(self):
        """The runs as the schema of the client has them, with what the service adds."""
        for run in self.kept.values():
            run["status"] = "error" if run.get("error") else "success"
            run["extra"] = {"metadata": {"ls_model_name": "example-1"}} if run["run_type"] == "llm" else {}
            run["serialized"] = run["events"] = None
            if run.get("error"):
                # The rest names the files of this machine.
                run["error"] = run["error"].split("\n\n\n")[0]
            if not run.get("parent_run_id"):
                run["feedback_stats"] = {"correctness": {"n": 1, "avg": 1.0}, "tone": {"n": 1, "avg": 0.5}}
            yield json.loads(Run(**run).model_dump_json(exclude_defaults=True))


def replies(last):
    said = AIMessage("I ask the tool.", tool_calls=[call("call-1", "Pariss")], id="a-1")
    return iter([said, AIMessage("", tool_calls=[call("call-2", "Paris")], id="a-2"), AIMessage(last, id="a-3")])


# A state of messages is around all runs.
service = Service()
agent = create_react_agent(Model(messages=replies("It rains in Paris.")), ToolNode([get_weather], handle_tool_errors=True))
agent.invoke({"messages": [HumanMessage("Weather in Paris?", id="h-1")]}, {"callbacks": [LangChainTracer(client=service)]})
flat = list(service.exported())
for run in reversed(flat):
    print(json.dumps(run))


# A loop of calls, with a question and an answer around them.
def answer(question, config):
    model = Model(messages=replies("Rain."))
    messages = [HumanMessage(question["question"], id="h-1")]
    while (reply := model.invoke(messages, config)).tool_calls:
        try:
            content = get_weather.invoke(reply.tool_calls[0], config)
        except ValueError as error:
            content = ToolMessage(repr(error), tool_call_id=reply.tool_calls[0]["id"], status="error")
        messages += [reply, content]
    return {"answer": reply.content}


service = Service()
RunnableLambda(answer).invoke({"question": "Rain in Paris?"}, {"callbacks": [LangChainTracer(client=service)]})
runs = {run["id"]: {**run, "child_runs": []} for run in service.exported()}
for run in runs.values():
    if parent := run.get("parent_run_id"):
        runs[parent]["child_runs"].append(run)
print(json.dumps(next(run for run in runs.values() if not run.get("parent_run_id"))))

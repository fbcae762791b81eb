"""Prints the messages of a run of LangGraph as JSON Lines: as its state, as `dumpd`, as `messages_to_dict`, and one a line as `model_dump`.

`langchain.jsonl` is what it printed with langchain-core 1.7.2 and langgraph 1.2.22 (MIT). No test runs it: these packages are many.
"""

import json

from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.load import dumpd
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, messages_to_dict
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.prebuilt import ToolNode, create_react_agent


@tool(response_format="content_and_artifact")
def get_weather(city: str):
    """Returns the weather of a city."""
    if city != "Paris":
        raise ValueError(f"there is no {city}")
    return "rain", {"degrees": 12}


def call(identity, city):
    return {"type": "tool_call", "id": identity, "name": "get_weather", "args": {"city": city}}


class Model(GenericFakeChatModel):
    def bind_tools(self, tools, **options):
        return self


said = [{"type": "reasoning", "reasoning": "The tool knows."}, {"type": "text", "text": "I ask the tool."}]
first = AIMessage([*said, call("call-1", "Pariss")], tool_calls=[call("call-1", "Pariss")], id="a-1")
second = AIMessage("", tool_calls=[call("call-2", "Paris")], id="a-2")
last = AIMessage("It rains in Paris.", id="a-3", response_metadata={"model_name": "example-1"})

model = Model(messages=iter([first, second, last]))
tools = ToolNode([get_weather], handle_tool_errors=True)
agent = create_react_agent(model, tools, checkpointer=InMemorySaver())
config = {"configurable": {"thread_id": "thread-1"}}
question = [SystemMessage("Be brief.", id="s-1"), HumanMessage("Weather in Paris?", id="h-1")]
messages = agent.invoke({"messages": question}, config)["messages"]

print(json.dumps(dumpd(agent.get_state(config)._asdict())))
print(json.dumps({"messages": dumpd(messages)}))
print(json.dumps({"messages": messages_to_dict(messages)}))
for message in messages:
    print(json.dumps(message.model_dump()))

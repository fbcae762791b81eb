"""Prints the events of OpenHands, a line each, of a task whose model is scripted: a command that fails, one that does not, and the end.

    capture-openhands.py

`openhands.jsonl` is what it printed with openhands-sdk and openhands-tools 1.58.0 (MIT), with long texts cut, which are prompts. No
test runs it: these packages are many.
"""
import glob, json, os, shutil, sys, tempfile

os.environ["OPENHANDS_SUPPRESS_BANNER"] = "1"
from openhands.sdk import Agent, Conversation, Message, TextContent, Tool
from openhands.sdk.llm import MessageToolCall
from openhands.sdk.testing import TestLLM
from openhands.tools.terminal import TerminalTool

TEXT_LENGTH = 300

def called(id, name, text="", thought=None, **args):
    call = MessageToolCall(id=id, name=name, arguments=json.dumps(args), origin="completion")
    return Message(role="assistant", content=[TextContent(text=text)] if text else [], reasoning_content=thought, tool_calls=[call])

llm = TestLLM.from_messages([
    called("call_1", TerminalTool.name, "I look for the notes.", "The folder may have them.", command="cat missing.txt"),
    called("call_2", TerminalTool.name, command="cat notes.txt"),
    called("call_3", "no_tool"),
    called("call_4", "finish", message="The notes say: buy milk."),
])
work, home = tempfile.mkdtemp(), tempfile.mkdtemp()
with open(os.path.join(work, "notes.txt"), "w") as file:
    file.write("buy milk\n")
agent = Agent(llm=llm, tools=[Tool(name=TerminalTool.name)])
conversation = Conversation(agent=agent, workspace=work, persistence_dir=home, visualizer=None)
conversation.send_message("What do my notes say?")
conversation.run()
conversation.close()

def cut(value):
    if isinstance(value, str):
        return value[:TEXT_LENGTH] + "…" if len(value) > TEXT_LENGTH else value
    if isinstance(value, list):
        return [cut(each) for each in value[:2]]
    return {name: cut(each) for name, each in value.items()} if isinstance(value, dict) else value

for path in sorted(glob.glob(os.path.join(home, "**", "event-*.json"), recursive=True)):
    with open(path) as file:
        print(json.dumps(cut(json.loads(file.read().replace(work, "/work").replace(tempfile.gettempdir(), "/tmp").replace(shutil.which("python") or "-", "/usr/bin/python")))))

"""Writes a log of Inspect, in JSON and as an archive, into a folder: two samples in two epochs, a tool that fails, reasoning, a web
search of the model's, and an answer that is right in one sample only.

    capture-inspect.py FOLDER

`inspect.jsonl` and `inspect.eval` are what it wrote with inspect-ai 0.3.285 (MIT), the JSON without the events of the samples, in one
line. No test runs it: the package has many others.
"""
import json, os, sys

from inspect_ai import Task, eval
from inspect_ai.dataset import Sample
from inspect_ai.log import read_eval_log, write_eval_log
from inspect_ai.model import ChatMessageAssistant, ContentReasoning, ContentText, ContentToolUse, ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import includes
from inspect_ai.solver import generate, system_message, use_tools
from inspect_ai.tool import ToolError, tool

@tool
def read_notes():
    async def execute(path: str) -> str:
        """Reads a file.

        Args:
            path: The file.
        """
        if path != "notes.txt":
            raise ToolError(f"there is no {path}")
        return "buy milk"
    return execute

def called(path, content=""):
    output = ModelOutput.for_tool_call("mockllm/model", "read_notes", {"path": path})
    output.choices[0].message.content = content
    return output

search = ContentToolUse(tool_type="web_search", id="ws_1", name="web_search", arguments='{"query": "notes"}', result="nothing")
def answered(text):
    message = ChatMessageAssistant(content=[search, ContentText(text=text)])
    output = ModelOutput.from_content("mockllm/model", text)
    output.choices[0].message = message
    return output

thought = [ContentReasoning(reasoning="The folder may have them."), ContentText(text="I look for the notes.")]
def turns():
    while True:
        for output in called("missing.txt", thought), called("notes.txt"), answered("The notes say: buy milk."):
            output.usage = ModelUsage(input_tokens=5, output_tokens=5, total_tokens=10)
            yield output

turn = turns()
task = Task(
    name="notes",
    dataset=[Sample(id=1, input="What do my notes say?", target="buy milk"), Sample(id="two", input="And where?", target="at the market")],
    solver=[system_message("You read notes."), use_tools(read_notes()), generate()],
    scorer=includes(),
    epochs=2,
)
[log] = eval(task, model=get_model("mockllm/model", custom_outputs=lambda *_: next(turn)), log_dir=sys.argv[1], display="none", max_samples=1)
os.rename(log.location.removeprefix("file://"), os.path.join(sys.argv[1], "inspect.eval"))
log = read_eval_log(os.path.join(sys.argv[1], "inspect.eval"))
for sample in log.samples:
    sample.events, sample.events_data, sample.attachments = [], None, {}
path = os.path.join(sys.argv[1], "inspect.json")
write_eval_log(log, path)
with open(path) as file, open(path + "l", "w") as lines:
    lines.write(json.dumps(json.load(file)) + "\n")
os.remove(path)

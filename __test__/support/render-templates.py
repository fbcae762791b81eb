"""Renders rows of messages by every chat template of TRL, as transformers does: render-templates.py FILE. Prints the templates without
tools, and of the others those that refuse a row, each with its first reason, and those that leave out calls."""

import json
import sys
from datetime import datetime
from importlib.util import find_spec
from pathlib import Path

from jinja2 import TemplateError, nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment


class Generation(Extension):
    """What the agent has said, marked for the trainer."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return nodes.Scope(body).set_lineno(line)


def refuse(message):
    raise TemplateError(message)


def tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[Generation, loopcontrols])
environment.filters["tojson"] = tojson
environment.globals["raise_exception"] = refuse
environment.globals["strftime_now"] = lambda form: datetime(2026, 1, 1).strftime(form)

rows = [json.loads(line) for line in Path(sys.argv[1]).read_text(encoding="utf-8").splitlines()]
folder = Path(find_spec("trl").submodule_search_locations[0]) / "chat_templates"
found = {"templates": 0, "without_tools": [], "refused": {}, "without_calls": []}
for file in sorted(folder.glob("*.jinja")):
    source = file.read_text(encoding="utf-8")
    found["templates"] += 1
    if "tool" not in source:
        found["without_tools"].append(file.stem)
        continue
    template = environment.from_string(source)
    for row in rows:
        names = {"bos_token": "<s>", "eos_token": "</s>", "add_generation_prompt": False}
        try:
            text = template.render(messages=row["messages"], tools=row["tools"] or None, **names)
        except Exception as error:
            found["refused"].setdefault(file.stem, f"{type(error).__name__}: {error}"[:200])
            break
        calls = [call for message in row["messages"] for call in message.get("tool_calls") or []]
        if not all(call["function"]["name"] in text for call in calls):
            found["without_calls"].append(file.stem)
            break
print(json.dumps(found))

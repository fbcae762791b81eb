"""Loads shared folders as others do, and prints the rows and the card's fields of each: read-shared.py FORM=FOLDER..."""

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, Field, TypeAdapter


def rows(folder):
    """Returns what `datasets` loads, with an empty cache, and writes it to Parquet beside the folder."""
    os.environ.update(HF_HUB_OFFLINE="1", HF_DATASETS_OFFLINE="1")
    with tempfile.TemporaryDirectory() as cache:
        import datasets

        datasets.disable_progress_bars()
        settings = {"split": "train", "cache_dir": cache, "keep_in_memory": True}
        datasets.load_dataset(folder, "manifest", **settings)
        loaded = datasets.load_dataset(folder, **settings)
        loaded.to_parquet(f"{folder}.parquet")
        return list(loaded)


def native(loaded, folder):
    return [{name: row[name] for name in ("harness", "session_id", "prompt", "messages", "file_path")} for row in loaded]


def messages(loaded, folder):
    from openai.types.chat import ChatCompletionFunctionToolParam, ChatCompletionMessageParam

    for line in (folder / "messages.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        for message in row["messages"]:
            for call in message.get("tool_calls", []):
                # Templates take an object, OpenAI's API its text.
                call["function"]["arguments"] = json.dumps(call["function"]["arguments"])
        # Iterables are validated when they are read.
        for message in TypeAdapter(list[ChatCompletionMessageParam]).validate_python(row["messages"]):
            list(message.get("tool_calls", []))
        TypeAdapter(list[ChatCompletionFunctionToolParam]).validate_python(row["tools"])
    return [{name: row[name] for name in ("session_id", "messages", "tools", "success")} for row in loaded]


def atif(loaded, folder):
    from atif import Trajectory

    for file in sorted((folder / "sessions").glob("**/*.json")):
        Trajectory.model_validate_json(file.read_text(encoding="utf-8"))
    return [{"session_id": row["session_id"], "steps": len(row["steps"])} for row in loaded]


class Tool(BaseModel):
    name: str
    mcp_server: str | None = None


class Step(BaseModel):
    step_id: int = Field(ge=0)
    type: Literal["thought", "tool_call", "observation", "error_recovery"]
    content: str = ""
    tool: Tool | None = None
    input: dict = {}
    output_summary: str = ""
    latency_ms: float = 0


class Metadata(BaseModel):
    created_at: str = Field(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$")
    agent_id: str = ""
    framework: str = ""
    task_domain: str = Field(min_length=1)
    success: bool
    quality_score: float = Field(ge=0, le=1)
    visibility: Literal["private", "org", "network"]
    privacy_level: Literal["aggregated", "federated", "private"]


class Task(BaseModel):
    objective: str = Field(min_length=1)


class Outcome(BaseModel):
    result_summary: str
    confidence: float = Field(ge=0, le=1)


class Unit(BaseModel):
    """What the registry accepts."""

    context: Literal["https://openknowledgepulse.org/schema/v1"] = Field(alias="@context")
    type: Literal["ReasoningTrace"] = Field(alias="@type")
    id: str = Field(pattern="^kp:trace:")
    metadata: Metadata
    task: Task
    steps: list[Step] = Field(min_length=1)
    outcome: Outcome


def knowledgepulse(loaded, folder):
    for line in (folder / "units.jsonl").read_text(encoding="utf-8").splitlines():
        Unit.model_validate_json(line, strict=True)
    return [{"id": row["id"]} for row in loaded]


def card(folder):
    from huggingface_hub import DatasetCard

    return DatasetCard.load(folder / "README.md").data.to_dict()


found = {}
for argument in sys.argv[1:]:
    form, folder = argument.split("=", 1)
    loaded = globals()[form](rows(folder), Path(folder))
    found[form] = {"rows": loaded, "card": card(Path(folder))}
print(json.dumps(found))

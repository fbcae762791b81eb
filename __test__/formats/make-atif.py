"""Makes the trajectories of this folder with the models of the PyPI package `atif` (MIT), and validates trajectories.

    make-atif.py make         prints the trajectory of `trajectory.json`
    make-atif.py validate     reads trajectories as JSON Lines, and fails at the first that is none
    make-atif.py convert      reads reasoning traces as JSON Lines, and prints the trajectories that they could have come from
"""

import json
import sys

from atif import Agent, Observation, ObservationResult, Step, ToolCall, Trajectory


def call(identity, name, **arguments):
    return ToolCall(tool_call_id=identity, function_name=name, arguments=arguments)


def result(identity, content, **extra):
    return ObservationResult(source_call_id=identity, content=content, extra=extra or None)


def trajectory():
    agent = Agent(name="mini-agent", version="1.2.0", model_name="example/model-1")
    steps = [
        Step(step_id=1, source="system", message="You are a careful engineer."),
        Step(
            step_id=2,
            source="user",
            timestamp="2026-03-04T10:00:00Z",
            message="The parser drops the last line of a file without a newline. Fix it.",
            is_copied_context=True,
        ),
        Step(
            step_id=3,
            source="user",
            timestamp="2026-03-04T10:00:01Z",
            message="The parser drops the last line of a file without a newline. Fix it.",
        ),
        Step(
            step_id=4,
            source="agent",
            timestamp="2026-03-04T10:00:05Z",
            reasoning_content="A test that shows it comes first.",
            message="I run the tests.",
            tool_calls=[call("call_1", "bash", command="pytest tests/test_parser.py", timeout=60)],
            observation=Observation(results=[result("call_1", "Error: no module named pytest")]),
        ),
        Step(
            step_id=5,
            source="agent",
            message="",
            tool_calls=[
                call("call_2", "bash", command="python -m unittest tests.test_parser"),
                call("call_3", "read_file", path="parser.py"),
            ],
            observation=Observation(
                results=[
                    result("call_2", "Ran 12 tests. OK"),
                    result("call_3", "def lines(text):\n    return text.split('\\n')[:-1]"),
                ]
            ),
        ),
        Step(
            step_id=6,
            source="agent",
            message="A colleague checks the fix.",
            tool_calls=[call("call_4", "delegate", task="Review parser.py")],
            observation=Observation(
                results=[
                    ObservationResult(
                        source_call_id="call_4",
                        content=None,
                        subagent_trajectory_ref=[{"trajectory_id": "review"}],
                    )
                ]
            ),
        ),
        Step(step_id=7, source="agent", message="The last line is kept now, and a test holds that."),
    ]
    review = Trajectory(
        schema_version="ATIF-v1.8",
        trajectory_id="review",
        agent=Agent(name="reviewer", version="0.1"),
        steps=[
            Step(step_id=1, source="user", message="Review parser.py"),
            Step(step_id=2, source="agent", message="It is right."),
        ],
    )
    return Trajectory(
        schema_version="ATIF-v1.8",
        session_id="session-7",
        trajectory_id="main",
        agent=agent,
        steps=steps,
        notes="Made for a test.",
        final_metrics={"total_prompt_tokens": 812, "total_steps": 7},
        subagent_trajectories=[review],
    )


def converted(trace):
    """The trajectory of a trace: what follows a call is its result, and what follows anything else a user says."""
    steps = [Step(step_id=1, source="user", message=trace["task"]["objective"])]
    for at, step in enumerate(trace["steps"]):
        identity = f"call_{at}"
        last = steps[-1]
        if step["type"] == "thought":
            steps.append(Step(step_id=len(steps) + 1, source="agent", message=step["content"]))
        elif step["type"] == "tool_call":
            calls = [call(identity, step["tool"]["name"], **step["input"])]
            steps.append(Step(step_id=len(steps) + 1, source="agent", message="", tool_calls=calls))
        elif last.tool_calls and not last.observation:
            found = result(last.tool_calls[0].tool_call_id, step["content"], is_error=step["type"] == "error_recovery")
            last.observation = Observation(results=[found])
        else:
            steps.append(Step(step_id=len(steps) + 1, source="user", message=step["content"]))
    agent = Agent(name="agent", version="1")
    return Trajectory(schema_version="ATIF-v1.8", session_id=trace["id"], agent=agent, steps=steps)


if sys.argv[1] == "make":
    print(json.dumps(trajectory().to_json_dict(), indent=2))
elif sys.argv[1] == "convert":
    for line in sys.stdin:
        made = converted(json.loads(line))
        print(json.dumps(Trajectory.model_validate(made.to_json_dict()).to_json_dict()))
else:
    for line in sys.stdin:
        Trajectory.model_validate_json(line)

"""Tests the module with the program that is installed with it, or else on the PATH: python -m unittest discover -s python/kp-score/tests"""

import importlib
import json
import os
import subprocess
import sys
import tempfile
import unittest
import warnings
from pathlib import Path
from unittest import mock

import kp_score

OBJECTIVES = ["Find the cause of the failing build", "Plan a birthday party", "Translate the manual into German"]


def trace(number):
    objective = OBJECTIVES[number % len(OBJECTIVES)]
    return {
        "id": f"trace-{number}",
        "task": {"objective": objective},
        "steps": [
            {"type": "thought", "content": f"First a plan: {objective}"},
            {"type": "tool_call", "tool": {"name": "search"}, "content": objective.lower()},
            {"type": "observation", "content": f"What is known about it: {objective}"},
        ],
        "outcome": {"confidence": 0.9},
        "metadata": {"task_domain": "code", "success": True},
    }


class KpScore(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="kp-score test ")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.traces = self.write("traces.jsonl", [trace(number) for number in range(6)])

    def write(self, name, traces):
        file = self.folder / name
        file.write_text("".join(json.dumps(one) + "\n" for one in traces), "utf-8")
        return file

    def test_score_gives_a_row_for_each_trace_in_order(self):
        rows = list(kp_score.score(self.traces))
        self.assertEqual([row["id"] for row in rows], [f"trace-{number}" for number in range(6)])
        self.assertGreater(rows[0]["score"], rows[3]["score"])

    def test_score_takes_several_paths_and_options(self):
        other = self.write("other.jsonl", [trace(7)])
        rows = list(kp_score.score([str(self.traces), other], explain=True, novelty=None))
        self.assertEqual(len(rows), 7)
        self.assertTrue(set(rows[0]) > set(next(iter(kp_score.score(self.traces)))))

    def test_score_without_a_path_is_this_machine(self):
        codex = self.folder / ".codex" / "sessions" / "2026" / "rollout-1.jsonl"
        codex.parent.mkdir(parents=True)
        said = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Mend the shop"}]}
        done = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Done."}]}
        lines = [("session_meta", {"id": "s1", "cwd": "/work"}), ("response_item", said), ("response_item", done)]
        codex.write_text("".join(json.dumps({"type": kind, "payload": payload}) + "\n" for kind, payload in lines), "utf-8")
        with mock.patch.dict(os.environ, {"HOME": str(self.folder), "USERPROFILE": str(self.folder), "CODEX_HOME": ""}):
            rows = list(kp_score.score())
        self.assertEqual([(row["agent"], row["objective"]) for row in rows], [("codex", "Mend the shop")])

    def test_score_takes_a_source(self):
        chat = self.write("chat.jsonl", [{"messages": [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi"}]}])
        self.assertEqual([row["format"] for row in kp_score.score(chat, source="openai-chat")], ["openai-chat"])
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            self.assertEqual(list(kp_score.score(chat, source="codex")), [])
        self.assertEqual(len(caught), 1)

    def test_share_takes_a_form(self):
        entries = list(kp_score.share(1, self.traces, self.folder / "train", form="messages"))
        self.assertEqual([entry["file"] for entry in entries], ["messages.jsonl"])

    def test_share_takes_decisions_and_removes_what_is_named(self):
        decisions = self.write("decisions.jsonl", [{"session": "trace-1", "decision": "keep"}])
        shared = self.folder / "shared"
        entries = list(kp_score.share(None, self.traces, shared, decisions=decisions))
        self.assertEqual([(entry["id"], entry["reason"]) for entry in entries], [("trace-1", "decision")])
        self.assertEqual(list(kp_score.share(None, None, shared, remove="trace-1")), [])

    def test_show_prints_a_session_clean(self):
        file = self.write("mail.jsonl", [{"@type": "ReasoningTrace", **trace(0), "task": {"objective": "Mail bob@example.org"}}])
        self.assertIn("Mail [REDACTED:email-1]", kp_score.show(file))
        self.assertIn("bob@example.org", kp_score.show(str(file), level="private"))
        with self.assertRaises(kp_score.KpScoreError):
            kp_score.show("no such session")

    def test_clean_gives_a_clean_copy_of_a_text_and_of_a_trace(self):
        self.assertEqual(kp_score.clean("mail bob@example.org\n\nfür immer"), "mail [REDACTED:email-1]\n\nfür immer")
        self.assertEqual(kp_score.clean("mail bob@example.org", level="private"), "mail bob@example.org")
        given = {**trace(0), "task": {"objective": "Mail bob@example.org"}}
        self.assertEqual(kp_score.clean(given), {**given, "task": {"objective": "Mail [REDACTED:email-1]"}})
        with self.assertRaises(TypeError):
            kp_score.clean(7)

    def test_report_writes_a_page(self):
        page = kp_score.report(self.traces, self.folder / "page.html")
        self.assertIn("<html", page.read_text("utf-8"))

    def test_version_is_that_of_the_program(self):
        if kp_score.__version__ == "0":
            self.skipTest("kp-score is not installed")
        printed = subprocess.run([kp_score.program(), "--version"], check=True, stdout=subprocess.PIPE).stdout
        self.assertEqual(printed.decode().split()[-1], kp_score.__version__)

    def test_rows_are_what_pandas_polars_and_datasets_take(self):
        makers = {
            "pandas": lambda library, rows: library.DataFrame(rows)["id"].tolist(),
            "polars": lambda library, rows: library.DataFrame(rows)["id"].to_list(),
            "datasets": lambda library, rows: list(library.Dataset.from_list(rows)["id"]),
        }
        rows = list(kp_score.score(self.traces, explain=True))
        chosen = list(kp_score.select(2, self.traces))
        manifest = list(kp_score.share(2, self.traces, self.folder / "shared"))
        for name, make in makers.items():
            with self.subTest(name):
                try:
                    library = importlib.import_module(name)
                except ImportError:
                    self.skipTest(f"{name} is not installed")
                for some in [rows, chosen, manifest]:
                    self.assertEqual(make(library, some), [row["id"] for row in some])

    def test_read_gives_traces_with_their_scores(self):
        traces = list(kp_score.read(self.traces))
        scores = [row["score"] for row in kp_score.score(self.traces)]
        self.assertEqual([one["task"]["objective"] for one in traces[:3]], OBJECTIVES)
        for one, value in zip(traces, scores):
            self.assertAlmostEqual(one["metadata"]["quality_score"], value, places=6)

    def test_select_gives_a_trace_of_each_task(self):
        rows = list(kp_score.select(3, self.traces))
        self.assertEqual({int(row["id"].split("-")[1]) % 3 for row in rows}, {0, 1, 2})

    def test_share_writes_a_folder_and_gives_its_manifest(self):
        folder = self.folder / "shared"
        entries = list(kp_score.share(2, self.traces, folder))
        self.assertEqual([entry["rank"] for entry in entries], [1, 2])
        self.assertTrue((folder / "README.md").is_file())
        for entry in entries:
            self.assertTrue((folder / entry["file"]).is_file())

    def test_a_missing_file_is_an_error_that_names_it(self):
        for call in [kp_score.score, kp_score.read]:
            with self.assertRaises(kp_score.KpScoreError) as caught:
                list(call(self.folder / "missing.jsonl"))
            self.assertEqual(caught.exception.code, 3)
            self.assertIn("missing.jsonl", str(caught.exception))

    def test_an_unknown_option_is_an_error_that_names_it(self):
        with self.assertRaises(kp_score.KpScoreError) as caught:
            list(kp_score.score(self.traces, no_such_option=True))
        self.assertEqual(caught.exception.code, 2)
        self.assertIn("--no-such-option", str(caught.exception))

    def test_a_bad_line_is_a_warning_and_the_rest_is_scored(self):
        self.traces.write_text("{}\n" + self.traces.read_text("utf-8"), "utf-8")
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            rows = list(kp_score.score(self.traces))
        self.assertEqual(len(rows), 6)
        self.assertIn("traces.jsonl", str(caught[0].message))

    def test_the_program_ends_with_an_iterator_that_is_not_used_up(self):
        self.write("many.jsonl", [{**trace(number), "id": "x" * 1000} for number in range(2000)])
        started = []
        popen = subprocess.Popen
        with mock.patch.object(subprocess, "Popen", lambda *args, **named: started.append(popen(*args, **named)) or started[-1]):
            rows = kp_score.score(self.folder / "many.jsonl")
            next(rows)
            rows.close()
        self.assertIsNotNone(started[0].returncode)

    def test_a_path_that_begins_with_a_dash_is_a_path(self):
        self.write("-traces.jsonl", [trace(0)])
        before = os.getcwd()
        self.addCleanup(os.chdir, before)
        os.chdir(self.folder)
        self.assertEqual(len(list(kp_score.score("-traces.jsonl"))), 1)

    def test_python_m_kp_score_is_the_command(self):
        command = [sys.executable, "-m", "kp_score", "--version"]
        printed = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
        self.assertEqual(printed, subprocess.run([kp_score.program(), "--version"], check=True, stdout=subprocess.PIPE).stdout)

    def test_to_pandas_gives_nested_values_columns_of_their_own(self):
        try:
            import pandas  # noqa: F401
        except ImportError:
            self.skipTest("pandas is not installed")
        table = kp_score.to_pandas([{"id": "a", "dimensions": {"novelty": 0.5}}])
        self.assertEqual(table["dimensions.novelty"].tolist(), [0.5])


if __name__ == "__main__":
    unittest.main()

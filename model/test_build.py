"""Tests of the builder: model/.venv/bin/python -m unittest discover -s model

They copy the packages that are already built, and build them first if there are none.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import numpy as np
import onnx

import build
import check
import graph

built: dict[str, Path] = {}


def setUpModule() -> None:
    """Provides the finished packages that the tests copy."""
    for dtype, name in build.PACKAGES.items():
        built[dtype] = build.DEFAULT_OUTPUT / name
        if build.outdated(dtype, built[dtype], verify=True):
            folder = tempfile.TemporaryDirectory()
            unittest.addModuleCleanup(folder.cleanup)
            built[dtype] = Path(folder.name) / name
            build.build(dtype, built[dtype])


def run(*arguments: str | Path) -> tuple[int, str]:
    """The exit code of the command and all it printed."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        code = build.main([str(argument) for argument in arguments])
    return code, printed.getvalue()


class BuildTest(unittest.TestCase):
    """Each test has packages of its own in `self.folder`; `self.output` is the fp32 one."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.output = self.folder / build.PACKAGES["fp32"]
        for dtype, package in build.PACKAGES.items():
            (self.folder / package).mkdir()
            for name in (*build.PACKAGED, "manifest.json"):
                shutil.copyfile(built[dtype] / name, self.folder / package / name)

    def test_does_nothing_when_up_to_date(self) -> None:
        with mock.patch.object(build, "build") as work:
            self.assertEqual(run("--output", self.folder), (0, "model: fp32 up to date\nmodel: q8 up to date\n"))
            self.assertEqual(run("--output", self.folder, "--check", "--verify")[0], 0)
        work.assert_not_called()

    def test_builds_both_or_one(self) -> None:
        for package in build.PACKAGES.values():
            (self.folder / package / "manifest.json").unlink()
        with mock.patch.object(build, "build") as work:
            self.assertEqual(run("--output", self.folder)[0], 0)
            self.assertEqual([call.args[0] for call in work.call_args_list], ["fp32", "q8"])
            work.reset_mock()
            self.assertEqual(run("--output", self.folder, "--dtype", "q8")[0], 0)
            self.assertEqual([call.args[0] for call in work.call_args_list], ["q8"])
        shutil.copyfile(built["fp32"] / "manifest.json", self.output / "manifest.json")
        expected = "model: fp32 up to date\nmodel: q8 manifest.json is missing\n"
        self.assertEqual(run("--output", self.folder, "--check"), (1, expected))
        self.assertEqual(run("--output", self.folder, "--check", "--dtype", "fp32")[0], 0)

    def test_checks_without_importing_the_heavy_libraries(self) -> None:
        program = (
            "import sys, build; code = build.main(sys.argv[1:]);"
            "sys.exit(code or any(name in sys.modules for name in ('numpy', 'onnx', 'onnxruntime', 'tokenizers')))"
        )
        command = [sys.executable, "-B", "-c", program, "--check", "--output", str(self.folder)]
        finished = subprocess.run(command, cwd=build.HERE, capture_output=True, text=True, timeout=60)
        self.assertEqual((finished.returncode, finished.stderr), (0, ""))
        self.assertEqual(finished.stdout, "model: fp32 up to date\nmodel: q8 up to date\n")

    def test_describes_what_it_built(self) -> None:
        for dtype, package in build.PACKAGES.items():
            manifest = json.loads((self.folder / package / "manifest.json").read_bytes())
            self.assertEqual(manifest["dtype"], dtype)
            self.assertEqual(manifest["source"]["sha256"], build.SOURCES["model.safetensors"])
            for name in build.COPIED:
                self.assertEqual(manifest["files"][name]["sha256"], build.SOURCES[name])
            self.assertLess(manifest["files"]["model.onnx"]["bytes"], 100_000)
        # The official file, byte for byte.
        self.assertEqual(build.sha256(self.output / "model.safetensors"), build.SOURCES["model.safetensors"])

    def test_int8_weights_say_how_they_were_made(self) -> None:
        _, metadata = graph.read_header(self.folder / build.PACKAGES["q8"] / "model.safetensors")
        self.assertEqual(set(metadata), {"quantization", "tool", "weights", "calibration", "license"})
        self.assertIn(build.SOURCES["model.safetensors"], metadata["weights"])
        self.assertRegex(metadata["tool"], r"^knowledgepulse-encoder \d+\.\d+\.\d+, quantize$")
        self.assertRegex(metadata["calibration"], r"^\d+ texts as token ids, SHA-256 [0-9a-f]{64}$")

    def test_builds_again_when_other_int8_weights_are_pinned(self) -> None:
        pin = self.folder / "pin"
        pin.write_text("0" * 64)
        with mock.patch.object(build, "PIN", pin):
            printed = "model: fp32 up to date\nmodel: q8 the weights changed\n"
            self.assertEqual(run("--output", self.folder, "--check"), (1, printed))

    def test_refuses_other_int8_weights_unless_they_are_to_be_pinned(self) -> None:
        """With weights that a program of another kind has made: those that are built, with more metadata."""
        output = self.folder / build.PACKAGES["q8"]
        pin = self.folder / "pin"
        shutil.copyfile(build.PIN, pin)

        def quantize(weights: Path, ids: Path, target: Path) -> None:
            shutil.copyfile(built["q8"] / "model.safetensors", target)
            build.annotate(target, {"other": "yes"})

        checks = mock.patch.object(build, "check_q8", lambda *_: "")
        with mock.patch.object(build, "PIN", pin), mock.patch.object(build, "quantize", quantize), checks:
            code, printed = run("--dtype", "q8", "--output", self.folder, "--force")
            self.assertEqual(code, 1)
            self.assertRegex(printed, r"the int8 weights have SHA-256 .* run with --pin")
            self.assertEqual(run("--dtype", "q8", "--output", self.folder, "--pin")[0], 0)
            self.assertEqual(pin.read_text().strip(), build.sha256(output / "model.safetensors"))
            self.assertEqual(run("--dtype", "q8", "--output", self.folder), (0, "model: q8 up to date\n"))
        before, after = (graph.read_header(path / "model.safetensors")[0] for path in (built["q8"], output))
        for name, tensor in before.items():
            self.assertEqual((tensor.dtype, tensor.shape), (after[name].dtype, after[name].shape))

    def test_detects_truncated_weights(self) -> None:
        os.truncate(self.output / "model.safetensors", 1000)
        code, printed = run("--dtype", "fp32", "--output", self.folder, "--check")
        self.assertEqual(code, 1)
        self.assertIn("model.safetensors has 1000 bytes", printed)

    def test_detects_a_flipped_bit_when_verifying(self) -> None:
        with (self.output / "model.safetensors").open("r+b") as file:
            file.seek(50_000_000)
            byte = file.read(1)[0]
            file.seek(-1, os.SEEK_CUR)
            file.write(bytes([byte ^ 1]))
        self.assertEqual(run("--dtype", "fp32", "--output", self.folder, "--check")[0], 0)
        code, printed = run("--dtype", "fp32", "--output", self.folder, "--check", "--verify")
        self.assertEqual(code, 1)
        self.assertIn("model.safetensors has SHA-256", printed)

    def test_detects_what_is_missing_damaged_or_old(self) -> None:
        manifest = self.output / "manifest.json"
        original = json.loads(manifest.read_bytes())
        for content, reason in (
            (json.dumps({**original, "builder": "0"}), "the builder changed"),
            (json.dumps({**original, "files": {}}), "lists other files"),
            ("[]", "damaged"),
            ("{", "damaged"),
        ):
            manifest.write_text(content)
            code, printed = run("--dtype", "fp32", "--output", self.folder, "--check")
            self.assertEqual(code, 1)
            self.assertIn(reason, printed)
        manifest.write_text(json.dumps(original))
        (self.output / "tokenizer.json").unlink()
        printed = "model: fp32 tokenizer.json is missing\n"
        self.assertEqual(run("--dtype", "fp32", "--output", self.folder, "--check"), (1, printed))

    def test_recovers_from_an_interruption(self) -> None:
        """Two kinds at once: files half moved, and the temporary directory of a killed run."""
        replace = os.replace

        def interrupted(source: Path, target: Path) -> None:
            if source.name == "tokenizer.json":
                raise KeyboardInterrupt
            replace(source, target)

        with mock.patch.object(os, "replace", interrupted):
            self.assertEqual(run("--dtype", "fp32", "--output", self.folder, "--force")[0], 130)
        temporary = build.temporary_directory(self.output)
        self.assertFalse(temporary.exists())
        printed = "model: fp32 manifest.json is missing\n"
        self.assertEqual(run("--dtype", "fp32", "--output", self.folder, "--check"), (1, printed))

        temporary.mkdir()
        (temporary / "model.onnx").write_bytes(b"half")
        self.assertEqual(run("--dtype", "fp32", "--output", self.folder)[0], 0)
        self.assertFalse(temporary.exists())
        # The builds agree to the byte, whichever run they come from.
        for name in (*build.PACKAGED, "manifest.json"):
            self.assertEqual((self.output / name).read_bytes(), (built["fp32"] / name).read_bytes(), name)

    def test_removes_leftovers_even_when_up_to_date(self) -> None:
        temporary = build.temporary_directory(self.output)
        temporary.mkdir()
        self.assertEqual(run("--dtype", "fp32", "--output", self.folder), (0, "model: fp32 up to date\n"))
        self.assertFalse(temporary.exists())

    def test_refuses_other_weights(self) -> None:
        sources = self.folder / "sources"
        shutil.copytree(build.find_sources(), sources)
        with (sources / "model.safetensors").open("r+b") as file:
            file.seek(-1, os.SEEK_END)
            file.write(b"\x7f")
        before = (self.output / "manifest.json").read_bytes()
        with mock.patch.object(build, "find_sources", lambda: sources):
            code, printed = run("--dtype", "fp32", "--output", self.folder, "--force")
        self.assertEqual(code, 1)
        self.assertIn("model.safetensors has SHA-256", printed)
        self.assertIn(build.SOURCES["model.safetensors"], printed)
        self.assertEqual((self.output / "manifest.json").read_bytes(), before)


class CheckTest(unittest.TestCase):
    """The models that are built, and others that must be refused."""

    def setUp(self) -> None:
        self.tokenizer = check.Tokenizer(built["fp32"] / "tokenizer.json")
        self.models = {dtype: path / "model.onnx" for dtype, path in built.items()}

    def test_refuses_other_results(self) -> None:
        others = mock.patch.object(check, "PUBLISHED", (*check.PUBLISHED[:7], -0.0072))
        with others, self.assertRaisesRegex(build.BuildError, r"value 7 of .* is -0\.0070984, published is -0\.0072000"):
            check.check_fp32(self.models["fp32"], self.tokenizer)

    def test_compares_int8_with_fp32(self) -> None:
        reference = check.Embedder(self.models["fp32"], self.tokenizer)
        unseen = "A migrating heron waits out the storm beneath the railway bridge."
        self.assertIn("cosines with fp32", check.check_q8(self.models["q8"], reference, [unseen]))

        with tempfile.TemporaryDirectory() as folder:
            weights = Path(folder) / "model.safetensors"
            shutil.copyfile(built["q8"] / weights.name, weights)
            scales = graph.read_header(weights)[0]["encoder.layer.0.output.dense.scale"]
            with weights.open("r+b") as file:
                file.seek(scales.begin)
                doubled = np.frombuffer(file.read(scales.length), "<f4") * np.float32(2)
                file.seek(scales.begin)
                file.write(doubled.tobytes())
            model = weights.with_name("model.onnx")
            shutil.copyfile(self.models["q8"], model)
            with self.assertRaisesRegex(build.BuildError, "cosines with fp32"):
                check.check_q8(model, reference, [unseen])


class GraphTest(unittest.TestCase):
    """The graphs, which have no weights of their own."""

    def test_weights_lie_where_the_file_has_them(self) -> None:
        for dtype, path in built.items():
            tensors, _ = graph.read_header(path / "model.safetensors")
            model = onnx.load(path / "model.onnx", load_external_data=False)
            outside = [value for value in model.graph.initializer if value.external_data]
            self.assertGreater(len(outside), 90, dtype)
            for value in outside:
                place = {entry.key: entry.value for entry in value.external_data}
                tensor = tensors[value.name]
                expected = {"location": "model.safetensors", "offset": str(tensor.begin), "length": str(tensor.length)}
                self.assertEqual((place, list(value.dims)), (expected, tensor.shape), value.name)

    def test_refuses_a_tensor_that_it_has_no_use_for(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            weights = Path(folder) / "model.safetensors"
            shutil.copyfile(built["q8"] / weights.name, weights)
            network = graph.Int8Graph(weights)
            network.tensors["encoder.layer.0.other"] = graph.Tensor("F32", [384], 0, 1536)
            with self.assertRaisesRegex(ValueError, "does not use encoder.layer.0.other of model.safetensors"):
                network.write(weights.with_name("model.onnx"), "")

    def test_int8_weights_cannot_saturate(self) -> None:
        """The largest sum of two products with an unsigned byte fits into 16 bits, for every linear layer."""
        path = built["q8"] / "model.safetensors"
        tensors, _ = graph.read_header(path)
        weights = {name: tensor for name, tensor in tensors.items() if tensor.dtype == "I8" and name.startswith("encoder.")}
        self.assertEqual(len(weights), 6 * graph.LAYERS)
        content = path.read_bytes()
        for name, tensor in weights.items():
            values = np.frombuffer(content, "i1", tensor.length, tensor.begin).reshape(tensor.shape).astype(int)
            for part in (values.clip(0), (-values).clip(0)):
                self.assertLess(255 * (part[:, ::2] + part[:, 1::2]).max(), 1 << 15, name)


if __name__ == "__main__":
    unittest.main()

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
from onnx import numpy_helper

import build
import check
import graph
import quantize

built: dict[str, Path] = {}


def setUpModule() -> None:
    """Provides the finished packages that the tests copy."""
    for dtype, name in build.PACKAGES.items():
        built[dtype] = build.DEFAULT_OUTPUT / name
        if build.outdated(built[dtype], verify=True):
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
            self.assertEqual(manifest["weights"]["sha256"], build.SOURCES["model.safetensors"])
            for name in build.COPIED:
                self.assertEqual(manifest["files"][name]["sha256"], build.SOURCES[name])

    def test_detects_a_truncated_model(self) -> None:
        os.truncate(self.output / "model.onnx", 1000)
        code, printed = run("--dtype", "fp32", "--output", self.folder, "--check")
        self.assertEqual(code, 1)
        self.assertIn("model.onnx has 1000 bytes", printed)

    def test_detects_a_flipped_bit_when_verifying(self) -> None:
        with (self.output / "model.onnx").open("r+b") as file:
            file.seek(50_000_000)
            byte = file.read(1)[0]
            file.seek(-1, os.SEEK_CUR)
            file.write(bytes([byte ^ 1]))
        self.assertEqual(run("--dtype", "fp32", "--output", self.folder, "--check")[0], 0)
        code, printed = run("--dtype", "fp32", "--output", self.folder, "--check", "--verify")
        self.assertEqual(code, 1)
        self.assertIn("model.onnx has SHA-256", printed)

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
        self.models = {dtype: (path / "model.onnx").read_bytes() for dtype, path in built.items()}

    def test_refuses_other_results(self) -> None:
        others = mock.patch.object(check, "PUBLISHED", (*check.PUBLISHED[:7], -0.0072))
        with others, self.assertRaisesRegex(build.BuildError, r"value 7 of .* is -0\.0070984, published is -0\.0072000"):
            check.check_fp32(self.models["fp32"], self.tokenizer)

    def test_compares_int8_with_fp32(self) -> None:
        reference = check.Embedder(self.models["fp32"], self.tokenizer)
        unseen = "A migrating heron waits out the storm beneath the railway bridge."
        self.assertIn("cosines with fp32", check.check_q8(self.models["q8"], reference, [unseen]))

        model = onnx.load_from_string(self.models["q8"])
        scale = next(value for value in model.graph.initializer if value.name == "encoder.layer.0.output.scale")
        scale.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(scale) * np.float32(2), scale.name))
        with self.assertRaisesRegex(build.BuildError, "cosines with fp32"):
            check.check_q8(model.SerializeToString(), reference, [unseen])

    def test_int8_weights_cannot_saturate(self) -> None:
        """The largest sum of two products with an unsigned byte fits into 16 bits, for every linear layer."""
        model = onnx.load_from_string(self.models["q8"]).graph
        users = {name for node in model.node if node.op_type in ("DynamicQuantizeMatMul", "QAttention") for name in node.input}
        weights = [value for value in model.initializer if value.name in users and len(value.dims) == 2]
        self.assertEqual(len(weights), 4 * graph.LAYERS)
        for weight in weights:
            values = numpy_helper.to_array(weight).astype(int)
            self.assertEqual(numpy_helper.to_array(weight).dtype, np.int8)
            values = np.pad(values, ((0, len(values) % 2), (0, 0)))
            for part in (values.clip(0), (-values).clip(0)):
                self.assertLess(255 * (part[::2] + part[1::2]).max(), 1 << 15, weight.name)


class QuantizeTest(unittest.TestCase):
    """The arithmetic of quantize.py."""

    def test_measures_what_the_graph_computes(self) -> None:
        weights = build.read_weights(build.find_sources() / build.WEIGHTS)
        ids = [101, 2023, 2003, 2019, 2742, 6251, 102]
        peaks = quantize.measure(weights, [ids])
        names = {}
        for layer, kind in peaks:
            prefix = f"encoder.layer.{layer}"
            before = "embeddings.LayerNorm" if layer == 0 else f"encoder.layer.{layer - 1}.output.LayerNorm"
            names[layer, kind] = {"qkv": before, "up": f"{prefix}.attention.output.LayerNorm", "down": f"{prefix}.gelu"}[kind]
        model = onnx.load(built["fp32"] / "model.onnx")
        model.graph.output.extend(
            onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None) for name in names.values()
        )
        values = {"input_ids": [ids], "attention_mask": [[1] * len(ids)], "token_type_ids": [[0] * len(ids)]}
        session = check.Embedder(model.SerializeToString(), mock.Mock()).session
        results = session.run(list(names.values()), {name: np.array(value) for name, value in values.items()})
        for site, found in zip(names, results, strict=True):
            np.testing.assert_allclose(np.abs(found[0]).max(0), peaks[site], atol=5e-3, rtol=5e-3, err_msg=str(site))

    def test_spreading_keeps_the_product(self) -> None:
        random = np.random.default_rng(1)
        weight, x = random.normal(size=(6, 5)), random.normal(size=(3, 6))
        factors = np.array([1, 8, 1, 1, 2, 1.0])
        rows, channels = quantize.spread(weight, factors)
        self.assertEqual(channels[:6], list(range(6)))
        self.assertEqual(set(channels[6:]) - {1, 4}, set())
        self.assertLessEqual(np.abs(rows).max(), np.abs(weight).max())
        np.testing.assert_allclose((x / factors)[:, channels] @ rows, x @ weight)

    def test_quantising_is_exact_to_half_a_step(self) -> None:
        weight = np.random.default_rng(2).normal(size=(7, 4))
        values, scale = quantize.quantized(weight)
        self.assertLessEqual((np.abs(values * scale.astype("f8") - weight) / scale).max(), 0.5 + 1e-6)


if __name__ == "__main__":
    unittest.main()

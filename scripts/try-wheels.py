"""Installs kp-score from its wheels into empty environments, without network and Node.js, and scores there.

    python scripts/try-wheels.py WHEEL_DIRECTORY [--platform TAG] [--compare COMMAND...]

Needs nothing but Python and its pip, so that it runs on every platform of a release. With `--platform`, programs of another platform
that this machine can run are tried. With `--compare`, everything that kp-score prints and writes must be what another command does.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VERSION = json.loads((ROOT / "package.json").read_text("utf-8"))["version"]
SUFFIX = ".exe" if os.name == "nt" else ""
# Not that of a virtual environment, which knows no installation for a user.
PYTHON = getattr(sys, "_base_executable", None) or sys.executable

TRACE = {
    "task": {"objective": "Find the cause of the failing build"},
    "steps": [{"type": "thought", "content": "The log ends in a linker error."}, {"type": "observation"}],
    "outcome": {"confidence": 0.9},
    "metadata": {"task_domain": "code", "success": True},
}
# By hand: C = 0.27, D = 0, O = 0.9; N is 0.5, and then 0.
SECOND_SCORE = 0.2 * 0.27 + 0.2 * 0.9
FIRST_SCORE = SECOND_SCORE + 0.3 * 0.5

# What is compared.
RUNS = [
    ["--version"],
    ["--help"],
    ["traces.jsonl"],
    ["score", "traces.jsonl", "--format", "json", "--explain"],
    ["score", "traces.jsonl", "--format", "csv"],
    ["score", "traces.jsonl", "--out", "out.jsonl", "--min", "0.6", "--explain"],
    ["score", "traces.jsonl", "--format", "jsonl", "--novelty", "prefix"],
    ["score", "traces.jsonl", "--format", "jsonl", "--novelty", "full"],
    ["score", "traces.jsonl", "--report", "page.html"],
    ["score", "missing.jsonl"],
    ["select", "10", "traces.jsonl", "--out", "out.jsonl.gz"],
    ["select", "10", "traces.jsonl", "--format", "jsonl", "--novelty", "full"],
    ["share", "10", "traces.jsonl", "-o", "shared", "--yes"],
    ["clean", "traces.jsonl", "--out", "out.jsonl"],
    ["completions", "bash"],
    ["--no-such-option"],
]
# What another run or another installation has otherwise: times, and where the model is.
VARYING = re.compile(rb'in [\d.,]+ \w+, [\d.,]+ per \w+|"(seconds|perSecond)":[^,]*|"(modelDirectory|finishedAt)":"[^"]*"')


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("wheels", type=Path)
    parser.add_argument("--platform")
    parser.add_argument("--compare", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kp-score-") as folder:
        folder = Path(folder)
        work = folder / "work"
        work.mkdir()
        (work / "two.json").write_text(json.dumps([TRACE, TRACE]), "utf-8")
        (work / "traces.jsonl").write_bytes((ROOT / "examples" / "traces.jsonl").read_bytes())
        for name, install in INSTALLATIONS.items():
            if options.platform and install is not into_target:
                continue
            program = install(folder / name, Installer(options.wheels.resolve(), options.platform))
            check_scores(program, work)
            print(f"{name}: kp-score {VERSION} scores as it should")
            if name == "virtual environment":
                check_messages(program, work)
                check_link(program, folder / "link", work)
                check_module(folder / name)
                check_removal(folder / name, work)
        if options.compare:
            compare(program, options.compare, work)


class Installer:
    """Installs the packages from wheels alone."""

    def __init__(self, wheels, platform):
        self.options = ["--no-index", "--find-links", str(wheels), "--pre"]
        if platform:
            self.options += ["--platform", platform, "--only-binary", ":all:"]

    def __call__(self, python, *options, **env):
        start = time.perf_counter()
        pip(python, "install", *self.options, *options, "kp-score", **env)
        print(f"pip install: {time.perf_counter() - start:.1f} s")


def pip(python, *arguments, **env):
    env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PIP_CONFIG_FILE": os.devnull, "PIP_ROOT_USER_ACTION": "ignore", **env}
    command = [str(python), "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments]
    subprocess.run(command, env=env, check=True)


def into_environment(directory, install):
    subprocess.run([PYTHON, "-m", "venv", str(directory)], check=True)
    before = contents(directory)
    install(scripts_of(directory) / f"python{SUFFIX}")
    (directory.parent / "before.json").write_text(json.dumps(before), "utf-8")
    return scripts_of(directory) / f"kp-score{SUFFIX}"


def into_target(directory, install):
    install(PYTHON, "--target", str(directory))
    return directory / "bin" / f"kp-score{SUFFIX}"


def for_user(directory, install):
    # Where the system's packages manage Python it refuses, and there pipx is what people use.
    install(PYTHON, "--user", PYTHONUSERBASE=str(directory), PIP_BREAK_SYSTEM_PACKAGES="1")
    (program,) = directory.rglob(f"kp-score{SUFFIX}")
    return program


INSTALLATIONS = {"virtual environment": into_environment, "user": for_user, "target": into_target}


def scripts_of(environment):
    return environment / ("Scripts" if os.name == "nt" else "bin")


def contents(directory):
    # pip leaves folders that have become empty.
    return sorted(str(path.relative_to(directory)) for path in directory.rglob("*") if not path.is_dir())


def run(command, work, **env):
    # No Node.js, no home, no cache: the program needs none. Windows' own libraries need the root of the system.
    kept = {name: os.environ[name] for name in ("SYSTEMROOT", "TMPDIR", "TEMP", "TMP") if name in os.environ}
    return subprocess.run([str(part) for part in command], cwd=work, env={**kept, "PATH": "", **env}, capture_output=True)


def check_scores(program, work):
    version = run([program, "--version"], work)
    if version.stdout.decode().split()[-1:] != [VERSION]:
        raise SystemExit(f"--version prints {version.stdout!r}, not {VERSION}")
    result = run([program, "score", "--format", "jsonl", "--novelty", "prefix", "--verbose", "two.json"], work)
    scores = [json.loads(line)["score"] for line in result.stdout.splitlines()]
    expected = [FIRST_SCORE, SECOND_SCORE]
    if len(scores) != 2 or any(abs(one - other) > 1e-5 for one, other in zip(scores, expected)):
        raise SystemExit(f"{program} prints {result.stdout!r} and {result.stderr!r}, not scores of {expected}")
    if b"q8" not in result.stderr:
        raise SystemExit(f"not the int8 model: {result.stderr!r}")


def check_messages(program, work):
    prefix = ["score", "--novelty", "prefix"]
    for arguments, env, code, text in [
        (["doctor"], {}, 2, "npx"),
        (["score", "--store", "postgres://localhost/traces", "two.json"], {}, 2, "npx"),
        ([*prefix, "two.json"], {"KNOWLEDGEPULSE_DTYPE": "fp32"}, 3, "all-minilm-l6-v2;"),
        ([*prefix, "two.json"], {"KNOWLEDGEPULSE_THREADS": "0"}, 0, "from 1 to 1024"),
        ([*prefix, "two.json"], {"KNOWLEDGEPULSE_ENGINE": "onnxruntime"}, 3, "KNOWLEDGEPULSE_ONNXRUNTIME"),
        ([*prefix, "two.json"], {"KNOWLEDGEPULSE_MODEL_DIR": "nowhere"}, 3, "nowhere does not exist"),
        (["two.json"], {"KNOWLEDGEPULSE_MODEL_DIR": "nowhere"}, 0, "2 traces scored"),
    ]:
        result = run([program, *arguments], work, **env)
        if result.returncode != code or text not in result.stderr.decode():
            raise SystemExit(f"{arguments} with {env} says {result.returncode} {result.stderr!r}, not {text}")


def check_module(environment):
    """`import kp_score` runs the program of its environment."""
    tests = ROOT / "python" / "kp-score" / "tests"
    command = [str(scripts_of(environment) / f"python{SUFFIX}"), "-B", "-m", "unittest", "discover", "-s", str(tests)]
    subprocess.run(command, check=True)


def check_link(program, link, work):
    """As pipx and uv link to a program; Windows permits links to some users alone."""
    if os.name == "nt":
        return
    link.symlink_to(program)
    check_scores(link, work)


def check_removal(environment, work):
    """Without the model the program says what to do; without both no file is left."""
    python = scripts_of(environment) / f"python{SUFFIX}"
    pip(python, "uninstall", "--yes", "kp-score-model")
    program = scripts_of(environment) / f"kp-score{SUFFIX}"
    if run([program, "score", "two.json"], work).returncode != 0:
        raise SystemExit("without its model it does not compare by words")
    result = run([program, "score", "--novelty", "prefix", "two.json"], work)
    if result.returncode != 3 or b"install kp-score-model" not in result.stderr:
        raise SystemExit(f"without its model it says {result.stderr!r}")
    pip(python, "uninstall", "--yes", "kp-score")
    before = json.loads((environment.parent / "before.json").read_text("utf-8"))
    left = sorted(set(contents(environment)) - set(before))
    if left:
        raise SystemExit(f"pip uninstall leaves {left}")
    print("pip uninstall leaves no file")


def compare(program, reference, work):
    for arguments in RUNS:
        ours = outcome([program], arguments, work, {})
        theirs = outcome(reference, arguments, work, dict(os.environ))
        for name in sorted({*ours, *theirs}):
            one, other = ours.get(name, b""), theirs.get(name, b"")
            if one != other:
                at = len(os.path.commonprefix([one, other]))
                difference = f"{one[max(0, at - 40):at + 40]!r}, not {other[max(0, at - 40):at + 40]!r}"
                raise SystemExit(f"kp-score {' '.join(arguments)}: {name} at byte {at} is {difference}")
    print(f"{len(RUNS)} runs print and write the bytes of {' '.join(reference)}")


def outcome(command, arguments, work, env):
    before = set(work.rglob("*"))
    result = run([*command, *arguments], work, **env)
    new = set(work.rglob("*")) - before
    written = {str(path.relative_to(work)): path.read_bytes() for path in new if path.is_file()}
    for path in work.iterdir():
        if path not in before:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    code = str(result.returncode).encode()
    found = {"exit code": code, "stdout": result.stdout, "stderr": result.stderr, **written}
    return {name: VARYING.sub(b"", value) for name, value in found.items()}


if __name__ == "__main__":
    main()

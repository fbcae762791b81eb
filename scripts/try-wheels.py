"""Installs kp-score from its wheels into empty environments, without network and Node.js, and scores there.

    python scripts/try-wheels.py WHEEL_DIRECTORY
    python scripts/try-wheels.py --published                          this version from PyPI or from PIP_INDEX_URL, with its network

Needs nothing but Python and its pip, so that it runs on every platform of a release.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
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


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("wheels", type=Path, nargs="?")
    parser.add_argument("--published", action="store_true")
    options = parser.parse_args()
    if (options.wheels is None) != options.published:
        parser.error("either a directory of wheels or --published")
    wheels = None if options.published else options.wheels.resolve()
    with tempfile.TemporaryDirectory(prefix="kp-score-") as folder:
        folder = Path(folder)
        work = folder / "work"
        work.mkdir()
        (work / "two.json").write_text(json.dumps([TRACE, TRACE]), "utf-8")
        for name, install in INSTALLATIONS.items():
            install(folder / name, Installer(wheels), work)
            print(f"{name}: kp-score {VERSION} scores as it should")


class Installer:
    """Installs the packages from wheels alone, or this version from the registry."""

    def __init__(self, wheels):
        self.version = f"=={VERSION}" if wheels is None else ""
        self.options = ["--only-binary", ":all:"] if wheels is None else ["--no-index", "--find-links", str(wheels), "--pre"]

    def __call__(self, python, package, *options, **env):
        pip(python, "install", *self.options, *options, package + self.version, **env)


def pip(python, *arguments, **env):
    env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PIP_CONFIG_FILE": os.devnull, "PIP_ROOT_USER_ACTION": "ignore", **env}
    command = [str(python), "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments]
    subprocess.run(command, env=env, check=True)


def into_environment(directory, install, work):
    """The program alone, with the model, as pipx and uv link to it, and removed again."""
    subprocess.run([PYTHON, "-m", "venv", str(directory)], check=True)
    before = contents(directory)
    python, program = (scripts_of(directory) / f"{name}{SUFFIX}" for name in ("python", "kp-score"))
    install(python, "kp-score")
    check_without_model(program, work)
    tests = ROOT / "python" / "kp-score" / "tests"
    subprocess.run([str(python), "-B", "-m", "unittest", "discover", "-s", str(tests)], check=True)
    install(python, "kp-score[model]")
    check_scores(program, work)
    if os.name != "nt":
        # Windows permits links to some users alone.
        link = directory.parent / "link"
        link.symlink_to(program)
        check_scores(link, work)
    pip(python, "uninstall", "--yes", "kp-score", "kp-score-model")
    left = sorted(set(contents(directory)) - set(before))
    if left:
        raise SystemExit(f"pip uninstall leaves {left}")


def into_target(directory, install, work):
    install(PYTHON, "kp-score[model]", "--target", str(directory))
    check_scores(directory / "bin" / f"kp-score{SUFFIX}", work)


def for_user(directory, install, work):
    # Where the system's packages manage Python it refuses, and there pipx is what people use.
    install(PYTHON, "kp-score[model]", "--user", PYTHONUSERBASE=str(directory), PIP_BREAK_SYSTEM_PACKAGES="1")
    (program,) = directory.rglob(f"kp-score{SUFFIX}")
    check_scores(program, work)


INSTALLATIONS = {"virtual environment": into_environment, "user": for_user, "target": into_target}


def scripts_of(environment):
    return environment / ("Scripts" if os.name == "nt" else "bin")


def contents(directory):
    # pip leaves folders that have become empty.
    return sorted(str(path.relative_to(directory)) for path in directory.rglob("*") if not path.is_dir())


def run(command, work):
    # No Node.js, no home, no cache: the program needs none. Windows' own libraries need the root of the system.
    kept = {name: os.environ[name] for name in ("SYSTEMROOT", "TMPDIR", "TEMP", "TMP") if name in os.environ}
    return subprocess.run([str(part) for part in command], cwd=work, env={**kept, "PATH": ""}, capture_output=True)


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


def check_without_model(program, work):
    """Compares by words, and says what an embedding needs."""
    result = run([program, "score", "two.json"], work)
    if result.returncode != 0 or b"2 traces scored" not in result.stderr:
        raise SystemExit(f"without a model it says {result.returncode} {result.stderr!r}")
    result = run([program, "score", "--novelty", "prefix", "two.json"], work)
    if result.returncode != 3 or not re.search(rb"kp-score(-model|\[model\])", result.stderr):
        raise SystemExit(f"without a model --novelty prefix says {result.returncode} {result.stderr!r}")


if __name__ == "__main__":
    main()

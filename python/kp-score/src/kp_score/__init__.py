"""Reads, scores, chooses and shares the sessions of agents, by the program ``kp-score`` that comes with this package.

    import kp_score

    for row in kp_score.score("~/.claude/projects"):
        print(row["score"], row["objective"])

Every function takes a path or several, of files or folders, and the options of its command by keyword: ``--novelty full`` is
``novelty="full"``, a flag is ``explain=True``, and a list repeats an option. ``kp-score COMMAND --help`` lists them.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict, Iterable, Iterator, List, Union

if TYPE_CHECKING:
    import pandas

__all__ = ["KpScoreError", "program", "read", "score", "select", "share", "to_pandas"]

Paths = Union[str, "os.PathLike[str]", Iterable[Union[str, "os.PathLike[str]"]]]
Option = Union[None, bool, int, float, str, "os.PathLike[str]", List[Any]]
Row = Dict[str, Any]

# Some lines are no traces, and the rest was read.
BAD_LINES = 1


class KpScoreError(Exception):
    """Says why the program failed; ``code`` is its exit code."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


def program() -> str:
    """Returns the path of the program that was installed with this package, or else of that on the PATH.

    Raises ``KpScoreError`` if there is none.
    """
    name = "kp-score.exe" if os.name == "nt" else "kp-score"
    user = sysconfig.get_preferred_scheme("user") if sys.version_info >= (3, 10) else f"{os.name}_user"
    folders = [
        sysconfig.get_path("scripts"),
        sysconfig.get_path("scripts", scheme=user),
        # Of `pip install --target`.
        str(Path(__file__).parent.parent / "bin"),
    ]
    for folder in folders:
        if folder and (Path(folder) / name).is_file():
            return str(Path(folder) / name)
    found = shutil.which("kp-score")
    if found is None:
        raise KpScoreError(f"{name} is neither in {' nor in '.join(folders)} nor on the PATH; install kp-score again", 3)
    return found


def read(paths: Paths, **options: Option) -> Iterator[Row]:
    """Yields the traces in ``paths``, whatever their format, with their scores as ``metadata.quality_score``."""
    with tempfile.TemporaryDirectory(prefix="kp-score-") as folder:
        file = Path(folder) / "traces.jsonl"
        _run(_arguments("score", paths, {**options, "out": file}))
        yield from _lines_of(file)


def score(paths: Paths, **options: Option) -> Iterator[Row]:
    """Yields the score of each trace, in the order of the input."""
    yield from _rows(_arguments("score", paths, {**options, "format": "jsonl"}))


def select(count: int | str, paths: Paths, **options: Option) -> Iterator[Row]:
    """Yields the ``count`` traces (or a share, as in ``"10%"``) that together cover the others, the first choice first."""
    yield from _rows(_arguments("select", paths, {**options, "format": "jsonl"}, count))


def share(count: int | str, paths: Paths, folder: str | os.PathLike[str], **options: Option) -> Iterator[Row]:
    """Writes the chosen sessions, cleaned, into ``folder``; returns the lines of its manifest.

    Looks at nothing for you: ``review`` in a line names the places that a person should see before the folder is published.
    """
    _run(_arguments("share", paths, {**options, "o": folder, "yes": True}, count))
    return _lines_of(Path(folder).expanduser() / "manifest.jsonl")


def to_pandas(rows: Iterable[Row]) -> pandas.DataFrame:
    """Returns rows as a table; what is nested gets columns as ``dimensions.novelty``. Needs pandas."""
    import pandas

    return pandas.json_normalize(list(rows))


def _arguments(command: str, paths: Paths, options: dict[str, Option], *first: int | str) -> list[str]:
    """Returns the arguments of a command; ``first`` are those before the paths."""
    arguments = [command]
    for name, value in options.items():
        option = f"-{name}" if len(name) == 1 else f"--{name.replace('_', '-')}"
        for one in value if isinstance(value, (list, tuple)) else [value]:
            if one is True:
                arguments.append(option)
            elif one is not None and one is not False:
                arguments.append(f"{option}={os.fspath(one) if isinstance(one, os.PathLike) else one}")
    several = [paths] if isinstance(paths, (str, os.PathLike)) else paths
    named = [os.path.expanduser(os.fspath(path)) for path in several]
    return [*arguments, "--", *(str(one) for one in first), *named]


def _rows(arguments: list[str]) -> Iterator[Row]:
    """Yields the lines that the program prints, while it runs."""
    with tempfile.TemporaryFile() as messages:
        command = [program(), *arguments]
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=messages) as process:
            assert process.stdout is not None
            try:
                for line in process.stdout:
                    yield json.loads(line)
            except BaseException:
                # Nobody takes the rest.
                process.terminate()
                raise
        messages.seek(0)
        _check(process.returncode, messages.read())


def _run(arguments: list[str]) -> None:
    """Runs the program to its end."""
    done = subprocess.run(
        [program(), *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False
    )
    _check(done.returncode, done.stderr)


def _check(code: int, messages: bytes) -> None:
    """Raises what a failed run told, and warns of bad lines and of what else it told."""
    prefix = "kp-score: "
    text = messages.decode("utf-8", "replace").strip()
    told = "\n".join(line[len(prefix) :] for line in text.splitlines() if line.startswith(prefix))
    if code not in (0, BAD_LINES):
        raise KpScoreError(told or text or f"kp-score ended with {code}", code)
    if code == BAD_LINES or told:
        warnings.warn(told if code == 0 else text, stacklevel=3)


def _lines_of(file: Path) -> Iterator[Row]:
    with file.open(encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)

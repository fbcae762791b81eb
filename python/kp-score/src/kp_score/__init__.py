"""Reads, scores, chooses, cleans and shares the sessions of agents, by the program ``kp-score`` that comes with this package.

    import kp_score

    for row in kp_score.score():  # the sessions on this machine
        print(row["score"], row["objective"])

Functions take a path or several, of files or folders; ``score``, ``share`` and ``report`` read the sessions that agents left on this machine
where that is ``None``. Options of the command are keywords: ``--novelty full`` is ``novelty="full"``, a flag is ``explain=True``, a list repeats an option, and ``--from`` and ``--as``,
which are words of Python, are ``source`` and ``form``. ``kp-score COMMAND --help`` lists them.
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
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict, Iterable, Iterator, List, Mapping, Optional, TypeVar, Union

if TYPE_CHECKING:
    import pandas

__all__ = [
    "KpScoreError",
    "clean",
    "program",
    "read",
    "report",
    "score",
    "select",
    "share",
    "show",
    "to_pandas",
]

Paths = Union[None, str, "os.PathLike[str]", Iterable[Union[str, "os.PathLike[str]"]]]
Option = Union[None, bool, int, float, str, "os.PathLike[str]", List[Any]]
Row = Dict[str, Any]
Cleaned = TypeVar("Cleaned", str, Row)

try:
    __version__ = metadata.version("kp-score")
except metadata.PackageNotFoundError:
    # Imported from a checkout.
    __version__ = "0"

# Some lines are no traces, and the rest was read.
BAD_LINES = 1

# Numbers that may be whole and are none, so that every row has a column in one type.
FLOATS = frozenset(
    "score confidence quality_score similarity gain covered nearestBefore complexity novelty toolDiversity outcomeConfidence "
    "composite before after lexical contained embedded weight".split()
)

# The options whose names are words of Python.
RENAMED = {"source": "from", "form": "as"}


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


def read(paths: Paths, *, source: Optional[str] = None, **options: Option) -> Iterator[Row]:
    """Yields the traces in ``paths``, whatever their format, with their scores as ``metadata.quality_score``."""
    with tempfile.TemporaryDirectory(prefix="kp-score-") as folder:
        file = Path(folder) / "traces.jsonl"
        _run(_arguments("score", paths, {"source": source, **options, "out": file}))
        yield from map(json.loads, _lines_of(file))


def score(paths: Paths = None, *, source: Optional[str] = None, **options: Option) -> Iterator[Row]:
    """Yields the score of each trace, in the order of the input."""
    yield from _rows(_arguments("score", paths, {"source": source, **options, "format": "jsonl"}))


def select(
    count: Union[int, str], paths: Paths = None, *, source: Optional[str] = None, **options: Option
) -> Iterator[Row]:
    """Yields the ``count`` traces (or a share, as in ``"10%"``) that together cover the others, the first choice first."""
    yield from _rows(_arguments("select", paths, {"source": source, **options, "format": "jsonl"}, count))


def share(
    count: Union[None, int, str],
    paths: Paths,
    folder: Union[str, os.PathLike[str]],
    *,
    form: Optional[str] = None,
    source: Optional[str] = None,
    **options: Option,
) -> Iterator[Row]:
    """Adds the chosen sessions, cleaned, to ``folder``; returns the lines of its manifest.

    ``count`` is None where ``pick``, ``decisions`` or ``remove`` say which. Looks at nothing for you: ``review`` in a line names the places
    that a person should see before the folder is published.
    """
    given = {"source": source, "form": form, **options, "o": os.path.expanduser(folder), "yes": True}
    _run(_arguments("share", paths, given, *([] if count is None else [count])))
    return map(_row, _lines_of(Path(folder).expanduser() / "manifest.jsonl"))


def show(session: Union[int, str, os.PathLike[str]], **options: Option) -> str:
    """Returns a session as a conversation, clean: by its number in the last list of ``kp-score``, its id, or its file."""
    named = session if isinstance(session, int) else os.path.expanduser(session)
    return _run(_arguments("show", None, options, named)).decode()


def clean(value: Cleaned, **options: Option) -> Cleaned:
    """Returns a copy of a text or a trace without secrets, personal data and the identities of who worked in it."""
    if not isinstance(value, (str, Mapping)):
        raise TypeError(f"value must be a str or a dict, not {type(value).__name__}")
    given = value if isinstance(value, str) else json.dumps(value)
    printed = _run(_arguments("clean", "-", options), given.encode())
    if isinstance(value, str):
        return printed.decode()
    cleaned: Row = json.loads(printed)
    return cleaned


def report(paths: Paths = None, file: Union[str, os.PathLike[str]] = "report.html", **options: Option) -> Path:
    """Writes the page to decide at, ``file``, and returns its path."""
    page = Path(file).expanduser()
    _run(_arguments("report", paths, {**options, "out": page}))
    return page


def to_pandas(rows: Iterable[Row]) -> pandas.DataFrame:
    """Returns rows as a table; what is nested gets columns as ``dimensions.novelty``. Needs pandas."""
    import pandas

    return pandas.json_normalize(list(rows))


def _arguments(command: str, paths: Paths, options: Mapping[str, Option], *first: Union[int, str]) -> List[str]:
    """Returns the arguments of a command; ``first`` are those before the paths."""
    arguments = [command]
    for name, value in options.items():
        name = RENAMED.get(name, name)
        option = f"-{name}" if len(name) == 1 else f"--{name.replace('_', '-')}"
        for one in value if isinstance(value, (list, tuple)) else [value]:
            if one is True:
                arguments.append(option)
            elif one is not None and one is not False:
                arguments.append(f"{option}={os.fspath(one) if isinstance(one, os.PathLike) else one}")
    several = [paths] if isinstance(paths, (str, os.PathLike)) else paths or []
    named = [os.path.expanduser(os.fspath(path)) for path in several]
    return [*arguments, "--", *(str(one) for one in first), *named]


def _rows(arguments: List[str]) -> Iterator[Row]:
    """Yields the lines that the program prints, while it runs."""
    with tempfile.TemporaryFile() as messages:
        command = [program(), *arguments]
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=messages) as process:
            assert process.stdout is not None
            try:
                for line in process.stdout:
                    yield _row(line)
            except BaseException:
                # Nobody takes the rest.
                process.terminate()
                raise
        messages.seek(0)
        _check(process.returncode, messages.read())


def _run(arguments: List[str], given: bytes = b"") -> bytes:
    """Runs the program to its end, and returns what it prints."""
    done = subprocess.run([program(), *arguments], input=given, capture_output=True, check=False)
    _check(done.returncode, done.stderr)
    return done.stdout


def _check(code: int, messages: bytes) -> None:
    """Raises what a failed run told, and warns of bad lines and of what else it told."""
    prefix = "kp-score: "
    text = messages.decode("utf-8", "replace").strip()
    told = "\n".join(line[len(prefix) :] for line in text.splitlines() if line.startswith(prefix))
    if code not in (0, BAD_LINES):
        raise KpScoreError(told or text or f"kp-score ended with {code}", code)
    if code == BAD_LINES or told:
        warnings.warn(told if code == 0 else text, stacklevel=3)


def _row(line: Union[str, bytes]) -> Row:
    row: Row = json.loads(line, object_hook=_in_one_type)
    return row


def _in_one_type(fields: Row) -> Row:
    floats = {name: float(value) for name, value in fields.items() if name in FLOATS and type(value) is int}
    return {**fields, **floats}


def _lines_of(file: Path) -> Iterator[str]:
    with file.open(encoding="utf-8") as lines:
        yield from lines

"""Output: data goes to stdout, messages to stderr, and problems have one form in every command."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import IntEnum, StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn, TextIO

import typer

from dobonomodo.problems import Blame, Problem, render

if TYPE_CHECKING:
    from rich.console import Console

    from dobonomodo.workspace import Workspace
    from dobonomodo.workspace.answer import Data


class Exit(IntEnum):
    """The exit codes of all commands."""

    SUCCESS = 0
    FAILURE = 1
    USAGE = 2
    BUG = 3
    CONFLICT = 4
    NOTHING = 5
    ENVIRONMENT = 6
    INTERRUPTED = 130


_EXIT_BY_BLAME = {
    Blame.BUG: Exit.BUG,
    Blame.CONFLICT: Exit.CONFLICT,
    Blame.CALLER: Exit.USAGE,
    Blame.ENVIRONMENT: Exit.ENVIRONMENT,
    Blame.AUTHOR: Exit.FAILURE,
}
"""The exit code by who must act; of several problems, the first in this order decides."""


def find_exit(problems: Iterable[Problem]) -> Exit:
    """The exit code of a command that ends with these problems."""
    blamed = {problem.blame for problem in problems if problem.severity == "error"}
    return next((code for blame, code in _EXIT_BY_BLAME.items() if blame in blamed), Exit.FAILURE)


class Settings:
    """The common flags, set by the root command, or by the command that they follow."""

    command: str = "dobo"
    as_json: bool = False
    color: bool | None = None
    quiet: bool = False
    verbose: bool = False
    debug: bool = False
    folder: str | None = None
    environment: str | None = None
    log_json: bool = False

    @classmethod
    def reset(cls) -> None:
        """Forget the flags of an earlier command of this process."""
        cls.command, cls.color, cls.folder, cls.environment = "dobo", None, None, None
        cls.as_json = cls.quiet = cls.verbose = cls.debug = cls.log_json = False


def _or_before(value: bool) -> bool:
    """Whether the flag is given before or after the command."""
    Settings.as_json = Settings.as_json or value
    return Settings.as_json


class LogFormat(StrEnum):
    """How a command writes what it does to stderr."""

    TEXT = "text"
    JSON = "json"


def _set_log(value: LogFormat) -> LogFormat:
    Settings.log_json = value is LogFormat.JSON
    return value


Log = Annotated[
    LogFormat,
    typer.Option("--log", callback=_set_log, help="Progress on stderr as text, or as one line of JSON for each event."),
]

Json = Annotated[bool, typer.Option("--json", callback=_or_before, help="Print one JSON document instead of text.")]


def colored(stream: TextIO) -> bool:
    """Whether a stream is to be coloured: never with NO_COLOR or --no-color, else on a terminal."""
    if Settings.color is False or os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or bool(stream.isatty())


def terminal_width(stream: TextIO) -> int | None:
    """How many cells a line of a terminal has; a file or a program takes lines of any length."""
    return shutil.get_terminal_size().columns if stream.isatty() else None


def say(text: str) -> None:
    """Print a message to stderr, unless --quiet."""
    if Settings.log_json:
        log("message", text=text)
    elif not Settings.quiet:
        put(render.printable_lines(text) + "\n", sys.stderr)


def complain(text: str) -> None:
    """Print a message to stderr, even with --quiet."""
    if Settings.log_json:
        log("message", level="warning", text=text)
        return
    put(render.printable_lines(text) + "\n", sys.stderr)


def log(event: str, *, level: str = "info", **facts: object) -> None:
    """One event as a line of JSON."""
    line = {"time": datetime.now(UTC).isoformat(timespec="milliseconds"), "level": level, "event": event, **facts}
    put(render.printable_json(json.dumps(line, ensure_ascii=False, default=_plain)) + "\n", sys.stderr)


def show(text: str, *, mark: str = "") -> None:
    """Print a line of data to stdout, after a coloured ``mark``."""
    put(mark + render.printable_lines(text) + "\n", sys.stdout)


def put(text: str, stream: TextIO) -> None:
    """Write and flush text unchanged: the caller has escaped foreign text.

    If the reader has gone, as after `| head`, the command continues and ends normally.
    """
    try:
        stream.write(text)
        stream.flush()
    except BrokenPipeError:
        _abandon(stream)


def _abandon(stream: TextIO) -> None:
    """Discard all further output, including the stream's buffer."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def make_console(stream: TextIO, *, markup: bool = False) -> Console:
    """A console of rich that follows the common flags; without markup, text with brackets stays as it is."""
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.segment import Segment

    class Ours(Console):
        def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
            """Every text passes through here; what moves the cursor is rich's own."""
            for text, style, control in super().render(renderable, options):
                yield Segment(text if control else render.printable_lines(text), style, control)

        def on_broken_pipe(self) -> None:
            """Go on; rich would end the process."""
            _abandon(stream)

    return Ours(file=stream, no_color=not colored(stream), highlight=False, markup=markup, emoji=False)


def show_problems(problems: Sequence[Problem]) -> None:
    """Problems for a person; in a log of JSON, one line each."""
    if Settings.log_json:
        for problem in problems:
            log("problem", level=problem.severity, code=problem.code, message=problem.message(), hint=problem.hint())
    elif problems:
        put_problems(problems, sys.stderr)


def put_problems(problems: Sequence[Problem], stream: TextIO) -> None:
    """Problems with their excerpts, for a person."""
    put(render.render_full(problems, color=colored(stream), width=terminal_width(stream)) + "\n", stream)


def show_json(thing: str, data: Data, *, problems: Iterable[Problem] = (), ok: bool = True) -> None:
    """The one JSON document of a command."""
    from dobonomodo.workspace.answer import make_document

    show_document(make_document(thing, data, problems=problems, ok=ok))


def show_document(document: object) -> None:
    """A JSON document as it is."""
    text = json.dumps(document, ensure_ascii=False, indent=2, default=_plain)
    put(render.printable_json(text) + "\n", sys.stdout)


def in_folder(path: Path) -> Path:
    """A path that was typed; a relative one starts at -C."""
    return Path(Settings.folder or ".") / path


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Convert an error of writing a file or folder to a problem."""
    from dobonomodo.problems import RunFailed
    from dobonomodo.problems.workspace import UnwritableFolder

    try:
        yield
    except (OSError, ValueError) as fault:
        where, reason = getattr(fault, "filename", None) or path, getattr(fault, "strerror", None) or str(fault)
        raise RunFailed(UnwritableFolder(path=str(where), reason=reason)) from fault


def open_workspace(path: Path | None = None) -> Workspace:
    """The workspace at a path, at -C, or around the current folder."""
    from dobonomodo.workspace import Workspace

    return Workspace.open(path or Settings.folder or ".", environment=Settings.environment)


def stop(code: Exit) -> NoReturn:
    """End the command."""
    raise typer.Exit(int(code))


def usage_error(message: str) -> NoReturn:
    """The command was called in a way that cannot be right."""
    raise typer.BadParameter(message)


def _plain(value: object) -> object:
    """Decimals as text, times as UTC ISO 8601."""
    match value:
        case Decimal():
            return f"{value:f}"
        case datetime():
            return value.isoformat().replace("+00:00", "Z")
        case date():
            return value.isoformat()
        case _:
            return str(value)

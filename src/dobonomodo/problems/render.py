"""Problems as text: for people, on one line, and as annotations of a pull request.

Colour is markup that the edge turns on; nothing here knows a terminal.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Sequence

from dobonomodo.problems.place import Span
from dobonomodo.problems.problem import Problem

EXCERPT_WIDTH = 100
WORDS_AT_MOST = 240
INDENT = 4
"""Blanks before the rest of a line that was folded."""

_COLORS = re.compile(r"\x1b\[[0-9;]*m")
_UNPRINTABLE_IN_JSON = re.compile(r"[^\n\x20-\x7e]")
_STYLES = {"error": "1;31", "warning": "1;33", "place": "34", "help": "36", "bold": "1"}


def render_full(problems: Iterable[Problem], *, color: bool = False, width: int | None = None) -> str:
    """Each problem with its excerpt, caret and hint, and a line that counts them; for a terminal as wide as given."""
    problems = tuple(problems)
    blocks = [_render_block(problem, color=color, width=width) for problem in problems]
    return "\n\n".join([*blocks, render_count(problems)])


def render_concise(problems: Iterable[Problem]) -> str:
    """One line a problem: ``file:line:column: code message``."""
    return "\n".join(
        f"{_render_place(problem.span)}{problem.severity}[{problem.code}]: {_shown(problem.message())}"
        for problem in problems
    )


def render_github(problems: Iterable[Problem]) -> str:
    """Workflow commands that show each problem beside its line in a pull request."""
    return "\n".join(_render_annotation(problem) for problem in problems)


def render_count(problems: Sequence[Problem]) -> str:
    """``2 errors, 1 warning``."""
    counts = {kind: sum(problem.severity == kind for problem in problems) for kind in ("error", "warning")}
    return ", ".join(f"{number} {kind}{'' if number == 1 else 's'}" for kind, number in counts.items() if number)


def _render_block(problem: Problem, *, color: bool, width: int | None) -> str:
    def paint(text: str, style: str) -> str:
        return f"\x1b[{_STYLES[style]}m{text}\x1b[0m" if color else text

    def fold(start: str, text: str, style: str | None = None) -> list[str]:
        first, *more = fold_words(text, width, indent=INDENT, start=len(_COLORS.sub("", start)))
        painted = [paint(line, style) if style else line for line in (first, *more)]
        return [(start + painted[0]).rstrip(), *(" " * INDENT + line for line in painted[1:])]

    head = paint(f"{problem.severity}[{problem.code}]", problem.severity)
    lines = fold(f"{head}: ", _shown(problem.message()), "bold")
    where = [f"operation {problem.operation.seq} `{printable(problem.operation.name)}`"] if problem.operation else []
    if span := problem.span:
        where.insert(0, f"{printable(span.source.name)}:{span.line}:{span.column}")
        number = str(span.line)
        gutter = " " * len(number)
        bar = paint("|", "place")
        room = EXCERPT_WIDTH if width is None else max(20, width - len(gutter) - 3)
        before, marked, after = _fit_excerpt(span, room)
        caret = "^" * max(1, cell_width(marked))
        label = f" {_shown(words)}" if (words := problem.label()) else ""
        if width is not None and cell_width(before) + len(caret) + cell_width(label) > room:
            label = ""  # the message says the same
        lines += fold(f"{gutter} {paint('-->', 'place')} ", ", ".join(where))
        excerpt = [
            f"{gutter} {bar}",
            f"{paint(number, 'place')} {bar} {before}{marked}{after}",
            f"{gutter} {bar} {' ' * cell_width(before)}{paint(caret + label, problem.severity)}",
        ]
        lines += excerpt if span.source.is_known else []
    elif where:
        lines += fold(f"  {paint('-->', 'place')} ", where[0])
    for note in problem.notes():
        lines += fold("  ", _shown(note))
    if hint := problem.hint():
        lines += fold(f"   {paint('help:', 'help')} ", _shown(hint))
    return "\n".join(lines)


def fold_words(text: str, width: int | None, *, indent: int = 0, start: int = 0) -> list[str]:
    """A text in lines that fit a terminal, cut between words; ``start`` cells of the first line are taken.

    Lines after the first are to be indented. A word that is longer than a line stays whole.
    """
    if width is None:
        return [text]
    lines: list[str] = []
    current, room = "", width - start
    for word in text.split(" "):
        joined = f"{current} {word}" if current else word
        if cell_width(joined) <= room or (lines and not current):
            current = joined
        else:
            lines.append(current)
            current, room = word, width - indent
    return [*lines, current]


def _fit_excerpt(span: Span, room: int) -> tuple[str, str, str]:
    """The line around a span in three parts, which take no more cells than there is room for."""
    kept = EXCERPT_WIDTH
    parts = _cut_excerpt(span, kept)
    while room < EXCERPT_WIDTH and kept > 1 and (excess := sum(map(cell_width, parts)) - room) > 0:
        kept = max(1, min(kept - excess, room))
        parts = _cut_excerpt(span, kept)
    return parts


def _cut_excerpt(span: Span, kept: int) -> tuple[str, str, str]:
    """So many characters of a line, the marked ones among them."""
    line = span.source.line_at(span.start)
    start = span.column - 1
    end = min(start + span.end - span.start, len(line))
    left = max(0, min(start - kept // 3, len(line) - kept))
    right = left + kept
    if end > right:
        end = right
    before = ("..." if left else "") + printable(line[left:start])
    after = printable(line[end:right]) + ("..." if right < len(line) else "")
    return before, printable(line[start:end]), after


def _shown(text: str) -> str:
    """A message or hint, cut in the middle where what it quotes would fill the screen."""
    if len(text) > WORDS_AT_MOST:
        text = f"{text[: WORDS_AT_MOST // 2]}...{text[-WORDS_AT_MOST // 2 :]}"
    return printable(text)


def printable(text: str) -> str:
    """A text with escapes in place of all that would move a cursor, turn the writing direction round or not be seen."""
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() else "    " if char == "\t" else ascii(char).strip("'\"") for char in text
    )


def printable_lines(text: str) -> str:
    """The same for a text of several lines, which stay lines."""
    return "\n".join(printable(line) for line in text.split("\n"))


def printable_json(text: str) -> str:
    """JSON with JSON's own escapes in place of such characters; it says the same."""
    return _UNPRINTABLE_IN_JSON.sub(
        lambda found: json.dumps(found[0])[1:-1] if not found[0].isprintable() else found[0], text
    )


def cell_width(text: str) -> int:
    """The number of terminal cells a text takes."""
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text
    )


def _render_place(span: Span | None) -> str:
    return f"{printable(span.source.name)}:{span.line}:{span.column}: " if span else ""


def _render_annotation(problem: Problem) -> str:
    def escape(text: str, extra: str = "") -> str:
        for char in "%\r\n" + extra:
            text = text.replace(char, f"%{ord(char):02X}")
        return printable(text)

    span = problem.span
    place = (
        f" file={escape(span.source.name, ':,')},line={span.line},col={span.column},title={problem.code}"
        if span
        else f" title={problem.code}"
    )
    text = ". ".join(filter(None, (problem.message(), problem.hint())))
    return f"::{problem.severity}{place}::{escape(text)}"

"""Where a problem is: a text with a name, a stretch of it, and a value that was read out of it.

Knows lines and columns, nothing of YAML or formulas.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Source:
    """A whole text and the name a user knows it by, usually a path relative to the workspace."""

    name: str
    text: str = field(repr=False)
    is_known: bool = field(default=True, kw_only=True, repr=False)
    """False where blanks replace a text of which only a place was kept."""

    def line_start(self, offset: int) -> int:
        """The offset at which the line around ``offset`` begins."""
        return self.text.rfind("\n", 0, offset) + 1

    def line_at(self, offset: int) -> str:
        """The line around ``offset``, without its end."""
        end = self.text.find("\n", offset)
        return self.text[self.line_start(offset) : len(self.text) if end < 0 else end].rstrip("\r")


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of a source, from ``start`` up to but without ``end``."""

    source: Source
    start: int
    end: int

    @classmethod
    def at(cls, name: str, line: int, column: int) -> Span:
        """A place in a text that is not known."""
        text = "\n" * (line - 1) + " " * column
        return cls(Source(name, text, is_known=False), len(text) - 1, len(text))

    @property
    def line(self) -> int:
        """The line of the first character, counted from 1."""
        return self.source.text.count("\n", 0, self.start) + 1

    @property
    def column(self) -> int:
        """The column of the first character, counted from 1 in characters."""
        return self.start - self.source.line_start(self.start) + 1

    @property
    def sort_key(self) -> tuple[str, int, int]:
        """Orders problems by place."""
        return (self.source.name, self.start, self.end)


@dataclass(frozen=True, slots=True)
class Passage:
    """A text value that was read from a source, and the offset of each of its characters there.

    A YAML scalar is not its file text: quotes, escapes and folded lines are between.
    ``offsets`` has one entry per character of ``value`` and one for its end.
    """

    value: str
    source: Source = field(repr=False)
    offsets: Sequence[int] = field(repr=False)

    @classmethod
    def alone(cls, value: str, *, name: str = "formula") -> Passage:
        """A passage that is the whole of its source, such as a formula given on a command line."""
        return cls(value, Source(name, value), range(len(value) + 1))

    def span(self, start: int, end: int) -> Span:
        """The place of ``value[start:end]`` in the source; never empty, so that a caret shows."""
        limit = len(self.value)
        start, end = min(start, limit), min(max(end, start + 1), limit)
        first = self.offsets[start]
        last = self.offsets[end - 1] + 1 if end > start else first + 1
        return Span(self.source, first, max(last, first + 1))

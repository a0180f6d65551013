"""Response types of a workspace. Commands, the Python API and a server turn them into the same JSON document."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from dobonomodo.problems import Problem


class Answer(Protocol):
    """A value that can be written as JSON."""

    def to_dict(self) -> Mapping[str, object]:
        """As plain data."""
        ...


Data = Answer | Sequence[Answer] | None
"""One answer, several of them, or none."""


def make_document(thing: str, data: Data, *, problems: Iterable[Problem] = (), ok: bool = True) -> dict[str, object]:
    """The JSON document of a request: its subject, its success, the data and the problems."""
    return {
        "schema": f"dobo/{thing}/1",
        "ok": ok,
        "data": _to_plain(data),
        "problems": [problem.to_dict() for problem in problems],
    }


def _to_plain(data: Data) -> object:
    if data is None:
        return None
    if isinstance(data, Sequence):
        return [each.to_dict() for each in data]
    return data.to_dict()

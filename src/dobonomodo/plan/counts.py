"""Row counts of an operation: the engine observes them, the record of a run keeps them, progress and report show them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class OperationCounts:
    """What an operation did to how many rows; None where the run did not come so far.

    The working dataset counts with its deleted rows (C-50).
    """

    seq: int
    name: str
    type: str
    rows_in: int | None = None
    selected: int | None = None
    added: int | None = None
    deleted: int | None = None
    rows_out: int | None = None
    milliseconds: int | None = None

    @property
    def seconds(self) -> float | None:
        """How long it took; known of outputs alone, since Spark computes the others together with them."""
        return None if self.milliseconds is None else self.milliseconds / 1000

    def document(self) -> dict[str, int | str]:
        """As plain data, without what is not known."""
        found = {name: getattr(self, name) for name in self.__slots__}
        return {name: value for name, value in found.items() if value is not None}

    @classmethod
    def load(cls, document: Mapping[str, object]) -> OperationCounts:
        """From plain data."""
        return cls(**{name: document.get(name) for name in cls.__slots__})  # type: ignore[arg-type]

"""The facts of an operation type. Counts, plan text, report, progress and schemas read them here and name no type."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Flag, auto
from typing import TYPE_CHECKING, ClassVar

from dobonomodo.model.entity import Entity

if TYPE_CHECKING:
    from dobonomodo.plan.context import Context
    from dobonomodo.plan.operations.lowered import Lowered
    from dobonomodo.plan.rows import Rows
    from dobonomodo.plan.step import Step


class Effect(Flag):
    """What an operation does with rows."""

    SELECTS = auto()
    """It acts on rows of the working dataset."""
    ADDS = auto()
    """It adds rows to the working dataset."""
    DELETES = auto()
    """It marks the rows that it selects as deleted."""
    WRITES = auto()
    """It writes rows to a destination; the working dataset stays as it is."""
    CHECKS = auto()
    """It asserts a condition on rows; a violation stops the run or warns."""


@dataclass(frozen=True, slots=True)
class Facts:
    """The public facts of an operation type."""

    effect: Effect
    badge: str
    """One character for it."""
    color: str
    """One of the colors of the report."""
    counted: str | None = None
    """What is said of the rows that it selects or writes, as in ``12 changed``; None if they are not mentioned."""


class Operation(Entity):
    """The arguments of an operation type: their shape, their checks, their meaning, and words for it."""

    type: ClassVar[str]
    facts: ClassVar[Facts]

    def lower(self, rows: Rows, ctx: Context) -> Lowered:
        """The nodes that do it. Reports problems to the context and never raises."""
        raise NotImplementedError

    @classmethod
    def describe(cls, step: Step) -> list[str]:
        """Lines for people about a planned operation, taken from what it was lowered to."""
        raise NotImplementedError

"""What differs between the rows of two runs: counts, sums and the largest changes. Records, nothing more."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from dobonomodo.model.plain import Document
from dobonomodo.problems import Problem
from dobonomodo.problems.recorded import load_problem, record_problem
from dobonomodo.runs.attribution import Attribution
from dobonomodo.runs.figures import EXACT


@dataclass(frozen=True, slots=True)
class ColumnDifference:
    """One column of both outputs."""

    column: str
    changed: int | None
    """Rows of both runs in which it differs; None where rows are not paired."""
    before: Decimal | None = None
    """The total; None if the column is no number, or has more digits than Spark can sum."""
    after: Decimal | None = None
    is_number: bool = False

    @property
    def difference(self) -> Decimal | None:
        """The change of the total."""
        if self.before is None or self.after is None:
            return None
        return EXACT.subtract(self.after, self.before)

    @property
    def differs(self) -> bool:
        """Whether the column differs at all."""
        return bool(self.changed) or bool(self.difference)

    def to_dict(self) -> dict[str, object]:
        """As plain data."""
        return {
            "column": self.column,
            "changed": self.changed,
            "before": self.before,
            "after": self.after,
            "difference": self.difference,
        }

    @classmethod
    def load(cls, document: Document) -> ColumnDifference:
        """From plain data."""
        before, after = (_load_number(document[name]) for name in ("before", "after"))
        return cls(document["column"], document["changed"], before, after, before is not None or after is not None)


@dataclass(frozen=True, slots=True)
class ValueChange:
    """One value of one row, before and after, as text; None for NULL, and where the row is not there."""

    key: tuple[str | None, ...]
    column: str
    before: str | None
    after: str | None
    row: str
    """`changed`, `added` or `removed`."""
    is_number: bool = True
    """Whether the column is one of numbers; a text may look like one."""

    @property
    def shown(self) -> tuple[str, str]:
        """Both values for people; nothing where the row is not there."""
        before = "" if self.row == "added" else self._show(self.before)
        after = "" if self.row == "removed" else self._show(self.after)
        return before, after

    def _show(self, value: str | None) -> str:
        if value is None:
            return "NULL"
        return f"{Decimal(value):,f}" if self.difference is not None else value

    @property
    def difference(self) -> Decimal | None:
        """Of numbers; a row that is not there counts as zero."""
        if not self.is_number:
            return None
        try:
            return EXACT.subtract(Decimal(self.after or 0), Decimal(self.before or 0))
        except InvalidOperation:
            return None

    def to_dict(self) -> dict[str, object]:
        """As plain data."""
        own = {name: getattr(self, name) for name in ("column", "row", "before", "after", "difference")}
        return {"key": list(self.key), **own}

    @classmethod
    def load(cls, document: Document) -> ValueChange:
        """From plain data."""
        values = {name: document[name] for name in ("column", "before", "after", "row")}
        return cls(key=tuple(document["key"]), **values, is_number=document["difference"] is not None)


@dataclass(frozen=True, slots=True)
class KindDifference:
    """A number of the rows of both outputs that were made in one way: one sum over details and totals says nothing."""

    kind: str
    column: str | None
    """None for the number of rows."""
    before: Decimal
    after: Decimal

    @property
    def difference(self) -> Decimal:
        """What it grew by."""
        return EXACT.subtract(self.after, self.before)

    def to_dict(self) -> dict[str, object]:
        """As plain data."""
        return {name: getattr(self, name) for name in ("kind", "column", "before", "after", "difference")}

    @classmethod
    def load(cls, document: Document) -> KindDifference:
        """From plain data."""
        return cls(document["kind"], document["column"], Decimal(document["before"]), Decimal(document["after"]))


@dataclass(frozen=True, slots=True)
class TableDifference:
    """One output of both runs."""

    table: str
    key: tuple[str, ...]
    """The columns by which rows are paired; empty if they are compared as a multiset."""
    unpaired: str | None
    """Why rows are not paired."""
    rows_before: int
    rows_after: int
    added: int
    removed: int
    changed: int | None
    columns: tuple[ColumnDifference, ...]
    largest: tuple[ValueChange, ...] = ()
    new_columns: tuple[str, ...] = ()
    lost_columns: tuple[str, ...] = ()
    kinds: tuple[KindDifference, ...] = ()
    """Where rows of both runs were made in several ways: the numbers of each, by what the runs recorded."""

    def kinds_of(self, column: str) -> list[KindDifference]:
        """The totals of a column for each kind of rows; empty where all rows are of one kind."""
        return [each for each in self.kinds if each.column == column]

    @property
    def differs(self) -> bool:
        """Whether there is any difference."""
        return bool(self.added or self.removed or self.changed or self.new_columns or self.lost_columns)

    def to_dict(self) -> dict[str, object]:
        """As plain data."""
        names = ("table", "unpaired", "rows_before", "rows_after", "added", "removed", "changed")
        return {
            **{name: getattr(self, name) for name in names},
            "key": list(self.key),
            "columns": [each.to_dict() for each in self.columns],
            "largest": [each.to_dict() for each in self.largest],
            "new_columns": list(self.new_columns),
            "lost_columns": list(self.lost_columns),
            "kinds": [each.to_dict() for each in self.kinds],
        }

    @classmethod
    def load(cls, document: Document) -> TableDifference:
        """From plain data."""
        return cls(
            table=document["table"],
            key=tuple(document["key"]),
            unpaired=document["unpaired"],
            rows_before=document["rows_before"],
            rows_after=document["rows_after"],
            added=document["added"],
            removed=document["removed"],
            changed=document["changed"],
            new_columns=tuple(document["new_columns"]),
            lost_columns=tuple(document["lost_columns"]),
            columns=tuple(ColumnDifference.load(each) for each in document["columns"]),
            largest=tuple(ValueChange.load(each) for each in document["largest"]),
            kinds=tuple(KindDifference.load(each) for each in document.get("kinds", ())),
        )


@dataclass(frozen=True, slots=True)
class LockedComparison:
    """A run compared with the locked result that it replaced, after its period was reopened."""

    run: str
    """The locked result."""
    difference: RunDifference | None
    problems: tuple[Problem, ...] = ()
    """Why they could not be compared."""

    def to_dict(self) -> dict[str, object]:
        """As plain data."""
        return {
            "run_id": self.run,
            "difference": self.difference.to_dict() if self.difference is not None else None,
            "problems": [record_problem(problem) for problem in self.problems],
        }

    @classmethod
    def load(cls, document: Document) -> LockedComparison:
        """From plain data."""
        found, problems = document["difference"], tuple(load_problem(each) for each in document["problems"])
        return cls(document["run_id"], RunDifference.load(found) if found is not None else None, problems)


@dataclass(frozen=True, slots=True)
class RunDifference:
    """Two runs."""

    before: str
    after: str
    tables: tuple[TableDifference, ...]
    only_before: tuple[str, ...] = ()
    """Outputs that only one of them has."""
    only_after: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    """Where rows came from that are not published any more."""
    attribution: Attribution | None = None
    """What the differences come from, if that was asked."""

    @property
    def differs(self) -> bool:
        """Whether there is any difference."""
        return bool(self.only_before or self.only_after) or any(each.differs for each in self.tables)

    def to_dict(self) -> dict[str, object]:
        """As plain data."""
        return {
            "before": self.before,
            "after": self.after,
            "tables": [each.to_dict() for each in self.tables],
            "only_before": list(self.only_before),
            "only_after": list(self.only_after),
            "notes": list(self.notes),
            "attribution": self.attribution.to_dict() if self.attribution is not None else None,
        }

    @classmethod
    def load(cls, document: Document) -> RunDifference:
        """From plain data."""
        attribution = document["attribution"]
        return cls(
            document["before"],
            document["after"],
            tuple(TableDifference.load(each) for each in document["tables"]),
            tuple(document["only_before"]),
            tuple(document["only_after"]),
            tuple(document["notes"]),
            Attribution.load(attribution) if attribution is not None else None,
        )


def _load_number(text: str | None) -> Decimal | None:
    return Decimal(text) if text is not None else None

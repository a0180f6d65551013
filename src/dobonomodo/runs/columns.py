"""Which columns of an output changed between two runs, from their records alone: no row is read."""

from __future__ import annotations

from dataclasses import dataclass

from dobonomodo.plan.counts import ColumnDigests
from dobonomodo.plan.digest import is_same_digest
from dobonomodo.runs.figures import OutputFigures
from dobonomodo.runs.record import RunView


@dataclass(frozen=True, slots=True)
class TableColumns:
    """One output of both runs."""

    table: str
    rows_before: int
    rows_after: int
    unknown: str | None = None
    """Why nothing is known of its columns."""
    same_rows: bool = False
    """Whether both have rows with the same keys. If not, every column differs."""
    changed: tuple[str, ...] = ()
    unchanged: tuple[str, ...] = ()
    new_columns: tuple[str, ...] = ()
    lost_columns: tuple[str, ...] = ()

    @property
    def differs(self) -> bool | None:
        """Whether there is any difference; None where that is not known."""
        if self.unknown is not None:
            return None
        return not self.same_rows or bool(self.changed or self.new_columns or self.lost_columns)

    def to_dict(self) -> dict[str, object]:
        """As plain data."""
        names = ("table", "rows_before", "rows_after", "unknown", "same_rows", "differs")
        lists = ("changed", "unchanged", "new_columns", "lost_columns")
        return {
            **{name: getattr(self, name) for name in names},
            **{name: list(getattr(self, name)) for name in lists},
        }


@dataclass(frozen=True, slots=True)
class ChangedColumns:
    """Two runs."""

    before: str
    after: str
    tables: tuple[TableColumns, ...]

    def to_dict(self) -> dict[str, object]:
        """As plain data."""
        return {"before": self.before, "after": self.after, "tables": [each.to_dict() for each in self.tables]}


def compare_columns(name: str, before: RunView, after: RunView) -> TableColumns:
    """An output that both runs have."""
    outputs = before.outputs[name], after.outputs[name]
    rows = outputs[0].rows, outputs[1].rows
    if outputs[0].columns == outputs[1].columns and is_same_digest(outputs[0].digest, outputs[1].digest):
        return TableColumns(name, *rows, same_rows=True, unchanged=tuple(outputs[0].columns))
    one, other = (_find_digests(view, name) for view in (before, after))
    if one is None or other is None:
        run = before.id if one is None else after.id
        return TableColumns(name, *rows, unknown=f"the record of run {run} has no digests of its columns")
    if one.key != other.key or one.rows is None or other.rows is None:
        return TableColumns(name, *rows, unknown="the rows of the runs have different keys")
    shared = [column for column in one.columns if column in other.columns]
    changed = tuple(each for each in shared if not _is_same(each, one, other, before, after, name))
    return TableColumns(
        name,
        *rows,
        same_rows=one.rows == other.rows,
        changed=changed,
        unchanged=tuple(each for each in shared if each not in changed),
        new_columns=tuple(each for each in other.columns if each not in one.columns),
        lost_columns=tuple(each for each in one.columns if each not in other.columns),
    )


def _is_same(column: str, one: ColumnDigests, other: ColumnDigests, before: RunView, after: RunView, name: str) -> bool:
    """Whether a column has the same values. Hashes of the same number in another type differ."""
    digests = one.columns[column], other.columns[column]
    types = before.outputs[name].columns[column], after.outputs[name].columns[column]
    return digests[0] is not None and digests[0] == digests[1] and types[0] == types[1]


def _find_digests(view: RunView, name: str) -> ColumnDigests | None:
    outputs: tuple[OutputFigures, ...] = view.figures.outputs if view.figures is not None else ()
    return next((each.digests for each in outputs if each.seq == view.outputs[name].seq), None)

"""Compares the rows of two runs: as published, or recomputed from kept inputs."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING

from dobonomodo.formula import Type
from dobonomodo.formula.types import is_number
from dobonomodo.plan.counts import merge_kinds
from dobonomodo.plan.digest import is_same_digest
from dobonomodo.plan.pairing import find_pairing
from dobonomodo.plan.system import is_comparable
from dobonomodo.problems import Rejected, RunFailed
from dobonomodo.problems.difference import NotComparable, RowsGone
from dobonomodo.problems.why import InvalidKey, OutputNotFound
from dobonomodo.runs import restore_snapshot
from dobonomodo.runs.difference import ColumnDifference, KindDifference, RunDifference, TableDifference, ValueChange
from dobonomodo.workspace.running import VERIFIED
from dobonomodo.workspace.verifying import read_output

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from dobonomodo.engine.differences import Found
    from dobonomodo.engine.engine import SparkEngine
    from dobonomodo.runs import Output, RunView
    from dobonomodo.store import Run
    from dobonomodo.workspace.execution import Execution
    from dobonomodo.workspace.files import Files


@dataclass(frozen=True, slots=True, eq=False)
class Side:
    """One of two runs."""

    view: RunView
    record: Run


@dataclass(eq=False)
class Diffing:
    """Compares the rows of runs."""

    files: Files
    engine: SparkEngine
    execution: Execution
    report: Callable[[str], None]
    notes: list[str] = field(default_factory=list)

    def compare(
        self, before: Side, after: Side, *, table: str | None, key: Sequence[str], attribute: bool = False
    ) -> RunDifference:
        """What differs, for one output or for all that both have; with ``attribute``, and why."""
        from dobonomodo.workspace.attributing import Attributing

        names = shared_outputs(before, after, table)
        with self._scratch(before) as first, self._scratch(after) as second:
            tables = [self._compare(name, (before, first), (after, second), key=key) for name in names]
        one, other = before.view.outputs, after.view.outputs
        found = RunDifference(
            before.view.id,
            after.view.id,
            tuple(tables),
            tuple(name for name in one if name not in other) if table is None else (),
            tuple(name for name in other if name not in one) if table is None else (),
            tuple(self.notes),
        )
        if not attribute:
            return found
        attributing = Attributing(
            self.engine, partial(self.execution.open_data, session=lambda: self.engine.spark), self.report
        )
        return replace(found, attribution=attributing.attribute(before, after, found))

    def _compare(
        self, name: str, before: tuple[Side, _Rows], after: tuple[Side, _Rows], *, key: Sequence[str]
    ) -> TableDifference:
        from dobonomodo.engine.differences import Sides, compare_as_multisets, compare_by_key, repeats_key

        one, other = (side.view.outputs[name] for side, _ in (before, after))
        self.report(f"comparing {name}")
        types = one.types(), other.types()
        shared = {column: (kind, types[1][column]) for column, kind in types[0].items() if column in types[1]}
        _check_key(key, shared)
        expressions = _find_key(name, [before[0], after[0]], shared, given=key)
        compared = {
            column: kinds for column, kinds in shared.items() if is_comparable(column) and column not in expressions
        }
        unpaired = None if expressions else "the output lacks the columns of a key"
        with self.engine.attended():
            sides = Sides(before[1].get(name), after[1].get(name), compared)
            if expressions and any(
                repeats_key(frame, list(expressions.values())) for frame in (sides.before, sides.after)
            ):
                unpaired = f"several rows have the same {', '.join(expressions)}"
            if unpaired is None:
                found = compare_by_key(sides, expressions)
            else:
                every = {column: kinds for column, kinds in shared.items() if is_comparable(column)}
                found = compare_as_multisets(Sides(sides.before, sides.after, every))
        paired = tuple(expressions) if unpaired is None else ()
        described = _describe(name, found, key=paired, unpaired=unpaired, types=types)
        kinds = compare_kinds(_read_kinds(name, before[0]), _read_kinds(name, after[0]), shared)
        return replace(described, kinds=kinds)

    @contextmanager
    def _scratch(self, side: Side) -> Iterator[_Rows]:
        place, transport = f"{side.view.id}/{VERIFIED}/rows-{secrets.token_hex(4)}", self.files.transport
        folder = self.files.runs / place
        try:
            yield _Rows(self, side, str(folder) if transport is None else transport.address(place))
        finally:
            shutil.rmtree(folder, ignore_errors=True)
            if transport is not None:
                with suppress(RunFailed):
                    transport.remove(place)


@dataclass(eq=False)
class _Rows:
    """The rows of a run's outputs: as published, otherwise recomputed; their digest always matches the record."""

    diffing: Diffing
    side: Side
    folder: str
    """Where Spark keeps rows that are computed again."""
    computed: Mapping[int, DataFrame] | None = None

    def get(self, name: str) -> DataFrame:
        """The rows of an output."""
        output = self.side.view.outputs[name]
        published = self._read(output)
        if published is not None:
            return published
        if self.computed is None:
            self.computed = self._compute(output)
            self.diffing.notes.append(
                f"run {self.side.view.id}: its rows are not published any more and were computed again"
            )
        if output.seq not in self.computed:
            raise Rejected([self._gone(output, "the run computes it differently now")])
        return self.computed[output.seq]

    def _read(self, output: Output) -> DataFrame | None:
        """The rows where they were published, if they are still those of the run."""
        engine = self.diffing.engine
        try:
            frame = read_output(self.diffing.files, self.side.view, output, engine.spark)
        except (RunFailed, OSError):
            return None
        return frame if is_same_digest(engine.digest(frame, list(output.columns)), output.digest) else None

    def _compute(self, wanted: Output) -> Mapping[int, DataFrame]:
        self.diffing.report(f"computing the rows of run {self.side.view.id} again")
        engine, record = self.diffing.engine, self.side.record
        spec, data = restore_snapshot(record.snapshot), self.diffing.execution.reopen_data(record, lambda: engine.spark)
        restored = data.restore(self.side.view.inputs or {})
        if restored.changes:
            raise Rejected([self._gone(wanted, *restored.changes)])
        data.prepare()
        digests = {output.seq: output.digest for output in self.side.view.outputs.values()}
        found = {}
        try:
            reader = data.reader(engine.spark)
            for output in engine.outputs(spec.plan, spec.facts, reader=reader, as_of=spec.as_of):
                path = f"{self.folder}/{output.step.spec.seq}"
                with output.explained():
                    output.frame.write.mode("overwrite").parquet(path)
                    result = output.finish()
                if is_same_digest(digests.get(result.seq), result.digest):
                    found[result.seq] = engine.spark.read.parquet(path)
        finally:
            data.clear()
        return found

    def _gone(self, output: Output, *reasons: str) -> RowsGone:
        return RowsGone(run=self.side.view.id, table=output.table, reasons=reasons)


def shared_outputs(before: Side, after: Side, table: str | None) -> list[str]:
    """The outputs that both runs have; or the one that is named."""
    one, other = before.view.outputs, after.view.outputs
    if table is not None:
        for side in (before, after):
            if table not in side.view.outputs:
                known = tuple(side.view.outputs)
                raise Rejected([OutputNotFound(run=side.view.id, table=table, known=known)])
        return [table]
    names = [name for name in one if name in other]
    if not names:
        reason = "they have no output in common"
        raise Rejected([NotComparable(before=before.view.id, after=after.view.id, reason=reason)])
    return names


def _check_key(key: Sequence[str], columns: Mapping[str, object]) -> None:
    for column in key:
        if column not in columns:
            raise Rejected([InvalidKey(column=column, known=tuple(columns))])


def _find_key(
    name: str, sides: Sequence[Side], columns: Mapping[str, tuple[Type, Type]], *, given: Sequence[str]
) -> dict[str, str]:
    """SQL for each column of the key of an output: given, or what both plans know of their rows; empty without a key."""
    from dobonomodo.engine.differences import find_key
    from dobonomodo.formula.sql import quote_name

    if given:
        return {column: quote_name(column) for column in given}
    keys: dict[int, tuple[str, ...]] = {}
    for side in sides:
        seq = side.view.outputs[name].seq
        step = next(each for each in restore_snapshot(side.record.snapshot).plan.steps if each.spec.seq == seq)
        for number, names in find_pairing(step).items():
            own = tuple(map(step.write.written_name, names))
            if keys.setdefault(number, own) != own:
                return {}
    return find_key(keys, columns)


def _describe(
    name: str,
    found: Found,
    *,
    key: tuple[str, ...],
    unpaired: str | None,
    types: tuple[Mapping[str, Type], Mapping[str, Type]],
) -> TableDifference:
    columns = tuple(
        ColumnDifference(
            column,
            each.changed,
            _decimal(each.before),
            _decimal(each.after),
            is_number=all(is_number(kinds[column]) for kinds in types),
        )
        for column, each in found.columns.items()
    )
    numbers = {each.column for each in columns if each.is_number}
    largest = tuple(
        ValueChange(each.key, each.column, each.before, each.after, each.row, each.column in numbers)
        for each in found.largest
    )
    one, other = types
    return TableDifference(
        table=name,
        key=key,
        unpaired=unpaired,
        rows_before=found.rows_before,
        rows_after=found.rows_after,
        added=found.added,
        removed=found.removed,
        changed=found.changed,
        columns=columns,
        largest=largest,
        new_columns=tuple(column for column in other if column not in one),
        lost_columns=tuple(column for column in one if column not in other),
    )


KindNumbers = Mapping[tuple[str, str | None], Decimal | None]
"""By kind and column as it is written; None for its rows."""


def compare_kinds(before: KindNumbers, after: KindNumbers, columns: Iterable[str]) -> tuple[KindDifference, ...]:
    """The numbers of each kind of rows, where both runs have several kinds; a kind that one of them lacks has no rows there.

    A column has all of its kinds or none, since a reader adds them up.
    """
    if not before or not after:
        return ()
    shared = {None, *columns} - {
        column for each in (before, after) for (_, column), total in each.items() if total is None
    }
    found = []
    for kind, column in dict.fromkeys([*before, *after]):
        was, now = (each.get((kind, column), Decimal(0)) for each in (before, after))
        if column in shared and was is not None and now is not None:
            found.append(KindDifference(kind, column, was, now))
    return tuple(found)


def _read_kinds(name: str, side: Side) -> KindNumbers:
    output, figures = side.view.outputs[name], side.view.figures
    recorded = [each for each in figures.outputs if each.seq == output.seq] if figures is not None else []
    plan = restore_snapshot(side.record.snapshot).plan
    found: dict[tuple[str, str | None], Decimal | None] = {}
    written = next(step.write.written_name for step in plan.steps if step.spec.seq == output.seq)
    for label, (rows, totals) in merge_kinds((recorded[0].kinds or ()) if recorded else ()).items():
        found[label, None] = Decimal(rows)
        found |= {(label, written(column)): total for column, total in totals.items()}
    return found


def _decimal(value: object) -> Decimal | None:
    return Decimal(str(value)) if value is not None else None

"""A run as it is recorded, in a form that people and programs can read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from dobonomodo.formula import Type
from dobonomodo.formula.types import parse_type
from dobonomodo.model.plain import Document
from dobonomodo.plan.check import CheckResult
from dobonomodo.plan.counts import OperationCounts
from dobonomodo.problems import Problem
from dobonomodo.problems.recorded import load_problem
from dobonomodo.runs.comparison import Other, describe_figures
from dobonomodo.runs.control import Overridden, Signed
from dobonomodo.runs.difference import LockedComparison
from dobonomodo.runs.figures import Figures
from dobonomodo.runs.progress import Progress, PublishedOutput
from dobonomodo.storage import InputHashes, Stored

if TYPE_CHECKING:
    from dobonomodo.store import Run
    from dobonomodo.why.absence import Absence
    from dobonomodo.why.explanation import Explanation


@dataclass(frozen=True, slots=True, eq=False)
class Output:
    """What an output wrote, and where."""

    seq: int
    table: str
    destination: str
    rows: int
    digest: str
    dataset_id: str | None
    dataset_version: int | None
    seconds: float
    columns: Mapping[str, str]
    location: Stored
    read: Callable[[Any], Any] | None = None

    def types(self) -> dict[str, Type]:
        """The columns with their types."""
        types = {}
        for name, kind in self.columns.items():
            parsed = parse_type(kind)
            if parsed is None:
                raise AssertionError(f"a recorded type: {kind}")
            types[name] = parsed
        return types

    def dataframe(self, spark: Any) -> Any:
        """The rows as a DataFrame of a Spark session, read from where they were written."""
        if self.read is None:
            raise ValueError("this record does not know its workspace")
        return self.read(spark)


@dataclass(frozen=True, slots=True, eq=False)
class RunView:
    """One run: its inputs, its progress, its outputs."""

    id: str
    project: str
    version: int | None
    period: str
    status: str
    by: str
    started_at: datetime
    """The clock of the run, which its rows carry."""
    created_at: datetime
    updated_at: datetime
    seconds: float
    draft: bool
    operations: tuple[OperationCounts, ...]
    outputs: Mapping[str, Output]
    """By table."""
    last_completed_operation: int | None
    problems: tuple[Problem, ...] = ()
    warnings: tuple[Problem, ...] = ()
    snapshot: Document = field(default_factory=dict)
    attempts: int = 1
    checks: tuple[CheckResult, ...] = ()
    override: Overridden | None = None
    """Why it was run although its period was closed."""
    signed: tuple[Signed, ...] = ()
    """Who signed it, as far as whoever made this view looked that up."""
    is_publishing: bool = False
    """Whether it was killed while its outputs were being published: the next run completes that."""
    figures: Figures | None = None
    """None if they were switched off, or in a run of an earlier version."""
    inputs: InputHashes | None = None
    """The SHA-256 of the files that it read, once it published something; None in a run of an earlier version."""

    locked: LockedComparison | None = None
    """What it changed in a locked result, if it is the first run since the period was reopened and has just ended."""
    ask: Callable[..., Explanation] | None = None
    """Explains a row; set where the workspace is known."""
    ask_absence: Callable[..., Absence] | None = None
    """Explains why a row is not there."""

    def why(
        self,
        table: str | None = None,
        *,
        key: Mapping[str, object] | None = None,
        row_id: str | None = None,
        column: str | None = None,
        contributors: int | None = 20,
        contributor: Mapping[str, object] | Sequence[Mapping[str, object]] | None = None,
        depth: int = 1,
    ) -> Explanation:
        """Why a row of an output has its values, as `dobo why` tells it; needs no Spark.

        ``contributor`` names a row of a total, which is then explained; several follow totals of totals.
        """
        if self.ask is None:
            raise ValueError("this record does not know its workspace")
        return self.ask(
            table,
            key=key,
            row_id=row_id,
            column=column,
            contributors=contributors,
            contributor=contributor,
            depth=depth,
        )

    def why_not(self, table: str | None = None, *, key: Mapping[str, object], column: str | None = None) -> Absence:
        """Why a row is not in an output, or a column of it was not set, as `dobo why-not` tells it."""
        if self.ask_absence is None:
            raise ValueError("this record does not know its workspace")
        return self.ask_absence(table, key=key, column=column)

    def _repr_html_(self) -> str:
        """What a notebook shows; no Spark job is started for it."""
        from html import escape

        names = ("seq", "name", "type", "rows_in", "selected", "added", "deleted", "rows_out")
        head = "".join(f"<th>{name}</th>" for name in names)
        lines = "".join(
            "<tr>" + "".join(f"<td>{escape(str(getattr(each, name) or 0))}</td>" for name in names) + "</tr>"
            for each in self.operations
        )
        problems = "".join(f"<p><b>{escape(each.code)}</b> {escape(each.message())}</p>" for each in self.problems)
        outputs = "".join(
            f"<li>{escape(name)}: {output.rows:,} rows, digest {escape(output.digest)}</li>"
            for name, output in self.outputs.items()
        )
        title = escape(f"{self.project}, {self.period}: {self.status} (run {self.id})")
        return f"<p><b>{title}</b></p>{problems}<table><tr>{head}</tr>{lines}</table><ul>{outputs}</ul>"

    def to_dict(self, others: Sequence[Other] = ()) -> dict[str, object]:
        """As plain data, with its figures compared with other runs."""
        return {
            "run_id": self.id,
            "project": self.project,
            "version": self.version,
            "period": self.period,
            "status": self.status,
            "started_at": self.started_at,
            "seconds": round(self.seconds, 3),
            "draft": self.draft,
            "last_completed_operation": self.last_completed_operation,
            "override": self.override.to_dict() if self.override is not None else None,
            "sign_offs": [each.to_dict() for each in self.signed],
            "operations": [
                {
                    "seq": each.seq,
                    "name": each.name,
                    "type": each.type,
                    "rows_in": each.rows_in,
                    "selected": each.selected,
                    "added": each.added,
                    "deleted": each.deleted,
                    "rows_out": each.rows_out,
                    "seconds": each.seconds,
                }
                for each in self.operations
            ],
            "checks": [
                {
                    "seq": each.seq,
                    "name": each.name,
                    "expect": each.text,
                    "severity": each.severity,
                    "status": each.status,
                    "reached": each.reached,
                    "violations": each.violations,
                    "left": each.left,
                    "right": each.right,
                    "difference": each.difference,
                }
                for each in self.checks
            ],
            "outputs": [
                {
                    "seq": each.seq,
                    "table": each.table,
                    "destination": each.destination,
                    "rows": each.rows,
                    "digest": each.digest,
                    "dataset_id": each.dataset_id,
                    "dataset_version": each.dataset_version,
                    "location": each.location.document(),
                }
                for each in self.outputs.values()
            ],
            "figures": describe_figures(self.figures, others) if self.figures is not None else None,
            "locked": self.locked.to_dict() if self.locked is not None else None,
        }


@dataclass(frozen=True, slots=True, eq=False)
class Compared:
    """A run, and the runs that its figures are compared with."""

    run: RunView
    others: Sequence[Other]

    def to_dict(self) -> dict[str, object]:
        """As plain data."""
        return self.run.to_dict(self.others)


def view_run(run: Run) -> RunView:
    """The record of the store, read."""
    snapshot, progress = run.snapshot, Progress.load(run.progress)
    outputs = [_view_output(each) for each in progress.outputs]
    return RunView(
        id=run.id,
        project=run.project,
        version=run.version,
        period=run.period,
        status=run.status,
        by=run.by,
        started_at=datetime.fromisoformat(snapshot["started_at"]),
        created_at=run.created_at,
        updated_at=run.updated_at,
        seconds=progress.milliseconds / 1000,
        draft=snapshot["project"]["status"] == "draft",
        operations=progress.operations,
        outputs={_key(each, outputs): each for each in outputs},
        last_completed_operation=progress.last_completed_operation,
        problems=tuple(load_problem(each) for each in progress.problems),
        warnings=tuple(load_problem(each) for each in progress.warnings),
        snapshot=snapshot,
        attempts=progress.attempts,
        checks=progress.checks,
        override=_view_override(run),
        is_publishing=progress.intent is not None,
        figures=progress.figures,
        inputs=progress.inputs,
    )


def _view_override(run: Run) -> Overridden | None:
    found = run.snapshot.get("override")
    if found is None:
        return None
    return Overridden(found["reason"], run.by, run.created_at, tuple(found["approved_by"]))


def _key(output: Output, outputs: list[Output]) -> str:
    """The table; with the number of the operation where several write to it."""
    same = [each for each in outputs if each.table == output.table]
    return output.table if same[0] is output else f"{output.table}#{output.seq}"


def _view_output(output: PublishedOutput) -> Output:
    return Output(
        seq=output.seq,
        table=output.table,
        destination=output.destination,
        rows=output.rows,
        digest=output.digest,
        dataset_id=output.dataset_id,
        dataset_version=output.dataset_version,
        seconds=output.milliseconds / 1000,
        columns=output.columns,
        location=output.location,
    )

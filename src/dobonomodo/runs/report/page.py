"""What the report of a run says, in the order in which a controller asks; the templates decide its form."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from shlex import quote

from dobonomodo.model.locale import ENGLISH, Locale
from dobonomodo.model.plain import Document
from dobonomodo.plan import Plan
from dobonomodo.plan.counts import OperationCounts
from dobonomodo.plan.dataset import recorded_key
from dobonomodo.plan.explain import describe_selector
from dobonomodo.plan.operations import Effect, Facts, find_facts
from dobonomodo.runs.comparison import OF_ALL_ROWS, ComparedOutput, Other, compare_outputs, share
from dobonomodo.runs.figures import FirstRows
from dobonomodo.runs.record import Output, RunView
from dobonomodo.runs.report.difference import find_waterfalls
from dobonomodo.runs.report.html import render

FILES_SHOWN = 10


@dataclass(frozen=True, slots=True)
class Link:
    """Another run, and its report if there is one."""

    run: str
    period: str
    address: str | None


@dataclass(frozen=True, slots=True)
class Links:
    """Where a reader may go from here."""

    previous: Link | None = None
    """The run of the same project and period before this one."""
    next: Link | None = None
    previous_period: Link | None = None
    index: str | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """An operation: what it was told to do, and what it did to how many rows."""

    operation: OperationCounts
    facts: Facts
    words: tuple[str, ...]
    """The rows it takes and what it does with them, as its author wrote it."""
    counts: tuple[str, ...]
    changes: tuple[tuple[str, Decimal | None], ...]
    """The columns whose total it changed, and by how much; None where that is not known."""
    bar: tuple[tuple[str, float], ...]
    """The rows of the working dataset after it by what happened to them: a color, and a share in percent."""

    @property
    def reached(self) -> bool:
        """Whether the run came so far."""
        return self.operation.rows_in is not None or self.operation.selected is not None


@dataclass(frozen=True, slots=True)
class Cell:
    """A value of one of the first rows; numbers are aligned."""

    text: str | None
    is_number: bool


@dataclass(frozen=True, slots=True)
class Result:
    """What an output wrote: its numbers beside those of other runs, and its first rows."""

    output: Output
    compared: ComparedOutput | None
    """None if there are no figures."""
    rows: tuple[tuple[Cell, ...], ...]


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter with the value that the run was given."""

    name: str
    value: str
    default: str | None
    description: str | None


@dataclass(frozen=True, slots=True)
class InputFile:
    """A file as it was when the run read it."""

    name: str
    bytes: int
    changed: datetime


@dataclass(frozen=True, slots=True)
class Input:
    """A place that was read, and how to tell whether it is still the same."""

    dataset: str
    version: int
    what: str
    place: str
    period: str
    fingerprint: str | None
    files: tuple[InputFile, ...]
    more_files: int


def render_report(
    run: RunView,
    *,
    plan: Plan | None,
    resumable: bool,
    made_at: datetime,
    links: Links | None = None,
    others: Sequence[Other] = (),
    locale: Locale = ENGLISH,
) -> str:
    """The whole page; without the plan, which records of other versions may no longer give, it does not say what operations do.

    ``others`` are the runs to compare with.
    """
    known = [other for other in others if other.figures is not None]
    steps = list(_steps(run, plan, locale))
    return render(
        "report.html",
        run=run,
        title=f"{run.snapshot['project']['name']}, {run.period}",
        links=links or Links(),
        locale=locale,
        of_all_rows=OF_ALL_ROWS,
        share=share,
        others=known,
        lines=find_waterfalls(run.locked.difference if run.locked is not None else None),
        results=list(_results(run, known, locale)),
        deleting=[step for step in steps if step.operation.deleted],
        steps=steps,
        loaded=next((each.rows_in for each in run.operations if each.rows_in is not None), None),
        parameters=list(_parameters(run.snapshot)),
        inputs=list(_inputs(run.snapshot)),
        commands=_commands(run, resumable=resumable),
        project_text=json.dumps(run.snapshot["project"]["document"], indent=2, ensure_ascii=False),
        snapshot_text=json.dumps(dict(run.snapshot), indent=2, ensure_ascii=False),
        made_at=made_at,
    )


# --- the result


def _results(run: RunView, others: Sequence[Other], locale: Locale) -> Iterator[Result]:
    compared = compare_outputs(run.figures, others) if run.figures is not None else ()
    by_seq = {each.output.seq: each for each in compared}
    for output in run.outputs.values():
        found = by_seq.get(output.seq)
        first = found.output.first if found is not None else None
        rows = tuple(_cells(first, row, output, locale) for row in first.rows) if first is not None else ()
        yield Result(output, found, rows)


def _cells(first: FirstRows, row: Sequence[str | None], output: Output, locale: Locale) -> tuple[Cell, ...]:
    return tuple(
        _cell(text, output.columns.get(name, ""), locale) for name, text in zip(first.columns, row, strict=True)
    )


def _cell(text: str | None, kind: str, locale: Locale) -> Cell:
    """Amounts are grouped; whole numbers are not, since they are often numbers of something."""
    if text is not None and kind.startswith("decimal"):
        return Cell(locale.show(Decimal(text)), True)
    return Cell(text, kind == "integer" or kind.startswith("decimal"))


# --- the pipeline


def _steps(run: RunView, plan: Plan | None, locale: Locale) -> Iterator[Step]:
    most = max((each.rows_out or 0 for each in run.operations), default=0)
    planned = {step.spec.seq: step for step in plan.steps} if plan is not None else {}
    changes = run.figures.changes if run.figures is not None else {}
    for operation in run.operations:
        step, facts = planned.get(operation.seq), find_facts(operation.type)
        yield Step(
            operation,
            facts,
            words=(*describe_selector(step), *step.describe()) if step is not None else (),
            counts=tuple(_counts(operation, facts, locale)),
            changes=tuple((name, value) for name, value in changes.get(operation.seq, {}).items() if value != 0),
            bar=tuple(_bar(operation, facts, most)),
        )


def _counts(operation: OperationCounts, facts: Facts, locale: Locale) -> Iterator[str]:
    if operation.rows_in is None:
        yield "not reached" if operation.selected is None else f"{locale.show(operation.selected)} written"
        return
    yield f"{locale.show(operation.rows_in)} rows"
    if facts.counted:
        yield f"{locale.show(operation.selected or 0)} {facts.counted}"
    if operation.added:
        yield f"{locale.show(operation.added)} added"
    if operation.seconds is not None:
        yield f"{operation.seconds:.1f} s"


def _bar(operation: OperationCounts, facts: Facts, most: int) -> Iterator[tuple[str, float]]:
    if not most or operation.rows_in is None:
        return
    rows, added = operation.rows_in, operation.added or 0
    touched = 0 if Effect.ADDS in facts.effect else operation.selected or 0
    color = "red" if Effect.DELETES in facts.effect else "blue"
    for number, each in ((touched, color), (rows - touched, "bar"), (added, "green")):
        if number > 0:
            yield each, round(max(100 * number / most, 0.4), 2)


def _parameters(snapshot: Document) -> Iterator[Parameter]:
    declared = snapshot["project"]["document"].get("parameters") or {}
    for name, value in snapshot.get("parameters", {}).items():
        yield Parameter(name, value, declared[name].get("default"), declared[name].get("description"))


# --- facts for engineers


def _inputs(snapshot: Document) -> Iterator[Input]:
    pinned = snapshot.get("inputs") or {}
    for reading in snapshot["readings"]:
        seq, day = reading["operation_seq"], reading.get("as_of")
        what = reading["role"] + (f", operation {seq}" if seq else "") + (f", as of {day}" if day else "")
        for location in pinned.get(recorded_key(reading), ()):
            yield Input(
                dataset=reading["dataset"],
                version=reading["version"],
                what=what,
                place=location["name"],
                period=location.get("period") or "",
                fingerprint=location.get("fingerprint"),
                files=tuple(_file(each) for each in location["files"][:FILES_SHOWN]),
                more_files=max(len(location["files"]) - FILES_SHOWN, 0),
            )


def _file(file: Document) -> InputFile:
    changed = datetime.fromtimestamp(file["modified"] / 1e9, UTC)
    return InputFile(file["path"].rpartition("/")[2], file["size"], changed)


def _commands(run: RunView, *, resumable: bool) -> str:
    """How to go on, and how to get the same rows again."""
    clock = run.started_at.isoformat().replace("+00:00", "Z")
    draft = " --draft" if run.draft else ""
    as_of = f" --as-of {run.snapshot['as_of']}" if run.snapshot["as_of"] is not None else ""
    given = "".join(f" --set {quote(f'{name}={value}')}" for name, value in run.snapshot.get("parameters", {}).items())
    commands = [
        f"dobo verify {run.id}             # the outputs are still these rows",
        f"dobo verify {run.id} --replay    # recompute and compare the rows",
        f"dobo run {run.project} --period {run.period} --started-at {clock}{as_of}{given}{draft}",
    ]
    return "\n".join([f"dobo resume {run.id}", *commands] if resumable else commands)

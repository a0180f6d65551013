"""What the report of a run says, in the order in which a controller asks; how it looks is for the templates."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from dobonomodo.plan import Plan
from dobonomodo.plan.counts import OperationCounts
from dobonomodo.plan.explain import describe_selector
from dobonomodo.plan.operations import Effect, Facts, find_facts
from dobonomodo.runs.record import RunView
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
    bar: tuple[tuple[str, float], ...]
    """The rows of the working dataset after it by what happened to them: a color, and a share in percent."""

    @property
    def reached(self) -> bool:
        """Whether the run came so far."""
        return self.operation.rows_in is not None or self.operation.selected is not None


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
    run: RunView, *, plan: Plan | None, resumable: bool, made_at: datetime, links: Links | None = None
) -> str:
    """The whole page; without the plan, which records of other versions may no longer give, it does not say what operations do."""
    return render(
        "report.html",
        run=run,
        title=f"{run.snapshot['project']['name']}, {run.period}",
        links=links or Links(),
        steps=list(_steps(run, plan)),
        loaded=next((each.rows_in for each in run.operations if each.rows_in is not None), None),
        inputs=list(_inputs(run.snapshot)),
        commands=_commands(run, resumable=resumable),
        project_text=json.dumps(run.snapshot["project"]["document"], indent=2, ensure_ascii=False),
        snapshot_text=json.dumps(dict(run.snapshot), indent=2, ensure_ascii=False),
        made_at=made_at,
    )


# --- the pipeline


def _steps(run: RunView, plan: Plan | None) -> Iterator[Step]:
    most = max((each.rows_out or 0 for each in run.operations), default=0)
    planned = {step.spec.seq: step for step in plan.steps} if plan is not None else {}
    for operation in run.operations:
        step, facts = planned.get(operation.seq), find_facts(operation.type)
        words = (*describe_selector(step), *step.describe()) if step is not None else ()
        yield Step(operation, facts, words, tuple(_counts(operation, facts)), tuple(_bar(operation, facts, most)))


def _counts(operation: OperationCounts, facts: Facts) -> Iterator[str]:
    if operation.rows_in is None:
        yield "not reached" if operation.selected is None else f"{operation.selected:,} written"
        return
    yield f"{operation.rows_in:,} rows"
    if facts.counted:
        yield f"{operation.selected or 0:,} {facts.counted}"
    if operation.added:
        yield f"{operation.added:,} added"
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


# --- facts for engineers


def _inputs(snapshot: Mapping[str, Any]) -> Iterator[Input]:
    pinned = snapshot.get("inputs") or {}
    for reading in snapshot["readings"]:
        seq, alias = reading["operation_seq"] or 0, reading["alias"] or ""
        key = f"{reading['role']}/{reading['dataset']}/v{reading['version']}/{reading['table']}/{seq}/{alias}"
        day = reading.get("as_of")
        what = reading["role"] + (f", operation {seq}" if seq else "") + (f", as of {day}" if day else "")
        for location in pinned.get(key, ()):
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


def _file(file: Mapping[str, Any]) -> InputFile:
    changed = datetime.fromtimestamp(file["modified"] / 1e9, UTC)
    return InputFile(file["path"].rpartition("/")[2], file["size"], changed)


def _commands(run: RunView, *, resumable: bool) -> str:
    """How to go on, and how to get the same rows again."""
    clock = run.started_at.isoformat().replace("+00:00", "Z")
    draft = " --draft" if run.draft else ""
    as_of = f" --as-of {run.snapshot['as_of']}" if run.snapshot["as_of"] is not None else ""
    commands = [
        f"dobo verify {run.id}             # the outputs are still these rows",
        f"dobo verify {run.id} --replay    # computing again gives the same rows",
        f"dobo run {run.project} --period {run.period} --started-at {clock}{as_of}{draft}",
    ]
    return "\n".join([f"dobo resume {run.id}", *commands] if resumable else commands)

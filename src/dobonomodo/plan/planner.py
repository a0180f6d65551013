"""The planner: walks the operations in order, carrying the columns of the working dataset, and finds every problem in one pass."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pydantic import ValidationError

from dobonomodo.formula import HOLE, parse
from dobonomodo.model.datasource import DataSource
from dobonomodo.model.document import Places
from dobonomodo.model.operation import OperationSpec
from dobonomodo.model.project import Project
from dobonomodo.plan.check import START, Check, state_after
from dobonomodo.plan.context import Context
from dobonomodo.plan.dataset import Datasets, DatasetUse, unknown_use
from dobonomodo.plan.destination import DestinationKind
from dobonomodo.plan.lookup import join_lookup
from dobonomodo.plan.operations import OPERATION_BY_TYPE, Effect, Lowered, Operation
from dobonomodo.plan.relation import Derive, Scan
from dobonomodo.plan.resolution import Locator
from dobonomodo.plan.rows import Origin, Rows
from dobonomodo.plan.step import Step
from dobonomodo.plan.system import TEMPORAL
from dobonomodo.problems import Problem, in_order
from dobonomodo.problems.definition import InvalidOperation, OperationReason, UnknownReference
from dobonomodo.problems.operation import InputDatasetNotFound, UnusedSelector, WithoutEffect
from dobonomodo.problems.parameter import UnusedParameter

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """Everything that a run of a project will do, known before a row is read."""

    project: Project
    input: DatasetUse
    uses: tuple[DatasetUse, ...]
    start: Rows
    steps: tuple[Step, ...]
    contracts: tuple[Check, ...] = ()
    """The checks that are declared by the datasets which are read."""


@dataclass(frozen=True, slots=True, eq=False)
class Planned:
    """A plan, or the problems that prevent one; warnings may come with a plan."""

    plan: Plan | None
    problems: tuple[Problem, ...] = ()


def plan_project(
    project: Project,
    *,
    datasets: Datasets,
    resolution: Locator,
    datasources: Mapping[str, DataSource],
    kinds: Mapping[str, DestinationKind],
    uncertain_from: int | None = None,
) -> Planned:
    """The plan of a project with all its problems.

    ``kinds`` says what destinations are in each type of datasource.
    ``uncertain_from`` is the number of the first operation that could not be read, for a project that has such.
    """
    ctx = Context(project, datasets=datasets, resolution=resolution, datasources=datasources, kinds=kinds)
    _note_makers(project, ctx)
    start = _load_input(project, ctx)
    rows = start
    ctx.states[START] = start
    steps: list[Step] = []
    for spec in project.operations:
        if uncertain_from is not None and spec.seq >= uncertain_from:
            rows = replace(rows, certain=False)
        ctx.begin(spec, certain=rows.certain)
        operation = OPERATION_BY_TYPE.get(spec.type)
        if operation is None:
            _report_type(spec, ctx)
            rows = _guess_columns(rows, ctx)
            continue
        lowered = _lower(operation, spec, rows, ctx)
        steps.append(Step(spec, operation, rows, lowered, project.selectors))
        rows = lowered.rows
        ctx.states[state_after(spec.seq)] = rows
    ctx.operation = None
    if uncertain_from is None and len(steps) == len(project.operations):
        ctx.problems.extend(_find_dead_work(project, steps, ctx))
    problems = in_order(ctx.problems)
    failed = any(problem.severity == "error" for problem in problems)
    if failed or ctx.blocked or uncertain_from is not None:
        return Planned(None, problems)
    return Planned(Plan(project, ctx.uses[0], tuple(ctx.uses), start, tuple(steps), tuple(ctx.contracts)), problems)


def _note_makers(project: Project, ctx: Context) -> None:
    """Which operations make rows, so that formulas can ask for those by name."""
    for spec in project.operations:
        kind = OPERATION_BY_TYPE.get(spec.type)
        if kind is None or Effect.ADDS in kind.facts.effect:
            ctx.makers[spec.name] = (*ctx.makers.get(spec.name, ()), spec.seq)
    ctx.idle = frozenset(spec.name for spec in project.operations if spec.name not in ctx.makers)


def _report_type(spec: OperationSpec, ctx: Context) -> None:
    """A type that does not exist (R-076)."""
    reason, known = OperationReason.UNKNOWN_TYPE, tuple(OPERATION_BY_TYPE)
    ctx.report(InvalidOperation(reason=reason, found=spec.type, known=known, span=spec.places.span("type")))


def _lower(kind: type[Operation], spec: OperationSpec, rows: Rows, ctx: Context) -> Lowered:
    loaded = kind.load(ctx.arguments)
    for problem in loaded.problems:
        ctx.report(problem)
    if loaded.value is not None:
        return loaded.value.lower(rows, ctx)
    ctx.unchecked.append(spec)
    usable = _salvage(kind, ctx.arguments)
    if usable is None:
        ctx.selector(ctx.scope(rows))
        return Lowered(_guess_columns(rows, ctx))
    arguments, places = usable
    with ctx.using(places):
        return arguments.lower(rows, ctx)


def _salvage(kind: type[Operation], places: Places) -> tuple[Operation, Places] | None:
    """Arguments without their invalid parts, so that the others are still checked; None if too little is left."""
    for _ in range(MAX_SALVAGE):
        try:
            arguments = kind.model_validate(places.data)
        except ValidationError as error:
            smaller = _without(places, error.errors()[0])
            if smaller is None:
                return None
            places = smaller
        else:
            arguments.attach(places)
            return arguments, places
    return None


def _without(places: Places, error: ErrorDetails) -> Places | None:
    """The places without the part that an error is about: an unknown key, a value, or the list element around it."""
    path = [step for step in error["loc"] if isinstance(step, int) or step in _keys_on(places, error["loc"])]
    if error["type"] == "missing" or not path:
        positions = [at for at, step in enumerate(path) if isinstance(step, int)]
        if not positions:
            return None
        path = path[: positions[-1] + 1]
    return places.without(*path)


def _keys_on(places: Places, steps: tuple[int | str, ...]) -> set[str]:
    """The names among the steps of an error that are keys in the text; others name alternatives of a type."""
    found: set[str] = set()
    here: Places | None = places
    for step in steps:
        following = here.at(step) if here is not None else None
        if following is not None:
            here = following
            found.add(str(step))
    return found


def _guess_columns(rows: Rows, ctx: Context) -> Rows:
    """After an operation that could not be read: the columns it seems to make, so that later ones are still checked."""
    named = {
        element.text("column")
        for key in ("assignments", "aggregations")
        if (listed := ctx.arguments.at(key)) is not None
        for element in listed.elements()
    }
    new = {name: HOLE for name in named if name and rows.columns.spelling(name) is None}
    return replace(rows, node=Derive(rows.node, new), certain=False)


# --- the input and its lookups


def _load_input(project: Project, ctx: Context) -> Rows:
    dataset_id, version = project.input_dataset_id, project.input_dataset_version
    known = ctx.datasets.find(dataset_id, version)
    if known is None:
        if ctx.datasets.is_broken(dataset_id):
            ctx.blocked = True
        else:
            versions = ctx.datasets.versions(dataset_id)
            pinned = version is not None and bool(versions)
            ctx.report(
                InputDatasetNotFound(
                    dataset_id=dataset_id,
                    known=tuple(ctx.datasets.ids()),
                    disabled=bool(versions) and not pinned,
                    version=version if pinned else None,
                    span=project.places.span("input_dataset_version" if pinned else "input_dataset_id"),
                )
            )
        return _unknown_input(dataset_id)
    scan = ctx.scan(known, "input", at=project.places.at("input_dataset_id"))
    ctx.check_qualifier(scan.use.table, taken_by="the main table", span=project.places.span("input_dataset_id"))
    for lookup in known.dataset.lookups:
        span = project.places.span("input_dataset_id")
        ctx.check_qualifier(lookup.alias, taken_by="a lookup of the dataset", span=span)
    named = (*scan.use.columns, *TEMPORAL[scan.use.temporal_mode])
    origins = {name: Origin(frozenset({f"{dataset_id}.{name}"})) for name in named}
    key = tuple(scan.use.columns.spelling(name) or name for name in scan.use.natural_key)
    rows = Rows(scan, scan.use.table, dataset_id, origins, keys={0: key})
    for position, lookup in enumerate(known.dataset.lookups):
        rows = join_lookup(rows, lookup, known, position, ctx)
    return rows


def _unknown_input(dataset_id: str) -> Rows:
    """An unknown working dataset: every name is accepted as a column, so that only the input is reported."""
    return Rows(Scan(unknown_use("input", dataset_id)), "", dataset_id, {}, certain=False)


# --- warnings about the whole


def _find_dead_work(project: Project, steps: list[Step], ctx: Context) -> Iterator[Problem]:
    outputs = [position for position, step in enumerate(steps) if Effect.WRITES in step.facts.effect]
    checks = [position for position, step in enumerate(steps) if Effect.CHECKS in step.facts.effect]
    if not outputs:
        yield WithoutEffect(no_output=True, span=project.places.key_span("operations"))
    else:
        for step in steps[max(outputs + checks) + 1 :]:
            yield WithoutEffect(no_output=False, span=step.spec.places.key_span("type"), operation=step.spec.ref)
    mentioned = _mentioned_selectors(project, ctx.unchecked)
    for name in project.selectors:
        if name not in ctx.used_selectors | mentioned:
            yield UnusedSelector(name=name, span=project.places.key_span("selectors", name))
            yield from parse(ctx.selectors[name]).problems
    for name in project.parameters or {}:
        if name not in ctx.used_parameters and not ctx.unchecked:
            yield UnusedParameter(name=name, span=project.places.key_span("parameters", name))
    read = {use.dataset_id for use in ctx.uses}
    for dataset_id in project.resolver_overrides:
        if dataset_id not in read and not ctx.blocked:
            span = project.places.key_span("resolver_overrides", dataset_id)
            yield UnknownReference(kind="dataset of this project", id=dataset_id, known=tuple(sorted(read)), span=span)


def _mentioned_selectors(project: Project, unchecked: Sequence[OperationSpec]) -> set[str]:
    """Selectors that occur in operations that could not be checked, and those they use."""
    pending = [json.dumps([spec.selector, spec.arguments], default=str) for spec in unchecked]
    found: set[str] = set()
    while pending:
        for name in _SELECTOR.findall(pending.pop()):
            if name in project.selectors and name not in found:
                found.add(name)
                pending.append(project.selectors[name])
    return found


_SELECTOR = re.compile(r"\{\{\s*([A-Za-z_]\w*)\s*\}\}")
MAX_SALVAGE = 200
"""Maximum number of invalid parts that are removed from one operation."""

"""Checking: every problem of every file and project of a workspace, each once. Needs no Spark and creates no store."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from dobonomodo.model import Dataset, DataSource, Places, Project, Resolver
from dobonomodo.model.parameter import settle_parameters
from dobonomodo.plan.resolution import check_resolver
from dobonomodo.problems import Problem, Rejected, in_order
from dobonomodo.problems.definition import DuplicateDefault, DuplicateId, InvalidValue, UnknownReference
from dobonomodo.problems.listing import Problems
from dobonomodo.problems.operation import DatasetMissing, DestinationReason, InvalidDestination, ResolverNotFound
from dobonomodo.problems.package import find_missing_modules
from dobonomodo.problems.parameter import ParameterMissing
from dobonomodo.storage import check_drivers, check_locations, destination_kinds
from dobonomodo.storage.transport import modules_of

if TYPE_CHECKING:
    from dobonomodo.model import Definitions
    from dobonomodo.plan import Plan
    from dobonomodo.workspace.files import Files
    from dobonomodo.workspace.planning import Planning

Reference = tuple[str, str]
"""The kind and the id of a definition."""

NEVER = 2**31
"""Above every operation's number: all of them could be read, and yet the project has problems."""


def find_problems(files: Files, planning: Planning) -> Problems:
    """Every problem, by place."""
    found: list[Problem] = list(files.problems)
    own = files.definitions
    for places in (*(each.places for each in own.resolvers.values()), *own.broken.get("resolver", {}).values()):
        found.extend(check_resolver(places))
        found.extend(check_locations(places, own.datasources))
    datasets = planning.draft_datasets()
    for project in own.projects.values():
        planned = datasets.chain.planned(project)
        found.extend(planned.problems)
        if planned.plan is not None:
            found.extend(planning.find_links(planned.plan))
    for project, uncertain_from in own.salvaged:
        start = NEVER if uncertain_from is None else uncertain_from
        found.extend(planning.plan(project, datasets, uncertain_from=start).problems)
    found.extend(datasets.chain.problems)
    found.extend(_check_settings(files))
    found.extend(check_drivers(own.datasources.values()))
    return settle(found, own)


def settle(problems: Iterable[Problem], definitions: Definitions) -> Problems:
    """Problems by place, each once, and reported where its cause is."""
    broken = definitions.broken.get("datasource", {})
    return Problems(in_order(_once(each for each in problems if not _is_about(each, broken))))


def _check_settings(files: Files) -> Iterator[Problem]:
    """The sandbox and values of parameters in the file of the workspace, in every environment; packages that its settings need."""
    if (
        files.is_scratch_remote
        and (missing := find_missing_modules(modules_of(files.settings.scratch or ""))) is not None
    ):
        yield missing
    own = files.definitions
    for part in _setting_places(files):
        yield from _check_sandbox(part, own)
        given = part.at("parameters")
        for project_id in given.keys if given is not None else ():
            values = given.at(project_id) if given is not None else None
            project = own.projects.get(project_id)
            if values is None or project_id in own.broken.get("project", {}):
                continue
            if project is None:
                known, span = tuple(own.projects), values.key_span()
                yield UnknownReference(kind="project", id=project_id, known=known, span=span)
            else:
                yield from _check_values(project, values)


def _setting_places(files: Files) -> Iterator[Places]:
    """The settings of the workspace and of its environments."""
    yield files.settings.places
    environments = files.settings.places.at("environments")
    for name in environments.keys if environments is not None else ():
        part = environments.at(name) if environments is not None else None
        if part is not None:
            yield part


def _check_sandbox(settings: Places, definitions: Definitions) -> Iterator[Problem]:
    """A sandbox that is a datasource can be written."""
    source = definitions.datasources.get(settings.text("sandbox") or "")
    kinds = destination_kinds()
    if source is not None and not kinds[source.type].can_write:
        yield InvalidValue(
            key="sandbox",
            expected="a folder or a datasource that can be written",
            found=f"`{source.id}`, which can only be read",
            advice=f"name a datasource of another type: {', '.join(f'`{k}`' for k, each in kinds.items() if each.can_write)}",
            span=settings.span("sandbox"),
        )


def _check_values(project: Project, values: Places) -> Iterator[Problem]:
    parameters = project.parameters or {}
    for name in values.keys:
        spans = {name: values.span(name)}
        settled = settle_parameters(project.id, parameters, {name: values.get(name)}, spans=spans)
        yield from (
            each for each in settled.problems if not isinstance(each, ParameterMissing) and each.span is not None
        )


def require_sound(files: Files, planning: Planning) -> None:
    """Raise with every problem if there is an error anywhere."""
    problems = find_problems(files, planning)
    if any(problem.severity == "error" for problem in problems):
        raise Rejected(problems)


def require_readable(project_id: str, files: Files, planning: Planning) -> None:
    """Raise with every problem if a project could not be read."""
    if project_id in files.definitions.broken.get("project", {}):
        raise Rejected(find_problems(files, planning))


def find_ambiguous(problems: Iterable[Problem], used: Container[Reference]) -> tuple[Problem, ...]:
    """Those of the problems that say of a used definition that there are two of it, or two defaults."""

    def is_used(problem: Problem) -> bool:
        match problem:
            case DuplicateId(kind=kind, id=name):
                return (kind, name) in used
            case DuplicateDefault(kind=kind, id=name, other=other):
                return (kind, name) in used or (kind, other) in used
            case _:
                return False

    return tuple(filter(is_used, problems))


def find_used(plan: Plan) -> Iterator[Reference]:
    """The definitions that a plan is made of."""
    yield Project.kind, plan.project.id
    for use in plan.uses:
        yield Dataset.kind, use.dataset_id
        if use.resolver_id is not None:
            yield Resolver.kind, use.resolver_id
        yield from ((DataSource.kind, location.datasource_id) for location in use.locations)
    for step in plan.steps:
        write = step.lowered.write
        if write is not None and write.destination.datasource_id is not None:
            yield DataSource.kind, write.destination.datasource_id


def _is_about(problem: Problem, broken: Container[str]) -> bool:
    """Whether it reports a missing datasource that exists and has its own problem."""
    match problem:
        case InvalidDestination(reason=DestinationReason.UNKNOWN_DATASOURCE, name=name):
            return name in broken
        case UnknownReference(kind="datasource", id=name):
            return name in broken
        case _:
            return False


def _once(problems: Iterable[Problem]) -> Iterator[Problem]:
    """Each problem once, also when several operations run into it, as into a faulty selector or a missing definition."""
    problems = list(problems)
    missing = {problem.id for problem in problems if isinstance(problem, UnknownReference)}
    seen: set[object] = set()
    for problem in problems:
        if isinstance(problem, ResolverNotFound) and problem.resolver_id in missing:
            continue
        if isinstance(problem, DatasetMissing) and problem.operation is None and problem.dataset_id in missing:
            continue
        key = (problem.code, problem.span, problem.message()) if problem.span is not None else problem
        if key not in seen:
            seen.add(key)
            yield problem


@dataclass(frozen=True, slots=True)
class Counts:
    """How many definitions there are."""

    datasources: int
    resolvers: int
    calendars: int
    datasets: int
    projects: int
    """Also those that cannot be read."""

    def to_dict(self) -> dict[str, int]:
        """As plain data."""
        return asdict(self)


def count_definitions(definitions: Definitions) -> Counts:
    """How many definitions of each kind there are."""
    return Counts(
        datasources=len(definitions.datasources),
        resolvers=len(definitions.resolvers),
        calendars=len(definitions.calendars),
        datasets=len(definitions.datasets),
        projects=len(definitions.projects) + len(definitions.broken.get("project", {})),
    )

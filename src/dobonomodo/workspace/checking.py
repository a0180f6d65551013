"""Checking: every problem of every file and project of a workspace, each once. Needs no Spark and no store that is not there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from dobonomodo.plan.resolution import check_resolver
from dobonomodo.problems import Problem, Rejected, in_order
from dobonomodo.problems.definition import UnknownReference
from dobonomodo.problems.listing import Problems
from dobonomodo.problems.operation import DatasetMissing, ResolverNotFound
from dobonomodo.storage import check_locations

if TYPE_CHECKING:
    from dobonomodo.workspace.files import Files
    from dobonomodo.workspace.planning import Planning

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
        found.extend(datasets.chain.planned(project).problems)
    for project, uncertain_from in own.salvaged:
        start = NEVER if uncertain_from is None else uncertain_from
        found.extend(planning.plan(project, datasets, uncertain_from=start).problems)
    found.extend(datasets.chain.problems)
    return Problems(in_order(_once(found)))


def require_sound(files: Files, planning: Planning) -> None:
    """Raise with every problem if there is an error anywhere."""
    problems = find_problems(files, planning)
    if any(problem.severity == "error" for problem in problems):
        raise Rejected(problems)


def require_readable(project_id: str, files: Files, planning: Planning) -> None:
    """Raise with every problem if a project could not be read."""
    if project_id in files.definitions.broken.get("project", {}):
        raise Rejected(find_problems(files, planning))


def _once(problems: Sequence[Problem]) -> Iterator[Problem]:
    """Each problem once, also when several operations run into it, as into a faulty selector or a missing definition."""
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

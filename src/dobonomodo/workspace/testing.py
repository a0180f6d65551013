"""Testing: the scenarios of a project, run before it becomes active."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import TYPE_CHECKING

from dobonomodo.problems import Rejected
from dobonomodo.problems.control import ScenarioFailed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from dobonomodo.model import Document
    from dobonomodo.scenarios import Result
    from dobonomodo.workspace.files import Files

FOLDER = "scenarios"


SETTINGS = {"spark.sql.shuffle.partitions": "1", "spark.sql.adaptive.enabled": "false"}
"""Of a session for few rows."""


def run_scenarios(
    project_id: str, files: Files, *, spark: SparkSession | None, report: Callable[[str], None]
) -> tuple[Result, ...]:
    """The results of all scenarios that run a project. Spark is only opened if there are any."""
    _require_readable(files)
    own = [document for document in files.definitions.scenarios if project_id in _projects_of(document)]
    if not own:
        return ()
    # Only now, since it takes time to import.
    from dobonomodo.scenarios import run_suite
    from dobonomodo.scenarios.suite import found_in

    report(f"running {len(own)} scenario{'' if len(own) == 1 else 's'} of {project_id}")
    found = [found_in(document, root=files.root) for document in own]
    return tuple(run_suite(found, _opening(spark), definitions=files.definitions))


def _opening(given: SparkSession | None) -> Callable[[], SparkSession]:
    from dobonomodo.engine import adapt_session
    from dobonomodo.workspace.session import open_spark

    return cache(lambda: adapt_session(given) if given is not None else open_spark(conf=SETTINGS, app_name="dobo test"))


def require_passed(results: tuple[Result, ...]) -> None:
    """Raise if a scenario of a project failed."""
    failed = [each for each in results if not each.passed]
    if failed:
        raise Rejected(
            [ScenarioFailed(name=each.name, file=each.file, differences=each.differences) for each in failed]
        )


def _require_readable(files: Files) -> None:
    """A scenario that cannot be read might be one that fails."""
    unreadable = [
        problem
        for problem in files.problems
        if problem.severity == "error" and problem.span is not None and problem.span.source.name.startswith(FOLDER)
    ]
    if unreadable:
        raise Rejected(unreadable)


def _projects_of(document: Document) -> Iterator[str]:
    """The projects of the workspace that a scenario runs."""
    scenario = document.places.at("scenario")
    if scenario is None:
        return
    later = scenario.at("then")
    for run in (scenario, *(later.elements() if later is not None else ())):
        if (used := run.text("project", "use")) is not None:
            yield used

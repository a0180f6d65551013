"""A scenario: rows, a project, and the expected result. Written as YAML, for users' tests and for ours."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, ClassVar, Literal

from pydantic import BeforeValidator, Field

from dobonomodo.formula import parse_moment
from dobonomodo.model import Entity, Places
from dobonomodo.model.shape import CheckedApart
from dobonomodo.model.value import Count, Day, Expected, Filled, Flag, Id, Setting, Text
from dobonomodo.problems import Problem
from dobonomodo.problems.definition import InvalidValue, MissingKey


def _moment(value: object) -> datetime:
    if isinstance(value, datetime):
        return value
    found = parse_moment(value) if isinstance(value, str) else None
    if not isinstance(found, datetime):
        raise ValueError
    return found


Moment = Annotated[datetime, BeforeValidator(_moment), Expected("a time such as `2026-02-03T08:00:00Z`")]


class ScenarioPeriod(Entity):
    """The period of a run."""

    identifier: Filled = Field(description="The name of the period.")
    level: Filled = Field(default="month", description="Its level.")
    start_date: Day = Field(description="The first day.")
    end_date: Day = Field(description="The last day.")
    status: Literal["open", "closed", "locked"] = Field(default="open", description="The status of the period.")


class ScenarioDataset(Entity):
    """A dataset of a scenario: its schema, here or in the workspace, and its rows."""

    dataset: Annotated[dict[str, object], CheckedApart()] | None = Field(default=None, description="The schema.")
    use: Id | None = Field(default=None, description="A dataset of the workspace instead.")
    version: Count = Field(default=1, description="The version that these rows belong to.")
    rows: tuple[dict[str, object], ...] = Field(default=(), description="The stored rows.")
    file: Text | None = Field(default=None, description="A CSV or Parquet file next to the scenario, instead of rows.")
    resolver: Flag = Field(default=True, description="Whether a resolver locates its rows.")


class ExpectedOutput(Entity):
    """The rows that an output must have."""

    columns: tuple[Filled, ...] | None = Field(default=None, description="Exactly these columns in this order.")
    rows: tuple[dict[str, object], ...] = Field(
        default=(), description="The rows; a business column that is missing is NULL."
    )
    match: Literal["exact", "subset"] = Field(default="exact", description="All rows, or at least these.")
    ordered: Flag = Field(default=False, description="Whether the rows must come in this order.")
    count: Annotated[int, Field(ge=0), Expected("a number of rows")] | None = Field(
        default=None, description="The number of rows."
    )


class ExpectedProblem(Entity):
    """A problem that must be reported."""

    code: Filled = Field(description="The code of the problem.")
    operation_seq: Count | None = Field(default=None, description="The operation it belongs to.")


class Expectation(Entity):
    """The expected result of a run."""

    outputs: dict[str, ExpectedOutput] = Field(default_factory=dict, description="Outputs by table name.")
    registered: dict[str, dict[str, object]] = Field(
        default_factory=dict, description="Datasets that are registered, with version, temporal_mode or columns."
    )
    error: ExpectedProblem | None = Field(default=None, description="The problem that fails the run.")
    errors: tuple[ExpectedProblem, ...] = Field(default=(), description="All problems that reject the project.")
    warnings: tuple[Filled, ...] | None = Field(default=None, description="The codes of all warnings.")
    operations: dict[str, dict[str, object]] = Field(default_factory=dict, description="Row counts by `seq`.")
    checks: dict[str, Literal["passed", "failed", "empty"]] = Field(
        default_factory=dict, description="The status of checks, by `seq`."
    )

    def is_empty(self) -> bool:
        """Whether nothing would be checked."""
        return (
            not any((self.outputs, self.registered, self.error, self.errors, self.operations, self.checks))
            and self.warnings is None
        )


class ScenarioRun(Entity):
    """One execution of a project and its expected result."""

    project: Annotated[dict[str, object], CheckedApart()] = Field(description="A project, or `use: <id>`.")
    period: ScenarioPeriod | None = Field(default=None, description="The period of the run.")
    periods: tuple[ScenarioPeriod, ...] = Field(default=(), description="Several periods, run one after the other.")
    started_at: Moment | None = Field(default=None, description="The clock of the run.")
    as_of: Day | None = Field(default=None, description="The day at which bitemporal rows are valid.")
    override_closed: Flag = Field(default=False, description="Run a closed period.")
    parameters: dict[str, Setting] | None = Field(
        default=None,
        description="Values of the project's parameters by name; later runs keep them unless they give others.",
    )
    expect: Expectation = Field(description="The expected result.")

    @classmethod
    def check(cls, places: Places) -> Iterable[Problem]:
        """Something is expected."""
        expect = places.at("expect")
        if expect is not None and expect.is_mapping and not expect.keys:
            yield MissingKey(
                key="outputs", owner="`expect`", expected="outputs, error or operations", span=expect.key_span()
            )


class Scenario(ScenarioRun):
    """A test that a user can read: given these rows, this project returns those."""

    kind: ClassVar[str] = "scenario"

    name: Filled = Field(description="What the scenario shows.")
    description: Text | None = Field(default=None, description="The explanation.")
    datasets: tuple[ScenarioDataset, ...] = Field(default=(), description="The datasets and their rows.")
    calendar: Annotated[dict[str, object], CheckedApart()] | None = Field(
        default=None,
        description="The calendar that other periods are counted by, or `use: <id>`; by default that of the workspace, "
        "else years `FY2026`, quarters `2026-Q1` and months `2026-01`.",
    )
    datasources: Annotated[tuple[dict[str, object], ...], CheckedApart()] | None = Field(
        default=None, description="The datasources; by default every datasource that is named."
    )
    then: tuple[ScenarioRun, ...] = Field(
        default=(), description="Further runs, which read what earlier ones registered."
    )

    @classmethod
    def check(cls, places: Places) -> Iterable[Problem]:
        """A period for every run, a schema for every dataset."""
        yield from super().check(places)
        if places.get("period") is None and places.get("periods") is None:
            yield MissingKey(key="period", owner="`scenario`", expected="a period", span=places.key_span())
        datasets = places.at("datasets")
        for element in datasets.elements() if datasets is not None else ():
            given = [key for key in ("dataset", "use") if element.get(key) is not None]
            if len(given) != 1:
                found = " and ".join(given) or "neither"
                yield InvalidValue(key="dataset", expected="`dataset` or `use`", found=found, span=element.key_span())

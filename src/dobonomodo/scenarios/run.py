"""Runs a scenario on Spark and reports the differences."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from dobonomodo.engine.engine import SparkEngine
from dobonomodo.engine.reading import StoredRows
from dobonomodo.formula import Type
from dobonomodo.model import Calendar, Dataset, DataSource, Definitions, Loaded, Period, Places, Project, Schedule
from dobonomodo.model.parameter import ParameterValue, settle_parameters
from dobonomodo.plan import DatasetUse, KnownDataset, Plan, plan_project
from dobonomodo.plan.check import CheckResult, find_stop
from dobonomodo.plan.counts import OperationCounts
from dobonomodo.plan.facts import RunFacts
from dobonomodo.plan.registration import explain_modes, registered_dataset, unite_columns
from dobonomodo.plan.relation import Write
from dobonomodo.plan.resolution import Resolved, choose_periods, read_periods
from dobonomodo.problems import Problem, Rejected, RunFailed, in_order
from dobonomodo.problems.definition import InvalidValue
from dobonomodo.problems.operation import PeriodNotRunnable, ResolverNotFound
from dobonomodo.problems.problem import did_you_mean
from dobonomodo.problems.run import CheckEmpty, CheckFailed, OutputWrite
from dobonomodo.scenarios.compare import compare_output
from dobonomodo.scenarios.rows import Given, InlineRows, Reading, RowsOfFile, WrittenRows
from dobonomodo.scenarios.scenario import Expectation, Scenario, ScenarioDataset, ScenarioPeriod, ScenarioRun
from dobonomodo.scenarios.values import TypedRow, take_rows
from dobonomodo.storage import destination_kinds, load_datasource

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from dobonomodo.engine.computed import Computed

T = TypeVar("T")

CLOCK = datetime(2026, 2, 3, 8, tzinfo=UTC)
"""The clock of a scenario that does not say one."""


@dataclass(frozen=True, slots=True, eq=False)
class Result:
    """How a scenario went: no differences means that it passed."""

    name: str
    file: str
    differences: tuple[str, ...] = ()
    seconds: float = 0.0
    actual: Mapping[str, Sequence[TypedRow]] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()
    """Why the scenario could not be run, if it could not."""

    @property
    def passed(self) -> bool:
        """Whether all was as expected."""
        return not self.differences

    def to_dict(self) -> dict[str, object]:
        """As plain data, without the actual rows."""
        return {
            "name": self.name,
            "file": self.file,
            "passed": self.passed,
            "seconds": round(self.seconds, 3),
            "differences": list(self.differences),
        }


def load_scenario(places: Places) -> Scenario:
    """A scenario from its document; raises with every problem."""
    loaded = Scenario.load(places)
    if loaded.value is None:
        raise Rejected(loaded.problems)
    return loaded.value


def run_scenario(
    scenario: Scenario, spark: SparkSession, *, definitions: Definitions, folder: Path, file: str
) -> Result:
    """Execute a scenario and everything that follows in it."""
    started = time.monotonic()
    differences: list[str] = []
    runs: list[ScenarioRun] = [scenario, *scenario.then]
    with tempfile.TemporaryDirectory(prefix="dobo-scenario-") as scratch:
        stage = _Stage(scenario, spark, definitions, folder, Path(scratch))
        for number, run in enumerate(runs):
            head = f"run {number + 1}: " if len(runs) > 1 else ""
            differences += [f"{head}{line}" for line in stage.run(run, number)]
    seconds = time.monotonic() - started
    return Result(scenario.name, file, tuple(differences), seconds, stage.written)


class _Stage:
    """What a scenario has set up: datasets with their rows, and what its runs have written so far."""

    def __init__(
        self, scenario: Scenario, spark: SparkSession, definitions: Definitions, folder: Path, scratch: Path
    ) -> None:
        self.scenario, self.spark, self.definitions, self.folder = scenario, spark, definitions, folder
        self.scratch = scratch
        self.written: dict[str, list[TypedRow]] = {}
        self.stored: dict[str, _Destination] = {}
        self.datasets = _ScenarioDatasets()
        for position, given in enumerate(scenario.datasets):
            places = scenario.places.at("datasets", position)
            if given.use is not None:
                dataset = definitions.datasets.get(given.use)
                if dataset is None:
                    span = scenario.places.span("datasets", position, "use")
                    raise Rejected(
                        [
                            InvalidValue(
                                key="use",
                                expected="a dataset of the workspace",
                                found=f"`{given.use}`",
                                known=tuple(definitions.datasets),
                                text=given.use,
                                span=span,
                            )
                        ]
                    )
            else:
                dataset = _load(Dataset.load, scenario.places.at("datasets", position, "dataset"))
            rows = self._given(given, places)
            known = KnownDataset(dataset, given.version, has_period=rows.has_period)
            self.datasets.add(known, rows, found=given.resolver)

    def _given(self, given: ScenarioDataset, places: Places | None) -> Given:
        if given.file:
            return RowsOfFile(self.folder, given.file)
        listed = places.at("rows") if places is not None else None
        return InlineRows(given.rows, listed or Places.of_data(list(given.rows)))

    # --- one run

    def run(self, run: ScenarioRun, number: int) -> Iterator[str]:
        """Execute one run and compare."""
        expect = run.expect
        if expect.is_empty():
            yield "the scenario has no expectations"
            return
        periods = (
            run.periods
            or ((run.period,) if run.period else ())
            or self.scenario.periods
            or ((self.scenario.period,) if self.scenario.period else ())
        )
        counts: tuple[OperationCounts, ...] | None = None
        warnings: tuple[Problem, ...] = ()
        outputs: dict[str, _Captured] = {}
        registered: dict[str, KnownDataset] = {}
        checks: dict[int, CheckResult] = {}
        try:
            project = self._project(run)
            for period in periods:
                _require_runnable(period, run)
            for at, period in enumerate(sorted(periods, key=lambda each: each.start_date)):
                planned = self._plan(project, period, run)
                parameters = self._parameters(project, run)
                warnings = planned[1]
                writer = _Capture(self.datasets, outputs, registered, period, self.stored)
                facts = RunFacts(
                    run.started_at or self.scenario.started_at or CLOCK,
                    period.identifier,
                    period.start_date,
                    period.end_date,
                    parameters,
                )
                as_of = run.as_of or self.scenario.as_of
                reading = Reading(self.spark, facts, as_of, self.scratch / f"{number}-{at}")
                reader = _RowReader(self.datasets, reading)
                engine = SparkEngine(self.spark)
                met = engine.contracts(planned[0], facts, reader=reader, as_of=as_of)
                if (stop := find_stop(met)) is not None:
                    raise stop
                for output in engine.outputs(planned[0], facts, reader=reader, as_of=as_of):
                    with output.explained():
                        writer.stage(output)
                        result = output.finish()
                    counts = _merge_counts(counts or (), result.operations)
                    checks |= {each.seq: each for each in result.checks}
                    if project.publish == "as_done":
                        _judge(planned[0], checks, writer, until=output.step.spec.seq)
                        writer.publish()
                rest = engine.checks(planned[0], facts, reader=reader, as_of=as_of, skip=checks)
                checks |= {each.seq: each for each in rest}
                _judge(planned[0], checks, writer)
                writer.publish()
        except Rejected as rejected:
            yield from _compare_problems(expect, rejected.problems, rejected=True)
            return
        except RunFailed as failed:
            self.written |= {name: each.rows for name, each in outputs.items()}
            of_check = isinstance(failed.problem, CheckFailed | CheckEmpty) and expect.checks and expect.error is None
            yield from _compare_problems(expect, () if of_check else (failed.problem,), rejected=False)
            yield from _compare_outputs(expect, outputs)
            yield from _compare_checks(expect, checks)
            return
        self.written |= {name: each.rows for name, each in outputs.items()}
        yield from _compare_problems(expect, warnings, rejected=False)
        yield from _compare_outputs(expect, outputs)
        yield from _compare_registered(expect, registered)
        yield from _compare_checks(expect, checks)
        if counts is not None:
            yield from _compare_counts(expect, counts)

    @cached_property
    def schedule(self) -> Schedule:
        """The periods by which others than the run's are counted."""
        places = self.scenario.places.at("calendar")
        used = places.text("use") if places is not None else None
        if places is not None and used is None:
            return _load(Calendar.load, places).schedule
        own = self.definitions.calendars
        if used is not None and used not in own:
            span = self.scenario.places.span("calendar", "use")
            known = tuple(own)
            expected, found = "a calendar of the workspace", f"`{used}`"
            raise Rejected([InvalidValue(key="use", expected=expected, found=found, known=known, text=used, span=span)])
        chosen = own[used] if used is not None else self.definitions.default_calendar
        return chosen.schedule if chosen is not None else _usual_calendar(self.scenario).schedule

    def _parameters(self, project: Project, run: ScenarioRun) -> Mapping[str, ParameterValue]:
        """As a run settles them: those of the scenario, else the defaults."""
        places = run.places if run.parameters is not None else self.scenario.places
        given = places.at("parameters")
        values = {name: given.get(name) for name in given.keys} if given is not None else {}
        spans = {name: given.span(name) for name in given.keys} if given is not None else {}
        settled = settle_parameters(project.id, project.parameters or {}, values, spans=spans)
        if settled.problems:
            raise Rejected(settled.problems)
        return settled.values

    def _project(self, run: ScenarioRun) -> Project:
        places = run.places.at("project")
        used = places.text("use") if places is not None else None
        if used is None:
            return _load(Project.load, places)
        project = self.definitions.projects.get(used)
        if project is None:
            span = run.places.span("project", "use")
            raise Rejected(
                [
                    InvalidValue(
                        key="use",
                        expected="a project of the workspace",
                        found=f"`{used}`",
                        known=tuple(self.definitions.projects),
                        text=used,
                        span=span,
                    )
                ]
            )
        return project

    def _plan(self, project: Project, period: ScenarioPeriod, run: ScenarioRun) -> tuple[Plan, tuple[Problem, ...]]:
        sources: Mapping[str, DataSource] = _AnyDatasources()
        if self.scenario.datasources is not None:
            loaded = [
                _load(load_datasource, self.scenario.places.at("datasources", at))
                for at in range(len(self.scenario.datasources))
            ]
            sources = {source.id: source for source in loaded}
        planned = plan_project(
            project,
            datasets=self.datasets,
            resolution=_Located(self.datasets, _as_period(period), self.schedule),
            datasources=sources,
            kinds=destination_kinds(),
        )
        if planned.plan is None:
            raise Rejected(planned.problems)
        return planned.plan, planned.problems


def _judge(plan: Plan, checks: Mapping[int, CheckResult], writer: _Capture, *, until: int | None = None) -> None:
    """As a run does it: a check that stops it publishes nothing but quarantines."""
    stop = find_stop(checks.values(), until=until)
    if stop is not None:
        writer.publish(only={step.spec.seq for step in plan.steps if step.lowered.check is not None})
        raise stop


def _merge_counts(known: Sequence[OperationCounts], found: Sequence[OperationCounts]) -> tuple[OperationCounts, ...]:
    """The newest counts of each operation that have been observed; a check is observed by one output alone."""
    before = {each.seq: each for each in known}
    return tuple(each if each.rows_in is not None else before.get(each.seq, each) for each in found)


def _compare_checks(expect: Expectation, checks: Mapping[int, CheckResult]) -> Iterator[str]:
    for seq, wanted in expect.checks.items():
        found = checks.get(int(seq)) if seq.isdigit() else None
        if found is None:
            yield f"check {seq} was not evaluated"
        elif found.status != wanted:
            yield f"check {seq} `{found.name}` should have {wanted}, and has {found.status}"


def _require_runnable(period: ScenarioPeriod, run: ScenarioRun) -> None:
    if period.status == "locked" or (period.status == "closed" and not run.override_closed):
        raise Rejected([PeriodNotRunnable(period=period.identifier, status=period.status)])


def _load(load: Callable[..., Loaded[T]], places: Places | None) -> T:
    loaded = load(places or Places.of_data({}), seed="scenario")
    if loaded.value is None:
        raise Rejected(loaded.problems)
    return loaded.value


class _AnyDatasources(Mapping[str, DataSource]):
    """Every datasource that a project names, as files."""

    def __getitem__(self, key: str) -> DataSource:
        return DataSource.from_data({"id": key, "type": "parquet", "options": {"path_prefix": key}})

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


class _ScenarioDatasets:
    """The datasets of a scenario by id and version, where planning and reading find them."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, int], KnownDataset] = {}
        self._rows: dict[tuple[str, int], Given] = {}
        self._unresolved: set[str] = set()

    def add(self, known: KnownDataset, rows: Given, *, found: bool = True) -> None:
        """Make a version known."""
        key = (known.dataset.id, known.version)
        self._known[key], self._rows[key] = known, rows
        if not found:
            self._unresolved.add(known.dataset.id)

    def ids(self) -> Sequence[str]:
        return tuple(dict.fromkeys(dataset_id for dataset_id, _ in self._known))

    def versions(self, dataset_id: str) -> Sequence[int]:
        return tuple(sorted(version for known, version in self._known if known == dataset_id))

    def is_broken(self, dataset_id: str) -> bool:
        del dataset_id
        return False

    def find(self, dataset_id: str, version: int | None = None) -> KnownDataset | None:
        if version is not None:
            return self._known.get((dataset_id, version))
        active = [
            each for each in self.versions(dataset_id) if self._known[dataset_id, each].dataset.status == "active"
        ]
        return self._known[dataset_id, active[-1]] if active else None

    def rows(self, dataset_id: str, version: int) -> Given:
        """The stored rows of a version."""
        return self._rows[dataset_id, version]

    def resolve(self, use: DatasetUse, project: Project, dataset: Dataset) -> Resolved:
        """A scenario's rows are where they are."""
        del project, use
        if dataset.id in self._unresolved:
            return Resolved(None, problems=(ResolverNotFound(dataset_id=dataset.id),))
        return Resolved(None)


def _as_period(given: ScenarioPeriod) -> Period:
    """As a calendar has it."""
    return Period(identifier=given.identifier, level=given.level, start_date=given.start_date, end_date=given.end_date)


def _usual_calendar(scenario: Scenario) -> Calendar:
    """Years, quarters and months around the periods of a scenario."""
    runs = [scenario, *scenario.then]
    given = [period for run in runs for period in (*run.periods, *((run.period,) if run.period is not None else ()))]
    first, last = min(each.start_date.year for each in given), max(each.end_date.year for each in given)
    return Calendar.from_data(
        {
            "id": "usual",
            "levels": [
                {"name": "year", "identifier_pattern": "FY{year}"},
                {"name": "quarter", "parent_level": "year", "identifier_pattern": "{year}-Q{sequence}"},
                {"name": "month", "parent_level": "quarter", "identifier_pattern": "{year}-{sequence:02}"},
            ],
            "generate": {"from": f"{first - 3}-01-01", "to": f"{last + 1}-12-31"},
        }
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Located:
    """The rows of a scenario are where they are; which of them are read depends on the period of the run."""

    datasets: _ScenarioDatasets
    period: Period
    schedule: Schedule

    def resolve(self, use: DatasetUse, project: Project, dataset: Dataset) -> Resolved:
        found = self.datasets.resolve(use, project, dataset)
        if use.horizon.is_current:
            return found
        chosen = choose_periods(use, self.period, self.schedule)
        if isinstance(chosen, Problem):
            return replace(found, problems=(*found.problems, chosen))
        return replace(found, periods=read_periods(chosen))


class _RowReader:
    def __init__(self, datasets: _ScenarioDatasets, reading: Reading) -> None:
        self._datasets, self._reading = datasets, reading

    def read(self, use: DatasetUse) -> list[StoredRows]:
        """The rows of a table; a lookup table of a dataset takes those of the dataset with its name."""
        rows = self._datasets.rows(use.dataset_id, use.version)
        if use.role == "lookup" and (known := self._datasets.find(use.table)) is not None:
            rows = self._datasets.rows(use.table, known.version)
        return [rows.read(use, self._reading)]


@dataclass(slots=True, eq=False)
class _Captured:
    columns: dict[str, Type]
    rows: list[TypedRow]


@dataclass(slots=True, eq=False)
class _Destination:
    """What runs have written to one place, by the period whose run wrote it (C-65)."""

    periods: dict[str, list[_Captured]] = field(default_factory=dict)

    def put(self, period: str, written: _Captured, *, add: bool) -> None:
        """Replace the rows of a period, or add to them."""
        before = self.periods.get(period, []) if add else []
        self.periods[period] = [*before, written]

    def staying(self, period: str, *, add: bool) -> Mapping[str, Type]:
        """The columns of what is there beside the next rows of a period."""
        kept = [each for name, captured in self.periods.items() if add or name != period for each in captured]
        return unite_columns(each.columns for each in kept).columns

    def columns(self) -> Mapping[str, Type]:
        """Those of all periods (C-86)."""
        return unite_columns(each.columns for captured in self.periods.values() for each in captured).columns

    def rows(self) -> list[TypedRow]:
        """The rows of all periods, each with every column; a period that lacks one has NULL there."""
        columns = self.columns()
        written = [row for captured in self.periods.values() for each in captured for row in each.rows]
        folded = [{name.casefold(): value for name, value in row.items()} for row in written]
        return [{name: row.get(name.casefold()) for name in columns} for row in folded]


class _Capture:
    """Keeps what is written, so that it can be compared, and registers it for the runs that follow."""

    def __init__(
        self,
        datasets: _ScenarioDatasets,
        outputs: dict[str, _Captured],
        registered: dict[str, KnownDataset],
        period: ScenarioPeriod,
        stored: dict[str, _Destination],
    ) -> None:
        self._datasets, self._outputs, self._registered, self._period = datasets, outputs, registered, period
        self._stored = stored
        self._staged: list[tuple[Write, Computed, list[TypedRow]]] = []

    def stage(self, output: Computed) -> None:
        """Take rows and hold them until the run publishes, unless they cannot be read together with what is there (C-86)."""
        write = output.step.lowered.write
        if write is None:
            raise AssertionError("only outputs write")
        place = self._stored.setdefault(str(write.destination), _Destination())
        there = place.staying(self._period.identifier, add=write.mode == "append")
        united = unite_columns([there, output.columns])
        wrong = united.explain() if united.conflicts else None
        if write.register_as is not None:
            wrong = wrong or explain_modes(there, output.columns)
        if wrong is not None:
            raise RunFailed(OutputWrite(destination=str(write.destination), detail=wrong))
        self._staged.append((write, output, take_rows(output.frame, output.columns)))

    def publish(self, *, only: Collection[int] | None = None) -> None:
        """Keep the rows; periods of one run add up, and append adds to what is there."""
        for write, output, rows in self._staged:
            if only is None or output.step.spec.seq in only:
                self._keep(write, output.columns, rows)
        self._staged.clear()

    def _keep(self, write: Write, columns: Mapping[str, Type], rows: list[TypedRow]) -> None:
        place = self._stored[str(write.destination)]
        place.put(self._period.identifier, _Captured(dict(columns), rows), add=write.mode == "append")
        united = {name.casefold(): (name, kind) for name, kind in place.columns().items()}
        written = dict(united[name.casefold()] for name in columns)
        self._outputs[write.destination.name] = _Captured(written, place.rows())
        if write.register_as:
            self._register(write.register_as, place)

    def _register(self, name: str, place: _Destination) -> None:
        columns = place.columns()
        dataset = registered_dataset(name, columns)
        version = max(self._datasets.versions(name), default=0) + 1
        known = KnownDataset(dataset, version, registered=_KeptRows(tuple(columns)))
        self._datasets.add(known, WrittenRows(place.rows(), columns))
        self._registered[name] = known


# --- comparing


def _compare_problems(expect: Expectation, problems: Sequence[Problem], *, rejected: bool) -> Iterator[str]:
    errors = [problem for problem in problems if problem.severity == "error"]
    warnings = sorted(problem.code for problem in problems if problem.severity == "warning")
    wanted = [*([expect.error] if expect.error else []), *expect.errors]
    found = [(problem.code, problem.operation.seq if problem.operation else None) for problem in errors]
    for each in wanted:
        if not any(code == each.code and each.operation_seq in (None, seq) for code, seq in found):
            place = f" in operation {each.operation_seq}" if each.operation_seq else ""
            yield f"expected the error {each.code}{place}, got {_list_problems(errors) or 'none'}"
    if expect.errors and len(expect.errors) != len(errors):
        yield f"expected {len(expect.errors)} errors, got {len(errors)}: {_list_problems(errors)}"
    if errors and not wanted:
        yield f"{'rejected' if rejected else 'failed'}: {_list_problems(errors)}"
    if expect.warnings is not None and sorted(expect.warnings) != warnings:
        yield f"expected the warnings {', '.join(expect.warnings) or 'none'}, got {', '.join(warnings) or 'none'}"


def _list_problems(problems: Sequence[Problem]) -> str:
    return "; ".join(
        f"{problem.code}{f' in operation {problem.operation.seq}' if problem.operation else ''}: {problem.message()}"
        for problem in in_order(problems)
    )


def _compare_outputs(expect: Expectation, outputs: Mapping[str, _Captured]) -> Iterator[str]:
    for name, expected in expect.outputs.items():
        captured = outputs.get(name)
        if captured is None:
            yield f"output `{name}`: not written; {did_you_mean(name, tuple(outputs), otherwise='nothing was')}"
            continue
        for line in compare_output(expected, captured.rows, captured.columns):
            yield f"output `{name}`: {line}"


@dataclass(frozen=True, slots=True)
class _KeptRows:
    """A registered version whose rows the scenario keeps itself."""

    columns: tuple[str, ...]
    kind: str = "scenario"
    datasource_id: None = None
    shown: None = None
    lasting: None = None
    place: tuple[str | None, ...] = ()

    def document(self) -> dict[str, object]:
        return {"kind": self.kind, "columns": list(self.columns)}


def _compare_registered(expect: Expectation, registered: Mapping[str, KnownDataset]) -> Iterator[str]:
    for name, wanted in expect.registered.items():
        known = registered.get(name)
        if known is None:
            yield f"dataset `{name}` was not registered"
            continue
        table = known.dataset.main_table
        actual = {
            "version": known.version,
            "temporal_mode": table.temporal_mode,
            "columns": {column.name: str(column.type) for column in table.columns},
        }
        for key, value in wanted.items():
            if actual.get(key) != value:
                yield f"dataset `{name}`: {key} should be {value}, is {actual.get(key)}"


def _compare_counts(expect: Expectation, operations: Sequence[OperationCounts]) -> Iterator[str]:
    counts = {str(each.seq): each for each in operations}
    names = {"matched": "selected", "in": "rows_in", "out": "rows_out"}
    for seq, wanted in expect.operations.items():
        found = counts.get(seq)
        for key, value in wanted.items():
            actual = getattr(found, names.get(key, key), None)
            if actual != value:
                yield f"operation {seq}: {key} should be {value}, is {actual}"

"""Runs a scenario on real Spark and says what is not as expected."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dobonomodo.engine.engine import Outcome, SparkEngine
from dobonomodo.engine.reading import ROW_NUMBER, StoredRows
from dobonomodo.formula import RunFacts, Type
from dobonomodo.formula.types import DATE, INTEGER, TEXT
from dobonomodo.model import Dataset, DataSource, Definitions, Places, Project
from dobonomodo.plan import DatasetUse, KnownDataset, Plan, plan_project
from dobonomodo.plan.dataset import column_types
from dobonomodo.plan.registration import registered_dataset
from dobonomodo.plan.relation import Write
from dobonomodo.plan.resolution import Resolved
from dobonomodo.plan.system import ALWAYS, PERIOD, PERIOD_FROM, PERIOD_TO, SYNONYMS, is_system
from dobonomodo.problems import Problem, Rejected, RunFailed, in_order
from dobonomodo.problems.definition import InvalidValue
from dobonomodo.problems.operation import PeriodNotRunnable, ResolverNotFound
from dobonomodo.problems.problem import did_you_mean
from dobonomodo.problems.run import AppendDataLoad, DataLoad
from dobonomodo.scenarios.compare import compare_output
from dobonomodo.scenarios.scenario import Expectation, Scenario, ScenarioPeriod, ScenarioRun
from dobonomodo.scenarios.values import WrongValueError, make_frame, read_value, take_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CLOCK = datetime(2026, 2, 3, 8, tzinfo=UTC)
"""The clock of a scenario that does not say one."""

STORED = {**ALWAYS, PERIOD: TEXT, PERIOD_FROM: DATE, PERIOD_TO: DATE, "valid_from": DATE, "valid_to": DATE}
STORED |= {synonym: STORED[name] for synonym, name in SYNONYMS.items()}
"""System columns that rows of a scenario may carry."""


@dataclass(frozen=True, slots=True, eq=False)
class Result:
    """How a scenario went: no differences means that it passed."""

    name: str
    file: str
    differences: tuple[str, ...] = ()
    seconds: float = 0.0
    actual: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)

    @property
    def passed(self) -> bool:
        """Whether all was as expected."""
        return not self.differences


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
    stage = _Stage(scenario, spark, definitions, folder)
    differences: list[str] = []
    runs: list[ScenarioRun] = [scenario, *scenario.then]
    for number, run in enumerate(runs):
        head = f"run {number + 1}: " if len(runs) > 1 else ""
        differences += [f"{head}{line}" for line in stage.run(run, number)]
    seconds = time.monotonic() - started
    return Result(scenario.name, file, tuple(differences), seconds, stage.written)


class _Stage:
    """What a scenario has set up: datasets with their rows, and what its runs have written so far."""

    def __init__(self, scenario: Scenario, spark: SparkSession, definitions: Definitions, folder: Path) -> None:
        self.scenario, self.spark, self.definitions, self.folder = scenario, spark, definitions, folder
        self.written: dict[str, list[dict[str, Any]]] = {}
        self.stored: dict[str, dict[str, list[dict[str, Any]]]] = {}
        """The rows of every destination, by the period whose run wrote them (C-65)."""
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
                dataset = _load(Dataset, scenario.places.at("datasets", position, "dataset"))
            rows = self._file_rows(given.file) if given.file else given.rows
            types = {**column_types(dataset.main_table.columns), **STORED}
            read = [_read_row(row, types, places, number) for number, row in enumerate(rows)]
            self.datasets.add(
                KnownDataset(dataset, given.version, has_period=any(PERIOD in row for row in read)),
                read,
                found=given.resolver,
            )

    def _file_rows(self, name: str) -> list[dict[str, Any]]:
        import csv

        path = (self.folder / name).resolve()
        if path.suffix == ".csv":
            with path.open(newline="", encoding="utf-8") as lines:
                return [{key: value or None for key, value in row.items()} for row in csv.DictReader(lines)]
        import pyarrow.parquet

        return list(pyarrow.parquet.read_table(path).to_pylist())

    # --- one run

    def run(self, run: ScenarioRun, number: int) -> Iterator[str]:
        """Execute one run and compare."""
        expect = run.expect
        if expect.is_empty():
            yield "nothing is expected, so nothing would be checked"
            return
        periods = (
            run.periods
            or ((run.period,) if run.period else ())
            or self.scenario.periods
            or ((self.scenario.period,) if self.scenario.period else ())
        )
        outcome: Outcome | None = None
        warnings: tuple[Problem, ...] = ()
        outputs: dict[str, _Captured] = {}
        registered: dict[str, KnownDataset] = {}
        try:
            project = self._project(run)
            for period in periods:
                _require_runnable(period, run)
            for period in sorted(periods, key=lambda each: each.start_date):
                planned = self._plan(project, period, run)
                warnings = planned[1]
                writer = _Capture(self.datasets, outputs, registered, period, self.stored)
                facts = RunFacts(
                    run.started_at or self.scenario.started_at or CLOCK,
                    period.identifier,
                    period.start_date,
                    period.end_date,
                )
                outcome = SparkEngine(self.spark).run(
                    planned[0],
                    facts,
                    reader=self.datasets.reader(self.spark),
                    writer=writer,
                    as_of=run.as_of or self.scenario.as_of,
                )
        except Rejected as rejected:
            yield from _compare_problems(expect, rejected.problems, rejected=True)
            return
        except RunFailed as failed:
            self.written |= {name: each.rows for name, each in outputs.items()}
            yield from _compare_problems(expect, (failed.problem,), rejected=False)
            yield from _compare_outputs(expect, outputs)
            return
        self.written |= {name: each.rows for name, each in outputs.items()}
        yield from _compare_problems(expect, warnings, rejected=False)
        yield from _compare_outputs(expect, outputs)
        yield from _compare_registered(expect, registered)
        if outcome is not None:
            yield from _compare_counts(expect, outcome)

    def _project(self, run: ScenarioRun) -> Project:
        places = run.places.at("project")
        used = places.text("use") if places is not None else None
        if used is None:
            loaded: Project = _load(Project, places)
            return loaded
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
                _load(DataSource, self.scenario.places.at("datasources", at))
                for at in range(len(self.scenario.datasources))
            ]
            sources = {source.id: source for source in loaded}
        planned = plan_project(project, datasets=self.datasets, resolution=self.datasets, datasources=sources)
        if planned.plan is None:
            raise Rejected(planned.problems)
        return planned.plan, planned.problems


def _require_runnable(period: ScenarioPeriod, run: ScenarioRun) -> None:
    if period.status == "locked" or (period.status == "closed" and not run.override_closed):
        raise Rejected([PeriodNotRunnable(period=period.identifier, status=period.status)])


def _load(kind: Any, places: Places | None) -> Any:
    loaded = kind.load(places or Places.of_data({}), seed="scenario")
    if loaded.value is None:
        raise Rejected(loaded.problems)
    return loaded.value


def _read_row(row: Mapping[str, Any], types: Mapping[str, Type], places: Places | None, number: int) -> dict[str, Any]:
    folded = {name.casefold(): name for name in types}
    read: dict[str, Any] = {}
    for name, value in row.items():
        stored = folded.get(name.casefold())
        span = places.span("rows", number, name) if places is not None else None
        if stored is None:
            hint = did_you_mean(name, tuple(name for name in types if not is_system(name)))
            raise Rejected(
                [InvalidValue(key=name, expected=f"a column of the dataset ({hint})", found=f"`{name}`", span=span)]
            )
        try:
            read[stored] = read_value(value, types[stored])
        except WrongValueError as fault:
            raise Rejected(
                [InvalidValue(key=name, expected=str(types[stored]), found=str(fault), span=span)]
            ) from fault
    return read


class _AnyDatasources(dict[str, DataSource]):
    """Every datasource that a project names, as files."""

    def get(self, key: str, default: Any = None) -> Any:
        del default
        return DataSource.from_data({"id": key, "type": "parquet", "options": {"path_prefix": key}})


class _ScenarioDatasets:
    """The datasets of a scenario by id and version, where planning and reading find them."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, int], KnownDataset] = {}
        self._rows: dict[tuple[str, int], list[dict[str, Any]]] = {}
        self._unresolved: set[str] = set()

    def add(self, known: KnownDataset, rows: list[dict[str, Any]], *, found: bool = True) -> None:
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

    def rows(self, dataset_id: str, version: int) -> list[dict[str, Any]]:
        """The stored rows of a version."""
        return self._rows.get((dataset_id, version), [])

    def resolve(self, use: DatasetUse, project: Project, dataset: Dataset) -> Resolved:
        """A scenario's rows are where they are."""
        del project, use
        if dataset.id in self._unresolved:
            return Resolved(None, problems=(ResolverNotFound(dataset_id=dataset.id),))
        return Resolved(None)

    def reader(self, spark: SparkSession) -> _RowReader:
        """Reads the rows as frames."""
        return _RowReader(self, spark)


class _RowReader:
    def __init__(self, datasets: _ScenarioDatasets, spark: SparkSession) -> None:
        self._datasets, self._spark = datasets, spark

    def read(self, use: DatasetUse) -> list[StoredRows]:
        """The rows of a table; a lookup table of a dataset takes those of the dataset with its name."""
        dataset_id, version = use.dataset_id, use.version
        rows = self._datasets.rows(dataset_id, version)
        if use.role == "lookup" and (known := self._datasets.find(use.table)) is not None:
            rows = self._datasets.rows(use.table, known.version)
        present = {name for row in rows for name in row}
        needed = {PERIOD} if use.temporal_mode == "period" and not rows else set()
        needed |= {PERIOD_FROM, PERIOD_TO} if use.temporal_mode == "bitemporal" and not rows else set()
        stored = {name: kind for name, kind in STORED.items() if name in present | needed}
        columns: dict[str, Type] = {**stored, **use.columns, ROW_NUMBER: INTEGER}
        numbered = [{**row, ROW_NUMBER: number} for number, row in enumerate(rows)]
        missing = [
            name for name in use.columns if name not in use.nullable and any(row.get(name) is None for row in rows)
        ]
        if missing:
            kind = AppendDataLoad if use.role == "append" else DataLoad
            raise RunFailed(
                kind(
                    dataset_id=dataset_id,
                    detail=f"column `{missing[0]}` has no value in some rows, and is not nullable",
                    operation=use.operation,
                )
            )
        return [StoredRows(make_frame(self._spark, columns, numbered))]


@dataclass(slots=True, eq=False)
class _Captured:
    columns: dict[str, Type]
    rows: list[dict[str, Any]]


class _Capture:
    """Keeps what is written, so that it can be compared, and registers it for the runs that follow."""

    def __init__(
        self,
        datasets: _ScenarioDatasets,
        outputs: dict[str, _Captured],
        registered: dict[str, KnownDataset],
        period: ScenarioPeriod,
        stored: dict[str, dict[str, list[dict[str, Any]]]],
    ) -> None:
        self._datasets, self._outputs, self._registered, self._period = datasets, outputs, registered, period
        self._stored = stored

    def stage(self, frame: DataFrame, write: Write, *, seq: int, columns: Mapping[str, Type]) -> Any:
        """Take the rows."""
        del seq
        return write, columns, take_rows(frame, columns)

    def publish(self, staged: Any, *, rows: int, digest: str) -> Mapping[str, Any]:
        """Keep the rows; periods of one run add up, and append adds to what is there."""
        del rows, digest
        write, columns, taken = staged
        return self._keep(write, columns, taken)

    def _keep(self, write: Write, columns: Mapping[str, Type], rows: list[dict[str, Any]]) -> Mapping[str, Any]:
        name = write.destination.name
        periods = self._stored.setdefault(str(write.destination), {})
        kept = periods.get(self._period.identifier, []) if write.mode == "append" else []
        periods[self._period.identifier] = [*kept, *rows]
        rows = [row for each in periods.values() for row in each]
        self._outputs[name] = _Captured(dict(columns), rows)
        if write.register_as:
            self._register(write.register_as, columns, rows)
        return {}

    def _register(self, name: str, columns: Mapping[str, Type], rows: list[dict[str, Any]]) -> None:
        dataset = registered_dataset(name, columns)
        version = max(self._datasets.versions(name), default=0) + 1
        known = KnownDataset(dataset, version, registered={"columns": list(columns)})
        self._datasets.add(known, rows)
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


def _compare_counts(expect: Expectation, outcome: Outcome) -> Iterator[str]:
    counts = {str(each.seq): each for each in outcome.operations}
    names = {"matched": "selected", "in": "rows_in", "out": "rows_out"}
    for seq, wanted in expect.operations.items():
        found = counts.get(seq)
        for key, value in wanted.items():
            actual = getattr(found, names.get(key, key), None)
            if actual != value:
                yield f"operation {seq}: {key} should be {value}, is {actual}"

"""A generated project on Spark: planned and run by the package, with rows that are read from and kept in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from typing import TYPE_CHECKING, Any

from dobonomodo.engine.computed import OutputResult
from dobonomodo.engine.engine import SparkEngine
from dobonomodo.engine.reading import ROW_NUMBER, StoredRows
from dobonomodo.formula import Type
from dobonomodo.formula.types import BOOLEAN, DATE, INTEGER, TEXT, TIMESTAMP
from dobonomodo.model import Dataset, Places, Project
from dobonomodo.model.parameter import settle_parameters
from dobonomodo.plan import DatasetUse, KnownDataset, Plan, Planned, plan_project
from dobonomodo.plan.counts import UnmatchedKey
from dobonomodo.plan.facts import RunFacts
from dobonomodo.plan.resolution import Resolved, choose_periods, read_periods
from dobonomodo.problems import Problem, RunFailed
from dobonomodo.scenarios.values import TypedRow, make_frame, take_rows
from dobonomodo.storage import destination_kinds
from dobonomodo.storage.schema import arrow_type
from tests.projects.strategies import Case, show
from tests.property.on_spark import settings_of
from tests.world import OUT, Anywhere, KnownDatasets, define

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

STORED: dict[str, Type] = {
    "_row_id": TEXT,
    "_deleted": BOOLEAN,
    "_created_at": TIMESTAMP,
    "_updated_at": TIMESTAMP,
    "_modified_at": TIMESTAMP,
    "_source_dataset_id": TEXT,
    "_source_dataset": TEXT,
    "_source_table": TEXT,
    "_operation_seq": INTEGER,
    "_labels": TEXT,
    "_period": TEXT,
    "_period_from": DATE,
    "_period_to": DATE,
    "valid_from": DATE,
    "valid_to": DATE,
}


@dataclass(frozen=True)
class Output:
    """What an output wrote."""

    seq: int
    columns: tuple[str, ...]
    rows: list[dict[str, Any]]


@dataclass
class Ran:
    """What came of a run: all outputs, or those before the problem."""

    outputs: list[Output] = field(default_factory=list)
    results: list[OutputResult] = field(default_factory=list)
    problem: Problem | None = None
    unmatched: dict[tuple[int, str], tuple[UnmatchedKey, ...]] = field(default_factory=dict)
    """Of each join with such: the keys without a match that most rows have."""


def plain(document: Any) -> Any:
    """A document as it comes from a file: formulas are nothing but texts."""
    if isinstance(document, dict):
        return {key: plain(value) for key, value in document.items()}
    if isinstance(document, list):
        return [plain(each) for each in document]
    return str(document) if isinstance(document, str) else document


def plan_case(case: Case) -> Planned:
    """The plan of a project, or its problems."""
    loaded = Project.load(Places.of_data(plain(case.project)))
    if loaded.value is None:
        return Planned(None, loaded.problems)
    return plan_project(
        loaded.value,
        datasets=_datasets_of(case),
        resolution=_InPeriods(),
        datasources=define(OUT).datasources,
        kinds=destination_kinds(),
    )


def facts_of(case: Case, plan: Plan) -> RunFacts:
    """The clock, the period and the parameters of a run."""
    given = {name: show(value) for name, value in case.given.items()}
    settled = settle_parameters(plan.project.id, plan.project.parameters or {}, given)
    assert settled.problems == ()
    period = case.period
    return RunFacts(case.clock, period.identifier, period.start_date, date(2026, 1, 31), settled.values)


def run_case(
    case: Case,
    spark: SparkSession,
    *,
    partitions: int = 1,
    shuffled: bool = False,
    figures: bool = False,
    many: bool = False,
) -> Ran:
    """Plan and run; rows are read in several partitions, perhaps in another order. With ``many`` they go by Arrow."""
    planned = plan_case(case)
    assert planned.plan is not None, planned.problems
    period = case.period
    facts = facts_of(case, planned.plan)
    ran = Ran()
    reader = _Reader(case, spark, partitions=partitions, shuffled=shuffled, many=many)
    try:
        engine = SparkEngine(spark)
        for output in engine.outputs(planned.plan, facts, reader=reader, as_of=period.as_of, figures=figures):
            with output.explained():
                rows = output.frame.toArrow().to_pylist() if many else take_rows(output.frame, output.columns)
                ran.results.append(output.finish())
                for join in ran.results[-1].measures.joins if ran.results[-1].measures is not None else ():
                    if join.unmatched:
                        ran.unmatched[join.seq, join.alias] = output.find_unmatched(join, at_most=1000)
            ran.outputs.append(Output(output.step.spec.seq, tuple(output.columns), rows))
    except RunFailed as failed:
        ran.problem = failed.problem
    return ran


def _datasets_of(case: Case) -> KnownDatasets:
    known: dict[str, list[KnownDataset]] = {}
    for each in case.datasets:
        dataset = Dataset.from_data(plain(each["dataset"]))
        known.setdefault(dataset.id, []).append(KnownDataset(dataset, each["version"]))
    return KnownDatasets(known)


class _InPeriods:
    """Rows that are here, in the periods that a calendar of months says."""

    def resolve(self, use: DatasetUse, project: Project, dataset: Dataset) -> Resolved:
        found = Anywhere().resolve(use, project, dataset)
        if use.horizon.is_current:
            return found
        chosen = choose_periods(use, _MONTHS.by_identifier["2026-01"], _MONTHS)
        assert isinstance(chosen, tuple), chosen
        return replace(found, periods=read_periods(chosen))


_MONTHS = (
    define(
        """\
calendar:
  id: usual
  levels: [{name: year, identifier_pattern: "{year}"}, {name: month, parent_level: year, identifier_pattern: "{year}-{sequence:02}"}]
  generate: {from: 2025-01-01, to: 2026-12-31}"""
    )
    .calendars["usual"]
    .schedule
)


class _Reader:
    def __init__(self, case: Case, spark: SparkSession, *, partitions: int, shuffled: bool, many: bool) -> None:
        self._case, self._spark = case, spark
        self._partitions, self._shuffled, self._many = partitions, shuffled, many

    def read(self, use: DatasetUse) -> list[StoredRows]:
        """The rows of a dataset, in one frame or, where a location holds a period, in one for that period."""
        given = next(
            each
            for each in self._case.datasets
            if each["dataset"]["id"] == use.dataset_id and each["version"] == use.version
        )
        numbered = [{**row, ROW_NUMBER: at} for at, row in enumerate(given["rows"])]
        names = {name for row in numbered for name in row}
        if not numbered:
            names = {"period": {"_period"}, "bitemporal": {"_period_from", "_period_to"}}.get(
                use.temporal_mode or "", set()
            )
        period = None
        if given["located"] and use.periods is None:
            period = self._case.period.identifier
            numbered = [row for row in numbered if row["_period"] == period]
            names = names - {"_period"}
        if self._shuffled:
            numbered.reverse()
        stored = {name: kind for name, kind in STORED.items() if name in names}
        columns = {**use.columns, **stored, ROW_NUMBER: INTEGER}
        frame = (_send_rows if self._many else make_frame)(self._spark, columns, numbered)
        return [StoredRows(frame.repartition(self._partitions) if self._partitions > 1 else frame, period)]


def _send_rows(spark: SparkSession, columns: Mapping[str, Type], rows: Sequence[TypedRow]) -> DataFrame:
    """A frame of many rows, for which literals take Spark too long."""
    import pyarrow as pa

    arrays = {
        name: pa.array([row.get(name) for row in rows], arrow_type(kind), size=len(rows))
        for name, kind in columns.items()
    }
    # A local relation would be computed while the query is planned, and no code be generated for it.
    with settings_of(spark, {"spark.sql.execution.arrow.localRelationThreshold": "0"}):
        return spark.createDataFrame(pa.table(arrays))

"""An output that is ready to be written, and its metrics after it is written."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from dobonomodo.engine.checking import Checking
from dobonomodo.engine.digest import ROWS, Metrics, render_digest
from dobonomodo.engine.frames import Frames
from dobonomodo.engine.joins import MatchCounts
from dobonomodo.engine.observation import (
    PART,
    Counting,
    Measuring,
    Observed,
    Written,
    add_parts,
    chosen_by,
    measure_again,
    measure_written,
)
from dobonomodo.engine.totals import Ends, Known
from dobonomodo.engine.tracking import SEQ
from dobonomodo.formula import Type
from dobonomodo.formula.sql import quote_name
from dobonomodo.plan import Step
from dobonomodo.plan.check import CheckResult
from dobonomodo.plan.counts import JoinCounts, Measures, OperationCounts, UnmatchedKey
from dobonomodo.plan.relation import Lookup
from dobonomodo.plan.system import OPERATION_SEQ
from dobonomodo.storage.faults import is_of_spark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

T = TypeVar("T")


@dataclass(frozen=True, slots=True, eq=False)
class OutputResult:
    """Rows and metrics of a written output, with the metrics of the operations before it."""

    seq: int
    rows: int
    digest: str
    seconds: float
    operations: tuple[OperationCounts, ...]
    measures: Measures | None
    """None if nobody asked for them."""
    checks: tuple[CheckResult, ...] = ()
    """The checks that were evaluated with it."""


class EndSteps(NamedTuple):
    """Outputs whose totals equal those of all active rows at the end, and those of all rows (if no row was deleted when loaded)."""

    active: Step | None = None
    everything: Step | None = None

    @property
    def known(self) -> Known:
        """Which of the two exist."""
        return Known(self.active is not None, self.everything is not None)


Reopen = Callable[[int | None], "DataFrame | None"]
"""Reads the written rows again, all or one part; None if no file has any."""


def _reopen_no_rows(part: int | None) -> None:
    del part


@dataclass(frozen=True, slots=True)
class SharedFiles:
    """Files of another output that hold exactly the rows of this one."""

    seq: int
    parts: frozenset[int]


class Computed:
    """One output of a plan: a frame for the caller to write, once and completely, or parts of another one that hold its rows.

    The caller writes it within ``explained`` and calls ``finish`` before it requests the next output.
    """

    def __init__(
        self,
        step: Step,
        frame: DataFrame | None,
        *,
        observing: Observing,
        explained: Callable[[], AbstractContextManager[None]],
        observation: Observed | None = None,
        before: Metrics | None = None,
        shared: SharedFiles | None = None,
        twins: Sequence[Step] = (),
        ends: EndSteps | None = None,
    ) -> None:
        """``twins`` are the outputs that share its files; ``ends`` those of all of them from which sums follow that were not observed."""
        self.step, self.explained, self.shared, self.twins = step, explained, shared, twins
        self._ends = ends or EndSteps()
        self.columns: Mapping[str, Type] = step.write.written_types(step.before.columns)
        self.divided_by = PART if twins else None
        self._frame, self._observation, self._observing, self._before = frame, observation, observing, before
        self._started = time.monotonic()
        self.result: OutputResult | None = None
        self.metrics: Metrics = before or {}
        self.of_twins: dict[int, Metrics] = {}
        self.written: Reopen = _reopen_no_rows

    @property
    def frame(self) -> DataFrame:
        """The rows to write; they are divided into files by the column ``divided_by``, if there is one, which is not written."""
        if self._frame is None:
            raise AssertionError("its rows are in files of another output")
        return self._frame

    def finish(self, written: Reopen | None = None) -> OutputResult:
        """Record that the output is written.

        ``written`` reads its rows again, to measure them and to derive other outputs from them.
        """
        self.written = written or self.written
        seen = self._observation.get if self._observation is not None else {}
        again = self._measure_again()
        self.metrics = {**(self._before or {}), **seen, **again}
        seq, rows = self.step.spec.seq, int(self.metrics[ROWS])
        counting, measuring = self._observing.counting, self._observing.measuring
        counting.written[seq] = rows
        taken = self._before is not None
        ends = self._read_ends({seq: again, **self.of_twins})
        self.result = OutputResult(
            seq=seq,
            rows=rows,
            digest=render_digest(self.metrics),
            seconds=time.monotonic() - self._started,
            operations=counting.counts(self.metrics),
            measures=measuring.measures(self.step, self.metrics, taken=taken, ends=ends, count=self._count_matches)
            if measuring is not None
            else None,
            checks=self._observing.take_checks(self.metrics),
        )
        return self.result

    def _measure_again(self) -> Metrics:
        """Metrics of the written rows that were not observed, also for outputs that share its files."""
        if not self._observing.rereads or self.shared is not None:
            return {}
        measured = self._observing.written(self.step, alone=True)
        parts = range(1 << len(self.twins)) if self.twins else (None,)
        rows = {part: frame for part in parts if (frame := self.written(part)) is not None}
        if not rows:
            # Without rows there are no parts, only one file with the schema.
            if (frame := self.written(None)) is None:
                raise AssertionError("rows that are measured again are there to be read")
            rows = {None: frame}
        frames = [with_working_names(frame, self.step) for frame in rows.values()]
        found = dict(zip(rows, measure_again(frames, measured), strict=True))
        for at, step in enumerate(self.twins):
            own = [each for part, each in found.items() if (part or 0) >> at & 1]
            self.of_twins[step.spec.seq] = add_parts(measured, own)
        return add_parts(measured, list(found.values()))

    def _read_ends(self, metrics: Mapping[int, Metrics]) -> Ends:
        """Totals of the rows at the end, taken from the metrics of outputs."""
        measuring = self._observing.measuring
        if measuring is None:
            return Ends()
        read = measuring.read_written
        found = (read(self.step, metrics[each.spec.seq]) if each is not None else None for each in self._ends)
        return Ends(*found)

    def find_unmatched(self, join: JoinCounts, *, at_most: int) -> tuple[UnmatchedKey, ...]:
        """The most frequent keys without a match in a join; empty if Spark fails, since a run does not depend on this figure."""
        measuring, frames = self._observing.measuring, self._observing.frames
        if measuring is None:
            return ()
        node = measuring.find_join(join)
        return _unless_spark_fails(lambda: frames.find_unmatched(node, at_most=at_most)) or ()

    def _count_matches(self, node: Lookup) -> MatchCounts | None:
        return _unless_spark_fails(lambda: self._observing.frames.count_matches(node))


def _unless_spark_fails(figure: Callable[[], T]) -> T | None:
    """A figure; None if Spark fails, since the run does not depend on it."""
    try:
        return figure()
    except Exception as error:
        if not is_of_spark(error):
            raise
        return None


@dataclass(frozen=True, slots=True, eq=False)
class Observing:
    """Builds and reads the observations of a run's outputs."""

    frames: Frames
    counting: Counting
    measuring: Measuring | None
    checking: Checking
    spark: SparkSession
    rereads: bool
    """Whether what is measured of written rows is read again from them, rather than observed while they are written."""

    def hidden(self, step: Step) -> list[str]:
        """SQL for the hidden columns that the observation of an output reads."""
        unread = self.measuring.unread(step) if self.measuring is not None else ()
        names = [name for name in self.frames.trackers(step.before.node) if name not in unread]
        levels = self.measuring.carried(step) if self.measuring is not None and not self.rereads else []
        return [*map(quote_name, names), *levels, f"{quote_name(OPERATION_SEQ)} AS {quote_name(SEQ)}"]

    def metrics(self, step: Step, known: Known) -> dict[str, str]:
        """SQL aggregates over the working dataset before an output, without the totals that are ``known`` from elsewhere."""
        more = self.measuring.metrics(step, known) if self.measuring is not None else {}
        return {**self.counting.metrics(step), **self.checking.metrics(self.frames, step), **more}

    def take_checks(self, metrics: Metrics) -> tuple[CheckResult, ...]:
        """The results of the checks whose metrics are in an observation."""
        return self.checking.take(self.frames, self.spark, metrics)

    def written(self, step: Step, *, alone: bool = False, tracked: bool = False) -> Written:
        """The metrics of the rows that an output writes, among all rows of the working dataset or ``alone``.

        ``tracked``: rows also have hidden columns, which are not written.
        """
        chosen = "TRUE" if alone else chosen_by(step, self.frames.facts)
        return measure_written(step, self.measuring, chosen=chosen, tracked=tracked)


def with_working_names(rows: DataFrame, step: Step) -> DataFrame:
    """Written rows of an output under the names that their columns have in the working dataset."""
    write = step.write
    if not write.names:
        return rows
    names = {write.written_name(name): name for name in write.columns}
    return rows.selectExpr(*(f"{quote_name(there)} AS {quote_name(name)}" for there, name in names.items()))

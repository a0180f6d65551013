"""The rows that a run reads: pinned before it starts, extracted to Parquet where they are not, then given to Spark.

CSV files and tables pass through Parquet files in the run's own folder. So they are checked to the last value before Spark
starts, every row has a stable position, and a run that is resumed reads the same rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from dobonomodo.failpoint import reach
from dobonomodo.plan.dataset import DatasetUse
from dobonomodo.plan.facts import RunFacts
from dobonomodo.storage.catalogue import Storages
from dobonomodo.storage.faults import is_passing, loading_failed, refuse
from dobonomodo.storage.findings import Findings
from dobonomodo.storage.rows import StoredRows
from dobonomodo.storage.storage import Belongs, Pin, Scratch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from dobonomodo.model.datasource import DataSource

Pinned = Mapping[str, tuple[Pin, ...]]
"""The pins of every reading, by ``DatasetUse.key``."""


class Inputs:
    """Finds, pins and reads the rows of a run."""

    def __init__(
        self, *, root: Path, datasources: Mapping[str, DataSource], folder: Path, facts: RunFacts, as_of: date | None
    ) -> None:
        self._storages, self._folder = Storages(root, datasources), folder / "inputs"
        self._facts, self._as_of = facts, as_of

    def pin(self, uses: Iterable[DatasetUse]) -> dict[str, tuple[Pin, ...]]:
        """What there is to read now; what is missing fails."""
        return {use.key: self._pin(use) for use in uses}

    def _pin(self, use: DatasetUse) -> tuple[Pin, ...]:
        if use.locations:
            # A reading follows one rule of a resolver, which names one datasource.
            storage = self._storages.of_source(use.locations[0].datasource_id, use=use)
            return storage.pin(use, use.locations)
        if use.registered is not None:
            return self._storages.of_record(use.registered, use=use).pin_registered(use, use.registered)
        return ()

    def find_changes(self, pinned: Pinned, *, listing: bool) -> tuple[str, ...]:
        """Changes to the pinned inputs; with ``listing``, also what was added beside them."""
        pins = [pin for pins in pinned.values() for pin in pins]
        found = (self._storages.of_record(pin).find_changes(pin, listing=listing) for pin in pins)
        return tuple(dict.fromkeys(change for changes in found for change in changes))

    def extract(self, uses: Iterable[DatasetUse], pinned: Pinned) -> dict[str, tuple[Pin, ...]]:
        """Check all values and make them readable for Spark, unless an earlier attempt did; gives pins with fingerprints."""
        done = {use.key: self._extract(use, pinned[use.key]) for use in uses}
        reach("input.extracted")
        return done

    def _extract(self, use: DatasetUse, pins: Sequence[Pin]) -> tuple[Pin, ...]:
        extracted, findings = [], Findings()
        belongs = Belongs(self._periods(use), use.valid_on(self._facts, self._as_of))
        for number, pin in enumerate(pins):
            storage = self._storages.of_record(pin, use=use)
            try:
                done, found = storage.extract(use, pin, self._scratch(use, number), belongs=belongs)
            except OSError as fault:
                detail = f"`{self._folder}`: {fault.strerror or fault}"
                raise loading_failed(use, detail, retry_helps=is_passing(fault)) from fault
            extracted.append(done)
            findings += found
        refuse(findings, use)
        return tuple(extracted)

    def _periods(self, use: DatasetUse) -> tuple[str, ...]:
        named = (each.period for each in use.locations if each.period is not None)
        return tuple(dict.fromkeys([self._facts.period, *named]))

    def _scratch(self, use: DatasetUse, number: int) -> Scratch:
        return Scratch(str(self._folder), f"{use.role}-{use.seq or 0}-{use.alias or 'rows'}-{number}")

    def reader(self, spark: SparkSession, pinned: Pinned) -> SparkReader:
        """Gives the pinned rows to Spark."""
        return SparkReader(self, spark, pinned)

    def read(self, spark: SparkSession, use: DatasetUse, pins: Sequence[Pin]) -> list[StoredRows]:
        """The rows of every location as frames."""
        return [
            self._storages.of_record(pin, use=use).read(
                spark, use, pin, self._scratch(use, number), before=partial(self._count, use, pins[:number])
            )
            for number, pin in enumerate(pins)
        ]

    def _count(self, use: DatasetUse, pins: Sequence[Pin]) -> int:
        return sum(
            self._storages.of_record(pin, use=use).count(pin, self._scratch(use, number))
            for number, pin in enumerate(pins)
        )


@dataclass(frozen=True, slots=True)
class SparkReader:
    """Gives the pinned rows of a run to the engine."""

    inputs: Inputs
    spark: SparkSession
    pinned: Pinned

    def read(self, use: DatasetUse) -> list[StoredRows]:
        """The rows of every location of a dataset."""
        return self.inputs.read(self.spark, use, self.pinned[use.key])

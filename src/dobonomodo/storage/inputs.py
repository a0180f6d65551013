"""The rows that a run reads: pinned before it starts, extracted to Parquet if necessary, then read by Spark.

CSV files and tables pass through Parquet files in the run's own folder. So they are checked to the last value before Spark
starts, every row has a stable position, and a run that is resumed reads the same rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from dobonomodo.failpoint import reach
from dobonomodo.plan.dataset import DatasetUse, Location
from dobonomodo.plan.facts import RunFacts
from dobonomodo.problems import RunFailed
from dobonomodo.storage.catalogue import Storages
from dobonomodo.storage.executors import Executors
from dobonomodo.storage.faults import is_passing, loading_failed, refuse
from dobonomodo.storage.findings import Findings
from dobonomodo.storage.kept import InputFile, KeptInputs, hash_file
from dobonomodo.storage.rows import StoredRows, empty_rows
from dobonomodo.storage.storage import Belongs, Pin, Scratch, Session
from dobonomodo.storage.transport import Transport

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from dobonomodo.model.datasource import DataSource

Pinned = Mapping[str, tuple[Pin, ...]]
"""The pins of every reading, by ``DatasetUse.key``."""


InputHashes = Mapping[str, Sequence[Sequence[str | None]]]
"""The SHA-256 of every file of every location of every reading, by ``DatasetUse.key``; None for a file that could not be read."""


@dataclass(frozen=True, slots=True)
class RestoredInputs:
    """The inputs of a run of the past."""

    pinned: Pinned
    used: tuple[str, ...]
    """The locations of which copies are read."""
    changes: tuple[str, ...]
    """Inputs that are lost: neither the original nor a copy is available."""


class Inputs:
    """Finds, pins and reads the rows of a run."""

    def __init__(
        self,
        *,
        root: Path,
        datasources: Mapping[str, DataSource],
        folder: Path,
        facts: RunFacts,
        as_of: date | None,
        shared: bool = False,
        transport: Transport | None = None,
        executors: Executors | None = None,
        session: Session | None = None,
    ) -> None:
        """``shared`` says that workers see nothing but the folder; ``transport`` is the way to those that do not even see that.

        Large inputs are extracted by ``executors``. ``session`` is for what Spark alone can read.
        """
        self._shared, self._transport, self._executors = shared, transport, executors
        self._storages, self._folder = Storages(root, datasources, session=session), folder / "inputs"
        self._facts, self._as_of = facts, as_of

    def pin(self, uses: Iterable[DatasetUse]) -> dict[str, tuple[Pin, ...]]:
        """Pin the current inputs; a missing one raises."""
        return {use.key: self._pin(use) for use in uses}

    def _pin(self, use: DatasetUse) -> tuple[Pin, ...]:
        if use.periods == ():
            return ()
        if use.may_be_missing and use.locations:
            return tuple(pin for location in use.locations for pin in self._pin_if_there(use, location))
        if use.locations:
            # A reading follows one rule of a resolver, which names one datasource.
            storage = self._storages.of_location(use.locations[0], use=use)
            return storage.pin(use, use.locations)
        if use.registered is not None:
            return self._storages.of_record(use.registered, use=use).pin_registered(use, use.registered)
        return ()

    def _pin_if_there(self, use: DatasetUse, location: Location) -> tuple[Pin, ...]:
        try:
            return self._storages.of_location(location, use=use).pin(use, (location,))
        except RunFailed as failed:
            if isinstance(failed.__cause__, FileNotFoundError):
                return ()
            raise

    def find_changes(self, pinned: Pinned, *, listing: bool) -> tuple[str, ...]:
        """Changes to the pinned inputs; with ``listing``, also files that were added."""
        pins = [pin for pins in pinned.values() for pin in pins]
        found = (self._storages.of_record(pin).find_changes(pin, listing=listing) for pin in pins)
        return tuple(dict.fromkeys(change for changes in found for change in changes))

    def extract(self, uses: Iterable[DatasetUse], pinned: Pinned) -> dict[str, tuple[Pin, ...]]:
        """Check all values and extract them for Spark, unless an earlier attempt did; returns pins with fingerprints."""
        done = {use.key: self._extract(use, pinned[use.key]) for use in uses}
        reach("input.extracted")
        return done

    def _extract(self, use: DatasetUse, pins: Sequence[Pin]) -> tuple[Pin, ...]:
        extracted, findings = [], Findings()
        belongs = Belongs(use.identifiers(self._facts), use.valid_on(self._facts, self._as_of))
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

    def keep(self, uses: Iterable[DatasetUse], pinned: Pinned, kept: KeptInputs | None) -> InputHashes:
        """The SHA-256 of every file of every location; with ``kept``, their content stays."""
        return {
            use.key: tuple(
                tuple(_hash(file, kept) for file in self._files(use, number, pin))
                for number, pin in enumerate(pinned[use.key])
            )
            for use in uses
        }

    def _files(self, use: DatasetUse, number: int, pin: Pin) -> tuple[InputFile, ...]:
        return self._storages.of_record(pin).input_files(pin, self._scratch(use, number))

    def restore(
        self, uses: Iterable[DatasetUse], pinned: Pinned, hashes: InputHashes, kept: KeptInputs
    ) -> RestoredInputs:
        """The pins of a run of the past: of kept copies where the originals have changed."""
        found: dict[str, tuple[Pin, ...]] = {}
        used: list[str] = []
        changes: list[str] = []
        for use in uses:
            known, pins = hashes.get(use.key, ()), []
            for number, pin in enumerate(pinned[use.key]):
                lost = tuple(self._storages.of_record(pin).find_changes(pin, listing=True))
                copies = (
                    self._find_copies(use, number, pin, known, kept)
                    if lost or self._is_gone(use, number, pin)
                    else None
                )
                if copies is None:
                    pins.append(pin)
                    changes += lost
                else:
                    storage = self._storages.of_record(pin)
                    pins.append(storage.from_kept(pin, copies, self._scratch(use, number)))
                    used.append(pin.name)
            found[use.key] = tuple(pins)
        return RestoredInputs(found, tuple(dict.fromkeys(used)), tuple(dict.fromkeys(changes)))

    def _is_gone(self, use: DatasetUse, number: int, pin: Pin) -> bool:
        """Whether a location has to be extracted again, which may not give the same rows."""
        return not all(Path(file.path).exists() for file in self._files(use, number, pin))

    def _find_copies(
        self, use: DatasetUse, number: int, pin: Pin, hashes: Sequence[Sequence[str | None]], kept: KeptInputs
    ) -> list[str] | None:
        """The copies of all files of a location; None if one is not there."""
        files = self._files(use, number, pin)
        if not files or number >= len(hashes) or len(hashes[number]) != len(files):
            return None
        copies = []
        for file, sha256 in zip(files, hashes[number], strict=True):
            path = kept.find(sha256, name=Path(file.path).name) if sha256 is not None else None
            if path is None:
                return None
            copies.append(str(path))
        return copies

    def files(self, use: DatasetUse, pins: Sequence[Pin]) -> list[list[Path]]:
        """The Parquet files of every location, extracted where they are not there.

        Files that are Parquet are not checked again.
        """
        found = [
            [Path(each) for each in self._storages.of_record(pin, use=use).extracted(pin, self._scratch(use, number))]
            for number, pin in enumerate(pins)
        ]
        if not all(path.exists() for paths in found for path in paths):
            self._extract(use, pins)
        return found

    def names(self, use: DatasetUse, pins: Sequence[Pin]) -> list[list[str]]:
        """The files of every location under the names by which the run knew them."""
        return [[file.name or file.path for file in self._files(use, number, pin)] for number, pin in enumerate(pins)]

    def _scratch(self, use: DatasetUse, number: int) -> Scratch:
        stem = f"{use.role}-{use.seq or 0}-{use.alias or 'rows'}-{number}"
        return Scratch(
            str(self._folder), stem, is_shared=self._shared, executors=self._executors, transport=self._transport
        )

    def reader(self, spark: SparkSession, pinned: Pinned) -> SparkReader:
        """A reader of the pinned rows."""
        return SparkReader(self, spark, pinned)

    def read(self, spark: SparkSession, use: DatasetUse, pins: Sequence[Pin]) -> list[StoredRows]:
        """The rows of every location as frames; one without rows if there is none."""
        if not pins:
            return [empty_rows(spark, use)]
        return [self._read(spark, use, pins, number) for number in range(len(pins))]

    def _read(self, spark: SparkSession, use: DatasetUse, pins: Sequence[Pin], number: int) -> StoredRows:
        pin, scratch = pins[number], self._scratch(use, number)
        storage = self._storages.of_record(pin, use=use)
        rows = storage.read(spark, use, pin, scratch, before=partial(self._count, use, pins[:number]))
        return replace(rows, count=partial(storage.count, pin, scratch))

    def count(self, uses: Iterable[DatasetUse], pinned: Pinned) -> int:
        """How many rows are stored of all readings."""
        return sum(self._count(use, pinned[use.key]) for use in uses)

    def _count(self, use: DatasetUse, pins: Sequence[Pin]) -> int:
        return sum(
            self._storages.of_record(pin, use=use).count(pin, self._scratch(use, number))
            for number, pin in enumerate(pins)
        )


def _hash(file: InputFile, kept: KeptInputs | None) -> str | None:
    try:
        return kept.keep(file) if kept is not None else hash_file(file.path)
    except OSError:
        return None


class SparkReader:
    """Reads the pinned rows of a run for the engine."""

    def __init__(self, inputs: Inputs, spark: SparkSession, pinned: Pinned) -> None:
        self._inputs, self._spark, self._pinned = inputs, spark, pinned
        self._known: list[tuple[tuple[object, ...], list[StoredRows]]] = []
        self._read: dict[str, list[StoredRows]] = {}

    def columns(self, use: DatasetUse) -> frozenset[str]:
        """The stored columns of a reading; none if it was not read."""
        return frozenset(name for rows in self._read.get(use.key, ()) for name in rows.frame.columns)

    def read(self, use: DatasetUse) -> list[StoredRows]:
        """The rows of every location of a dataset.

        Opening files is slow in Spark, so a dataset that several joins read is opened once.
        """
        pins = self._pinned[use.key]
        same = (use.dataset_id, use.version, use.table, use.columns, use.optional, pins)
        found = next((rows for key, rows in self._known if key == same), None)
        if found is None:
            found = self._inputs.read(self._spark, use, pins)
            self._known.append((same, found))
        self._read[use.key] = found
        return found

"""The rows that a run reads: found and pinned before it starts, turned into Parquet where they are not, then given to Spark.

CSV files and tables pass through a Parquet file in the run's own folder. So they are checked to the last value before Spark
starts, every row has a stable position, and a run that is resumed reads the very same rows.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dobonomodo.failpoint import reach
from dobonomodo.model.datasource import CsvOptions, DatabaseOptions, DataSource, ParquetOptions
from dobonomodo.plan.dataset import DatasetUse, Location
from dobonomodo.plan.facts import RunFacts
from dobonomodo.storage.csv import extract_csv
from dobonomodo.storage.database import Belongs, Database, extract_table
from dobonomodo.storage.faults import is_passing, loading_failed, refuse
from dobonomodo.storage.files import PinnedFile, find_changes, leaves_datasource, list_beside, list_files, pin_files
from dobonomodo.storage.findings import Findings
from dobonomodo.storage.manifest import columns_of_file, find_columns, version_of
from dobonomodo.storage.parquet import check_parquet, count_rows, read_parquet
from dobonomodo.storage.rows import StoredRows
from dobonomodo.storage.secret import find_secret

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True, slots=True)
class PinnedLocation:
    """A location with the files that were there, or the table and a fingerprint of what it held."""

    kind: str
    name: str
    period: str | None = None
    files: tuple[PinnedFile, ...] = ()
    delimiter: str = ","
    has_header: bool = True
    datasource_id: str | None = None
    table: str | None = None
    schema: str | None = None
    fingerprint: str | None = None
    listed: str | None = None
    """The file or folder that was looked into."""
    run_period: str | None = None
    """For a table: only what runs for this period wrote."""
    optional: tuple[str, ...] = ()
    """Columns, in lower case, that other files of the same destination have; where they are missing they are NULL."""

    def document(self) -> dict[str, Any]:
        """As plain data."""
        found = {name: getattr(self, name) for name in self.__slots__ if name != "files"}
        return {**found, "files": [file.document() for file in self.files]}

    @classmethod
    def load(cls, document: Mapping[str, Any]) -> PinnedLocation:
        """From plain data."""
        values = {name: document.get(name) for name in cls.__slots__ if name in document and name != "files"}
        values["optional"] = tuple(document.get("optional", ()))
        return cls(files=tuple(PinnedFile.load(each) for each in document["files"]), **values)  # type: ignore[arg-type]


Pinned = Mapping[str, tuple[PinnedLocation, ...]]
"""The locations of every reading, by what ``key_of`` calls it."""


def key_of(use: DatasetUse) -> str:
    """What tells one reading of a project from the others."""
    return f"{use.role}/{use.dataset_id}/v{use.version}/{use.table}/{use.seq or 0}/{use.alias or ''}"


class Inputs:
    """Finds, pins and reads the rows of a run."""

    def __init__(
        self, *, root: Path, datasources: Mapping[str, DataSource], folder: Path, facts: RunFacts, as_of: date | None
    ) -> None:
        self._root, self._datasources, self._folder = root, datasources, folder / "inputs"
        self._facts, self._as_of = facts, as_of

    # --- pinning

    def pin(self, uses: Iterable[DatasetUse]) -> dict[str, tuple[PinnedLocation, ...]]:
        """What is there to read now; a file that is missing fails."""
        return {key_of(use): self._pin(use) for use in uses}

    def _pin(self, use: DatasetUse) -> tuple[PinnedLocation, ...]:
        if use.registered is not None and not use.locations:
            pinned = tuple(self._pin_registered(use, use.registered))
        else:
            pinned = tuple(self._pin_location(use, location) for location in use.locations)
        optional = find_columns(Path(file.path) for each in pinned for file in each.files)
        return tuple(replace(each, optional=optional) for each in pinned)

    def _pin_location(self, use: DatasetUse, location: Location) -> PinnedLocation:
        source = self._source(use, location.datasource_id)
        options = source.options
        name = str(location)
        if isinstance(options, DatabaseOptions):
            return PinnedLocation(
                "database",
                name,
                location.period,
                datasource_id=source.id,
                table=location.table or location.path,
                schema=location.schema or options.schema_name,
            )
        prefix = self._root / options.path_prefix
        path = prefix / (location.path or location.table or "")
        files = self._list(use, path)
        if outside := next((file.path for file in files if leaves_datasource(prefix, Path(file.path))), None):
            raise loading_failed(use, f"a symbolic link leads out of datasource `{source.id}`, to `{outside}`")
        pinned = PinnedLocation(source.type, name, location.period, files, listed=str(path))
        if isinstance(options, CsvOptions):
            return replace(pinned, delimiter=options.delimiter, has_header=options.has_header)
        return pinned

    def _pin_registered(self, use: DatasetUse, registered: Mapping[str, Any]) -> Iterable[PinnedLocation]:
        """Where an output put the rows of this version (C-83)."""
        kind = registered["kind"]
        if kind == "database":
            table, schema = registered["table"], registered.get("schema")
            source = self._source(use, registered["datasource_id"])
            yield PinnedLocation(kind, f"{source.id}:{table}", datasource_id=source.id, table=table, schema=schema)
            return
        for folder in registered["folders"]:
            path = self._root / folder
            yield PinnedLocation(
                kind,
                str(folder),
                files=self._list(use, path),
                delimiter=registered.get("delimiter", ","),
                has_header=registered.get("has_header", True),
                listed=str(path),
            )

    def _source(self, use: DatasetUse, name: str) -> DataSource:
        source = self._datasources.get(name)
        if source is None:
            raise loading_failed(use, f"there is no datasource `{name}`")
        if source.status != "active":
            raise loading_failed(use, f"datasource `{name}` is disabled")
        return source

    def _list(self, use: DatasetUse, path: Path) -> tuple[PinnedFile, ...]:
        try:
            return pin_files(path)
        except FileNotFoundError as fault:
            missing = Path(fault.filename or path)
            rule = f"rule `{use.rule}` of resolver `{use.resolver_id}` makes this path" if use.rule else None
            detail = f"there is no file or folder `{missing}`"
            raise loading_failed(use, detail, remedy=rule, present=list_beside(missing)) from fault
        except OSError as fault:
            detail = f"`{fault.filename or path}`: {fault.strerror}"
            raise loading_failed(use, detail, retry_helps=is_passing(fault)) from fault

    def find_changes(self, pinned: Pinned, *, listing: bool) -> tuple[str, ...]:
        """What became of the pinned files; with ``listing``, also files that were added to a folder since."""
        changes: list[str] = []
        for locations in pinned.values():
            for location in locations:
                changes += find_changes(location.files)
                if listing and location.listed is not None and not _is_managed(location):
                    known = {file.path for file in location.files}
                    changes += [f"`{path}` is new" for path in _real_files(location.listed) if path not in known]
        return tuple(dict.fromkeys(changes))

    # --- extracting

    def extract(self, uses: Iterable[DatasetUse], pinned: Pinned) -> dict[str, tuple[PinnedLocation, ...]]:
        """Turn CSV files and tables into Parquet, unless an earlier attempt did; gives the pins with fingerprints."""
        done = {}
        for use in uses:
            key = key_of(use)
            locations, findings = [], Findings()
            for number, location in enumerate(pinned[key]):
                try:
                    fingerprint, found = self._extract(_as_stored(use, location), location, number)
                except OSError as fault:
                    detail = f"`{self._folder}`: {fault.strerror or fault}"
                    raise loading_failed(use, detail, retry_helps=is_passing(fault)) from fault
                findings += found
                if not found and location.fingerprint is not None and fingerprint != location.fingerprint:
                    raise loading_failed(use, f"table `{location.table}` has changed since the run took its snapshot")
                locations.append(replace(location, fingerprint=fingerprint))
            refuse(findings, use)
            done[key] = tuple(locations)
        reach("input.extracted")
        return done

    def _extract(self, use: DatasetUse, location: PinnedLocation, number: int) -> tuple[str | None, Findings]:
        """The fingerprint of a table, and what is wrong in a location."""
        targets = self._files(use, location, number)
        if location.kind == "parquet":
            return None, sum((check_parquet(path, use) for path in targets), Findings())
        self._folder.mkdir(parents=True, exist_ok=True)
        if location.kind == "csv":
            files = zip(location.files, targets, strict=True)
            return None, sum((self._extract_csv(use, location, file, target) for file, target in files), Findings())
        (target,) = targets
        return self._extract_table(use, location, target)

    def _extract_csv(self, use: DatasetUse, location: PinnedLocation, file: PinnedFile, target: Path) -> Findings:
        if target.exists():
            return Findings()
        return extract_csv(
            Path(file.path),
            target,
            use,
            delimiter=location.delimiter,
            has_header=location.has_header,
            columns=columns_of_file(Path(file.path)),
        )

    def _extract_table(self, use: DatasetUse, location: PinnedLocation, target: Path) -> tuple[str | None, Findings]:
        mark = target.with_suffix(".sha256")
        if not (target.exists() and mark.exists()):
            database = self.database(location.datasource_id or "", use)
            findings = extract_table(
                database,
                target,
                use,
                table=location.table or "",
                schema=location.schema,
                belongs=Belongs(self._periods(use), use.valid_on(self._facts, self._as_of), location.run_period),
            )
            if findings:
                return None, findings
            with target.open("rb") as file:
                fingerprint = hashlib.file_digest(file, "sha256").hexdigest()
            unfinished = mark.with_name(mark.name + ".part")
            unfinished.write_text(fingerprint)
            unfinished.replace(mark)
        return mark.read_text(), Findings()

    def _periods(self, use: DatasetUse) -> tuple[str, ...]:
        return tuple(
            dict.fromkeys([self._facts.period, *(each.period for each in use.locations if each.period is not None)])
        )

    def database(self, datasource_id: str, use: DatasetUse) -> Database:
        """How to reach a database, with its secret."""
        return open_database(self._source(use, datasource_id), root=self._root)

    def _files(self, use: DatasetUse, location: PinnedLocation, number: int) -> list[Path]:
        """The Parquet files of a location, before or after they were made."""
        if location.kind == "parquet":
            return [Path(file.path) for file in location.files]
        stem = f"{use.role}-{use.seq or 0}-{use.alias or 'rows'}-{number}"
        count = 1 if location.kind == "database" else len(location.files)
        return [self._folder / f"{stem}-{at}.parquet" for at in range(count)]

    # --- reading

    def reader(self, spark: SparkSession, pinned: Pinned) -> _SparkReader:
        """Gives the pinned rows to Spark."""
        return _SparkReader(self, spark, pinned)

    def read(self, spark: SparkSession, use: DatasetUse, locations: Iterable[PinnedLocation]) -> list[StoredRows]:
        """The rows of every location as frames."""
        found = []
        before: list[Path] = []
        for number, location in enumerate(locations):
            files = self._files(use, location, number)
            links = self._folder / "links" / f"{use.role}-{number}"
            read = partial(read_parquet, spark, files, _as_stored(use, location), links=links)
            positioned = partial(_read_positioned, read, before=tuple(before))
            found.append(StoredRows(read(positions=False), location.period, positioned))
            before += files
        return found


def _as_stored(use: DatasetUse, location: PinnedLocation) -> DatasetUse:
    """A reading of one location, which may lack columns that others have."""
    return replace(use, optional=frozenset(location.optional))


def _read_positioned(read: Callable[..., DataFrame], *, before: Sequence[Path]) -> DataFrame:
    return read(before=count_rows(before))


@dataclass(frozen=True, slots=True)
class _SparkReader:
    inputs: Inputs
    spark: SparkSession
    pinned: Pinned

    def read(self, use: DatasetUse) -> list[StoredRows]:
        """The rows of every location of a dataset."""
        return self.inputs.read(self.spark, use, self.pinned[key_of(use)])


def open_database(source: DataSource, *, root: Path) -> Database:
    """How to reach the database of a datasource, with its secret."""
    if not isinstance(source.options, DatabaseOptions):
        raise AssertionError("checked before")
    password = find_secret(source.credential_ref, root=root, owner=f"datasource `{source.id}`")
    return Database(source.options.url, source.options.schema_name, password)


def prefix_of(source: DataSource, root: Path) -> Path:
    """The folder of a datasource of files."""
    if not isinstance(source.options, ParquetOptions | CsvOptions):
        raise AssertionError("checked before")
    return root / source.options.path_prefix


def _is_managed(location: PinnedLocation) -> bool:
    """Whether a location is a destination of runs, whose folder changes with every publishing; its data do not."""
    return any(version_of(Path(file.path)) is not None for file in location.files)


def _real_files(listed: str) -> list[str]:
    try:
        return [str(path.resolve()) for path in list_files(Path(listed))]
    except OSError:
        return []

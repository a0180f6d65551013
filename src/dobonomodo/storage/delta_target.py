"""A Delta table as a destination: Spark writes Parquet files into the folder of the table, one commit makes them its rows.

The commit also records who wrote which files, how many rows and which digest: a killed run finds there what it has published.
Two transaction ids in the log hold the fencing number and mark an output as published.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar
from urllib.parse import unquote

from dobonomodo.failpoint import reach
from dobonomodo.formula import Type
from dobonomodo.formula.types import BOOLEAN, DATE, INTEGER, TEXT, TIMESTAMP, DecimalType, SimpleType, parse_type
from dobonomodo.model.plain import Document
from dobonomodo.storage.delta_home import DeltaHome, read_log
from dobonomodo.storage.rewriting import Fit, clear_folder, fit_files
from dobonomodo.storage.table_files import StoredTableFiles, TableFile, compare_files, free_key
from dobonomodo.storage.table_files_target import Change, TableFilesTarget
from dobonomodo.storage.target import Inspected, Noted, Publication

if TYPE_CHECKING:
    from deltalake import DeltaTable, Schema, Transaction
    from deltalake.transaction import AddAction

KIND = "delta"
NOTE = "dobo"
"""The key of a commit under which it is noted what runs wrote."""
NOBODY = "\n"
"""The period of no run."""

_BETWEEN = re.compile(r"(?:\\n|\\x1b\[\d+m|\x1b\[\d+m|↳|\s)*(?:\\n|↳)(?:\\n|\\x1b\[\d+m|\x1b\[\d+m|↳|\s)*")
"""Between the causes that the library lists, with what colors them on a terminal."""
_PASSING = ("Permission denied", "PermissionDenied", "No space left", "Connection refused", "timed out", "dns error")

_SPARK_TYPES = {"long": "bigint", "integer": "int", "short": "smallint", "byte": "tinyint"}
_DELTA_TYPES: Mapping[Type, str] = {
    TEXT: "string",
    INTEGER: "long",
    BOOLEAN: "boolean",
    DATE: "date",
    TIMESTAMP: "timestamp",
}
_WRITER_FEATURES = frozenset({"appendOnly", "invariants", "timestampNtz"})


def list_delta(table: DeltaTable) -> list[TableFile]:
    """The files of a version, in an order that does not depend on the machine."""
    import pyarrow as pa

    listed = pa.table(table.get_add_actions())
    names = table.metadata().partition_columns
    values = listed["partition"].to_pylist() if names else [{}] * len(listed)
    files = (
        TableFile(unquote(path), size, tuple((name, _show(each[name])) for name in names))
        for path, size, each in zip(listed["path"].to_pylist(), listed["size_bytes"].to_pylist(), values, strict=True)
    )
    return sorted(
        files, key=lambda file: (tuple((value is not None, value or "") for _, value in file.values), file.path)
    )


def _show(value: object) -> str | None:
    """A value of a partition column as text that Spark casts to its type."""
    if value is None:
        return None
    return str(value).lower() if isinstance(value, bool) else str(value)


def name_types(table: DeltaTable) -> dict[str, str]:
    """The columns of a table, with their types as Spark calls them."""
    return {field.name: _name_type(field.type) for field in table.schema().fields}


def _name_type(kind: object) -> str:
    name = getattr(kind, "type", "")
    return _SPARK_TYPES.get(name, name) if name not in ("", "struct", "array", "map") else str(kind)


def _find_type(name: str) -> Type:
    """The type of ours that a column of a table has; one that no run writes is a type of its own."""
    known = {kind: ours for ours, kind in _DELTA_TYPES.items()}
    known |= {_SPARK_TYPES["long"]: INTEGER}
    if name.startswith("decimal("):
        return parse_type(name) or SimpleType(name, name)
    return known.get(name) or SimpleType(name, name)


@dataclass(frozen=True, slots=True)
class DeltaTarget(TableFilesTarget["DeltaTable"]):
    """One output of one run into a table."""

    home: DeltaHome

    kind: ClassVar[str] = KIND

    @property
    def place(self) -> str:
        """The table: each has a log of its own."""
        return f"delta {self.home.uri}"

    @property
    def _fence_id(self) -> str:
        return f"dobo fence {self.fence.key}"

    @property
    def output_id(self) -> str:
        """The transaction id whose version is the version of the table that has this output."""
        return f"dobo output {self.run}/{self.seq}"

    # --- the table

    def _open(self) -> DeltaTable | None:
        """The table, if there is one; refuses one that no run can write to, and a folder that holds something else."""
        if (wrong := self.home.explain()) is not None:
            self._refuse(wrong)
        table = self.home.open()
        if table is None:
            if (foreign := self.home.find_foreign()) is not None:
                self._refuse(f"the folder contains `{foreign}`, which no run wrote; choose another table")
            return None
        self._require_ours(table)
        return table

    def _require_ours(self, table: DeltaTable) -> None:
        self._require_key(table.metadata().partition_columns)
        protocol = table.protocol()
        features = set(protocol.writer_features or ()) | set(protocol.reader_features or ())
        if unknown := sorted(features - _WRITER_FEATURES):
            self._refuse(f"the table has the feature `{unknown[0]}`, which cannot be written; choose another table")
        if protocol.min_writer_version > 2 and not protocol.writer_features:
            self._refuse(f"the table needs a writer of version {protocol.min_writer_version}; choose another table")

    def _prepare(self, table: DeltaTable | None) -> None:
        del table
        self.home.prepare()

    def _home(self, table: DeltaTable) -> DeltaHome:
        del table
        return self.home

    def _find_home(self, table: DeltaTable | None) -> DeltaHome:
        del table
        return self.home

    def _find_key(self, table: DeltaTable) -> str:
        return table.metadata().partition_columns[0]

    def _list(self, table: DeltaTable) -> list[TableFile]:
        return list_delta(table)

    def _all_columns(self, table: DeltaTable) -> dict[str, Type]:
        return {name: _find_type(kind) for name, kind in name_types(table).items()}

    def _version(self, table: DeltaTable) -> int:
        return table.version()

    # --- where nobody reads it yet

    def _own_folder(self, table: DeltaTable | None) -> Path:
        """Where this attempt puts its files, also where there is no table yet."""
        return self._folder(self.home, self._find_key(table) if table is not None else free_key(self.columns))

    def start(self) -> str | None:
        """An empty folder below the table, unless the table spells or types columns otherwise, or has these rows already."""
        with self._explaining():
            table = self._open()
            if self.home.is_remote:
                return None
            if table is not None:
                fitting = {} if self.is_published(table) else self._fit(table, [self.columns], replaces=True).columns
                if any(fitting.get(name) != kind for name, kind in self.columns.items()):
                    return None
            return str(clear_folder(self._own_folder(table)))

    def convert(self, files: Sequence[str]) -> bool:
        """Bring the files to the form of the table, unless Spark wrote them below it: linked if they have it, else written again."""
        with self._explaining():
            if any(self.home.data in Path(each).parents for each in files):
                self.home.put([Path(each) for each in files])
                return False
            table = self._open()
            if table is not None and self.is_published(table):
                return False
            fit = self._fit(table, [self.columns], replaces=True) if table is not None else Fit(self.columns)
            folder = clear_folder(self._own_folder(table))
            self.home.put(fit_files([Path(each) for each in files], folder, fit.columns))
        return True

    # --- claiming and publishing

    def _find_fence(self, table: DeltaTable) -> int | None:
        return table.transaction_version(self._fence_id)

    def _claim(self, table: DeltaTable) -> bool:
        return self._commit(table, [], "append", table.schema())

    def _create(self) -> DeltaTable | None:
        """Create the table, without rows and with our fencing number, unless another process does."""
        from deltalake import CommitProperties, DeltaTable
        from deltalake.exceptions import DeltaError

        key = free_key(self.columns)
        properties = CommitProperties(max_commit_retries=0, app_transactions=self._transactions())
        try:
            DeltaTable.create(
                self.home.uri,
                _make_schema(self.columns, key),
                mode="error",
                partition_by=[key],
                storage_options=self.home.options,
                commit_properties=properties,
            )
        except DeltaError:
            if self.home.open() is None:
                raise
        return self._open()

    def _commit(
        self,
        table: DeltaTable,
        adds: Sequence[AddAction],
        mode: str,
        schema: Schema,
        *,
        replaced: str | None = None,
        note: Mapping[str, object] | None = None,
        outputs: Sequence[DeltaTarget] = (),
    ) -> bool:
        """Commit on top of exactly the version that was read; False if there is a later one, which must be read first."""
        from deltalake import CommitProperties
        from deltalake.exceptions import CommitFailedError

        key = self._find_key(table)
        properties = CommitProperties(
            custom_metadata={NOTE: note} if note is not None else None,
            # The library would retry on a later version, whose fencing number was not checked.
            max_commit_retries=0,
            app_transactions=self._transactions(*outputs, version=table.version() + 1),
        )
        try:
            table.create_write_transaction(
                list(adds),
                mode,
                schema,
                [key],
                [(key, "=", replaced)] if replaced is not None else None,
                commit_properties=properties,
            )
        except CommitFailedError:
            return False
        self.home.settle(table.version() + 1)
        return True

    def _transactions(self, *outputs: DeltaTarget, version: int = 0) -> list[Transaction]:
        from deltalake import Transaction

        own = [Transaction(each.output_id, version) for each in outputs]
        return [Transaction(self._fence_id, self.fence.number), *own]

    def _commit_change(self, change: Change[DeltaTable]) -> bool:
        table = change.table
        key, version = self._find_key(table), table.version()
        adds = [self._add(path, ((key, self.period),)) for path in change.added]
        schema = _extend_schema(table.schema(), change.fit, key, fresh=change.is_fresh)
        mode, replaced = self._find_mode(table, schema, replaces=change.replaces)
        if change.fit.widened:
            adds += [self._add(path, ((key, period),)) for path, period in change.widened]
            mode, replaced = "overwrite", None
        notes = [self._note(each, change, key) for each in change.pending]
        head = next((each.head for each in change.pending if each.head is not None), None)
        note = {
            "version": version + 1,
            "period": self.period,
            "outputs": notes,
            "history": head._asdict() if head is not None else None,
        }
        reach("publish.during")
        outputs = [self.like(each.target) for each in change.pending]
        return self._commit(table, adds, mode, schema, replaced=replaced, note=note, outputs=outputs)

    def _find_mode(self, table: DeltaTable, schema: Schema, *, replaces: bool) -> tuple[str, str | None]:
        """How files are added, and of which period those that are there are removed."""
        if replaces:
            return "overwrite", self.period
        # Only what replaces something may change columns, so it replaces nothing.
        return ("append", None) if schema == table.schema() else ("overwrite", NOBODY)

    def _add(self, path: Path, values: Sequence[tuple[str, str | None]]) -> AddAction:
        import pyarrow.parquet as pq
        from deltalake.transaction import AddAction

        found = path.stat()
        # No smallest and largest values: they would be rounded in JSON, and readers skip files by them.
        rows = json.dumps({"numRecords": pq.read_metadata(path).num_rows})
        name = path.relative_to(self.home.data).as_posix()
        return AddAction(name, found.st_size, dict(values), found.st_mtime_ns // 1_000_000, True, rows)

    def _note(self, publication: Publication, change: Change[DeltaTable], key: str) -> dict[str, object]:
        """What the commit says of one output."""
        files = change.files.get(publication.commit.seq, ())
        names = [path.relative_to(self.home.data).as_posix() for path in files]
        sizes = [path.stat().st_size for path in files]
        listed = [TableFile(*each, ((key, self.period),)) for each in zip(names, sizes, strict=True)]
        commit = replace(publication.commit, fence=self.like(publication.target).attempt)
        noted = {"files": [file.document() for file in listed], "hashes": [change.hashes[path] for path in files]}
        return {**commit.document(), **noted}

    # --- afterwards

    def is_published(self, table: DeltaTable) -> bool:
        """By the transaction id of the output."""
        return table.transaction_version(self.output_id) is not None

    def _read_note(self, table: DeltaTable) -> Document:
        version = table.transaction_version(self.output_id)
        text = read_log(self.home, version) if version is not None else None
        if text is None:
            self._refuse(f"the log does not have version {version} any more, which says what the run wrote")
        lines = text.splitlines()
        info = next(each["commitInfo"] for each in map(json.loads, lines) if "commitInfo" in each)
        found: Document = next(
            each for each in info[NOTE]["outputs"] if (each["run"], each["seq"]) == (self.run, self.seq)
        )
        return found

    def _read_stored(self, table: DeltaTable, note: Document) -> tuple[int, list[TableFile], list[str]]:
        version = table.transaction_version(self.output_id) or 0
        return version, [TableFile.load(each) for each in note["files"]], note["hashes"]

    def _noted_attempts(self, table: DeltaTable) -> Iterator[int]:
        if self.is_published(table):
            yield self._read_note(table)["fence"]

    def _explain(self, fault: Exception) -> tuple[str, bool] | None:
        from deltalake.exceptions import DeltaError

        return (explain_fault(fault), is_passing_fault(fault)) if isinstance(fault, DeltaError) else None


def explain_fault(fault: BaseException) -> str:
    """The library's error message without its trace: the first and the last of a chain of causes."""
    said = [part for part in _BETWEEN.split(next(iter(str(fault).splitlines()), "")) if part]
    return ": ".join(dict.fromkeys((said[0], said[-1]))) if said else type(fault).__name__


def is_passing_fault(fault: BaseException) -> bool:
    """Whether a retry may succeed: a full disk, a missing permission, a store that does not respond."""
    return any(word in str(fault) for word in _PASSING)


def _name_delta(kind: Type) -> str:
    return f"decimal({kind.precision},{kind.scale})" if isinstance(kind, DecimalType) else _DELTA_TYPES[kind]


def _make_schema(columns: Mapping[str, Type], key: str) -> Schema:
    from deltalake import Field, Schema
    from deltalake.schema import PrimitiveType

    fields = [Field(name, PrimitiveType(_name_delta(kind))) for name, kind in columns.items()]
    return Schema([*fields, Field(key, PrimitiveType("string"))])


def _extend_schema(schema: Schema, fit: Fit, key: str, *, fresh: bool) -> Schema:
    """The schema with the columns that it lacks, and wider numbers; a new one where no rows stay that need the old one."""
    from deltalake import Field, Schema
    from deltalake.schema import PrimitiveType

    there = {field.name: field for field in schema.fields}
    if (
        fresh
        and {name: _find_type(_name_type(each.type)) for name, each in there.items() if name != key} != fit.columns
    ):
        return _make_schema(fit.columns, key)
    fields = [
        there[name] if name in there and name not in fit.widened else Field(name, PrimitiveType(_name_delta(kind)))
        for name, kind in fit.columns.items()
    ]
    return Schema([*fields, there[key]])


def inspect_version(stored: StoredTableFiles, home: DeltaHome, *, run: str, seq: int) -> Inspected:
    """Whether files are what their record says, and what the log notes of the history."""
    changed, gone, right = compare_files([file.path for file in stored.files], stored.hashes or (), home.hash)
    table = home.open()
    if table is None:
        return Inspected((), tuple(changed), (*gone, f"the log of table `{stored.table}`"), right)
    if table.transaction_version(f"dobo output {run}/{seq}") is None:
        gone.append(f"the commit of the run in the log of table `{stored.table}`")
    heads = []
    for note in _read_notes(home, table):
        try:
            noted = note.get("history")
            heads += [Noted.load(noted)] if noted is not None else []
        except (ValueError, KeyError, TypeError, AttributeError):
            changed.append(f"what the log of table `{stored.table}` notes of the history cannot be read")
    return Inspected(tuple(heads), tuple(dict.fromkeys(changed)), tuple(gone), right)


def _read_notes(home: DeltaHome, table: DeltaTable) -> Iterator[Document]:
    """What commits note, the latest first, as far back as the log has them."""
    for version in range(table.version(), -1, -1):
        text = read_log(home, version)
        if text is None:
            return
        infos = [action["commitInfo"] for action in map(json.loads, text.splitlines()) if "commitInfo" in action]
        yield from (info[NOTE] for info in infos if NOTE in info)

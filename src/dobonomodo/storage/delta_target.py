"""A Delta table as a destination: Spark writes Parquet files into the folder of the table, one commit makes them its rows.

What the commit notes beside them (who wrote which files, how many rows, with which digest) is how a run that was killed finds
what it has published. Two transaction ids in the log do the rest: one holds the fencing number, one says that an output is published.
"""

from __future__ import annotations

import json
import random
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn
from urllib.parse import quote, unquote

from dobonomodo.failpoint import reach
from dobonomodo.formula import Type
from dobonomodo.formula.types import BOOLEAN, DATE, INTEGER, TEXT, TIMESTAMP, DecimalType, SimpleType, parse_type
from dobonomodo.model.plain import Document
from dobonomodo.plan.registration import United
from dobonomodo.storage.delta_home import DeltaHome
from dobonomodo.storage.faults import is_passing, writing_failed
from dobonomodo.storage.fence import Fence
from dobonomodo.storage.leftover import Leftover
from dobonomodo.storage.rewriting import Fit, clear_folder, fit_columns, hash_files, is_fitting, rewrite_files
from dobonomodo.storage.table_files import OWN, StoredTableFiles, TableFile, compare_files, free_key, is_key
from dobonomodo.storage.target import Commit, Inspected, Noted, Publication, Target

if TYPE_CHECKING:
    from deltalake import DeltaTable, Schema, Transaction
    from deltalake.transaction import AddAction

KIND = "delta"
NOTE = "dobo"
"""The key of a commit under which it is noted what runs wrote."""
NOBODY = "\n"
"""The period of no run."""
TRIES = 100

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
class DeltaTarget:
    """One output of one run into a table."""

    home: DeltaHome
    table: str
    period: str
    run: str
    seq: int
    columns: Mapping[str, Type]
    fence: Fence
    attempt: int
    """The number of the attempt that wrote the files, which may be an earlier one than the one that publishes them."""
    datasource_id: str

    @property
    def place(self) -> str:
        """The table: each has a log of its own."""
        return f"delta {self.home.uri}"

    def _data(self, table: DeltaTable | None, more: str = "", *, period: str | None = None) -> Path:
        """Where this attempt puts the output's files, before and after they are published.

        Each attempt at a run has a folder of its own: an earlier one may still be writing, and not know that it lost. The log says
        which period a file is of; some readers go by its path.
        """
        parent = f"{self._find_key(table)}={quote(self.period if period is None else period, safe='')}"
        return self.home.data / parent / f"{self._own}{self.attempt}{more}"

    @property
    def _own(self) -> str:
        return f"{OWN}{self.run}-{self.seq}-"

    @property
    def _fence_id(self) -> str:
        return f"dobo fence {self.fence.key}"

    @property
    def output_id(self) -> str:
        """The transaction id whose version is the version of the table that has this output."""
        return f"dobo output {self.run}/{self.seq}"

    # --- before anything is computed

    def check(self, *, mode: str) -> United:
        """Refuse a table that cannot take the rows; gives the columns of those that stay there."""
        with self._explaining():
            table = self._open()
            self.home.prepare()
            if table is None:
                return United({})
            self.fit(table, [self.columns], replaces=mode == "replace")
            return United(self._staying_columns(table, replaces=mode == "replace"))

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
        keys = table.metadata().partition_columns
        if len(keys) != 1 or not is_key(keys[0]):
            self._refuse("the table is not partitioned by `_run_period`: no run created it; choose another table")
        if keys[0].casefold() in {name.casefold() for name in self.columns}:
            self._refuse(f"the table is partitioned by `{keys[0]}`, which is now also a column; choose another table")
        protocol = table.protocol()
        features = set(protocol.writer_features or ()) | set(protocol.reader_features or ())
        if unknown := sorted(features - _WRITER_FEATURES):
            self._refuse(f"the table has the feature `{unknown[0]}`, which cannot be written; choose another table")
        if protocol.min_writer_version > 2 and not protocol.writer_features:
            self._refuse(f"the table needs a writer of version {protocol.min_writer_version}; choose another table")

    def _find_key(self, table: DeltaTable | None) -> str:
        """The column that holds the run period: one that is not among the data's own. A table keeps the one that it has."""
        if table is not None:
            return table.metadata().partition_columns[0]
        return free_key(self.columns)

    def _staying_columns(self, table: DeltaTable, *, replaces: bool) -> dict[str, Type]:
        """The columns of the rows that stay; none if all are replaced."""
        key = self._find_key(table)
        stays = any(not replaces or file.values != ((key, self.period),) for file in list_delta(table))
        return {name: _find_type(kind) for name, kind in name_types(table).items() if name != key} if stays else {}

    def fit(self, table: DeltaTable, written: Sequence[Mapping[str, Type]], *, replaces: bool) -> Fit:
        """How rows with these columns go beside those that stay (C-86)."""
        there = self._staying_columns(table, replaces=replaces)
        return fit_columns(there, written, table=self.table)

    # --- where nobody reads it yet

    def start(self) -> str | None:
        """An empty folder below the table, unless the table spells or types columns otherwise, or has these rows already."""
        with self._explaining():
            table = self._open()
            if self.home.is_remote:
                return None
            if table is not None:
                known = self.find_version(table) is not None
                fitting = {} if known else self.fit(table, [self.columns], replaces=True).columns
                if any(fitting.get(name) != kind for name, kind in self.columns.items()):
                    return None
            return str(clear_folder(self._data(table)))

    def convert(self, files: Sequence[str]) -> bool:
        """Write the files again as the table spells and types their columns, unless Spark wrote them below the table."""
        with self._explaining():
            if any(self.home.data in Path(each).parents for each in files):
                self.home.put([Path(each) for each in files])
                return False
            table = self._open()
            if table is not None and self.find_version(table) is not None:
                return False
            fit = self.fit(table, [self.columns], replaces=True) if table is not None else Fit(self.columns)
            self.home.put(rewrite_files([Path(each) for each in files], clear_folder(self._data(table)), fit.columns))
        return True

    # --- claiming and publishing

    def claim(self) -> None:
        """Refuse to go on if a later run was here; otherwise, earlier ones are refused from now on, by the log of the table."""
        with self._explaining():
            for _ in self._tries():
                table = self._open()
                if table is None:
                    if self._create():
                        return
                elif self._is_claimed(table) or self._commit(table, [], "append", table.schema()):
                    return

    def _is_claimed(self, table: DeltaTable) -> bool:
        seen = table.transaction_version(self._fence_id)
        if seen is not None and seen > self.fence.number:
            raise self.fence.lost()
        return seen == self.fence.number

    def _create(self) -> bool:
        """Make the table, without rows; False if somebody else did."""
        from deltalake import CommitProperties, DeltaTable
        from deltalake.exceptions import DeltaError

        key = self._find_key(None)
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
            return False
        return True

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
        """Commit upon the very version that was read; False if there is a later one, which must be looked at first."""
        from deltalake import CommitProperties
        from deltalake.exceptions import CommitFailedError

        key = self._find_key(table)
        properties = CommitProperties(
            custom_metadata={NOTE: note} if note is not None else None,
            # The library would retry upon a later version, whose fencing number nobody has looked at.
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

    def publish(self, group: Sequence[Publication]) -> None:
        """Replace the period's rows, or add to them, for all outputs that go to the table, in one commit."""
        hashes: dict[Path, str] = {}
        with self._explaining():
            for _ in self._tries():
                table = self._open()
                if table is None:
                    self._create()
                    continue
                self._is_claimed(table)
                pending = [each for each in group if _delta_target(each.target).find_version(table) is None]
                if not pending or self._publish(table, pending, hashes):
                    return

    def _publish(self, table: DeltaTable, pending: Sequence[Publication], hashes: dict[Path, str]) -> bool:
        """One try to commit upon the version that was read. ``hashes`` keeps what an earlier try has computed."""
        key, version = self._find_key(table), table.version()
        replacing = [at for at, each in enumerate(pending) if each.mode == "replace"]
        # What one output writes, a later one of the same run may replace.
        written = pending[max(replacing, default=0) :]
        targets = [_delta_target(each.target) for each in written]
        fit = self.fit(table, [each.columns for each in targets], replaces=bool(replacing))
        own = {
            each.seq: each.fitting_files(table, publication, fit)
            for each, publication in zip(targets, written, strict=True)
        }
        adds = [self._add(path, ((key, self.period),)) for paths in own.values() for path in paths]
        schema = _extend_schema(
            table.schema(), fit, key, fresh=not self._staying_columns(table, replaces=bool(replacing))
        )
        mode, replaced = self._find_mode(table, schema, replaces=bool(replacing))
        if fit.widened:
            adds += self._widen(table, fit, replaces=bool(replacing))
            mode, replaced = "overwrite", None
        hash_files(hashes, [path for paths in own.values() for path in paths])
        notes = [self._note(each, own.get(each.commit.seq, ()), key, hashes) for each in pending]
        head = next((each.head for each in pending if each.head is not None), None)
        note = {
            "version": version + 1,
            "period": self.period,
            "outputs": notes,
            "history": head._asdict() if head is not None else None,
        }
        reach("publish.during")
        outputs = [_delta_target(each.target) for each in pending]
        return self._commit(table, adds, mode, schema, replaced=replaced, note=note, outputs=outputs)

    def _find_mode(self, table: DeltaTable, schema: Schema, *, replaces: bool) -> tuple[str, str | None]:
        """How files are added, and of which period those that are there are removed."""
        if replaces:
            return "overwrite", self.period
        # Only what replaces something may change columns, so it replaces nothing.
        return ("append", None) if schema == table.schema() else ("overwrite", NOBODY)

    def fitting_files(self, table: DeltaTable, publication: Publication, fit: Fit) -> list[Path]:
        """The files of the output as the table is to have them; those that are not are written again."""
        data = self._data(table)
        if not data.is_dir():
            self.convert(publication.files)
        files = sorted(data.glob("*.parquet"))
        if not all(is_fitting(path, fit.columns) for path in files):
            files = rewrite_files(files, clear_folder(self._data(table, "-again")), fit.columns)
        self.home.put(files)
        return files

    def _widen(self, table: DeltaTable, fit: Fit, *, replaces: bool) -> list[AddAction]:
        """The files that stay, written again with wider numbers."""
        key = self._find_key(table)
        adds: list[AddAction] = []
        for file in list_delta(table):
            ((_, period),) = file.values
            if replaces and period == self.period:
                continue
            folder = clear_folder(self._data(table, f"-wider-{len(adds)}", period=period))
            written = rewrite_files([self.home.fetch(file.path)], folder, fit.columns)
            self.home.put(written)
            adds += [self._add(path, ((key, period),)) for path in written]
        return adds

    def _add(self, path: Path, values: Sequence[tuple[str, str | None]]) -> AddAction:
        import pyarrow.parquet as pq
        from deltalake.transaction import AddAction

        found = path.stat()
        # No smallest and largest values: they would be rounded in JSON, and readers skip files by them.
        rows = json.dumps({"numRecords": pq.read_metadata(path).num_rows})
        name = path.relative_to(self.home.data).as_posix()
        return AddAction(name, found.st_size, dict(values), found.st_mtime_ns // 1_000_000, True, rows)

    def _note(
        self, publication: Publication, files: Sequence[Path], key: str, hashes: Mapping[Path, str]
    ) -> dict[str, object]:
        """What the commit says of one output."""
        names = [path.relative_to(self.home.data).as_posix() for path in files]
        sizes = [path.stat().st_size for path in files]
        listed = [TableFile(*each, ((key, self.period),)) for each in zip(names, sizes, strict=True)]
        commit = replace(publication.commit, fence=_delta_target(publication.target).attempt)
        noted = {"files": [file.document() for file in listed], "hashes": [hashes[path] for path in files]}
        return {**commit.document(), **noted}

    def _tries(self) -> Iterator[int]:
        """Again and again while others commit to the same table, each time upon what they left."""
        for number in range(TRIES):
            yield number
            time.sleep(random.uniform(0, 0.02) * min(number + 1, 20))
        raise writing_failed(self.table, "other writers committed first each time", retry_helps=True)

    # --- afterwards

    def find_version(self, table: DeltaTable) -> int | None:
        """The version of the table that this output made, if it is published."""
        return table.transaction_version(self.output_id)

    def _read_note(self, version: int) -> Document:
        """What the commit of a version says of this output."""
        text = self.home.read_log(version)
        if text is None:
            self._refuse(f"the log does not have version {version} any more, which says what the run wrote")
        lines = text.splitlines()
        info = next(each["commitInfo"] for each in map(json.loads, lines) if "commitInfo" in each)
        found: Document = next(
            each for each in info[NOTE]["outputs"] if (each["run"], each["seq"]) == (self.run, self.seq)
        )
        return found

    def find_commit(self) -> Commit | None:
        """What this output published, if it did."""
        with self._explaining():
            table = self._open()
            version = self.find_version(table) if table is not None else None
            return Commit.load(self._read_note(version)) if version is not None else None

    def stored(self) -> StoredTableFiles:
        """Where the output is, once it is published."""
        with self._explaining():
            table = self._open()
            version = self.find_version(table) if table is not None else None
            if version is None:
                raise AssertionError("it is published")
            note = self._read_note(version)
            files = tuple(TableFile.load(each) for each in note["files"])
            return StoredTableFiles(KIND, self.datasource_id, None, self.table, version, files, tuple(note["hashes"]))

    def registered(self) -> tuple[Mapping[str, Type], StoredTableFiles]:
        """The columns of the table, and its version (C-64, C-86)."""
        with self._explaining():
            table = self._open()
            if table is None:
                raise AssertionError("it is published")
            key = self._find_key(table)
            columns = {name: _find_type(kind) for name, kind in name_types(table).items() if name != key}
            files = tuple(list_delta(table))
            return columns, StoredTableFiles(
                KIND, self.datasource_id, None, self.table, table.version(), files, None, tuple(columns)
            )

    def find_leftovers(self) -> list[Leftover]:
        """What attempts up to this fencing number wrote, and no commit has."""
        with self._explaining():
            table = self._open()
            version = self.find_version(table) if table is not None else None
            published = str(self._read_note(version)["fence"]) if version is not None else None
            return [
                replace(leftover, run=self.run)
                for name, leftover in self.home.find_folders(self._own)
                if (number := self._attempt_of(name)) is not None and number != published
            ]

    def _attempt_of(self, name: str) -> str | None:
        """The number of the attempt at this output that made a folder, unless a later one is at work."""
        number = name.removeprefix(self._own).partition("-")[0]
        return number if number.isdigit() and int(number) <= self.fence.number else None

    @contextmanager
    def _explaining(self) -> Iterator[None]:
        from deltalake.exceptions import DeltaError

        try:
            yield
        except OSError as fault:
            raise writing_failed(self.table, fault.strerror or str(fault), retry_helps=is_passing(fault)) from fault
        except DeltaError as fault:
            raise writing_failed(self.table, explain_fault(fault), retry_helps=is_passing_fault(fault)) from fault

    def _refuse(self, detail: str) -> NoReturn:
        raise writing_failed(self.table, detail)


def explain_fault(fault: BaseException) -> str:
    """What the library says, without its trace: of a chain of causes, the first and the last."""
    said = [part for part in _BETWEEN.split(next(iter(str(fault).splitlines()), "")) if part]
    return ": ".join(dict.fromkeys((said[0], said[-1]))) if said else type(fault).__name__


def is_passing_fault(fault: BaseException) -> bool:
    """Whether it may be gone at the next try: a full disk, a missing permission, a store that does not answer."""
    return any(word in str(fault) for word in _PASSING)


def _delta_target(target: Target) -> DeltaTarget:
    if not isinstance(target, DeltaTarget):
        raise AssertionError("what has the same place is of the same kind")
    return target


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


def keep_version(stored: StoredTableFiles, home: DeltaHome) -> StoredTableFiles | None:
    """The version, if all files are there; they are until somebody removes old versions (VACUUM)."""
    try:
        for file in stored.files:
            home.pin(file.path)
    except FileNotFoundError:
        return None
    return replace(stored, is_kept=True)


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
        text = home.read_log(version)
        if text is None:
            return
        infos = [action["commitInfo"] for action in map(json.loads, text.splitlines()) if "commitInfo" in action]
        yield from (info[NOTE] for info in infos if NOTE in info)

"""An Iceberg table as a destination: one transaction of the catalog replaces the files of a run period.

The run period is a column of the files, so rows pass through the driver once. What was published is noted in properties of the table,
one for each store, project, period and operation, and in the summary of the snapshot.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn
from urllib.parse import quote, unquote, urlparse

from dobonomodo.failpoint import reach
from dobonomodo.formula import Type
from dobonomodo.formula.types import BOOLEAN, DATE, INTEGER, TEXT, TIMESTAMP, DecimalType, SimpleType
from dobonomodo.model.plain import Document
from dobonomodo.plan.registration import United
from dobonomodo.storage.durable import sync, write_durably
from dobonomodo.storage.faults import is_passing, writing_failed
from dobonomodo.storage.fence import Fence
from dobonomodo.storage.kept import hash_file
from dobonomodo.storage.leftover import Leftover
from dobonomodo.storage.rewriting import Fit, clear_folder, fit_columns, hash_files, is_fitting, rewrite_files
from dobonomodo.storage.table_files import OWN, StoredTableFiles, TableFile, compare_files, free_key, is_key
from dobonomodo.storage.target import Commit, Inspected, Noted, Publication, Target

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.schema import Schema
    from pyiceberg.table import Table, Transaction
    from pyiceberg.types import IcebergType

KIND = "iceberg"
NOTE = "dobo"
"""How the names of properties begin in which it is noted what runs wrote."""
MANIFEST = "dobo.json"
"""The file beside data files that has their hashes."""
TRIES = 100
RETRIES = "commit.retry.num-retries"

_SPARK_TYPES = {"long": "bigint", "int": "int", "timestamptz": "timestamp", "timestamp": "timestamp_ntz"}


def load_table(catalog: Catalog, identifier: tuple[str, ...]) -> Table | None:
    """A table as it is now; None if there is none.

    What is committed to it is never tried again by the library: it would do so upon a later snapshot, which nobody has looked at.
    """
    from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError

    try:
        table = catalog.load_table(identifier)
    except (NoSuchTableError, NoSuchNamespaceError):
        return None
    once = {**table.metadata.properties, RETRIES: "0"}
    table.metadata = table.metadata.model_copy(update={"properties": once})
    return table


def local_path(address: str) -> Path:
    """The path of a file of this machine that a table names by its address."""
    return Path(unquote(urlparse(address).path)) if address.startswith("file:") else Path(address)


def list_iceberg(table: Table) -> list[TableFile]:
    """The files of the current snapshot, in an order that does not depend on the machine, with what the partitions say."""
    names, kinds = identity_columns(table), {field.name: field.field_type for field in table.schema().fields}
    files = [
        TableFile(
            task.file.file_path,
            task.file.file_size_in_bytes,
            tuple((name, _show(task.file.partition[at], kinds[name])) for at, name in names.get(task.file.spec_id, ())),
        )
        for task in table.scan().plan_files()
    ]
    return sorted(files, key=lambda file: file.path)


def identity_columns(table: Table) -> dict[int, list[tuple[int, str]]]:
    """By partition spec, the columns whose values are those of the partition, with their places in it."""
    from pyiceberg.transforms import IdentityTransform

    return {
        number: [
            (at, name)
            for at, field in enumerate(spec.fields)
            if isinstance(field.transform, IdentityTransform)
            and (name := table.schema().find_column_name(field.source_id)) is not None
        ]
        for number, spec in table.specs().items()
    }


def _show(value: object, kind: IcebergType) -> str | None:
    """A value of a partition as text that Spark casts to its type; days and moments are numbers there."""
    from pyiceberg.transforms import IdentityTransform

    transform: IdentityTransform[object] = IdentityTransform()
    return None if value is None else transform.to_human_string(kind, value)


def name_types(schema: Schema) -> dict[str, str]:
    """The columns of a table, with their types as Spark calls them."""
    return {field.name: _name_type(field.field_type) for field in schema.fields}


def _name_type(kind: IcebergType) -> str:
    name = str(kind).replace(" ", "")
    return _SPARK_TYPES.get(name, name)


def _find_type(name: str) -> Type:
    """The type of ours that a column of a table has; one that no run writes is a type of its own."""
    if name.startswith("decimal("):
        return DecimalType(*(int(part) for part in name[8:-1].split(",")))
    known = {"string": TEXT, "bigint": INTEGER, "boolean": BOOLEAN, "date": DATE, "timestamp": TIMESTAMP}
    return known.get(name) or SimpleType(name, name)


def _iceberg_type(kind: Type) -> IcebergType:
    from pyiceberg import types

    if isinstance(kind, DecimalType):
        return types.DecimalType(kind.precision, kind.scale)
    return {
        TEXT: types.StringType(),
        INTEGER: types.LongType(),
        BOOLEAN: types.BooleanType(),
        DATE: types.DateType(),
        TIMESTAMP: types.TimestamptzType(),
    }[kind]


@dataclass(frozen=True, slots=True)
class IcebergTarget:
    """One output of one run into a table."""

    open_catalog: Callable[[], Catalog]
    datasource_id: str
    schema: str
    table: str
    period: str
    run: str
    seq: int
    columns: Mapping[str, Type]
    fence: Fence
    attempt: int
    """The number of the attempt that wrote the files, which may be an earlier one than the one that publishes them."""

    @property
    def place(self) -> str:
        """The table: each has a history of its own."""
        return f"iceberg {self.datasource_id} {self.name}"

    @property
    def name(self) -> str:
        """How messages name it."""
        return f"{self.schema}.{self.table}"

    @property
    def _identifier(self) -> tuple[str, ...]:
        return (*self.schema.split("."), self.table)

    @property
    def _own(self) -> str:
        return f"{OWN}{self.run}-{self.seq}-"

    @property
    def _fence_key(self) -> str:
        return f"{NOTE}.fence.{_short(self.fence.key)}"

    @property
    def output_key(self) -> str:
        """The property that says what this operation of the project published last for the period."""
        return f"{NOTE}.output.{_short(f'{self.fence.key} {self.seq}')}"

    # --- before anything is computed

    def check(self, *, mode: str) -> United:
        """Refuse a table that cannot take the rows; gives the columns of those that stay there."""
        with self._explaining():
            table = self._load()
            if table is None:
                return United({})
            there = self._staying_columns(table, replaces=mode == "replace")
            fit_columns(there, [self.columns], table=self.name)
            return United(there)

    def _load(self) -> Table | None:
        table = load_table(self.open_catalog(), self._identifier)
        if table is None:
            return None
        fields = table.spec().fields
        keys = [name for _, name in identity_columns(table).get(table.spec().spec_id, ())]
        if len(fields) != 1 or len(keys) != 1 or not is_key(keys[0]):
            self._refuse("the table is not partitioned by `_run_period`: no run created it; choose another table")
        if keys[0].casefold() in {name.casefold() for name in self.columns}:
            self._refuse(f"the table is partitioned by `{keys[0]}`, which is now also a column; choose another table")
        if table.metadata.format_version > 2:
            self._refuse(f"the table has format version {table.metadata.format_version}, which cannot be written")
        return table

    def _find_key(self, table: Table) -> str:
        ((_, key),) = identity_columns(table)[table.spec().spec_id]
        return key

    def _stays(self, table: Table, *, replaces: bool) -> list[TableFile]:
        return [
            file for file in list_iceberg(table) if not replaces or [value for _, value in file.values] != [self.period]
        ]

    def _staying_columns(self, table: Table, *, replaces: bool) -> dict[str, Type]:
        """The columns of the rows that stay; none if all are replaced."""
        if not self._stays(table, replaces=replaces):
            return {}
        key = self._find_key(table)
        return {name: _find_type(kind) for name, kind in name_types(table.schema()).items() if name != key}

    # --- where nobody reads it yet

    def start(self) -> None:
        """The files need one column more than Spark writes."""

    def convert(self, files: Sequence[str]) -> bool:
        """Write the files again as the table spells and types their columns, with the run period as a column."""
        with self._explaining():
            table = self._load() or self._create()
            if table is None or self._read_note(table) is not None:
                return False
            there = self._staying_columns(table, replaces=True)
            fit = fit_columns(there, [self.columns], table=self.name)
            folder = clear_folder(self._data(table))
            rewrite_files(
                [Path(each) for each in files], folder, fit.columns, added=(self._find_key(table), self.period)
            )
        return True

    def _create(self) -> Table | None:
        """Make the table, without rows, unless somebody else does."""
        from pyiceberg.exceptions import NamespaceAlreadyExistsError, TableAlreadyExistsError
        from pyiceberg.partitioning import PartitionField, PartitionSpec
        from pyiceberg.schema import Schema
        from pyiceberg.transforms import IdentityTransform
        from pyiceberg.types import NestedField
        from sqlalchemy.exc import IntegrityError

        catalog, key = self.open_catalog(), free_key(self.columns)
        kinds = {**self.columns, key: TEXT}
        fields = [NestedField(at, name, _iceberg_type(kind)) for at, (name, kind) in enumerate(kinds.items(), 1)]
        spec = PartitionSpec(PartitionField(len(fields), 1000, IdentityTransform(), key))
        # Others may make the same at the same time.
        with suppress(NamespaceAlreadyExistsError, IntegrityError):
            catalog.create_namespace(self._identifier[:-1])
        with suppress(TableAlreadyExistsError):
            catalog.create_table(self._identifier, Schema(*fields), partition_spec=spec)
        return self._load()

    def _folder(self, table: Table) -> Path:
        return local_path(table.location()) / "data"

    def _data(self, table: Table, more: str = "", *, period: str | None = None) -> Path:
        """Where this attempt puts the output's files. Each attempt has a folder of its own: an earlier one may still be writing."""
        parent = f"{self._find_key(table)}={quote(self.period if period is None else period, safe='')}"
        return self._folder(table) / parent / f"{self._own}{self.attempt}{more}"

    # --- claiming and publishing

    def claim(self) -> None:
        """Refuse to go on if a later run was here; otherwise, earlier ones are refused from now on.

        A snapshot without rows: what is committed upon an earlier one then fails.
        """
        with self._explaining():
            for _ in self._tries():
                table = self._load() or self._create()
                if table is None:
                    continue
                if self._is_claimed(table):
                    return
                transaction = table.transaction()
                transaction.set_properties({self._fence_key: str(self.fence.number)})
                _append_nothing(transaction, {f"{NOTE}.claimed-by": self.run})
                if _commit(transaction):
                    return

    def _is_claimed(self, table: Table) -> bool:
        seen = int(table.properties.get(self._fence_key, 0))
        if seen > self.fence.number:
            raise self.fence.lost()
        return seen == self.fence.number

    def publish(self, group: Sequence[Publication]) -> None:
        """Replace the period's rows, or add to them, for all outputs that go to the table, in one transaction."""
        hashes: dict[Path, str] = {}
        with self._explaining():
            for _ in self._tries():
                table = self._load() or self._create()
                if table is None:
                    continue
                self._is_claimed(table)
                pending = [each for each in group if _iceberg_target(each.target).find_note(table) is None]
                if not pending or self._publish(table, pending, hashes):
                    return

    def _publish(self, table: Table, pending: Sequence[Publication], hashes: dict[Path, str]) -> bool:
        """One try to commit upon the snapshot that was read. ``hashes`` keeps what an earlier try has computed."""
        replacing = [at for at, each in enumerate(pending) if each.mode == "replace"]
        # What one output writes, a later one of the same run may replace.
        written = pending[max(replacing, default=0) :]
        targets = [_iceberg_target(each.target) for each in written]
        there = self._staying_columns(table, replaces=bool(replacing))
        fit = fit_columns(there, [each.columns for each in targets], table=self.name)
        own = {
            each.seq: each.fitting_files(table, publication, fit, hashes)
            for each, publication in zip(targets, written, strict=True)
        }
        added = [path for paths in own.values() for path in paths]
        if fit.widened:
            added += self._widen(table, fit, replaces=bool(replacing))
        notes = [
            replace(each.commit, fence=_iceberg_target(each.target).attempt).document()
            | {"folder": _folder_of(own.get(each.commit.seq, ()), self._folder(table))}
            for each in pending
        ]
        transaction = table.transaction()
        self._change_columns(transaction, table, fit, fresh=not there)
        self._remove(transaction, table, everything=bool(fit.widened), replaces=bool(replacing))
        keys = [_iceberg_target(each.target).output_key for each in pending]
        transaction.set_properties(
            {self._fence_key: str(self.fence.number), **dict(zip(keys, map(json.dumps, notes), strict=True))}
        )
        head = next((each.head for each in pending if each.head is not None), None)
        summary = {f"{NOTE}.outputs": json.dumps(notes)}
        summary |= {f"{NOTE}.history": json.dumps(head._asdict())} if head is not None else {}
        filled = [path for path in added if _has_rows(path)]
        if filled:
            transaction.add_files([str(path) for path in filled], summary, check_duplicate_files=False)
        else:
            _append_nothing(transaction, summary)
        reach("publish.during")
        return _commit(transaction)

    def _change_columns(self, transaction: Transaction, table: Table, fit: Fit, *, fresh: bool) -> None:
        """Add the columns that the table lacks; one whose type changes is another column of the same name."""
        key = self._find_key(table)
        has = {name: _find_type(kind) for name, kind in name_types(table.schema()).items() if name != key}
        gone = [
            name
            for name, kind in has.items()
            if (fresh and name not in fit.columns) or fit.columns.get(name, kind) != kind
        ]
        new = {name: kind for name, kind in fit.columns.items() if name not in has or name in gone}
        if gone:
            with transaction.update_schema(allow_incompatible_changes=True) as update:
                for name in gone:
                    update.delete_column((name,))
        if new:
            with transaction.update_schema() as update:
                for name, kind in new.items():
                    update.add_column((name,), _iceberg_type(kind))

    def _remove(self, transaction: Transaction, table: Table, *, everything: bool, replaces: bool) -> None:
        """Take the files of the period out of the table, or all of them where all were written again."""
        from pyiceberg.expressions import AlwaysTrue, EqualTo

        files = list_iceberg(table)
        if everything and files:
            transaction.delete(AlwaysTrue())
        elif replaces and len(self._stays(table, replaces=True)) < len(files):
            # The types of the library do not know its constructor.
            transaction.delete(EqualTo(self._find_key(table), self.period))  # type: ignore[call-arg, arg-type]

    def fitting_files(self, table: Table, publication: Publication, fit: Fit, hashes: dict[Path, str]) -> list[Path]:
        """The files of the output as the table is to have them, with their hashes beside them."""
        data, key = self._data(table), self._find_key(table)
        if not data.is_dir():
            self.convert(publication.files)
        columns = {**fit.columns, key: TEXT}
        files = sorted(data.glob("*.parquet"))
        if not all(is_fitting(path, columns) for path in files):
            files = rewrite_files(files, clear_folder(self._data(table, "-again")), columns)
        hash_files(hashes, files)
        noted = [{"name": path.name, "size": path.stat().st_size, "sha256": hashes[path]} for path in files]
        for folder in {path.parent for path in files}:
            write_durably(folder / MANIFEST, json.dumps(noted, indent=2).encode())
            sync(folder)
        for path in files:
            sync(path)
        return files

    def _widen(self, table: Table, fit: Fit, *, replaces: bool) -> list[Path]:
        """The files that stay, written again with wider numbers."""
        columns = {**fit.columns, self._find_key(table): TEXT}
        added: list[Path] = []
        for number, file in enumerate(self._stays(table, replaces=replaces)):
            ((_, period),) = file.values
            folder = clear_folder(self._data(table, f"-wider-{number}", period=period))
            added += rewrite_files([local_path(file.path)], folder, columns)
        for path in added:
            sync(path)
        return added

    def _tries(self) -> Iterator[int]:
        """Again and again while others commit to the same table, each time upon what they left."""
        for number in range(TRIES):
            yield number
            time.sleep(random.uniform(0, 0.02) * min(number + 1, 20))
        raise writing_failed(self.name, "other writers committed first each time", retry_helps=True)

    # --- afterwards

    def find_note(self, table: Table) -> Document | None:
        """What is noted of this output, if it is published."""
        text = table.properties.get(self.output_key)
        note: Document | None = json.loads(text) if text is not None else None
        return note if note is not None and note["run"] == self.run else None

    def _read_note(self, table: Table | None) -> Document | None:
        return self.find_note(table) if table is not None else None

    def find_commit(self) -> Commit | None:
        """What this output published, if it did and no later run of its project and period has since."""
        with self._explaining():
            note = self._read_note(self._load())
            return Commit.load(note) if note is not None else None

    def stored(self) -> StoredTableFiles:
        """Where the output is, once it is published."""
        with self._explaining():
            table = self._load()
            note = self._read_note(table)
            if table is None or note is None:
                raise AssertionError("it is published")
            folder = self._folder(table) / note["folder"] if note["folder"] else None
            listed = json.loads((folder / MANIFEST).read_text()) if folder is not None else []
            version = next(
                (each.snapshot_id for each in reversed(table.snapshots()) if self._made(each.summary)),
                table.metadata.current_snapshot_id or 0,
            )
            files = tuple(TableFile(str((folder or Path()) / each["name"]), each["size"]) for each in listed)
            hashes = tuple(each["sha256"] for each in listed)
            return StoredTableFiles(KIND, self.datasource_id, self.schema, self.table, version, files, hashes)

    def _made(self, summary: object) -> bool:
        text = getattr(summary, "additional_properties", {}).get(f"{NOTE}.outputs", "[]")
        return any((each["run"], each["seq"]) == (self.run, self.seq) for each in json.loads(text))

    def registered(self) -> tuple[Mapping[str, Type], StoredTableFiles]:
        """The columns of the table, and the files of its snapshot (C-64, C-86)."""
        with self._explaining():
            table = self._load()
            if table is None:
                raise AssertionError("it is published")
            key = self._find_key(table)
            columns = {name: _find_type(kind) for name, kind in name_types(table.schema()).items() if name != key}
            files = tuple(replace(file, values=()) for file in list_iceberg(table))
            version = table.metadata.current_snapshot_id or 0
            names = tuple(columns)
            return columns, StoredTableFiles(
                KIND, self.datasource_id, self.schema, self.table, version, files, None, names
            )

    def find_leftovers(self) -> list[Leftover]:
        """What attempts up to this fencing number wrote, and no transaction has."""
        with self._explaining():
            table = self._load()
            if table is None:
                return []
            note = self._read_note(table)
            known = {local_path(file.path).parent for file in list_iceberg(table)}
            published = str(note["fence"]) if note is not None else None
            found = [
                path
                for path in sorted(self._folder(table).glob(f"*/{self._own}*"))
                if (number := path.name.removeprefix(self._own).partition("-")[0]).isdigit()
                and int(number) <= self.fence.number
                and number != published
                and path not in known
            ]
            return [Leftover.of_path(path, kind="staged files", run=self.run) for path in found]

    @contextmanager
    def _explaining(self) -> Iterator[None]:
        try:
            yield
        except OSError as fault:
            raise writing_failed(self.name, fault.strerror or str(fault), retry_helps=is_passing(fault)) from fault
        except catalog_faults() as fault:
            raise writing_failed(self.name, explain_fault(fault), retry_helps=True) from fault

    def _refuse(self, detail: str) -> NoReturn:
        raise writing_failed(self.name, detail)


def catalog_faults() -> tuple[type[Exception], ...]:
    """What a catalog that cannot be reached or is busy raises."""
    from pyiceberg.exceptions import RESTError
    from sqlalchemy.exc import SQLAlchemyError

    return (RESTError, SQLAlchemyError)


def explain_fault(fault: BaseException) -> str:
    """What the library says, in one line."""
    return next(iter(str(fault).splitlines()), type(fault).__name__)


def _commit(transaction: Transaction) -> bool:
    """Commit upon the very snapshot that was read; False if there is a later one, which must be looked at first."""
    from pyiceberg.exceptions import CommitFailedException

    try:
        transaction.commit_transaction()
    except CommitFailedException:
        return False
    return True


def _append_nothing(transaction: Transaction, summary: dict[str, str]) -> None:
    with transaction.update_snapshot(snapshot_properties=summary).fast_append():
        pass


def _iceberg_target(target: Target) -> IcebergTarget:
    if not isinstance(target, IcebergTarget):
        raise AssertionError("what has the same place is of the same kind")
    return target


def _has_rows(path: Path) -> bool:
    import pyarrow.parquet as pq

    return bool(pq.read_metadata(path).num_rows)


def _folder_of(files: Sequence[Path], above: Path) -> str | None:
    return files[0].parent.relative_to(above).as_posix() if files else None


def _short(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:16]


def inspect_snapshot(stored: StoredTableFiles, table: Table | None, *, run: str, seq: int) -> Inspected:
    """Whether files are what their record says, and what snapshots note of the history."""
    names = [file.path for file in stored.files]
    changed, gone, right = compare_files(names, stored.hashes or (), lambda name: hash_file(local_path(name)))
    if table is None:
        return Inspected((), tuple(changed), (*gone, f"table `{stored.table}`"), right)
    heads, made = [], False
    for snapshot in table.snapshots():
        noted = snapshot.summary.additional_properties if snapshot.summary is not None else {}
        try:
            outputs = json.loads(noted.get(f"{NOTE}.outputs", "[]"))
            made = made or any((each["run"], each["seq"]) == (run, seq) for each in outputs)
            head = noted.get(f"{NOTE}.history")
            heads += [Noted.load(json.loads(head))] if head is not None else []
        except (ValueError, KeyError, TypeError):
            changed.append(f"what snapshots of table `{stored.table}` note of the history cannot be read")
    if not made:
        gone.append(f"the snapshot of the run in table `{stored.table}`")
    return Inspected(tuple(heads), tuple(dict.fromkeys(changed)), tuple(gone), right)

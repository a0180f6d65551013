"""An Iceberg table as a destination: one transaction of the catalog replaces the files of a run period.

The run period is a column of the files, so rows pass through the driver once. Publications are recorded in properties of the
table, one per store, project, period and operation, and in the summary of the snapshot.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from dobonomodo.failpoint import reach
from dobonomodo.formula import Type
from dobonomodo.formula.types import BOOLEAN, DATE, INTEGER, TEXT, TIMESTAMP, DecimalType, SimpleType
from dobonomodo.model.plain import Document
from dobonomodo.storage.iceberg_rest import commit_together, commits_together
from dobonomodo.storage.rewriting import Fit, clear_folder, rewrite_files
from dobonomodo.storage.table_files import StoredTableFiles, TableFile, compare_files, free_key
from dobonomodo.storage.table_files_target import TRIES, Change, TableFilesTarget
from dobonomodo.storage.table_home import TableHome
from dobonomodo.storage.target import Inspected, Noted, Publication
from dobonomodo.storage.tries import look_again

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.schema import Schema
    from pyiceberg.table import Table, Transaction
    from pyiceberg.table.snapshots import Snapshot
    from pyiceberg.types import IcebergType

KIND = "iceberg"
NOTE = "dobo"
"""How the names of properties begin in which it is noted what runs wrote."""
MANIFEST = "dobo.json"
"""The file next to the data files that holds their hashes."""
RETRIES = "commit.retry.num-retries"

_SPARK_TYPES = {"long": "bigint", "int": "int", "timestamptz": "timestamp", "timestamp": "timestamp_ntz"}


def load_table(catalog: Catalog, identifier: tuple[str, ...]) -> Table | None:
    """A table as it is now; None if there is none.

    Retries of the library are disabled: they would commit on a later snapshot, which was not checked.
    """
    from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError

    try:
        table = catalog.load_table(identifier)
    except (NoSuchTableError, NoSuchNamespaceError):
        return None
    once = {**table.metadata.properties, RETRIES: "0"}
    table.metadata = table.metadata.model_copy(update={"properties": once})
    return table


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
class IcebergTarget(TableFilesTarget["Table"]):
    """One output of one run into a table."""

    open_catalog: Callable[[], Catalog]
    open_home: Callable[[str], TableHome]
    """Gives the place of files that are below a path or an address."""
    warehouse: str
    schema: str
    catalog: str | None
    """The catalog, if it may commit several tables in one transaction."""

    kind: ClassVar[str] = KIND

    @property
    def place(self) -> str:
        """The table, which has a history of its own; the catalog, if it may commit several tables in one transaction."""
        return f"iceberg {self.catalog or f'{self.datasource_id} {self.name}'}"

    @property
    def namespace(self) -> str:
        """What the table is in."""
        return self.schema

    @property
    def _identifier(self) -> tuple[str, ...]:
        return (*self.schema.split("."), self.table)

    @property
    def _fence_key(self) -> str:
        return f"{NOTE}.fence.{_short(self.fence.key)}"

    @property
    def output_key(self) -> str:
        """The property that says what this operation of the project published last for the period."""
        return f"{NOTE}.output.{_short(f'{self.fence.key} {self.seq}')}"

    # --- the table

    def _open(self) -> Table | None:
        table = load_table(self.open_catalog(), self._identifier)
        if table is None:
            return None
        keys = [name for _, name in identity_columns(table).get(table.spec().spec_id, ())]
        self._require_key(keys if len(table.spec().fields) == 1 else ())
        if table.metadata.format_version > 2:
            self._refuse(f"the table has format version {table.metadata.format_version}, which cannot be written")
        return table

    def _create(self) -> Table | None:
        """Create the table, without rows, unless another process does."""
        from pyiceberg.exceptions import NamespaceAlreadyExistsError, TableAlreadyExistsError
        from pyiceberg.partitioning import PartitionField, PartitionSpec
        from pyiceberg.schema import Schema
        from pyiceberg.transforms import IdentityTransform
        from pyiceberg.types import NestedField

        catalog, key = self.open_catalog(), free_key(self.columns)
        kinds = {**self.columns, key: TEXT}
        fields = [NestedField(at, name, _iceberg_type(kind)) for at, (name, kind) in enumerate(kinds.items(), 1)]
        spec = PartitionSpec(PartitionField(len(fields), 1000, IdentityTransform(), key))
        refusals: tuple[type[Exception], ...] = (NamespaceAlreadyExistsError, *catalog_faults())
        # Others may make the same at the same time.
        try:
            catalog.create_namespace(self._identifier[:-1])
        except refusals:
            if not catalog.namespace_exists(self._identifier[:-1]):
                raise
        with suppress(TableAlreadyExistsError):
            catalog.create_table(self._identifier, Schema(*fields), partition_spec=spec)
        return self._open()

    def _prepare(self, table: Table | None) -> None:
        """Ask an object store, which refuses where it has to; a folder was made when the catalog was opened."""
        home = self.open_home(self.warehouse) if table is None else self._home(table)
        if home.is_remote:
            home.prepare()

    def _home(self, table: Table) -> TableHome:
        return self.open_home(f"{table.location()}/data")

    def _find_home(self, table: Table | None) -> TableHome | None:
        return self._home(table) if table is not None else None

    def _find_key(self, table: Table) -> str:
        ((_, key),) = identity_columns(table)[table.spec().spec_id]
        return key

    def _list(self, table: Table) -> list[TableFile]:
        return list_iceberg(table)

    def _all_columns(self, table: Table) -> dict[str, Type]:
        return {name: _find_type(kind) for name, kind in name_types(table.schema()).items()}

    def _version(self, table: Table) -> int:
        return table.metadata.current_snapshot_id or 0

    # --- where nobody reads it yet

    def start(self) -> None:
        """The files need one column more than Spark writes."""

    def convert(self, files: Sequence[str]) -> bool:
        """Write the files again as the table spells and types their columns, with the run period as a column."""
        with self._explaining():
            table = next(self._commit_attempts())
            if self.is_published(table):
                return False
            home, key = self._home(table), self._find_key(table)
            fit = self._fit(table, [self.columns], replaces=True)
            folder = clear_folder(self._folder(home, key))
            home.put(rewrite_files([Path(each) for each in files], folder, fit.columns, added=(key, self.period)))
        return True

    def _file_columns(self, table: Table, fit: Fit) -> Mapping[str, Type]:
        return {**fit.columns, self._find_key(table): TEXT}

    # --- claiming and publishing

    def _find_fence(self, table: Table) -> int | None:
        return int(table.properties.get(self._fence_key, 0))

    def _claim(self, table: Table) -> bool:
        """A snapshot without rows: what is committed upon an earlier one then fails."""
        transaction = table.transaction()
        transaction.set_properties({self._fence_key: str(self.fence.number)})
        _append_no_files(transaction, {f"{NOTE}.claimed-by": self.run})
        return _commit(transaction)

    def publish(self, group: Sequence[Publication]) -> None:
        """Publish all outputs that go to one catalog: in one transaction where it offers that, else table by table."""
        tables: dict[str, list[Publication]] = {}
        for each in group:
            tables.setdefault(self.like(each.target).name, []).append(each)
        if len(tables) > 1 and self._commits_together():
            self._publish_together(tuple(tables.values()))
            return
        for outputs in tables.values():
            TableFilesTarget.publish(self.like(outputs[0].target), outputs)

    def _commits_together(self) -> bool:
        with self._explaining():
            return commits_together(self.open_catalog())

    def _publish_together(self, tables: Sequence[Sequence[Publication]]) -> None:
        """Commit until each table says that its outputs are published, whatever the catalog answers."""
        hashes: dict[Path, str] = {}
        leads = [self.like(outputs[0].target) for outputs in tables]
        with self._explaining():
            for found in look_again(partial(_open_all, leads), name=self.name, tries=TRIES, pause=0.02):
                changes = [
                    (lead, change)
                    for lead, table, outputs in zip(leads, found, tables, strict=True)
                    if (change := lead.find_change(table, outputs, hashes)) is not None
                ]
                if not changes:
                    return
                names = [lead.name for lead, _ in changes]
                transactions = [(change.table, lead.fill_transaction(change, names)) for lead, change in changes]
                reach("publish.during")
                commit_together(transactions)

    def find_change(
        self, table: Table, outputs: Sequence[Publication], hashes: dict[Path, str]
    ) -> Change[Table] | None:
        """What is to be committed to the table; None if all its outputs are published. Fails if a later run has claimed it."""
        with self._explaining():
            self._is_claimed(table)
            pending = [each for each in outputs if not self.like(each.target).is_published(table)]
            return self._make_change(table, pending, hashes) if pending else None

    def open_or_create(self) -> Table | None:
        """The table as it is now; None if it has to be opened again."""
        with self._explaining():
            return self._open() or self._create()

    def _commit_change(self, change: Change[Table]) -> bool:
        transaction = self.fill_transaction(change, ())
        reach("publish.during")
        return _commit(transaction)

    def fill_transaction(self, change: Change[Table], together: Sequence[str]) -> Transaction:
        """The transaction of a change, which is not committed; ``together`` names the tables that are committed with it."""
        table, home = change.table, self._home(change.table)
        notes = [self._note(each, change, home) for each in change.pending]
        transaction = table.transaction()
        self._change_columns(transaction, table, change.fit, fresh=change.is_fresh)
        self._remove(transaction, table, everything=bool(change.fit.widened), replaces=change.replaces)
        keys = [self.like(each.target).output_key for each in change.pending]
        transaction.set_properties(
            {self._fence_key: str(self.fence.number), **dict(zip(keys, map(json.dumps, notes), strict=True))}
        )
        head = next((each.head for each in change.pending if each.head is not None), None)
        summary = {f"{NOTE}.outputs": json.dumps(notes)}
        summary |= {f"{NOTE}.history": json.dumps(head._asdict())} if head is not None else {}
        summary |= {f"{NOTE}.together": json.dumps(list(together))} if together else {}
        filled = [path for path in (*change.added, *(path for path, _ in change.widened)) if _has_rows(path)]
        if filled:
            transaction.add_files([home.locate(path) for path in filled], summary, check_duplicate_files=False)
        else:
            _append_no_files(transaction, summary)
        return transaction

    def _note(self, publication: Publication, change: Change[Table], home: TableHome) -> dict[str, object]:
        """What the snapshot says of one output; the hashes of its files are written next to them."""
        files = change.files.get(publication.commit.seq, ())
        folder = files[0].parent.relative_to(home.data).as_posix() if files else None
        if folder is not None:
            listed = [{"name": path.name, "size": path.stat().st_size, "sha256": change.hashes[path]} for path in files]
            home.write(f"{folder}/{MANIFEST}", json.dumps(listed, indent=2).encode())
        commit = replace(publication.commit, fence=self.like(publication.target).attempt)
        return commit.document() | {"folder": folder}

    def _change_columns(self, transaction: Transaction, table: Table, fit: Fit, *, fresh: bool) -> None:
        """Add the columns that the table lacks; one whose type changes is another column of the same name."""
        has = self._own_columns(table)
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

        files = self._list(table)
        if everything and files:
            transaction.delete(AlwaysTrue())
        elif replaces and len(self._staying_files(table, replaces=True)) < len(files):
            # The types of the library do not know its constructor.
            transaction.delete(EqualTo(self._find_key(table), self.period))  # type: ignore[call-arg, arg-type]

    # --- afterwards

    def is_published(self, table: Table) -> bool:
        """By the property of the operation, unless a later run of its project and period has published since."""
        return self._find_note(table) is not None

    def _find_note(self, table: Table) -> Document | None:
        text = table.properties.get(self.output_key)
        note: Document | None = json.loads(text) if text is not None else None
        return note if note is not None and note["run"] == self.run else None

    def _read_note(self, table: Table) -> Document:
        note = self._find_note(table)
        if note is None:
            raise AssertionError("it is published")
        return note

    def _read_stored(self, table: Table, note: Document) -> tuple[int, list[TableFile], list[str]]:
        home, folder = self._home(table), note["folder"]
        found = home.read(f"{folder}/{MANIFEST}") if folder is not None else b"[]"
        if found is None:
            self._refuse(f"`{home.uri}/{folder}/{MANIFEST}` is gone, which says what the run wrote")
        listed = json.loads(found)
        version = next(
            (each.snapshot_id for each in reversed(table.snapshots()) if any(self._find_own(each))),
            self._version(table),
        )
        files = [TableFile(home.locate(home.data / folder / each["name"]), each["size"]) for each in listed]
        return version, files, [each["sha256"] for each in listed]

    def _find_own(self, snapshot: Snapshot) -> Iterator[Document]:
        """What a snapshot notes of this output."""
        noted = snapshot.summary.additional_properties if snapshot.summary is not None else {}
        outputs = json.loads(noted.get(f"{NOTE}.outputs", "[]"))
        return (each for each in outputs if (each["run"], each["seq"]) == (self.run, self.seq))

    def _noted_attempts(self, table: Table) -> Iterator[int]:
        for snapshot in table.snapshots():
            yield from (each["fence"] for each in self._find_own(snapshot))
        if (note := self._find_note(table)) is not None:
            yield note["fence"]

    def _explain(self, fault: Exception) -> tuple[str, bool] | None:
        return (explain_fault(fault), True) if isinstance(fault, catalog_faults()) else None


def catalog_faults() -> tuple[type[Exception], ...]:
    """What a catalog that cannot be reached or is busy raises."""
    from pyiceberg.exceptions import RESTError
    from requests import RequestException
    from sqlalchemy.exc import SQLAlchemyError

    return (RESTError, RequestException, SQLAlchemyError)


def explain_fault(fault: BaseException) -> str:
    """What the library says, in one line."""
    return next(iter(str(fault).splitlines()), type(fault).__name__)


def _open_all(targets: Sequence[IcebergTarget]) -> list[Table] | None:
    """All tables as they are now; None if one has to be opened again."""
    tables = [table for each in targets if (table := each.open_or_create()) is not None]
    return tables if len(tables) == len(targets) else None


def _commit(transaction: Transaction) -> bool:
    """Commit on top of exactly the snapshot that was read; False if there is a later one, which must be read first."""
    from pyiceberg.exceptions import CommitFailedException

    try:
        transaction.commit_transaction()
    except CommitFailedException:
        return False
    return True


def _append_no_files(transaction: Transaction, summary: dict[str, str]) -> None:
    with transaction.update_snapshot(snapshot_properties=summary).fast_append():
        pass


def _has_rows(path: Path) -> bool:
    import pyarrow.parquet as pq

    return bool(pq.read_metadata(path).num_rows)


def _short(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:16]


def inspect_snapshot(
    stored: StoredTableFiles, table: Table | None, home: TableHome, *, run: str, seq: int
) -> Inspected:
    """Whether files are what their record says, and what snapshots note of the history."""
    names = [file.path for file in stored.files]
    changed, gone, right = compare_files(names, stored.hashes or (), home.hash)
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

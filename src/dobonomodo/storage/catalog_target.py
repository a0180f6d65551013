"""A table of a catalog as a destination: Spark stages Parquet files in the folder of the run, and one commit of Spark makes them rows.

The commit records run, operation, rows, digest and fencing number. How it builds on the version that was read is defined by
the log of each format (``catalog_log.py``).
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial, reduce
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from dobonomodo.formula import Columns, Type
from dobonomodo.formula.sql import quote_name, quote_text
from dobonomodo.formula.types import BOOLEAN, DATE, INTEGER, TEXT, TIMESTAMP, SimpleType, parse_type
from dobonomodo.model.plain import Document
from dobonomodo.plan.dataset import DatasetUse
from dobonomodo.plan.registration import United
from dobonomodo.storage.catalog_log import (
    LOGS,
    CatalogCommit,
    Description,
    TableLog,
    TableName,
    VersionNote,
    is_being_made,
    is_conflict,
    read_catalog,
)
from dobonomodo.storage.faults import writing_failed
from dobonomodo.storage.fence import Fence
from dobonomodo.storage.leftover import Leftover
from dobonomodo.storage.links import Links
from dobonomodo.storage.native import explain_spark, is_said_by_spark
from dobonomodo.storage.parquet import read_parquet
from dobonomodo.storage.rewriting import Fit, fit_columns
from dobonomodo.storage.storage import Session
from dobonomodo.storage.table_files import free_key, is_key
from dobonomodo.storage.target import Commit, Publication, Target
from dobonomodo.storage.transport import Transport
from dobonomodo.storage.tries import look_again

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

KIND = "table"
SESSION_CATALOG = "spark_catalog"
"""The catalog that every session of Spark has."""
TRIES = 30
_PATIENCE_SECONDS = 20
"""For so long another run may be about to make a table."""

_TYPES: Mapping[str, Type] = {
    "string": TEXT,
    "bigint": INTEGER,
    "boolean": BOOLEAN,
    "date": DATE,
    "timestamp": TIMESTAMP,
}
_NOT_HASHED = ("map", "variant")
_PASSING = ("Connection refused", "timed out", "UnknownHostException", "Service Unavailable", "No space left")


@dataclass(frozen=True, slots=True)
class StoredCatalogTable:
    """The version of a table that an output made, or the one that was registered."""

    datasource_id: str
    schema: str
    table: str
    version: int
    key: str
    """The column that holds the run period."""
    columns: tuple[str, ...] | None = None
    is_kept: bool = False
    """Whether it is the version that counts, whatever happens to the table."""

    @property
    def kind(self) -> str:
        """The kind of storage."""
        return KIND

    @property
    def shown(self) -> None:
        """The name of the destination says it."""

    @property
    def place(self) -> tuple[str | None, ...]:
        """The table, or one version of it."""
        table = ("table", self.datasource_id, self.schema, self.table)
        return (*table, str(self.version)) if self.is_kept or self.columns is not None else table

    @property
    def lasting(self) -> None:
        """Only Spark can read an earlier version."""

    def document(self) -> dict[str, object]:
        """As plain data."""
        columns = {"columns": list(self.columns)} if self.columns is not None else {}
        named = ("datasource_id", "schema", "table", "version", "key", "is_kept")
        return {"kind": self.kind, **{name: getattr(self, name) for name in named}, **columns}

    @classmethod
    def load(cls, document: Document) -> StoredCatalogTable:
        """From plain data."""
        columns = document.get("columns")
        return cls(
            document["datasource_id"],
            document["schema"],
            document["table"],
            int(document["version"]),
            document["key"],
            tuple(columns) if columns is not None else None,
            bool(document.get("is_kept")),
        )


def find_commits(notes: Sequence[VersionNote], *, run: str, seq: int) -> Iterator[tuple[int, Document]]:
    """What commits note of one output, with the versions that they made."""
    for each in notes:
        for output in each.note.get("outputs", ()):
            if (output["run"], output["seq"]) == (run, seq):
                yield each.version, output


@dataclass(frozen=True, slots=True)
class CatalogTarget:
    """One output of one run into a table of a catalog."""

    datasource_id: str
    name: TableName
    period: str
    run: str
    seq: int
    columns: Mapping[str, Type]
    fence: Fence
    attempt: int
    folder: Path
    """For links to staged files."""
    form: str
    """The format of a table that is created."""
    transport: Transport | None
    """The way to workers that do not see staged files."""
    session: Session

    @property
    def place(self) -> str:
        """The table: each has versions of its own."""
        return f"{KIND} {self.name.sql}"

    @property
    def _spark(self) -> SparkSession:
        return self.session()

    # --- the table

    def _open(self) -> tuple[TableLog, str] | None:
        """The log of the table and the column that holds the run period; refuses a table that no run can write to."""
        told = Description.ask(self._spark, self.name)
        if told is None:
            return None
        if told.provider not in LOGS:
            found = told.provider or "a view"
            self._refuse(f"the table is {found}, which has no versions; a run writes to {' or '.join(LOGS)}")
        if len(told.keys) != 1 or not is_key(told.keys[0]):
            self._refuse("the table is not partitioned by `_run_period`: no run created it; choose another table")
        (key,) = told.keys
        if key.casefold() in {name.casefold() for name in self.columns}:
            self._refuse(f"the table is partitioned by `{key}`, which is now also a column; choose another table")
        log = LOGS[told.provider](self._spark, self.name)
        self._refuse_reserved(type(log))
        return log, key

    def _refuse_reserved(self, kind: type[TableLog]) -> None:
        taken = [name for name in self.columns if name.casefold() in kind.reserved]
        if taken:
            names = ", ".join(f"`{name}`" for name in taken)
            renamed = ", ".join(f"{{column: {name}, as: {name.lstrip('_')}}}" for name in taken)
            self._refuse(f"{kind.provider} reserves {names}; write under another name: `columns: [..., {renamed}]`")

    def _own_columns(self, key: str) -> dict[str, Type]:
        """The columns of the table, without the one that holds the run period."""
        return {name: _find_type(kind) for name, kind in self._spark.table(self.name.sql).dtypes if name != key}

    def _fit(self, key: str, written: Sequence[Mapping[str, Type]]) -> Fit:
        """How rows with these columns go into the table. Columns may be added; the type of one stays (C-86)."""
        fit = fit_columns(self._own_columns(key), written, table=str(self.name))
        if fit.widened:
            shown = ", ".join(f"`{name}` to {fit.columns[name]}" for name in sorted(fit.widened))
            self._refuse(f"columns must be widened ({shown}), and a catalog's table is not rewritten; convert them")
        return fit

    # --- before anything is computed

    def check(self, *, mode: str) -> United:
        """Refuse a table that cannot accept the rows; returns the columns of the rows that stay."""
        del mode
        with self._explaining():
            opened = self._open()
            if opened is None:
                self._require_creatable()
                return United({})
            self._fit(opened[1], [self.columns])
            return United(self._own_columns(opened[1]))

    def _require_creatable(self) -> None:
        """Refuse to compute if the table cannot be created: the schema and the connector of the format must exist."""
        self._refuse_reserved(LOGS[self.form])
        if self.name.catalog == SESSION_CATALOG and re.fullmatch(r"[A-Za-z0-9_]+", self.name.table) is None:
            self._refuse(
                "Spark's own catalog takes letters, digits and `_` in the names of tables; choose another name"
            )
        self._spark.sql(f"SHOW TABLES IN {self.name.schema_sql}").collect()
        try:
            self._spark.sql(LOGS[self.form].probe.format(self.name.sql)).collect()
        except Exception as fault:
            if is_said_by_spark(fault) and "PARSE_SYNTAX_ERROR" in str(fault):
                self._refuse(f"Spark has no connector for {self.form} (docs/lake.md)")
            if not is_said_by_spark(fault):
                raise

    def start(self) -> None:
        """Spark stages in the folder of the run, and writes into the table when it is published."""

    def convert(self, files: Sequence[str]) -> bool:
        """What is staged stays as it is."""
        del files
        return False

    # --- claiming and publishing

    def claim(self) -> None:
        """Fail if a later run has claimed the table; otherwise the table refuses earlier runs from now on."""
        with self._explaining():
            for log, key in self._commit_attempts():
                # What is read of the table may be overtaken as well as what is written.
                with self._giving_way(key):
                    upon, notes = log.version(), log.notes()
                    if self._is_claimed(notes):
                        return
                    nothing = self._spark.table(self.name.sql).where("FALSE")
                    self._commit(log, nothing, upon=upon, outputs=(), replaced=None)

    def _is_claimed(self, notes: Sequence[VersionNote]) -> bool:
        own = [each.note["fence"]["number"] for each in notes if each.note["fence"]["key"] == self._fence_key]
        if own and max(own) > self.fence.number:
            raise self.fence.lost()
        return bool(own) and max(own) == self.fence.number

    @property
    def _fence_key(self) -> str:
        return sha256(self.fence.key.encode()).hexdigest()[:16]

    def publish(self, group: Sequence[Publication]) -> None:
        """Replace the period's rows, or add to them, for all outputs that go to the table, in one commit."""
        with self._explaining():
            for log, key in self._commit_attempts():
                with self._giving_way(key):
                    upon, notes = log.version(), log.notes()
                    # First, since what is there of the same run may be of a later attempt, which has the lease.
                    self._is_claimed(notes)
                    pending = [each for each in group if not any(self._like(each.target).find_own(notes))]
                    if not pending:
                        return
                    self._publish(log, key, pending, upon=upon)

    @contextmanager
    def _giving_way(self, key: str) -> Iterator[None]:
        """Leave it to the next try if somebody else committed first, or changed the columns for which rows were made."""
        there = self._own_columns(key)
        try:
            yield
        except Exception as fault:
            if not is_conflict(fault) and not (is_said_by_spark(fault) and self._own_columns(key) != there):
                raise

    def _publish(self, log: TableLog, key: str, pending: Sequence[Publication], *, upon: int) -> None:
        replacing = [at for at, each in enumerate(pending) if each.mode == "replace"]
        # What one output writes, a later one of the same run may replace.
        written = pending[max(replacing, default=0) :]
        self._add_columns(key, [self._like(each.target).columns for each in written])
        frames = [self._like(each.target).staged(each.staged_files(), key, self._own_columns(key)) for each in written]
        replaced = f"{quote_name(key)} = {quote_text(self.period)}" if replacing else None
        rows = reduce(lambda one, other: one.unionByName(other), frames)
        self._commit(log, rows, upon=upon, outputs=pending, replaced=replaced)

    def _add_columns(self, key: str, written: Sequence[Mapping[str, Type]]) -> None:
        """Add what the table lacks: NULL in the rows that are there."""
        has, fit = self._own_columns(key), self._fit(key, written)
        new = [f"{quote_name(name)} {kind.sql}" for name, kind in fit.columns.items() if name not in has]
        if new:
            self._spark.sql(f"ALTER TABLE {self.name.sql} ADD COLUMNS ({', '.join(new)})")

    def staged(self, files: Sequence[str], key: str, there: Mapping[str, Type]) -> DataFrame:
        """The rows of the output with all columns of the table."""
        use = DatasetUse(
            role="input",
            dataset_id=self.name.table,
            version=1,
            table=self.name.table,
            temporal_mode=None,
            columns=Columns(self.columns),
            nullable=frozenset(self.columns),
        )
        links = Links(self.folder / f"{self.seq}-{self.fence.number}", self.transport)
        rows = read_parquet(self._spark, [Path(each) for each in files], use, links=links, positions=False)
        own = {name.casefold(): quote_name(name) for name in self.columns}
        selected = [
            f"CAST({own.get(name.casefold(), 'NULL')} AS {kind.sql}) AS {quote_name(name)}"
            for name, kind in there.items()
        ]
        return rows.selectExpr(*selected, f"{quote_text(self.period)} AS {quote_name(key)}")

    def _commit(
        self,
        log: TableLog,
        rows: DataFrame,
        *,
        upon: int,
        outputs: Sequence[Publication],
        replaced: str | None,
    ) -> None:
        """Commit on top of the version that was read. The caller reads the table again to see whether this succeeded."""
        head = next((each.head for each in outputs if each.head is not None), None)
        commits = [replace(each.commit, fence=self._like(each.target).attempt) for each in outputs]
        note = {
            "fence": {"key": self._fence_key, "number": self.fence.number},
            "run": self.run,
            "period": self.period,
            "outputs": [each.document() for each in commits],
            "history": head._asdict() if head is not None else None,
        }
        branch = f"{self._own}{self.fence.number}"
        log.commit(CatalogCommit(rows, replaced, note, self._fence_key, self.fence.number, branch), upon=upon)

    def _commit_attempts(self) -> Iterator[tuple[TableLog, str]]:
        """Yield the current table for each retry while others commit to it; creates it if it does not exist."""
        return look_again(self._look, name=str(self.name), tries=TRIES, pause=0.05)

    def _look(self) -> tuple[TableLog, str] | None:
        """The current table, created if it does not exist; None if it has to be looked at again."""
        try:
            return self._open() or self._create()
        except Exception as fault:
            if not is_conflict(fault):
                raise
            return None

    def _create(self) -> tuple[TableLog, str] | None:
        """Create the table, without rows, unless another process does."""
        key, form = free_key(self.columns), LOGS[self.form]
        fields = ", ".join(f"{quote_name(name)} {kind.sql}" for name, kind in {**self.columns, key: TEXT}.items())
        properties = form.properties(tuple(self.columns)).items()
        given = ", ".join(f"{quote_text(name)} = {quote_text(value)}" for name, value in properties)
        making = (
            f"CREATE TABLE IF NOT EXISTS {self.name.sql} ({fields}) USING {form.provider} "
            f"PARTITIONED BY ({quote_name(key)})" + (f" TBLPROPERTIES ({given})" if given else "")
        )
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while True:
            try:
                self._spark.sql(making)
            except Exception as fault:
                if not is_being_made(fault):
                    raise
                opened = self._open()
                if opened is not None:
                    return opened
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.2)
            else:
                return self._open()

    def _like(self, target: Target) -> CatalogTarget:
        """Another output of the same group: what has the same place is of the same kind."""
        if not isinstance(target, CatalogTarget):
            raise AssertionError("what has the same place is of the same kind")
        return target

    # --- afterwards

    def find_own(self, notes: Sequence[VersionNote]) -> Iterator[tuple[int, Document]]:
        """What commits note of this output, with the versions that they made."""
        return find_commits(notes, run=self.run, seq=self.seq)

    def find_commit(self) -> Commit | None:
        """What this output published, if it did."""
        with self._explaining():
            opened = self._open()
            found = next(self.find_own(opened[0].notes()), None) if opened is not None else None
            return Commit.load(found[1]) if found is not None else None

    def stored(self) -> StoredCatalogTable:
        """Where the output is, once it is published."""
        with self._explaining():
            log, key = self._reopen()
            found = next(self.find_own(log.notes()), None)
            if found is None:
                self._refuse("the history of the table does not say any more what the run wrote")
            return self._locate(found[0], key)

    def registered(self) -> tuple[Mapping[str, Type], StoredCatalogTable]:
        """The columns of the table, and its version (C-64, C-86)."""
        with self._explaining():
            log, key = self._reopen()
            columns = self._own_columns(key)
            return columns, replace(self._locate(log.version(), key), columns=tuple(columns))

    def _reopen(self) -> tuple[TableLog, str]:
        opened = self._open()
        if opened is None:
            self._refuse("the table is gone")
        return opened

    def _locate(self, version: int, key: str) -> StoredCatalogTable:
        return StoredCatalogTable(self.datasource_id, self.name.schema, self.name.table, version, key)

    @property
    def _own(self) -> str:
        return f"dobo-{self.run}-{self.seq}-"

    def find_leftovers(self) -> list[Leftover]:
        """Branches of attempts up to this fencing number. What nobody committed is for the maintenance of the table."""
        with self._explaining():
            opened = self._open()
            if opened is None:
                return []
            own = [each for each in opened[0].branches() if self._is_own_attempt(each)]
            return [
                Leftover("branch", f"{self.name} {each}", self.run, 0, partial(opened[0].drop_branch, each))
                for each in own
            ]

    def _is_own_attempt(self, branch: str) -> bool:
        number = branch.removeprefix(self._own)
        return branch.startswith(self._own) and number.isdigit() and int(number) <= self.fence.number

    @contextmanager
    def _explaining(self) -> Iterator[None]:
        try:
            yield
        except Exception as fault:
            if not is_said_by_spark(fault):
                raise
            text = explain_spark(fault)
            passing = any(word in str(fault) for word in _PASSING)
            raise writing_failed(str(self.name), text, retry_helps=passing) from fault

    def _refuse(self, detail: str) -> NoReturn:
        raise writing_failed(str(self.name), detail)


def _find_type(name: str) -> Type:
    """The type of ours that a column of a table has; one that no run writes is a type of its own."""
    if name.startswith("decimal("):
        return parse_type(name) or SimpleType(name, name)
    return _TYPES.get(name) or SimpleType(name, name)


def why_gone(spark: SparkSession, name: TableName, version: int) -> str | None:
    """Why the rows of a version cannot be read; None if they can. Formats answer much from their logs: only reading all tells."""
    try:
        frame = read_catalog(spark, name, version)
        names = ", ".join(quote_name(column) for column, kind in frame.dtypes if not kind.startswith(_NOT_HASHED))
        frame.selectExpr(f"count_if(xxhash64({names}) = 0)").collect()
    except Exception as fault:
        if not is_said_by_spark(fault):
            raise
        return explain_spark(fault)
    return None

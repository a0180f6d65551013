"""Tables that a Spark catalog knows by name: their versions, and how a new version is committed.

All of it goes through SQL and frames of Spark, so it works wherever Spark has the connector of the format, and with every
catalog. The catalog tells the format of a table. A table in a format without versions can be read, but not written.
"""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from dobonomodo.failpoint import reach
from dobonomodo.formula.sql import quote_name, quote_text
from dobonomodo.model.plain import Document
from dobonomodo.storage.native import is_said_by_spark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

NOTE = "dobo"
"""The key under which a commit notes what runs wrote."""
EMPTY = -1
"""The version of an empty table, if the format has none for it."""

_QUESTIONS = 20
"""How often a question about a table is repeated while others commit to it."""
_COUNTER = 40
"""The lower bits of a transaction number hold the version of the table; the bits above hold the fencing number."""
_NOT_THERE = ("TABLE_OR_VIEW_NOT_FOUND", "SCHEMA_NOT_FOUND", "NoSuchTableException", "NoSuchNamespaceException")
_CONFLICT = re.compile(
    r"DELTA_CONCURRENT_|DELTA_METADATA_CHANGED|DELTA_PROTOCOL_CHANGED|DELTA_SCHEMA_CHANGE|DELTA_MAX_COMMIT_RETRIES"
    r"|Concurrent\w*Exception|MetadataChangedException"
    r"|Cannot fast-forward|Commit(Failed|StateUnknown)Exception|unknown snapshot|Failed to enforce scan consistency"
)
_BEING_MADE = re.compile(r"DELTA_CREATE_TABLE_|(TABLE|VIEW)_ALREADY_EXISTS|AlreadyExistsException")


@dataclass(frozen=True, slots=True)
class TableName:
    """The name of a table, from the catalog on."""

    catalog: str
    schema: str
    table: str

    @property
    def within(self) -> tuple[str, ...]:
        """Its parts below the catalog."""
        return (*self.schema.split("."), self.table)

    @property
    def sql(self) -> str:
        """As Spark takes it."""
        return _name(self.catalog, *self.within)

    @property
    def schema_sql(self) -> str:
        """The schema, as Spark takes it."""
        return _name(self.catalog, *self.within[:-1])

    def __str__(self) -> str:
        return f"{self.catalog}.{self.schema}.{self.table}"


def _name(*parts: str) -> str:
    return ".".join(map(quote_name, parts))


def is_not_there(fault: BaseException) -> bool:
    """Whether Spark says that there is no such table."""
    return is_said_by_spark(fault) and any(word in str(fault) for word in _NOT_THERE)


def is_conflict(fault: BaseException) -> bool:
    """Whether another process committed first."""
    return is_said_by_spark(fault) and _CONFLICT.search(str(fault)) is not None


def is_being_made(fault: BaseException) -> bool:
    """Whether somebody else may be about to make the table: its first files are there, and the catalog does not know it yet."""
    return is_conflict(fault) or (is_said_by_spark(fault) and _BEING_MADE.search(str(fault)) is not None)


@dataclass(frozen=True, slots=True)
class Description:
    """What the catalog says of a table."""

    provider: str
    keys: tuple[str, ...]
    """The columns that it is partitioned by."""

    @classmethod
    def ask(cls, spark: SparkSession, name: TableName) -> Description | None:
        """Of a table as it is now; None if there is none."""
        try:
            told = [(row[0], row[1]) for row in spark.sql(f"DESCRIBE TABLE EXTENDED {name.sql}").collect()]
        except Exception as fault:
            if is_not_there(fault):
                return None
            raise
        details = dict(told[_find(told, "# Detailed Table Information") :])
        start = _find(told, "# Partition Information") + 2
        keys = [column for column, _ in told[start : start + _find([*told[start:], ("", "")], "")]]
        transforms = [column for column, kind in told[_find(told, "# Partitioning") :] if column.startswith("Part ")]
        return cls(str(details.get("Provider") or "").lower(), (*keys, *transforms))


def _find(told: Sequence[tuple[str, str]], heading: str) -> int:
    """Where a part of a description begins; its end if it is not there."""
    return next((at for at, (found, _) in enumerate(told) if found == heading), len(told))


@dataclass(frozen=True, slots=True)
class VersionNote:
    """What the commit that made a version notes of runs."""

    version: int
    note: Document


@dataclass(frozen=True, slots=True, eq=False)
class CatalogCommit:
    """Rows that are to become part of a table."""

    rows: DataFrame
    replaced: str | None
    """SQL for those that go."""
    note: Mapping[str, object]
    key: str
    """What the fencing number is of."""
    fence: int
    branch: str
    """A name that no other attempt has."""


@dataclass(frozen=True, slots=True)
class TableLog(ABC):
    """The versions of one table."""

    spark: SparkSession
    name: TableName

    provider: ClassVar[str]
    reserved: ClassVar[frozenset[str]] = frozenset()
    """Names that no column can have."""
    probe: ClassVar[str]
    """A statement over a table that Spark does not understand without the connector."""

    @abstractmethod
    def version(self) -> int:
        """The version that readers get."""

    @abstractmethod
    def notes(self) -> list[VersionNote]:
        """What runs noted in the commits that led to this version, as far back as the table tells; the latest first."""

    @abstractmethod
    def commit(self, change: CatalogCommit, *, upon: int) -> None:
        """Commit, unless a conflicting version was committed; the caller checks afterwards whether the commit exists."""

    @classmethod
    def properties(cls, columns: Sequence[str]) -> Mapping[str, str]:
        """Of a table that is to be created."""
        del columns
        return {}

    def branches(self) -> list[str]:
        """Branches of the table that attempts may have left."""
        return []

    def drop_branch(self, branch: str) -> None:
        """Remove a branch that an attempt left."""
        del branch


class DeltaLog(TableLog):
    """The versions of a Delta table. The fencing number is the number of a transaction in its log.

    Delta silently skips a write whose transaction number is not higher than the last one. So the number of a write consists of
    the fencing number and the version of the table that was read, and the writer checks whether its commit exists.
    """

    provider: ClassVar[str] = "delta"
    probe: ClassVar[str] = "DESCRIBE HISTORY {} LIMIT 1"

    def version(self) -> int:
        """The latest."""
        return int(self.spark.sql(f"DESCRIBE HISTORY {self.name.sql} LIMIT 1").collect()[0]["version"])

    def notes(self) -> list[VersionNote]:
        """From the history of the table."""
        history = self.spark.sql(f"DESCRIBE HISTORY {self.name.sql}").where("userMetadata IS NOT NULL")
        found = [VersionNote(row[0], _read(row[1])) for row in history.select("version", "userMetadata").collect()]
        return sorted((each for each in found if each.note), key=lambda each: -each.version)

    def commit(self, change: CatalogCommit, *, upon: int) -> None:
        """One commit of Delta. It conflicts with others of the same key, and with others that change the rows that go."""
        reach("publish.during")
        writer = change.rows.write.format(self.provider).mode("append" if change.replaced is None else "overwrite")
        if change.replaced is not None:
            writer = writer.option("replaceWhere", change.replaced)
        numbered = writer.option("txnAppId", f"{NOTE} {change.key}").option(
            "txnVersion", (change.fence << _COUNTER) + upon + 1
        )
        numbered.option("userMetadata", _write(change.note)).saveAsTable(self.name.sql)

    @classmethod
    def properties(cls, columns: Sequence[str]) -> Mapping[str, str]:
        """Column mapping, where Parquet files cannot have the names as they are."""
        odd = any(re.search(r"[ ,;{}()\n\t=]", name) for name in columns)
        return {"delta.columnMapping.mode": "name"} if odd else {}


class IcebergLog(TableLog):
    """The versions of an Iceberg table: a snapshot is created on a branch that starts at the one that was read.

    The main branch is then fast-forwarded, which Iceberg does only if it has not moved.
    """

    provider: ClassVar[str] = "iceberg"
    probe: ClassVar[str] = "ALTER TABLE {} DROP BRANCH IF EXISTS `dobo-probe`"
    reserved: ClassVar[frozenset[str]] = frozenset(
        {
            "_file",
            "_pos",
            "_deleted",
            "_spec_id",
            "_partition",
            "_row_id",
            "_last_updated_sequence_number",
            "_change_type",
            "_change_ordinal",
            "_commit_snapshot_id",
        }
    )

    def _part(self, part: str) -> str:
        return f"{self.name.sql}.{quote_name(part)}"

    def version(self) -> int:
        """The snapshot of the main branch."""
        found = self._ask(f"SELECT snapshot_id FROM {self._part('refs')} WHERE name = 'main'")
        return int(found[0][0]) if found else EMPTY

    def notes(self) -> list[VersionNote]:
        """From the summaries of the snapshots that led to the current one; other branches do not count."""
        own = (
            f"SELECT made.snapshot_id, made.summary[{quote_text(NOTE)}] FROM {self._part('snapshots')} made "
            f"JOIN {self._part('history')} led ON led.snapshot_id = made.snapshot_id AND led.is_current_ancestor "
            f"WHERE made.summary[{quote_text(NOTE)}] IS NOT NULL ORDER BY led.made_current_at DESC"
        )
        found = [VersionNote(int(row[0]), _read(row[1])) for row in self._ask(own)]
        return [each for each in found if each.note]

    def _ask(self, query: str) -> list[Row]:
        """The rows of a query; asked again if others committed between its analysis and its scan."""
        for _ in range(_QUESTIONS):
            try:
                return self.spark.sql(query).collect()
            except Exception as fault:
                if not is_conflict(fault):
                    raise
        return self.spark.sql(query).collect()

    def commit(self, change: CatalogCommit, *, upon: int) -> None:
        """A snapshot on a branch, then a fast-forward of the main branch."""
        start = "" if upon == EMPTY else f" AS OF VERSION {upon}"
        self.spark.sql(f"ALTER TABLE {self.name.sql} CREATE OR REPLACE BRANCH {quote_name(change.branch)}{start}")
        try:
            self._move(change)
        finally:
            # What cannot be dropped now is found by `dobo clean`.
            with suppress(Exception):
                self.drop_branch(change.branch)

    def _move(self, change: CatalogCommit) -> None:
        """Make the snapshot on the branch, and move the table there."""
        from pyspark.sql.functions import expr

        writer = change.rows.writeTo(self._part(f"branch_{change.branch}"))
        noting = writer.option(f"snapshot-property.{NOTE}", _write(change.note))
        if change.replaced is None:
            noting.append()
        else:
            noting.overwrite(expr(change.replaced))
        reach("publish.during")
        within = quote_text(_name(*self.name.within))
        self.spark.sql(
            f"CALL {quote_name(self.name.catalog)}.system.fast_forward("
            f"table => {within}, branch => 'main', to => {quote_text(change.branch)})"
        ).collect()

    def branches(self) -> list[str]:
        """All but the main one."""
        found = self._ask(f"SELECT name FROM {self._part('refs')} WHERE name <> 'main'")
        return [str(row[0]) for row in found]

    def drop_branch(self, branch: str) -> None:
        """Its files are for the expiry of snapshots."""
        self.spark.sql(f"ALTER TABLE {self.name.sql} DROP BRANCH IF EXISTS {quote_name(branch)}")


LOGS: Mapping[str, type[TableLog]] = {each.provider: each for each in (DeltaLog, IcebergLog)}
"""How versions are kept, by what the catalog calls the format."""


def read_catalog(spark: SparkSession, name: TableName, version: int | None) -> DataFrame:
    """The rows of a table: as they are now, or as they were at a version."""
    if version is None:
        return spark.table(name.sql)
    if version == EMPTY:
        return spark.table(name.sql).where("FALSE")
    return spark.sql(f"SELECT * FROM {name.sql} VERSION AS OF {version}")


def _write(note: Mapping[str, object]) -> str:
    return json.dumps({NOTE: note})


def _read(text: str) -> Document:
    """The parsed note; empty if another tool wrote it."""
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    note = found.get(NOTE) if isinstance(found, dict) else None
    return note if isinstance(note, dict) else {}

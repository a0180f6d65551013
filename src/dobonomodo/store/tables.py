"""The tables of the store, and columns whose values are the same in every database."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NoReturn

from sqlalchemy import Column, Index, Integer, MetaData, Table, Text, text
from sqlalchemy.types import TypeDecorator
from typing_extensions import override

from dobonomodo.model.plain import Document, render_document
from dobonomodo.problems import InternalError, Rejected
from dobonomodo.problems.store import TextReason, UnstorableText

if TYPE_CHECKING:
    from sqlalchemy import Dialect

NAME_LIMIT = 255
"""Two names of four bytes a character fit into an index entry of PostgreSQL."""

SHOWN_AT_MOST = 40

_SURROGATE = re.compile("[\ud800-\udfff]")


class PlainText(TypeDecorator[str]):
    """Text without characters that PostgreSQL cannot store, so that both databases accept the same values."""

    impl = Text
    cache_ok = True

    @override
    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        if value is not None:
            _check_text(value)
        return value


class Name(TypeDecorator[str]):
    """A short text that identifies something."""

    impl = Text
    cache_ok = True

    @override
    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        if value is not None:
            _check_name(value)
        return value


class Canonical:
    """A kind of value that has one text only."""

    def is_canonical(self, text: str | None) -> bool:
        """Whether a text is the one that this program writes for some value."""
        raise NotImplementedError


class Instant(TypeDecorator[datetime], Canonical):
    """A moment, as UTC text that sorts by time."""

    impl = Text
    cache_ok = True

    @override
    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> str | None:
        if value is None:
            return None
        if value.tzinfo is None:
            raise InternalError("a time without a time zone cannot be stored")
        return value.astimezone(UTC).isoformat(timespec="microseconds")

    @override
    def process_result_value(self, value: str | None, dialect: Dialect) -> datetime | None:
        return None if value is None else datetime.fromisoformat(value)

    @override
    def is_canonical(self, text: str | None) -> bool:
        try:
            found = datetime.fromisoformat(text) if text is not None else None
        except ValueError:
            return False
        return found is None or found.astimezone(UTC).isoformat(timespec="microseconds") == text


class Json(TypeDecorator[Document], Canonical):
    """A JSON object as canonical text: sorted, without spaces, ASCII alone."""

    impl = Text
    cache_ok = True

    @override
    def process_bind_param(self, value: Document | None, dialect: Dialect) -> str | None:
        return None if value is None else render_document(value)

    @override
    def process_result_value(self, value: str | None, dialect: Dialect) -> Document | None:
        return None if value is None else json.loads(value)

    @override
    def is_canonical(self, text: str | None) -> bool:
        try:
            return text is None or render_document(json.loads(text)) == text
        except ValueError:
            return False


def _check_text(value: str) -> None:
    if "\0" in value:
        _refuse(value, TextReason.NUL)
    if _SURROGATE.search(value):
        _refuse(value, TextReason.SURROGATE)


def _check_name(value: str) -> None:
    if not value:
        _refuse(value, TextReason.EMPTY)
    if len(value) > NAME_LIMIT:
        _refuse(value, TextReason.TOO_LONG)
    _check_text(value)


def _refuse(value: str, reason: TextReason) -> NoReturn:
    shown = value[:SHOWN_AT_MOST].encode("utf-8", "replace").decode()
    raise Rejected([UnstorableText(text=shown, reason=reason, limit=NAME_LIMIT)])


METADATA = MetaData()

VERSION = Table(
    "dobo_version",
    METADATA,
    Column("kind", Name, primary_key=True),
    Column("id", Name, primary_key=True),
    Column("version", Integer, primary_key=True, autoincrement=False),
    Column("fingerprint", Name, nullable=False),
    Column("document", Json, nullable=False),
    Column("text", PlainText),
    Column("status", Name, nullable=False),
    Column("created_at", Instant, nullable=False),
    Column("created_by", Name, nullable=False),
    Column("updated_at", Instant, nullable=False),
    Column("updated_by", Name, nullable=False),
    Column("pinned_dataset", Name),
    Column("pinned_version", Integer),
    Column("activated_at", Instant),
    Column("activated_by", Name),
    Column("conflict", Json),
    Column("location", Json),
    Column("origin", Name),
)

_LIVE = text("kind = 'project' AND status IN ('active', 'conflict')")
Index("dobo_version_live", VERSION.c.id, unique=True, sqlite_where=_LIVE, postgresql_where=_LIVE)
Index("dobo_version_origin", VERSION.c.kind, VERSION.c.id, VERSION.c.origin, unique=True)

HISTORY = Table(
    "dobo_history",
    METADATA,
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("at", Instant, nullable=False),
    Column("by", Name, nullable=False),
    Column("event", Name, nullable=False),
    Column("kind", Name, nullable=False),
    Column("id", PlainText, nullable=False),
    Column("version", Integer),
    Column("calendar", Name),
    Column("project", Name),
    Column("period", Name),
    Column("before", Name),
    Column("after", Name),
    Column("reason", PlainText),
    Column("detail", Json),
    Column("previous", Name, nullable=False),
    Column("hash", Name, nullable=False),
)
Index("dobo_history_kind", HISTORY.c.kind, HISTORY.c.event)
Index("dobo_history_project", HISTORY.c.project)
Index("dobo_history_period", HISTORY.c.period)

PERIOD = Table(
    "dobo_period",
    METADATA,
    Column("calendar", Name, primary_key=True),
    Column("identifier", Name, primary_key=True),
    Column("status", Name, nullable=False),
    Column("changed_at", Instant, nullable=False),
    Column("changed_by", Name, nullable=False),
)

RUN = Table(
    "dobo_run",
    METADATA,
    Column("id", Name, primary_key=True),
    Column("project", Name, nullable=False),
    Column("version", Integer),
    Column("period", Name, nullable=False),
    Column("status", Name, nullable=False),
    Column("by", Name, nullable=False),
    Column("created_at", Instant, nullable=False),
    Column("updated_at", Instant, nullable=False),
    Column("snapshot", Json, nullable=False),
    Column("progress", Json, nullable=False),
    Column("fence", Integer),
)
Index("dobo_run_latest", RUN.c.created_at)

LEASE = Table(
    "dobo_lease",
    METADATA,
    Column("project", Name, primary_key=True),
    Column("period", Name, primary_key=True),
    Column("fence", Integer, nullable=False),
    Column("token", Name),  # NULL after a release; the row stays, so that fencing numbers only grow.
    Column("holder", Name, nullable=False),
    Column("renewals", Integer, nullable=False),
    Column("taken_at", Instant, nullable=False),
)

STORE = Table("dobo_store", METADATA, Column("id", Name, primary_key=True))
"""One row with the unique id of the store."""

AUDITED = (VERSION, HISTORY, PERIOD, RUN)
"""The history, and the tables that can be derived from it."""

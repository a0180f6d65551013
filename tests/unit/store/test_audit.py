"""Any change behind the back of the store is found, whichever record it is in."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from dobonomodo.store import (
    Definition,
    PeriodEvent,
    PeriodStatus,
    Pin,
    Run,
    Store,
    StoreAudit,
    Subject,
    audit_store,
    open_store,
)
from tests.searching import tries
from tests.world import new_store

AT = datetime(2026, 2, 3, 8, 0, 0, 123456, tzinfo=UTC)
TABLES = ("dobo_version", "dobo_history", "dobo_period", "dobo_run")


def define(kind: str, name: str, content: str = "a") -> Definition:
    document = {"id": name, "content": content, "title": "Zürich"}
    return Definition(kind=kind, id=name, fingerprint=f"f-{content}", document=document, text=f"{kind}: {content} # ü")


def fill(store: Store) -> None:
    """A little of everything."""
    later = (AT + timedelta(minutes=number) for number in range(1, 100))
    store.apply([define("dataset", "lines"), define("project", "close"), define("calendar", "months")], at=AT, by="ann")
    store.apply([define("project", "close", "b")], at=next(later), by="ben")
    for version, content in ((1, "f-a"), (2, "f-b")):
        store.activate("close", version, fingerprint=content, pin=Pin("lines", 1), at=next(later), by="ann")
    store.mark_conflict("close", 2, report={"column": "gone"}, at=next(later), by="ann")
    starts = {"months": PeriodStatus.OPEN}
    lease = store.take_lease("close", "2026-01", token="t", holder="ann", at=AT)
    run = Run(
        id="r1",
        project="close",
        version=2,
        period="2026-01",
        status="running",
        by="ann",
        created_at=next(later),
        updated_at=AT,
        snapshot={"clock": "x", "inputs": {"a": [1, 2]}},
        progress={},
        fence=lease.fence,  # type: ignore[union-attr]
    )
    store.put_run(run)
    progress = {"outputs": [{"digest": "ab-3", "rows": 3}]}
    changed = {"before": "running", "after": "completed", "at": next(later), "by": "ann", "progress": progress}
    store.change_run_status("r1", **changed)  # type: ignore[arg-type]
    closed = define("dataset", "closed")
    store.register(closed, location={"folder": "out"}, origin="r1/4", at=next(later), by="ann")
    subject = Subject.of_run("r1", project="close", period="2026-01", version=2)
    store.sign(subject, "print", at=next(later), by="cem", comment="checked")
    store.release_lease(lease)  # type: ignore[arg-type]
    store.change_period("2026-01", event=PeriodEvent.CLOSE, starts=starts, at=next(later), by="dora", reason="done")


def audit(path: Path) -> StoreAudit:
    store = open_store(f"sqlite:///{path.name}", root=path.parent)
    try:
        return audit_store(store, kinds=("dataset", "project", "calendar"), calendars=("months",))
    finally:
        store.close()


def is_clean(found: StoreAudit) -> bool:
    return found.broken is None and not (found.damage or found.doubts or found.unproved)


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("store")
    store = new_store(root)
    fill(store)
    store.close()
    return root / "store.db"


@pytest.fixture
def path(filled: Path, tmp_path: Path) -> Path:
    copy = tmp_path / "store.db"
    copy.write_bytes(filled.read_bytes())
    return copy


def change(path: Path, statement: str, *values: Any) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        assert connection.execute(statement, values).rowcount


def test_a_store_that_nobody_touched(path: Path) -> None:
    found = audit(path)
    assert is_clean(found), (found.broken, found.damage, found.doubts, found.unproved)
    assert (len(found.history), found.versions, found.periods, len(found.runs)) == (13, 5, 1, 1)


@pytest.mark.parametrize("table", TABLES)
def test_a_removed_record_is_found(path: Path, table: str) -> None:
    change(path, f"DELETE FROM {table} WHERE rowid = (SELECT min(rowid) FROM {table})")
    assert not is_clean(audit(path))


def test_a_run_that_the_history_does_not_know_is_found(path: Path) -> None:
    columns = "project, version, period, status, by, created_at, updated_at, snapshot, progress, fence"
    change(path, f"INSERT INTO dobo_run (id, {columns}) SELECT 'r2', {columns} FROM dobo_run")
    assert [(each.subject, each.detail) for each in audit(path).doubts] == [("run r2", "the history does not know it")]


def test_what_is_older_than_the_history_is_not_proved_and_not_doubted(path: Path) -> None:
    change(path, "UPDATE dobo_run SET id = 'r0', created_at = '2020-01-01T00:00:00.000000+00:00'")
    found = audit(path)
    assert found.unproved == ("run r0",)
    assert [each.subject for each in found.doubts] == ["run r1"]


def cells(path: Path) -> Iterator[tuple[str, int, str, object]]:
    """Every value of every record."""
    with closing(sqlite3.connect(path)) as connection:
        for table in TABLES:
            rows = connection.execute(f"SELECT rowid, * FROM {table} ORDER BY rowid")
            names = [each[0] for each in rows.description]
            for row in rows.fetchall():
                yield from ((table, row[0], name, value) for name, value in zip(names[1:], row[1:], strict=True))


def tamper(value: object, chance: random.Random) -> object:
    """A value with one byte changed; the bytes of a number are its digits."""
    content = bytearray(str(value).encode())
    at = chance.randrange(len(content))
    content[at] = chance.choice([byte for byte in range(32, 127) if byte != content[at]])
    text = content.decode(errors="replace")
    return int(text) if isinstance(value, int) and text.isdigit() and int(text) != value else text


@pytest.mark.search
def test_any_changed_byte_is_found(path: Path, record_property: Any) -> None:
    chance, original = random.Random(20260203), path.read_bytes()
    known = [cell for cell in cells(path) if cell[3] not in (None, "")]
    count = tries(sample=20, full=1_000)
    for number in range(count):
        table, row, column, value = chance.choice(known)
        path.write_bytes(original)
        try:
            change(path, f"UPDATE {table} SET {column} = ? WHERE rowid = ?", tamper(value, chance), row)
        except sqlite3.IntegrityError:
            continue  # the database refused it
        assert not is_clean(audit(path)), (number, table, row, column, value)
    record_property("changed bytes", count)

"""Runs as their records say they went, for the reports about them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from html.parser import HTMLParser
from typing import Any

from dobonomodo.plan.counts import JoinCounts, OperationCounts, UnmatchedKey
from dobonomodo.runs import Output, RunView
from dobonomodo.runs.figures import Figures, FirstRows, OutputFigures
from dobonomodo.storage.folder import StoredFiles
from dobonomodo.storage.parquet import ParquetFormat
from dobonomodo.store import Run
from tests.world import CLOCK

SNAPSHOT: Mapping[str, Any] = {
    "format": 1,
    "project": {"id": "close", "name": "Close", "version": 1, "status": "active", "fingerprint": "f" * 64, "document": {}},
    "period": {"identifier": "2026-01", "start_date": "2026-01-01", "end_date": "2026-01-31"},
    "started_at": CLOCK.isoformat(),
    "as_of": None,
    "readings": [],
    "inputs": {},
    "versions": {"dobonomodo": "1"},
}  # fmt: skip


def make_output(table: str = "out", **changes: Any) -> Output:
    made = Output(
        seq=90,
        table=table,
        destination=f"lake:{table}",
        rows=3,
        digest="d-3",
        dataset_id=None,
        dataset_version=None,
        seconds=1.0,
        columns={"id": "integer", "amount": "decimal(15,2)"},
        location=StoredFiles(ParquetFormat(), table, f"{table}/data", ()),
    )
    return replace(made, **changes)


def make_view(**changes: Any) -> RunView:
    made = RunView(
        id="20260203-080000-000001",
        project="close",
        version=1,
        period="2026-01",
        status="completed",
        by="anna",
        started_at=CLOCK,
        created_at=CLOCK,
        updated_at=CLOCK,
        seconds=1.5,
        draft=False,
        operations=(OperationCounts(10, "Double", "update", 3, 2, 0, 0, 3), OperationCounts(90, "Write", "output", 3, 3, 0, 0, 3, 40)),
        outputs={"out": make_output()},
        last_completed_operation=90,
        snapshot=SNAPSHOT,
    )  # fmt: skip
    return replace(made, **changes)


def make_run(number: int, **changes: Any) -> Run:
    """The run with this fencing number."""
    draft = changes.pop("draft", False)
    at = CLOCK + timedelta(hours=number)
    made = Run(
        id=f"20260203-080000-{number:06d}",
        project="close",
        version=1,
        period="2026-01",
        status="completed",
        by="anna",
        created_at=at,
        updated_at=at,
        snapshot={**SNAPSHOT, "project": {**SNAPSHOT["project"], "status": "draft" if draft else "active"}},
        progress={},
        fence=number,
    )
    return replace(made, **changes)


def make_figures(amount: str = "1234567.80", rows: int = 3) -> Figures:
    first = FirstRows(("id", "amount"), ("id",), (("7", amount), ("8", None)))
    return Figures(
        loaded={"amount": Decimal("1234000.00")},
        outputs=(OutputFigures(90, "out", "lake:out", rows, {"amount": Decimal(amount), "wide": None}, first),),
        changes={10: {"amount": Decimal("567.80"), "same": Decimal("0.00")}, 20: {"amount": Decimal("-0.01")}},
        joins=(
            JoinCounts(10, "r", "rates", ("currency",), 2, 1, (UnmatchedKey(("XXX",), 1), UnmatchedKey((None,), 1))),
        ),
    )


class Page(HTMLParser):
    """The tags of a page, its text, and where it leads; fails for tags that are not closed in order."""

    EMPTY = frozenset({"meta", "br"})

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.links: list[str] = []
        self.headings: list[str] = []
        self.cells: list[str] = []
        """The texts of the cells of all tables."""
        self.numbers: list[str] = []
        """Of those, the ones that are aligned as numbers."""
        self.words = ""
        self._open: list[str] = []
        self.feed(html)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.links += [value or "" for name, value in attrs if name in ("href", "src")]
        if tag not in self.EMPTY:
            self._open.append(tag)
        if tag in ("h1", "h2"):
            self.headings.append("")
        if tag == "td":
            self.cells.append("")
            self._is_number = ("class", "n") in attrs

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag
        if tag == "td" and self._is_number:
            self.numbers.append(self.cells[-1])

    def handle_data(self, data: str) -> None:
        if "style" in self._open:
            return
        self.words += data
        if {"h1", "h2"} & set(self._open):
            self.headings[-1] += data
        if "td" in self._open:
            self.cells[-1] += data.strip()

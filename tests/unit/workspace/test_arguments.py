"""Arguments of the Python API: ISO text for dates and times, UTC on entry, wrong types in words (C-89)."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from dobonomodo.plan.facts import RunFacts
from dobonomodo.workspace import Workspace
from tests.world import CLOCK, copy_workspace

INDIA = timezone(timedelta(hours=5, minutes=30))


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace.open(copy_workspace("sales", tmp_path / "sales"))


@pytest.mark.parametrize(
    "given",
    [
        CLOCK,
        CLOCK.astimezone(INDIA),
        CLOCK.astimezone(timezone(timedelta(hours=-8))),
        "2026-02-03T08:00:00Z",
        "2026-02-03 08:00Z",
        "2026-02-03T13:30:00+05:30",
    ],
    ids=str,
)
def test_the_clock_is_converted_to_utc(workspace: Workspace, given: datetime | str) -> None:
    facts = workspace.plan("monthly-sales", period="2026-01", started_at=given).facts
    assert facts.started_at == CLOCK
    assert facts.started_at.tzinfo is UTC


def test_the_facts_of_a_run_have_their_clock_in_utc() -> None:
    facts = RunFacts(CLOCK.astimezone(INDIA), "2026-01", date(2026, 1, 1), date(2026, 1, 31))
    assert (facts.started_at, facts.started_at.tzinfo) == (CLOCK, UTC)
    with pytest.raises(ValueError):
        RunFacts(CLOCK.replace(tzinfo=None), "2026-01", date(2026, 1, 1), date(2026, 1, 31))


NAIVE = datetime(2026, 2, 3, 8)  # noqa: DTZ001  as a caller might


@pytest.mark.parametrize(
    "given",
    [NAIVE, "2026-02-03T08:00:00", "2026-02-03", "yesterday", "", "0001-01-01T00:00:00+01:00"],
    ids=repr,
)
def test_a_time_without_a_zone_is_refused(workspace: Workspace, given: Any) -> None:
    with pytest.raises(ValueError, match="`started_at`"):
        workspace.plan("monthly-sales", period="2026-01", started_at=given)
    with pytest.raises(ValueError, match="`started_at`"):
        workspace.run("monthly-sales", period="2026-01", started_at=given)


@pytest.mark.parametrize("given", ["2026-02-30", "31.01.2026", "2026-01-31T00:00:00Z", ""])
def test_a_text_that_is_no_day_is_refused(workspace: Workspace, given: str) -> None:
    with pytest.raises(ValueError, match="`as_of`"):
        workspace.run("monthly-sales", period="2026-01", as_of=given)


Call = Callable[[Workspace, Any], Any]
SALES = "monthly-sales"
WRONG: tuple[tuple[str, Any, Call], ...] = (
    ("started_at", date(2026, 2, 3), lambda ws, value: ws.run(SALES, period="2026-01", started_at=value)),
    ("started_at", 1770105600, lambda ws, value: ws.run(SALES, period="2026-01", started_at=value)),
    ("started_at", 1770105600, lambda ws, value: ws.plan(SALES, period="2026-01", started_at=value)),
    ("as_of", datetime(2026, 1, 31, tzinfo=UTC), lambda ws, value: ws.run(SALES, period="2026-01", as_of=value)),
    ("as_of", 20260131, lambda ws, value: ws.run(SALES, period="2026-01", as_of=value)),
    ("period", ["2026-01"], lambda ws, value: ws.run(SALES, period=value)),
    ("period", date(2026, 1, 1), lambda ws, value: ws.run(SALES, period=value)),
    ("period", None, lambda ws, value: ws.run(SALES, period=value)),
    ("period", 2026, lambda ws, value: ws.plan(SALES, period=value)),
    ("period", {"2026-01"}, lambda ws, value: ws.change_period(value, "closed")),
    ("project_id", None, lambda ws, value: ws.run(value, period="2026-01")),
    ("project_id", [SALES], lambda ws, value: ws.plan(value, period="2026-01")),
    ("project_id", 7, lambda ws, value: ws.activate(value)),
    ("project_id", 7, lambda ws, value: ws.deactivate(value)),
    ("project_id", 7, lambda ws, value: ws.keep_pin(value)),
    ("spark", "local[2]", lambda ws, value: ws.run(SALES, period="2026-01", spark=value)),
    ("spark", "local[2]", lambda ws, value: ws.resume("20260101", spark=value)),
    ("spark", "local[2]", lambda ws, value: ws.verify("20260101", spark=value)),
    ("run_id", 20260101, lambda ws, value: ws.resume(value)),
    ("run_id", 20260101, lambda ws, value: ws.cancel(value)),
    ("run_id", 20260101, lambda ws, value: ws.verify(value)),
    ("run_id", None, lambda ws, value: ws.find_run(value)),
    ("kind", 3, lambda ws, value: ws.listing(value)),
    ("status", True, lambda ws, value: ws.change_period("2026-01", value)),
    ("documents", {"project": {}}, lambda ws, value: Workspace.from_documents(value, root=ws.root)),
    ("documents", "project", lambda ws, value: Workspace.from_documents(value, root=ws.root)),
)


@pytest.mark.parametrize(("name", "given", "call"), WRONG, ids=[f"{name}-{given!r}" for name, given, _ in WRONG])
def test_a_wrong_type_names_the_argument_what_was_given_and_what_is_accepted(
    workspace: Workspace, name: str, given: Any, call: Call
) -> None:
    with pytest.raises(TypeError) as raised:
        call(workspace, given)
    said = str(raised.value)
    assert f"`{name}`" in said
    assert type(given).__name__ in said
    assert repr(given) in said
    assert re.search(r"accepted: .+", said)
    assert not (workspace.root / ".dobo").exists(), "nothing was begun"


@pytest.mark.parametrize("kind", ["projects", "workspace", ""])
def test_a_kind_that_is_none(workspace: Workspace, kind: str) -> None:
    with pytest.raises(ValueError, match="`kind`"):
        workspace.listing(kind)


def test_documents_may_come_from_a_generator(tmp_path: Path) -> None:
    documents = ({"project": {"id": name}} for name in ("a", "b"))
    assert Workspace.from_documents(documents, root=tmp_path).problems()
    with pytest.raises(TypeError, match="`documents`"):
        Workspace.from_documents(["project"], root=tmp_path)  # type: ignore[list-item]

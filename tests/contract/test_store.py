"""The contract of every ``Store``."""

from __future__ import annotations

import json
import multiprocessing
import signal
import sqlite3
import traceback
from contextlib import closing
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from functools import partial
from itertools import chain, product
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import inspect, text

from dobonomodo.model.plain import hash_document
from dobonomodo.problems import InternalError, Problem, Rejected, RunFailed
from dobonomodo.problems.control import ApprovalsMissing, PeriodInUse
from dobonomodo.problems.store import StoreUnavailable
from dobonomodo.store import (
    LIVE,
    PROJECT_LIFE,
    Action,
    Approvals,
    Definition,
    Entry,
    Event,
    Head,
    Held,
    Lease,
    Override,
    PeriodEvent,
    PeriodStatus,
    Pin,
    ProjectEvent,
    ProjectStatus,
    Run,
    SignOff,
    Store,
    Subject,
    Version,
    find_break,
    open_store,
)
from dobonomodo.store import database as database_module
from dobonomodo.store.database import Database
from dobonomodo.store.format import FORMAT, FORMAT_TABLE, migrate
from dobonomodo.store.tables import METADATA
from tests.contract import work
from tests.contract.nobody import as_nobody
from tests.contract.work import AT, Place, define
from tests.postgresql import PASSWORD, USER

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.contract.conftest import Crowd
    from tests.postgresql import Server

LATER = AT + timedelta(hours=1)
OPEN, CLOSED, LOCKED = PeriodStatus
CLOSE, LOCK, REOPEN = PeriodEvent.CLOSE, PeriodEvent.LOCK, PeriodEvent.REOPEN

HURTFUL = [
    "o'brien\"s",
    "a;DROP TABLE dobo_version;--",
    "100%s_%(id)s{x}:y?",
    "back\\slash`tick",
    "größe-日本-🧾",
    "e\u0301",
    "\u00e9",
    "\x01\x7f\u200b\u202e",
    "x" * 255,
    "🧾" * 255,
]


def apply(store: Store, *definitions: Definition, by: str = "ann", at: datetime = AT) -> list[tuple[Action, int]]:
    return [(change.action, change.version) for change in store.apply(definitions, at=at, by=by)]


def get(store: Store, kind: str, definition_id: str, version: int | None = None) -> Version:
    found = store.get_version(kind, definition_id, version=version)
    assert found is not None
    return found


def refused(call: Callable[[], object]) -> Problem:
    with pytest.raises(Rejected) as refusal:
        call()
    (problem,) = refusal.value.problems
    return problem


def failed(call: Callable[[], object]) -> RunFailed:
    with pytest.raises(RunFailed) as failure:
        call()
    return failure.value


class TestVersions:
    def test_a_definition_gets_its_first_version(self, store: Store) -> None:
        definition = define("orders", status="disabled", text="dataset:\n  id: orders # öäü\n")
        assert apply(store, definition) == [(Action.CREATED, 1)]
        assert get(store, "dataset", "orders") == Version(
            kind="dataset",
            id="orders",
            version=1,
            fingerprint=definition.fingerprint,
            document=definition.document,
            status="disabled",
            text=definition.text,
            created_at=AT,
            created_by="ann",
            updated_at=AT,
            updated_by="ann",
        )

    def test_the_same_again_changes_nothing(self, store: Store) -> None:
        apply(store, define("orders"))
        before = get(store, "dataset", "orders")
        assert apply(store, define("orders"), by="bob", at=LATER) == [(Action.UNCHANGED, 1)]
        assert store.list_versions("dataset", "orders") == (before,)

    def test_another_fingerprint_makes_the_next_version_and_keeps_the_old(self, store: Store) -> None:
        apply(store, define("orders", 1))
        first = get(store, "dataset", "orders")
        assert apply(store, define("orders", 2), at=LATER) == [(Action.CHANGED, 2)]
        assert get(store, "dataset", "orders").document["content"] == 2
        assert get(store, "dataset", "orders", 1) == first
        assert [version.version for version in store.list_versions("dataset", "orders")] == [1, 2]

    def test_earlier_content_is_a_new_version_too(self, store: Store) -> None:
        for content in (1, 2, 1):
            apply(store, define("orders", content))
        assert [version.document["content"] for version in store.list_versions("dataset", "orders")] == [1, 2, 1]

    @pytest.mark.parametrize(
        "difference", [{"name": "Sales orders"}, {"text": "dataset: ..."}, {"status": "disabled"}], ids=str
    )
    def test_any_other_difference_changes_the_newest_version_in_place(
        self, store: Store, difference: dict[str, str]
    ) -> None:
        apply(store, define("orders", 1), define("other"))
        apply(store, define("orders", 2))
        old, other = get(store, "dataset", "orders", 1), get(store, "dataset", "other")
        changed = define("orders", 2, **difference)
        assert apply(store, changed, by="bob", at=LATER) == [(Action.TOUCHED, 2)]
        found = get(store, "dataset", "orders")
        assert (found.document, found.text, found.status) == (changed.document, changed.text, changed.status)
        assert (found.created_at, found.created_by, found.updated_at, found.updated_by) == (AT, "ann", LATER, "bob")
        assert get(store, "dataset", "orders", 1) == old
        assert get(store, "dataset", "other") == other

    def test_the_order_of_keys_is_no_difference(self, store: Store) -> None:
        definition = define("orders")
        apply(store, definition)
        turned = replace(definition, document=dict(sorted(definition.document.items(), reverse=True)))
        assert apply(store, turned) == [(Action.UNCHANGED, 1)]

    def test_true_is_not_one(self, store: Store) -> None:
        definition = define("orders")
        apply(store, replace(definition, document={"x": 1}))
        assert apply(store, replace(definition, document={"x": True})) == [(Action.TOUCHED, 1)]

    def test_compare_says_what_apply_will_do_and_writes_nothing(self, store: Store) -> None:
        apply(store, define("same"), define("touched"), define("changed"))
        definitions = [define("same"), define("touched", name="New"), define("changed", 2), define("created")]
        before = store.list_definitions("dataset")
        expected = store.compare(definitions)
        assert [(change.action, change.version) for change in expected] == [
            (Action.UNCHANGED, 1),
            (Action.TOUCHED, 1),
            (Action.CHANGED, 2),
            (Action.CREATED, 1),
        ]
        assert [change.before and change.before.id for change in expected] == ["same", "touched", "changed", None]
        assert store.list_definitions("dataset") == before
        assert store.apply(definitions, at=AT, by="ann") == expected

    def test_every_kind_counts_its_own_versions(self, store: Store) -> None:
        kinds = ["workspace", "datasource", "calendar", "dataset", "resolver", "project"]
        apply(store, *(define("x", kind=kind) for kind in kinds))
        assert apply(store, define("x", 2, kind="resolver")) == [(Action.CHANGED, 2)]
        newest = {kind: get(store, kind, "x").version for kind in kinds}
        assert newest == dict.fromkeys(kinds, 1) | {"resolver": 2}

    def test_lists_have_the_newest_of_each_by_id(self, store: Store) -> None:
        apply(store, *(define(name) for name in ("b", "a", "B", "é", "_", "10", "9")), define("c", kind="resolver"))
        apply(store, define("a", 2))
        apply(store, define("10", name="Ten"))
        found = [(version.id, version.version) for version in store.list_definitions("dataset")]
        assert found == [("10", 1), ("9", 1), ("B", 1), ("_", 1), ("a", 2), ("b", 1), ("é", 1)]

    def test_what_is_not_there_is_none(self, store: Store) -> None:
        apply(store, define("orders"))
        assert store.get_version("dataset", "Orders") is None
        assert store.get_version("project", "orders") is None
        assert store.get_version("dataset", "orders", version=2) is None
        assert store.get_active_version("dataset", "other") is None
        assert store.list_versions("dataset", "other") == ()
        assert store.list_definitions("project") == ()
        assert store.compare([]) == store.apply([], at=AT, by="ann") == ()

    def test_the_active_version_is_the_highest_that_is_not_disabled(self, store: Store) -> None:  # C-55
        apply(store, define("orders", 1))
        apply(store, define("orders", 2))
        apply(store, define("orders", 3, status="disabled"))
        active = store.get_active_version("dataset", "orders")
        assert active == get(store, "dataset", "orders", 2)
        apply(store, define("orders", 3))
        assert store.get_active_version("dataset", "orders") == get(store, "dataset", "orders", 3)

    def test_a_definition_given_twice_is_refused(self, store: Store) -> None:
        with pytest.raises(InternalError):
            store.apply([define("orders", 1), define("orders", 2)], at=AT, by="ann")
        assert store.list_definitions("dataset") == ()

    def test_times_are_kept_as_moments(self, store: Store) -> None:
        eastern = AT.astimezone(timezone(timedelta(hours=-5))).replace(microsecond=7)
        apply(store, define("orders"), at=eastern)
        found = get(store, "dataset", "orders").created_at
        assert found == eastern
        assert found.utcoffset() == timedelta(0)

    def test_a_time_without_zone_is_our_fault(self, store: Store) -> None:
        with pytest.raises(InternalError):
            store.apply([define("orders")], at=AT.replace(tzinfo=None), by="ann")

    @pytest.mark.parametrize("document", [{"x": Decimal("1.5")}, {"x": float("nan")}], ids=["decimal", "nan"])
    def test_a_document_that_is_no_json_is_never_rounded_into_some(self, store: Store, document: Any) -> None:
        with pytest.raises((TypeError, ValueError)):
            store.apply([replace(define("orders"), document=document)], at=AT, by="ann")
        assert store.list_definitions("dataset") == ()


class TestText:
    @pytest.mark.parametrize("name", HURTFUL)
    def test_any_id_stays_as_it_is(self, store: Store, name: str) -> None:
        apply(store, define("orders"))
        apply(store, define(name, kind="project"), by=name)
        project = store.activate(name, 1, fingerprint=define(name).fingerprint, pin=Pin("orders", 1), at=AT, by=name)
        assert (project.id, project.created_by, project.status) == (name, name, ProjectStatus.ACTIVE)
        assert [version.id for version in store.list_live_projects()] == [name]
        store.change_period(name, event=CLOSE, starts={name: OPEN}, at=AT, by=name)
        assert list(store.list_periods(name)) == [name]
        assert [entry.by for entry in store.list_history(period=name)] == [name]
        lease = store.take_lease(name, name, token=name, holder=name, at=AT)
        assert store.take_lease(name, name, token="other", holder="other", at=AT) == Held(lease)  # type: ignore[arg-type]

    def test_ids_that_look_alike_are_different(self, store: Store) -> None:
        apply(store, *(define(name) for name in HURTFUL))
        assert {version.id for version in store.list_definitions("dataset")} == set(HURTFUL)

    @pytest.mark.parametrize(
        "value",
        [
            *("\0", "a\0b", "\\u0000", "\ud800", "\udfff", "\U0010ffff", "\r\n\t\u2028", "'\"`%s:x", ""),
            *(10**40, -0.1, 1e300, None, True, [], {}, {"\0": {"": [1, [None]]}}),
        ],
        ids=ascii,
    )
    def test_any_document_stays_as_it_is(self, store: Store, value: object) -> None:
        definition = replace(define("orders"), document={"value": value})
        apply(store, definition)
        found = get(store, "dataset", "orders").document
        assert (repr(found), found) == (repr(definition.document), definition.document)
        assert apply(store, definition) == [(Action.UNCHANGED, 1)]

    @pytest.mark.parametrize(
        ("name", "reason"),
        [("", "empty"), ("a\0b", "nul"), ("a\udc80", "surrogate"), ("x" * 256, "too long")],
        ids=["empty", "nul", "surrogate", "too long"],
    )
    def test_an_id_that_not_every_database_can_keep_is_refused_and_nothing_is_recorded(
        self, store: Store, name: str, reason: str
    ) -> None:
        problem = refused(lambda: store.apply([define("good"), define(name), define("too")], at=AT, by="ann"))
        assert (problem.code, getattr(problem, "reason", None)) == ("UNSTORABLE_TEXT", reason)
        problem.message().encode()
        assert store.list_definitions("dataset") == ()

    def test_a_file_with_nul_is_refused(self, store: Store) -> None:
        problem = refused(lambda: store.apply([define("orders", text="a: \0")], at=AT, by="ann"))
        assert problem.code == "UNSTORABLE_TEXT"


def put_project(store: Store, *contents: object) -> None:
    """Dataset `orders` in two versions, and a project with a version for each content."""
    apply(store, define("orders", 1))
    apply(store, define("orders", 2))
    for content in contents:
        apply(store, define("sales", content, kind="project"))


def activate(store: Store, version: int, *, pin: int = 1, by: str = "ann", at: datetime = AT) -> Version:
    fingerprint = get(store, "project", "sales", version).fingerprint
    return store.activate("sales", version, fingerprint=fingerprint, pin=Pin("orders", pin), at=at, by=by)


def statuses(store: Store) -> list[str]:
    return [version.status for version in store.list_versions("project", "sales")]


def life(store: Store) -> list[Entry]:
    """What happened to the versions of the project once they were there."""
    return [entry for entry in store.list_history(project="sales") if entry.event != Event.APPLY]


REPORT = {"dataset": "orders", "version": 2, "columns": [{"name": "amount", "change": "removed", "operations": [20]}]}


class TestProjects:
    def test_a_project_starts_as_a_draft(self, store: Store) -> None:
        apply(store, define("sales", kind="project", status="active"))
        assert statuses(store) == ["draft"]
        assert store.get_active_version("project", "sales") is None
        assert store.list_live_projects() == ()

    def test_activation_pins_the_input(self, store: Store) -> None:
        put_project(store, "a")
        version = activate(store, 1, pin=2, at=LATER, by="bob")
        assert version.activation == (Pin("orders", 2), LATER, "bob")
        assert version.status == "active"
        assert store.get_active_version("project", "sales") == version
        assert store.list_live_projects() == (version,)

    def test_a_change_makes_a_draft_and_the_active_version_stays(self, store: Store) -> None:  # C-77
        put_project(store, "a")
        active = activate(store, 1)
        apply(store, define("sales", "b", kind="project"))
        assert statuses(store) == ["active", "draft"]
        assert store.get_active_version("project", "sales") == active

    def test_a_status_in_a_file_is_no_life(self, store: Store) -> None:
        put_project(store, "a")
        assert apply(store, define("sales", "a", kind="project", status="active")) == [(Action.UNCHANGED, 1)]
        apply(store, define("sales", "a", kind="project", status="active", name="Sales!"))
        assert statuses(store) == ["draft"]

    def test_versions_stay_in_order_whichever_changed_last(self, store: Store) -> None:
        put_project(store, "a", "b", "c")
        activate(store, 2)
        activate(store, 1)
        assert statuses(store) == ["active", "inactive", "draft"]

    def test_a_new_name_does_not_touch_the_life(self, store: Store) -> None:
        put_project(store, "a")
        active = activate(store, 1)
        assert apply(store, define("sales", "a", kind="project", name="Sales!")) == [(Action.TOUCHED, 1)]
        found = get(store, "project", "sales")
        assert (found.status, found.activation) == (active.status, active.activation)

    def test_activating_a_version_supersedes_the_active_one(self, store: Store) -> None:
        put_project(store, "a", "b")
        activate(store, 1)
        activate(store, 2, at=LATER)
        assert statuses(store) == ["inactive", "active"]
        history = life(store)
        assert [(entry.subject.version, entry.event, entry.before, entry.after) for entry in history] == [
            (1, "activate", "draft", "active"),
            (1, "supersede", "active", "inactive"),
            (2, "activate", "draft", "active"),
        ]

    def test_projects_do_not_disturb_each_other(self, store: Store) -> None:
        put_project(store, "a")
        apply(store, define("other", kind="project"))
        store.activate("other", 1, fingerprint="sha256:1", pin=Pin("orders", 1), at=AT, by="ann")
        activate(store, 1)
        assert [version.id for version in store.list_live_projects()] == ["other", "sales"]
        assert len(life(store)) == 1

    @pytest.mark.parametrize(
        ("change", "code"),
        [
            ({"fingerprint": "sha256:other"}, "VERSION_CHANGED"),
            ({"version": 3}, "VERSION_NOT_FOUND"),
            ({"project": "Sales"}, "VERSION_NOT_FOUND"),
            ({"pin": Pin("orders", 3)}, "VERSION_NOT_FOUND"),
            ({"pin": Pin("sales", 1)}, "VERSION_NOT_FOUND"),
        ],
        ids=str,
    )
    def test_a_wrong_activation_changes_nothing(self, store: Store, change: dict[str, Any], code: str) -> None:
        put_project(store, "a", "b")
        activate(store, 1)
        before, history = store.list_versions("project", "sales"), life(store)
        arguments: dict[str, Any] = {"project": "sales", "version": 2, "fingerprint": "sha256:b"}
        arguments |= {"pin": Pin("orders", 2)} | change
        assert refused(lambda: store.activate(**arguments, at=AT, by="ann")).code == code
        assert store.list_versions("project", "sales") == before
        assert life(store) == history

    def test_the_pin_can_be_moved(self, store: Store) -> None:
        put_project(store, "a")
        activate(store, 1, pin=1)
        assert activate(store, 1, pin=2).activation == (Pin("orders", 2), AT, "ann")

    def test_a_conflict_has_its_report_and_does_not_run(self, store: Store) -> None:
        put_project(store, "a")
        pin = activate(store, 1).activation
        version = store.mark_conflict("sales", 1, report=REPORT, at=LATER, by="apply")
        assert (version.status, version.conflict, version.activation) == ("conflict", REPORT, pin)
        assert store.get_active_version("project", "sales") is None
        assert store.list_live_projects() == (version,)
        assert life(store)[-1].detail == REPORT

    def test_a_conflict_ends_by_keeping_the_pin(self, store: Store) -> None:
        put_project(store, "a")
        pin = activate(store, 1).activation
        store.mark_conflict("sales", 1, report=REPORT, at=LATER, by="apply")
        version = store.keep_pin("sales", 1, at=LATER, by="bob")
        assert (version.status, version.activation) == ("active", pin)

    def test_a_report_that_was_answered_is_not_raised_again_but_another_is(self, store: Store) -> None:
        put_project(store, "a")
        activate(store, 1)
        for _ in range(2):
            store.mark_conflict("sales", 1, report=REPORT, at=LATER, by="apply")
        store.keep_pin("sales", 1, at=LATER, by="bob")
        assert store.mark_conflict("sales", 1, report=REPORT, at=LATER, by="apply").status == "active"
        assert len(life(store)) == 3
        assert store.mark_conflict("sales", 1, report=REPORT | {"version": 3}, at=LATER, by="x").status == "conflict"

    def test_a_conflict_ends_by_activating_an_adapted_version(self, store: Store) -> None:
        put_project(store, "a", "b")
        activate(store, 1)
        store.mark_conflict("sales", 1, report=REPORT, at=LATER, by="apply")
        assert activate(store, 2, pin=2).conflict is None
        assert statuses(store) == ["inactive", "active"]

    def test_activating_again_forgets_an_old_report(self, store: Store) -> None:
        put_project(store, "a")
        activate(store, 1)
        store.mark_conflict("sales", 1, report=REPORT, at=LATER, by="apply")
        assert activate(store, 1, pin=2).conflict is None
        assert store.mark_conflict("sales", 1, report=REPORT, at=LATER, by="apply").status == "conflict"

    @pytest.mark.parametrize(
        ("status", "event"),
        [pair for pair in product(ProjectStatus, ProjectEvent) if pair[1] is not ProjectEvent.SUPERSEDE],
        ids=str,
    )
    def test_only_what_the_table_allows_can_happen(
        self, store: Store, status: ProjectStatus, event: ProjectEvent
    ) -> None:
        put_project(store, "a")
        if status is not ProjectStatus.DRAFT:
            activate(store, 1)
        if status is ProjectStatus.CONFLICT:
            store.mark_conflict("sales", 1, report={"first": 1}, at=AT, by="ann")
        if status is ProjectStatus.INACTIVE:
            store.deactivate("sales", 1, at=AT, by="ann")
        happen: dict[ProjectEvent, Callable[[], Version]] = {
            ProjectEvent.ACTIVATE: lambda: activate(store, 1),
            ProjectEvent.DEACTIVATE: lambda: store.deactivate("sales", 1, at=AT, by="ann"),
            ProjectEvent.CONFLICT: lambda: store.mark_conflict("sales", 1, report=REPORT, at=AT, by="ann"),
            ProjectEvent.KEEP_PIN: lambda: store.keep_pin("sales", 1, at=AT, by="ann"),
        }
        expected = PROJECT_LIFE.get((status, event))
        if expected:
            assert happen[event]().status == expected
        else:
            assert refused(happen[event]).code == "INVALID_TRANSITION"
        assert statuses(store) == [expected or status]


class TestPeriods:
    def test_a_period_is_closed_locked_and_reopened(self, store: Store) -> None:
        def change(event: PeriodEvent, by: str, reason: str | None = None) -> PeriodStatus:
            store.change_period("2026-01", event=event, starts={"fiscal": OPEN}, at=AT, by=by, reason=reason)
            return store.list_periods("fiscal")["2026-01"].status

        assert store.list_periods("fiscal") == {}
        assert [change(CLOSE, "ann"), change(LOCK, "bob"), change(REOPEN, "cy", "late")] == [CLOSED, LOCKED, OPEN]
        record = store.list_periods("fiscal")["2026-01"]
        assert (record.status, record.changed_at, record.changed_by) == (OPEN, AT, "cy")
        assert [
            (entry.event, entry.before, entry.after, entry.by, entry.reason)
            for entry in store.list_history(period="2026-01")
        ] == [
            ("close", "open", "closed", "ann", None),
            ("lock", "closed", "locked", "bob", None),
            ("reopen", "locked", "open", "cy", "late"),
        ]

    @pytest.mark.parametrize(
        ("start", "event"),
        [(OPEN, LOCK), (CLOSED, PeriodEvent.OPEN), (LOCKED, CLOSE), (LOCKED, PeriodEvent.OPEN)],
        ids=str,
    )
    def test_what_the_table_does_not_have_is_refused(
        self, store: Store, start: PeriodStatus, event: PeriodEvent
    ) -> None:
        starts = {"other": CLOSED if event is LOCK else OPEN, "fiscal": start}
        change = partial(store.change_period, "2026-01", event=event, starts=starts, at=AT, by="ann")
        assert refused(change).code == "INVALID_TRANSITION"
        assert store.list_periods("fiscal") == {}
        assert store.list_history() == ()

    def test_the_same_again_is_fine_and_leaves_no_trace(self, store: Store) -> None:
        for at in (AT, LATER):
            store.change_period("2026-01", event=CLOSE, starts={"fiscal": OPEN}, at=at, by="ann")
        assert store.list_periods("fiscal")["2026-01"].changed_at == AT
        assert len(store.list_history(period="2026-01")) == 1

    @pytest.mark.parametrize("start", PeriodStatus)
    def test_the_record_wins_over_the_file(self, store: Store, start: PeriodStatus) -> None:
        store.change_period("2026-01", event=REOPEN, starts={"fiscal": LOCKED}, at=AT, by="ann", reason="late")
        store.change_period("2026-01", event=CLOSE, starts={"fiscal": start}, at=AT, by="ann")
        assert store.list_periods("fiscal")["2026-01"].status is CLOSED

    def test_a_period_of_several_calendars_moves_in_all_of_them(self, store: Store) -> None:
        starts = {"fiscal": CLOSED, "other": LOCKED}
        store.change_period("2026-01", event=REOPEN, starts=starts, at=AT, by="ann", reason="late")
        assert {store.list_periods(calendar)["2026-01"].status for calendar in starts} == {OPEN}
        assert [(entry.subject.calendar, entry.before) for entry in store.list_history()] == [
            ("fiscal", "closed"),
            ("other", "locked"),
        ]

    @pytest.mark.parametrize(("event", "start"), [(CLOSE, OPEN), (LOCK, CLOSED)], ids=str)
    def test_a_period_that_is_being_run_is_not_closed(
        self, store: Store, event: PeriodEvent, start: PeriodStatus
    ) -> None:
        lease = take(store)
        change = partial(store.change_period, "2026-01", event=event, starts={"fiscal": start}, at=AT, by="ann")
        problem = refused(change)
        assert problem == PeriodInUse(period="2026-01", project="sales", holder=lease.holder)
        assert (store.list_periods("fiscal"), store.list_history()) == ({}, ())
        change(dead=[lease.token])
        assert store.list_periods("fiscal")["2026-01"].status is not start

    def test_a_period_is_closed_when_the_run_is_over_or_of_another_period(self, store: Store) -> None:
        store.release_lease(take(store))
        take(store, period="2026-02")
        store.change_period("2026-01", event=CLOSE, starts={"fiscal": OPEN}, at=AT, by="ann")
        assert store.list_periods("fiscal")["2026-01"].status is CLOSED

    def test_a_run_that_was_planned_before_the_period_was_closed_is_not_recorded(self, store: Store) -> None:
        store.change_period("2026-01", event=CLOSE, starts={"fiscal": OPEN}, at=AT, by="ann")
        problem = refused(lambda: store.put_run(RUN))
        assert (problem.code, getattr(problem, "status", None)) == ("PERIOD_NOT_RUNNABLE", "closed")
        store.put_run(RUN, override=Override(reason="late"))
        store.put_run(replace(RUN, id="run-2", period="2026-02"))
        store.change_period("2026-01", event=LOCK, starts={"fiscal": OPEN}, at=AT, by="ann")
        problem = refused(lambda: store.put_run(replace(RUN, id="run-3"), override=Override(reason="late")))
        assert getattr(problem, "status", None) == "locked"
        assert store.get_run("run-3") is None

    def test_calendars_and_periods_are_apart(self, store: Store) -> None:
        store.change_period("2026-02", event=CLOSE, starts={"fiscal": OPEN}, at=AT, by="ann")
        store.change_period("2026-01", event=CLOSE, starts={"fiscal": OPEN}, at=AT, by="ann")
        store.change_period("2026-01", event=LOCK, starts={"other": CLOSED}, at=AT, by="ann")
        assert list(store.list_periods("fiscal")) == ["2026-01", "2026-02"]
        assert store.list_periods("fiscal")["2026-01"].status is CLOSED
        assert [entry.subject.calendar for entry in store.list_history(period="2026-01")] == ["fiscal", "other"]


PROJECT_V1, PERIOD = Subject.of_project("sales", 1), Subject.of_period("2026-01")


def check_chain(store: Store) -> tuple[Entry, ...]:
    """The whole history, after a look at every link of it."""
    entries = store.list_history()
    assert find_break(entries, start=Head(0, store.id)) is None
    assert store.head() == (Head(entries[-1].number, entries[-1].hash) if entries else Head(0, store.id))
    return entries


class TestHistory:
    def test_it_begins_with_the_id_of_the_store(self, store: Store) -> None:
        assert check_chain(store) == ()
        apply(store, define("orders"))
        (entry,) = check_chain(store)
        assert (entry.number, entry.previous, entry.at, entry.by) == (1, store.id, AT, "ann")

    def test_everything_that_happens_is_an_entry(self, store: Store) -> None:
        put_project(store, "a", "b")
        activate(store, 1)
        store.mark_conflict("sales", 1, report=REPORT, at=AT, by="ann")
        store.keep_pin("sales", 1, at=AT, by="ann")
        activate(store, 2)
        store.deactivate("sales", 2, at=AT, by="ann")
        store.register(define("out"), location={}, origin="run-1/5", at=AT, by="ann")
        store.change_period("2026-01", event=CLOSE, starts={"fiscal": OPEN}, at=AT, by="ann")
        store.put_run(RUN, override=Override(reason="late"))
        store.change_run_status("run-1", before="pending", after="completed", at=AT, by="ann")
        store.sign(PERIOD, "f", at=AT, by="ann")
        store.unsign(PERIOD, at=AT, by="ann")
        store.change_period("2026-01", event=LOCK, starts={"fiscal": OPEN}, at=AT, by="ann")
        assert [
            (entry.subject.kind, entry.subject.id, entry.subject.version, entry.event) for entry in check_chain(store)
        ] == [
            ("dataset", "orders", 1, "apply"),
            ("dataset", "orders", 2, "apply"),
            ("project", "sales", 1, "apply"),
            ("project", "sales", 2, "apply"),
            ("project", "sales", 1, "activate"),
            ("project", "sales", 1, "conflict"),
            ("project", "sales", 1, "keep pin"),
            ("project", "sales", 1, "supersede"),
            ("project", "sales", 2, "activate"),
            ("project", "sales", 2, "deactivate"),
            ("dataset", "out", 1, "register"),
            ("period", "2026-01", None, "close"),
            ("run", "run-1", 1, "started"),
            ("run", "run-1", 1, "override"),
            ("run", "run-1", 1, "completed"),
            ("period", "2026-01", None, "sign"),
            ("period", "2026-01", None, "unsign"),
            ("period", "2026-01", None, "lock"),
        ]

    def test_what_belongs_to_a_project_or_a_period_is_found(self, store: Store) -> None:
        put_project(store, "a")
        store.put_run(RUN)
        store.put_run(replace(RUN, id="run-2", project="fx"))
        store.change_period("2026-01", event=CLOSE, starts={"fiscal": OPEN}, at=AT, by="ann")

        def listed(**wanted: Any) -> list[tuple[str, str]]:
            return [(entry.subject.id, entry.event) for entry in store.list_history(**wanted)]

        assert listed(project="sales") == [("sales", "apply"), ("run-1", "started")]
        assert listed(period="2026-01") == [("run-1", "started"), ("run-2", "started"), ("2026-01", "close")]
        assert listed(period="2026-01", limit=2) == [("run-2", "started"), ("2026-01", "close")]
        assert listed(project="sales", period="2026-01") == [("run-1", "started")]
        assert listed(subject=PROJECT_V1) == [("sales", "apply")]

    def test_what_is_refused_leaves_no_entry(self, store: Store) -> None:
        put_project(store, "a")
        before = store.head()
        refused(lambda: store.deactivate("sales", 1, at=AT, by="ann"))
        refused(lambda: store.apply([define("good"), define("")], at=AT, by="ann"))
        apply(store, define("orders", 2))
        assert store.head() == before

    def test_an_entry_keeps_its_details(self, store: Store) -> None:
        put_project(store, "a")
        detail = {"scenarios": ["\0", "größe"], "number": 10**40}
        store.activate(
            "sales", 1, fingerprint="sha256:a", pin=Pin("orders", 1), at=AT, by="ann", reason="'\"", detail=detail
        )
        entry = check_chain(store)[-1]
        assert (entry.reason, entry.detail) == ("'\"", {"dataset": "orders", "version": 1, **detail})

    def test_the_records_of_a_run_are_covered(self, store: Store) -> None:
        store.put_run(RUN)
        store.change_run_status("run-1", before="pending", after="failed", at=LATER, by="bob", progress={"seq": 10})
        started, ended = check_chain(store)
        assert (started.detail, ended.detail) == (
            {"snapshot": hash_document(RUN.snapshot), "fence": None},
            {"progress": hash_document({"seq": 10}), "fence": None},
        )
        assert (ended.before, ended.after, ended.by, ended.at) == ("pending", "failed", "bob", LATER)

    def test_progress_is_no_entry_and_a_new_attempt_is_one(self, store: Store) -> None:
        lease = take(store)
        store.put_run(replace(RUN, status="running", fence=lease.fence), lease=lease)
        for seq in (1, 2):
            store.change_run_status(
                "run-1", before="running", after="running", at=LATER, by="ann", progress={"seq": seq}, lease=lease
            )
        again = take_over(store, lease, token="second")
        store.change_run_status("run-1", before="running", after="running", at=LATER, by="bob", lease=again)
        run = store.get_run("run-1")
        assert run is not None
        assert store.change_run_if_same(run, status="cancelled", at=LATER, by="cy") is not None
        assert [(entry.event, entry.by) for entry in check_chain(store)] == [
            ("started", "ann"),
            ("resumed", "bob"),
            ("cancelled", "cy"),
        ]

    @pytest.mark.parametrize(
        "tampering",
        [
            "UPDATE dobo_history SET reason = 'another' WHERE number = 2",
            "UPDATE dobo_history SET by = 'nobody' WHERE number = 2",
            "UPDATE dobo_history SET detail = '{}' WHERE number = 2",
            "UPDATE dobo_history SET project = NULL WHERE number = 2",
            "DELETE FROM dobo_history WHERE number = 2",
            "UPDATE dobo_history SET number = 9 WHERE number = 2",
        ],
    )
    def test_a_changed_or_missing_entry_is_found(self, store: Store, behind: Database, tampering: str) -> None:
        for number in range(3):
            store.put_run(replace(RUN, id=f"run-{number}"), override=Override(reason="late"))
        check_chain(store)
        with closing(behind), behind.writing() as connection:
            connection.execute(text(tampering))
        assert find_break(store.list_history(), start=Head(0, store.id)) == 2

    def test_the_chain_has_no_gap_when_eight_write_at_once(self, store: Store, place: Place, crowd: Crowd) -> None:
        crowd(work.apply_contents, place, rounds=5)
        assert len(check_chain(store)) == 40


class TestSignOffs:
    def test_a_sign_off_is_of_a_fingerprint(self, store: Store) -> None:
        signed = store.sign(PROJECT_V1, "first", at=AT, by="ann", comment="checked")
        store.sign(PROJECT_V1, "second", at=LATER, by="ann")
        store.sign(PERIOD, "first", at=LATER, by="bob")
        assert signed == SignOff(subject=PROJECT_V1, fingerprint="first", by="ann", at=AT, comment="checked")
        assert [(each.by, each.fingerprint) for each in store.list_signoffs(PROJECT_V1)] == [
            ("ann", "first"),
            ("ann", "second"),
        ]
        assert [each.by for each in store.list_signoffs(PERIOD, PROJECT_V1)] == ["ann", "ann", "bob"]
        assert store.list_signoffs(Subject.of_project("sales", 2)) == store.list_signoffs() == ()

    def test_signing_again_leaves_no_trace(self, store: Store) -> None:
        first = store.sign(PERIOD, "f", at=AT, by="ann", comment="checked")
        assert store.sign(PERIOD, "f", at=LATER, by="ann", comment="again") == first
        assert len(store.list_history()) == 1

    def test_one_withdraws_ones_own(self, store: Store) -> None:
        for person in ("ann", "bob"):
            store.sign(PERIOD, "f", at=AT, by=person)
        store.sign(PROJECT_V1, "f", at=AT, by="ann")
        assert [each.by for each in store.unsign(PERIOD, at=LATER, by="ann", reason="wrong")] == ["ann"]
        assert [each.by for each in store.list_signoffs(PERIOD)] == ["bob"]
        assert [each.by for each in store.list_signoffs(PROJECT_V1)] == ["ann"]
        before = store.head()
        assert store.unsign(PERIOD, at=LATER, by="ann") == ()
        assert store.head() == before
        store.sign(PERIOD, "f", at=LATER, by="ann")
        assert [each.by for each in store.list_signoffs(PERIOD)] == ["bob", "ann"]


class TestApprovals:
    @staticmethod
    def needed(count: int, subject: Subject = PROJECT_V1, fingerprint: str = "f") -> Approvals:
        return Approvals(subject=subject, fingerprint=fingerprint, needed=count, command="dobo sign x")

    def test_other_people_must_have_signed_what_it_is_now(self, store: Store) -> None:
        put_project(store, "a")

        def activate(needed: int) -> Version:
            approvals = self.needed(needed)
            return store.activate(
                "sales", 1, fingerprint="sha256:a", pin=Pin("orders", 1), at=AT, by="ann", approvals=approvals
            )

        store.sign(PROJECT_V1, "f", at=AT, by="ann")
        store.sign(PROJECT_V1, "before", at=AT, by="bob")
        head = store.head()
        assert refused(lambda: activate(1)) == ApprovalsMissing(
            subject="sales", needed=1, own="ann", command="dobo sign x"
        )
        assert store.head() == head
        assert statuses(store) == ["draft"]
        store.sign(PROJECT_V1, "f", at=AT, by="bob")
        assert getattr(refused(lambda: activate(2)), "approved_by", None) == ("bob",)
        assert activate(1).status == "active"
        assert (store.list_history()[-1].detail or {})["approved_by"] == ["bob"]

    def test_a_withdrawn_sign_off_does_not_count(self, store: Store) -> None:
        store.sign(PERIOD, "f", at=AT, by="bob")
        store.unsign(PERIOD, at=AT, by="bob")
        approvals = self.needed(1, PERIOD)
        lock = partial(store.change_period, "2026-01", event=LOCK, starts={"fiscal": CLOSED}, at=AT, by="ann")
        assert refused(lambda: lock(approvals=approvals)).code == "APPROVALS_MISSING"
        assert store.list_periods("fiscal") == {}
        store.sign(PERIOD, "f", at=AT, by="bob")
        lock(approvals=approvals)
        assert store.list_periods("fiscal")["2026-01"].status is LOCKED

    def test_a_run_for_a_closed_period_is_not_recorded_without_them(self, store: Store) -> None:
        subject = Subject.of_override("sales", "2026-01")
        override = Override(reason="late", approvals=self.needed(1, subject))
        assert refused(lambda: store.put_run(RUN, override=override)).code == "APPROVALS_MISSING"
        assert (store.get_run("run-1"), store.list_history()) == (None, ())
        store.sign(subject, "f", at=AT, by="bob")
        store.put_run(RUN, override=override)
        entry = store.list_history()[-1]
        assert (entry.event, entry.reason, entry.detail) == (
            "override",
            "late",
            {"approved_by": ["bob"], "fingerprint": "f"},
        )


class TestRegistration:
    def test_each_output_makes_the_next_version(self, store: Store) -> None:  # C-64
        apply(store, define("out"))
        for number in (1, 2):
            location = {"path": f"lake/out/{number}"}
            version = store.register(define("out"), location=location, origin=f"run-{number}/5", at=AT, by="ann")
            assert (version.version, version.location) == (number + 1, location)
        assert get(store, "dataset", "out", 1).location is None
        assert get(store, "dataset", "out", 2).location == {"path": "lake/out/1"}
        assert apply(store, define("out")) == [(Action.UNCHANGED, 3)]

    def test_registering_the_same_output_again_gives_the_version_it_has(self, store: Store) -> None:
        first = store.register(define("out"), location={"path": "a"}, origin="run-1/5", at=AT, by="ann")
        store.register(define("out"), location={"path": "b"}, origin="run-2/5", at=AT, by="ann")
        again = store.register(define("out"), location={"path": "a"}, origin="run-1/5", at=LATER, by="bob")
        assert again == first
        assert len(store.list_versions("dataset", "out")) == 2


RUN = Run(
    id="run-1",
    project="sales",
    version=1,
    period="2026-01",
    status="pending",
    by="ann",
    created_at=AT,
    updated_at=AT,
    snapshot={"operations": ["\0"]},
    progress={},
)


class TestRuns:
    def test_a_run_is_kept(self, store: Store) -> None:
        draft = replace(RUN, id="run-2", version=None)
        store.put_run(RUN)
        store.put_run(draft)
        assert (store.get_run("run-1"), store.get_run("run-2"), store.get_run("run-3")) == (RUN, draft, None)

    def test_an_id_is_used_once(self, store: Store) -> None:
        store.put_run(RUN)
        with pytest.raises(InternalError):
            store.put_run(replace(RUN, status="other"))
        assert store.get_run("run-1") == RUN

    def test_the_latest_come_first(self, store: Store) -> None:
        for number in range(4):
            store.put_run(
                replace(
                    RUN,
                    id=f"run-{number}",
                    project="sales" if number else "fx",
                    period=f"2026-0{number % 2 + 1}",
                    status="failed" if number == 3 else "completed",
                    created_at=AT + timedelta(microseconds=number),
                )
            )

        def ids(**wanted: Any) -> list[str]:
            return [run.id[-1] for run in store.list_runs(**wanted)]

        assert ids() == ["3", "2", "1", "0"]
        assert ids(limit=2) == ["3", "2"]
        assert ids(project="sales") == ["3", "2", "1"]
        assert ids(period="2026-02", status="completed") == ["1"]

    def test_without_a_limit_there_are_all(self, store: Store) -> None:
        """What is decided by the runs of the past must not depend on how many there are."""
        count = 120
        for number in range(count):
            store.put_run(replace(RUN, id=f"run-{number}", created_at=AT + timedelta(microseconds=number)))
        assert len(store.list_runs()) == count

    def test_a_status_changes_only_from_the_expected_one(self, store: Store) -> None:
        store.put_run(RUN)
        running = store.change_run_status(
            "run-1", before="pending", after="running", at=LATER, by="bob", progress={"seq": 10}
        )
        assert (
            running == store.get_run("run-1") == replace(RUN, status="running", updated_at=LATER, progress={"seq": 10})
        )
        again = refused(lambda: store.change_run_status("run-1", before="pending", after="failed", at=LATER, by="bob"))
        assert (again.code, getattr(again, "status", None)) == ("INVALID_TRANSITION", "running")
        assert store.change_run_status("run-1", before="running", after="failed", at=LATER, by="bob").progress == {
            "seq": 10
        }

    def test_a_run_that_lost_its_lease_cannot_change_its_record(self, store: Store) -> None:
        store.put_run(RUN)
        old = take(store, token="run-1")
        take_over(store, old, token="run-2")
        failure = failed(
            lambda: store.change_run_status("run-1", before="pending", after="running", at=LATER, by="bob", lease=old)
        )
        assert failure.problem.code == "LEASE_LOST"
        assert store.get_run("run-1") == RUN

    def test_a_run_that_lost_its_lease_records_nothing_new(self, store: Store) -> None:
        old = take(store, token="run-1")
        take_over(store, old, token="run-2")
        register = partial(store.register, define("out"), location={}, origin="run-1/10", at=AT, by="ann", lease=old)
        for call in (partial(store.put_run, RUN, lease=old), register):
            assert failed(call).problem.code == "LEASE_LOST"
        assert store.get_run("run-1") is None
        assert store.list_versions("dataset", "out") == ()

    def test_the_record_has_the_fence_of_its_latest_attempt(self, store: Store) -> None:
        store.put_run(replace(RUN, fence=1))
        first = take(store, token="first")
        assert (
            store.change_run_status("run-1", before="pending", after="failed", at=LATER, by="bob", lease=first).fence
            == 1
        )
        second = take_over(store, first, token="second")
        again = store.change_run_status("run-1", before="failed", after="running", at=LATER, by="bob", lease=second)
        assert (again.fence, again) == (2, store.get_run("run-1"))
        stale = refused(
            lambda: store.change_run_status("run-1", before="running", after="failed", at=LATER, by="bob", fence=1)
        )
        assert stale.code == "INVALID_TRANSITION"
        assert (
            store.change_run_status("run-1", before="running", after="failed", at=LATER, by="bob", fence=2).fence == 2
        )


def take(store: Store, *, token: str = "run-1", period: str = "2026-01") -> Lease:
    taken = store.take_lease("sales", period, token=token, holder=f"ann ({token})", at=AT)
    assert isinstance(taken, Lease)
    return taken


def take_over(store: Store, lease: Lease, *, token: str) -> Lease:
    taken = store.take_over(lease, token=token, holder=f"ann ({token})", at=LATER)
    assert isinstance(taken, Lease)
    return taken


class TestLeases:
    def test_one_holder_at_a_time(self, store: Store) -> None:
        lease = take(store)
        assert lease == Lease(
            project="sales", period="2026-01", token="run-1", holder="ann (run-1)", fence=1, renewals=0, taken_at=AT
        )
        for token in ("run-2", "run-1"):
            assert store.take_lease("sales", "2026-01", token=token, holder="x", at=LATER) == Held(lease)

    def test_other_periods_and_projects_are_free(self, store: Store) -> None:
        take(store)
        take(store, period="2026-02", token="run-2")
        assert isinstance(store.take_lease("fx", "2026-01", token="x", holder="x", at=AT), Lease)

    def test_a_lease_that_is_taken_over_is_lost_and_the_fence_grows(self, store: Store) -> None:
        old = take(store)
        new = take_over(store, old, token="run-2")
        assert (new.fence, new.token, new.renewals) == (2, "run-2", 0)
        store.check_lease(new)
        for call in (lambda: store.check_lease(old), lambda: store.renew_lease(old)):
            failure = failed(call)
            assert (failure.problem.code, getattr(failure.problem, "fence", None)) == ("LEASE_LOST", 1)

    def test_a_renewed_lease_is_not_taken_over(self, store: Store) -> None:
        old = take(store)
        renewed = store.renew_lease(old)
        assert (renewed.fence, renewed.renewals) == (1, 1)
        assert store.take_over(old, token="run-2", holder="x", at=LATER) == Held(renewed)
        assert take_over(store, renewed, token="run-2").fence == 2

    def test_two_that_see_the_same_lease_do_not_both_take_it(self, store: Store) -> None:
        old = take(store)
        new = take_over(store, old, token="run-2")
        assert store.take_over(old, token="run-3", holder="x", at=LATER) == Held(new)

    def test_a_lease_that_was_released_meanwhile_is_taken(self, store: Store) -> None:
        old = take(store)
        store.release_lease(old)
        assert take_over(store, old, token="run-2").fence == 2

    def test_a_released_lease_is_free_and_the_fence_grows(self, store: Store) -> None:
        old = take(store)
        store.release_lease(old)
        assert failed(lambda: store.check_lease(old)).problem.code == "LEASE_LOST"
        assert failed(lambda: store.renew_lease(old)).problem.code == "LEASE_LOST"
        assert take(store, token="run-2").fence == 2

    def test_those_that_are_held_are_listed(self, store: Store) -> None:
        assert store.list_leases() == ()
        released, kept = take(store), take(store, token="run-2", period="2026-02")
        store.release_lease(released)
        assert store.list_leases() == (kept,)
        kept = store.renew_lease(kept)
        again = take(store, token="run-3")
        assert store.list_leases() == (again, kept)

    def test_who_comes_late_releases_nothing(self, store: Store) -> None:
        old = take(store)
        new = take_over(store, old, token="run-2")
        store.release_lease(old)
        store.check_lease(new)

    def test_a_lease_belongs_to_its_token(self, store: Store) -> None:
        lease = take(store)
        stranger = replace(lease, token="run-2")
        assert failed(lambda: store.check_lease(stranger)).problem.code == "LEASE_LOST"
        store.release_lease(stranger)
        store.check_lease(lease)

    def test_a_store_keeps_its_id(self, store: Store, place: Place, tmp_path: Path) -> None:
        with closing(place.open()) as again, closing(open_store("sqlite:///other.db", root=tmp_path)) as other:
            assert store.id == again.id != other.id
            assert UUID(store.id).version == 4


class TestAtOnce:
    """Eight processes."""

    def test_a_fresh_store_can_be_opened_by_all(self, place: Place, crowd: Crowd) -> None:
        actions = crowd(work.open_and_apply, place)
        assert sorted(actions) == ["created"] + ["unchanged"] * 7

    def test_different_contents_get_gapless_versions_and_none_is_lost(
        self, store: Store, place: Place, crowd: Crowd
    ) -> None:
        versions = crowd(work.apply_contents, place, rounds=5)
        assert sorted(chain.from_iterable(versions)) == list(range(1, 41))
        recorded = store.list_versions("dataset", "orders")
        assert [version.version for version in recorded] == list(range(1, 41))
        content_by_version = {version.version: version.document["content"] for version in recorded}
        for number, own in enumerate(versions):
            assert [content_by_version[version] for version in own] == [f"{number}/{turn}" for turn in range(5)]

    def test_the_same_content_is_one_version(self, store: Store, place: Place, crowd: Crowd) -> None:
        crowd(work.apply_own, place, rounds=4)
        assert len(store.list_versions("dataset", "shared")) == 1
        for number in range(8):
            contents = [version.document["content"] for version in store.list_versions("dataset", f"own-{number}")]
            assert contents == [0, 1, 2, 3]

    def test_one_version_of_a_project_is_active(self, store: Store, place: Place, crowd: Crowd) -> None:
        put_project(store, *range(8))
        crowd(work.activate, place)
        assert sorted(statuses(store)) == ["active"] + ["inactive"] * 7
        live: int | None = None
        for entry in life(store):
            if entry.event == "supersede":
                assert entry.subject.version == live
                live = None
            else:
                assert live is None
                live = entry.subject.version
        assert store.list_live_projects()[0].version == live

    def test_registered_versions_are_gapless(self, store: Store, place: Place, crowd: Crowd) -> None:
        versions = crowd(work.register, place)
        assert sorted(versions) == list(range(1, 9))
        locations = {version.version: version.location for version in store.list_versions("dataset", "out")}
        assert locations == {version: {"path": f"out/{number}"} for number, version in enumerate(versions)}

    def test_one_starts_the_run(self, store: Store, place: Place, crowd: Crowd) -> None:
        store.put_run(RUN)
        started = crowd(work.start_run, place)
        assert sorted(started) == ["INVALID_TRANSITION"] * 7 + ["running"]
        run = store.get_run("run-1")
        assert run is not None
        assert run.progress == {"by": started.index("running")}

    def test_one_gets_the_lease_and_the_others_learn_who(self, store: Store, place: Place, crowd: Crowd) -> None:
        answers = crowd(work.take_once, place)
        (lease,) = (answer for answer in answers if isinstance(answer, Lease))
        assert [answer.lease for answer in answers if isinstance(answer, Held)] == [lease] * 7

    def test_every_lease_has_its_own_fence(self, store: Store, place: Place, crowd: Crowd) -> None:
        fences = crowd(work.take_and_release, place, times=3)
        assert sorted(chain.from_iterable(fences)) == list(range(1, 25))
        assert all(own == sorted(own) for own in fences)


class TestCrash:
    @pytest.mark.parametrize(
        ("moment", "survives"),
        [("after the first insert", False), ("before the commit", False), ("after the commit", True)],
    )
    def test_a_killed_apply_leaves_all_or_nothing(
        self, store: Store, place: Place, moment: str, survives: bool
    ) -> None:
        apply(store, define("changed"), define("touched"))
        before = store.list_definitions("dataset")
        process = multiprocessing.get_context("spawn").Process(target=work.apply_and_die, args=(place, moment))
        process.start()
        process.join()
        assert process.exitcode == -signal.SIGKILL
        if survives:
            found = {version.id: version.version for version in store.list_definitions("dataset")}
            assert found == {"changed": 2, "new": 1, "new-too": 1, "touched": 1}
        else:
            assert store.list_definitions("dataset") == before
        assert apply(store, define("next")) == [(Action.CREATED, 1)]


@pytest.fixture
def behind(place: Place) -> Database:
    """The database itself, for looking behind the store."""
    return Database(place.url, root=place.root)


def tables(database: Database) -> set[str]:
    with database.reading() as connection:
        return set(inspect(connection).get_table_names())


class TestFormat:
    def test_migrations_make_the_tables_that_the_store_uses(self, store: Store, behind: Database) -> None:
        with closing(behind), behind.reading() as connection:
            context = MigrationContext.configure(connection, opts={"version_table": FORMAT_TABLE})
            assert compare_metadata(context, METADATA) == []

    def test_an_older_store_is_upgraded_and_keeps_what_it_has(self, place: Place, behind: Database) -> None:
        with closing(behind):
            migrate(behind, to="0001")
            assert "dobo_run" not in tables(behind)
            with behind.writing() as connection:
                row = {"kind": "dataset", "id": "orders", "version": 1, "fingerprint": "sha256:1", "status": "active"}
                row |= {"document": json.dumps({"id": "orders", "content": 1, "name": "Orders"})}
                row |= {"created_at": AT.isoformat(), "created_by": "ann"}
                row |= {"updated_at": AT.isoformat(), "updated_by": "ann"}
                columns, values = ", ".join(row), ", ".join(f":{name}" for name in row)
                connection.execute(text(f"INSERT INTO dobo_version ({columns}) VALUES ({values})"), row)
        with closing(place.open()) as store:
            assert apply(store, define("orders")) == [(Action.UNCHANGED, 1)]
            store.put_run(RUN)

    def test_fences_go_on_and_leases_are_free_after_an_upgrade(self, place: Place, behind: Database) -> None:
        with closing(behind):
            migrate(behind, to="0002")
            with behind.writing() as connection:
                columns = "project, period, fence, holder, taken_at, expires_at"
                values = f"'sales', '2026-01', 7, 'ann', '{AT.isoformat()}', '{AT.isoformat()}'"
                connection.execute(text(f"INSERT INTO dobo_lease ({columns}) VALUES ({values})"))
        with closing(place.open()) as store:
            assert take(store).fence == 8

    def test_a_history_before_the_chain_becomes_its_beginning(self, place: Place, behind: Database) -> None:
        with closing(behind):
            migrate(behind, to="0003")
            with behind.writing() as connection:
                rows = [
                    (7, "period", "fiscal", "2026-01", "locked", "closed", "locked", "bob", None),
                    (3, "project", "sales", "2", "activate", "draft", "active", "ann", '{"version":1}'),
                ]
                names = ("number", "subject", "id", "item", "event", "before", "after", "by", "detail")
                listed, values = ", ".join(names), ", ".join(f":{name}" for name in names)
                insert = text(f"INSERT INTO dobo_history ({listed}, at) VALUES ({values}, :at)")
                at = AT.isoformat(timespec="microseconds")
                connection.execute(insert, [{**dict(zip(names, row, strict=True)), "at": at} for row in rows])
        with closing(place.open()) as store:
            apply(store, define("orders"))
            first, second, third = check_chain(store)
            assert (first.subject, first.event, first.by, first.at) == (
                Subject.of_project("sales", 2),
                "activate",
                "ann",
                AT,
            )
            assert (first.before, first.after, first.detail) == ("draft", "active", {"version": 1})
            assert (second.subject, second.event) == (Subject.of_period("2026-01", calendar="fiscal"), "lock")
            assert (third.event, third.number) == ("apply", 3)

    def test_an_upgrade_that_fails_leaves_the_old_format(self, place: Place, behind: Database) -> None:
        with closing(behind):
            migrate(behind, to="0001")
            with behind.writing() as connection:
                connection.execute(text("CREATE TABLE dobo_lease (in_the_way INTEGER)"))
            before = tables(behind)
            assert failed(place.open).problem.code == "STORE_UNAVAILABLE"
            assert tables(behind) == before
            with behind.reading() as connection:
                assert connection.scalar(text(f"SELECT version_num FROM {FORMAT_TABLE}")) == "0001"
            with behind.writing() as connection:
                connection.execute(text("DROP TABLE dobo_lease"))
        with closing(place.open()) as store:
            take(store)

    @pytest.mark.parametrize("newer", ["0005", "1000", "later"])
    def test_a_newer_store_is_refused_and_left_alone(self, place: Place, behind: Database, newer: str) -> None:
        with closing(behind):
            migrate(behind)
            with behind.writing() as connection:
                connection.execute(text(f"UPDATE {FORMAT_TABLE} SET version_num = '{newer}'"))
                connection.execute(text("DROP TABLE dobo_lease"))
            before = tables(behind)
            file = place.root / ".dobo" / "store.db"
            content = file.read_bytes() if place.kind == "sqlite" else b""
            failure = failed(place.open)
            assert (failure.problem.code, failure.retry_helps) == ("STORE_TOO_NEW", False)
            assert (getattr(failure.problem, "found", None), getattr(failure.problem, "known", None)) == (newer, FORMAT)
            assert tables(behind) == before
            assert (file.read_bytes() if place.kind == "sqlite" else b"") == content


class TestFaults:
    def test_a_writer_that_never_ends_is_a_clear_error(
        self, place: Place, behind: Database, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(database_module, "WAIT_SECONDS", 1)
        with closing(place.open()) as store, closing(behind), behind.writing():
            failure = failed(lambda: store.apply([define("orders")], at=AT, by="ann"))
            assert (failure.problem.code, failure.retry_helps) == ("STORE_UNAVAILABLE", True)
            assert store.list_definitions("dataset") == ()

    @pytest.mark.parametrize("statuses", list(product(LIVE, repeat=2)), ids=str)
    def test_the_database_itself_refuses_a_second_live_version(
        self, store: Store, behind: Database, statuses: tuple[str, str]
    ) -> None:
        put_project(store, "a", "b", "c")
        change = text("UPDATE dobo_version SET status = :status WHERE id = 'sales' AND version = :version")
        rows = [{"status": status, "version": version} for version, status in enumerate(statuses, start=1)]
        with closing(behind), pytest.raises(InternalError), behind.writing() as connection:
            connection.execute(change, rows)
        assert store.list_live_projects() == ()

    def test_the_open_store_is_shown_without_a_password(self, store: Store, place: Place) -> None:
        assert place.kind in repr(store)
        assert PASSWORD not in repr(store)


def shown(call: Callable[[], object]) -> str:
    """Everything that an error and its traceback show."""
    with pytest.raises((Rejected, RunFailed)) as caught:
        call()
    error: Any = caught.value
    problems = error.problems if isinstance(error, Rejected) else (error.problem,)
    texts = [f"{problem.code} {problem!r} {problem.message()} {problem.hint()}" for problem in problems]
    return "".join([*traceback.format_exception(error), *texts])


WRONG = "hush-hush"
"""A constant, because the lines of this file are part of a traceback."""


@pytest.mark.postgresql
class TestPasswords:
    def test_a_wrong_one_is_not_shown(self, postgresql_server: Server, tmp_path: Any) -> None:
        url = postgresql_server.url("postgres", password=WRONG)
        text = shown(lambda: open_store(url, root=tmp_path))
        assert "STORE_UNAVAILABLE" in text
        assert WRONG not in text

    def test_one_that_the_server_repeats_is_blotted_out(self, postgresql_server: Server, tmp_path: Any) -> None:
        url = postgresql_server.url("postgres", password=USER)
        failure = failed(lambda: open_store(url, root=tmp_path))
        assert isinstance(failure.problem, StoreUnavailable)
        assert USER not in failure.problem.reason

    def test_one_beside_the_address_works_and_comes_first(self, postgresql_server: Server, tmp_path: Any) -> None:
        with postgresql_server.fresh_database() as url:
            bare = url.replace(f":{PASSWORD}@", "@")
            with closing(open_store(bare, root=tmp_path, password=PASSWORD)) as store:
                assert store.list_definitions("dataset") == ()
            assert WRONG not in shown(lambda: open_store(url, root=tmp_path, password=WRONG))

    @pytest.mark.parametrize(
        "template",
        [
            "postgresql://u:{}@127.0.0.1:1/db",
            "postgresql://u@127.0.0.1:1/db?password={}",
            "postgresql://u:{}@127.0.0.1:1/db?no_such_option=1",
            "postgresql://u:x@{}@127.0.0.1:1/db",
            "postgresql://u:x/y@{}@127.0.0.1:1/db",
            "postgresql://u:x?y@{}@127.0.0.1:1/db",
            "postgresql://u@127.0.0.1:1/db?sslpassword={}",
            "postgresql://u:{}@127.0.0.1:port/db",
            "postgresql://u:{}@[::1/db",
            "postgres://u:{}@127.0.0.1:1/db",
            "postgresql+psycopg2://u:{}@127.0.0.1:1/db",
            "mysql://u:{}@127.0.0.1/db",
            "{}",
            "sqlite://u:{}@host/x",
        ],
    )
    def test_none_is_shown_whatever_the_address(self, tmp_path: Any, template: str) -> None:
        url = template.format(WRONG)
        assert WRONG not in shown(lambda: open_store(url, root=tmp_path))


class TestSqlite:
    def test_a_file_that_is_no_store_is_left_alone(self, tmp_path: Any) -> None:
        file = tmp_path / "store.db"
        file.write_bytes(b"quarterly figures, not a database" * 100)
        failure = failed(lambda: open_store("sqlite:///store.db", root=tmp_path))
        assert (failure.problem.code, failure.retry_helps) == ("STORE_INVALID", False)
        assert file.read_bytes() == b"quarterly figures, not a database" * 100

    def test_a_folder_that_cannot_be_made_is_a_clear_error(self, tmp_path: Any) -> None:
        (tmp_path / "file").write_text("in the way")
        failure = failed(lambda: open_store("sqlite:///file/store.db", root=tmp_path))
        assert failure.problem.code == "STORE_UNAVAILABLE"

    def test_a_store_that_may_only_be_read(self, open_root: Path) -> None:
        (open_root / "closed").mkdir()
        open_store("sqlite:///closed/store.db", root=open_root).close()
        for path in (open_root / "closed" / "store.db", open_root / "closed"):
            path.chmod(path.stat().st_mode & ~0o222)
        read, *faults = as_nobody(work.use_read_only_store, open_root)
        assert read == ()
        remedy = "give this user write permission for the file and its folder"
        assert faults == [("STORE_UNAVAILABLE", True, remedy)] * 2

    def test_wal_is_turned_off(self, tmp_path: Any) -> None:
        with closing(open_store("sqlite:///store.db", root=tmp_path)) as store:
            with closing(sqlite3.connect(tmp_path / "store.db")) as connection:
                assert connection.execute("PRAGMA journal_mode = WAL").fetchone() == ("wal",)
            apply(store, define("orders"))
        with closing(sqlite3.connect(tmp_path / "store.db")) as connection:
            assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)

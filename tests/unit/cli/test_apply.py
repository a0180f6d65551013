"""`dobo apply`, `dobo activate` and `dobo deactivate`: from files to a running project."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from dobonomodo.store import open_store
from tests.unit.cli.conftest import Dobo, change

PROJECT = "projects/monthly-sales.yaml"


def test_from_nothing_to_an_active_project(dobo: Dobo, stored: Path) -> None:
    applied = dobo("apply", "--yes")
    assert applied.code == 0
    assert "+ project monthly-sales v1" in applied.out.splitlines()
    again = dobo("apply", "--yes")
    assert (again.code, again.out) == (0, "")
    activated = dobo("activate", "monthly-sales")
    assert (activated.code, activated.out) == (0, "")
    assert "sales-orders v1" in activated.err
    deactivated = dobo("deactivate", "monthly-sales", "--json")
    assert deactivated.document["data"] == {"project": "monthly-sales", "version": 1, "status": "inactive"}


def test_changes_are_shown(dobo: Dobo, stored: Path) -> None:
    dobo("apply", "--yes")
    change(stored, PROJECT, "orders.amount = 0", "orders.amount < 0")
    change(stored, "datasets/orders.yaml", "name: Sales orders", "name: Orders")
    lines = dobo("apply", "--yes").out.splitlines()
    assert lines == [". dataset sales-orders v1: name (in place)", "~ project monthly-sales v1 -> v2: operations"]


def test_the_text_as_written_is_recorded(dobo: Dobo, stored: Path) -> None:
    dobo("apply", "--yes")
    file = stored / PROJECT
    commented = f"# Reviewed in March.\n{file.read_text(encoding='utf-8')}"
    file.write_bytes(commented.encode())
    assert dobo("apply", "--yes").out.splitlines() == [". project monthly-sales v1: text (in place)"]
    assert dobo("apply", "--yes").out == ""
    with closing(open_store("sqlite:///.dobo/store.db", root=stored)) as store:
        recorded = store.get_version("project", "monthly-sales")
    assert recorded is not None
    assert recorded.text == commented


def test_a_definition_that_was_recorded_without_its_text_gets_it(dobo: Dobo, stored: Path) -> None:
    dobo("apply", "--yes")
    with closing(sqlite3.connect(stored / ".dobo" / "store.db")) as store, store:
        store.execute("UPDATE dobo_version SET text = NULL WHERE id = 'monthly-sales'")
    assert dobo("apply", "--yes").out.splitlines() == [". project monthly-sales v1: text (in place)"]


def test_as_json(dobo: Dobo, stored: Path) -> None:
    document = dobo("apply", "--yes", "--json").document
    assert (document["schema"], document["ok"], document["data"]["conflicts"]) == ("dobo/apply/1", True, {})
    assert {"action": "created", "kind": "project", "id": "monthly-sales", "version": 1} in [
        {key: value for key, value in each.items() if key != "changed"} for each in document["data"]["changes"]
    ]
    assert dobo("apply", "--json").document["data"]["changes"] == []


def test_errors_are_not_applied(dobo: Dobo, stored: Path) -> None:
    change(stored, PROJECT, "orders.amount = 0", "amout = 0")
    result = dobo("apply", "--yes")
    assert (result.code, result.out, "UNKNOWN_COLUMN" in result.err) == (1, "", True)


def test_activation_as_json(dobo: Dobo, stored: Path) -> None:
    dobo("apply", "--yes")
    document = dobo("activate", "monthly-sales", "--dataset-version", "1", "--json").document
    assert document["data"] == {
        "project": "monthly-sales",
        "version": 1,
        "status": "active",
        "pin": {"dataset": "sales-orders", "version": 1},
        "scenarios": [],
    }


def test_what_is_not_applied_is_not_activated(dobo: Dobo, stored: Path) -> None:
    result = dobo("activate", "monthly-sales")
    assert (result.code, "NOT_APPLIED" in result.err) == (1, True)


def test_a_conflict_and_its_way_out(dobo: Dobo, stored: Path) -> None:
    dobo("apply", "--yes")
    dobo("activate", "monthly-sales")
    change(stored, PROJECT, 'orders.region = \\"EMEA\\"', "FALSE")
    change(stored, PROJECT, '          - "orders.region"\n', "")
    change(stored, "datasets/orders.yaml", "      - {name: region, type: string}\n", "")
    applied = dobo("apply", "--yes", "--json").document["data"]
    (conflict,) = applied["conflicts"]["monthly-sales"]
    assert (conflict["column"], conflict["change"]) == ("region", "removed")
    assert conflict["operations"][0] == {"seq": 1, "name": "Tag EMEA orders"}
    shown = dobo("show", "monthly-sales", "--json").document["data"]
    assert shown["versions"][0]["status"] == "conflict"
    assert dobo("activate", "monthly-sales", "--keep-pin").code == 0


def test_deactivating_what_is_not_active(dobo: Dobo, stored: Path) -> None:
    result = dobo("deactivate", "monthly-sales")
    assert (result.code, "PROJECT_NOT_RUNNABLE" in result.err) == (4, True)

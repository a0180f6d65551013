"""Chains of projects (C-93): what one registers, another reads, before and after there are runs. Without Spark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dobonomodo.plan import KnownDataset
from dobonomodo.plan.explain import describe_plan, render_plan
from dobonomodo.storage import load_stored
from dobonomodo.store import Definition, Store
from dobonomodo.workspace import Workspace
from tests.world import CLOCK, Folder, refusal

BASE = """\
datasource: {id: lake, type: parquet, options: {path_prefix: data}}
---
resolver:
  id: files
  is_default: true
  rules: [{strategy: {type: path, datasource_id: lake, path: "{{table_name}}"}}]
---
calendar:
  id: fiscal
  levels: [{name: month, identifier_pattern: "{year}-{sequence:02}"}]
  generate: {from: 2026-01-01, to: 2026-12-31}
---
dataset:
  id: orders
  main_table:
    name: orders
    temporal_mode: period
    columns: [{name: region, type: string}, {name: amount, type: "decimal(15,2)"}]
"""

BALANCES = """\
dataset:
  id: balances
  main_table:
    name: balances
    temporal_mode: period
    columns: [{name: region, type: string}, {name: amount, type: "decimal(15,2)"}]
"""


def project(name: str, reads: str, registers: str | None = None, *, operations: str = "", columns: str = "") -> str:
    """A project that reads a dataset and registers what comes of it."""
    register = f", register_as_dataset: {registers}" if registers else ""
    chosen = f", columns: [{columns}]" if columns else ""
    more = f"{operations}\n" if operations else ""
    return (
        f"project:\n  id: {name}\n  input_dataset_id: {reads}\n  operations:\n{more}"
        f"    - {{seq: 90, type: output, arguments: {{destination: {{datasource_id: lake, table: {name}}}{register}{chosen}}}}}\n"
    )


def update(column: str, expression: str, *, joins: str = "", seq: int = 10) -> str:
    return (
        f"    - seq: {seq}\n      type: update\n      arguments:\n        joins: [{joins}]\n"
        f"        assignments: [{{column: {column}, expression: '{expression}'}}]"
    )


class Chains(Folder):
    """A workspace with datasets and the projects of a test."""

    def projects(self, *texts: str) -> Workspace:
        for number, text in enumerate(texts, start=1):
            self.put(f"projects/{number}.yaml", text)
        return self.open()


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Chains]:
    made = Chains(tmp_path)
    made.put("dobo.yaml", "workspace: {name: chains}\n").put("datasources/base.yaml", BASE)
    yield made
    made.close()


def codes(workspace: Workspace) -> list[str]:
    return [problem.code for problem in workspace.problems()]


def register(store: Store, name: str, *columns: str, origin: str = "run/90") -> int:
    """What a run leaves in a store."""
    document = {
        "id": name,
        "name": name,
        "main_table": {
            "name": name,
            "temporal_mode": "period",
            "columns": [{"name": each, "type": "string", "nullable": True} for each in columns],
        },
    }
    definition = Definition(kind="dataset", id=name, fingerprint=str(columns), document=document)
    location = {"kind": "parquet", "folders": [f"data/{name}"], "columns": [*columns, "_period"]}
    return store.register(definition, location=location, origin=origin, at=CLOCK, by="me").version


FIRST = project("a-first", "orders", "summed", operations=update("net", "amount * 0.9"))
SECOND = project("b-second", "summed", operations=update("double", "net * 2"))


# --- validate and plan


def test_a_chain_validates_on_a_clean_clone(folder: Chains) -> None:
    assert codes(folder.projects(FIRST, SECOND)) == []
    assert not (folder.root / ".dobo").exists()


def test_the_order_of_the_files_does_not_matter(folder: Chains) -> None:
    assert codes(folder.projects(SECOND, FIRST)) == []


def test_the_columns_are_those_of_the_plan(folder: Chains) -> None:
    plan = folder.projects(FIRST, SECOND).plan("b-second", period="2026-01").plan
    assert {name: str(kind) for name, kind in plan.input.columns.items()} == {
        "region": "string",
        "amount": "decimal(15,2)",
        "net": str(folder.open().plan("a-first", period="2026-01").plan.steps[0].after.columns["net"]),
    }
    assert (plan.input.temporal_mode, plan.input.table, plan.input.registered_by) == ("period", "summed", ("a-first",))
    assert (plan.input.locations, plan.input.resolver_id) == ((), None)
    assert describe_plan(plan)["reads"][0]["registered_by"] == ["a-first"]
    assert "a-first" in render_plan(plan).split("\ndoes\n")[0]


def test_the_temporal_mode_is_that_of_the_plan(folder: Chains) -> None:
    first = project("a-first", "orders", "summed", columns="region")
    plan = folder.projects(first, project("b-second", "summed")).plan("b-second", period="2026-01").plan
    assert plan.input.temporal_mode == "snapshot"


def test_a_column_that_the_first_does_not_register(folder: Chains) -> None:
    second = project("b-second", "summed", operations=update("double", "gross * 2"))
    (problem,) = folder.projects(FIRST, second).problems()
    assert (problem.code, problem.name, problem.operation and problem.operation.seq) == ("UNKNOWN_COLUMN", "gross", 10)  # type: ignore[attr-defined]


def test_joins_appends_and_lookups_too(folder: Chains) -> None:
    join = update("n", "s.net", joins="{alias: s, dataset_id: summed, on: 's.region = orders.region'}")
    added = update("net", "amount", seq=20)
    append = "    - {seq: 30, type: append, arguments: {source: {dataset_id: summed}}}"
    third = project("c-third", "regions", operations=update("x", "s.net"))
    folder.put(
        "datasets/regions.yaml",
        "dataset:\n  id: regions\n  main_table: {name: regions, columns: [{name: region, type: string}]}\n"
        "  lookups:\n    - alias: s\n      target: {type: dataset, id: summed}\n"
        "      join_conditions: [{source_column: region, target_column: region}]\n",
    )
    assert codes(folder.projects(FIRST, project("b", "orders", operations=f"{join}\n{added}\n{append}"), third)) == []
    folder.put(
        "datasets/regions.yaml",
        (folder.root / "datasets/regions.yaml").read_text().replace("target_column: region", "target_column: area"),
    )
    (problem,) = folder.open().problems()
    assert (problem.code, problem.name) == ("UNKNOWN_COLUMN", "area")  # type: ignore[attr-defined]


def test_a_long_chain(folder: Chains) -> None:
    """Longer than Python could recurse."""
    texts = [project("p0000", "orders", "d0000")]
    texts += [project(f"p{n:04}", f"d{n - 1:04}", f"d{n:04}") for n in range(1, 200)]
    folder.put("projects/all.yaml", "---\n".join(reversed(texts)))
    workspace = folder.open()
    assert codes(workspace) == []
    assert workspace.plan("p0199", period="2026-01").plan.input.registered_by == ("p0198",)


def test_an_error_in_the_first_is_reported_once(folder: Chains) -> None:
    wrong = project("a-first", "orders", "summed", operations=update("net", "amout * 0.9"))
    third = project("c-third", "doubled", operations=update("again", "double * 2"))
    second = project("b-second", "summed", "doubled", operations=update("double", "net * 2"))
    workspace = folder.projects(wrong, second, third)
    (problem,) = workspace.problems()
    assert (problem.code, problem.name) == ("UNKNOWN_COLUMN", "amout")  # type: ignore[attr-defined]
    assert [each.code for each in refusal(workspace.plan, "c-third", period="2026-01")] == ["UNKNOWN_COLUMN"]


def test_the_second_is_still_checked(folder: Chains) -> None:
    wrong = project("a-first", "orders", "summed", operations=update("net", "amout * 0.9"))
    second = project("b-second", "summed", operations=update("double", "NO_FUNCTION(net)"))
    assert codes(folder.projects(wrong, second)) == ["UNKNOWN_COLUMN", "UNKNOWN_FUNCTION"]


@pytest.mark.parametrize(("old", "new"), [("seq: 90", "seqq: 90"), ("a-first", "a-first\n  nmae: x")])
def test_a_first_that_cannot_be_loaded_is_reported_once(folder: Chains, old: str, new: str) -> None:
    workspace = folder.projects(FIRST.replace(old, new, 1), SECOND)
    assert set(codes(workspace)) <= {"UNKNOWN_KEY", "INVALID_SEQ"}, workspace.problems()


def test_rows_are_added_to_a_dataset_whose_columns_nobody_knows(folder: Chains) -> None:
    """By every operation that adds rows; the error is that of the first project alone."""
    total = """\
    - seq: 20
      type: aggregate
      arguments: {group_by: [region], aggregations: [{column: total, expression: SUM(net)}]}
    - seq: 30
      type: append
      arguments: {source: {dataset_id: orders}}
    - seq: 40
      type: append
      arguments:
        source: {dataset_id: orders}
        aggregation: {group_by: [region], aggregations: [{column: more, expression: SUM(amount)}]}"""
    workspace = folder.projects(
        project("first", "orders", "summed", operations=update("net", "nothing + 1")),
        project("second", "summed", operations=total),
    )
    assert [problem.code for problem in workspace.problems()] == ["UNKNOWN_COLUMN"]


def test_two_projects_that_register_one_dataset(folder: Chains) -> None:
    other = project("a-other", "orders", "summed")
    planned = folder.projects(FIRST, other, SECOND).plan("b-second", period="2026-01")
    assert planned.plan.input.registered_by == ("a-first", "a-other")


def test_another_project_registers_what_one_reads_and_registers(folder: Chains) -> None:
    """No cycle: the dataset can come from the other."""
    assert codes(folder.projects(project("a-self", "summed", "summed"), FIRST)) == []


def test_a_pinned_version_is_not_planned(folder: Chains) -> None:
    second = SECOND.replace("  operations", "  input_dataset_version: 1\n  operations")
    assert codes(folder.projects(FIRST, second)) == ["INPUT_DATASET_NOT_FOUND"]


def test_an_override_of_the_resolver_comes_first(folder: Chains) -> None:
    second = SECOND.replace("  operations", "  resolver_overrides: {summed: files}\n  operations")
    plan = folder.projects(FIRST, second).plan("b-second", period="2026-01").plan
    assert ([str(each) for each in plan.input.locations], plan.input.is_awaited) == (["lake:summed"], False)


# --- cycles


def test_a_project_that_reads_its_own_result(folder: Chains) -> None:
    (problem,) = folder.projects(project("closing", "balances", "balances")).problems()
    assert (problem.code, problem.dataset_id, problem.projects) == ("DATASET_CYCLE", "balances", ("closing", "closing"))  # type: ignore[attr-defined]
    assert problem.span is not None
    assert problem.span.line == 3


def test_a_cycle_of_three(folder: Chains) -> None:
    join = update("n", "s.amount", joins="{alias: s, dataset_id: three, on: 's.region = orders.region'}")
    workspace = folder.projects(
        project("a", "orders", "one", operations=join), project("b", "one", "two"), project("c", "two", "three")
    )
    (problem,) = workspace.problems()
    assert (problem.code, problem.projects) == ("DATASET_CYCLE", ("a", "c", "b", "a"))  # type: ignore[attr-defined]
    for name in ("a", "b", "c"):
        assert [each.code for each in refusal(workspace.plan, name, period="2026-01")] == ["DATASET_CYCLE"]


def test_a_project_beside_the_cycle_says_nothing(folder: Chains) -> None:
    assert codes(folder.projects(project("closing", "balances", "balances"), project("report", "balances"))) == [
        "DATASET_CYCLE"
    ]


def test_a_declared_dataset_ends_the_cycle(folder: Chains) -> None:
    folder.put("datasets/balances.yaml", BALANCES)
    assert codes(folder.projects(project("closing", "balances", "balances"))) == []


def test_a_declared_dataset_needs_no_resolver(folder: Chains) -> None:
    folder.put(
        "datasources/base.yaml",
        BASE.replace("  is_default: true\n", "").replace("  id: orders", "  id: orders\n  resolver_id: files"),
    )
    folder.put("datasets/balances.yaml", BALANCES)
    workspace = folder.projects(project("closing", "balances", "balances"))
    assert codes(workspace) == []
    assert [each.code for each in refusal(workspace.plan, "closing", period="2026-01", to_run=True)] == [
        "RESOLVER_NOT_FOUND"
    ]


def test_a_stored_version_ends_the_cycle(folder: Chains) -> None:
    workspace = folder.projects(project("closing", "balances", "balances"))
    register(workspace.store, "balances", "region")
    assert codes(folder.open()) == []


# --- stored versions come first


def test_a_stored_version_comes_before_the_planned_one(folder: Chains) -> None:
    workspace = folder.projects(FIRST, project("b-second", "summed"))
    register(workspace.store, "summed", "region")
    register(workspace.store, "summed", "region", "extra", origin="later/90")
    plan = folder.open().plan("b-second", period="2026-01", to_run=True).plan
    assert (plan.input.version, list(plan.input.columns), plan.input.is_awaited) == (2, ["region", "extra"], False)


def test_a_draft_reads_what_a_draft_has_registered(folder: Chains) -> None:
    workspace = folder.projects(FIRST, project("b-second", "summed"))
    store = folder.sandbox()
    register(store, "summed", "region")
    store.close()
    plan = workspace.plan("b-second", period="2026-01", to_run=True).plan
    assert (plan.input.version, list(plan.input.columns)) == (1, ["region"])


def test_a_declared_dataset_is_read_where_a_run_registered_it(folder: Chains) -> None:
    folder.put("datasets/balances.yaml", BALANCES)
    workspace = folder.projects(project("closing", "balances", "balances"))
    workspace.apply()
    assert register(workspace.store, "balances", "region", "amount") == 2
    for opened in (folder.open(), workspace):
        plan = opened.plan("closing", period="2026-02", to_run=True).plan
        assert (plan.input.version, plan.input.registered and plan.input.registered.place) == (
            2,
            ("folders", "data/balances"),
        )
    workspace.apply()  # the file is another version than what was registered
    workspace.activate("closing")
    live = workspace.plan("closing", period="2026-02", to_run=True)
    assert (live.status, live.plan.input.registered and live.plan.input.registered.place) == (
        "active",
        ("folders", "data/balances"),
    )


def test_a_declared_resolver_comes_before_the_registration(folder: Chains) -> None:
    folder.put("datasets/balances.yaml", BALANCES.replace("id: balances", "id: balances\n  resolver_id: files", 1))
    workspace = folder.projects(project("closing", "balances", "balances"))
    register(workspace.store, "balances", "region", "amount")
    plan = folder.open().plan("closing", period="2026-02", to_run=True).plan
    assert [str(each) for each in plan.input.locations] == ["lake:balances"]


def test_a_version_is_found_again_by_its_number(folder: Chains) -> None:
    """A snapshot asks by number; a declared dataset of the same shape must not take the place of registered rows."""
    folder.put("datasets/balances.yaml", BALANCES)
    workspace = folder.projects(project("closing", "balances", "balances"))
    own = workspace.definitions.datasets["balances"]
    definition = Definition(kind="dataset", id="balances", fingerprint=own.fingerprint(), document=own.document())
    location = {"kind": "parquet", "folders": ["data/balances"]}
    workspace.store.register(definition, location=location, origin="r/1", at=CLOCK, by="me")
    planned = folder.open().plan("closing", period="2026-02", to_run=True)
    known = planned.datasets.find("balances", planned.plan.input.version)
    assert isinstance(known, KnownDataset)
    assert known.registered == load_stored(location)


# --- running and activating


def test_a_run_that_comes_too_early_names_what_to_run(folder: Chains) -> None:
    (problem,) = refusal(folder.projects(FIRST, SECOND).run, "b-second", period="2026-03")
    found: Any = problem
    assert (found.code, found.dataset_id, found.registered_by, found.period) == (
        "INPUT_DATASET_NOT_FOUND",
        "summed",
        ("a-first",),
        "2026-03",
    )
    assert "dobo run a-first --period 2026-03" in (problem.hint() or "")
    assert problem.span is not None
    assert problem.span.source.name == "projects/2.yaml"


def test_every_reading_has_its_own_code(folder: Chains) -> None:
    join = update("n", "s.net", joins="{alias: s, dataset_id: summed, on: 's.region = orders.region'}")
    added = update("net", "amount", seq=20)
    append = "    - {seq: 30, type: append, arguments: {source: {dataset_id: summed}}}"
    workspace = folder.projects(FIRST, project("b", "orders", operations=f"{join}\n{added}\n{append}"))
    problems = refusal(workspace.run, "b", period="2026-03")
    assert [(each.code, each.operation and each.operation.seq) for each in problems] == [
        ("JOIN_DATASET_NOT_FOUND", 10),
        ("APPEND_001", 30),
    ]


def test_an_active_project_names_what_to_activate_and_run(folder: Chains) -> None:
    join = update("n", "s.net", joins="{alias: s, dataset_id: summed, on: 's.region = orders.region'}")
    workspace = folder.projects(FIRST, project("b", "orders", operations=join))
    workspace.apply()
    workspace.activate("b")
    found: Any
    (found,) = refusal(workspace.run, "b", period="2026-03")
    assert (found.code, found.registered_by, found.inactive) == ("JOIN_DATASET_NOT_FOUND", ("a-first",), True)
    workspace.activate("a-first")
    (found,) = refusal(workspace.run, "b", period="2026-03")
    assert (found.code, found.inactive) == ("JOIN_DATASET_NOT_FOUND", False)


def test_an_active_project_does_not_see_what_drafts_registered(folder: Chains) -> None:
    join = update("n", "s.region", joins="{alias: s, dataset_id: summed, on: 's.region = orders.region'}")
    workspace = folder.projects(FIRST, project("b", "orders", operations=join))
    workspace.apply()
    workspace.activate("b")
    store = folder.sandbox()
    register(store, "summed", "region")
    store.close()
    assert [each.code for each in refusal(workspace.run, "b", period="2026-03")] == ["JOIN_DATASET_NOT_FOUND"]


def test_activation_needs_a_recorded_input(folder: Chains) -> None:
    workspace = folder.projects(FIRST, SECOND)
    workspace.apply()
    found: Any
    (found,) = refusal(workspace.activate, "b-second")
    assert (found.code, found.registered_by) == ("INPUT_DATASET_NOT_FOUND", ("a-first",))
    workspace.activate("a-first")
    register(workspace.store, "summed", "region", "amount", "net")
    assert refusal(workspace.activate, "b-second")[0].code == "TYPE_MISMATCH"  # `net` is a text there


def test_datasets_that_projects_register_are_listed(folder: Chains) -> None:
    workspace = folder.projects(FIRST, SECOND)
    rows = {row.id: (row.version, row.status) for row in workspace.listing("dataset")}
    assert rows == {"orders": (None, "active"), "summed": (None, "planned")}
    described = workspace.describe("summed")
    assert (described.versions, described.registered_by) == ((), ("a-first",))
    assert [each["name"] for each in (described.definition or {})["main_table"]["columns"]] == [
        "region",
        "amount",
        "net",
    ]
    register(workspace.store, "summed", "region")
    rows = {row.id: (row.version, row.status) for row in folder.open().listing("dataset")}
    assert rows["summed"] == (1, "active")

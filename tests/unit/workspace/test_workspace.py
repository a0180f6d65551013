"""A workspace: finding it, checking it, versions and the life of projects, periods. On SQLite, without Spark."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from dobonomodo.problems import Problem
from dobonomodo.problems.definition import UnsafePath
from dobonomodo.problems.operation import DestinationReason, InvalidDestination
from dobonomodo.storage.table_target import StoredTable
from dobonomodo.store import Definition
from dobonomodo.workspace import Workspace
from tests.world import CLOCK, WORKSPACES, Folder, Sales, refusal

PROJECT = "projects/monthly-sales.yaml"
ORDERS = "datasets/orders.yaml"
STORES = "datasources/stores.yaml"


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Sales]:
    made = Sales.copy(tmp_path / "ws")
    yield made
    made.close()


@pytest.fixture
def stored(folder: Sales) -> Folder:
    """A workspace to which nothing was applied yet."""
    return folder.with_store()


def codes(problems: tuple[Problem, ...]) -> list[str]:
    return [problem.code for problem in problems]


def actions(workspace: Workspace) -> list[tuple[str, str, int]]:
    """What applying would change: the action, the id and the version then."""
    return [
        (str(change.action), change.definition.id, change.version)
        for change in workspace.changes()
        if change.action != "unchanged"
    ]


def versions(workspace: Workspace, project: str = "monthly-sales") -> list[tuple[int, str]]:
    return [(each.version, each.status) for each in workspace.store.list_versions("project", project)]


# --- opening


@pytest.mark.parametrize("at", [".", "projects", "datasets", PROJECT])
def test_a_workspace_is_found_upwards(folder: Sales, at: str) -> None:
    assert folder.open(at).root == folder.root.resolve()


def test_outside_of_a_workspace(tmp_path: Path) -> None:
    (problem,) = refusal(Workspace.open, tmp_path)
    assert problem.code == "WORKSPACE_NOT_FOUND"


def test_an_environment(folder: Sales) -> None:
    folder.write("dobo.yaml", "workspace: {default_resolver: lake, environments: {prod: {store: 'sqlite:///prod.db'}}}")
    assert folder.open(environment="prod").settings.store == "sqlite:///prod.db"
    assert folder.open().settings.store == "sqlite:///.dobo/store.db"
    (problem,) = refusal(folder.open, environment="prd")
    assert (problem.code, problem.known) == ("ENVIRONMENT_NOT_FOUND", ("prod",))  # type: ignore[attr-defined]


def test_documents_of_a_program(tmp_path: Path) -> None:
    documents: list[dict[str, Any]] = [
        {"datasource": {"id": "lake", "type": "parquet", "options": {"path_prefix": "x"}}},
        {
            "resolver": {
                "id": "r",
                "is_default": True,
                "rules": [{"strategy": {"type": "path", "datasource_id": "lake", "path": "{{table_name}}"}}],
            }
        },
        {"dataset": {"id": "d", "main_table": {"name": "t", "columns": [{"name": "a", "type": "integer"}]}}},
        {
            "project": {
                "id": "p",
                "input_dataset_id": "d",
                "operations": [
                    {"seq": 1, "type": "update", "arguments": {"assignments": [{"column": "b", "expression": "aa"}]}},
                    {"seq": 2, "type": "output", "arguments": {"destination": {"type": "csv", "path": "out"}}},
                ],
            }
        },
    ]
    workspace = Workspace.from_documents(documents, root=tmp_path)
    (problem,) = workspace.problems()
    assert (problem.code, problem.span and problem.span.source.name) == ("UNKNOWN_COLUMN", "document 4")
    documents[3]["project"]["operations"][0]["arguments"]["assignments"][0]["expression"] = "a"
    assert Workspace.from_documents(documents, root=tmp_path).problems() == ()


# --- checking


@pytest.mark.parametrize("name", ["sales", "rich"])
def test_sound_workspaces(name: str) -> None:
    assert Workspace.open(WORKSPACES / name).problems() == ()


def test_checking_makes_no_store(folder: Sales) -> None:
    folder.open().problems()
    folder.open().plan("monthly-sales", period="2026-01")
    assert not (folder.root / ".dobo").exists()


def test_a_file_that_is_not_utf8(folder: Sales) -> None:
    (folder.root / "datasets" / "odd.yaml").write_bytes("dataset: {id: ü}".encode("utf-16"))
    (problem,) = folder.open().problems()
    assert (problem.code, problem.path) == ("UNREADABLE_FILE", "datasets/odd.yaml")  # type: ignore[attr-defined]


def test_a_folder_with_the_name_of_a_file(folder: Sales) -> None:
    (folder.root / "datasets" / "odd.yaml").mkdir()
    assert folder.open().problems() == ()


def test_json_and_nested_files_count(folder: Sales) -> None:
    folder.write("datasets/more/x.json", '{"dataset": {"id": "x"}}')
    assert codes(folder.open().problems()) == ["MISSING_KEY"]


def test_other_files_do_not(folder: Sales) -> None:
    folder.write("datasets/notes.txt", "dataset: [")
    assert folder.open().problems() == ()


def test_a_broken_file_does_not_hide_the_others(folder: Sales) -> None:
    folder.write("resolvers/broken.yaml", "resolver: [\n")
    folder.change(PROJECT, "orders.region =", "orders.regoin =")
    assert sorted(codes(folder.open().problems())) == ["UNKNOWN_COLUMN", "YAML_SYNTAX"]


def test_a_project_with_an_unknown_key_is_still_checked(folder: Sales) -> None:
    folder.change(PROJECT, "  name: Monthly sales", "  nmae: Monthly sales")
    folder.change(PROJECT, "orders.region =", "orders.regoin =")
    assert codes(folder.open().problems()) == ["UNKNOWN_KEY", "UNKNOWN_COLUMN"]


def test_a_broken_input_dataset_is_reported_once(folder: Sales) -> None:
    folder.change(ORDERS, "temporal_mode: period", "temporal_mode: monthly")
    assert codes(folder.open().problems()) == ["INVALID_VALUE"]


def test_a_broken_joined_dataset_is_reported_once(folder: Sales) -> None:
    folder.change("datasets/customers.yaml", "temporal_mode: snapshot", "temporal_mode: snap")
    assert codes(folder.open().problems()) == ["INVALID_VALUE"]


def test_a_broken_resolver_is_reported_once(folder: Sales) -> None:
    folder.change("resolvers/lake.yaml", "  rules:", "  rulez:")
    assert "RESOLVER_NOT_FOUND" not in codes(folder.open().problems())


def test_a_broken_datasource_is_reported_once(folder: Sales) -> None:
    """Not again by each output and each rule that names it."""
    stores = "datasources/stores.yaml"
    folder.change(stores, "path_prefix: data/warehouse", "path_prefix: 'dbfs://host/x'")
    assert codes(folder.open().problems()) == ["INVALID_VALUE"]
    folder.change(stores, "path_prefix: data/lake", "path_prefix: 'dbfs://host/y'")
    assert codes(folder.open().problems()) == ["INVALID_VALUE", "INVALID_VALUE"]


def test_a_missing_resolver_of_a_dataset_is_reported_once(folder: Sales) -> None:
    folder.change(ORDERS, "  natural_key", "  resolver_id: lak\n  natural_key")
    problems = folder.open().problems()
    assert len(problems) == 1, codes(problems)


def test_a_missing_dataset_of_a_lookup_is_reported_once(folder: Sales) -> None:
    conditions = "[{source_column: region, target_column: id}]"
    target = "{type: dataset, id: nobody}"
    lookup = f"  lookups:\n    - {{alias: c, target: {target}, join_conditions: {conditions}}}\n"
    problems = folder.add(ORDERS, lookup).problems()
    assert len(problems) == 1, codes(problems)


def test_faulty_conditions_of_resolvers_are_found(folder: Sales) -> None:
    workspace = folder.change("resolvers/lake.yaml", "table.name =", "table.nam =")
    (problem,) = workspace.problems()
    assert (problem.code, problem.span and problem.span.source.name) == ("UNKNOWN_COLUMN", "resolvers/lake.yaml")


def test_one_faulty_selector_is_reported_once(folder: Sales) -> None:
    workspace = folder.change(PROJECT, 'orders.status = \\"active\\"', "orders.stats = 1")
    assert codes(workspace.problems()) == ["UNKNOWN_COLUMN"]


def test_two_projects_are_both_checked(folder: Sales) -> None:
    text = (folder.root / PROJECT).read_text(encoding="utf-8")
    folder.write(
        "projects/second.yaml",
        text.replace("id: monthly-sales", "id: second").replace("orders.amount = 0", "amout = 0"),
    )
    folder.change(PROJECT, "orders.amount = 0", "amunt = 0")
    assert [each.span and each.span.source.name for each in folder.open().problems()] == [
        PROJECT,
        "projects/second.yaml",
    ]


# --- planning


def test_a_draft_is_planned_from_the_files(folder: Sales) -> None:
    planned = folder.open().plan("monthly-sales", period="2026-01", started_at=CLOCK)
    assert (planned.version, planned.status, planned.period.identifier) == (None, "draft", "2026-01")
    assert planned.facts.started_at == CLOCK
    assert [str(use.locations[0]) for use in planned.plan.uses] == [
        "ds-lake:orders/2026/01.parquet",
        "ds-lake:customers.parquet",
    ]


def test_a_quarter_is_read_month_by_month(folder: Sales) -> None:
    planned = folder.open().plan("monthly-sales", period="2026-Q2")
    assert [location.period for location in planned.plan.input.locations] == ["2026-04", "2026-05", "2026-06"]


def test_a_project_that_does_not_exist(folder: Sales) -> None:
    (problem,) = refusal(folder.open().plan, "monthly-sale", period="2026-01")
    assert (problem.code, problem.known) == ("NOT_DEFINED", ("monthly-sales",))  # type: ignore[attr-defined]


def test_a_period_that_does_not_exist(folder: Sales) -> None:
    (problem,) = refusal(folder.open().plan, "monthly-sales", period="2026-13")
    assert problem.code == "PERIOD_NOT_FOUND"


def test_a_period_without_any_calendar(folder: Sales) -> None:
    (folder.root / "calendars" / "fiscal.yaml").unlink()
    (problem,) = refusal(folder.open().plan, "monthly-sales", period="2026-01")
    assert problem.code == "PERIOD_NOT_FOUND"


def test_a_project_with_errors_has_no_plan(folder: Sales) -> None:
    workspace = folder.change(PROJECT, "orders.amount = 0", "amout = 0")
    assert "UNKNOWN_COLUMN" in codes(refusal(workspace.plan, "monthly-sales", period="2026-01"))


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        (ORDERS, "temporal_mode: period", "temporal_mode: monthly"),
        ("datasets/customers.yaml", "temporal_mode: snapshot", "temporal_mode: snap"),
        ("resolvers/lake.yaml", "{{MM}}", "{{MONTH}}"),
        ("resolvers/lake.yaml", "table.name =", "table.nam ="),
        ("resolvers/lake.yaml", 'ds-lake, path: "{{table_name}}/', 'ds-lkae, path: "{{table_name}}/'),
        (STORES, "name: Lake", "nmae: Lake"),
        (STORES, "name: Warehouse", "nmae: Warehouse"),
    ],
    ids=["input", "join", "resolver", "condition of a rule", "no datasource", "datasource", "destination"],
)
def test_there_is_no_plan_with_a_definition_that_cannot_be_read(folder: Sales, file: str, old: str, new: str) -> None:
    # C-22: a run must not go on with less data than its author meant
    workspace = folder.change(file, old, new)
    (problem,) = workspace.problems()
    assert refusal(workspace.plan, "monthly-sales", period="2026-01") == (problem,)


def test_a_draft_is_not_planned_with_an_older_version_of_a_dataset_that_cannot_be_read(folder: Sales) -> None:
    folder.apply()
    workspace = folder.change(ORDERS, "temporal_mode: period", "temporal_mode: monthly")
    assert codes(refusal(workspace.plan, "monthly-sales", period="2026-01")) == ["INVALID_VALUE"]


def test_a_datasource_that_is_missing_only_in_other_periods_does_not_matter_to_a_plan(folder: Sales) -> None:
    rule = "- {when: 'period.level = \"week\"', strategy: {type: path, datasource_id: ds-lkae, path: x}}\n    - name: monthly"
    workspace = folder.change("resolvers/lake.yaml", "- name: monthly", rule)
    assert codes(workspace.problems()) == ["UNKNOWN_REFERENCE"]
    assert workspace.plan("monthly-sales", period="2026-01").plan.project.id == "monthly-sales"


def test_a_marked_default_resolver_that_cannot_be_read_is_reported_once(folder: Sales) -> None:
    folder.write("dobo.yaml", "workspace: {name: sales}")
    folder.change("resolvers/lake.yaml", "  name: Lake resolver", "  is_default: true")
    workspace = folder.change("resolvers/lake.yaml", "{{MM}}", "{{MONTH}}")
    (problem,) = workspace.problems()
    assert problem.code == "UNKNOWN_TOKEN"
    assert refusal(workspace.plan, "monthly-sales", period="2026-01") == (problem,)


@pytest.mark.parametrize(
    ("file", "more"),
    [
        (PROJECT, "name: Other, input_dataset_id: sales-orders, operations: []"),
        (ORDERS, "main_table: {name: other, columns: [{name: amount, type: decimal}]}"),
        ("resolvers/lake.yaml", "rules: [{strategy: {type: path, datasource_id: ds-lake, path: x}}]"),
        (STORES, "type: parquet, options: {path_prefix: other}"),
        ("calendars/fiscal.yaml", "levels: [{name: year}]"),
    ],
    ids=["project", "dataset", "resolver", "datasource", "calendar"],
)
def test_there_is_no_plan_with_a_definition_that_is_there_twice(folder: Sales, file: str, more: str) -> None:
    head = (folder.root / file).read_text(encoding="utf-8")
    kind, name = head.split(":", 1)[0], head.split("id: ", 1)[1].split("\n")[0].split(",")[0]
    workspace = folder.add(file, f"---\n{kind}: {{id: {name}, {more}}}\n")
    assert codes(refusal(workspace.plan, "monthly-sales", period="2026-01")) == ["DUPLICATE_ID"]


def test_there_is_no_plan_with_two_defaults(folder: Sales) -> None:
    folder.write("resolvers/other.yaml", "resolver: {id: other, is_default: true, rules: []}")
    assert codes(refusal(folder.open().plan, "monthly-sales", period="2026-01")) == ["DUPLICATE_DEFAULT"]
    folder.write("resolvers/other.yaml", "resolver: {id: other, rules: []}")
    calendar = "calendar: {id: other, is_default: true, levels: [{name: year}]}"
    workspace = folder.write("calendars/other.yaml", calendar)
    assert codes(refusal(workspace.plan, "monthly-sales", period="2026-01")) == ["DUPLICATE_DEFAULT"]


def test_there_is_no_plan_with_two_workspaces(folder: Sales) -> None:
    workspace = folder.write("projects/settings.yaml", "workspace: {store: 'sqlite:///other.db'}")
    assert codes(refusal(workspace.plan, "monthly-sales", period="2026-01")) == ["DUPLICATE_WORKSPACE"]


def test_what_a_project_does_not_use_may_be_there_twice(folder: Sales) -> None:
    resolver = "resolver: {id: other, rules: []}"
    workspace = folder.write("resolvers/other.yaml", f"{resolver}\n---\n{resolver}\n")
    assert codes(workspace.problems()) == ["DUPLICATE_ID"]
    assert workspace.plan("monthly-sales", period="2026-01").plan.project.id == "monthly-sales"


def test_the_active_version_is_planned_although_its_draft_is_there_twice(folder: Sales) -> None:
    folder.activate()
    workspace = folder.add(PROJECT, "---\nproject: {id: monthly-sales, input_dataset_id: sales-orders, operations: []}")
    assert workspace.plan("monthly-sales", period="2026-01").version == 1


def test_faults_of_other_projects_do_not_matter_to_a_plan(folder: Sales) -> None:
    folder.write("projects/other.yaml", "project: {id: other}")
    assert folder.open().plan("monthly-sales", period="2026-01").plan.project.id == "monthly-sales"


# --- versions


def test_the_first_time_everything_is_new(stored: Folder) -> None:
    workspace = stored.open()
    assert {action for action, _, _ in actions(workspace)} == {"created"}
    assert {number for _, _, number in actions(workspace)} == {1}
    assert len(workspace.apply().changes) == 7


def test_looking_changes_nothing(stored: Folder) -> None:
    workspace = stored.open()
    workspace.changes()
    assert len(actions(stored.open())) == 7


def test_the_second_time_nothing_has_changed(folder: Sales) -> None:
    folder.apply()
    assert actions(folder.open()) == []


def test_a_comment_or_another_order_of_keys_makes_no_new_version(folder: Sales) -> None:
    folder.apply()
    text = (folder.root / ORDERS).read_text(encoding="utf-8")
    folder.write(
        ORDERS,
        "# the orders\n"
        + text.replace("  name: Sales orders\n", "").replace(
            "  id: sales-orders", "  name: Sales orders\n  id: sales-orders"
        ),
    )
    assert actions(folder.open()) == [("touched", "sales-orders", 1)]


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        (PROJECT, "name: Monthly sales", "name: Sales by month"),
        (PROJECT, "name: Monthly sales", "name: Monthly sales\n  description: for the board"),
        (PROJECT, "name: Monthly sales", "name: Monthly sales\n  owner: finance"),
        (PROJECT, 'name: "Tag EMEA orders"', 'name: "Tag the orders of EMEA"'),
        (ORDERS, "name: Sales orders", "name: Orders"),
    ],
    ids=["name", "description", "owner", "operation name", "dataset name"],
)
def test_names_and_descriptions_change_in_place(folder: Sales, file: str, old: str, new: str) -> None:
    folder.activate()
    workspace = folder.change(file, old, new)
    assert [(action, number) for action, _, number in actions(workspace)] == [("touched", 1)]
    workspace.apply()
    assert (versions(workspace), actions(folder.open())) == ([(1, "active")], [])


STRUCTURAL = {
    "operation": ("orders.amount * 0.9", "orders.amount * 0.8"),
    "selector of an operation": ('orders.region = \\"EMEA\\"', 'orders.region = \\"APAC\\"'),
    "named selector": ('orders.status = \\"active\\"', 'orders.status = \\"open\\"'),
    "override": ("  selectors:", "  resolver_overrides: {sales-orders: lake}\n  selectors:"),
    "input version": ("  selectors:", "  input_dataset_version: 1\n  selectors:"),
    "order": ("seq: 4", "seq: 6"),
    "destination": ('table: "processed_orders"', 'table: "orders_done"'),
}


@pytest.mark.parametrize("change", STRUCTURAL.values(), ids=STRUCTURAL)
def test_a_structural_change_makes_a_new_draft_while_the_active_version_runs(
    folder: Sales, change: tuple[str, str]
) -> None:
    # R-074, R-097 (BR-003), C-77
    folder.activate()
    workspace = folder.change(PROJECT, *change)
    assert actions(workspace) == [("changed", "monthly-sales", 2)]
    workspace.apply()
    assert versions(workspace) == [(1, "active"), (2, "draft")]
    planned = folder.open().plan("monthly-sales", period="2026-01", to_run=True)
    assert (planned.version, planned.status) == (1, "active")


def test_another_input_dataset_makes_a_new_version(folder: Sales) -> None:
    folder.activate()
    text = (folder.root / ORDERS).read_text(encoding="utf-8")
    folder.write("datasets/copy.yaml", text.replace("id: sales-orders", "id: copy-of-orders"))
    folder.change(PROJECT, "input_dataset_id: sales-orders", "input_dataset_id: copy-of-orders").apply()
    assert versions(folder.open()) == [(1, "active"), (2, "draft")]


def test_a_draft_can_be_reordered_freely(folder: Sales) -> None:
    # R-097 (BR-002)
    folder.apply()
    folder.change(PROJECT, "seq: 4", "seq: 6").apply()
    workspace = folder.open()
    assert [status for _, status in versions(workspace)][-1] == "draft"
    planned = workspace.plan("monthly-sales", period="2026-01", to_run=True)
    assert [step.spec.seq for step in planned.plan.steps] == [1, 2, 3, 5, 6]


def test_the_active_version_is_planned_as_it_was_recorded(folder: Sales) -> None:
    # C-77
    folder.activate()
    workspace = folder.change(PROJECT, "orders.amount = 0", "orders.amount < 0")
    active = workspace.plan("monthly-sales", period="2026-01")
    draft = workspace.plan("monthly-sales", period="2026-01", draft=True)
    selectors = [planned.plan.steps[3].spec.selector for planned in (active, draft)]
    assert selectors == ["orders.amount = 0", "orders.amount < 0"]
    assert (active.version, draft.version, draft.status) == (1, None, "draft")


def test_a_broken_draft_does_not_stop_the_active_version(folder: Sales) -> None:
    # C-77
    folder.activate()
    workspace = folder.change(PROJECT, "type: delete", "type: delte")
    assert workspace.plan("monthly-sales", period="2026-01", to_run=True).version == 1
    assert codes(refusal(workspace.plan, "monthly-sales", period="2026-01", draft=True))


def test_the_active_version_reads_where_the_applied_resolver_says(folder: Sales) -> None:
    folder.activate()
    workspace = folder.change("resolvers/lake.yaml", "{{YYYY}}/{{MM}}.parquet", "{{identifier}}.parquet")
    assert (
        str(workspace.plan("monthly-sales", period="2026-01").plan.input.locations[0])
        == "ds-lake:orders/2026/01.parquet"
    )
    workspace.apply()
    assert (
        str(folder.open().plan("monthly-sales", period="2026-01").plan.input.locations[0])
        == "ds-lake:orders/2026-01.parquet"
    )


def test_activating_the_new_version_retires_the_old_one(folder: Sales) -> None:
    folder.activate()
    folder.change(PROJECT, "orders.amount = 0", "orders.amount < 0").apply()
    workspace = folder.open()
    workspace.activate("monthly-sales")
    assert versions(workspace) == [(1, "inactive"), (2, "active")]


def test_a_workspace_with_errors_is_not_applied(stored: Folder) -> None:
    workspace = stored.change(PROJECT, "orders.amount = 0", "amout = 0")
    assert codes(refusal(workspace.apply)) == ["UNKNOWN_COLUMN"]
    assert workspace.store.list_definitions("dataset") == ()


def test_warnings_do_not_stop_it(stored: Folder) -> None:
    workspace = stored.change(PROJECT, "  selectors:", "  selectors:\n    unused: amount > 1")
    assert len(workspace.apply().changes) == 7


# --- activation


def test_activation_pins_the_input(folder: Sales) -> None:
    version = folder.apply().activate("monthly-sales")
    assert (version.version, version.status) == (1, "active")
    assert version.activation is not None
    assert version.activation.pin == ("sales-orders", 1)


def test_an_unapplied_project_is_not_activated(stored: Folder) -> None:
    (problem,) = refusal(stored.open().activate, "monthly-sales")
    assert (problem.code, problem.id) == ("NOT_APPLIED", "monthly-sales")  # type: ignore[attr-defined]


def test_a_changed_project_is_not_activated(folder: Sales) -> None:
    folder.apply()
    workspace = folder.change(PROJECT, "orders.amount = 0", "orders.amount < 0")
    assert codes(refusal(workspace.activate, "monthly-sales")) == ["NOT_APPLIED"]


def test_a_changed_project_with_a_broken_dataset_is_not_activated_for_that(folder: Sales) -> None:
    folder.apply()
    folder.change(PROJECT, "0.9", "0.8")
    workspace = folder.change(ORDERS, "temporal_mode: period", "temporal_mode: monthly")
    assert codes(refusal(workspace.activate, "monthly-sales")) == ["INVALID_VALUE"]


def test_another_name_does_not_stop_activation(folder: Sales) -> None:
    folder.apply()
    workspace = folder.change(PROJECT, "name: Monthly sales", "name: Sales by month")
    assert workspace.activate("monthly-sales").status == "active"


def add_column(folder: Sales) -> None:
    folder.change(
        ORDERS,
        '      - {name: amount, type: "decimal(15,2)"}',
        '      - {name: amount, type: "decimal(15,2)"}\n      - {name: note, type: string}',
    )


def test_a_chosen_version_is_pinned(folder: Sales) -> None:
    folder.apply()
    add_column(folder)
    workspace = folder.apply()
    first = workspace.activate("monthly-sales", dataset_version=1).activation
    assert first is not None
    assert first.pin.version == 1
    assert workspace.plan("monthly-sales", period="2026-01").plan.input.version == 1
    latest = workspace.activate("monthly-sales").activation
    assert latest is not None
    assert latest.pin.version == 2


@pytest.mark.parametrize("wanted", [9, 0, -1])
def test_a_version_that_does_not_exist_is_not_pinned(folder: Sales, wanted: int) -> None:
    workspace = folder.apply()
    assert codes(refusal(workspace.activate, "monthly-sales", dataset_version=wanted))
    assert versions(workspace) == [(1, "draft")]


def test_the_pin_stays_when_the_dataset_goes_on(folder: Sales) -> None:
    folder.activate()
    add_column(folder)
    workspace = folder.apply()
    assert workspace.plan("monthly-sales", period="2026-01", to_run=True).plan.input.version == 1
    assert versions(workspace) == [(1, "active")]


def test_activation_is_all_or_nothing_with_every_problem(folder: Sales) -> None:
    folder.apply()
    add_column(folder)
    folder.apply()
    folder.change(PROJECT, "orders.amount = 0", "note = 'x'")
    folder.change(PROJECT, "orders.region =", "note =").apply()
    problems = refusal(folder.open().activate, "monthly-sales", dataset_version=1)
    assert [(each.code, each.operation and each.operation.seq) for each in problems] == [
        ("UNKNOWN_COLUMN", 1),
        ("UNKNOWN_COLUMN", 4),
    ]
    assert {status for _, status in versions(folder.open())} == {"draft"}


def test_a_project_that_is_not_there_is_not_activated(folder: Sales) -> None:
    assert codes(refusal(folder.apply().activate, "monthly")) == ["NOT_DEFINED"]


def test_a_broken_project_is_not_activated(folder: Sales) -> None:
    folder.apply()
    workspace = folder.change(PROJECT, "type: delete", "type: delte")
    assert "INVALID_OPERATION" in codes(refusal(workspace.activate, "monthly-sales"))


def test_deactivation(folder: Sales) -> None:
    workspace = folder.activate()
    assert workspace.deactivate("monthly-sales").status == "inactive"
    (problem,) = refusal(workspace.plan, "monthly-sales", period="2026-01", to_run=True)
    assert (problem.code, problem.status) == ("PROJECT_NOT_RUNNABLE", "inactive")  # type: ignore[attr-defined]
    assert workspace.activate("monthly-sales").status == "active"


def test_an_inactive_project_can_still_be_looked_at(folder: Sales) -> None:
    workspace = folder.activate()
    workspace.deactivate("monthly-sales")
    assert workspace.plan("monthly-sales", period="2026-01").plan.project.id == "monthly-sales"


def test_a_draft_cannot_be_deactivated(folder: Sales) -> None:
    workspace = folder.apply()
    assert codes(refusal(workspace.deactivate, "monthly-sales")) == ["PROJECT_NOT_RUNNABLE"]
    assert codes(refusal(workspace.deactivate, "monthly")) == ["NOT_DEFINED"]


def test_a_draft_runs(folder: Sales) -> None:
    # C-68
    assert folder.open().plan("monthly-sales", period="2026-01", to_run=True).status == "draft"
    assert folder.apply().plan("monthly-sales", period="2026-01", to_run=True).status == "draft"


# --- conflicts


@pytest.mark.parametrize(
    ("old", "new", "change"),
    [
        ("      - {name: region, type: string}\n", "", "removed"),
        ("{name: region, type: string}", "{name: region, type: integer}", "string became integer"),
    ],
    ids=["removed", "another type"],
)
def test_a_version_of_the_input_that_breaks_an_active_project(folder: Sales, old: str, new: str, change: str) -> None:
    folder.activate()
    # the draft is adapted, so that the files as a whole are sound
    folder.change(PROJECT, 'orders.region = \\"EMEA\\"', "FALSE")
    folder.change(PROJECT, '          - "orders.region"\n', "")
    applied = folder.change(ORDERS, old, new).apply()
    (conflict,) = applied.conflicts["monthly-sales"]
    assert (conflict.column, conflict.change) == ("region", change)
    assert [ref.seq for ref in conflict.operations] == [1, 3, 5]
    workspace = folder.open()
    live = workspace.store.list_live_projects()[0]
    assert (live.version, live.status) == (1, "conflict")
    assert live.conflict is not None
    assert (live.conflict["dataset"], live.conflict["version"], live.conflict["pinned"]) == ("sales-orders", 2, 1)
    assert live.conflict["columns"][0]["operations"][0] == {"seq": 1, "name": "Tag EMEA orders"}
    (problem,) = refusal(workspace.plan, "monthly-sales", period="2026-01", to_run=True)
    assert (problem.code, problem.status) == ("PROJECT_NOT_RUNNABLE", "conflict")  # type: ignore[attr-defined]


def in_conflict(folder: Sales) -> Workspace:
    folder.activate()
    folder.change(PROJECT, 'orders.region = \\"EMEA\\"', "FALSE")
    folder.change(PROJECT, '          - "orders.region"\n', "")
    folder.change(ORDERS, "      - {name: region, type: string}\n", "").apply()
    return folder.open()


def test_one_way_out_is_to_activate_an_adapted_version(folder: Sales) -> None:
    workspace = in_conflict(folder)
    version = workspace.activate("monthly-sales")
    assert (version.version, version.activation and version.activation.pin.version) == (2, 2)
    assert versions(workspace) == [(1, "inactive"), (2, "active")]


def test_the_other_way_out_is_to_keep_the_pin(folder: Sales) -> None:
    workspace = in_conflict(folder)
    assert workspace.keep_pin("monthly-sales").status == "active"
    planned = workspace.plan("monthly-sales", period="2026-01", to_run=True)
    assert (planned.version, planned.plan.input.version) == (1, 1)


def test_a_conflict_that_was_answered_is_not_raised_again(folder: Sales) -> None:
    in_conflict(folder).keep_pin("monthly-sales")
    assert folder.open().apply().conflicts == {}
    assert folder.open().plan("monthly-sales", period="2026-01", to_run=True).status == "active"


def test_keeping_the_pin_needs_a_conflict(folder: Sales) -> None:
    workspace = folder.activate()
    assert codes(refusal(workspace.keep_pin, "monthly-sales")) == ["INVALID_TRANSITION"]


def test_a_conflict_can_be_deactivated(folder: Sales) -> None:
    assert in_conflict(folder).deactivate("monthly-sales").status == "inactive"


def test_an_added_column_is_no_conflict(folder: Sales) -> None:
    folder.activate()
    add_column(folder)
    assert folder.open().apply().conflicts == {}


def test_a_draft_has_no_conflicts(folder: Sales) -> None:
    folder.apply()
    folder.change(PROJECT, 'orders.region = \\"EMEA\\"', "FALSE")
    folder.change(PROJECT, '          - "orders.region"\n', "")
    assert folder.change(ORDERS, "      - {name: region, type: string}\n", "").apply().conflicts == {}


# --- registered datasets


def test_a_registered_dataset_is_found_where_it_was_registered(folder: Sales) -> None:
    # C-83
    workspace = folder.apply()
    definition = {
        "id": "made",
        "name": "made",
        "main_table": {
            "name": "made",
            "temporal_mode": "period",
            "columns": [{"name": "amount", "type": "decimal(15,2)"}],
        },
    }
    workspace.store.register(
        Definition(kind="dataset", id="made", fingerprint="f", document=definition),
        location={"kind": "database", "datasource_id": "ds-warehouse", "table": "made"},
        origin="run-1/5",
        at=CLOCK,
        by="me",
    )
    folder.change(PROJECT, "input_dataset_id: sales-orders", "input_dataset_id: made")
    text = (folder.root / PROJECT).read_text(encoding="utf-8")
    head, _, _ = text.partition("  operations:")
    folder.write(
        PROJECT,
        head.replace('orders.status = \\"active\\"', "made.amount > 0")
        + """  operations:
    - {seq: 1, type: output, selector: "{{active_orders}}", arguments: {destination: {type: csv, path: out}}}
""",
    )
    planned = folder.open().plan("monthly-sales", period="2026-01")
    assert (planned.plan.input.registered, planned.plan.input.locations) == (
        StoredTable("ds-warehouse", None, "made"),
        (),
    )
    assert folder.open().problems() == ()


# --- periods


def test_periods_go_one_way(stored: Folder) -> None:
    workspace = stored.open()
    assert workspace.find_period("2026-01").status == "open"
    assert workspace.change_period("2026-01", "closed").status == "closed"
    assert stored.open().find_period("2026-01").status == "closed"
    assert codes(refusal(workspace.change_period, "2026-01", "open")) == ["INVALID_TRANSITION"]
    assert workspace.change_period("2026-01", "locked").status == "locked"
    assert codes(refusal(workspace.change_period, "2026-01", "closed")) == ["INVALID_TRANSITION"]


def test_an_open_period_is_not_locked_at_once(stored: Folder) -> None:
    assert codes(refusal(stored.open().change_period, "2026-01", "locked")) == ["INVALID_TRANSITION"]


def test_a_status_that_it_has_changes_nothing(stored: Folder) -> None:
    assert stored.open().change_period("2026-01", "open").status == "open"


def test_a_closed_period_runs_only_on_request(stored: Folder) -> None:
    # C-69
    workspace = stored.open()
    workspace.change_period("2026-01", "closed")
    (problem,) = refusal(workspace.plan, "monthly-sales", period="2026-01", to_run=True)
    assert (problem.code, problem.status) == ("PERIOD_NOT_RUNNABLE", "closed")  # type: ignore[attr-defined]
    assert (
        workspace.plan("monthly-sales", period="2026-01", to_run=True, override_closed=True).period.status == "closed"
    )
    assert workspace.plan("monthly-sales", period="2026-01").period.status == "closed"


def test_a_locked_period_never_runs(stored: Folder) -> None:
    # C-69
    workspace = stored.open()
    workspace.change_period("2026-01", "closed")
    workspace.change_period("2026-01", "locked")
    assert codes(refusal(workspace.plan, "monthly-sales", period="2026-01", to_run=True, override_closed=True)) == [
        "PERIOD_NOT_RUNNABLE"
    ]


def listed(status: str) -> str:
    dates = "start_date: 2026-01-01, end_date: 2026-01-31"
    return f"  periods:\n    - {{identifier: 2026-01, level: month, parent: 2026-Q1, {dates}, status: {status}}}\n"


def test_a_status_in_the_file_is_where_a_period_starts(stored: Folder) -> None:
    stored.add("calendars/fiscal.yaml", listed("closed"))
    workspace = stored.open()
    assert workspace.find_period("2026-01").status == "closed"
    assert workspace.change_period("2026-01", "locked").status == "locked"


@pytest.mark.parametrize("status", ["open", "locked"])
def test_what_is_recorded_wins_over_the_file(stored: Folder, status: str) -> None:
    stored.open().change_period("2026-01", "closed")
    stored.add("calendars/fiscal.yaml", listed(status))
    assert stored.open().find_period("2026-01").status == "closed"


# --- looking


def test_a_listing(folder: Sales) -> None:
    (row,) = folder.open().listing("project")
    assert (row.id, row.version, row.status, row.is_changed) == ("monthly-sales", None, "draft", True)
    (row,) = folder.activate().listing("project")
    assert (row.version, row.is_changed) == (1, False)
    assert row.status.startswith("active")


def test_a_listing_shows_what_only_the_store_has(folder: Sales) -> None:
    folder.apply()
    (folder.root / PROJECT).unlink()
    (row,) = folder.open().listing("project")
    assert (row.id, row.version, row.is_changed) == ("monthly-sales", 1, False)


def test_all_about_one_definition(folder: Sales) -> None:
    workspace = folder.activate()
    found = workspace.describe("monthly-sales")
    (version,) = found.versions
    assert (found.kind, version.status, version.to_dict()["reads"]) == ("project", "active", "sales-orders v1")
    assert (found.definition or {})["input_dataset_id"] == "sales-orders"
    assert workspace.describe("lake").kind == "resolver"
    (problem,) = refusal(workspace.describe, "sales-order")
    assert (problem.code, "sales-orders" in problem.known) == ("NOT_DEFINED", True)  # type: ignore[attr-defined]


def test_a_conflict_is_shown(folder: Sales) -> None:
    found = in_conflict(folder).describe("monthly-sales")
    assert (found.versions[0].conflict or {})["columns"][0]["column"] == "region"


# --- links


def test_a_link_out_of_the_datasource_is_no_destination(folder: Sales) -> None:
    lake = folder.root / "data" / "warehouse"
    lake.mkdir(parents=True, exist_ok=True)
    outside = folder.root / "outside"
    outside.mkdir()
    workspace = folder.open()
    assert workspace.problems() == ()
    (name,) = {
        step.lowered.write.destination.table
        for step in workspace.plan("monthly-sales", period="2026-01").plan.steps
        if step.lowered.write is not None
    }
    (lake / name).symlink_to(outside)
    (problem,) = workspace.problems()
    assert isinstance(problem, InvalidDestination)
    assert problem.reason is DestinationReason.LINK
    assert problem.span is not None
    assert codes(refusal(workspace.plan, "monthly-sales", period="2026-01")) == ["INVALID_DESTINATION"]
    (lake / name).unlink()
    (lake / "inside").mkdir()
    (lake / name).symlink_to(lake / "inside")
    assert workspace.problems() == ()


def test_a_link_out_of_the_datasource_is_not_read(folder: Sales) -> None:
    workspace = folder.open()
    plan = workspace.plan("monthly-sales", period="2026-01").plan
    location = plan.input.locations[0]
    path = folder.root / "data" / "lake" / (location.path or "")
    path.parent.mkdir(parents=True, exist_ok=True)
    secret = folder.root / "secret"
    secret.write_text("x")
    assert workspace.problems() == ()
    path.symlink_to(secret)
    assert "UNSAFE_PATH" in codes(refusal(workspace.plan, "monthly-sales", period="2026-01"))
    (problem,) = workspace.problems()
    assert isinstance(problem, UnsafePath)
    assert (problem.path, problem.is_link) == (str(location), True)


def test_a_linked_folder_out_of_the_datasource_is_reported_once(folder: Sales) -> None:
    workspace = folder.open()
    plan = workspace.plan("monthly-sales", period="2026-01").plan
    lake = folder.root / "data" / "lake"
    top = str(plan.input.locations[0].path).partition("/")[0]
    (folder.root / "outside").mkdir()
    lake.mkdir(parents=True, exist_ok=True)
    (lake / top).symlink_to(folder.root / "outside")
    assert codes(workspace.problems()) == ["UNSAFE_PATH"]
    (lake / top).unlink()
    (lake / "inside").mkdir()
    (lake / top).symlink_to(lake / "inside")
    assert workspace.problems() == ()


# --- parameters

UPLIFT = (
    "  parameters:\n    uplift: {type: 'decimal(5,4)', default: 0.03}\n  selectors:\n    raised: amount > param.uplift"
)


def with_parameter(folder: Sales) -> None:
    folder.change(PROJECT, "  selectors:", UPLIFT)


def test_parameters_come_from_the_caller_the_environment_or_the_default(folder: Sales) -> None:
    with_parameter(folder)
    environments = "environments: {prod: {parameters: {monthly-sales: {uplift: 0.04}}}, dev: {}}"
    folder.write("dobo.yaml", f"workspace: {{default_resolver: lake, {environments}}}")

    def uplift(environment: str | None = None, **given: object) -> object:
        planned = folder.open(environment=environment).plan("monthly-sales", period="2026-01", parameters=given)
        return planned.facts.parameters["uplift"]

    assert [uplift(), uplift("dev"), uplift("prod"), uplift("prod", uplift="0.05")] == [
        Decimal(each) for each in ("0.03", "0.03", "0.04", "0.05")
    ]
    workspace = folder.open()
    (problem,) = refusal(workspace.plan, "monthly-sales", period="2026-01", parameters={"uplfit": "0.05"})
    assert (problem.code, problem.hint()) == ("UNKNOWN_PARAMETER", "did you mean `uplift`?")
    (problem,) = refusal(workspace.plan, "monthly-sales", period="2026-01", parameters={"uplift": "0.00001"})
    assert problem.code == "INVALID_PARAMETER"
    with pytest.raises(TypeError, match=r"uplift.*float"):
        workspace.plan("monthly-sales", period="2026-01", parameters={"uplift": 0.05})


def test_parameters_of_environments_are_checked_in_the_file(folder: Sales) -> None:
    with_parameter(folder)
    parameters = "{monthly-sales: {uplift: 5%, uplfit: 1}, monthly-sale: {uplift: 1}}"
    text = f"workspace:\n  default_resolver: lake\n  environments:\n    prod:\n      parameters: {parameters}\n"
    folder.write("dobo.yaml", text)
    found = [
        (each.code, each.span.line if each.span else 0) for each in folder.open().problems() if each.severity == "error"
    ]
    assert found == [("INVALID_PARAMETER", 5), ("UNKNOWN_PARAMETER", 5), ("UNKNOWN_REFERENCE", 5)]


def test_a_wrong_parameter_is_reported_with_the_rest_of_the_project(folder: Sales) -> None:
    folder.change(PROJECT, "  selectors:", UPLIFT.replace("0.03", "3%"))
    folder.change(PROJECT, "orders.amount = 0", "orders.amout = param.uplift")
    assert sorted(codes(folder.open().problems())) == ["INVALID_PARAMETER", "UNKNOWN_COLUMN"]


# --- several periods


@pytest.mark.parametrize(
    ("texts", "names"),
    [
        (["2026-03", "2026-01"], ["2026-01", "2026-03"]),
        (["2026-01..2026-03", "2026-02", "2026-02..2026-04"], ["2026-01", "2026-02", "2026-03", "2026-04"]),
        (["2026-02 .. 2026-02"], ["2026-02"]),
        (["2026-Q1..2026-Q2"], ["2026-Q1", "2026-Q2"]),
        (["latest"], ["2026-03"]),
    ],
)
def test_several_periods_come_by_date_each_once(folder: Sales, texts: list[str], names: list[str]) -> None:
    chosen = folder.open().find_periods(texts, started_at="2026-04-30T08:00:00Z")
    assert [each.identifier for each in chosen] == names


@pytest.mark.parametrize(
    ("text", "code", "hint"),
    [
        ("2026-03..2026-01", "INVALID_PERIOD_RANGE", "write `2026-01..2026-03`"),
        ("2026-01..2026-Q2", "INVALID_PERIOD_RANGE", "of one level"),
        ("2026-01..", "INVALID_PERIOD_RANGE", "of one level"),
        ("..", "INVALID_PERIOD_RANGE", "of one level"),
        ("2026-01..2026-2", "PERIOD_NOT_FOUND", "did you mean `2026-02`?"),
        ("2031-01", "PERIOD_NOT_FOUND", "month `2026-01` to `2026-12`"),
    ],
)
def test_wrong_ranges_are_answered_with_what_there_is(folder: Sales, text: str, code: str, hint: str) -> None:
    (problem,) = refusal(folder.open().find_periods, [text])
    assert problem.code == code
    assert hint in (problem.hint() or "")


def test_there_is_no_latest_period_before_the_first_has_ended(folder: Sales) -> None:
    (problem,) = refusal(folder.open().find_periods, ["latest"], started_at="2020-01-01T00:00:00Z")
    assert (problem.code, "2020-01-01" in problem.message()) == ("INVALID_PERIOD_RANGE", True)


def test_all_closed_periods_are_named_before_the_first_runs(folder: Sales) -> None:
    workspace = folder.apply()
    workspace.change_period("2026-02", "closed")
    workspace.change_period("2026-03", "closed")
    chosen = workspace.find_periods(["2026-01..2026-03"])
    problems = refusal(workspace.require_runnable, chosen)
    assert [each.period for each in problems] == ["2026-02", "2026-03"]  # type: ignore[attr-defined]
    workspace.require_runnable(chosen, override_closed=True)

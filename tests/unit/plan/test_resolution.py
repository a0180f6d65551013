"""Where rows are: which resolver, which rule, which locations, and what is said when there are none."""

from __future__ import annotations

from dataclasses import replace
from textwrap import dedent, indent
from typing import Any

import pytest

from dobonomodo.model import load_definitions
from dobonomodo.plan import Location
from dobonomodo.plan.resolution import check_resolver
from dobonomodo.problems import Source
from dobonomodo.problems.operation import NoRuleMatches
from dobonomodo.storage.table_target import StoredTable
from tests.unit.plan.building import (
    MONTHS,
    World,
    append,
    codes,
    delete,
    join,
    plan_of,
    planned,
    problem_in,
    update,
    world_from,
)

BASE = """\
datasource: {id: lake, type: parquet, options: {path_prefix: data}}
---
datasource: {id: db, type: database, options: {url: "postgresql://db:5432/w"}}
---
dataset:
  id: sales
  main_table: {name: orders, temporal_mode: period, columns: [{name: amount, type: decimal}]}
---
dataset:
  id: customers
  main_table: {name: customers, columns: [{name: amount, type: decimal}]}
"""


def world(rules: str, *, period: str = "2026-01", more: str = "", status: str = "active") -> World:
    listed = indent(dedent(rules).strip("\n"), "    ")
    head = f"resolver:\n  id: files\n  status: {status}\n  is_default: true\n  rules:\n"
    text = f"{BASE}---\n{head}{listed}\n{more}"
    return world_from(text).resolving(schedule=MONTHS, period=MONTHS.by_identifier[period])


def locations(rules: str, **more: Any) -> list[str]:
    return [str(each) for each in plan_of(delete(), world=world(rules, **more)).input.locations]


def path(template: str, **more: str) -> str:
    keys = "".join(f"{key}: {value}, " for key, value in more.items())
    return f"- {{{keys}strategy: {{type: path, datasource_id: lake, path: '{template}'}}}}\n"


# --- rules


def test_the_first_rule_that_matches_is_taken() -> None:
    rules = path("a", when="'table.name = \"x\"'") + path("b", when="'table.name = \"orders\"'") + path("c")
    assert locations(rules) == ["lake:b"]


def test_a_reading_knows_the_rule_that_made_its_locations() -> None:
    rules = path("a", name="never", when="'table.name = \"x\"'") + path("b", name="by name")
    use = plan_of(delete(), world=world(rules)).input
    assert (use.resolver_id, use.rule) == ("files", "by name")
    assert plan_of(delete(), world=world(path("a"))).input.rule == "rule 1"


def test_a_rule_without_when_always_matches() -> None:
    assert locations(path("a") + path("b")) == ["lake:a"]


@pytest.mark.parametrize(
    "when",
    [
        'period.identifier = "2026-01"',
        'period.level = "month"',
        'period.start_date >= "2026-01-01"',
        'period.end_date < "2026-02-01"',
        'table.name IN ("orders", "returns")',
    ],
)
def test_a_condition_can_use_the_table_and_the_period(when: str) -> None:
    assert locations(path("a", when=f"'{when}'") + path("b")) == ["lake:a"]


def test_a_condition_that_is_unknown_does_not_match() -> None:
    assert locations(path("a", when="'table.name = NULL'") + path("b")) == ["lake:b"]


def test_a_rule_whose_condition_is_faulty_is_not_passed_over() -> None:
    # Another rule would read other data than its author meant.
    rules = path("a", when="'table.nam = \"orders\"'") + path("b")
    assert planned(delete(), world=world(rules)).plan is None


def test_no_rule_matches() -> None:
    rules = path("a", name="by name", when="'table.name = \"x\"'") + path("b", data_level="week")
    problem = problem_in(delete(), world=world(rules))
    assert isinstance(problem, NoRuleMatches)
    assert (problem.resolver_id, problem.table, problem.period) == ("files", "orders", "2026-01")
    assert [name for name, _ in problem.tried] == ["by name", "rule 2"]
    assert 'table.name = "x"' in problem.tried[0][1]
    assert "week" in problem.tried[1][1]
    assert (problem.span and problem.span.line, problem.operation) == (3, None)


def test_no_rule_matches_for_an_append_or_a_join() -> None:
    rules = path("a", when="'table.name = \"orders\"'")
    text = append("customers") + update("b = c.amount", joins=join("c", "customers", "TRUE"), seq=2)
    problems = planned(text, world=world(rules)).problems
    assert [(each.code, each.operation and each.operation.seq) for each in problems] == [
        ("NO_RULE_MATCHES", 1),
        ("NO_RULE_MATCHES", 2),
    ]


def test_without_a_period_only_the_resolver_is_looked_for() -> None:
    rules = path("a", when="'table.name = \"x\"'")
    plan = plan_of(delete(), world=world(rules).resolving(period=None))
    assert (plan.input.resolver_id, plan.input.locations) == ("files", ())


# --- precedence


TWO_MORE = """\
---
resolver: {id: mine, rules: [{strategy: {type: path, datasource_id: lake, path: mine}}]}
---
resolver: {id: off, status: disabled, rules: [{strategy: {type: path, datasource_id: lake, path: off}}]}
"""


def with_sales(extra: str, **facts: Any) -> World:
    base = world(path("default"), more=TWO_MORE)
    text = f"dataset: {{id: sales, {extra}main_table: {{name: orders, columns: [{{name: amount, type: decimal}}]}}}}"
    return base.with_dataset(text, version=2, **facts)


REGISTERED = StoredTable("lake", None, "made")


def test_an_override_of_the_project_comes_first() -> None:
    # C-83
    at = with_sales("resolver_id: off, ", registered=REGISTERED)
    plan = plan_of(delete(), world=at, head="resolver_overrides: {sales: mine}")
    assert (plan.input.resolver_id, [str(each) for each in plan.input.locations]) == ("mine", ["lake:mine"])


def test_then_the_resolver_of_the_dataset() -> None:
    # R-081, C-83
    assert plan_of(delete(), world=with_sales("resolver_id: mine, ", registered=REGISTERED)).input.resolver_id == "mine"


def test_then_the_registration() -> None:
    # C-83
    use = plan_of(delete(), world=with_sales("", registered=REGISTERED)).input
    assert (use.resolver_id, use.locations, use.registered) == (None, (), REGISTERED)


def test_then_the_default() -> None:
    #
    assert plan_of(delete(), world=with_sales("")).input.resolver_id == "files"


def test_precedence_is_the_same_for_joins_and_appends() -> None:
    #
    text = append("customers") + update("b = c.amount", joins=join("c", "customers", "TRUE"), seq=2)
    plan = plan_of(text, world=with_sales(""), head="resolver_overrides: {customers: mine}")
    assert [use.resolver_id for use in plan.uses] == ["files", "mine", "mine"]


def test_then_there_is_none() -> None:
    problem = problem_in(delete(), world=with_sales("").resolving(default_resolver=None))
    assert (problem.code, problem.resolver_id, problem.dataset_id) == ("RESOLVER_NOT_FOUND", None, "sales")


@pytest.mark.parametrize(("name", "disabled"), [("off", True), ("unheard", False)])
def test_a_resolver_that_cannot_be_used_is_not_passed_over(name: str, disabled: bool) -> None:
    problem = problem_in(delete(), world=with_sales(f"resolver_id: {name}, "))
    assert (problem.code, problem.resolver_id, problem.disabled) == ("RESOLVER_NOT_FOUND", name, disabled)


def test_an_override_that_cannot_be_used_is_reported_where_it_is_written() -> None:
    problem = problem_in(delete(), world=with_sales(""), head="resolver_overrides: {sales: unheard}")
    assert (problem.code, problem.span.line) == ("RESOLVER_NOT_FOUND", 4)


def test_an_override_for_a_dataset_that_the_project_does_not_read_is_reported() -> None:
    # It would be ignored without a word, and the data of the default be read.
    assert codes(delete(), world=with_sales(""), head="resolver_overrides: {sale: mine}") != []


def test_a_disabled_default_is_not_used() -> None:
    assert codes(delete(), world=world(path("a"), status="disabled")) == ["RESOLVER_NOT_FOUND"]


def test_a_broken_resolver_is_reported_elsewhere() -> None:
    at = world(path("a"))
    broken = replace(at.resolution, resolvers={}, broken=frozenset({"files"}))
    result = planned(delete(), world=replace(at, resolution=broken))
    assert (result.plan, result.problems) == (None, ())


# --- levels


def test_any_level_is_the_period_as_it_is() -> None:
    assert locations(path("{{identifier}}", data_level="any"), period="2026-Q1") == ["lake:2026-Q1"]


def test_any_level_says_nothing_about_the_period_of_the_rows() -> None:
    (location,) = plan_of(delete(), world=world(path("a"))).input.locations
    assert location == Location("lake", "parquet", path="a")


def test_the_same_level_is_the_period_itself() -> None:
    (location,) = plan_of(delete(), world=world(path("{{identifier}}", data_level="month"))).input.locations
    assert (location.path, location.period) == ("2026-01", "2026-01")


@pytest.mark.parametrize(
    ("period", "expected"),
    [("2026-Q1", ["2026-01", "2026-02", "2026-03"]), ("2026", [f"2026-0{month}" for month in range(1, 7)])],
)
def test_a_coarser_period_is_read_as_its_parts(period: str, expected: list[str]) -> None:
    found = plan_of(delete(), world=world(path("{{identifier}}", data_level="month"), period=period)).input.locations
    assert [each.path for each in found] == [each.period for each in found] == expected


def test_a_finer_period_is_read_from_the_one_it_lies_in() -> None:
    (location,) = plan_of(
        delete(), world=world(path("{{identifier}}", data_level="quarter"), period="2026-05")
    ).input.locations
    assert (location.path, location.period) == ("2026-Q2", None)


def test_a_level_that_the_calendar_does_not_have_does_not_match() -> None:
    assert locations(path("a", data_level="week") + path("b")) == ["lake:b"]


def test_without_a_calendar_only_the_same_level_matches() -> None:
    at = world(path("a", data_level="quarter") + path("b", data_level="month")).resolving(schedule=None)
    assert [str(each) for each in plan_of(delete(), world=at).input.locations] == ["lake:b"]


def test_parts_at_the_same_place_are_one_location() -> None:
    found = plan_of(
        delete(), world=world(path("{{table_name}}/{{YYYY}}", data_level="month"), period="2026-Q1")
    ).input.locations
    assert found == (Location("lake", "parquet", path="orders/2026"),)


def test_some_parts_at_the_same_place() -> None:
    found = plan_of(delete(), world=world(path("{{QQ}}", data_level="month"), period="2026")).input.locations
    assert [(each.path, each.period) for each in found] == [("Q1", None), ("Q2", None)]


# --- tokens


def test_every_token_is_filled_in() -> None:
    template = "{{table_name}}/{{dataset_id}}/{{dataset_version}}/{{identifier}}/{{YYYY}}/{{MM}}/{{QQ}}/{{DD}}"
    assert locations(path(template), period="2026-05") == ["lake:orders/sales/1/2026-05/2026/05/Q2/01"]


def test_tokens_may_have_blanks_inside() -> None:
    assert locations(path("{{ YYYY }}")) == ["lake:2026"]


def test_a_table_strategy() -> None:
    rules = "- strategy: {type: table, datasource_id: db, table: '{{table_name}}_{{YYYY}}', schema: 's{{MM}}'}"
    (location,) = plan_of(delete(), world=world(rules)).input.locations
    assert (location.kind, location.table, location.schema, location.path) == ("database", "orders_2026", "s01", None)
    assert str(location) == "db:s01.orders_2026"


def test_a_path_that_leaves_its_prefix_is_refused() -> None:
    at = world(path("{{dataset_id}}/x")).with_dataset(
        "dataset: {id: ../../etc, main_table: {name: t, columns: [{name: a, type: date}]}}"
    )
    problem = problem_in(delete(), world=at, input_id="../../etc")
    assert (problem.code, problem.path, problem.span.line) == ("UNSAFE_PATH", "../../etc/x", 3)


def test_an_absolute_path_is_refused() -> None:
    at = world(path("{{dataset_id}}/x")).with_dataset(
        "dataset: {id: /etc, main_table: {name: t, columns: [{name: a, type: date}]}}"
    )
    assert codes(delete(), world=at, input_id="/etc") == ["UNSAFE_PATH"]


# --- checking a resolver by itself


def test_every_faulty_condition_is_found() -> None:
    text = """\
resolver:
  id: r
  rules:
    - {when: 'table.nam = "x"', strategy: {type: path, datasource_id: lake, path: a}}
    - {strategy: {type: path, datasource_id: lake, path: a}}
    - {when: 'period.level', strategy: {type: path, datasource_id: lake, path: a}}
"""
    definitions, _ = load_definitions([Source("r.yaml", text)])
    problems = list(check_resolver(definitions.resolvers["r"].places))
    assert [(each.code, each.span and each.span.line) for each in problems] == [
        ("UNKNOWN_COLUMN", 4),
        ("TYPE_MISMATCH", 6),
    ]

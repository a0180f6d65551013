"""Resolvers: rules and where they point."""

import pytest

from dobonomodo.model import ANY_LEVEL, PathStrategy, Resolver, TableStrategy
from tests.unit.model.loading import found, sound

LAKE = "\n---\ndatasource: {id: lake, type: csv, options: {path_prefix: data}}"
CALENDAR = "\n---\ncalendar: {id: c, levels: [{name: month}]}"


def resolver(rule: str) -> str:
    return f"resolver: {{id: r, rules: [{rule}]}}{LAKE}"


def path(text: str) -> str:
    return resolver(f"{{strategy: {{type: path, datasource_id: lake, path: '{text}'}}}}")


def test_rules_are_loaded_in_order() -> None:
    text = resolver(
        "{name: a, when: 'table.name = \"x\"', data_level: any, "
        "strategy: {type: table, datasource_id: lake, table: '{{table_name}}', schema: s}}, "
        "{data_level: month, strategy: {type: path, datasource_id: lake, path: '{{YYYY}}/{{MM}}.csv'}}"
    )
    first, second = sound(text).resolvers["r"].rules
    assert first.strategy == TableStrategy(type="table", datasource_id="lake", table="{{table_name}}", schema="s")
    assert second.strategy == PathStrategy(type="path", datasource_id="lake", path="{{YYYY}}/{{MM}}.csv")
    assert (first.data_level, second.data_level) == (ANY_LEVEL, "month")
    assert second.when is None


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (path("{{YEAR}}/a.csv"), ("UNKNOWN_TOKEN", "{{YEAR}}")),
        (path("../a.csv"), ("UNSAFE_PATH", "../a.csv")),
        (path("/a.csv"), ("UNSAFE_PATH", "/a.csv")),
        (resolver("{strategy: {type: table, datasource_id: lake, table: '{{x}}'}}"), ("UNKNOWN_TOKEN", "{{x}}")),
        (
            resolver("{strategy: {type: table, datasource_id: lake, table: t, schema: '{{x}}'}}"),
            ("UNKNOWN_TOKEN", "{{x}}"),
        ),
        (resolver("{strategy: {type: path, datasource_id: lak, path: a}}"), ("UNKNOWN_REFERENCE", "lak")),
        (resolver("{when: ' ', strategy: {type: path, datasource_id: lake, path: a}}"), ("INVALID_VALUE", "' '")),
        (resolver("{when: x}"), ("MISSING_KEY", "when")),
    ],
)
def test_rules_that_cannot_work(text: str, problem: tuple[str, str]) -> None:
    assert found(text) == [problem]


def test_a_level_exists_in_some_calendar_where_there_are_calendars() -> None:
    rule = resolver("{data_level: mont, strategy: {type: path, datasource_id: lake, path: a}}")
    assert found(rule) == []
    assert found(rule + CALENDAR) == [("UNKNOWN_REFERENCE", "mont")]
    assert found(rule.replace("mont", "any") + CALENDAR) == []


def test_names_are_cosmetic_and_rules_are_not() -> None:
    rule = {"strategy": {"type": "path", "datasource_id": "l", "path": "a"}}
    base = Resolver.from_data({"id": "r", "rules": [rule]})
    assert (
        Resolver.from_data({"id": "r", "name": "x", "rules": [{**rule, "name": "y"}]}).fingerprint()
        == base.fingerprint()
    )
    assert Resolver.from_data({"id": "r", "rules": [{**rule, "when": "x"}]}).fingerprint() != base.fingerprint()

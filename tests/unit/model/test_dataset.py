"""Datasets: keys, lookups, and what counts as a change."""

import pytest

from dobonomodo.model import Dataset, DatasetTarget, TableTarget
from tests.unit.model.loading import found, sound

TEMPLATE = """
dataset:
  id: d
  natural_key_columns: {keys}
  main_table: {{name: orders, columns: [{{name: id, type: string}}, {{name: kind, type: string}}]}}
  lookups: {lookups}
---
dataset: {{id: kinds, main_table: {{name: kinds, columns: [{{name: code, type: string}}]}}}}
"""

TABLE = "{type: table, name: k, columns: [{name: code, type: string}]}"


def dataset(keys: str = "[]", lookups: str = "[]") -> str:
    return TEMPLATE.format(keys=keys, lookups=lookups)


def lookup(alias: str = "k", target: str = TABLE, source: str = "kind", to: str = "code") -> str:
    return f"{{alias: {alias}, target: {target}, join_conditions: [{{source_column: {source}, target_column: {to}}}]}}"


def test_a_dataset_is_loaded_with_its_lookups() -> None:
    loaded = sound(dataset("[ID]", f"[{lookup()}, {lookup('m', '{type: dataset, id: kinds}')}]")).datasets["d"]
    assert loaded.name == "d"
    assert loaded.status == "active"
    assert loaded.natural_key_columns == ("ID",)
    assert isinstance(loaded.lookups[0].target, TableTarget)
    assert isinstance(loaded.lookups[1].target, DatasetTarget)


def test_key_columns_exist_and_stand_once() -> None:
    assert found(dataset("[idd]")) == [("UNKNOWN_COLUMN", "idd")]
    assert found(dataset("[id, ID]")) == [("DUPLICATE_NAME", "ID")]


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        (lookup(alias="a-b"), ("INVALID_VALUE", "a-b")),
        (lookup(alias="Orders"), ("DUPLICATE_NAME", "Orders")),
        (lookup(source="kindd"), ("UNKNOWN_COLUMN", "kindd")),
        (lookup(to="cod"), ("UNKNOWN_COLUMN", "cod")),
        (lookup(target="{type: dataset, id: kinds}", to="cod"), ("UNKNOWN_COLUMN", "cod")),
        (lookup(target="{type: dataset, id: kindz}"), ("UNKNOWN_REFERENCE", "kindz")),
        ("{alias: k, target: {type: dataset, id: kinds}, join_conditions: []}", ("INVALID_VALUE", "[]")),
        ("{alias: k, join_conditions: [{source_column: id, target_column: code}]}", ("MISSING_KEY", "alias")),
    ],
)
def test_a_lookup_that_cannot_work(entry: str, problem: tuple[str, str]) -> None:
    assert found(dataset(lookups=f"[{entry}]")) == [problem]


def test_aliases_are_unique_ignoring_case() -> None:
    assert found(dataset(lookups=f"[{lookup()}, {lookup('K')}]")) == [("DUPLICATE_NAME", "K")]


def test_system_columns_may_be_joined_on() -> None:
    sound(dataset(lookups=f"[{lookup(source='_period')}]"))


def test_versions_are_not_written_by_hand() -> None:
    text = "dataset: {id: d, version: 2, main_table: {name: t, columns: [{name: a, type: date}]}}"
    assert found(text) == [("UNKNOWN_KEY", "version")]


BASE = {
    "id": "d",
    "main_table": {"name": "t", "columns": [{"name": "a", "type": "date"}, {"name": "b", "type": "date"}]},
}


@pytest.mark.parametrize("change", [{"name": "x"}, {"owner": "x"}, {"description": "x"}, {"status": "disabled"}])
def test_cosmetic_changes_keep_the_fingerprint(change: dict[str, str]) -> None:
    assert Dataset.from_data({**BASE, **change}).fingerprint() == Dataset.from_data(BASE).fingerprint()


@pytest.mark.parametrize(
    "change",
    [
        {"resolver_id": "r"},
        {"natural_key_columns": ["a"]},
        {"main_table": {"name": "u", "columns": BASE["main_table"]["columns"]}},  # type: ignore[index]
        {"main_table": {**BASE["main_table"], "temporal_mode": "period"}},  # type: ignore[dict-item]
        {"main_table": {"name": "t", "columns": [{"name": "b", "type": "date"}, {"name": "a", "type": "date"}]}},
        {"main_table": {"name": "t", "columns": [{"name": "a", "type": "string"}, {"name": "b", "type": "date"}]}},
        {"lookups": [{"alias": "k", "target": {"type": "dataset", "id": "d"},
                      "join_conditions": [{"source_column": "a", "target_column": "a"}]}]},
    ],
)  # fmt: skip
def test_structural_changes_change_the_fingerprint(change: dict[str, object]) -> None:
    assert Dataset.from_data({**BASE, **change}).fingerprint() != Dataset.from_data(BASE).fingerprint()

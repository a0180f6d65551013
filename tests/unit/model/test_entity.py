"""What all definitions have in common: equality, places, documents, fingerprints."""

import pytest

from dobonomodo.model import Entity, Places, Project, Resolver, load_documents, render_canonical
from dobonomodo.problems import Rejected, Source
from tests.unit.model.loading import shown, sound

EVERYTHING = """
workspace: {name: sales, spark: {master: "local[*]", conf: {a: 1}}, environments: {prod: {store: "postgresql://h/d"}}}
---
datasource: {id: lake, type: csv, options: {path_prefix: data, delimiter: ";"}, credential_ref: env://X}
---
datasource: {id: base, type: database, options: {url: "postgresql://h/d", schema: public}}
---
resolver:
  id: r
  rules:
    - {when: 'table.name = "x"', strategy: {type: table, datasource_id: base, table: "{{table_name}}", schema: s}}
    - {data_level: month, strategy: {type: path, datasource_id: lake, path: "{{YYYY}}.csv"}}
---
calendar:
  id: c
  levels: [{name: year}, {name: month, parent_level: year}]
  generate: {from: 2026-01-01, to: 2026-12-31}
  periods: [{identifier: 2026-01, status: closed}]
---
calendar:
  id: retail
  levels:
    - {name: year, date_rules: {starts: [2025-02-02, 2026-02-01]}}
    - {name: block, parent_level: year, identifier_pattern: "{parent}-B{position}", date_rules: {split: [4 weeks, 5 weeks]}}
  generate: {from: 2025-03-01, to: 2025-03-02}
---
dataset:
  id: d
  natural_key_columns: [id]
  main_table:
    name: orders
    temporal_mode: period
    columns: [{name: id, type: string, nullable: false}, {name: amount, type: "decimal(15,2)"}]
  lookups:
    - alias: k
      target: {type: table, name: kinds, columns: [{name: id, type: string}]}
      join_conditions: [{source_column: id, target_column: id}]
    - {alias: l, target: {type: dataset, id: d}, join_conditions: [{source_column: id, target_column: id}]}
---
project:
  id: p
  input_dataset_id: d
  input_dataset_version: 2
  selectors: {big: amount > 10}
  resolver_overrides: {d: r}
  operations:
    - {seq: 2, type: delete, selector: ""}
    - {seq: 1, type: update, arguments: {assignments: [{column: a, expression: 0.10}], selector: "{{big}}"}}
"""


def every_entity() -> list[Entity]:
    loaded = sound(EVERYTHING)
    groups = (loaded.datasources, loaded.resolvers, loaded.calendars, loaded.datasets, loaded.projects)
    return [loaded.workspace, *(entity for group in groups for entity in group.values())]


def test_a_document_loads_again_to_an_equal_entity() -> None:
    for entity in every_entity():
        again = type(entity).from_data(entity.document())
        assert again == entity
        assert hash(again) == hash(entity)
        assert again.document() == entity.document()
        assert again.fingerprint() == entity.fingerprint()


def test_a_document_is_plain_json() -> None:
    for entity in every_entity():
        assert render_canonical(entity.document()) == render_canonical(
            entity.model_dump(mode="json", by_alias=True, exclude_none=True)
        )


def test_places_are_no_part_of_the_value() -> None:
    one = sound("resolver: {id: a, rules: []}").resolvers["a"]
    other = sound("\n\nresolver:\n  rules: []\n  id: a\n").resolvers["a"]
    assert one == other
    assert hash(one) == hash(other)
    assert repr(one) == repr(other)
    assert one.places.span("id") != other.places.span("id")


def test_entities_that_differ_are_not_equal() -> None:
    one, other = Resolver(id="a", rules=()), Resolver(id="b", rules=())
    assert one != other
    assert one != "a"


def test_an_entity_knows_the_places_of_its_parts() -> None:
    project = sound(EVERYTHING).projects["p"]
    assert shown(project.places.span("operations", 1, "seq")) == "2"
    assert shown(project.operations[1].places.span("seq")) == "2"
    assert shown(project.operations[0].places.key_span("arguments", "assignments", 0, "column")) == "column"


def test_an_entity_without_a_file_has_no_places_but_passages() -> None:
    project = Project.from_data(
        {"id": "p", "input_dataset_id": "d", "operations": [{"type": "delete", "selector": "a"}]}
    )
    assert project.places.span("operations", 0, "seq") is None
    assert project.places.passage("operations", 0, "selector").value == "a"
    made = Resolver(id="a", rules=())
    assert made.places.span("id") is None
    assert made.places.passage("id").value == "a"


def test_entities_cannot_be_changed() -> None:
    resolver = Resolver(id="a", rules=())
    with pytest.raises(ValueError):
        resolver.id = "b"


def test_wrong_data_is_rejected_with_every_problem() -> None:
    with pytest.raises(Rejected) as rejected:
        Resolver.from_data({"id": "a b", "rulez": []})
    assert {problem.code for problem in rejected.value.problems} == {"UNKNOWN_KEY", "MISSING_KEY", "INVALID_VALUE"}


def test_an_empty_value_is_a_key_left_out() -> None:
    assert sound("resolver: {id: a, name: , description: null, rules: []}").resolvers["a"].name == "a"


def test_a_generated_id_is_the_same_every_time() -> None:
    text = "resolver: {rules: []}\n---\nresolver: {rules: []}"
    one, other = list(sound(text).resolvers), list(sound(text).resolvers)
    assert one == other
    assert len(set(one)) == 2


def test_a_generated_id_survives_an_edit_of_the_content() -> None:
    one = sound("resolver: {rules: []}").resolvers
    other = sound("resolver: {rules: [], description: changed}").resolvers
    assert list(one) == list(other)


def test_a_generated_id_outside_of_files_follows_from_the_content() -> None:
    one, same = Resolver.from_data({"rules": []}), Resolver.from_data({"rules": []})
    other = Resolver.from_data({"rules": [], "is_default": True})
    assert one.id == same.id != other.id


def test_loading_from_a_part_of_a_document_keeps_the_places() -> None:
    (document,), _ = load_documents(Source("s.yaml", "scenario:\n  project: {input_dataset_id: d, operations: []}\n"))
    places = document.places.at("scenario", "project")
    assert isinstance(places, Places)
    project = Project.load(places).value
    assert project is not None
    assert shown(project.places.span("input_dataset_id")) == "d"

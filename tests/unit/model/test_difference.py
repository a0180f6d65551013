"""What differs between two versions of a definition."""

from __future__ import annotations

from typing import Any

from dobonomodo.model.difference import FieldChange, compare_documents

UPDATE: dict[str, Any] = {
    "id": "u",
    "seq": 20,
    "name": "Net",
    "type": "update",
    "selector": "amount > 0",
    "arguments": {
        "joins": [{"alias": "c", "dataset_id": "customers", "on": "id = c.id"}],
        "assignments": [{"column": "net", "expression": "amount * 0.9"}, {"column": "tier", "expression": "c.tier"}],
    },
}
DELETE: dict[str, Any] = {"id": "d", "seq": 30, "name": "Empty", "type": "delete", "selector": "amount = 0"}
PROJECT: dict[str, Any] = {
    "id": "sales",
    "input_dataset_id": "orders",
    "selectors": {"active": 'status = "active"'},
    "operations": [UPDATE, DELETE],
}


def changed(**fields: Any) -> dict[str, Any]:
    return {**PROJECT, **fields}


def compare(one: dict[str, Any], other: dict[str, Any]) -> tuple[list[str], list[tuple[str, int, list[str]]]]:
    found = compare_documents(one, other, before="a", after="b")
    return [str(each.path) for each in found.fields], [
        (each.change, each.seq, [field.path for field in each.fields]) for each in found.operations
    ]


def test_the_same_has_no_difference() -> None:
    found = compare_documents(PROJECT, changed(), before="sales@v1", after="sales@v2")
    assert not found
    assert found.to_dict() == {"before": "sales@v1", "after": "sales@v2", "fields": [], "operations": []}


def test_selectors_and_inputs() -> None:
    other = changed(selectors={"active": 'status = "open"', "big": "amount > 100"}, input_dataset_id="lines")
    found = compare_documents(PROJECT, other, before="a", after="b")
    assert found.fields == (
        FieldChange("input_dataset_id", "orders", "lines"),
        FieldChange("selectors.active", 'status = "active"', 'status = "open"'),
        FieldChange("selectors.big", None, "amount > 100"),
    )


def test_a_changed_formula_is_named_by_its_column() -> None:
    arguments = {
        **UPDATE["arguments"],
        "assignments": [{"column": "tier", "expression": "c.tier"}, {"column": "net", "expression": "amount * 0.8"}],
    }
    found = compare_documents(
        PROJECT, changed(operations=[{**UPDATE, "arguments": arguments}, DELETE]), before="a", after="b"
    )
    (operation,) = found.operations
    assert (operation.change, operation.seq, operation.name, operation.type) == ("changed", 20, "Net", "update")
    assert operation.fields == (FieldChange("assignments[net].expression", "amount * 0.9", "amount * 0.8"),)


def test_operations_are_added_and_removed() -> None:
    added = {**DELETE, "id": "e", "seq": 5, "name": "Early", "selector": "amount < 0"}
    assert compare(PROJECT, changed(operations=[added, UPDATE])) == (
        [],
        [("added", 5, ["selector"]), ("removed", 30, ["selector"])],
    )


def test_an_operation_that_moved_is_the_same_one() -> None:
    moved = [{**UPDATE, "seq": 30}, {**DELETE, "seq": 20}]
    assert compare(PROJECT, changed(operations=moved)) == ([], [("changed", 20, ["seq"]), ("changed", 30, ["seq"])])


def test_an_operation_with_another_name_is_found_by_its_number() -> None:
    assert compare(PROJECT, changed(operations=[{**UPDATE, "name": "Net amount"}, DELETE])) == (
        [],
        [("changed", 20, ["name"])],
    )


def test_another_type_is_another_operation() -> None:
    other = {**UPDATE, "type": "aggregate", "arguments": {"group_by": ["tier"]}}
    assert compare(PROJECT, changed(operations=[other, DELETE])) == (
        [],
        [
            (
                "removed",
                20,
                [
                    "selector",
                    "joins[c].dataset_id",
                    "joins[c].on",
                    "assignments[net].expression",
                    "assignments[tier].expression",
                ],
            ),
            ("added", 20, ["selector", "group_by"]),
        ],
    )


def test_two_operations_of_one_name_are_told_apart_by_number() -> None:
    twice = changed(operations=[DELETE, {**DELETE, "seq": 40}])
    other = changed(operations=[DELETE, {**DELETE, "seq": 40, "selector": "amount < 0"}])
    assert compare(twice, other) == ([], [("changed", 40, ["selector"])])


def test_a_list_of_values_is_one_value() -> None:
    one = {"id": "d", "natural_key_columns": ["a", "b"]}
    found = compare_documents(one, {"id": "d", "natural_key_columns": ["b", "a"]}, before="a", after="b")
    assert found.fields == (FieldChange("natural_key_columns", ["a", "b"], ["b", "a"]),)


def test_columns_of_a_dataset_are_named() -> None:
    def table(*columns: dict[str, str]) -> dict[str, Any]:
        return {"id": "d", "main_table": {"columns": list(columns)}}

    one = table({"name": "id", "type": "integer"}, {"name": "amount", "type": "decimal(15,2)"})
    other = table({"name": "id", "type": "string"}, {"name": "total", "type": "decimal(15,2)"})
    assert compare(one, other)[0] == [
        "main_table.columns[id].type",
        "main_table.columns[amount].type",
        "main_table.columns[total].type",
    ]

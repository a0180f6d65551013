"""Every example of the seed documents loads as it is written; fragments load in the place they are taken from."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from dobonomodo.model import Document, OperationSpec, Project, load_documents, load_operations
from dobonomodo.problems import Source
from dobonomodo.problems.definition import DuplicateKey
from tests.unit.model.loading import sound

SEEDS = Path(__file__).parents[2] / "data" / "seeds"


def load(name: str) -> Document:
    (document,), problems = load_documents(Source(name, (SEEDS / name).read_text(encoding="utf-8")))
    assert problems == ()
    return document


def data(name: str) -> Any:
    return load(name).data


def load_all(name: str) -> tuple[OperationSpec, ...]:
    loaded = load_operations(load(name).places)
    assert loaded.problems == ()
    assert loaded.value is not None
    return loaded.value


def load_arguments(kind: str, arguments: dict[str, Any]) -> OperationSpec:
    operation = {"seq": 1, "type": kind, "arguments": arguments}
    return Project.from_data({"id": "p", "input_dataset_id": "d", "operations": [operation]}).operations[0]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("annotated-example.yaml", [(1, "update"), (2, "update"), (3, "aggregate"), (4, "delete"), (5, "output")]),
        ("delete-operations.yaml", [(3, "delete"), (4, "delete"), (5, "delete")]),
        ("output-operations.yaml", [(10, "output"), (11, "output")]),
        ("append-operation.yaml", [(1, "append")]),
        ("append-operation.json", [(1, "append")]),
    ],
)
def test_operations_load(name: str, expected: list[tuple[int, str]]) -> None:
    assert [(operation.seq, operation.type) for operation in load_all(name)] == expected


@pytest.mark.parametrize("name", ["annotated-example.yaml", "delete-operations.yaml", "output-operations.yaml"])
def test_operations_load_inside_a_project(name: str) -> None:
    text = (SEEDS / name).read_text(encoding="utf-8")
    body = "".join(f"    {line}" if line.strip() else line for line in text.splitlines(keepends=True))
    project = sound(f"project:\n  id: p\n  input_dataset_id: d\n  operations:\n{body}").projects["p"]
    assert [operation.seq for operation in project.operations] == [operation.seq for operation in load_all(name)]


def test_the_join_keeps_its_condition() -> None:  # C-81
    operation = load_all("annotated-example.yaml")[1]
    assert operation.arguments["joins"][0]["on"] == "orders.customer_id = customers.id"
    assert operation.selector == "{{active_orders}}"
    assert operation.id == "op-002"


def test_deletes_load_without_name_or_id() -> None:
    first, second, third = load_all("delete-operations.yaml")
    assert (first.name, first.selector) == ("delete-3", "orders.amount = 0")
    assert (second.name, second.selector) == ("delete-4", "{{invalid_orders}}")
    assert (third.name, third.selector, third.blank_selector) == ("delete-5", None, False)


def test_the_append_examples_agree_in_yaml_and_json() -> None:
    yaml, json = load_all("append-operation.yaml")[0], load_all("append-operation.json")[0]
    assert yaml.arguments["source"]["dataset_id"] == json.arguments["source"]["dataset_id"]
    assert yaml.arguments["source"]["dataset_version"] == 3
    assert yaml.arguments["source_selector"] == "budget_type = 'original'"


def test_fragments_of_arguments_load() -> None:
    update = load_arguments("update", data("update-new-column.yaml"))
    assert update.arguments["assignments"] == [{"column": "discount_rate", "expression": "0.1"}]
    append = load_arguments(
        "append",
        data("dataset-reference.yaml") | data("source-selector.yaml") | data("append-aggregation.yaml"),
    )
    assert append.arguments["source"]["dataset_version"] == 2
    assert append.arguments["aggregation"]["group_by"] == ["account_code", "cost_center_code"]
    aggregate = load_arguments("aggregate", {"group_by": ["a"], "aggregations": data("aggregations.yaml")})
    assert [each["column"] for each in aggregate.arguments["aggregations"]] == [
        "total_budget",
        "budget_count",
        "avg_budget",
    ]


def test_the_row_example_has_exact_numbers() -> None:
    row = data("summary-row.json")
    assert row["total_amount"] == Decimal("125000.50")
    assert (row["order_count"], row["customer_id"], row["_deleted"]) == (42, None, False)


def test_what_describes_the_shape_is_no_example() -> None:
    assert data("operation-schema.yaml")["operation"]["type"] == "update | aggregate | append | output | delete"
    text = (SEEDS / "argument-schemas.yaml").read_text(encoding="utf-8")
    _, problems = load_documents(Source("argument-schemas.yaml", text))
    assert [problem.key for problem in problems if isinstance(problem, DuplicateKey)] == ["arguments"] * 4

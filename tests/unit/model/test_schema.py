"""Tables, columns and their types."""

import pytest

from dobonomodo.model import DataType
from dobonomodo.model.schema import MAX_COLUMNS
from dobonomodo.problems.definition import InvalidValue
from tests.unit.model.loading import found, problem_in, sound


def dataset(columns: str) -> str:
    return f"dataset: {{id: d, main_table: {{name: t, columns: {columns}}}}}"


@pytest.mark.parametrize(
    ("text", "parsed"),
    [
        ("string", DataType("string")),
        ("Integer", DataType("integer")),
        ("decimal", DataType("decimal")),
        ("decimal(38, 0)", DataType("decimal", 38, 0)),
        ("DECIMAL(15,2)", DataType("decimal", 15, 2)),
        ("decimal(5,5)", DataType("decimal", 5, 5)),
        ("boolean", DataType("boolean")),
        ("date", DataType("date")),
        ("timestamp", DataType("timestamp")),
    ],
)
def test_types(text: str, parsed: DataType) -> None:
    assert DataType.parse(text) == parsed
    assert DataType.parse(str(parsed)) == parsed


@pytest.mark.parametrize(
    "text", ["", "int", "decimal(0,0)", "decimal(39,2)", "decimal(5,6)", "decimal(5)", "string(5)", 5, None]
)
def test_what_is_no_type(text: object) -> None:
    with pytest.raises(ValueError):
        DataType.parse(text)


@pytest.mark.parametrize(
    ("wrong", "meant"), [("int", "integer"), ("varchar(20)", "string"), ("numeric", "decimal"), ("dat", "date")]
)
def test_a_wrong_type_is_answered_with_the_right_one(wrong: str, meant: str) -> None:
    problem = problem_in(dataset(f"[{{name: a, type: {wrong}}}]"))
    assert isinstance(problem, InvalidValue)
    assert problem.advice is not None
    assert f"`{meant}`" in problem.advice


def test_a_column_is_loaded() -> None:
    (column,) = (
        sound(dataset("[{name: Order ID, type: 'decimal(15,2)', nullable: false}]")).datasets["d"].main_table.columns
    )
    assert (column.name, column.type, column.nullable) == ("Order ID", DataType("decimal", 15, 2), False)


@pytest.mark.parametrize("name", ["''", "' a'", '"a\\tb"', "'a`b'", "'a${b}'", "5"])
def test_a_column_needs_a_usable_name(name: str) -> None:
    assert found(dataset(f"[{{name: {name}, type: date}}]")) == [("INVALID_COLUMN_NAME", name)]


def test_a_column_does_not_start_with_an_underscore() -> None:
    assert found(dataset("[{name: _period, type: string}]")) == [("RESERVED_COLUMN", "_period")]


def test_columns_are_unique_ignoring_case() -> None:
    assert found(dataset("[{name: a, type: date}, {name: A, type: date}]")) == [("DUPLICATE_NAME", "A")]


def test_a_table_has_columns() -> None:
    assert found(dataset("[]")) == [("INVALID_VALUE", "[]")]


def test_a_table_has_a_bounded_number_of_columns() -> None:
    columns = ", ".join(f"{{name: c{number}, type: date}}" for number in range(MAX_COLUMNS + 1))
    assert found(dataset(f"[{columns}]")) == [("LIMIT_EXCEEDED", "columns")]


@pytest.mark.parametrize("name", ["a/b", "..", "'a${b}'", "''"])
def test_a_table_needs_a_name_that_a_folder_can_have(name: str) -> None:
    text = f"dataset: {{id: d, main_table: {{name: {name}, columns: [{{name: a, type: date}}]}}}}"
    assert found(text) == [("INVALID_VALUE", name)]


def test_a_temporal_mode_is_one_of_three() -> None:
    text = "dataset: {id: d, main_table: {name: t, temporal_mode: periodic, columns: [{name: a, type: date}]}}"
    assert found(text) == [("INVALID_VALUE", "periodic")]

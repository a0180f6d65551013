"""Rows of a scenario against rows of a CSV file (C-88): the same values are taken, and the same are refused. Without Spark."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any, cast

import pyarrow.parquet as pq
import pytest

from dobonomodo.formula import Type
from dobonomodo.formula.types import BOOLEAN, DATE, INTEGER, TEXT, TIMESTAMP, DecimalType
from dobonomodo.model import Places, load_documents
from dobonomodo.plan import DatasetUse
from dobonomodo.problems import RunFailed, Source
from dobonomodo.problems.run import CELLS_AT_MOST, DataLoad
from dobonomodo.scenarios import find_scenarios
from dobonomodo.scenarios.compare import compare_output
from dobonomodo.scenarios.rows import InlineRows, Reading, RowsOfFile, type_rows
from dobonomodo.scenarios.scenario import ExpectedOutput
from dobonomodo.storage.csv import extract_csv
from dobonomodo.storage.csv_dialect import Dialect
from dobonomodo.storage.faults import refuse
from dobonomodo.workspace import Workspace
from tests.world import CLOCK, JANUARY, Folder, use_of

CENTS = DecimalType(5, 2)
TYPES: tuple[Type, ...] = (TEXT, INTEGER, BOOLEAN, DATE, TIMESTAMP, CENTS, DecimalType(38, 10))
TEXTS = (
    "", " ", "5", "+5", "-5", " 7 ", "1_000", "1,000", "1.0", "1.005", "1.000", "999.99", "1000", "1e2", "1E-3", "NaN",
    "Infinity", "inf", "0x10", "9223372036854775807", "9223372036854775808", "-9223372036854775808", "١",
    "340282366920938463463374607431768211457", "true", "True", "TRUE", "tRue", "yes", "1", "0", "false",
    "2026-01-31", "2026-02-30", "2026-1-1", "20260131", "0000-01-01", "9999-12-31", "2026-01-31T08:30:00Z",
    "2026-01-31 08:30", "2026-01-31T08:30:00.1234567Z", "2026-01-31T24:00:00Z", "2026-01-31T08:30:00+02:00", "abc", "NULL",
)  # fmt: skip


def places_of(text: str) -> Places:
    (document,), problems = load_documents(Source("scenarios/x.yaml", text))
    assert problems == ()
    found = document.places.at("rows")
    assert found is not None
    return found


def inline(text: str, use: DatasetUse) -> list[dict[str, Any]]:
    """The rows that YAML says, in their types."""
    places = places_of(text)
    return type_rows(cast("list[dict[str, object]]", places.data), use, places)[1]


def refusal(call: Any, *args: Any) -> DataLoad:
    with pytest.raises(RunFailed) as caught:
        call(*args)
    assert isinstance(caught.value.problem, DataLoad)
    return caught.value.problem


def from_csv(path: Path, use: DatasetUse) -> list[dict[str, Any]]:
    """The rows that a run reads from a CSV file."""
    target = path.with_suffix(".parquet")
    refuse(extract_csv(path, target, use, Dialect()), use)
    found: list[dict[str, Any]] = pq.read_table(target).to_pylist()
    return found


def answer(call: Any, *args: Any) -> Any:
    """The value of the only column, or why there is none."""
    try:
        return "taken", *(row["v"] for row in call(*args))
    except RunFailed as failed:
        problem = failed.problem
        assert isinstance(problem, DataLoad)
        (cell,) = problem.cells
        return problem.code, cell.column, cell.value, cell.rule


@pytest.mark.parametrize("kind", TYPES, ids=str)
def test_a_text_is_taken_or_refused_as_in_a_file(kind: Type, tmp_path: Path) -> None:
    use = use_of({"k": TEXT, "v": kind})
    path = tmp_path / "rows.csv"
    inline = {text: answer(lambda text=text: typed([{"k": "a", "v": text}], use)) for text in TEXTS}
    taken = [text for text, (word, *_) in inline.items() if word == "taken"]
    refused = [text for text in TEXTS if text not in taken]
    write_rows(path, taken)
    assert answer(from_csv, path, use) == ("taken", *(inline[text][1] for text in taken))
    for texts in batched(refused, CELLS_AT_MOST):
        write_rows(path, texts)
        cells = refusal(from_csv, path, use).cells
        assert [("DATA_LOAD", cell.column, cell.value, cell.rule) for cell in cells] == [inline[text] for text in texts]


def typed(rows: list[dict[str, object]], use: DatasetUse) -> list[dict[str, Any]]:
    return type_rows(rows, use, Places.of_data(rows))[1]


def write_rows(path: Path, texts: Sequence[str]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, quoting=csv.QUOTE_ALL).writerows([["k", "v"], *(["a", text] for text in texts)])


def batched(texts: list[str], size: int) -> list[list[str]]:
    return [texts[at : at + size] for at in range(0, len(texts), size)]


@pytest.mark.parametrize(
    ("written", "kind", "expected"),
    [
        ("5", INTEGER, 5),
        ("5", CENTS, Decimal("5.00")),
        ("1.50", CENTS, Decimal("1.50")),
        ("1e2", CENTS, Decimal("100.00")),
        ("true", BOOLEAN, True),
        ("2026-01-31", DATE, date(2026, 1, 31)),
        ("null", INTEGER, None),
        ('""', TEXT, ""),
    ],
)
def test_values_that_yaml_has_read(written: str, kind: Type, expected: object) -> None:
    assert inline(f"rows: [{{v: {written}}}]", use_of({"v": kind})) == [{"v": expected}]


@pytest.mark.parametrize(
    ("written", "kind"),
    [
        ("1.005", CENTS),
        ("9223372036854775808", INTEGER),
        ("1.5", INTEGER),
        ("1", BOOLEAN),
        ("true", INTEGER),
        ("true", CENTS),
        ("5", TEXT),
        ("true", TEXT),
        ("[1]", TEXT),
        ("{a: 1}", INTEGER),
        ('""', INTEGER),
        ('"NaN"', CENTS),
    ],
)
def test_values_that_are_refused_with_their_line(written: str, kind: Type) -> None:
    problem = refusal(inline, f"rows:\n  - {{v: null}}\n  - {{v: {written}}}", use_of({"v": kind}))
    (cell,) = problem.cells
    assert (problem.code, cell.place, cell.line, cell.column) == ("DATA_LOAD", "scenarios/x.yaml", 3, "v")


def test_all_wrong_values_at_once() -> None:
    text = "rows: [{a: x, b: 1}, {a: 1, b: 2}, {a: y, b: ok}]"
    problem = refusal(inline, text, use_of({"a": INTEGER, "b": TEXT}))
    assert dict(problem.counts) == {"a": 2, "b": 2}
    assert len(problem.cells) == 4


def test_the_code_of_an_append() -> None:
    assert refusal(inline, "rows: [{v: x}]", use_of({"v": INTEGER}, role="append")).code == "APPEND_008"


def test_a_value_that_must_be_there() -> None:
    problem = refusal(inline, "rows:\n  - {k: a}\n  - {k: b, v: 1}", use_of({"k": TEXT, "v": INTEGER}, required=("v",)))
    assert [(cell.line, cell.column) for cell in problem.cells] == [(2, "v")]


@pytest.mark.parametrize("name", ["valid_from", "amout", "_Amount", "AMOUNT"])
def test_columns_are_those_of_a_file(name: str, tmp_path: Path) -> None:
    """Undeclared ones are refused, those of nobody that start with `_` are passed over, case does not count."""
    use = use_of({"amount": INTEGER}, temporal_mode="bitemporal")
    path = tmp_path / "x.csv"
    path.write_text(f"amount,{name}\n1,2026-01-01\n" if name != "AMOUNT" else "AMOUNT\n1\n")
    rows = f"rows: [{{amount: 1, {name}: 2026-01-01}}]" if name != "AMOUNT" else "rows: [{AMOUNT: 1}]"

    if name.casefold() in ("_amount", "amount"):
        assert [next(iter(row.values())) for row in (*inline(rows, use), *from_csv(path, use))] == [1, 1]
    else:
        found = refusal(inline, rows, use).differences
        assert found == refusal(from_csv, path, use).differences
        assert name in found[0]


def test_system_columns_have_their_types() -> None:
    row = "{v: 1, _period: 2026-01, _deleted: true, _run_period: x, _modified_at: 2026-01-01}"
    (read,) = inline(f"rows: [{row}]", use_of({"v": INTEGER}))
    assert (read["_period"], read["_deleted"], read["_run_period"], read["_modified_at"].year) == (
        "2026-01",
        True,
        "x",
        2026,
    )
    assert refusal(inline, "rows: [{v: 1, _deleted: perhaps}]", use_of({"v": INTEGER})).cells[0].column == "_deleted"


def test_no_rows_have_the_columns_of_their_mode() -> None:
    columns, rows = type_rows([], use_of({"v": INTEGER}, temporal_mode="bitemporal"), Places.of_data([]))
    assert (rows, sorted(columns)) == ([], ["_period_from", "_period_to", "v"])


def test_a_column_that_rows_leave_out_is_null() -> None:
    use = use_of({"a": INTEGER, "b": TEXT})
    assert inline("rows: [{a: 1}, {b: x}]", use) == [{"a": 1, "b": None}, {"a": None, "b": "x"}]


def test_what_a_file_says_of_periods(tmp_path: Path) -> None:
    (tmp_path / "with.csv").write_bytes(b"\xef\xbb\xbf_period,v\n")
    (tmp_path / "without.csv").write_text("v\n")
    (tmp_path / "odd.parquet").write_text("not Parquet")
    found = [
        RowsOfFile(tmp_path, f"{each}").has_period for each in ("with.csv", "without.csv", "gone.csv", "odd.parquet")
    ]
    assert found == [True, False, False, False]
    assert InlineRows([{"v": 1}, {"_period": "x"}], Places.of_data([])).has_period


# --- files, in a scenario and in a run


WORKSPACE: list[dict[str, Any]] = [
    {"datasource": {"id": "files", "type": "csv", "options": {"path_prefix": "."}}},
    {
        "resolver": {
            "id": "r",
            "is_default": True,
            "rules": [{"strategy": {"type": "path", "datasource_id": "files", "path": "rows.csv"}}],
        }
    },
    {
        "calendar": {
            "id": "c",
            "levels": [{"name": "month", "identifier_pattern": "{year}-{sequence:02}"}],
            "generate": {"from": "2026-01-01", "to": "2026-12-31"},
        }
    },
    {
        "dataset": {
            "id": "ds",
            "main_table": {
                "name": "t",
                "columns": [
                    {"name": "n", "type": "integer"},
                    {"name": "d", "type": "decimal(5,2)"},
                    {"name": "b", "type": "boolean"},
                ],
            },
        }
    },
    {
        "project": {
            "id": "p",
            "input_dataset_id": "ds",
            "operations": [{"seq": 1, "type": "output", "arguments": {"destination": {"type": "csv", "path": "out"}}}],
        }
    },
]

FILES = {
    "an empty text": 'n,d,b\n"",1,true\n',
    "a number with an underscore": "n,d,b\n1_000,1,true\n",
    "a whole number with two signs": "n,d,b\n+-5,1,true\n",
    "a digit too many": "n,d,b\n1,1.005,true\n",
    "a whole number too large": "n,d,b\n9223372036854775808,1,true\n",
    "not a number": "n,d,b\n1,NaN,true\n",
    "a truth value as a number": "n,d,b\n1,1,1\n",
    "a column too many": "n,d,b,valid_from\n1,1,true,2026-01-01\n",
    "a column too few": "n,d\n1,1\n",
    "a value too few": "n,d,b\n1,1\n",
    "an open quote": 'n,d,b\n"1,1,true\n',
    "no file": None,
}


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    root = tmp_path_factory.mktemp("workspace")
    Folder(root).with_store()
    opened = Workspace.from_documents(WORKSPACE, root=root)
    yield opened
    opened.store.close()


@pytest.mark.parametrize("title", FILES)
def test_a_file_is_refused_as_in_a_run(title: str, workspace: Workspace, tmp_path: Path) -> None:
    content = FILES[title]
    file = workspace.root / "rows.csv"
    file.unlink(missing_ok=True)
    if content is not None:
        file.write_text(content)
    run = workspace.run("p", period="2026-01", started_at=CLOCK)
    reading = Reading(cast("Any", None), JANUARY, None, tmp_path)
    use = use_of({"n": INTEGER, "d": CENTS, "b": BOOLEAN})
    problem = refusal(RowsOfFile(workspace.root, "rows.csv").read, use, reading)
    found: Any = problem.to_dict()
    (ran,) = run.problems
    assert (run.status, ran.code) == ("failed", "DATA_LOAD")
    if content is not None:
        assert {key: found[key] for key in ("code", "message", "hint")} == {
            key: ran.to_dict()[key] for key in ("code", "message", "hint")
        }
    else:
        assert found["code"] == ran.code


# --- expected rows


def differences(row: dict[str, Any], actual: dict[str, Any], columns: dict[str, Type]) -> list[str]:
    expected = ExpectedOutput.from_data({"rows": [row]})
    return compare_output(expected, [actual], columns)


def test_expected_values_are_converted_as_stored_ones() -> None:
    columns: dict[str, Type] = {"n": INTEGER, "d": CENTS, "t": TEXT, "b": BOOLEAN}
    actual = {"n": 5, "d": Decimal("1.50"), "t": "x", "b": True}
    assert differences({"n": 5, "d": "1.5", "t": "x", "b": True}, actual, columns) == []
    assert differences({"n": "*", "d": "*", "t": "*", "b": "*"}, actual, columns) == []
    for wrong in ({"n": "1_000"}, {"d": "1.505"}, {"t": 5}, {"b": 1}, {"d": "NaN"}, {"n": 2**63}):
        assert len(differences(wrong, actual, columns)) == 1


def test_an_expected_row_with_one_more_column() -> None:
    assert len(differences({"n": 5, "more": 1}, {"n": 5}, {"n": INTEGER})) == 1


def test_scenario_files_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "odd.yaml").write_bytes("scenario: {name: ü}".encode("utf-16"))
    (tmp_path / "folder.yaml").mkdir()
    found, problems = find_scenarios([tmp_path], root=tmp_path)
    assert (found, sorted({problem.code for problem in problems})) == ([], ["UNREADABLE_FILE"])

"""CSV files: all wrong values at once, with their places."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dobonomodo import failpoint
from dobonomodo.formula import Type
from dobonomodo.formula.types import DATE, INTEGER, TEXT, DecimalType
from dobonomodo.problems.render import render_full
from dobonomodo.problems.run import DataLoad, OutputWrite
from dobonomodo.storage import csv, csv_dialect
from dobonomodo.storage.executors import Limits
from dobonomodo.storage.files import PinnedFile
from dobonomodo.storage.findings import Findings
from dobonomodo.storage.schema import arrow_type
from dobonomodo.storage.storage import Belongs, Scratch
from tests.unit.storage.reading import extract, refused, use_of
from tests.world import PERIOD, failure, source_of

BELONGS = Belongs((PERIOD,), date(2026, 1, 31))
COLUMNS: dict[str, Type] = {"id": INTEGER, "amount": DecimalType(5, 2), "day": DATE}


def places(problem: DataLoad) -> list[tuple[str, int | None, str | None, str | None]]:
    return [(Path(cell.place).name, cell.line, cell.column, cell.value) for cell in problem.cells]


def test_every_wrong_value_of_every_file_is_shown(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,amount,day\n1,1.005,2026-01-01\nx,2.00,2026-02-30\n3,,\n")
    (tmp_path / "b.csv").write_text("id,amount,day\n1,1.00,2026-01-01\n")
    (tmp_path / "c.csv").write_text('id,amount,day\n1,1.00\n"2\n",9999,01.01.2026\n4,1,2026-01-01,5\n5,abc,\n')
    problem = refused(tmp_path, use_of(COLUMNS, "a.csv", "b.csv", "c.csv", required=["amount"]))
    assert places(problem) == [
        ("a.csv", 2, "amount", "1.005"),
        ("a.csv", 3, "id", "x"),
        ("a.csv", 3, "day", "2026-02-30"),
        ("a.csv", 4, "amount", None),
        ("c.csv", 2, None, None),
        ("c.csv", 3, "amount", "9999"),
        ("c.csv", 3, "day", "01.01.2026"),
        ("c.csv", 5, None, None),
        ("c.csv", 6, "amount", "abc"),
    ]
    assert dict(problem.counts) == {"id": 1, "amount": 4, "day": 2, "": 2}


def test_many_wrong_values_are_counted_and_the_first_are_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv, "BLOCK", 4096)
    lines = [
        f"{number},{'1.005' if number % 3 == 0 else '1'},{'soon' if number % 5 == 0 else ''}" for number in range(3_000)
    ]
    (tmp_path / "a.csv").write_text("id,amount,day\n" + "\n".join(lines))
    problem = refused(tmp_path, use_of(COLUMNS, "a.csv"))
    expected = [
        ("a.csv", number + 2, column, value)
        for number in range(100)
        for column, value, every in (("amount", "1.005", 3), ("day", "soon", 5))
        if number % every == 0
    ]
    assert places(problem) == expected[:20]
    assert dict(problem.counts) == {"amount": 1_000, "day": 600}
    assert len(problem.notes()) == 21
    shown: Any = problem.to_dict()
    assert len(shown["cells"]) == 20
    assert shown["cells"][0] == {
        "place": str(tmp_path / "a.csv"), "line": 2, "row": None, "column": "amount", "value": "1.005",
        "rule": problem.cells[0].rule,
    }  # fmt: skip
    assert shown["counts"] == {"amount": 1_000, "day": 600}
    assert len(render_full([problem]).splitlines()) < 30


@pytest.mark.parametrize("wrong", [1, 7, 500])
def test_lines_are_right_beside_records_of_another_width(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrong: int
) -> None:
    """Arrow leaves such records out, so that the rows behind them have other numbers."""
    monkeypatch.setattr(csv, "BLOCK", 1024)
    lines = ["1,2" if number % 2 and number < 2 * wrong else "1,2,2026-01-01" for number in range(2_000)]
    lines[1_990] = "x,2,2026-01-01"
    (tmp_path / "a.csv").write_text("id,amount,day\n" + "\n".join(lines) + "\n")
    problem = refused(tmp_path, use_of(COLUMNS, "a.csv"))
    assert dict(problem.counts) == {"id": 1, "": wrong}
    expected = [("a.csv", 2 * number + 3, None, None) for number in range(wrong)]
    assert places(problem) == [*expected, ("a.csv", 1_992, "id", "x")][:20]


def test_a_long_value_is_cut(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,amount,day\n" + "9" * 100_000 + ",1,\n")
    (cell,) = refused(tmp_path, use_of(COLUMNS, "a.csv")).cells
    assert cell.value is not None
    assert len(cell.value) < 100
    assert len(cell.rule) < 200


@pytest.mark.parametrize("required", [True, False])
def test_a_required_value_that_is_missing(tmp_path: Path, required: bool) -> None:
    (tmp_path / "a.csv").write_text("id,amount,day\n1,1,\n2,,\n")
    use = use_of(COLUMNS, "a.csv", required=["amount"] if required else [])
    if required:
        assert places(refused(tmp_path, use)) == [("a.csv", 3, "amount", None)]
    else:
        (path,) = extract(tmp_path, use)
        assert pq.read_table(path)["amount"].to_pylist() == [Decimal(1), None]


def test_an_empty_text_is_not_a_number(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('id,amount,day\n1,"",""\n2,"1,5",2026-01-31\n')
    problem = refused(tmp_path, use_of(COLUMNS, "a.csv"))
    assert places(problem) == [("a.csv", 2, "amount", ""), ("a.csv", 2, "day", ""), ("a.csv", 3, "amount", "1,5")]
    assert problem.cells[0].rule == "is not a number (decimal(5,2)), but an empty text"
    # The empty texts do not hide what the other values tell.
    assert "nothing between two separators" in str(problem.remedy)
    assert '`decimal: ","`' in str(problem.remedy)


@pytest.mark.parametrize(
    ("text", "options", "skip"),
    [
        ("\nid,amount,day\n1,1,\n", {}, 1),
        ("Report\n\n# c\n \nid,amount,day\n", {"skip_lines": 1, "comment": "#"}, 4),
        ("\n\n", {}, None),
        ("", {}, None),
    ],
)
def test_a_file_that_begins_with_a_blank_line(
    tmp_path: Path, text: str, options: dict[str, Any], skip: int | None
) -> None:
    (tmp_path / "a.csv").write_text(text)
    problem = refused(tmp_path, use_of(COLUMNS, "a.csv"), **options)
    assert ("begins with a blank line" in problem.detail, "is empty" in problem.detail) == (bool(skip), not skip)
    if skip is not None:
        assert f"set `skip_lines: {skip}`" in str(problem.remedy)
        assert extract(tmp_path, use_of(COLUMNS, "a.csv"), **{**options, "skip_lines": skip})


def test_a_required_value_may_be_the_empty_text(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('id,name\n1,""\n')
    (path,) = extract(tmp_path, use_of({"id": INTEGER, "name": TEXT}, "a.csv", required=["id", "name"]))
    assert pq.read_table(path)["name"].to_pylist() == [""]


@pytest.mark.parametrize(
    ("content", "diagnosis"),
    [
        (b'id,amount,day\n1,"2"3,\n', "quotes"),
        (b'id,amount,day\n1,"2\n3,4,\n', "quotes"),
        (b'id,amount,day\n1,"a\\"b",\n', "escapes"),
        (b"id,amount,day\n1,gr\xf6\xdfe,\n", "encoding"),
        (b"id;amount;day\n1;2;\n", "separator"),
        (b"PK\x03\x04", "zip"),
    ],
)
def test_a_file_that_is_not_what_its_datasource_says(tmp_path: Path, content: bytes, diagnosis: str) -> None:
    (tmp_path / "a.csv").write_bytes(content)
    problem = refused(tmp_path, use_of(COLUMNS, "a.csv"))
    assert problem.diagnosis == diagnosis
    assert problem.hint() is not None
    assert str(tmp_path / "a.csv") in problem.message()


def test_no_row_is_lost_by_an_open_quote(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('id,name\n1,"a\n2,b\n3,"c\n4,d\n')
    problem = refused(tmp_path, use_of({"id": INTEGER, "name": TEXT}, "a.csv"))
    assert problem.diagnosis == "quotes"
    assert "line 2" in problem.detail


def test_a_file_of_another_period_may_be_missing(tmp_path: Path) -> None:
    (tmp_path / "2025-12.csv").write_text("id\n1\n")
    paths = ("2025-11.csv", "2025-12.csv")
    assert "2025-11.csv" in refused(tmp_path, use_of({"id": INTEGER}, *paths)).message()
    assert len(extract(tmp_path, use_of({"id": INTEGER}, *paths, may_be_missing=True))) == 1
    assert extract(tmp_path, use_of({"id": INTEGER}, "2025-11.csv", may_be_missing=True)) == []


def test_a_file_that_is_wrong_is_refused_even_if_it_may_be_missing(tmp_path: Path) -> None:
    (tmp_path / "2025-12.csv").write_text("id\nx\n")
    assert refused(tmp_path, use_of({"id": INTEGER}, "2025-12.csv", may_be_missing=True)).counts == (("id", 1),)


def test_nothing_is_read_for_periods_that_do_not_exist(tmp_path: Path) -> None:
    (tmp_path / "2025-12.csv").write_text("id\n1\n")
    assert extract(tmp_path, use_of({"id": INTEGER}, "2025-12.csv", may_be_missing=True, periods=())) == []


@pytest.mark.parametrize(("text", "separator"), [("1;a\n2;b\n", True), ("1,a\n2;b\n", False)])
def test_a_file_without_a_header_is_suspected_by_its_first_record(tmp_path: Path, text: str, separator: bool) -> None:
    (tmp_path / "a.csv").write_text(text)
    problem = refused(tmp_path, use_of({"id": INTEGER, "name": TEXT}, "a.csv"), has_header=False)
    assert problem.diagnosis == ("separator" if separator else None)


def test_an_executor_extracts_the_file_that_the_driver_saw_and_no_other(tmp_path: Path) -> None:
    path, target = tmp_path / "a.csv", tmp_path / "run" / "a.parquet"
    target.parent.mkdir()
    path.write_text("id,amount,day\n1,1.00,2026-01-01\n")
    storage = csv.CsvStorage.open(source_of("csv", path_prefix="."), root=str(tmp_path))
    assert isinstance(storage, csv.CsvStorage)
    use, pinned = use_of(COLUMNS, "a.csv"), PinnedFile.of(path)

    def extracted(file: PinnedFile) -> Findings | None:
        return csv._extract_in_task(storage, use, (file, path, target))

    assert extracted(replace(pinned, size=1)) is None
    assert extracted(replace(pinned, modified=1)) is None
    assert not target.exists()
    assert extracted(pinned) == Findings()
    assert pq.read_table(target).num_rows == 1
    target.unlink()
    path.write_text("id,amount,day\nx,1.00,2026-01-01\n")
    found = extracted(PinnedFile.of(path))
    assert found is not None
    assert dict(found.counts) == {"id": 1}
    assert list(target.parent.iterdir()) == []


class Here:
    """Executors in this process. They do not write what the driver does not see, or do nothing."""

    def __init__(self, *, above: int, able: bool = True, unseen: str = "") -> None:
        self.limits = replace(Limits(), csv_bytes=above)
        self._able, self._unseen = able, unseen
        self.done: list[str] = []

    def do(self, work: Callable[[Any], Any], things: Sequence[Any]) -> list[Any] | None:
        if not self._able:
            return None
        found = []
        for thing in things:
            self.done.append(thing[1].name)
            found.append(work(thing))
            if thing[1].name == self._unseen:
                thing[2].unlink()
        return found


class TestExecutors:
    """Large files are extracted by others, and the outcome is the same."""

    def extract(self, root: Path, executors: Here, *, again: bool = False) -> tuple[list[Any], dict[str, int]]:
        storage = csv.CsvStorage.open(source_of("csv", path_prefix="."), root=str(root))
        use = use_of({"id": INTEGER}, "in")
        (pin,) = storage.pin(use, use.locations)
        scratch = Scratch(str(root / "run" / "1"), "in", executors=executors)
        if again:
            storage.extract(use, pin, replace(scratch, executors=None), belongs=BELONGS)
        _, found = storage.extract(use, pin, scratch, belongs=BELONGS)
        paths = [path for path in storage.extracted(pin, scratch) if Path(path).exists()]
        return [pq.read_table(path)["id"].to_pylist() for path in paths], dict(found.counts)

    @pytest.fixture
    def root(self, tmp_path: Path) -> Path:
        (tmp_path / "in").mkdir()
        for name, text in (("a", "id\n1\n"), ("b", "id\n2\n"), ("c", "id\n3\n")):
            (tmp_path / "in" / f"{name}.csv").write_text(text)
        return tmp_path

    @pytest.mark.parametrize(
        ("given", "done"),
        [
            ({"above": 14}, ["a.csv", "b.csv", "c.csv"]),
            ({"above": 14, "unseen": "b.csv"}, ["a.csv", "b.csv", "c.csv"]),
            ({"above": 14, "able": False}, []),
            ({"above": 15}, []),
        ],
        ids=["all", "one is out of reach", "unable", "small files"],
    )
    def test_all_rows_are_there(self, root: Path, given: dict[str, Any], done: list[str]) -> None:
        executors = Here(**given)
        assert self.extract(root, executors) == ([[1], [2], [3]], {})
        assert executors.done == done

    def test_what_is_wrong_is_found(self, root: Path) -> None:
        (root / "in" / "b.csv").write_text("id\nx\n")
        assert self.extract(root, Here(above=0)) == ([[1], [3]], {"id": 1})

    def test_what_was_done_is_not_done_again(self, root: Path) -> None:
        executors = Here(above=0)
        assert self.extract(root, executors, again=True) == ([[1], [2], [3]], {})
        assert executors.done == []


@pytest.mark.parametrize("is_header", [True, False])
def test_a_record_may_be_larger_than_a_block(tmp_path: Path, is_header: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv, "BLOCK", 64)
    notes = ["a", "b" * 5_000, "c\n" * 300, "d"]
    lines = [f'{number},"{note}"\n' for number, note in enumerate(notes)]
    path = tmp_path / "a.csv"
    path.write_text("".join([*(["id,note\n"] if is_header else []), *lines]))
    columns: dict[str, Type] = {"id": INTEGER, "note": TEXT}
    (target,) = extract(tmp_path, use_of(columns, "a.csv"), has_header=is_header)
    rows = [{"id": number, "note": note} for number, note in enumerate(notes)]
    assert pq.read_table(target).to_pylist() == rows
    dialect = csv_dialect.Dialect(has_header=is_header)
    assert csv.sample_csv(path, columns, 10, dialect) == rows
    assert csv.sample_csv(path, columns, 2, dialect) == rows[:2]
    texts = [batch for _, batch in csv.read_texts(path, 2, dialect)]
    assert sum(batch.num_rows for batch in texts) == 4 + is_header


def test_first_rows_keep_texts_that_cannot_be_parsed(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("id,amount,more\n1,2.50,x\n,soon,\n")
    assert csv.sample_csv(path, COLUMNS, 5, csv_dialect.Dialect()) == [
        {"id": 1, "amount": "2.50", "more": "x"},
        {"id": None, "amount": "soon", "more": None},
    ]


def test_a_file_of_a_run_without_a_header_has_the_recorded_columns(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("1,x\n")
    use, dialect = use_of({"id": INTEGER, "note": TEXT}, "a.csv"), csv_dialect.Dialect(has_header=False)
    target = tmp_path / "a.parquet"
    assert not csv.extract_csv(path, target, use, dialect, columns=["id", "note"])
    assert pq.read_table(target).to_pylist() == [{"id": 1, "note": "x"}]
    failed = failure(csv.extract_csv, path, tmp_path / "b.parquet", use, dialect, columns=["id", "other"])
    assert isinstance(failed.problem, DataLoad)
    assert failed.problem.differences == ("column `note` is missing", "column `other` is not declared")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["a.csv", "a.parquet"]


def test_what_cannot_be_written_is_explained(tmp_path: Path) -> None:
    source = tmp_path / "in.parquet"
    pq.write_table(pa.table({"id": ["no number"]}), source)
    columns: dict[str, Type] = {"id": INTEGER}

    def detail(target: Path) -> tuple[str, str]:
        problem = failure(csv.write_csv, source, target, csv_dialect.Dialect(), columns=columns, to="lake:out").problem
        assert isinstance(problem, OutputWrite)
        return problem.destination, problem.detail

    assert detail(tmp_path / "nowhere" / "a.csv") == ("lake:out", "No such file or directory")
    destination, reason = detail(tmp_path / "a.csv")
    assert (destination, "no number" in reason) == ("lake:out", True)


def test_values_are_in_quotes_where_they_could_be_taken_for_others(tmp_path: Path) -> None:
    columns: dict[str, Type] = {"a": INTEGER, "b": DecimalType(20, 9), 'c"': TEXT, "d": DATE}
    source, target = tmp_path / "in.parquet", tmp_path / "out.csv"
    schema = pa.schema([(name, arrow_type(kind)) for name, kind in columns.items()])
    rows = [(-1, Decimal("0E-9"), 'x"y', date(2026, 1, 2)), (None, Decimal("1.5"), "", None)]
    pq.write_table(pa.Table.from_pylist([dict(zip(columns, row, strict=True)) for row in rows], schema), source)

    def written(**options: Any) -> list[str]:
        csv.write_csv(source, target, csv_dialect.Dialect(**options), columns=columns, to="out")
        return target.read_text().splitlines()

    plain = ['"a","b","c""","d"', '-1,0.000000000,"x""y",2026-01-02', ',1.500000000,"",']
    assert written() == plain
    assert written(skip_lines=2) == ["", "", *plain]
    assert written(has_header=False) == plain[1:]
    assert written(null_values=("#N/A",)) == plain
    quoted = ['"-1","0.000000000","x""y","2026-01-02"', ',"1.500000000","",']
    assert written(null_values=("NA",))[1:] == written(null_values=("-",))[1:] == quoted
    assert written(delimiter="|")[1] == '-1|0.000000000|"x""y"|2026-01-02'
    assert written(delimiter="-")[1] == '"-1"-"0.000000000"-"x""y"-"2026-01-02"'
    assert written(delimiter="x")[1:] == [
        line.replace('","', '"x"').replace(',"', 'x"').replace('",', '"x') for line in quoted
    ]


@pytest.mark.parametrize("name", ["input.extracting", "output.converting"])
def test_a_kill_can_be_tried_while_rows_are_on_their_way(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.csv").write_text("id\n1\n")
    go = tmp_path / "go"
    go.touch()
    monkeypatch.setattr(failpoint, "_reached", {})
    monkeypatch.setenv(failpoint.VARIABLE, f"{name}@{go}")
    (target,) = extract(tmp_path, use_of({"id": INTEGER}, "a.csv"))
    csv.write_csv(target, tmp_path / "b.csv", csv_dialect.Dialect(), columns={"id": INTEGER}, to="out")
    assert go.with_name("go.waiting").exists()

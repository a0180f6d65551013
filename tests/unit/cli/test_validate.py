"""`dobo validate`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.cli.conftest import Dobo, change


def test_all_fine(dobo: Dobo, sales: Path) -> None:
    result = dobo("validate")
    assert (result.code, result.out) == (0, "")
    assert result.err.count("\n") == 1
    assert "2 datasets" in result.err
    assert "1 project" in result.err


def test_quietly(dobo: Dobo, sales: Path) -> None:
    assert dobo("-q", "validate") == (0, "", "")


def test_problems(dobo: Dobo, faulty: Path) -> None:
    result = dobo("validate")
    assert result.code == 1
    assert "12 errors" in result.out + result.err


def test_warnings_are_no_failure(dobo: Dobo, sales: Path) -> None:
    change(sales, "projects/monthly-sales.yaml", "  selectors:", "  selectors:\n    unused: amount > 1")
    result = dobo("validate")
    assert result.code == 0
    assert "W-07" in result.out + result.err


@pytest.mark.parametrize("arguments", [("--json",), ("--output-format", "json")])
def test_as_json(dobo: Dobo, faulty: Path, arguments: tuple[str, ...]) -> None:
    result = dobo("validate", *arguments)
    assert (result.code, result.err) == (1, "")
    document = result.document
    assert (document["schema"], document["ok"], len(document["problems"])) == ("dobo/validate/1", False, 12)
    first = document["problems"][0]
    assert (first["code"], first["file"], first["line"], first["column"]) == (
        "INVALID_VALUE",
        "datasets/tables.yaml",
        27,
        20,
    )
    named = next(problem for problem in document["problems"] if problem["code"] == "UNKNOWN_COLUMN")
    assert (named["operation_seq"], named["operation_name"], named["expression"]) == (
        1,
        "Tag EMEA orders",
        'orders.regoin = "EMEA"',
    )


def test_as_json_when_all_is_fine(dobo: Dobo, sales: Path) -> None:
    document = dobo("validate", "--json").document
    assert (document["ok"], document["problems"]) == (True, [])
    assert document["data"]["projects"] == 1


def test_concisely(dobo: Dobo, faulty: Path) -> None:
    result = dobo("validate", "--output-format", "concise")
    lines = result.out.splitlines()
    assert (result.code, len(lines)) == (1, 12)
    assert lines[0].startswith("datasets/tables.yaml:27:20: error[INVALID_VALUE]: ")


def test_for_github(dobo: Dobo, faulty: Path) -> None:
    lines = dobo("validate", "--output-format", "github").out.splitlines()
    assert len(lines) == 12
    assert lines[0].startswith("::error file=datasets/tables.yaml,line=27,col=20,title=INVALID_VALUE::")


def test_only_some_files(dobo: Dobo, faulty: Path) -> None:
    files = {problem["file"] for problem in dobo("validate", "datasets", "--json").document["problems"]}
    assert files == {"datasets/tables.yaml"}
    both = dobo("validate", "datasets/tables.yaml", "resolvers", "--json").document["problems"]
    assert [problem["file"] for problem in both] == ["datasets/tables.yaml", "resolvers/lake.yaml"]


def test_the_problems_of_other_files_do_not_count(dobo: Dobo, faulty: Path) -> None:
    assert dobo("validate", "calendars").code == 0


def test_files_of_another_folder(dobo: Dobo, faulty: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    problems = dobo("validate", "faulty/datasets", "--json").document["problems"]
    assert {problem["file"] for problem in problems} == {"datasets/tables.yaml"}


def test_files_are_looked_for_in_the_folder_given(
    dobo: Dobo, faulty: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    problems = dobo("-C", "faulty", "validate", "datasets", "--json").document["problems"]
    assert {problem["file"] for problem in problems} == {"datasets/tables.yaml"}


def test_a_file_that_does_not_exist_is_not_fine(dobo: Dobo, faulty: Path) -> None:
    assert dobo("validate", "projects/montly.yaml").code in (2, 5)


def test_a_broken_input_dataset(dobo: Dobo, sales: Path) -> None:
    change(sales, "datasets/orders.yaml", "temporal_mode: period", "temporal_mode: monthly")
    result = dobo("validate", "--json")
    assert (result.code, result.codes) == (1, ["INVALID_VALUE"])

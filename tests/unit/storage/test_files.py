"""Which files a location has."""

from __future__ import annotations

from pathlib import Path

from dobonomodo.formula.types import INTEGER
from dobonomodo.storage.files import list_files
from tests.unit.storage.reading import refused, use_of


def test_folders_of_partitions_are_read_whatever_their_names_start_with(tmp_path: Path) -> None:
    for name in ("_x=1/a.csv", "x=1/_y=2/b.csv", "c.csv", "_tmp/d.csv", ".x=1/e.csv", "_f.csv", ".g.csv", "x=1/_h"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    found = [path.relative_to(tmp_path).as_posix() for path in list_files(tmp_path)]
    assert found == ["_x=1/a.csv", "c.csv", "x=1/_y=2/b.csv"]


def test_a_hidden_file_that_is_named_is_read(tmp_path: Path) -> None:
    (tmp_path / "_rows.csv").touch()
    assert list_files(tmp_path / "_rows.csv") == (tmp_path / "_rows.csv",)


def test_a_missing_file_names_the_rule_and_what_is_there(tmp_path: Path) -> None:
    (tmp_path / "in" / "_tmp").mkdir(parents=True)
    for name in [*(f"sales-2025-{month:02}.csv" for month in range(1, 13)), "sales-2026-02.csv", "other.csv"]:
        (tmp_path / "in" / name).touch()
    use = use_of({"id": INTEGER}, "in/sales-2026-01.csv", resolver_id="files", rule="monthly")
    problem = refused(tmp_path, use)
    assert str(tmp_path / "in" / "sales-2026-01.csv") in problem.detail
    assert problem.present[0] == "sales-2026-02.csv"
    assert "sales-2025-01.csv" in problem.present
    assert len(problem.present) == 10
    assert problem.remedy is not None
    assert "`monthly`" in problem.remedy
    assert "`files`" in problem.remedy


def test_a_missing_folder_names_what_is_beside_it(tmp_path: Path) -> None:
    (tmp_path / "2026" / "02").mkdir(parents=True)
    problem = refused(tmp_path, use_of({"id": INTEGER}, "2026/01/sales.csv"))
    assert (problem.remedy, problem.present) == (None, ("02",))
    problem = refused(tmp_path, use_of({"id": INTEGER}, "elsewhere/sales.csv"))
    assert problem.present == ("2026",)

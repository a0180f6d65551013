"""Which files a location has."""

from __future__ import annotations

import os
from pathlib import Path

from dobonomodo.formula.types import INTEGER
from dobonomodo.storage.files import PinnedFile, find_changes, is_below, leads_out, link_file, list_beside, list_files
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


def test_names_that_begin_most_alike_come_first(tmp_path: Path) -> None:
    for name in ("other", "sale", "sales.csv.old", "sales", "sales.cs", "sbles", ".sales.csv"):
        (tmp_path / name).touch()
    expected = ("sales.csv.old", "sales.cs", "sales", "sale", "sbles", "other")
    assert list_beside(tmp_path / "sales.csv") == expected
    assert list_beside(tmp_path / "sales.csv" / "deep" / "zzz") == expected


def test_a_folder_that_is_reached_twice_is_read_once(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "rows.csv").touch()
    (tmp_path / "a" / "circle").symlink_to(tmp_path)
    (tmp_path / "b").symlink_to("a")
    (tmp_path / "c.csv").symlink_to("a/rows.csv")
    assert list_files(tmp_path) == (tmp_path / "a" / "rows.csv", tmp_path / "c.csv")


def test_what_is_below_a_folder(tmp_path: Path) -> None:
    assert [is_below(path, ["/data", "/more"]) for path in ("/data", "/more/a", "/database", "/", "/a/data")] == [
        True, True, False, False, False,
    ]  # fmt: skip
    assert is_below("/a", ["/"])
    inside, outside = tmp_path / "in", tmp_path / "out"
    inside.mkdir()
    outside.mkdir()
    (inside / "link").symlink_to(outside)
    (tmp_path / "alias").symlink_to(inside)
    assert not leads_out(tmp_path / "alias", inside / "not" / "there")
    assert leads_out(inside, inside / "link" / "new")
    assert leads_out(inside, inside / ".." / "x")


def test_changes_are_told_in_words(tmp_path: Path) -> None:
    longer, touched, gone, same = (tmp_path / name for name in ("longer", "touched", "gone", "same"))
    for path in (longer, touched, gone, same):
        path.write_text("1")
    (tmp_path / "link").symlink_to(same)
    pinned = [PinnedFile.of(path) for path in (longer, touched, gone, same, tmp_path / "link")]
    assert pinned[3] == pinned[4]
    longer.write_text("12")
    os.utime(touched, ns=(0, 0))
    gone.unlink()
    assert find_changes(pinned) == (
        f"`{longer}` had 1 bytes, now 2",
        f"`{touched}` was changed",
        f"`{gone}` is gone",
    )


def test_a_file_is_linked_or_else_copied(tmp_path: Path) -> None:
    source, there = tmp_path / "source", tmp_path / "there"
    source.write_text("rows")
    os.utime(source, ns=(0, 5_000))
    link_file(source, tmp_path / "link")
    assert (tmp_path / "link").samefile(source)
    # No link can be made to a name that is taken, as on a disk that has none.
    there.write_text("half of the rows")
    link_file(source, there)
    assert (there.read_text(), there.samefile(source)) == ("rows", False)
    assert there.stat().st_mtime_ns == source.stat().st_mtime_ns


def test_tags_of_objects_are_part_of_a_record() -> None:
    plain, tagged = PinnedFile("a", 1, 2), PinnedFile("a", 1, 2, "x")
    assert [PinnedFile.load(each.document()) for each in (plain, tagged)] == [plain, tagged]
    assert "etag" not in plain.document()

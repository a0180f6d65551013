"""What a run reads, pinned and found again: files of locations, files that a run has registered, kept copies."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pyarrow.parquet as pq
import pytest

from dobonomodo.formula.types import INTEGER
from dobonomodo.plan.dataset import DatasetUse
from dobonomodo.problems import RunFailed
from dobonomodo.problems.run import DataLoad
from dobonomodo.storage import Inputs
from dobonomodo.storage.csv import CsvFormat
from dobonomodo.storage.csv_dialect import Dialect
from dobonomodo.storage.folder import StoredFiles
from dobonomodo.storage.kept import KeptInputs
from tests.unit.storage.reading import use_of
from tests.world import JANUARY, failure, source_of

COLUMNS = {"id": INTEGER}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text("id\n1\n")
    return tmp_path


def inputs(root: Path, as_of: date | None = None) -> Inputs:
    sources = {"files": source_of("csv", path_prefix=".")}
    return Inputs(root=root, datasources=sources, folder=root / ".run", facts=JANUARY, as_of=as_of)


def names(found: dict[str, Any], use: DatasetUse) -> list[list[str]]:
    """The names of the pinned files of each location."""
    return [[Path(file.path).name for file in pin.files] for pin in found[use.key]]


def test_every_location_is_pinned(root: Path) -> None:
    use = use_of(COLUMNS, "a.csv", "b.csv")
    assert names(inputs(root).pin([use]), use) == [["a.csv"], ["b.csv"]]


def test_files_have_the_names_that_the_run_knew_them_by(root: Path) -> None:
    use, own = use_of(COLUMNS, "a.csv", "b.csv"), inputs(root)
    assert own.names(use, own.pin([use])[use.key]) == [[str(root / "a.csv")], [str(root / "b.csv")]]


def test_a_reading_of_no_period_has_no_files(root: Path) -> None:
    use = use_of(COLUMNS, "a.csv", periods=())
    assert inputs(root).pin([use]) == {use.key: ()}


def test_a_location_may_be_missing_where_the_reading_says_so(root: Path) -> None:
    use = use_of(COLUMNS, "a.csv", "gone.csv", "b.csv", may_be_missing=True)
    assert names(inputs(root).pin([use]), use) == [["a.csv"], ["b.csv"]]
    with pytest.raises(RunFailed) as failed:
        inputs(root).pin([use_of(COLUMNS, "a.csv", "gone.csv")])
    assert failed.value.problem.code == "DATA_LOAD"


def test_what_a_run_has_registered_is_pinned_where_it_was_written(root: Path) -> None:
    folder = root / "made"
    folder.mkdir()
    (folder / "part-0.csv").write_text("id\n1\n")
    use = use_of(COLUMNS, registered=StoredFiles(CsvFormat(Dialect()), "made", "made", ("part-0.csv",)))
    assert names(inputs(root).pin([use]), use) == [["part-0.csv"]]


def test_changes_of_all_inputs_are_found_once(root: Path) -> None:
    uses = [use_of(COLUMNS, "a.csv", "b.csv"), use_of(COLUMNS, "a.csv", alias="again")]
    pinned = inputs(root).pin(uses)
    assert len(pinned) == 2
    assert inputs(root).find_changes(pinned, listing=True) == ()
    (root / "a.csv").write_text("id\n1\n2\n")
    (change,) = inputs(root).find_changes(pinned, listing=True)
    assert "a.csv" in change


@pytest.mark.parametrize("is_kept", [True, False])
def test_changed_inputs_of_a_run_of_the_past_are_read_from_copies(root: Path, is_kept: bool) -> None:
    use, kept = use_of(COLUMNS, "a.csv", "b.csv"), KeptInputs(root / ".kept")
    own = inputs(root)
    pinned = own.extract([use], own.pin([use]))
    hashes = own.keep([use], pinned, kept if is_kept else None)
    assert [len(each) for each in hashes[use.key]] == [1, 1]
    assert own.restore([use], pinned, hashes, kept).used == ()
    (root / "a.csv").write_text("id\n1\n2\n")
    restored = own.restore([use], pinned, hashes, kept)
    assert restored.used == ((pinned[use.key][0].name,) if is_kept else ())
    assert len(restored.changes) == (0 if is_kept else 1)
    assert restored.pinned[use.key][1] == pinned[use.key][1]
    assert (restored.pinned[use.key][0] == pinned[use.key][0]) is not is_kept


def test_a_reading_without_a_place_has_no_files(root: Path) -> None:
    use = use_of(COLUMNS)
    assert inputs(root).pin([use]) == {use.key: ()}


def test_only_what_is_not_there_may_be_missing(root: Path) -> None:
    use = use_of(COLUMNS, "a.csv/below", may_be_missing=True)
    assert failure(inputs(root).pin, [use]).problem.code == "DATA_LOAD"


def test_rows_are_extracted_again_where_they_are_gone(root: Path) -> None:
    (root / "b.csv").write_text("id\n2\n3\n")
    uses, own = [use_of(COLUMNS, "a.csv", "b.csv"), use_of(COLUMNS, "b.csv", alias="again")], inputs(root)
    pinned = own.extract(uses, own.pin(uses))
    assert own.count(uses, pinned) == 5
    found = own.files(uses[0], pinned[uses[0].key])
    assert [len(paths) for paths in found] == [1, 1]
    found[1][0].unlink()
    assert own.files(uses[0], pinned[uses[0].key]) == found
    assert [pq.read_table(path)["id"].to_pylist() for (path,) in found] == [[1], [2, 3]]
    # What is there is not made again.
    before = found[0][0].stat()
    own.files(uses[0], pinned[uses[0].key])
    assert found[0][0].stat() == before


def test_a_folder_that_takes_no_rows_is_named(root: Path) -> None:
    use, own = use_of(COLUMNS, "a.csv"), inputs(root)
    (root / ".run").write_text("no folder")
    problem = failure(own.extract, [use], own.pin([use])).problem
    assert isinstance(problem, DataLoad)
    assert str(root / ".run/inputs") in problem.detail


def test_all_that_is_wrong_in_all_locations_is_found_at_once(root: Path) -> None:
    for name in ("a.csv", "b.csv"):
        (root / name).write_text("id\n1\nx\n")
    use, own = use_of(COLUMNS, "a.csv", "b.csv"), inputs(root)
    problem = failure(own.extract, [use], own.pin([use])).problem
    assert isinstance(problem, DataLoad)
    assert problem.counts == (("id", 2),)
    assert [Path(cell.place).name for cell in problem.cells] == ["a.csv", "b.csv"]


def test_a_file_that_cannot_be_read_has_no_hash_and_no_copy(root: Path) -> None:
    use, kept, own = use_of(COLUMNS, "a.csv", "b.csv"), KeptInputs(root / ".kept"), inputs(root)
    pinned = own.pin([use])
    (root / "a.csv").unlink()
    hashes = own.keep([use], pinned, kept)
    assert hashes == own.keep([use], pinned, None)
    assert [each[0] is None for each in hashes[use.key]] == [True, False]
    (root / "b.csv").unlink()
    restored = own.restore([use], pinned, hashes, kept)
    assert restored.used == (pinned[use.key][1].name,)
    assert restored.pinned[use.key][0] == pinned[use.key][0]
    (change,) = restored.changes
    assert "a.csv" in change
    # Of a run whose hashes are not known, or not of all files, nothing is restored.
    for known in ({}, {use.key: hashes[use.key][:1]}, {use.key: [(), ()]}):
        lost = own.restore([use], pinned, known, kept)
        assert (lost.used, len(lost.changes)) == ((), 2)
        assert lost.pinned == pinned


def test_the_same_dataset_is_opened_once(root: Path) -> None:
    asked: list[str] = []

    def sql(text: str) -> Any:
        asked.append(text)
        return SimpleNamespace(where=lambda condition: SimpleNamespace(columns=[condition]))

    uses = [
        use_of(COLUMNS, periods=(), alias=alias, optional=frozenset(optional))
        for alias, optional in (("a", ()), ("b", ()), ("c", ("id",)))
    ]
    reader = inputs(root).reader(cast("Any", SimpleNamespace(sql=sql)), {use.key: () for use in uses})
    found = [reader.read(use) for use in uses]
    assert [len(each) for each in found] == [1, 1, 1]
    assert found[0][0] is found[1][0]
    assert found[0][0] is not found[2][0]
    assert len(asked) == 2

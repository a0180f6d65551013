"""Files that are replaced in one act."""

from pathlib import Path

from dobonomodo.storage.durable import write_durably


def test_a_file_is_replaced_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "mark.json"
    write_durably(path, b"one")
    before = path.stat().st_ino
    write_durably(path, b"two")
    assert (path.read_bytes(), [each.name for each in tmp_path.iterdir()]) == (b"two", ["mark.json"])
    assert path.stat().st_ino != before, "who has the old file open reads the old file"

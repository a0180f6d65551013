from __future__ import annotations

from pathlib import Path

from dobonomodo.storage.links import Links

HIDDEN = ["_a.parquet", ".b.parquet", "c[1].parquet", "d*.parquet", "größe.parquet", "e f.parquet"]


def test_files_are_read_where_they_are_or_by_links_with_plain_names(tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("plain-1_2.parquet", *HIDDEN)]
    for path in files:
        path.write_text(path.name)
    links = Links(tmp_path / "deep/links")
    found = [Path(each) for each in links.addresses(files)]
    assert found[0] == files[0]
    assert all(each.parent == tmp_path / "deep/links" for each in found[1:])
    assert [each.read_text() for each in found] == [path.name for path in files]
    assert len({each.name for each in found}) == len(files)
    assert [Path(each) for each in links.addresses(files)] == found

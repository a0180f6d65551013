from __future__ import annotations

import threading
from pathlib import Path

import pytest

from dobonomodo.storage.access import Access
from dobonomodo.storage.address import Address
from dobonomodo.storage.hdfs import HdfsObjects
from dobonomodo.storage.object_store import StoreObjects
from dobonomodo.storage.objects import do_at_once, open_objects, writing_whole


@pytest.mark.parametrize(
    ("address", "kind"),
    [
        ("s3://b/x", StoreObjects),
        ("gs://b", StoreObjects),
        ("az://b/x", StoreObjects),
        ("hdfs://node:8020/x", HdfsObjects),
    ],
)
def test_the_scheme_says_who_is_asked(address: str, kind: type) -> None:
    objects = open_objects(Address.parse(address), Access(region="somewhere"))
    assert type(objects) is kind
    assert objects.uri("a/b") == f"{address.removesuffix('/x')}/a/b"


def test_a_file_has_its_name_once_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "deep/file"
    with writing_whole(path) as file:
        file.write(b"1")
        assert not path.exists()
    assert path.read_bytes() == b"1"
    with pytest.raises(ValueError, match="oops"), writing_whole(path) as file:
        raise ValueError("oops")
    assert [each.name for each in path.parent.iterdir()] == ["file"]


def test_results_come_in_order_and_the_first_fault_is_raised() -> None:
    assert do_at_once(lambda number: number * 2, range(100)) == list(range(0, 200, 2))
    together = threading.Barrier(4)
    assert do_at_once(lambda _: together.wait(timeout=60) >= 0, range(4)) == [True] * 4

    def fail(number: int) -> int:
        if number in (3, 7):
            raise ValueError(number)
        return number

    with pytest.raises(ValueError, match="3"):
        do_at_once(fail, range(10))

"""Other programs read a destination while runs publish into it: by the list of files nothing is ever missing."""

from __future__ import annotations

import importlib.util
import multiprocessing
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.contract.storages import Storage, open_source
from tests.search.reading import (
    Findings,
    Read,
    list_by_glob,
    list_by_manifest,
    publish,
    publish_while_read,
    read_by_arrow,
    read_by_duckdb,
    read_by_pandas,
    read_by_spark,
)
from tests.searching import SEARCH, tries

pytestmark = pytest.mark.search

Record = Callable[[str, object], None]

PUBLICATIONS = tries(sample=5, full=100)
READERS: dict[str, Read] = {"arrow": read_by_arrow, "pandas": read_by_pandas, "duckdb": read_by_duckdb}


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    found = Storage(tmp_path, open_source("parquet", path_prefix="data"))
    publish(found, 0)
    return found


@pytest.fixture(params=[*READERS, pytest.param("spark", marks=pytest.mark.spark)])
def read(request: pytest.FixtureRequest) -> Read:
    name: str = request.param
    if name == "spark":
        return read_by_spark(request.getfixturevalue("spark"))
    if importlib.util.find_spec({"arrow": "pyarrow"}.get(name, name)) is None:
        pytest.skip(f"{name} is not installed")
    return READERS[name]


def watch(storage: Storage, find: Callable[[Path], list[str]], read: Read, *, reads: int) -> Findings:
    """Read without a pause while another process publishes."""
    context = multiprocessing.get_context("spawn")
    done = context.Value("i", 0)
    arguments = (storage, PUBLICATIONS, reads // PUBLICATIONS, done)
    publisher = context.Process(target=publish_while_read, args=arguments)
    findings = Findings()
    publisher.start()
    try:
        while findings.reads < reads or publisher.is_alive():
            findings.look(lambda: find(storage.folder / "out"), read)
            done.value = findings.reads
    finally:
        if findings.reads < reads:
            publisher.kill()
        publisher.join()
    assert publisher.exitcode == 0
    findings.look(lambda: find(storage.folder / "out"), read)
    return findings


def test_by_the_list_of_files_every_read_succeeds(storage: Storage, read: Read, record_property: Record) -> None:
    findings = watch(storage, list_by_manifest, read, reads=tries(sample=100, full=10_000))
    _record(findings, record_property)
    assert not findings.faults
    assert not findings.torn()
    assert len(findings.seen) >= 3
    assert ((f"{PUBLICATIONS:03}", 40),) in findings.seen


@pytest.mark.skipif(not SEARCH, reason="measures, and needs many reads: make search")
def test_by_a_glob_a_read_fails_now_and_then_and_never_mixes(
    storage: Storage, read: Read, record_property: Record
) -> None:
    findings = watch(storage, list_by_glob, read, reads=10_000)
    _record(findings, record_property)
    assert not findings.torn()


def _record(findings: Findings, record_property: Record) -> None:
    record_property("reads", findings.reads)
    record_property("publications", PUBLICATIONS)
    record_property("versions seen", len(findings.seen))
    record_property("errors", sum(findings.faults.values()))
    for name, times in findings.faults.items():
        record_property(name, times)

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
    leave_it_to_the_program,
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
READS = tries(sample=100, full=10_000)
READS_OF_SPARK = tries(sample=30, full=1_000)
"""One takes it as long as others take for a hundred."""
READERS: dict[str, Read] = {"arrow": read_by_arrow, "pandas": read_by_pandas, "duckdb": read_by_duckdb}


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    found = Storage(tmp_path, open_source("parquet", path_prefix="data"))
    publish(found, 0)
    return found


@pytest.fixture(params=[*READERS, pytest.param("spark", marks=pytest.mark.spark)])
def reader(request: pytest.FixtureRequest) -> tuple[Read, int]:
    """How to read, and how often."""
    name: str = request.param
    if name == "spark":
        return read_by_spark(request.getfixturevalue("spark")), READS_OF_SPARK
    if importlib.util.find_spec({"arrow": "pyarrow"}.get(name, name)) is None:
        pytest.skip(f"{name} is not installed")
    return READERS[name], READS


def watch(storage: Storage, find: Callable[[Path], list[str]], reader: tuple[Read, int]) -> Findings:
    """Read without a pause while another process publishes."""
    read, reads = reader
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


def test_by_the_list_of_files_every_read_succeeds(
    storage: Storage, reader: tuple[Read, int], record_property: Record
) -> None:
    findings = watch(storage, list_by_manifest, reader)
    _record(findings, record_property)
    assert not findings.faults
    assert not findings.empty
    assert not findings.torn()
    assert len(findings.seen) > PUBLICATIONS // 2
    assert ((f"{PUBLICATIONS:03}", 40),) in findings.seen


@pytest.mark.skipif(not SEARCH, reason="measures, and needs many reads: make search")
def test_through_the_link_a_read_fails_or_finds_nothing_now_and_then_and_never_mixes(
    storage: Storage, reader: tuple[Read, int], record_property: Record
) -> None:
    findings = watch(storage, leave_it_to_the_program, reader)
    _record(findings, record_property)
    assert not findings.torn()


def _record(findings: Findings, record_property: Record) -> None:
    record_property("reads", findings.reads)
    record_property("publications", PUBLICATIONS)
    record_property("versions seen", len(findings.seen))
    record_property("errors", sum(findings.faults.values()))
    record_property("without rows", findings.empty)
    for name, times in findings.faults.items():
        record_property(name, times)

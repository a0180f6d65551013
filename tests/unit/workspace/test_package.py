"""Packages of evidence: made of bytes alone, and any altered one is found."""

from __future__ import annotations

import io
import json
import random
import zipfile
from pathlib import Path
from typing import Any

import pytest

from dobonomodo.model.plain import hash_document
from dobonomodo.workspace import package
from tests.searching import tries

SNAPSHOT = {"clock": "2026-02-03", "inputs": {"ü": [1, 2]}}
PROGRESS = {"outputs": [{"rows": 3}]}
DOCUMENT = {"id": "close"}
TEXT = b"project: {id: close} # as written\n"


def chain(*entries: dict[str, object]) -> list[dict[str, object]]:
    linked, previous = [], "store"
    for number, entry in enumerate(entries, start=1):
        own = {"number": number, "previous": previous, "version": None, "detail": None, **entry}
        linked.append({**own, "hash": hash_document(own)})
        previous = str(linked[-1]["hash"])
    return linked


def collect() -> dict[str, bytes]:
    history = chain(
        {
            "event": "apply", "kind": "project", "id": "close", "version": 1,
            "detail": {"document": hash_document(DOCUMENT), "text": package.sha256(TEXT)},
        },
        {"event": "started", "kind": "run", "id": "r1", "detail": {"snapshot": hash_document(SNAPSHOT)}},
        {"event": "completed", "kind": "run", "id": "r1", "detail": {"progress": hash_document(PROGRESS)}},
    )  # fmt: skip
    definition = {
        "kind": "project",
        "id": "close",
        "version": 1,
        "document": DOCUMENT,
        "file": "definitions/close.yaml",
    }
    evidence = {
        "store": "store",
        "definitions": [definition],
        "inputs": [
            {"name": "lake:in.csv", "files": [{"path": "in.csv", "sha256": package.sha256(b"in"), "kept": True}]}
        ],
        "outputs": [
            {
                "table": "totals",
                "columns": [["region", "string"], ["net", "decimal(15,2)"]],
                "files": [{"path": "out.csv", "sha256": package.sha256(b"out")}],
            }
        ],
    }
    record = {"run_id": "r1", "progress": PROGRESS}
    documents = {
        package.SNAPSHOT: SNAPSHOT, package.RECORD: record, package.HISTORY: history, package.EVIDENCE: evidence
    }  # fmt: skip
    return {**{name: json.dumps(each).encode() for name, each in documents.items()}, "definitions/close.yaml": TEXT}


FILES = package.seal(collect())
PACKED = package.pack(FILES)


def wrong(files: dict[str, bytes], **more: str) -> list[str]:
    return [name for name, right, _ in package.check(files, **more) if not right]


def change(name: str, old: str, new: str) -> dict[str, bytes]:
    """Somebody changes a file, and the manifest to match."""
    content = FILES[name].decode()
    assert old in content
    files = {each: content for each, content in FILES.items() if each != package.MANIFEST}
    return package.seal({**files, name: content.replace(old, new).encode()})


def test_a_package_is_a_zip_file_that_follows_from_its_content() -> None:
    assert package.unpack(PACKED) == FILES
    assert package.pack(dict(reversed(FILES.items()))) == PACKED
    with zipfile.ZipFile(io.BytesIO(PACKED)) as archive:
        assert archive.testzip() is None
    assert wrong(FILES) == []


@pytest.mark.parametrize(
    ("name", "old", "new", "found"),
    [
        (package.SNAPSHOT, "2026-02-03", "2026-02-04", "snapshot"),
        (package.RECORD, ": 3", ": 4", "record"),
        (package.HISTORY, "completed", "cancelled", "history"),
        (package.EVIDENCE, '{"id": "close"}', '{"id": "open"}', "definition project close v1"),
        ("definitions/close.yaml", "as written", "as told", "definition project close v1"),
    ],
)
def test_whoever_changes_the_manifest_too_has_to_change_the_history(name: str, old: str, new: str, found: str) -> None:
    assert wrong(change(name, old, new)) == [found]


def test_a_package_that_was_rewritten_as_a_whole_has_another_fingerprint() -> None:
    said = json.loads(FILES[package.MANIFEST])["fingerprint"]
    assert wrong(FILES, fingerprint=said) == []
    files = {name: content for name, content in FILES.items() if name != package.MANIFEST}
    assert wrong(package.seal({**files, "more.txt": b"x"}), fingerprint=said) == ["fingerprint of the package"]


def test_files_that_are_missing_or_too_many() -> None:
    assert wrong({name: content for name, content in FILES.items() if name != package.RECORD}) == [package.RECORD]
    assert wrong({**FILES, "more.txt": b""}) == ["more.txt"]


def test_inputs_and_outputs_where_they_are(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_bytes(b"changed since, as inputs do")
    (tmp_path / "out.csv").write_bytes(b"out")
    assert wrong(FILES, workspace=str(tmp_path)) == []
    (tmp_path / "out.csv").write_bytes(b"cut")
    assert wrong(FILES, workspace=str(tmp_path)) == ["output out.csv"]


def test_what_a_later_run_replaced_is_not_wrong(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_bytes(b"in")
    replaced = change(package.EVIDENCE, '"table": "totals"', '"table": "totals", "replaced_by": "r2"')
    assert wrong(replaced, workspace=str(tmp_path)) == []
    (tmp_path / "out.csv").write_bytes(b"of r2")
    assert wrong(replaced, workspace=str(tmp_path)) == ["output out.csv"]
    hashed = f'"sha256": "{package.sha256(b"out")}"'
    both = '"table": "totals", "replaced_by": "r2"'
    content = (
        FILES[package.EVIDENCE].decode().replace('"table": "totals"', both).replace(hashed, hashed + ', "named": true')
    )
    assert wrong(package.seal({**collect(), package.EVIDENCE: content.encode()}), workspace=str(tmp_path)) == []


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"path": "out.csv"', '"path": "s3://bucket/out.csv"', "output out.csv"),
        ('"path": "in.csv"', '"path": "s3://bucket/in.csv"', "input in.csv"),
        ('"table": "totals"', '"table": "totals", "version": 7', "output totals"),
    ],
)
def test_what_this_program_cannot_check_is_said(tmp_path: Path, old: str, new: str, said: str) -> None:
    (tmp_path / "in.csv").write_bytes(b"in")
    (tmp_path / "out.csv").write_bytes(b"out")
    lines = package.check(change(package.EVIDENCE, old, new), workspace=str(tmp_path))
    (detail,) = [detail for name, right, detail in lines if name == said and right]
    assert "`dobo audit verify`" in detail
    assert all(right for _, right, _ in lines)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "evidence.zip"
    path.write_bytes(PACKED)
    assert package.main([str(path)]) == 0
    assert capsys.readouterr().out.endswith("all as it was\n")
    with zipfile.ZipFile(path) as archive:
        archive.extractall(tmp_path / "unpacked")
    assert package.main([str(tmp_path / "unpacked")]) == 0
    path.write_bytes(PACKED[:-1])
    assert package.main([str(path)]) == 1
    assert package.main([str(tmp_path / "nowhere.zip")]) == 1


@pytest.mark.search
def test_any_altered_byte_is_found(record_property: Any) -> None:
    chance, count = random.Random(3), tries(sample=100, full=1_000)
    for _ in range(count):
        at = chance.randrange(len(PACKED))
        altered = PACKED[:at] + bytes([PACKED[at] ^ chance.randrange(1, 256)]) + PACKED[at + 1 :]
        try:
            assert wrong(package.unpack(altered)), at
        except ValueError:
            continue
    record_property("altered bytes", count)


def explained(**more: object) -> dict[str, object]:
    """A row of a summary, as `dobo why --json` has it."""
    contributors = [{"amounts": {"net": "1.10"}}, {"amounts": {"net": "-0.25"}}]
    summary = {"rows": 2, "totals": {"net": {"text": "SUM(net)", "value": "0.85"}}, "contributors": contributors}
    row = {"region": "EU", "net": "0.85"}
    return {
        "run_id": "r1",
        "table": "totals",
        "proved": True,
        "row": row,
        "loaded": None,
        "summary": summary,
        **more,
    }


def said_of(cell: dict[str, object]) -> tuple[bool, str]:
    files = package.seal({**collect(), "cells/001-totals.json": json.dumps(cell).encode()})
    return next((right, detail) for what, right, detail in package.check(files)[::-1] if what.startswith("cells/"))


def test_explained_rows_agree_with_the_rest_of_the_package() -> None:
    assert said_of(explained())[0]
    assert said_of(explained(loaded={"place": "lake:in.csv, row 3"}, summary=None))[0]
    refused = {"run_id": "r1", "table": "totals", "proved": False, "problems": [{"code": "NOT_PROVED"}]}
    assert said_of(refused) == (True, "not explained: NOT_PROVED")


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"run_id": "r2"}, "it is about another run"),
        ({"table": "nets"}, "it is about another run"),
        ({"row": {"regio": "EU"}}, "it has columns that the run did not write"),
        ({"loaded": {"place": "lake:other.csv, row 3"}}, "it was loaded from what the run did not read"),
    ],
)
def test_an_explained_row_that_cannot_be_of_the_run_is_found(change: dict[str, object], fault: str) -> None:
    assert said_of(explained(**change)) == (False, fault)


def test_totals_of_explained_rows_are_added_up_again() -> None:
    cell: Any = explained()
    cell["summary"]["contributors"][0]["amounts"]["net"] = "1.11"
    assert said_of(cell) == (False, "net is not the sum of its contributors")
    # With a part of the contributors, there is nothing to add up.
    cell["summary"]["rows"] = 3
    assert said_of(cell)[0]


def total_of(text: str, value: str | bool | None, *amounts: str | int | None, is_sum: bool | None = None) -> bool:
    """Whether a package with a total and the amounts of its rows is right."""
    stated = {} if is_sum is None else {"is_sum": is_sum}
    contributors = [{"amounts": {"net": each}} for each in amounts]
    totals = {"net": {"text": text, "value": value, **stated}}
    return said_of(explained(summary={"rows": len(amounts), "totals": totals, "contributors": contributors}))[0]


@pytest.mark.parametrize(
    ("text", "value", "amounts"),
    [
        ("COUNT(*)", "5", (1, 1)),
        ("-SUM(x)", "9", ("-1",)),
        ("SUM(x)", "9", ("1", None)),
        ("SUM(x)", None, ("1", None)),
        ("SUM(x)", "0", ("many",)),
    ],
)
def test_totals_that_are_stated_to_be_sums_are_added_up(text: str, value: str | None, amounts: tuple[Any, ...]) -> None:
    assert not total_of(text, value, *amounts, is_sum=True)
    assert total_of(text, value, *amounts, is_sum=False)


def test_amounts_are_added_with_all_their_digits() -> None:
    whole = "12345678901234567890123456789012"
    assert total_of("SUM(x)", f"{whole}.01", f"{whole}.00", "0.01", None, is_sum=True)
    assert not total_of("SUM(x)", f"{whole}.02", f"{whole}.00", "0.01", is_sum=True)
    assert total_of("SUM(x)", None, None, is_sum=True)


def test_packages_of_earlier_versions_do_not_state_which_totals_are_sums() -> None:
    assert total_of("SUM(x) / 2", "0.50", None)
    assert total_of("SUM(x) > 2", True, "3")
    assert total_of("SUM(x) / SUM(y)", None, "3")
    assert total_of("COUNT(*)", "5", 1, 1)
    assert not total_of("SUM(x)", "5", "1", "1")

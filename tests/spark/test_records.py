"""What can be proved of runs of the past: inputs that stay, what changed between two runs, and why."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from dobonomodo.problems import Rejected
from dobonomodo.storage import KeptInputs
from dobonomodo.workspace import package
from dobonomodo.workspace.cells import Cell
from tests.searching import tries
from tests.spark.test_runs import CLOCK, Ledger

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def ledger(tmp_path: Path, spark: SparkSession) -> Ledger:
    made = Ledger(tmp_path, spark)
    made.activate()
    return made


def replay(ledger: Ledger, run: Any) -> tuple[list[str], list[str]]:
    """The codes of what is wrong, and the inputs of which copies were read."""
    said: list[str] = []
    _, problems = ledger.open().verify(run.id, replay=True, spark=ledger.spark, report=said.append)
    return [problem.code for problem in problems], [line.partition(": ")[0] for line in said]


def test_a_run_is_computed_again_from_inputs_that_stayed(ledger: Ledger) -> None:
    run = ledger.run()
    pinned = [file["path"] for pins in run.snapshot["inputs"].values() for pin in pins for file in pin["files"]]
    hashes = [sha256 for pins in run.inputs.values() for files in pins for sha256 in files]
    assert len(hashes) == len(pinned) == 2
    assert replay(ledger, run) == ([], [])
    ledger.write_lines("2026-01", [(1, "A", "11.00")])
    (ledger.root / "lake/accounts.parquet").unlink()
    codes, copies = replay(ledger, run)
    assert codes == []
    assert sorted(copies) == ["lake:accounts.parquet", "lake:lines/2026-01.parquet"]
    for file in KeptInputs.of(ledger.root).files():
        file.path.unlink()
    with pytest.raises(Rejected) as refused:
        replay(ledger, run)
    assert refused.value.problems[0].code == "INPUT_CHANGED"


def test_copies_that_no_run_needs_are_removed(ledger: Ledger) -> None:
    first = ledger.run()
    ledger.write_lines("2026-01", [(1, "A", "11.00")])
    second = ledger.run()
    assert {len({sha for pins in run.inputs.values() for pin in pins for sha in pin}) for run in (first, second)} == {2}
    names = {file.path.name for file in KeptInputs.of(ledger.root).files()}
    assert len(names) == 3  # the accounts are the same
    cleaned = ledger.open().clean()
    assert [each.kind for each in cleaned.leftovers] == ["kept input"]
    assert len(list(KeptInputs.of(ledger.root).files())) == 2
    ledger.folder.change("dobo.yaml", "workspace: {name: test}", "workspace: {name: test, keep_inputs: no}")
    assert len(ledger.open().clean(dry_run=True).leftovers) == 2


def check_evidence(ledger: Ledger, run: Any) -> None:
    """What an auditor gets, and does with it."""
    workspace = ledger.open()
    workspace.sign(run.id, comment="agrees with the ledger")
    made = workspace.write_evidence(run.id, ledger.root / "evidence.zip", cells=[Cell({"id": 2}, "closed")])
    for wrong, code in (({"id": 77}, "ROW_NOT_FOUND"), ({"idd": 1}, "INVALID_KEY")):
        with pytest.raises(Rejected) as refused:
            workspace.write_evidence(run.id, ledger.root / "never.zip", cells=[Cell(wrong, "closed")])
        assert refused.value.problems[0].code == code
    assert not (ledger.root / "never.zip").exists()
    command = [sys.executable, str(made.path), "--workspace", str(ledger.root), "--fingerprint", made.fingerprint]
    checked = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (checked.returncode, checked.stderr) == (0, ""), checked.stdout
    files = package.unpack(made.path.read_bytes())
    cells = [json.loads(content) for name, content in sorted(files.items()) if name.startswith("cells/")]
    # A sample of three rows of each output, after the one that was asked for.
    assert [each["table"] for each in cells] == ["closed", *["closed"] * 3, *["all"] * 3]
    assert (cells[0]["row"]["id"], cells[0]["loaded"]["place"]) == (2, "lake:lines/2026-01.parquet, row 2")
    assert all(each["proved"] for each in cells)
    assert checked.stdout.count("computed again when the package was made, and the same") == 7
    said = json.loads(files["evidence.json"])
    assert [each["comment"] for each in said["sign_offs"]] == ["agrees with the ledger"]
    assert {file["sha256"] is None for each in (*said["inputs"], *said["outputs"]) for file in each["files"]} == {False}
    project = next(each for each in said["definitions"] if each["kind"] == "project")
    assert (project["version"], project["activated_by"] is None) == (2, False)
    assert "- {seq: 3, type: delete, selector: amount = 0}" in files[project["file"]].decode()
    closed = next(each for each in json.loads(files["plan.json"])["writes"] if each["seq"] == 4)
    assert "total" in json.dumps(closed)
    (ledger.root / said["outputs"][0]["files"][0]["path"]).rename(ledger.root / "away")
    assert subprocess.run(command, capture_output=True, check=False).returncode == 1
    (ledger.root / "away").rename(ledger.root / said["outputs"][0]["files"][0]["path"])


@pytest.mark.search
def test_an_audit_finds_what_was_changed_behind_the_back(ledger: Ledger, record_property: Any) -> None:
    ledger.folder.change("dobo.yaml", "columns: [id, title, total,", "columns: [id, title, {column: total, as: Sum},")
    ledger.activate()
    first = ledger.run()
    second = ledger.run(period="2026-02")
    found = ledger.open().audit()
    assert found.problems == (), found.problems
    # One file and one manifest for each of two outputs of two runs; both outputs of a run note the same entry.
    assert (found.outputs, found.files, found.heads, found.unproved) == (4, 8, 2, ())
    places = [output.location for run in (first, second) for output in run.outputs.values()]
    files = [ledger.root / place.data / name for place in places for name in place.files]
    files += [path.parents[1] / "manifest.json" for path in files]
    check_evidence(ledger, first)
    chance, count = random.Random(7), tries(sample=12, full=1_000)
    for _ in range(count):
        path = chance.choice(files)
        content = path.read_bytes()
        at = chance.randrange(len(content))
        path.write_bytes(content[:at] + bytes([content[at] ^ (1 << chance.randrange(8))]) + content[at + 1 :])
        assert ledger.open().audit().problems, (path, at)
        path.write_bytes(content)
    record_property("changed bytes", count)
    (files[0].parent / "more.parquet").write_bytes(files[0].read_bytes())
    assert [problem.code for problem in ledger.open().audit().problems] == ["OUTPUT_CHANGED"]
    (files[0].parent / "more.parquet").unlink()
    files[0].unlink()
    assert [problem.code for problem in ledger.open().audit().problems] == ["OUTPUT_CHANGED"]


def test_changed_outputs_are_found_by_all(ledger: Ledger) -> None:
    ledger.folder.change("dobo.yaml", "path: texts/all", 'file: "texts/all-{{period}}.csv"')
    ledger.activate()
    run, workspace = ledger.run(), ledger.open()
    made = workspace.write_evidence(run.id, ledger.root / "evidence.zip", sample=1)
    command = [sys.executable, str(made.path), "--workspace", str(ledger.root)]
    assert workspace.verify(run.id, spark=ledger.spark)[1] == ()
    assert subprocess.run(command, capture_output=True, check=False).returncode == 0
    path = ledger.root / "texts/all-2026-01.csv"
    content = path.read_bytes()
    path.write_bytes(content.replace(b"20.50", b"20.51"))
    _, problems = workspace.verify(run.id, spark=ledger.spark)
    assert [problem.code for problem in problems] == ["OUTPUT_CHANGED"]
    with pytest.raises(Rejected) as refused:
        workspace.why(run.id, "all", key={"id": 1})
    assert refused.value.problems == problems == workspace.audit().problems
    assert subprocess.run(command, capture_output=True, check=False).returncode == 1
    path.write_bytes(content)
    ledger.run(at=CLOCK + timedelta(hours=1))
    assert workspace.why(run.id, "all", key={"id": 1}).row["id"] == 1
    closed = run.outputs["closed"].location
    (data,) = [ledger.root / closed.data / name for name in closed.files]
    written = data.read_bytes()
    data.write_bytes(written[:-5])
    with pytest.raises(Rejected) as refused:
        workspace.why(run.id, "closed", key={"id": 1})
    assert [problem.code for problem in refused.value.problems] == ["OUTPUT_CHANGED"]
    assert str(data) in refused.value.problems[0].message()
    data.write_bytes(written)
    assert workspace.audit().problems == ()


def test_an_audit_finds_that_the_end_of_the_history_was_cut_off_with_all_that_it_knew(ledger: Ledger) -> None:
    ledger.run()
    store = ledger.root / ".dobo/store.db"
    before = store.read_bytes()
    ledger.run(at=CLOCK + timedelta(hours=1))
    assert ledger.open().audit().problems == ()
    for path in store.parent.glob("store.db*"):
        path.unlink()
    store.write_bytes(before)
    assert {problem.code for problem in ledger.open().audit().problems} == {"HISTORY_BROKEN"}


def differences(found: Any) -> dict[str, tuple[int, str, str]]:
    """The columns of numbers that differ: changed rows, totals before and after."""
    return {
        each.column: (each.changed, str(each.before), str(each.after))
        for each in found.columns
        if each.differs and each.before is not None
    }


def test_rows_of_two_runs_are_compared(ledger: Ledger) -> None:
    ledger.folder.change("dobo.yaml", "workspace: {name: test}", "workspace: {name: test, figures: columns}")
    first = ledger.run()
    assert not ledger.open().diff_runs("latest", first.id, spark=ledger.spark).differs
    # Line 1 is changed, line 2 removed, line 4 added; the summary of Bonds is gone with it.
    ledger.write_lines("2026-01", [(1, "A", "12.50"), (3, "A", "0.00"), (4, "A", "7.00")])
    second = ledger.run(at=CLOCK + timedelta(hours=1))
    workspace = ledger.open()
    closed, texts = workspace.diff_runs(first.id, "close@2026-01", spark=ledger.spark).tables
    assert closed.key == ("_operation_seq", "id", "_period", "title")
    assert (closed.rows_before, closed.rows_after, closed.added, closed.removed, closed.changed) == (4, 3, 1, 2, 2)
    assert differences(closed)["amount"] == (1, "30.50", "19.50")
    assert differences(closed)["total"] == (1, "30.50", "19.50")
    amounts = [(each.row, each.before, each.after) for each in closed.largest if each.column == "amount"]
    assert amounts == [("removed", "20.50", None), ("added", None, "7.00"), ("changed", "10.00", "12.50")]
    # The other output does not say which operation made a row.
    assert (texts.key, texts.changed, texts.unpaired is None) == ((), None, False)
    assert (texts.added, texts.removed) == (2, 3)
    (named,) = workspace.diff_runs(
        first.id, second.id, "closed", key=["id", "title", "total"], spark=ledger.spark
    ).tables
    assert (named.key, named.added, named.removed) == (("id", "title", "total"), 2, 3)
    check_recomputed(ledger, first, second)
    check_columns(ledger, first, second)


def check_columns(ledger: Ledger, first: Any, second: Any) -> None:
    """Records tell which columns changed, as reading the rows does."""
    ledger.write_lines("2026-01", [(1, "A", "12.50"), (3, "A", "0.00"), (4, "A", "7.01")])
    third = ledger.run(at=CLOCK + timedelta(hours=2))
    workspace = ledger.open()
    (read,) = workspace.diff_runs(second.id, third.id, "closed", spark=ledger.spark).tables
    (known,) = workspace.diff_columns(second.id, third.id, "closed").tables
    assert (known.same_rows, known.changed) == (True, ("amount", "seen", "total"))
    assert known.changed == tuple(each.column for each in read.columns if each.changed)
    assert known.unchanged == tuple(each.column for each in read.columns if not each.changed)
    (moved,) = workspace.diff_columns(first.id, third.id, "closed").tables
    assert (moved.unknown, moved.same_rows, moved.differs) == (None, False, True)
    # The key of this output is not written, so that nothing is known of its columns unless all of them are the same.
    (texts,) = workspace.diff_columns(second.id, third.id, "all").tables
    assert (texts.unknown is None, texts.differs) == (False, None)
    (same,) = workspace.diff_columns(third.id, third.id, "all").tables
    assert (same.differs, same.rows_after) == (False, third.outputs["all"].rows)


def check_recomputed(ledger: Ledger, first: Any, second: Any) -> None:
    """Rows that are not published any more are computed again, or it is told why not."""
    expected = ledger.open().diff_runs(first.id, second.id, "closed", spark=ledger.spark)
    shutil.rmtree(ledger.root / first.outputs["closed"].location.data)
    found = ledger.open().diff_runs(first.id, second.id, "closed", spark=ledger.spark)
    assert found.tables == expected.tables
    assert (len(expected.notes), len(found.notes)) == (0, 1)
    assert not (ledger.root / ".dobo/runs" / first.id / "verify").exists() or not any(
        path.name.startswith("rows-") for path in (ledger.root / ".dobo/runs" / first.id / "verify").iterdir()
    )
    for file in KeptInputs.of(ledger.root).files():
        file.path.unlink()
    with pytest.raises(Rejected) as refused:
        ledger.open().diff_runs(first.id, second.id, "closed", spark=ledger.spark)
    assert refused.value.problems[0].code == "ROWS_GONE"
    for wanted, code in ((("nothing", []), "OUTPUT_NOT_FOUND"), (("closed", ["idd"]), "INVALID_KEY")):
        with pytest.raises(Rejected) as refused:
            ledger.open().diff_runs(second.id, second.id, wanted[0], key=wanted[1], spark=ledger.spark)
        assert refused.value.problems[0].code == code


def test_what_a_draft_would_change(ledger: Ledger) -> None:
    ledger.run()
    ledger.folder.change("dobo.yaml", "selector: amount = 0", "selector: amount < 15")
    found = ledger.open().diff_draft("close@2026-01", "closed", spark=ledger.spark)
    (closed,) = found.tables
    assert (closed.added, closed.removed, closed.changed) == (0, 1, 0)
    assert len(ledger.rows()) == 4, "the draft writes elsewhere"


def test_operations_that_do_not_reach_what_changed_are_no_causes(ledger: Ledger) -> None:
    """Of four operations that are changed, two reach the total; each of those has a part of its own."""
    more = [
        "    - {seq: 11, type: update, arguments: {assignments: [{column: note, expression: LEN(title)}]}}\n",
        "    - {seq: 12, type: update, arguments: {assignments: [{column: twice, expression: note * 2}]}}\n",
        "    - {seq: 13, type: update, arguments: {assignments: [{column: net, expression: amount}]}}\n",
        "    - {seq: 14, type: update, selector: net > 10, arguments: {assignments: [{column: tax, expression: 'net * 0.5'}]}}\n",
    ]
    output = "    - {seq: 20, type: output, arguments: {destination: {datasource_id: out, table: taxed}, columns: [id, note, tax]}}\n"
    ledger.folder.put("dobo.yaml", (ledger.root / "dobo.yaml").read_text() + "".join(more) + output)
    ledger.activate()
    ledger.run()
    for old, new in (
        ("expression: LEN(title)", "expression: LEN(title) + 0"),
        ("note * 2", "note * 3"),
        ("column: net, expression: amount", "column: net, expression: amount + 1"),
        ("net * 0.5", "net * 0.6"),
    ):
        ledger.folder.change("dobo.yaml", old, new)
    ledger.activate()
    second = ledger.run()
    found = ledger.open().diff_runs("previous", second.id, "taxed", attribute=True, spark=ledger.spark).attribution
    assert (found.causes, found.computed) == (("operation 13 update-13", "operation 14 update-14"), 4)
    assert found.notes == (
        "operation 11 update-11 differs, and reaches no number that changed",
        "operation 12 update-12 differs, and reaches no number that changed",
    )
    lines = {line.column: line for line in found.lines}
    assert {line.residual for line in found.lines} == {0}
    assert all(lines["tax"].parts)
    assert lines["tax"].difference > 0
    assert not any((*lines["note"].parts, *lines[None].parts))


def test_a_difference_is_divided_among_its_causes(ledger: Ledger) -> None:
    ledger.folder.change("dobo.yaml", "columns: [id, title, total,", "columns: [id, title, {column: total, as: Sum},")
    ledger.activate()
    ledger.run()
    ledger.write_lines("2026-01", [(1, "A", "12.50"), (2, "B", "20.50"), (3, "A", "0.00"), (4, "A", "7.00")])
    ledger.folder.change("dobo.yaml", "selector: amount = 0", "selector: amount < 10")
    ledger.activate()
    second = ledger.run()
    workspace = ledger.open()
    found = workspace.diff_runs("previous", second.id, attribute=True, spark=ledger.spark).attribution
    assert (found.causes, found.computed) == (("rows of input lines", "operation 3 delete-3"), 4)
    assert (found.unknown, [line.column for line in found.lines if line.table == "all"]) == ((), [None, "id", "Sum"])
    lines = {line.column: line for line in found.lines if line.table == "closed"}
    assert {line.residual for line in found.lines} == {0}
    # The new selector deletes the new line: half of that is due to either, by the average over both orders.
    assert (lines[None].before, lines[None].after, lines[None].parts) == (4, 4, (Decimal(1), Decimal(-1)))
    assert [str(part) for part in lines["amount"].parts] == ["6.00", "-3.50"]
    assert [str(part) for part in lines["total"].parts] == ["9.50", "0.00"]
    assert not list((ledger.root / ".dobo/runs").glob("compare-*"))
    # The output has lines beside their totals: a sum over both says nothing.
    kinds = {(line.kind, line.column): line for line in found.by_kind if line.table == "closed"}
    assert [str(part) for part in kinds["loaded rows", "amount"].parts] == ["6.00", "-3.50"]
    assert {line.residual for line in found.by_kind} == {0}
    for column, line in lines.items():
        assert line.difference == sum(each.difference for name, each in kinds.items() if name[1] == column)
    # Without the rows of before, they cannot be told apart from the program; everything else can.
    lines_before = workspace.find_run("previous").inputs["input/lines/v1/lines/0/"][0][0]
    for file in KeptInputs.of(ledger.root).files():
        if file.sha256 == lines_before:
            file.path.unlink()
    lost = ledger.open().diff_runs("previous", second.id, "closed", attribute=True, spark=ledger.spark).attribution
    assert lost.causes == ("operation 3 delete-3", "rows of input lines + version of the program")
    assert len(lost.notes) == 1
    assert {line.residual for line in lost.lines} == {0}

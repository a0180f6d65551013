"""`dobo runs`, how runs are named, and which of them a command says can be resumed. No Spark: the runs are only records."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from dobonomodo.cli.main import run as run_command
from dobonomodo.runs.resume import require_resumable
from dobonomodo.store import Run
from dobonomodo.workspace import Workspace
from tests.unit.cli.conftest import Dobo
from tests.world import Folder, copy_workspace

PROJECT, PERIOD = "monthly-sales", "2026-01"
OUTPUT = {
    "seq": 90,
    "table": "out",
    "destination": "lake:out",
    "rows": 3,
    "digest": "3-0",
    "dataset_id": None,
    "dataset_version": None,
    "location": {"kind": "parquet", "folder": "out", "data": "out/x", "files": []},
}

Record = Callable[..., Run]


@pytest.fixture(scope="module")
def first_run(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A store with one run, which really found no inputs."""
    folder = Folder(copy_workspace("sales", tmp_path_factory.mktemp("first") / "sales")).with_store()
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(folder.root)
        assert run_command(["run", PROJECT, "-p", PERIOD]) == 1
    return folder.store_file.read_bytes()


@pytest.fixture
def record(stored: Path, first_run: bytes) -> Record:
    """Puts runs into the store, each later than the one before; the first is one that really found no inputs."""
    Folder(stored).store_file.write_bytes(first_run)
    workspace = Workspace.open(stored)
    (first,) = workspace.store.list_runs()
    assert first.snapshot["inputs"] is None
    number = 0

    def put(**changes: Any) -> Run:
        nonlocal number
        number += 1
        inputs, progress = changes.pop("inputs", {}), changes.pop("progress", {})
        at = first.created_at + timedelta(seconds=number)
        run = replace(
            first,
            **{
                "id": f"2026020{number}-080000-{number:06x}",
                "created_at": at,
                "updated_at": at,
                "fence": (first.fence or 0) + number,
                "snapshot": {**first.snapshot, "inputs": inputs},
                "progress": {**first.progress, **progress},
                **changes,
            },
        )
        workspace.store.put_run(run)
        return run

    return put


def test_runs_are_listed(dobo: Dobo, record: Record) -> None:
    first, second = record(), record(project="other", period="2026-02")
    names = dobo("ls", "runs", "-o", "name")
    assert (names.code, names.out.splitlines()[:2]) == (0, [second.id, first.id])
    document = dobo("ls", "runs", "-o", "json").document
    assert (document["schema"], [row["id"] for row in document["data"]]) == ("dobo/ls/1", names.out.split())
    table = dobo("ls", "runs").out.splitlines()
    assert table[0].split()[0] == "RUN"
    assert table == dobo("runs", "list").out.splitlines()


def test_there_are_no_runs(dobo: Dobo, stored: Path) -> None:
    assert dobo("ls", "runs").code == 5


def test_periods_are_listed(dobo: Dobo, stored: Path) -> None:
    assert dobo("period", "close", "2026-01").code == 0
    names = dobo("ls", "periods", "-o", "name").out.split()
    assert {"2026-01", "2026-12"} <= set(names)
    rows = {row["id"]: row for row in dobo("ls", "periods", "--json").document["data"]}
    assert list(rows) == names
    assert (rows["2026-01"]["status"], rows["2026-02"]["status"]) == ("closed", "open")
    head, *lines = dobo("ls", "periods").out.splitlines()
    assert head.split()[0] == "ID"
    assert len(lines) == len(names)


def test_runs_have_names(dobo: Dobo, record: Record) -> None:
    first, second, third = record(), record(period="2026-02"), record(project="other", period="2026-02")
    for name, run in (
        ("latest", third),
        ("previous", second),
        (f"latest:{PROJECT}", second),
        ("latest:other", third),
        (f"{PROJECT}@{PERIOD}", first),
        (f"{PROJECT}@2026-02", second),
        (second.id[-6:], second),
        (second.id[:10], second),
    ):
        result = dobo("runs", "show", name, "--json")
        assert result.document["data"]["run_id"] == run.id, name
    assert dobo("show", "previous", "--json").document["data"]["run_id"] == second.id


def test_previous_is_comparable_in_a_comparison(dobo: Dobo, record: Record) -> None:
    """After a year, January is run again: what changed is asked of January, whatever ran in between."""
    done: dict[str, Any] = {"status": "completed", "progress": {"outputs": [OUTPUT]}}
    january, february = record(**done), record(period="2026-02", **done)

    def compared(*names: str) -> tuple[str, str]:
        data = dobo("diff", *names, "--columns", "--json").document["data"]
        return data["before"], data["after"]

    assert compared("previous", "latest") == (january.id, february.id)
    again = record(**done)
    record(status="failed", progress={})
    last = record(**done)
    assert compared("previous", "latest") == (again.id, last.id)
    assert compared("latest", "previous") == (last.id, again.id)
    assert compared("previous", again.id) == (january.id, again.id)
    assert compared("previous", f"{PROJECT}@{PERIOD}") == (again.id, last.id)
    assert dobo("runs", "show", "previous", "--json").document["data"]["status"] == "failed"


def test_what_cannot_be_compared_is_said_before_spark_starts(
    dobo: Dobo, record: Record, monkeypatch: pytest.MonkeyPatch
) -> None:
    def start(*_: object, **__: object) -> None:
        raise AssertionError("Spark was started")

    monkeypatch.setattr("dobonomodo.workspace.session.SparkChoice.engine", start)
    nothing, something = record(status="failed"), record(status="completed", progress={"outputs": [OUTPUT]})
    assert dobo("diff", nothing.id, something.id, "--json").codes == ["NOT_COMPARABLE"]
    assert dobo("diff", something.id, something.id, "other", "--json").codes == ["OUTPUT_NOT_FOUND"]


def test_names_of_no_run(dobo: Dobo, record: Record) -> None:
    record()
    for name in ("latest:nobody", f"{PROJECT}@2026-12", "other@", "@", "nothing"):
        result = dobo("runs", "show", name, "--json")
        assert (result.code, result.codes) == (1, ["RUN_NOT_FOUND"]), name
    for command in (("resume",), ("cancel",), ("verify",), ("runs", "report")):
        result = dobo(*command, "latest:nobody", "--json")
        assert (result.code, result.codes) == (1, ["RUN_NOT_FOUND"]), command


def test_there_is_no_latest_run(dobo: Dobo, stored: Path) -> None:
    for name in ("latest", "previous", f"latest:{PROJECT}"):
        assert dobo("runs", "show", name, "--json").codes == ["RUN_NOT_FOUND"]


def test_every_command_takes_a_name(dobo: Dobo, record: Record) -> None:
    run = record()
    assert dobo("cancel", "latest", "--json").document["data"]["run_id"] == run.id
    assert dobo("resume", "latest", "--json").codes == ["INVALID_TRANSITION"]
    assert dobo("runs", "report", "latest", "--json").document["data"]["run_id"] == run.id


# --- resuming


def says_resume(dobo: Dobo, run: Run, root: Path) -> bool:
    shown = f"dobo resume {run.id}" in dobo("runs", "show", run.id).err
    report = root / "report.html"
    assert dobo("runs", "report", run.id, "--to", str(report)).code == 0
    assert (f"dobo resume {run.id}" in report.read_text(encoding="utf-8")) == shown
    return shown


def test_a_run_that_can_be_resumed_says_so(dobo: Dobo, record: Record, stored: Path) -> None:
    run = record()
    require_resumable(run)
    assert says_resume(dobo, run, stored)
    record(progress={"outputs": []})
    record(period="2026-02", progress={"outputs": [OUTPUT]})
    assert says_resume(dobo, run, stored)


def test_a_run_that_found_no_inputs_does_not_suggest_to_resume_it(dobo: Dobo, record: Record, stored: Path) -> None:
    run = record(inputs=None)
    assert not says_resume(dobo, run, stored)
    assert f"dobo run {PROJECT} --period {PERIOD} --draft" in dobo("runs", "show", run.id).err
    assert dobo("resume", run.id, "--json").codes == ["RESUME_REFUSED"]


def test_a_run_fails_for_lack_of_inputs_and_does_not_suggest_to_resume_it(dobo: Dobo, stored: Path) -> None:
    result = dobo("run", PROJECT, "-p", PERIOD)
    assert result.code == 1
    assert "DATA_LOAD" in result.err
    assert "dobo resume" not in result.err


def test_a_run_that_was_superseded_does_not_suggest_to_resume_it(dobo: Dobo, record: Record, stored: Path) -> None:
    run = record()
    record(status="completed", progress={"outputs": [OUTPUT]})
    assert not says_resume(dobo, run, stored)
    assert dobo("resume", run.id, "--json").codes == ["RESUME_REFUSED"]


@pytest.mark.parametrize("status", ["completed", "cancelled"])
def test_a_run_that_is_over_does_not_suggest_to_resume_it(
    dobo: Dobo, record: Record, stored: Path, status: str
) -> None:
    run = record(status=status)
    assert not says_resume(dobo, run, stored)
    assert dobo("resume", run.id, "--json").codes == ["INVALID_TRANSITION"]


def test_a_run_whose_inputs_changed_does_not_suggest_to_resume_it(dobo: Dobo, record: Record, stored: Path) -> None:
    gone = {"path": str(stored / "gone.parquet"), "size": 1, "modified": 1}
    run = record(inputs={"input": [{"kind": "parquet", "name": "x", "files": [gone]}]})
    assert not says_resume(dobo, run, stored)
    assert dobo("resume", run.id, "--json").codes == ["INPUT_CHANGED"]


# --- reports


def test_all_reports_have_an_index(dobo: Dobo, record: Record, stored: Path) -> None:
    first, second = record(status="completed"), record(status="completed")
    result = dobo("runs", "report", "--all", "--json")
    index = Path(result.document["data"]["report"])
    assert (result.code, index.name) == (0, "index.html")
    assert index.parent == stored / ".dobo" / "reports"
    page = index.read_text(encoding="utf-8")
    for run in (first, second):
        assert f'href="{run.id}.html"' in page
    assert f'href="{second.id}.html"' in (index.parent / f"{first.id}.html").read_text(encoding="utf-8")
    assert f'href="{first.id}.html"' in (index.parent / f"{second.id}.html").read_text(encoding="utf-8")


def test_a_new_report_is_linked_by_the_one_before(dobo: Dobo, record: Record, stored: Path) -> None:
    first = record(status="completed")
    before = Path(dobo("runs", "report", first.id).out.strip())
    second = record(status="completed")
    assert second.id not in before.read_text(encoding="utf-8")
    assert dobo("runs", "report", second.id).code == 0
    assert f'href="{second.id}.html"' in before.read_text(encoding="utf-8")


def test_a_report_elsewhere_links_to_nothing_that_is_not_there(dobo: Dobo, record: Record, stored: Path) -> None:
    record(status="completed")
    second = record(status="completed")
    assert dobo("runs", "report", second.id, "--to", "elsewhere/one.html").code == 0
    page = (stored / "elsewhere" / "one.html").read_text(encoding="utf-8")
    assert "href" not in page
    assert sorted(path.name for path in (stored / "elsewhere").iterdir()) == ["one.html"]


@pytest.mark.parametrize("arguments", [(), ("latest", "--all")])
def test_a_report_is_of_one_run_or_of_all(dobo: Dobo, record: Record, arguments: tuple[str, ...]) -> None:
    assert dobo("runs", "report", *arguments).code == 2


def test_reports_go_where_they_can_be_written(dobo: Dobo, record: Record, stored: Path) -> None:
    record()
    (stored / "file").write_text("")
    for arguments in (("latest", "--to", "file/one.html"), ("--all", "--to", "file")):
        result = dobo("runs", "report", *arguments, "--json")
        assert (result.code, result.codes) == (6, ["UNWRITABLE_FOLDER"]), arguments


def test_there_is_no_latest_run_yet(dobo: Dobo, sales: Path) -> None:
    for arguments in (("show", "latest"), ("show", "latest", "--rows", "3"), ("runs", "show", "latest")):
        result = dobo(*arguments, "--json")
        (problem,) = result.document["problems"]
        assert (problem["code"], "`dobo run`" in problem["hint"]) == ("RUN_NOT_FOUND", True)

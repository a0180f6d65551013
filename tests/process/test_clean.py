"""What killed runs leave before Spark starts, what `dobo clean` finds of it, and what it leaves alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dobonomodo.cli.init import Template, make_workspace
from dobonomodo.workspace import Workspace

RUN = ("run", "totals", "--period", "2026-01")


@pytest.fixture
def minimal(tmp_path: Path) -> Path:
    make_workspace(tmp_path, Template.MINIMAL)
    return tmp_path


def start(root: Path, *arguments: str, failpoint: str | None = None) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "dobonomodo.cli", "-C", str(root), *arguments],
        env={**os.environ, **({"DOBO_FAILPOINT": failpoint} if failpoint else {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def kill_at(root: Path, failpoint: str) -> Path:
    """A run that a failpoint kills, before it starts Spark; gives its folder."""
    before = set(folders(root))
    with start(root, *RUN, failpoint=failpoint) as process:
        _, err = process.communicate(timeout=1800)
    assert process.returncode == -9, err
    (folder,) = set(folders(root)) - before
    return folder


@contextmanager
def waiting_at(root: Path, failpoint: str) -> Iterator[Path]:
    """A run that is alive and waits at a failpoint; it is killed in the end."""
    before = set(folders(root))
    gate = root / f"gate-{failpoint}"
    with start(root, *RUN, failpoint=f"{failpoint}@{gate}") as process:
        try:
            while not gate.with_name(f"{gate.name}.waiting").exists():
                assert process.poll() is None, process.communicate()
                time.sleep(0.05)
            (folder,) = set(folders(root)) - before
            yield folder
        finally:
            process.kill()
            process.communicate()


def folders(root: Path) -> list[Path]:
    runs = root / ".dobo" / "runs"
    return sorted(runs.iterdir()) if runs.is_dir() else []


def clean(root: Path, *flags: str) -> list[dict[str, Any]]:
    """What `dobo clean` lists."""
    with start(root, "clean", "--json", *flags) as process:
        out, err = process.communicate(timeout=1800)
    assert process.returncode == 0, err
    document = json.loads(out)
    assert document["data"]["bytes"] == sum(each["bytes"] for each in document["data"]["leftovers"])
    found: list[dict[str, Any]] = document["data"]["leftovers"]
    return found


def test_a_run_that_was_never_recorded(minimal: Path) -> None:
    folder = kill_at(minimal, "input.extracted")
    assert Workspace.open(minimal).runs() == ()
    (listed,) = clean(minimal, "--dry-run")
    assert (listed["kind"], listed["place"], listed["run_id"]) == ("run folder", str(folder), folder.name)
    assert listed["bytes"] >= sum(path.stat().st_size for path in folder.rglob("*.parquet")) > 0
    assert folder.exists()
    assert clean(minimal) == [listed]
    assert not folder.exists()
    assert clean(minimal) == []


def test_what_is_left_of_an_extraction(minimal: Path) -> None:
    folder = kill_at(minimal, "input.extracted")
    (unfinished,) = folder.glob("inputs/*.parquet")
    unfinished.rename(unfinished.with_name(f"{unfinished.name}.part"))
    assert [each["kind"] for each in clean(minimal)] == ["run folder"]
    assert folders(minimal) == []


@pytest.mark.parametrize("failpoint", ["input.extracted", "run.recorded", "input.pinned"])
def test_a_run_that_is_alive_keeps_all(minimal: Path, failpoint: str) -> None:
    abandoned = kill_at(minimal, "input.extracted")
    with waiting_at(minimal, failpoint) as folder:
        before = sorted(folder.rglob("*"))
        listed = clean(minimal)
        assert folder.name not in {each["run_id"] for each in listed}
        assert sorted(folder.rglob("*")) == before
        # As long as a run is about to be recorded, nobody knows which folder is its own.
        assert abandoned.exists() is (failpoint == "input.extracted")


def test_a_run_that_can_be_resumed_keeps_its_inputs_and_what_it_staged(minimal: Path) -> None:
    folder = kill_at(minimal, "input.pinned")
    staged = folder / "outputs" / "1" / "10"
    staged.mkdir(parents=True)
    assert clean(minimal) == []
    assert list(folder.glob("inputs/*.parquet"))
    assert staged.exists()
    with start(minimal, "cancel", folder.name) as process:
        process.communicate(timeout=1800)
    assert [each["kind"] for each in clean(minimal)] == ["run folder"]
    assert folders(minimal) == []


def test_a_killed_run_that_a_completed_one_followed(minimal: Path) -> None:
    folder = kill_at(minimal, "input.pinned")
    store = Workspace.open(minimal).store
    run = store.get_run(folder.name)
    assert run is not None
    assert run.fence is not None
    store.put_run(replace(run, id="later", status="completed", fence=run.fence + 1))
    assert [each["place"] for each in clean(minimal)] == [str(folder)]
    assert folders(minimal) == []


def test_the_folder_of_a_run_that_another_store_knows(minimal: Path) -> None:
    folder = kill_at(minimal, "input.extracted")
    (folder / "store").write_text("another store")
    assert clean(minimal) == []
    assert folder.exists()


def test_rows_that_were_read_back_go_after_a_day(minimal: Path) -> None:
    folder = kill_at(minimal, "input.pinned")
    back = folder / "verify" / "10"
    back.mkdir(parents=True)
    assert clean(minimal) == []
    long_ago = time.time() - 25 * 3600
    for path in (back, back.parent):
        os.utime(path, (long_ago, long_ago))
    assert [each["kind"] for each in clean(minimal)] == ["verify of a run"]


def test_a_store_that_was_never_finished_goes_after_a_day(minimal: Path) -> None:
    fresh, old = (minimal / ".dobo" / f"store.db.{name}.part" for name in ("00000001", "00000002"))
    fresh.parent.mkdir()
    fresh.write_bytes(b"x")
    old.write_bytes(b"x" * 10)
    long_ago = time.time() - 25 * 3600
    os.utime(old, (long_ago, long_ago))
    (listed,) = clean(minimal)
    assert (listed["kind"], listed["place"], listed["bytes"]) == ("unfinished store", str(old), 10)
    assert (fresh.exists(), old.exists()) == (True, False)
    assert not (minimal / ".dobo" / "store.db").exists()

"""A run that is told to end while another process holds the store: its record is written as soon as the store is free."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from dobonomodo.cli.init import Template, make_workspace
from dobonomodo.workspace import Workspace

ATTEMPTS = 3
"""How often the run must have failed to write its record before the store is free."""


@pytest.fixture
def minimal(tmp_path: Path) -> Path:
    make_workspace(tmp_path, Template.MINIMAL)
    return tmp_path


def start(root: Path, failpoint: str) -> subprocess.Popen[str]:
    """A run that waits at a failpoint, before it starts Spark, and that is soon tired of waiting for the store."""
    environment = {"DOBO_FAILPOINT": f"{failpoint}@{root / 'gate'}", "DOBO_STORE_WAIT_SECONDS": "0.2"}
    return subprocess.Popen(
        [sys.executable, "-m", "dobonomodo.cli", "-C", str(root), "run", "totals", "--period", "2026-01"],
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # Tests that run in the background ignore Ctrl-C, and so would their children.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def wait_for(path: Path, process: subprocess.Popen[str]) -> None:
    for _ in range(36000):
        if path.exists():
            return
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)
    raise AssertionError(f"{path} did not appear")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
@pytest.mark.parametrize("failpoint", ["input.extracted", "input.pinned"])
def test_the_end_is_recorded_once_the_store_is_free(minimal: Path, failpoint: str, number: int, code: int) -> None:
    with start(minimal, failpoint) as process:
        wait_for(minimal / "gate.waiting", process)
        assert process.stderr is not None
        with closing(sqlite3.connect(minimal / ".dobo" / "store.db", isolation_level=None, timeout=1800)) as other:
            other.execute("BEGIN EXCLUSIVE")
            process.send_signal(number)
            waits = 0
            while waits < ATTEMPTS and (line := process.stderr.readline()):
                waits += "waiting for the store" in line
            assert waits == ATTEMPTS
            other.execute("ROLLBACK")
        process.communicate(timeout=1800)
    assert process.returncode == code
    (run,) = Workspace.open(minimal).runs()
    assert (run.status, [problem.code for problem in run.problems]) == ("failed", ["RUN_INTERRUPTED"])


def test_a_store_that_stays_busy_does_not_hide_the_signal(minimal: Path) -> None:
    with start(minimal, "input.pinned") as process:
        wait_for(minimal / "gate.waiting", process)
        assert process.stderr is not None
        with closing(sqlite3.connect(minimal / ".dobo" / "store.db", isolation_level=None, timeout=1800)) as other:
            other.execute("BEGIN EXCLUSIVE")
            process.send_signal(signal.SIGTERM)
            while (line := process.stderr.readline()) and "waiting for the store" not in line:
                pass
            # Whoever asks again does not want to wait.
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=1800)
            assert process.returncode == 143
        (run,) = Workspace.open(minimal).runs()
        assert run.status == "running"

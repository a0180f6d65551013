"""Archives of classes: one that does not fit, cannot be read or cannot be made costs nothing but time."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dobonomodo.engine.archive import SWITCH, archive_options, make_archive_later
from dobonomodo.engine.archive import _path as path_of
from dobonomodo.engine.java import require_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

START = (
    "from dobonomodo.engine import InputSize, open_session; print(open_session(size=InputSize(0, 0)).range(3).count())"
)


def start(**environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", START], env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )


def test_an_archive_that_is_none(tmp_path: Path) -> None:
    path = path_of(require_java(), {"XDG_CACHE_HOME": str(tmp_path)})
    assert path is not None
    path.parent.mkdir()
    path.write_bytes(b"not an archive" * 1000)
    done = start(XDG_CACHE_HOME=str(tmp_path), **{SWITCH: "on"})
    assert (done.returncode, done.stdout, done.stderr) == (0, "3\n", "")


def test_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SWITCH, "off")
    assert archive_options(require_java()) == []


def test_a_home_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    occupied = tmp_path / "file"
    occupied.touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(occupied))
    monkeypatch.setenv(SWITCH, "on")
    make_archive_later()
    assert archive_options(require_java()) == []


def test_one_that_is_not_there_is_not_made_when_it_is_only_to_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spark: SparkSession
) -> None:
    assert spark.version
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(subprocess, "Popen", lambda *_, **__: pytest.fail("a process was started"))
    monkeypatch.setenv(SWITCH, "read")
    make_archive_later()
    assert list(tmp_path.iterdir()) == []

"""Files that people open, compared with the records of runs."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from dobonomodo.storage import Inspected, Storages, load_stored
from dobonomodo.workspace.verifying import find_damage
from tests.unit.runs.reporting import make_run

STORED = load_stored({"kind": "csv", "folder": "out", "data": "out/1/data", "files": [], "named": "out.csv"})


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: Storages, stored: object) -> Inspected:
        del stored
        raise OSError(errno.EIO, "the store does not answer")

    monkeypatch.setattr(Storages, "inspect_named", refuse)
    found = find_damage(make_run(1), STORED, Storages(tmp_path, {}), list)
    assert found == "`out.csv` cannot be read (the store does not answer)"

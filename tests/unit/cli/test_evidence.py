"""`dobo evidence` of what there is not; `tests/spark/test_records.py` has whole packages."""

from __future__ import annotations

from pathlib import Path

from tests.unit.cli.conftest import Dobo


def test_a_run_that_there_is_not(dobo: Dobo, stored: Path) -> None:
    assert dobo("evidence", "latest", "-o", "evidence.zip", "--json").codes == ["RUN_NOT_FOUND"]
    assert not (stored / "evidence.zip").exists()


def test_a_file_must_be_named(dobo: Dobo, stored: Path) -> None:
    assert dobo("evidence", "latest").code == 2

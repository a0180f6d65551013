"""Every scenario of this folder on classic Spark, and some or all of them over Spark Connect."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dobonomodo.model import Definitions
from dobonomodo.scenarios import find_scenarios, run_suite

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from dobonomodo.scenarios.suite import Found

FOLDER = Path(__file__).parent
FOUND, PROBLEMS = find_scenarios([FOLDER], root=FOLDER)
FIRST_OF_EACH_FILE = list({found.file: found for found in reversed(FOUND)}.values())
OVER_CONNECT = FOUND if os.environ.get("DOBO_TEST_ALL") else FIRST_OF_EACH_FILE


def test_every_file_is_sound() -> None:
    assert PROBLEMS == []
    assert len(FOUND) > 100


def test_names_are_unique() -> None:
    names = [found.name for found in FOUND]
    assert sorted(set(names)) == sorted(names)


@pytest.mark.parametrize("found", FOUND, ids=lambda found: f"{found.file}: {found.name}")
def test_scenario(found: Found, spark: SparkSession) -> None:
    (result,) = run_suite([found], lambda: spark, definitions=Definitions())
    assert result.differences == ()


def test_over_connect(connect_url: str) -> None:
    """In a process of its own: PySpark cannot be a classic and a Connect client in one."""
    names = [found.name for found in OVER_CONNECT]
    command = [sys.executable, str(FOLDER / "over_connect.py"), connect_url]
    done = subprocess.run(command, input=json.dumps(names), capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    results = json.loads(done.stdout.splitlines()[-1])
    assert {name: lines for name, lines in results.items() if lines} == {}
    assert sorted(results) == sorted(names)

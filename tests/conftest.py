"""Options, profiles and the Spark session that the tests share."""

from __future__ import annotations

import gc
import os
import shutil
import subprocess
import sys
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import hypothesis
import pytest

from dobonomodo.engine.archive import SWITCH
from tests.native.connectors import connector_settings, why_not_here
from tests.native.hdfs_server import hdfs_server
from tests.object_server import object_server

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["hdfs_server", "object_server"]

# Commands that tests start must not go on working behind their backs: they use an archive of classes, and make none.
os.environ.setdefault(SWITCH, "read")
CACHE = Path(__file__).parents[1] / "build" / "cache"

# Files and folders of tests that wait for a lost Spark, or start Spark several times; the longest first.
LONG = ("test_lost_spark.py", "templates", "faults", "test_determinism.py")

# Where a disk in memory may be, and the free space that it must have.
MEMORY_DISK, FREE_BYTES = Path("/dev/shm"), 4 * 2**30

# `ci` finds the same on every machine and in every run; `--hypothesis-profile=long` searches on.
hypothesis.settings.register_profile("ci", derandomize=True, deadline=None)
hypothesis.settings.register_profile("long", max_examples=5_000, deadline=None)
hypothesis.settings.load_profile("ci")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="rewrite golden files instead of comparing with them")


def pytest_configure(config: pytest.Config) -> None:
    """Folders of tests are in memory where there is room: thousands of small stores and files take less processor time there.

    Spark writes too much for that. It starts in half the time with an archive of classes, which is made here once.
    """
    if "not spark" in config.option.markexpr:
        if _has_memory_disk():
            os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY_DISK))
    elif not hasattr(config, "workerinput"):
        os.environ["XDG_CACHE_HOME"] = str(CACHE)
        if getattr(config.option, "numprocesses", None):
            make = "from dobonomodo.engine import make_archive; make_archive()"
            subprocess.run(
                [sys.executable, "-c", make], env={**os.environ, SWITCH: "on"}, capture_output=True, check=False
            )


def _has_memory_disk() -> bool:
    return os.access(MEMORY_DISK, os.W_OK) and shutil.disk_usage(MEMORY_DISK).free >= FREE_BYTES


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    # Processes that share the tests must give them the same names; bytes may hold the time at which they were made.
    return argname if isinstance(val, bytes) else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    # What takes long comes first: otherwise all processes wait for the one that has it last.
    items.sort(key=lambda item: next((at for at, name in enumerate(LONG) if name in item.path.parts), len(LONG)))
    lacking = why_not_here()
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker("spark")
        if lacking is not None and item.get_closest_marker("native") is not None:
            item.add_marker(pytest.mark.skip(reason=lacking))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Tests and modules stay to the end: the garbage collector need not look at them, now or later."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(100_000, 20, 20)
        gc.enable()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what the searches recorded."""
    searches = [
        report
        for outcome in ("passed", "failed")
        for report in terminalreporter.getreports(outcome)
        if "search" in report.keywords and report.user_properties
    ]
    if searches:
        terminalreporter.section("searches")
    for report in searches:
        counts = ", ".join(f"{name} {value}" for name, value in report.user_properties)
        terminalreporter.write_line(f"{report.nodeid}: {counts} ({report.outcome} in {report.duration:.0f} s)")


@pytest.fixture(scope="session")
def update_golden(pytestconfig: pytest.Config) -> bool:
    return bool(pytestconfig.getoption("--update-golden"))


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """One session for all tests of a process, set up for many small queries; it is also a Spark Connect server.

    It has the connectors of lake tables, where they are here.
    """
    from dobonomodo.engine import open_session

    session = open_session(
        master="local[2]",
        conf={
            # Each process of the tests has such a Java, which by default takes up to 8 GB.
            "spark.driver.memory": "3g",
            "spark.sql.shuffle.partitions": "1",
            "spark.sql.adaptive.enabled": "false",
            # Of the 48 MB for compiled code that go with this level, generated code fills nearly all.
            "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=128m",
            # What the parser learns from a statement it keeps for ever, until the heap is full, unless it is told to
            # forget it beyond a percentage of the heap (Spark 4.1).
            "spark.sql.parser.manageParserCaches": "true",
            "spark.sql.parser.parserDfaCacheFlushRatio": "25",
            "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
            "spark.connect.grpc.binding.address": "127.0.0.1",
            "spark.connect.grpc.binding.port": "0",
            **(connector_settings(tmp_path_factory.mktemp("catalogs")) if why_not_here() is None else {}),
        },
    )
    yield session
    session.stop()


@pytest.fixture(scope="session")
def connect_url(spark: SparkSession) -> str:
    """Where the Connect server is. Use it from another process: PySpark cannot be both kinds of client in one."""
    jvm = spark.sparkContext._jvm
    service = getattr(getattr(jvm, "org.apache.spark.sql.connect.service.SparkConnectService$"), "MODULE$")
    return f"sc://127.0.0.1:{service.localPort()}"

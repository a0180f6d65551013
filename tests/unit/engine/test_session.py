"""What is refused before Spark starts, and what opening a session needs."""

from __future__ import annotations

import sys
from typing import Any, cast

import pytest
from pyspark.sql.connect.session import SparkSession

from dobonomodo.engine import SessionConflict, SettingRefused, SparkMissing, open_session
from dobonomodo.engine.session import give_up_soon, options_of_executors


def test_settings_that_decide_results_cannot_be_changed() -> None:
    with pytest.raises(SettingRefused) as refused:
        open_session(conf={"spark.sql.ansi.enabled": "false"})
    assert "spark.sql.ansi.enabled" in str(refused.value)


def test_a_session_is_classic_or_remote() -> None:
    with pytest.raises(SessionConflict):
        open_session(master="local[2]", remote="sc://127.0.0.1:1")


def test_without_pyspark_the_message_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    with pytest.raises(SparkMissing) as missing:
        open_session()
    assert "dobonomodo[spark]" in str(missing.value)


def test_executors_get_the_options_on_which_results_depend_after_their_own() -> None:
    ours = "-Duser.language=en -Duser.country=US -Duser.timezone=UTC -Dfile.encoding=UTF-8"
    assert options_of_executors(None) == ours
    assert options_of_executors("-Xss4m -Duser.language=tr") == f"-Xss4m -Duser.language=tr {ours}"


def test_a_connect_server_that_does_not_answer_is_given_up_within_30_seconds() -> None:
    session = SparkSession.builder.remote("sc://127.0.0.1:1").create()
    try:
        give_up_soon(cast("Any", session))
        (policy,) = session.client.get_retry_policies()
    finally:
        session.client.close()
    state, waits = policy.to_state(), []
    while (wait := state.next_attempt()) is not None:
        waits.append(wait)
    assert 5_000 < sum(waits) < 20_000

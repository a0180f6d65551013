"""What is refused before Spark starts, and what opening a session needs."""

from __future__ import annotations

import sys

import pytest

from dobonomodo.engine import SessionConflict, SettingRefused, SparkMissing, open_session


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

from __future__ import annotations

import sys
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from alembic.config import Config
from alembic.script import ScriptDirectory

from dobonomodo.problems import Rejected, RunFailed
from dobonomodo.problems.store import InvalidStoreUrl, StoreUnavailable
from dobonomodo.store import open_store
from dobonomodo.store.format import FORMAT, MIGRATIONS

if TYPE_CHECKING:
    from pathlib import Path


def test_the_newest_format_is_the_last_migration() -> None:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    assert ScriptDirectory.from_config(config).get_current_head() == FORMAT


def test_a_store_is_made_with_its_folder_under_the_root(tmp_path: Path) -> None:
    with closing(open_store("sqlite:///a/b/store.db", root=tmp_path)) as store:
        assert store.list_definitions("dataset") == ()
    assert [path.name for path in (tmp_path / "a" / "b").iterdir()] == ["store.db"]


def test_an_absolute_path_stays_one(tmp_path: Path) -> None:
    open_store(f"sqlite:///{tmp_path}/store.db", root=tmp_path / "elsewhere").close()
    assert (tmp_path / "store.db").exists()
    assert not (tmp_path / "elsewhere").exists()


def test_a_path_may_have_any_character_but_a_question_mark(tmp_path: Path) -> None:
    open_store("sqlite:///größe %41 #1;'\"/store.db", root=tmp_path).close()
    assert (tmp_path / "größe %41 #1;'\"" / "store.db").exists()


@pytest.mark.parametrize(
    ("url", "scheme"),
    [
        ("mysql://host/db", "mysql"),
        ("postgres://host/db", "postgres"),
        ("postgresql+psycopg2://host/db", "postgresql+psycopg2"),
        ("store.db", ""),
        ("", ""),
        ("sqlite://", "sqlite"),
        ("sqlite:///", "sqlite"),
        ("sqlite:///:memory:", "sqlite"),
        ("sqlite://host/store.db", "sqlite"),
        ("sqlite:///store.db?mode=ro", "sqlite"),
        ("sqlite:store.db", "sqlite"),
        ("postgresql://u:a@b@host/db", "postgresql"),
        ("postgresql://u@host:port/db", "postgresql"),
    ],
)
def test_an_address_that_cannot_be_opened_is_refused(tmp_path: Path, url: str, scheme: str) -> None:
    with pytest.raises(Rejected) as refusal:
        open_store(url, root=tmp_path)
    (problem,) = refusal.value.problems
    assert isinstance(problem, InvalidStoreUrl)
    assert problem.scheme == scheme
    assert list(tmp_path.iterdir()) == []


def test_a_driver_that_is_not_installed_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(RunFailed) as failure:
        open_store("postgresql://u:hush-hush@host/db", root=tmp_path)
    assert isinstance(failure.value.problem, StoreUnavailable)
    assert "psycopg" in failure.value.problem.reason
    assert failure.value.problem.store == "postgresql://u@host/db"

from __future__ import annotations

import sqlite3
import sys
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from alembic.config import Config
from alembic.script import ScriptDirectory

from dobonomodo.problems import Rejected, RunFailed
from dobonomodo.problems.package import PackageMissing
from dobonomodo.problems.store import InvalidStoreUrl, StoreFault, StoreInvalid
from dobonomodo.store import open_store
from dobonomodo.store.format import FORMAT, MIGRATIONS
from tests.world import empty_store

if TYPE_CHECKING:
    from collections.abc import Callable
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
    assert isinstance(failure.value.problem, PackageMissing)
    assert (failure.value.problem.modules, failure.value.problem.extras) == (("psycopg",), ("postgresql",))
    assert "hush-hush" not in str(failure.value)


def _make_store(path: Path) -> None:
    path.write_bytes(empty_store())


def _execute(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(statement)
        connection.commit()


def _truncate(path: Path) -> None:
    _make_store(path)
    path.write_bytes(path.read_bytes()[:5000])


def _overwrite_pages(path: Path) -> None:
    _make_store(path)
    content = path.read_bytes()
    path.write_bytes(content[:4096] + b"\xff" * (len(content) - 4096))


def _change(statement: str) -> Callable[[Path], None]:
    def change(path: Path) -> None:
        _make_store(path)
        _execute(path, statement)

    return change


@pytest.mark.parametrize(
    ("make", "fault"),
    [
        pytest.param(lambda path: path.touch(), StoreFault.EMPTY, id="empty"),
        pytest.param(lambda path: path.write_bytes(b"quarterly figures" * 999), StoreFault.FOREIGN, id="text"),
        pytest.param(lambda path: _execute(path, "CREATE TABLE bookmarks (a)"), StoreFault.FOREIGN, id="foreign"),
        pytest.param(_truncate, StoreFault.DAMAGED, id="cut off"),
        pytest.param(_overwrite_pages, StoreFault.DAMAGED, id="overwritten"),
        pytest.param(_change("DELETE FROM dobo_format"), StoreFault.DAMAGED, id="no format"),
        pytest.param(_change("UPDATE dobo_format SET version_num = '0001x'"), StoreFault.DAMAGED, id="unknown format"),
        pytest.param(_change("UPDATE dobo_format SET version_num = '0000'"), StoreFault.DAMAGED, id="format 0000"),
        pytest.param(_change("DROP TABLE dobo_format"), StoreFault.DAMAGED, id="no table of the format"),
        pytest.param(_change("DROP TABLE dobo_run"), StoreFault.DAMAGED, id="no table of runs"),
        pytest.param(lambda path: path.mkdir(), StoreFault.FOLDER, id="folder"),
    ],
)
def test_a_file_that_is_not_a_store_is_refused_and_left_alone(
    tmp_path: Path, make: Callable[[Path], None], fault: StoreFault
) -> None:
    path = tmp_path / "store.db"
    make(path)
    content = path.read_bytes() if path.is_file() else None
    with pytest.raises(RunFailed) as failure:
        open_store("sqlite:///store.db", root=tmp_path)
    problem = failure.value.problem
    assert isinstance(problem, StoreInvalid)
    assert (problem.fault, problem.store) == (fault, f"sqlite:///{path}")
    assert problem.hint()
    assert not failure.value.retry_helps
    assert (path.read_bytes() if path.is_file() else None) == content
    assert list(tmp_path.iterdir()) == [path]


def test_a_store_that_is_damaged_while_it_is_open(tmp_path: Path) -> None:
    with closing(open_store("sqlite:///store.db", root=tmp_path)) as store:
        path = tmp_path / "store.db"
        path.write_bytes(path.read_bytes()[:4096] + b"\xff" * 40960)
        with pytest.raises(RunFailed) as failure:
            store.list_runs()
    assert isinstance(failure.value.problem, StoreInvalid)
    assert failure.value.problem.fault is StoreFault.DAMAGED

"""Running `dobo` in this process, in a workspace of its own."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from dobonomodo.cli.console import Settings
from dobonomodo.cli.main import run

DATA = Path(__file__).parents[2] / "data" / "workspaces"


class Result(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def document(self) -> dict[str, Any]:
        """The one JSON document on stdout."""
        found: dict[str, Any] = json.loads(self.out)
        return found

    @property
    def codes(self) -> list[str]:
        return [problem["code"] for problem in self.document["problems"]]


Dobo = Callable[..., Result]


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No colours from the surroundings, and no flags of the command before."""
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    kept = {name: value for name, value in vars(Settings).items() if not name.startswith("_")}
    yield
    for name, value in kept.items():
        setattr(Settings, name, value)


@pytest.fixture
def dobo(capsys: pytest.CaptureFixture[str]) -> Dobo:
    def call(*arguments: str) -> Result:
        capsys.readouterr()
        code = run(list(arguments))
        return Result(int(code), *capsys.readouterr())

    return call


@pytest.fixture(scope="session")
def empty_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copying a store is quicker than making one."""
    from dobonomodo.store import open_store

    root = tmp_path_factory.mktemp("store")
    open_store("sqlite:///store.db", root=root).close()
    return root / "store.db"


@pytest.fixture
def sales(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the workspace `sales`, which is also the current one."""
    return enter("sales", tmp_path, monkeypatch)


@pytest.fixture
def stored(sales: Path, empty_store: Path) -> Path:
    (sales / ".dobo").mkdir()
    shutil.copy(empty_store, sales / ".dobo" / "store.db")
    return sales


@pytest.fixture
def faulty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return enter("faulty", tmp_path, monkeypatch)


def enter(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / name
    shutil.copytree(DATA / name, folder)
    monkeypatch.chdir(folder)
    return folder


def change(folder: Path, file: str, old: str, new: str) -> None:
    path = folder / file
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")

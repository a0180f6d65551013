"""Running `dobo` in this process, in a workspace of its own."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from dobonomodo.cli.console import Settings
from dobonomodo.cli.main import run
from tests.world import Folder, change_file, copy_workspace


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


@pytest.fixture
def sales(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the workspace `sales`, which is also the current one."""
    return enter("sales", tmp_path, monkeypatch)


@pytest.fixture
def stored(sales: Path) -> Path:
    return Folder(sales).with_store().root


@pytest.fixture
def faulty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return enter("faulty", tmp_path, monkeypatch)


def enter(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = copy_workspace(name, tmp_path / name)
    monkeypatch.chdir(folder)
    return folder


def change(folder: Path, file: str, old: str, new: str) -> None:
    change_file(folder / file, old, new)

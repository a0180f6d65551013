"""A workspace with an active project, and people who do things to it. No Spark: the runs are only records."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dobonomodo.problems import Problem, Rejected
from dobonomodo.store import Override, Run
from dobonomodo.workspace import Workspace
from tests.unit.runs.reporting import make_run

SALES = Path(__file__).parents[2] / "data" / "workspaces" / "sales"
PROJECT, PERIOD = "monthly-sales", "2026-01"


class Office:
    """A workspace that several people work with, one at a time."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root, self._monkeypatch = root, monkeypatch
        self._opened: list[Workspace] = []
        self._runs = 0
        self.at_desk("ann")

    def at_desk(self, person: str) -> Workspace:
        """The workspace as somebody opens it."""
        self._monkeypatch.setenv("DOBO_USER", person)
        self._opened.append(Workspace.open(self.root))
        return self._opened[-1]

    def setting(self, line: str) -> None:
        """Have this line among the settings of the workspace."""
        (self.root / "dobo.yaml").write_text(f"workspace:\n  name: sales\n  default_resolver: lake\n  {line}\n")

    def change(self, file: str, old: str, new: str) -> None:
        path = self.root / file
        assert old in path.read_text()
        path.write_text(path.read_text().replace(old, new))

    def put_run_overriding(self) -> Run:
        """A run that completed although its period was closed."""
        return self.put_run(override=Override(reason="late"))

    def put_run(self, *, override: Override | None = None, **changes: Any) -> Run:
        """A run that completed, later than those before it."""
        self._runs += 1
        made = make_run(self._runs, **{"project": PROJECT, "by": "ann", **changes})
        location = {"kind": "parquet", "folder": "lake/out", "data": f"lake/out/{made.id}", "files": []}
        output = {"seq": 90, "table": "out", "destination": "lake:out", "rows": 3, "digest": f"{made.id}-3"}
        more = {"dataset_id": None, "dataset_version": None, "location": location}
        run = replace(made, progress={"outputs": [{**output, **more}], **changes.get("progress", {})})
        self._opened[-1].store.put_run(run, override=override)
        return run

    def close(self) -> None:
        for workspace in self._opened:
            workspace.close()


@pytest.fixture(scope="module")
def active(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace whose project is active; copying it is quicker than making it."""
    root = tmp_path_factory.mktemp("active") / "ws"
    shutil.copytree(SALES, root)
    workspace = Workspace.open(root)
    workspace.apply()
    workspace.activate(PROJECT)
    workspace.close()
    return root


@pytest.fixture
def office(active: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Office]:
    shutil.copytree(active, tmp_path / "ws")
    made = Office(tmp_path / "ws", monkeypatch)
    yield made
    made.close()


def refusal(call: Callable[..., object], *arguments: Any, **more: Any) -> Problem:
    """The one problem that a call is refused for."""
    with pytest.raises(Rejected) as rejected:
        call(*arguments, **more)
    (problem,) = rejected.value.problems
    return problem

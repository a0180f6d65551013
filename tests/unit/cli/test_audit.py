"""`dobo audit verify`: what is proved is counted, what was changed is told."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from dobonomodo.workspace import Workspace
from tests.unit.cli.conftest import Dobo


def test_a_workspace_without_a_store(dobo: Dobo, sales: Path) -> None:
    shown = dobo("audit", "verify")
    assert (shown.code, shown.err) == (0, "everything is what it was\n")
    assert not (sales / ".dobo").exists()


def test_a_changed_definition(dobo: Dobo, stored: Path) -> None:
    workspace = Workspace.open(stored)
    workspace.apply()
    workspace.close()
    assert dobo("audit", "verify", "--json").document["data"]["unproved"] == []
    with closing(sqlite3.connect(stored / ".dobo/store.db")) as connection, connection:
        connection.execute("UPDATE dobo_version SET text = text || ' ' WHERE kind = 'project'")
    shown = dobo("audit", "verify")
    assert (shown.code, "RECORD_CHANGED" in shown.err) == (1, True)
    assert dobo("audit", "verify", "--json").codes == ["RECORD_CHANGED"]

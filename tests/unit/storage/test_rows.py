from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from dobonomodo.storage.rows import ROW_NUMBER, StoredRows


@pytest.mark.parametrize(
    ("columns", "can_be_asked_for", "expected"),
    [(["id"], False, False), (["id"], True, True), (["id", ROW_NUMBER], False, True), (["id", ROW_NUMBER], True, True)],
)
def test_positions_are_there_or_can_be_asked_for(columns: list[str], can_be_asked_for: bool, expected: bool) -> None:
    frame = cast("Any", SimpleNamespace(columns=columns))
    rows = StoredRows(frame, positioned=(lambda: frame) if can_be_asked_for else None)
    assert rows.has_positions is expected

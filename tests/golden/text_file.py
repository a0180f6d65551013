"""Files that hold what is expected: compared with what comes out, or rewritten on request."""

from __future__ import annotations

from difflib import unified_diff
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path


def compare(path: Path, actual: str, *, update: bool) -> None:
    """Fail with a diff where the file says something else; with ``update`` make it say this."""
    expected = path.read_text(encoding="utf-8") if path.exists() else ""
    if actual == expected:
        return
    if update:
        path.write_text(actual, encoding="utf-8")
        return
    diff = unified_diff(expected.splitlines(), actual.splitlines(), path.name, "what comes out", lineterm="", n=4)
    pytest.fail("\n".join([*diff, "", "`make golden` accepts this"]), pytrace=False)

"""What the first run after a locked period was reopened changed in the locked result, kept as a file for the reports of that run."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

from dobonomodo.runs.difference import LockedComparison

FOLDER = ".dobo/comparisons"


def keep_comparison(root: Path, run_id: str, found: LockedComparison) -> None:
    """Keep it."""
    path = _path(root, run_id)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(found.to_dict(), indent=1, default=_plain) + "\n", encoding="utf-8")


def find_comparison(root: Path, run_id: str) -> LockedComparison | None:
    """What a run changed in a locked result; None if it is no such run."""
    path = _path(root, run_id)
    return LockedComparison.load(json.loads(path.read_text(encoding="utf-8"))) if path.is_file() else None


def _path(root: Path, run_id: str) -> Path:
    return root / FOLDER / f"{run_id}.json"


def _plain(value: object) -> str:
    return f"{value:f}" if isinstance(value, Decimal) else str(value)

"""How much a search tries: a sample in CI, the full count with ``make search``."""

from __future__ import annotations

import os

SEARCH = bool(os.environ.get("DOBO_SEARCH"))
"""Whether the full counts are wanted."""


def tries(*, sample: int, full: int) -> int:
    """How many to try."""
    return full if SEARCH else sample

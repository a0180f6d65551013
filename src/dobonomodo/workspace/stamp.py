"""Who does something and when: what records are stamped with. The only place that asks the clock and the operating system."""

from __future__ import annotations

import getpass
import os
from contextlib import suppress
from datetime import UTC, datetime

USER_VARIABLE = "DOBO_USER"


def now() -> datetime:
    """The present, in UTC."""
    return datetime.now(UTC)


def who() -> str:
    """The user of the operating system, or whoever ``DOBO_USER`` names; nobody has proved to be that person."""
    if named := os.environ.get(USER_VARIABLE, "").strip():
        return named
    with suppress(KeyError, OSError):
        return getpass.getuser()
    return "unknown"

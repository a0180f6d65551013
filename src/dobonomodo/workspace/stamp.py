"""User and time for records. The only module that reads the clock and the operating system's user."""

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
    """The user of the operating system, or the name in ``DOBO_USER``; not authenticated."""
    if named := os.environ.get(USER_VARIABLE, "").strip():
        return named
    with suppress(KeyError, OSError):
        return getpass.getuser()
    return "unknown"

"""Who does something and when: what records are stamped with. The only place that asks the clock and the operating system."""

from __future__ import annotations

import getpass
from contextlib import suppress
from datetime import UTC, datetime


def now() -> datetime:
    """The present, in UTC."""
    return datetime.now(UTC)


def who() -> str:
    """The user at the keyboard."""
    with suppress(KeyError, OSError):
        return getpass.getuser()
    return "unknown"

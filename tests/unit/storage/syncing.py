"""What was on the disk at which moment."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

import pytest

T = TypeVar("T")


class Syncs(Generic[T]):
    """Notes the state of the world whenever a file or a folder is synced to the disk."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, state: Callable[[], T]) -> None:
        self._seen: dict[int, list[T]] = {}
        sync = os.fsync

        def note(number: int) -> None:
            self._seen.setdefault(os.fstat(number).st_ino, []).append(state())
            sync(number)

        monkeypatch.setattr(os, "fsync", note)

    def of(self, path: Path) -> list[T]:
        """The states at which something was synced."""
        return self._seen.get(path.stat().st_ino, [])

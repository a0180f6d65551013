"""The size of a run's inputs, and settings that follow from it: whether to compute in one partition, and the heap of Java."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

SMALL_BYTES = 32 << 20
SMALL_ROWS = 250_000
"""Inputs below both are computed in one piece. Bytes alone deceive: 25 MB of Parquet can be three million rows."""

LEAST_HEAP, MOST_HEAP = 2048, 8192
"""Megabytes. Spark's own default of 1 GB is soon too small, and where Spark is local all the work is done in this one heap."""
GROWTH = 24
"""Megabytes of heap for each megabyte of stored rows: they are compressed, and are sorted and hashed several times at once."""


@dataclass(frozen=True, slots=True)
class InputSize:
    """The stored bytes and rows of all inputs of a run."""

    bytes: int
    rows: int

    @property
    def is_small(self) -> bool:
        """Whether one partition, and a JVM that optimises less, compute them fastest."""
        return self.bytes < SMALL_BYTES and self.rows < SMALL_ROWS


def heap_megabytes(size: InputSize | None, available: int) -> int:
    """The heap of Java: as the inputs need, if their size is known, and at most half of the ``available`` memory."""
    wanted = MOST_HEAP if size is None else LEAST_HEAP + GROWTH * size.bytes // (1 << 20)
    return max(LEAST_HEAP, min(wanted, available // 2, MOST_HEAP))


def available_megabytes() -> int:
    """The free memory of this machine or container."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    free = [total, *_free_of_machine(), *_free_of_container()]
    return max(0, min(free)) // (1 << 20)


def _free_of_machine() -> list[int]:
    for line in _read("/proc/meminfo").splitlines():
        if line.startswith("MemAvailable:"):
            return [int(line.split()[1]) << 10]
    return []


def _free_of_container() -> list[int]:
    limit, used = (_read(f"/sys/fs/cgroup/memory.{name}").strip() for name in ("max", "current"))
    return [int(limit) - int(used)] if limit.isdigit() and used.isdigit() else []


def _read(path: str) -> str:
    try:
        return Path(path).read_text()
    except OSError:
        return ""

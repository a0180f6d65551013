"""Measuring: alternating runs in one process, medians of the warm ones, processor time and peak memory of the whole process tree."""

from __future__ import annotations

import os
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Measured:
    """What one contestant took, over some warm runs."""

    seconds: float
    """The median of the wall clock."""
    least: float
    most: float
    cpu: float
    """The median of the processor time, which other work on the machine disturbs less."""
    runs: int
    threads: Mapping[str, float]
    """The medians of the processor time of some kinds of threads."""

    def document(self) -> dict[str, Any]:
        """As plain data."""
        return {name: round(value, 4) if isinstance(value, float) else value for name, value in asdict(self).items()}


def measure(
    contestants: Mapping[str, Callable[[], object]], *, warm: int, cold: int = 1
) -> tuple[dict[str, Measured], dict[str, float]]:
    """Run the contestants in turns, so that noise meets all of them; gives warm figures, and the first time of each."""
    walls: dict[str, list[float]] = {name: [] for name in contestants}
    cpus: dict[str, list[dict[str, float]]] = {name: [] for name in contestants}
    for _ in range(cold + warm):
        for name, contestant in contestants.items():
            before, started = thread_seconds(), time.perf_counter()
            contestant()
            walls[name].append(time.perf_counter() - started)
            after = thread_seconds()
            cpus[name].append({kind: seconds - before.get(kind, 0.0) for kind, seconds in after.items()})
    first = {name: values[0] for name, values in walls.items()}
    return {name: _summarise(walls[name][cold:], cpus[name][cold:]) for name in contestants}, first


def _summarise(walls: list[float], cpus: list[dict[str, float]]) -> Measured:
    threads = {
        kind: round(statistics.median(each.get(kind, 0.0) for each in cpus), 2) for kind in (*KINDS.values(), OTHER)
    }
    cpu = statistics.median(each[WHOLE] for each in cpus)
    return Measured(statistics.median(walls), min(walls), max(walls), cpu, len(walls), threads)


WHOLE, OTHER = "all", "other threads"
KINDS = {
    "Executor task": "tasks of Spark",
    "C1 Compiler": "compiler of Java",
    "C2 Compiler": "compiler of Java",
    "GC Thread": "garbage collection",
    "G1 ": "garbage collection",
    "Thread-": "driver of Spark",
    "python": "Python",
}
"""Kinds of threads, by the starts of their names."""


def thread_seconds() -> dict[str, float]:
    """Processor time of this process and all below it so far, by kinds of threads. Threads that ended are part of the whole alone."""
    tick, found = os.sysconf("SC_CLK_TCK"), defaultdict[str, float](float, {WHOLE: cpu_seconds()})
    for number in process_tree(os.getpid()):
        for stat in Path(f"/proc/{number}/task").glob("*/stat"):
            try:
                head, _, tail = stat.read_text().rpartition(")")
            except OSError:
                continue
            name, fields = head.partition("(")[2], tail.split()
            kind = next((kind for start, kind in KINDS.items() if name.startswith(start)), OTHER)
            found[kind] += (int(fields[11]) + int(fields[12])) / tick
    return found


def cpu_seconds() -> float:
    """Processor time of this process and all below it, so far."""
    tick = os.sysconf("SC_CLK_TCK")
    total = 0.0
    for number in process_tree(os.getpid()):
        try:
            fields = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        total += (int(fields[11]) + int(fields[12])) / tick
    return total


def peak_megabytes() -> float:
    """The largest memory that this process and those below it have had, each by itself, added up."""
    total = 0
    for number in process_tree(os.getpid()):
        try:
            lines = Path(f"/proc/{number}/status").read_text().splitlines()
        except OSError:
            continue
        total += next((int(line.split()[1]) for line in lines if line.startswith("VmHWM")), 0)
    return total / 1024


def memory_megabytes() -> tuple[float, float]:
    """The memory of this process now, and that of all below it together."""
    own, *below = (_resident(number) for number in process_tree(os.getpid()))
    return own, sum(below)


def _resident(number: int) -> float:
    try:
        lines = Path(f"/proc/{number}/status").read_text().splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) for line in lines if line.startswith("VmRSS")), 0) / 1024


def process_tree(root: int) -> list[int]:
    """A process and its descendants."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        children.setdefault(parent, []).append(int(entry.name))
    found, pending = [], [root]
    while pending:
        current = pending.pop()
        found.append(current)
        pending.extend(children.get(current, ()))
    return found


def ratio(one: Measured, other: Measured) -> float:
    """How many times as long one takes."""
    return one.seconds / other.seconds


def ratio_of_cpu(one: Measured, other: Measured) -> float:
    """The same by processor time."""
    return one.cpu / other.cpu

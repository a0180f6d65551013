"""`python -m benchmarks quick` or `full`: measure everything and write the report; `again NAME...` measures some of it anew.

`part` is one measurement in a process.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from collections.abc import Callable, Mapping
from typing import Any

from benchmarks.data import make_data
from benchmarks.report import HOME, describe_machine, write_report
from benchmarks.suite import PARTS

SCALES = (1.0, 10.0)
"""Of the pipeline; the first one is in every measurement."""


def main(arguments: list[str]) -> int:
    """Run what is asked for."""
    if arguments[:1] == ["part"]:
        name, *rest = arguments[1:]
        sys.stdout.write(json.dumps(PARTS[name](*rest)))
        return 0
    if arguments[:1] == ["again"]:
        results = json.loads((HOME / "results.json").read_text())
        for name in arguments[1:]:
            machine = describe_machine()
            results[name] = {**FIRST, **AFTERWARDS}[name]()
            noted = {key: machine[key] for key in ("date", "load_at_start")}
            results["again"] = {**results.get("again", {}), name: noted}
            write_report(results)
        return 0
    full = arguments[:1] == ["full"]
    scales = SCALES if full else SCALES[:1]
    results: dict[str, Any] = {
        "command": "bench-full" if full else "bench",
        "machine": describe_machine(),
        "pipeline": [],
    }

    def add(name: str, found: Any) -> None:
        """What is known is written at once, so that a measurement that is cut short has its report too."""
        results[name] = found
        write_report(results)

    add("planning", _part("planning"))
    add("operations", _part("operations"))
    for scale in scales:
        add("pipeline", [*results["pipeline"], _pipeline(scale)])
    if not full:
        for name in ("startup", "lake"):
            add(name, AFTERWARDS[name]())
    else:
        for name, measured in AFTERWARDS.items():
            add(name, measured())
    _say("benchmarks/RESULTS.md is written")
    return 0


def _memory() -> dict[str, Any]:
    """A heap grows as it likes, so three processes each, in turns, and the median."""
    found: dict[str, list[int]] = {"expert": [], "dobo": []}
    for _ in range(3):
        for who, megabytes in found.items():
            megabytes.append(_part("memory", 1.0, who)["megabytes"])
    return {who: {"megabytes": statistics.median(each), "all": each} for who, each in found.items()}


def _database() -> dict[str, Any]:
    moved: dict[str, Any] = _part("database", 1.0, "no")
    moved["memory"] = [_part("database", scale, "yes") for scale in (0.1, 1.0, 10.0)]
    return moved


def _growth() -> dict[str, Any]:
    return {f"{scale:g}": _part("grown", scale) for scale in (0.1, 1.0, 4.0, 10.0, 40.0)}


def _part(name: str, *arguments: object) -> Any:
    _say(f"{name} {' '.join(map(str, arguments))}")
    command = [sys.executable, "-m", "benchmarks", "part", name, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{name} failed:\n{done.stderr[-3000:]}")
    return json.loads(done.stdout)


def _say(text: str) -> None:
    sys.stderr.write(f"benchmark: {text}\n")


def _pipelines() -> list[Any]:
    return [_pipeline(scale) for scale in SCALES]


def _pipeline(scale: float) -> Any:
    _say(f"data at scale {scale:g}")
    make_data(scale)
    return _part("pipeline", scale, 5 if scale == 1 else 2, "yes" if scale == 1 else "no")


FIRST: Mapping[str, Callable[[], Any]] = {
    "planning": lambda: _part("planning"),
    "operations": lambda: _part("operations"),
    "pipeline": _pipelines,
}
"""What every measurement begins with."""

AFTERWARDS: Mapping[str, Callable[[], Any]] = {
    "startup": lambda: _part("startup"),
    "chains": lambda: _part("chains"),
    "ids": lambda: _part("ids", 1.0),
    "prices": lambda: _part("prices", 1.0),
    "memory": _memory,
    "windows": lambda: _part("windows", 1.0, 5),
    "allocate": lambda: _part("allocate", 1.0, 3),
    "ranges": lambda: _part("ranges", 5_000_000, 3),
    "csv": lambda: _part("csv"),
    "database": _database,
    "files": lambda: [_part("files", count) for count in (10, 100, 1_000, 10_000)],
    "few": lambda: _part("few", 1_000, 100),
    "files-run": lambda: _part("files-run", 100_000, 1_000),
    "wide": lambda: _part("wide", 20_000, 500),
    "periods": lambda: _part("periods", 20_000, 36),
    "outputs": lambda: _part("outputs", 200_000, 20),
    "skew": lambda: _part("skew", 1_000_000),
    "lake": lambda: _part("lake", 1.0, 5),
    "growth": _growth,
    "why": lambda: _part("why", 10_000_000),
}
"""What only the full measurement has; `startup` and `lake` are in both."""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

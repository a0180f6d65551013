"""`python -m benchmarks quick` or `full`: measure everything and write the report. `part` is one measurement in a process."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from benchmarks.data import make_data
from benchmarks.report import write_report
from benchmarks.suite import PARTS


def main(arguments: list[str]) -> int:
    """Run what is asked for."""
    if arguments[:1] == ["part"]:
        name, *rest = arguments[1:]
        sys.stdout.write(json.dumps(PARTS[name](*rest)))
        return 0
    full = arguments[:1] == ["full"]
    scales = [1.0, 10.0] if full else [1.0]
    results: dict[str, Any] = {"command": "bench-full" if full else "bench", "pipeline": []}

    def add(name: str, found: Any) -> None:
        """What is known is written at once, so that a measurement that is cut short has its report too."""
        results[name] = found
        write_report(results)

    add("planning", _part("planning"))
    add("operations", _part("operations"))
    for scale in scales:
        _say(f"data at scale {scale:g}")
        make_data(scale)
        found = _part("pipeline", scale, 5 if scale == 1 else 2, "yes" if scale == 1 else "no")
        add("pipeline", [*results["pipeline"], found])
    add("startup", _part("startup"))
    if full:
        add("chains", _part("chains"))
        add("ids", _part("ids", 1.0))
        add("memory", {who: _part("memory", 1.0, who) for who in ("expert", "dobo")})
        add("csv", _part("csv"))
        moved = _part("database", 1.0, "no")
        moved["memory"] = [_part("database", scale, "yes") for scale in (0.1, 1.0, 10.0)]
        add("database", moved)
        for scale in (0.1, 1.0, 4.0, 10.0, 40.0):
            add("growth", {**results.get("growth", {}), f"{scale:g}": _part("grown", scale)})
    _say("benchmarks/RESULTS.md is written")
    return 0


def _part(name: str, *arguments: object) -> Any:
    _say(f"{name} {' '.join(map(str, arguments))}")
    command = [sys.executable, "-m", "benchmarks", "part", name, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{name} failed:\n{done.stderr[-3000:]}")
    return json.loads(done.stdout)


def _say(text: str) -> None:
    sys.stderr.write(f"benchmark: {text}\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Every rule and every decision of the semantics is shown by a scenario, or it is said where else it is proven."""

from __future__ import annotations

import re
from pathlib import Path

FOLDER = Path(__file__).parent

RULES = [*range(1, 36), *range(40, 64), *range(70, 175)]
DECISIONS = [*range(1, 79), *range(81, 89), 90, 93, 94, 95]
WARNINGS = range(1, 10)

ELSEWHERE = {
    "R-033": "laziness is the shape of a plan, not rows: tests/unit/plan",
    "R-062": "permits what later versions may add; nothing to observe",
    "R-074": "versions in the store: tests/unit/test_workspace.py",
    "R-097": "versions in the store: tests/unit/test_workspace.py",
    "R-114": "a snapshot of a run, which only a run from files takes",
    "R-116": "says who owns an operation; nothing to observe",
    "R-172": "a latency: benchmarks",
    "R-173": "the order of filter and group in a plan: tests/unit/plan",
    "C-68": "a draft's sandbox, which only a run from files has",
    "C-71": "resume, which only a run from files has",
    "C-77": "versions in the store: tests/unit/test_workspace.py",
    "C-93": "several projects of a workspace: tests/unit/workspace/test_chains.py",
    "W-09": "needs a calendar, which a scenario has not: tests/unit/plan/test_reading.py",
}


def _wanted() -> set[str]:
    return {
        *(f"R-{number:03}" for number in RULES),
        *(f"C-{number:02}" for number in DECISIONS),
        *(f"W-{number:02}" for number in WARNINGS),
    }


def _shown() -> set[str]:
    """The numbers in the comments of the scenarios; ``R-121..R-125`` names all between."""
    shown: set[str] = set()
    for path in FOLDER.rglob("*.yaml"):
        for line in path.read_text(encoding="utf-8").splitlines():
            if not line.lstrip().startswith("#"):
                continue
            shown |= set(re.findall(r"\b[RCW]-\d{2,3}\b", line))
            for letter, first, last in re.findall(r"\b([RCW])-(\d{2,3})\.\.[RCW]?-?(\d{2,3})", line):
                width = len(first)
                shown |= {f"{letter}-{number:0{width}}" for number in range(int(first), int(last) + 1)}
    return shown


def test_every_rule_has_a_scenario() -> None:
    assert sorted(_wanted() - _shown() - set(ELSEWHERE)) == []


def test_no_rule_is_excused_that_is_shown() -> None:
    assert sorted(set(ELSEWHERE) & _shown()) == []


def test_no_number_is_made_up() -> None:
    assert sorted(_shown() - _wanted()) == []

"""Explained rows for a package of evidence: the requested ones, and a sample of each output."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import quote

from dobonomodo.problems import Rejected
from dobonomodo.workspace.evidence import render_json
from dobonomodo.workspace.package import CELLS

if TYPE_CHECKING:
    from dobonomodo.runs import Output
    from dobonomodo.why.asking import AskedRun

SAMPLE = 3
"""How many rows of each output are explained by default."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A row of an output to explain, or one column of it."""

    key: Mapping[str, object] = field(default_factory=dict)
    table: str | None = None
    """None if the run has only one."""
    column: str | None = None


def explain_cells(run: AskedRun, cells: Sequence[Cell], *, sample: int) -> dict[str, bytes]:
    """The files of explained rows. A wanted row that cannot be explained is ``Rejected``; one of the sample says why."""
    found = [_explain(run, cell) for cell in cells]
    for output in run.view.outputs.values():
        found += list(_sample(run, output, sample))
    return {f"{CELLS}{number:03}-{quote(name, safe='')}.json": text for number, (name, text) in enumerate(found, 1)}


def _explain(run: AskedRun, cell: Cell) -> tuple[str, bytes]:
    explanation = run.why(cell.table, cell.key, column=cell.column)
    return explanation.table, render_json(explanation.to_dict())


def _sample(run: AskedRun, output: Output, count: int) -> Iterator[tuple[str, bytes]]:
    if not count:
        return
    try:
        rows = run.find_rows(output, {}, at_most=count)
    except Rejected as rejected:
        yield output.table, render_json(_refused(run, output, rejected))
        return
    for row in rows:
        try:
            yield _explain(run, Cell(row.values, output.table))
        except Rejected as rejected:
            yield output.table, render_json(_refused(run, output, rejected))


def _refused(run: AskedRun, output: Output, rejected: Rejected) -> dict[str, object]:
    problems = [problem.to_dict() for problem in rejected.problems]
    return {"run_id": run.view.id, "table": output.table, "proved": False, "problems": problems}

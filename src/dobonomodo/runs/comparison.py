"""Figures of a run beside those of other runs: pure functions over records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal

from dobonomodo.model.plain import PlainDict
from dobonomodo.plan.counts import Totals
from dobonomodo.runs.figures import EXACT, Figures, OutputFigures

_TENTH = Decimal("0.1")


@dataclass(frozen=True, slots=True)
class Other:
    """A run to compare with."""

    name: str
    """What it is to the run: ``previous run``, ``period 2025-12``."""
    run: str
    period: str
    figures: Figures | None
    """None if it has none."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A number beside what it was in another run. None: not known, or not there."""

    before: Decimal | None
    difference: Decimal | None
    percent: Decimal | None
    """Of what it was, to one digit; None if that was zero."""


@dataclass(frozen=True, slots=True)
class Line:
    """One number of an output: its rows, or the total of a column."""

    column: str | None
    """None for the number of rows."""
    now: Decimal | None
    compared: tuple[Difference, ...]
    """One for each of the other runs."""


@dataclass(frozen=True, slots=True)
class ComparedOutput:
    """An output with its numbers."""

    output: OutputFigures
    lines: tuple[Line, ...]


def compare_outputs(figures: Figures, others: Sequence[Other]) -> tuple[ComparedOutput, ...]:
    """The outputs of a run beside those that wrote to the same destinations in other runs."""
    return tuple(ComparedOutput(output, tuple(_lines(output, others))) for output in figures.outputs)


def _lines(output: OutputFigures, others: Sequence[Other]) -> Iterator[Line]:
    before = [_find(output, other.figures) for other in others]
    rows = [Decimal(each.rows) if each is not None else None for each in before]
    yield Line(None, Decimal(output.rows), tuple(compare(Decimal(output.rows), each) for each in rows))
    for name, now in output.totals.items():
        totals = [each.totals.get(name) if each is not None else None for each in before]
        yield Line(name, now, tuple(compare(now, each) for each in totals))


def _find(output: OutputFigures, figures: Figures | None) -> OutputFigures | None:
    """The same output in another run: numbers of operations may have changed between versions, destinations say what it is."""
    outputs = figures.outputs if figures is not None else ()
    same = [each for each in outputs if each.destination == output.destination]
    return next((each for each in same if each.seq == output.seq), same[0] if same else None)


def compare(now: Decimal | None, before: Decimal | None) -> Difference:
    """A number beside what it was."""
    if now is None or before is None:
        return Difference(before, None, None)
    difference = EXACT.subtract(now, before)
    return Difference(before, difference, share(difference, EXACT.abs(before)))


def share(part: Decimal | int, whole: Decimal | int) -> Decimal | None:
    """A part in percent of the whole, to one digit; None where that is zero."""
    if not whole:
        return None
    percent = EXACT.divide(EXACT.multiply(Decimal(part), Decimal(100)), Decimal(whole))
    return percent.quantize(_TENTH, ROUND_HALF_UP, context=EXACT)


def describe_figures(figures: Figures, others: Sequence[Other] = ()) -> PlainDict:
    """Figures as ``--json`` prints them: exact, decimals as text."""
    return {
        "loaded": _describe_totals(figures.loaded),
        "outputs": [_describe_output(each, others) for each in compare_outputs(figures, others)],
        "operations": [{"seq": seq, "changes": _describe_totals(totals)} for seq, totals in figures.changes.items()],
        "joins": [each.document() for each in figures.joins],
        "compared_with": [{"name": other.name, "run_id": other.run, "period": other.period} for other in others],
    }


def _describe_output(compared: ComparedOutput, others: Sequence[Other]) -> dict[str, object]:
    output, first = compared.output, compared.output.first
    return {
        "seq": output.seq,
        "table": output.table,
        "destination": output.destination,
        "rows": output.rows,
        "totals": _describe_totals(output.totals),
        "order": list(first.order) if first is not None else [],
        "first_rows": [dict(zip(first.columns, row, strict=True)) for row in first.rows] if first is not None else [],
        "compared": [
            {
                "run_id": other.run,
                "rows": _describe_difference(compared.lines[0].compared[at]),
                "totals": {
                    line.column: _describe_difference(line.compared[at])
                    for line in compared.lines
                    if line.column is not None
                },
            }
            for at, other in enumerate(others)
        ],
    }


def _describe_totals(totals: Totals) -> dict[str, str | None]:
    return {name: _text(value) for name, value in totals.items()}


def _describe_difference(found: Difference) -> dict[str, str | None]:
    return {"before": _text(found.before), "difference": _text(found.difference), "percent": _text(found.percent)}


def _text(value: Decimal | None) -> str | None:
    return f"{value:f}" if value is not None else None

"""Compares the figures of a run with those of other runs: pure functions over records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal

from dobonomodo.model.plain import PlainDict
from dobonomodo.plan.counts import KindTotals, Totals
from dobonomodo.runs.figures import EXACT, Figures, OutputFigures

OF_ALL_ROWS = "These totals are of all rows: those that were loaded, and those that operations added."
"""Said where rows may have been made in several ways, and totals of each are not known."""
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
    """A number compared with another run. None: unknown or missing."""

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
    kind: str | None = None
    """The rows that it is about; None for all."""

    @property
    def label(self) -> str:
        """What it is called."""
        name = "rows" if self.column is None else self.column
        return name if self.kind is None else f"{name}: {self.kind}"


@dataclass(frozen=True, slots=True)
class ComparedOutput:
    """An output with its numbers."""

    output: OutputFigures
    lines: tuple[Line, ...]
    by_kind: tuple[Line, ...] = ()
    """Where rows were made in several ways: the numbers of each."""

    @property
    def shown(self) -> tuple[Line, ...]:
        """The lines to display.

        A sum over details and their totals is meaningless, so the kinds of rows replace it. A kind with a total of zero
        usually has no value in that column.
        """
        if not self.by_kind:
            return self.lines
        found: list[Line] = []
        for line in self.lines:
            own = [each for each in self.by_kind if each.column == line.column and each.now != 0]
            found += [line, *own] if line.column is None else own or [line]
        return tuple(found)

    @property
    def mixes(self) -> bool:
        """Whether totals include rows of several kinds."""
        return self.output.kinds is None and len(self.lines) > 1


def compare_outputs(figures: Figures, others: Sequence[Other]) -> tuple[ComparedOutput, ...]:
    """Compare the outputs of a run with the outputs of other runs to the same destinations."""
    return tuple(
        ComparedOutput(output, tuple(_lines(output, others)), tuple(_lines_of_kinds(output, others)))
        for output in figures.outputs
    )


def _lines(output: OutputFigures, others: Sequence[Other]) -> Iterator[Line]:
    before = [_find(output, other.figures) for other in others]
    rows = [Decimal(each.rows) if each is not None else None for each in before]
    yield Line(None, Decimal(output.rows), tuple(compare(Decimal(output.rows), each) for each in rows))
    for name, now in output.totals.items():
        totals = [each.totals.get(name) if each is not None else None for each in before]
        yield Line(name, now, tuple(compare(now, each) for each in totals))


def _lines_of_kinds(output: OutputFigures, others: Sequence[Other]) -> Iterator[Line]:
    """Number and totals of each kind of rows, compared with the same kind in other runs."""
    before = [_find(output, other.figures) for other in others]
    for kind in output.kinds or ():
        same = [_find_kind(kind, each) for each in before]
        rows = [Decimal(each.rows) if each is not None else None for each in same]
        compared = tuple(compare(Decimal(kind.rows), each) for each in rows)
        yield Line(None, Decimal(kind.rows), compared, kind.label)
        for name, now in kind.totals.items():
            totals = [each.totals.get(name) if each is not None else None for each in same]
            yield Line(name, now, tuple(compare(now, each) for each in totals), kind.label)


def _find_kind(kind: KindTotals, output: OutputFigures | None) -> KindTotals | None:
    """The same kind in another run, by what it is called: numbers of operations change."""
    kinds = output.kinds if output is not None else None
    return next((each for each in kinds or () if each.label == kind.label), None)


def _find(output: OutputFigures, figures: Figures | None) -> OutputFigures | None:
    """The same output in another run: numbers of operations may have changed between versions, destinations say what it is."""
    outputs = figures.outputs if figures is not None else ()
    same = [each for each in outputs if each.destination == output.destination]
    return next((each for each in same if each.seq == output.seq), same[0] if same else None)


def compare(now: Decimal | None, before: Decimal | None) -> Difference:
    """A number compared with its earlier value."""
    if now is None or before is None:
        return Difference(before, None, None)
    difference = EXACT.subtract(now, before)
    return Difference(before, difference, share(difference, EXACT.abs(before)))


def share(part: Decimal | int, whole: Decimal | int) -> Decimal | None:
    """A part in percent of the whole, to one decimal; None if the whole is zero."""
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
        "kinds": [_describe_kind(each) for each in output.kinds] if output.kinds is not None else None,
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


def _describe_kind(kind: KindTotals) -> dict[str, object]:
    totals = _describe_totals(kind.totals)
    return {"seq": kind.seq, "name": kind.name, "level": kind.level, "rows": kind.rows, "totals": totals}


def _describe_totals(totals: Totals) -> dict[str, str | None]:
    return {name: _text(value) for name, value in totals.items()}


def _describe_difference(found: Difference) -> dict[str, str | None]:
    return {"before": _text(found.before), "difference": _text(found.difference), "percent": _text(found.percent)}


def _text(value: Decimal | None) -> str | None:
    return f"{value:f}" if value is not None else None

"""Rows and totals of the outputs of a plan for small inputs, in plain Python: Spark would take seconds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from decimal import Decimal

from dobonomodo.engine.kinds import Kind, find_kinds
from dobonomodo.engine.rowid import seed_of
from dobonomodo.engine.totals import numeric_columns
from dobonomodo.formula.types import DecimalType, Type
from dobonomodo.plan import Plan
from dobonomodo.plan.counts import KindTotals, OutputTotals, Totals
from dobonomodo.plan.facts import RunFacts
from dobonomodo.plan.system import OPERATION_SEQ
from dobonomodo.plan.tree import NotATree
from dobonomodo.problems import RunFailed
from dobonomodo.runs.figures import EXACT
from dobonomodo.why.explain import names_of
from dobonomodo.why.interpret import Interpreter, SeveralMatches
from dobonomodo.why.loading import Loader
from dobonomodo.why.row import Source, TooManyRows, Traced

FEW_ROWS = 2_000
"""Above this number of rows per dataset, Spark computes the plan: here, windows read the whole partition for each row."""
_MOST_DIGITS, _MORE_DIGITS = 38, 10
"""A sum in Spark has so many digits more than its values, up to a limit; beyond that there is none."""


def sum_outputs(plan: Plan, facts: RunFacts, source: Source, *, as_of: date | None) -> dict[int, OutputTotals] | None:
    """The number of rows of every output, and the totals of its columns; None if Spark has to compute them."""
    seed = seed_of(plan.project.id, plan.project.fingerprint(), facts)
    loader = Loader(source, facts, as_of, seed, limit=FEW_ROWS)
    interpreter = Interpreter(loader, facts=facts, seed=seed, always=names_of(plan.steps) | {OPERATION_SEQ})
    found: dict[int, OutputTotals] = {}
    try:
        for step in plan.steps:
            if step.lowered.write is not None:
                columns, kinds = numeric_columns(step), find_kinds(plan, step)
                levels = {kind.level_column for kind in kinds if kind.level_column is not None}
                rows = interpreter.find(step.write.rows, {}, frozenset({*columns, *levels, OPERATION_SEQ}))
                found[step.spec.seq] = OutputTotals(len(rows), _total(rows, columns), _sum_kinds(rows, kinds, columns))
    except (TooManyRows, SeveralMatches, NotATree, RunFailed):
        return None
    return found


def _sum_kinds(
    rows: Sequence[Traced], kinds: Sequence[Kind], columns: Mapping[str, Type]
) -> tuple[KindTotals, ...] | None:
    """As Spark would find them: see `engine.kinds.list_kinds`."""
    if len(kinds) == 1 and rows:
        return (KindTotals(kinds[0].seq, kinds[0].name, kinds[0].level, len(rows), _total(rows, columns)),)
    found = []
    for kind in kinds:
        own = [row for row in rows if row.values[OPERATION_SEQ] == kind.seq and _has_level(row, kind)]
        if own:
            found.append(KindTotals(kind.seq, kind.name, kind.level, len(own), _total(own, columns)))
    if sum(each.rows for each in found) != len(rows):
        return None
    return tuple(found)


def _has_level(row: Traced, kind: Kind) -> bool:
    return kind.level_column is None or row.values[kind.level_column] == kind.level


def _total(rows: Sequence[Traced], columns: Mapping[str, Type]) -> Totals:
    return {
        name: _sum([row.values[name] for row in rows], kind) if rows else _zero(kind) for name, kind in columns.items()
    }


def _zero(kind: Type) -> Decimal:
    return Decimal((0, (0,), -kind.scale if isinstance(kind, DecimalType) else 0))


def _sum(values: list[object], kind: Type) -> Decimal | None:
    total = _zero(kind)
    for value in values:
        total = EXACT.add(total, Decimal(value)) if isinstance(value, int | Decimal) else total
    if isinstance(kind, DecimalType):
        fits = len(total.as_tuple().digits) <= min(_MOST_DIGITS, kind.precision + _MORE_DIGITS)
    else:
        fits = -(2**63) <= total < 2**63
    return total if fits else None

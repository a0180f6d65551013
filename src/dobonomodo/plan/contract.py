"""The checks that a dataset declares, over the rows that a run reads of it. They are formulas like those of users."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal

from dobonomodo.formula import FUNCTION_BY_NAME, ColumnRef, Scope, Typed, check_formula
from dobonomodo.formula.typed import Apply, Operation
from dobonomodo.formula.types import BOOLEAN, INTEGER, Type, is_number
from dobonomodo.model.dataset import Bounds, Dataset, DatasetCheck
from dobonomodo.plan.check import ROWS, Check, GroupCondition, RowCondition
from dobonomodo.plan.expression import ACTIVE, FALSE, all_of, coalesce, equal, integer
from dobonomodo.plan.relation import Group, Keep, Scan
from dobonomodo.problems import Passage, Problem

_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?")
_COUNT: Typed = Apply(FUNCTION_BY_NAME["COUNT_ALL"], 0, (), INTEGER)


def find_contracts(scan: Scan, dataset: Dataset) -> Iterator[Check | Problem]:
    """The checks that a dataset declares, lowered over the rows of a reading, and their problems."""
    for position, declared in enumerate(dataset.checks):
        found = _make_check(scan, dataset, declared)
        if isinstance(found, Problem):
            yield replace(found, span=dataset.places.span("checks", position))
        else:
            yield found


def _make_check(scan: Scan, dataset: Dataset, declared: DatasetCheck) -> Check | Problem:
    name = f"{dataset.id}: {_describe(declared)}"
    seq = scan.use.seq or 0
    if declared.unique is not None:
        condition: RowCondition | GroupCondition = _unique(scan, declared.unique)
        text = "COUNT(*) = 1"
    elif declared.rows_against_previous is not None:
        counted = RowCondition(scan, ACTIVE, all_of(ACTIVE, FALSE), ())
        tolerance = Decimal(declared.rows_against_previous.rstrip("% "))
        return Check(seq, name, declared.severity, True, "COUNT(*)", counted, tolerance=tolerance)
    else:
        text = " AND ".join(_render(declared, scan))
        scope = Scope(columns=scan.schema.columns, table=scan.use.table)
        checked = check_formula(Passage.alone(text), scope, wanted=BOOLEAN, what="the check")
        if checked.tree is None:
            return checked.problems[0]
        violated = all_of(ACTIVE, Operation("NOT", (coalesce(checked.tree, FALSE),), BOOLEAN))
        columns = [scan.schema.columns.spelling(each) or each for each in (*scan.use.natural_key, *declared.columns)]
        condition = RowCondition(scan, ACTIVE, violated, tuple(dict.fromkeys(columns)))
    # An empty dataset is not the fault of its values.
    return Check(seq, name, declared.severity, True, text, condition)


def _unique(scan: Scan, names: tuple[str, ...]) -> GroupCondition:
    columns = scan.schema.columns
    stored = [columns.spelling(name) or name for name in names]
    keys = {f"#{name}": ColumnRef(name, None, columns[name]) for name in stored}
    groups = Group(Keep(scan, ACTIVE), keys, {"=0": _COUNT, ROWS: _COUNT})
    return GroupCondition(groups, equal(ColumnRef("=0", None, INTEGER), integer(1)), None, None, ())


def _describe(declared: DatasetCheck) -> str:
    if declared.rows_against_previous is not None:
        return f"rows within {declared.rows_against_previous} of the previous period"
    what = {"unique": "unique", "not_null": "has a value", "values": "has a listed value", "range": "is in its range"}
    return f"{', '.join(declared.columns)} {what[declared.rule]}"


def _render(declared: DatasetCheck, scan: Scan) -> Iterator[str]:
    """The rule as a formula; values that are missing are a matter of ``not_null``."""
    columns = scan.schema.columns
    for name in declared.not_null or ():
        yield f"NOT ISNULL(`{name}`)"
    for name, values in (declared.values or {}).items():
        kind = columns[columns.spelling(name) or name]
        yield f"(ISNULL(`{name}`) OR `{name}` IN ({', '.join(_literal(value, kind) for value in values)}))"
    for name, bounds in (declared.range or {}).items():
        tests = " AND ".join(_bound(name, bounds, columns[columns.spelling(name) or name]))
        yield f"(ISNULL(`{name}`) OR ({tests or 'TRUE'}))"


def _bound(name: str, bounds: Bounds, kind: Type) -> Iterator[str]:
    if bounds.min is not None:
        yield f"`{name}` >= {_literal(bounds.min, kind)}"
    if bounds.max is not None:
        yield f"`{name}` <= {_literal(bounds.max, kind)}"


def _literal(value: str, kind: Type) -> str:
    """A value as a constant of a formula. One that is not of the column's type is a text, which the check of types refuses."""
    if (is_number(kind) and _NUMBER.fullmatch(value)) or (kind == BOOLEAN and value in ("true", "false")):
        return value
    return '"' + value.replace('"', '""') + '"'

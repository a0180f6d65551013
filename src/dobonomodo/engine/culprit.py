"""Finds the operation that made a Spark job fail: maps a Spark exception to a problem that names operation and formula."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from dobonomodo.engine.faults import (
    ExpressionPlace,
    explain_fault,
    find_fragments,
    find_joining,
    find_loss,
    find_repeated,
    find_suspects,
)
from dobonomodo.engine.frames import Frames
from dobonomodo.formula import render_formula
from dobonomodo.plan import Plan, Step
from dobonomodo.plan.facts import RunFacts
from dobonomodo.plan.relation import Derive, expressions_of, walk_between
from dobonomodo.problems import OperationRef, Problem
from dobonomodo.problems.run import JoinMultipleMatches
from dobonomodo.storage.faults import is_of_spark


def explain_failure(error: Exception, plan: Plan, frames: Frames, *, until: Step | None) -> Problem:
    """The problem that a Spark exception stands for, with the operation that failed, if there is one.

    ``until`` is the output that was being computed, if one was.
    """
    if (repeated := find_repeated(error)) is not None:
        return frames.explain_repeated(repeated)
    fault = explain_fault(error)
    if isinstance(fault, JoinMultipleMatches):
        joining = find_joining(error) or None
        fault = replace(fault, lookup_of=_find_declaring(plan, fault.alias, joining))
        if joining is None:
            return fault
    suspects = find_suspects(error, list(_places(plan, frames.facts)))
    steps = [step for step in plan.steps if step.spec.ref in suspects and _is_before(step, until)]
    operation = steps[0].spec.ref if len(steps) == 1 else _find_culprit(steps, frames)
    if operation is None and until is not None:
        operation = until.spec.ref
    culprit = next((step for step in plan.steps if step.spec.ref == operation), None)
    expression = _find_expression(culprit, error, frames.facts) if culprit is not None else None
    return replace(fault, operation=operation, expression=expression)


def _find_declaring(plan: Plan, alias: str, seq: int | None) -> str | None:
    """The dataset that declares a lookup; None if the alias is one of an operation's own joins."""
    uses = [use for use in plan.uses if use.seq == seq]
    if not any(use.role == "lookup" and use.alias == alias for use in uses):
        return None
    return next(use.dataset_id for use in uses if use.alias is None)


def _find_expression(step: Step, error: Exception, facts: RunFacts) -> str | None:
    """The formula of an operation that failed, as its author wrote it; None where that is not certain."""
    formulas = step.lowered.formulas
    if len(formulas) == 1 and step.spec.selector is None:
        return next(iter(formulas.values())).text
    trees = [(formula.text, formula.tree) for formula in formulas.values()]
    for node in walk_between(step.after.node, step.before.node):
        if isinstance(node, Derive):
            trees += [(formulas[name].text, value) for name, value in node.values.items() if name in formulas]
    fragments = find_fragments(error)
    found = {text for text, tree in trees if any(each in render_formula(tree, facts) for each in fragments)}
    return found.pop() if len(found) == 1 else None


def _is_before(step: Step, until: Step | None) -> bool:
    return until is None or step.spec.seq <= until.spec.seq


def _find_culprit(steps: Sequence[Step], frames: Frames) -> OperationRef | None:
    """The first operation that fails when it is run alone. Computed only after a failure whose message does not point to one."""
    whole = frames.with_all_columns()
    for step in steps:
        try:
            whole.make(step.after.node).write.format("noop").mode("overwrite").save()
        except Exception as error:
            if not is_of_spark(error):
                raise
            return step.spec.ref if find_loss(error) is None else None
    return None


def _places(plan: Plan, facts: RunFacts) -> Iterator[ExpressionPlace]:
    """Every expression of every operation as SQL, to map a fragment in a Spark message to its operation."""
    for step in plan.steps:
        for node in walk_between(step.top, step.before.node):
            for expression in expressions_of(node):
                yield ExpressionPlace(step.spec.ref, render_formula(expression, facts))

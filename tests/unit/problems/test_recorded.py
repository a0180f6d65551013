"""Problems as they are kept, and loaded back."""

from __future__ import annotations

import json

import pytest

from dobonomodo.problems import PROBLEMS, Blame, OperationRef, Problem, Source, Span, in_order
from dobonomodo.problems.formula import UnknownColumn
from dobonomodo.problems.recorded import load_problem, record_problem
from dobonomodo.problems.render import render_concise, render_full, render_github
from dobonomodo.problems.run import DataLoad, OutputWrite, SparkLost, WrongCell
from dobonomodo.problems.store import LeaseLost

TEXT = "project:\n  operations:\n    - expression: amout + 1\n"
START = TEXT.index("amout")
PLACED = UnknownColumn(
    name="amout",
    known=("amount",),
    span=Span(Source("projects/p.yaml", TEXT), START, START + 5),
    operation=OperationRef(20, "net"),
    expression="amout + 1",
)
CELLS = tuple(WrongCell(place="a.csv", line=line, column="n", value="x", rule="is not a number") for line in (2, 3))
LOADED = DataLoad(dataset_id="orders", detail="2 values are wrong", cells=CELLS, counts=(("n", 2),))


def kept(problem: Problem) -> Problem:
    """A problem that has been through a store."""
    return load_problem(json.loads(json.dumps(record_problem(problem))))


@pytest.mark.parametrize(
    "problem", [PLACED, LOADED, SparkLost(detail="gone"), OutputWrite(destination="d", detail="full")]
)
def test_a_recorded_problem_says_what_it_said(problem: Problem) -> None:
    again = kept(problem)
    assert isinstance(again, Problem)
    assert (again.code, again.severity, again.message(), again.hint()) == (
        problem.code, problem.severity, problem.message(), problem.hint(),
    )  # fmt: skip
    assert (again.operation, again.expression, again.notes()) == (
        problem.operation, problem.expression, problem.notes(),
    )  # fmt: skip
    assert again.to_dict() == {**json.loads(json.dumps(problem.to_dict())), "retry_helps": problem.retry_helps}


def test_a_recorded_problem_has_its_place() -> None:
    span = kept(PLACED).span
    assert span is not None
    assert (span.source.name, span.line, span.column) == ("projects/p.yaml", 3, 19)
    assert render_concise([kept(PLACED)]) == render_concise([PLACED])
    assert render_github([kept(PLACED)]) == render_github([PLACED])


def test_where_the_text_is_not_known_no_excerpt_is_shown() -> None:
    shown = render_full([kept(PLACED)])
    assert "projects/p.yaml:3:19, operation 20 `net`" in shown
    assert "^" in render_full([PLACED])
    assert "^" not in shown


@pytest.mark.parametrize(
    ("problem", "blame"),
    [
        (LeaseLost(project="p", period="x", fence=1), Blame.CONFLICT),
        (SparkLost(detail="gone"), Blame.ENVIRONMENT),
        (OutputWrite(destination="d", detail="full", is_transient=True), Blame.ENVIRONMENT),
        (OutputWrite(destination="d", detail="refused"), Blame.AUTHOR),
        (LOADED, Blame.AUTHOR),
    ],
)
def test_who_must_act_is_kept(problem: Problem, blame: Blame) -> None:
    assert (problem.blame, kept(problem).blame) == (blame, blame)
    assert kept(problem).retry_helps is (blame is Blame.ENVIRONMENT)


def test_records_of_other_versions_are_read() -> None:
    old = load_problem({"code": "GONE_SINCE", "message": "it was so"})
    assert (old.code, old.severity, old.blame, old.message(), old.hint()) == (
        "GONE_SINCE", "error", Blame.AUTHOR, "it was so", None,
    )  # fmt: skip
    assert (old.span, old.operation) == (None, None)
    assert set(old.to_dict()) >= set(PLACED.to_dict())


def test_recorded_problems_are_ordered_with_others() -> None:
    assert [each.code for each in in_order([kept(LOADED), kept(PLACED)])] == ["UNKNOWN_COLUMN", "DATA_LOAD"]


def test_every_kind_of_problem_has_somebody_to_blame() -> None:
    assert {kind.blamed for kind in PROBLEMS} == set(Blame)

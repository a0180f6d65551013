"""Causes are found by their fingerprints, exchanged, and share a difference so that nothing is left over."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

from dobonomodo.plan.dataset import recorded_key
from dobonomodo.runs.attribution import (
    Cause,
    Factor,
    Line,
    Pinned,
    find_bars,
    find_factors,
    mix,
    round_parts,
    scale_of,
    share_out,
)


def test_the_order_of_causes_does_not_matter() -> None:
    values = {frozenset(): 10, frozenset({0}): 16, frozenset({1}): 11, frozenset({0, 1}): 20}
    parts = share_out(2, lambda taken: Fraction(values[taken]))
    swapped = share_out(2, lambda taken: Fraction(values[frozenset(1 - at for at in taken)]))
    assert parts == [Fraction(15, 2), Fraction(5, 2)]
    assert swapped == parts[::-1]


def test_what_is_cut_off_goes_to_those_that_lost_most() -> None:
    assert round_parts([Fraction(1, 3)] * 3, scale=2) == [Decimal("0.34"), Decimal("0.33"), Decimal("0.33")]
    assert round_parts([Fraction(-1, 3), Fraction(-2, 3)], scale=0) == [Decimal(0), Decimal(-1)]


def reading(dataset: str, seq: int | None = None, version: int = 1) -> dict[str, Any]:
    role = "input" if seq is None else "join"
    own = {"role": role, "dataset": dataset, "version": version, "table": dataset, "operation_seq": seq, "alias": None}
    return {**own, "resolver": "files", "locations": [], "as_of": None}


def run(content: str = "a", *, operations: dict[int, str] | None = None, accounts: str = "x", **more: Any) -> Pinned:
    readings = [reading("lines"), reading("accounts", 1)]
    found = {10: "u", 20: "v"} if operations is None else operations
    listed = [{"seq": seq, "type": "update", "name": f"op {seq}", "selector": text} for seq, text in found.items()]
    snapshot = {
        "project": {"id": "close", "document": {"id": "close", "input_dataset_id": "lines", "operations": listed}},
        "period": {"identifier": "2026-01"},
        "started_at": "2026-02-03T00:00:00+00:00",
        "as_of": None,
        "parameters": {},
        "datasets": [{"version": 1, "document": {"id": name}} for name in ("lines", "accounts")],
        "datasources": [],
        "readings": readings,
        "inputs": {recorded_key(each): [{"files": [{"path": each["dataset"]}]}] for each in readings},
        **more,
    }
    return Pinned(snapshot, {recorded_key(readings[0]): [[content]], recorded_key(readings[1]): [[accounts]]})


def test_the_same_run_has_no_causes() -> None:
    assert find_factors(run(), run(), reads_clock=True) == ()


def test_rows_are_compared_by_their_hashes_alone() -> None:
    one, other = run("a"), run("a")
    for pins in other.snapshot["inputs"].values():
        pins[0]["files"][0]["path"] = "moved"
    assert find_factors(one, other, reads_clock=True) == ()


def test_each_cause_is_named() -> None:
    after = run("b", accounts="y", operations={10: "w", 30: "new"}, started_at="2026-03-01T00:00:00+00:00")
    found = find_factors(run(), after, reads_clock=True)
    assert [(factor.cause, factor.name) for factor in found] == [
        ("input", "rows of input lines"),
        ("dataset", "dataset accounts"),
        ("operation", "operation 10 op 10"),
        ("operation", "operation 20 op 20 (removed)"),
        ("operation", "operation 30 op 30 (new)"),
        ("facts", "clock"),
    ]
    assert find_factors(run(), after, reads_clock=False) == found[:-1]


def test_a_new_name_is_no_cause() -> None:
    after = run()
    after.snapshot["project"]["document"]["operations"][0]["name"] = "another name"
    assert find_factors(run(), after, reads_clock=True) == ()


@pytest.mark.parametrize("taken", [(), (0,), (1,), (2,), (0, 1, 2, 3, 4)])
def test_causes_are_exchanged_one_by_one(taken: tuple[int, ...]) -> None:
    one, other = run(), run("b", accounts="y", operations={10: "w", 30: "new"})
    factors = find_factors(one, other, reads_clock=False)
    mixed = mix(one, other, factors, [factors[at] for at in taken])
    document = mixed.snapshot["project"]["document"]
    found = {each["seq"]: each["selector"] for each in document["operations"]}
    expected = {10: "w" if 2 in taken else "u"}
    expected |= {} if 3 in taken else {20: "v"}
    expected |= {30: "new"} if 4 in taken else {}
    assert found == expected
    hashes = [hashes[0][0] for hashes in mixed.hashes.values()]
    assert sorted(str(each) for each in hashes) == sorted(["b" if 0 in taken else "a", "y" if 1 in taken else "x"])


def test_rows_that_are_there_in_one_run_only_are_read_from_that() -> None:
    one, other = run("a"), run("b")
    one.snapshot["inputs"][recorded_key(reading("accounts", 1))] = ["as before"]
    factors = (Factor(Cause.INPUT, "lines", ""),)
    mixed = mix(one, other, factors, factors, prefer=frozenset({"accounts", "lines"}))
    assert mixed.snapshot["inputs"][recorded_key(reading("accounts", 1))] == ["as before"]
    assert mixed.hashes[recorded_key(reading("lines"))] == [["b"]]


def test_bars_lie_between_the_lowest_and_the_highest_point() -> None:
    line = Line("t", None, Decimal(10), Decimal(12), (Decimal(6), Decimal(-4)))
    assert line.residual == 0
    assert find_bars(line) == [(0.0, 1.0), (1 / 3, 1.0)]


def test_rows_of_other_periods_are_rows_of_their_own() -> None:
    def with_last_year(content: str, last_year: str) -> Pinned:
        made = run(content)
        other = {**reading("lines", 10), "periods": [{"identifier": "2025-01"}]}
        made.snapshot["readings"].append(other)
        made.snapshot["inputs"][recorded_key(other)] = [{"files": [{"path": "last year"}]}]
        return Pinned(made.snapshot, {**made.hashes, recorded_key(other): [[last_year]]})

    one, other = with_last_year("a", "p"), with_last_year("a", "q")
    (factor,) = find_factors(one, other, reads_clock=False)
    assert factor.name == "rows of input lines"
    for taken, expected in (((), ["a", "p"]), ((factor,), ["a", "q"])):
        mixed = mix(one, other, [factor], taken)
        found = [mixed.hashes[recorded_key(each)][0][0] for each in (reading("lines"), reading("lines", 10))]
        assert found == expected
    # An operation that reads them alone brings them along.
    assert find_factors(run("a"), other, reads_clock=False) == ()
    changed = find_factors(run("b"), other, reads_clock=False)
    mixed = mix(run("b"), other, changed, ())
    assert [mixed.hashes[recorded_key(each)][0][0] for each in (reading("lines"), reading("lines", 10))] == ["b", "q"]


def test_rows_without_hashes_are_compared_by_their_files() -> None:
    def pinned(*paths: str) -> Pinned:
        made = run()
        made.snapshot["inputs"][recorded_key(reading("lines"))] = [{"files": [{"path": path}]} for path in paths]
        return made

    # Of the second place of the rows there is no hash.
    assert find_factors(pinned("a", "b"), pinned("moved", "b"), reads_clock=False) == ()
    (factor,) = find_factors(pinned("a", "b"), pinned("a", "moved"), reads_clock=False)
    assert factor.name == "rows of input lines"


@pytest.mark.parametrize(
    ("numbers", "scale"), [([], 0), (["7"], 0), (["1E+2"], 0), (["0.5", "1.25", "3"], 2), (["-0.001"], 3)]
)
def test_the_longest_number_decides_the_digits(numbers: list[str], scale: int) -> None:
    assert scale_of(map(Decimal, numbers)) == scale

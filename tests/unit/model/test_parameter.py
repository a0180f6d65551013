"""Values of parameters: read in their type without rounding, or refused in words."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pytest

from dobonomodo.model import Project
from dobonomodo.model.parameter import Parameter, ParameterValue, read_value, settle_parameters, show_value
from dobonomodo.model.schema import DataType
from dobonomodo.problems.parameter import InvalidParameter, ParameterMissing, UnknownParameter
from dobonomodo.problems.problem import Blame

UPLIFT = Parameter.from_data({"type": "decimal(5,4)", "default": Decimal("0.03"), "description": "Planned increase"})
DAY = Parameter.from_data({"type": "date"})


@pytest.mark.parametrize(
    ("kind", "given", "value"),
    [
        ("decimal(5,4)", "0.05", Decimal("0.05")),
        ("decimal(5,4)", Decimal("-1.2500000"), Decimal("-1.25")),
        ("decimal(5,4)", "+9.99990", Decimal("9.9999")),
        ("decimal", 12, Decimal(12)),
        ("decimal(2,2)", "0.10", Decimal("0.1")),
        ("integer", " 007 ", 7),
        ("integer", str(-(2**63)), -(2**63)),
        ("boolean", "TRUE", True),
        ("boolean", False, False),
        ("date", "2026-02-28", date(2026, 2, 28)),
        ("date", date(2026, 2, 28), date(2026, 2, 28)),
        ("timestamp", "2026-01-31T08:00:00", datetime(2026, 1, 31, 8, tzinfo=UTC)),
        ("timestamp", "2026-01-31 08:00:00+02:00", datetime(2026, 1, 31, 6, tzinfo=UTC)),
        ("string", "  a = b ", "  a = b "),
        ("string", "", ""),
    ],
)
def test_values(kind: str, given: object, value: ParameterValue) -> None:
    found = read_value(given, DataType.parse(kind))
    assert (found, type(found)) == (value, type(value))
    assert read_value(show_value(found), DataType.parse(kind)) == found


@pytest.mark.parametrize(
    ("kind", "given", "wrong"),
    [
        ("decimal(5,4)", "0.05001", "more than 4 digits behind the point"),
        ("decimal(5,4)", "10", "more than 1 digits before the point"),
        ("decimal(5,4)", "3%", "`0.03`"),
        ("decimal", "1e3", "not a number"),
        ("decimal", "0,05", "not a number"),
        ("decimal", "", "not a number"),
        ("integer", "1.5", "not a whole number"),
        ("integer", str(2**63), "64 bits"),
        ("boolean", "yes", "`true` or `false`"),
        ("date", "2026-02-30", "not a date"),
        ("date", "31.01.2026", "not a date"),
        ("timestamp", "2026-01-31", "not a time"),
        ("string", 10, "in quotes"),
        ("string", "x" * 1001, "longer than"),
    ],
)
def test_refused(kind: str, given: object, wrong: str) -> None:
    with pytest.raises(ValueError, match=wrong):
        read_value(given, DataType.parse(kind))


def test_what_is_given_wins_over_the_environment_and_that_over_the_default() -> None:
    known = {"uplift": UPLIFT, "day": DAY}
    environment = {"uplift": "0.04", "DAY": "2026-01-01"}
    assert settle_parameters("p", known, {"Day": "2026-01-02"}, otherwise=environment).values == {
        "uplift": Decimal("0.04"),
        "day": date(2026, 1, 2),
    }
    assert settle_parameters("p", known, {"day": "2026-01-02"}).values["uplift"] == Decimal("0.03")


def test_all_that_is_wrong_is_found() -> None:
    unknown, invalid, missing = settle_parameters(
        "p", {"uplift": UPLIFT, "day": DAY}, {"uplft": 1, "uplift": "x"}
    ).problems
    assert isinstance(unknown, UnknownParameter)
    assert isinstance(invalid, InvalidParameter)
    assert isinstance(missing, ParameterMissing)
    assert (unknown.name, unknown.known, unknown.hint()) == ("uplft", ("uplift", "day"), "did you mean `uplift`?")
    assert (invalid.name, invalid.value, missing.name) == ("uplift", "x", "day")
    assert {each.blame for each in (unknown, invalid, missing)} == {Blame.CALLER}


def test_a_changed_default_is_another_project_and_a_description_is_not() -> None:
    def project(**parameter: object) -> str:
        document = {"input_dataset_id": "d", "operations": [], "parameters": {"p": {"type": "integer", **parameter}}}
        return Project.from_data(document).fingerprint()

    without = Project.from_data({"input_dataset_id": "d", "operations": []})
    assert "parameters" not in without.essence()
    assert project(default=1) == project(default=1, description="x") == project(default="1")
    assert len({project(), project(default=1), project(default=2), without.fingerprint()}) == 4

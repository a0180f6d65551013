"""The first line of a file: names, or a record."""

from __future__ import annotations

import pytest

from dobonomodo.storage.header import Role, explain_unusable, judge_first_line


def judge(*lines: str) -> tuple[Role, bool]:
    """What the first line is, and whether there is a note."""
    first, *below = [line.split(",") for line in lines]
    found = judge_first_line(
        first, [[value for value in column if value] for column in zip(*below, strict=True)] or [()] * len(first)
    )
    return found.role, found.note is not None


@pytest.mark.parametrize(
    "lines",
    [
        ("id,amount", "1,2.50"),
        ("name,city", "Bob,Rome"),
        ("name,city",),
        ("id,v1.5", "1,2"),
        ("id,2nd", "1,2"),
        ("day,note", "2026-01-31T08:30:00Z,x"),
        ("open,note", "true,x"),
        ("share,share %", "5%,(2.5)"),
    ],
)
def test_names(lines: tuple[str, ...]) -> None:
    assert judge(*lines) == (Role.NAMES, False)


@pytest.mark.parametrize(
    "lines",
    [
        ("account,2025,2026", "4000,1.50,2.50", "4100,3,4"),
        ("account,1,2,3", "4000,1.50,2.50,5", "4100,3,4,5"),
        ("account,2026-01,2026-02", "A1,1.50,2.50"),
        ("region,31.01.2026", "North,5"),
        ("region,2025,2026", "North,5,6", "South,2025,2026"),
        ("region,2025",),
    ],
)
def test_years_days_and_numbers_that_count_up_may_be_names(lines: tuple[str, ...]) -> None:
    assert judge(*lines) == (Role.NAMES, True)


@pytest.mark.parametrize(
    "lines",
    [
        ("Bob,5", "Ann,6"),
        ("1,2", "3,4"),
        ("1,A12,5", "2,B7,6"),
        ("a,NA", "b,1.5"),
        ("North,31.01.2026", "South,28.02.2026"),
        ("2026-01,a", "2026-02,b"),
        ("a,true", "b,false"),
        ("North,2025", "South,2026"),
        ("a,€ 5,(1.50)", "b,6 €,2%"),
    ],
)
def test_records(lines: tuple[str, ...]) -> None:
    assert judge(*lines) == (Role.RECORD, False)


@pytest.mark.parametrize(
    "lines",
    [
        ("1,unknown", "2,5"),
        ("id,-1.5", "1,2"),
        ("region,1,2,3", "North,5,6,7"),
        ("2025,2026", "1.5,2.5"),
        (",2025", "4000,1.5"),
        ("x,X", "y,z"),
        ("Bob,", "Ann,5"),
    ],
)
def test_what_is_not_sure_is_a_record_with_a_note(lines: tuple[str, ...]) -> None:
    assert judge(*lines) == (Role.RECORD, True)


@pytest.mark.parametrize(
    "lines", [("id,id", "1,2"), ("id,,amount", "1,x,2"), ("id,amount,", "1,2,"), (",31.01.2026", "4000,5")]
)
def test_names_that_do_not_tell_columns_apart(lines: tuple[str, ...]) -> None:
    assert judge(*lines) == (Role.UNUSABLE_NAMES, True)


def test_why_names_do_not_tell_columns_apart() -> None:
    assert explain_unusable(["a", "b"]) is None
    assert explain_unusable(["a", " ", ""]) == "it has no name for column 2"
    assert "`A` twice" in str(explain_unusable(["a", "b", "A"]))

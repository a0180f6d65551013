"""Row ids: the same run gives the same ids, anything else gives others. What Spark makes of the SQL is tested on Spark."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta

from dobonomodo.engine.rowid import find_place, id_by_key, id_by_place, seed_of, write_id_by_key, write_id_by_place
from tests.world import CLOCK, JANUARY

SEED = seed_of("close", "f" * 64, JANUARY)


def test_the_clock_is_the_first_48_bits() -> None:
    assert SEED.prefix == "019c2283-f800"
    assert int(SEED.prefix.replace("-", ""), 16) == int(CLOCK.timestamp() * 1000)


def test_a_run_is_its_project_version_period_and_clock() -> None:
    again = seed_of("close", "f" * 64, JANUARY)
    others = [
        seed_of("open", "f" * 64, JANUARY),
        seed_of("close", "e" * 64, JANUARY),
        seed_of("close", "f" * 64, replace(JANUARY, period="2026-02")),
        seed_of("close", "f" * 64, replace(JANUARY, started_at=CLOCK + timedelta(milliseconds=1))),
    ]
    assert again.number("rows", 2**60) == SEED.number("rows", 2**60)
    assert len({each.number("rows", 2**60) for each in (SEED, *others)}) == 5
    assert SEED.number("rows", 2**60) != SEED.number("other rows", 2**60)


def test_numbers_stay_below_their_limit() -> None:
    assert {SEED.number(str(number), 16) for number in range(500)} == set(range(16))


def test_an_id_by_place_is_a_uuid_of_version_7() -> None:
    fixed = re.fullmatch(
        r"concat\('([^']*)', CAST\(10000000000L \+ place AS STRING\)\)", id_by_place(SEED, "t", "place")
    )
    assert fixed is not None
    shown = fixed[1] + str(10_000_000_000 + 89_999_999_999)
    assert re.fullmatch(r"019c2283-f800-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]\d{11}", shown)
    assert id_by_place(SEED, "t", "place") != id_by_place(SEED, "u", "place")


def test_keys_of_several_columns_are_marked_with_their_lengths() -> None:
    one, two = id_by_key(SEED, "t", ["a"]), id_by_key(SEED, "t", ["a", "b"])
    assert "char_length" not in one
    assert two.count("char_length") > one.count("char_length")
    assert id_by_key(SEED, "t", ["a"]) != id_by_key(SEED, "u", ["a"])
    assert one.startswith(f"concat('{SEED.prefix}-7'")


def test_a_place_is_read_from_an_id() -> None:
    made = write_id_by_place(SEED, "t", 41)
    assert re.fullmatch(r"019c2283-f800-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]10000000041", made)
    assert find_place(SEED, "t", made) == 41
    assert find_place(SEED, "u", made) is None
    assert find_place(SEED, "t", write_id_by_key(SEED, "t", ["a"])) is None

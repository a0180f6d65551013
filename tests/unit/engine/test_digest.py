"""The digest of rows stays what it is: recorded digests of earlier runs are compared with it."""

from __future__ import annotations

from dobonomodo.engine.digest import (
    HASHES,
    PARTS,
    digest_columns,
    digest_values,
    hash_rows,
    hash_values,
    render_digest,
    render_values,
)
from dobonomodo.plan.digest import is_same_digest

MASK = 2**64 - 1


def in_parts(numbers: list[int], others: list[int]) -> dict[str, int]:
    """The sums that the SQL gives for hashes, computed with Python's shift, which copies the sign as Spark's does."""
    sums: dict[str, int] = {"rows": len(numbers)}
    for name, hashes in zip(HASHES.values(), (numbers, others), strict=True):
        shift = 0
        for part, bits in PARTS.items():
            sums[f"{name}_{part}"] = sum((number >> shift) & ((1 << bits) - 1) for number in hashes)
            shift += bits
    return sums


def test_the_parts_add_up_to_the_sums_of_all_bits() -> None:
    hashes = [0, 1, -1, 2**63 - 1, -(2**63), 4708226919461608863, -6148914691236517206]
    others = [each ^ 0x5555555555555555 for each in hashes]
    first, second = (sum(each & MASK for each in some) & MASK for some in (hashes, others))
    assert render_digest(in_parts(hashes, others)) == f"{first:016x}{second:016x}-{len(hashes)}"


def test_the_first_sum_is_the_one_that_earlier_versions_recorded() -> None:
    first = {"hash_low": 2171117602, "hash_middle": 1083279289, "hash_high": 1041595705}
    digest = render_digest({"rows": 1000, **first, "other_hash_low": 5, "other_hash_middle": 1, "other_hash_high": 0})
    assert digest == f"abf9ec626fa8a022{(1 << 22) + 5:016x}-1000"
    assert is_same_digest("abf9ec626fa8a022-1000", digest)
    none = dict.fromkeys(f"{name}_{part}" for name in HASHES.values() for part in PARTS)
    assert render_digest({"rows": 0, **none}) == f"{0:032x}-0"


def test_both_hashes_have_a_seed_of_their_own_and_know_what_is_missing() -> None:
    assert hash_rows(["a"]) == {
        " hash": "xxhash64(`a`, `a` IS NULL)",
        " other hash": "xxhash64(7046029288634856825L, `a`, CASE WHEN `a` IS NULL THEN 1609587929392839161L END)",
    }


def test_the_functions_are_those_that_compatible_servers_have() -> None:
    assert digest_columns() == {
        "rows": "count(` hash`)",
        "hash_low": "sum(shiftright(` hash`, 0) & 4194303L)",
        "hash_middle": "sum(shiftright(` hash`, 22) & 2097151L)",
        "hash_high": "sum(shiftright(` hash`, 43) & 2097151L)",
        "other_hash_low": "sum(shiftright(` other hash`, 0) & 4194303L)",
        "other_hash_middle": "sum(shiftright(` other hash`, 22) & 2097151L)",
        "other_hash_high": "sum(shiftright(` other hash`, 43) & 2097151L)",
    }


def test_values_are_hashed_with_the_key_of_their_row() -> None:
    assert hash_values({"v": "`net`"}, ["`id`"]) == {
        "v": "xxhash64(xxhash64(`id`, `id` IS NULL), `net`, `net` IS NULL)"
    }
    assert digest_values(["v"], chosen="c") == {
        "v_low": "try_sum(CASE WHEN c THEN `v` & 2147483647L END)",
        "v_high": "try_sum(CASE WHEN c THEN shiftright(`v`, 33) & 2147483647L END)",
    }


def test_a_digest_of_values_is_not_known_where_sums_overflow() -> None:
    assert render_values("v", {"rows": 2, "v_low": 5, "v_high": 3}) == f"{(3 << 31) + 5:x}"
    assert render_values("v", {"rows": 2**40, "v_low": None, "v_high": 3}) is None
    assert render_values("v", {"rows": 0, "v_low": None, "v_high": None}) == "0"

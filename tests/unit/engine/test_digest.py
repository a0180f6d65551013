"""The digest of rows stays what it is: recorded digests of earlier runs are compared with it."""

from __future__ import annotations

from dobonomodo.engine.digest import PARTS, digest_columns, digest_values, hash_values, render_digest, render_values

MASK = 2**64 - 1


def in_parts(numbers: list[int]) -> dict[str, int]:
    """The sums that the SQL gives for hashes, computed with Python's shift, which copies the sign as Spark's does."""
    sums: dict[str, int] = {"rows": len(numbers)}
    shift = 0
    for name, bits in PARTS.items():
        sums[name] = sum((number >> shift) & ((1 << bits) - 1) for number in numbers)
        shift += bits
    return sums


def test_the_parts_add_up_to_the_sum_of_all_bits() -> None:
    hashes = [0, 1, -1, 2**63 - 1, -(2**63), 4708226919461608863, -6148914691236517206]
    assert render_digest(in_parts(hashes)) == f"{sum(each & MASK for each in hashes) & MASK:016x}-{len(hashes)}"


def test_recorded_digests_stay_the_same() -> None:
    sums = {"rows": 1000, "hash_low": 2171117602, "hash_middle": 1083279289, "hash_high": 1041595705}
    assert render_digest(sums) == "abf9ec626fa8a022-1000"
    assert render_digest({"rows": 0, "hash_low": None, "hash_middle": None, "hash_high": None}) == f"{0:016x}-0"


def test_the_functions_are_those_that_compatible_servers_have() -> None:
    assert digest_columns("h") == {
        "rows": "count(h)",
        "hash_low": "sum(shiftright(h, 0) & 4194303L)",
        "hash_middle": "sum(shiftright(h, 22) & 2097151L)",
        "hash_high": "sum(shiftright(h, 43) & 2097151L)",
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

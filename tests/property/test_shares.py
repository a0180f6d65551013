"""Amounts are distributed to the last unit: against exact integers in plain Python, for amounts and drivers of all sizes."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from decimal import Context, Decimal
from typing import TYPE_CHECKING, Any

import pytest

from tests.projects.interpreter import Period, share
from tests.projects.running import run_case
from tests.projects.strategies import Case
from tests.property.on_spark import settings_of
from tests.searching import tries

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXACT = Context(prec=80)
POOLS = 250
"""In one run."""
BATCHES = 56
"""Of a full search: eight for each type of drivers. A run takes seconds whatever its size, so that many amounts are in each."""

DRIVERS = (
    "integer",
    "decimal(4,2)",
    "decimal(10,0)",
    "decimal(11,1)",
    "decimal(18,2)",
    "decimal(27,12)",
    "decimal(38,10)",
)


@dataclass(frozen=True)
class Batch:
    """Amounts with their receivers, in the types of one project."""

    amount: str
    driver: str
    places: int
    amounts: list[int]
    """In units of their last place."""
    drivers: list[list[int]]
    """In units of the last digit of their type."""

    def case(self) -> Case:
        """The project that distributes them."""
        pools = [
            {"pool": at, "value": _scaled(amount, self.places), "to": None} for at, amount in enumerate(self.amounts)
        ]
        receivers = [
            {"pool": at, "name": number, "weight": self._stored(driver)}
            for at, drivers in enumerate(self.drivers)
            for number, driver in enumerate(drivers)
        ]
        random.Random(len(receivers)).shuffle(receivers)
        columns = {"pool": "integer", "value": self.amount, "to": "integer"}
        allocation = {
            "amount": "value",
            "receivers": {"dataset_id": "receivers"},
            "driver": "receivers.weight",
            "match": "receivers.pool = pools.pool",
            "set": [{"column": "to", "expression": "receivers.name"}],
            "round": self.places,
        }
        written = {"destination": {"datasource_id": "out", "table": "parts"}, "columns": ["pool", "to", "value"]}
        operations = [
            {"seq": 1, "type": "allocate", "arguments": allocation},
            {"seq": 2, "type": "output", "arguments": written},
        ]
        return Case(
            {"id": "p", "input_dataset_id": "pools", "operations": operations},
            [
                _dataset("pools", ["pool"], columns, pools),
                _dataset(
                    "receivers",
                    ["pool", "name"],
                    {"pool": "integer", "name": "integer", "weight": self.driver},
                    receivers,
                ),
            ],
            Period("2026-01", date(2026, 1, 1)),
        )

    def _stored(self, driver: int) -> Any:
        return driver if self.driver == "integer" else _scaled(driver, _digits(self.driver)[1])

    def expected(self) -> Iterator[tuple[int, int, int]]:
        """The parts in units, each proven to be right in itself."""
        for at, (units, drivers) in enumerate(zip(self.amounts, self.drivers, strict=True)):
            parts, total = share(units, drivers, range(len(drivers))), sum(drivers)
            assert sum(parts) == units
            assert all(abs(part * total - units * each) < total for part, each in zip(parts, drivers, strict=True))
            yield from ((at, number, part) for number, part in enumerate(parts))


def _scaled(units: int, places: int) -> Decimal:
    return EXACT.scaleb(Decimal(units), -places)


def _dataset(dataset_id: str, key: list[str], columns: dict[str, str], rows: list[dict[str, Any]]) -> dict[str, Any]:
    listed = [{"name": name, "type": kind} for name, kind in columns.items()]
    document = {"id": dataset_id, "natural_key_columns": key, "main_table": {"name": dataset_id, "columns": listed}}
    return {"dataset": document, "version": 1, "rows": rows, "located": False}


def draw_batch(seed: int, pools: int) -> Batch:
    """Amounts of any sign and size, receivers from one to many, drivers that are often equal, zero or very large."""
    chance = random.Random(seed)
    places = chance.choice([0, 0, 1, 2, 2, 2, 3, 6, 10])
    # Few digits are computed with other types than many.
    digits = chance.choice([places + 1, max(15, places + 5), 18, 24, most_digits(places), most_digits(places)])
    scale = chance.choice([places, places, min(10, places + chance.randint(0, 4))])
    amount = f"decimal({min(38, digits + scale - places)},{scale})"
    driver = DRIVERS[seed % len(DRIVERS)]
    precision, _ = _digits(driver)
    amounts, drivers = [], []
    for _ in range(pools):
        size = min(digits, chance.choice([1, 2, 3, 5, 9, digits - 1, digits]))
        units = chance.choice([-1, 1]) * chance.randrange(10**size)
        amounts.append(units)
        count = chance.choice([1, 2, 3, 3, 4, 7, 20])
        # All drivers of an amount together have 27 digits at most.
        most = min(precision, 27 - len(str(count))) if driver != "integer" else 18
        high = 10 ** chance.choice([1, 1, 2, min(5, most), most]) - 1
        found = [chance.choice([0, 1, high, chance.randint(0, high), chance.randint(0, high)]) for _ in range(count)]
        found[chance.randrange(count)] = chance.randint(1, high)
        drivers.append(found)
    return Batch(amount, driver, places, amounts, drivers)


def most_digits(places: int) -> int:
    """Digits that an amount may have, in units of its last place."""
    return min(32, 37 - places)


def _digits(kind: str) -> tuple[int, int]:
    if kind == "integer":
        return 18, 0
    precision, _, scale = kind.removeprefix("decimal(").removesuffix(")").partition(",")
    return int(precision), int(scale)


@pytest.mark.search
def test_parts_are_those_of_exact_integers(spark: SparkSession, record_property: Any) -> None:
    """A million amounts with ``DOBO_SEARCH``; over several partitions, with receivers in any order."""
    batches = tries(sample=2, full=BATCHES)
    pools = tries(sample=POOLS, full=18_000)
    count = 0
    for seed in range(batches):
        batch = draw_batch(seed + 4, pools)
        parts = 1 + seed % 3
        with settings_of(spark, {"spark.sql.shuffle.partitions": str(parts)}):
            ran = run_case(batch.case(), spark, partitions=parts, shuffled=seed % 2 == 1, many=True)
        assert ran.problem is None, (seed, ran.problem)
        (output,) = ran.outputs
        found = sorted((row["pool"], row["to"], int(EXACT.scaleb(row["value"], batch.places))) for row in output.rows)
        wanted = list(batch.expected())
        assert found == wanted, (seed, next(pair for pair in zip(found, wanted, strict=False) if pair[0] != pair[1]))
        count += len(wanted)
    record_property("amounts", batches * pools)
    record_property("parts", count)

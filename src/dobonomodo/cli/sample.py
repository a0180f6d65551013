"""The data of the templates: made up, realistic, and the same on every machine. Knows pyarrow and no Spark."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date, timedelta
from decimal import Decimal
from random import Random
from typing import TypeVar

from dobonomodo.problems.package import require_modules

MONTHS = {"2026-01": (date(2026, 1, 1), 31), "2026-02": (date(2026, 2, 1), 28)}

ORDERS = {"2026-01": 48_731, "2026-02": 51_269}
CUSTOMERS = 4_000
REGIONS = ("EMEA",) * 9 + ("AMER",) * 7 + ("APAC",) * 4
TIERS = ("gold",) * 2 + ("silver",) * 5 + ("bronze",) * 13
PRICES = (1990, 1990, 4900, 4900, 12900, 12900, 34900, 89900)
"""In cents."""
T = TypeVar("T")

SALES_BUDGET = {
    "2026-01": {"EMEA": 21_000_000, "AMER": 16_500_000, "APAC": 9_200_000},
    "2026-02": {"EMEA": 22_000_000, "AMER": 16_800_000, "APAC": 9_400_000},
}

LINES = {"2026-01": 2_480, "2026-02": 2_315}
ENTITIES = {"DE01": "EUR", "UK01": "GBP", "US01": "USD", "CH01": "CHF"}
PLANNED_PERCENT = {"DE01": 99, "UK01": 117, "US01": 92, "CH01": 105}
ACCOUNTS: Mapping[str, tuple[str, int, int]] = {
    "4000": ("Invoice", 1, 1_840_000),
    "4100": ("Service contract", 1, 620_000),
    "5000": ("Material", -1, 910_000),
    "5100": ("Payroll", -1, 640_000),
    "6000": ("Rent", -1, 210_000),
    "6100": ("Campaign", -1, 150_000),
    "6200": ("Travel expenses", -1, 48_000),
}
"""Text of a line, sign, and a usual amount in cents."""


def make_sales() -> Iterator[tuple[str, bytes]]:
    """Orders of two months, their customers, and a budget in two versions."""
    random = Random(2026)
    customers = [
        {"id": f"C{number:05}", "name": f"Customer {number}", "tier": _pick(random, TIERS)}
        for number in range(1, CUSTOMERS + 1)
    ]
    home = [_pick(random, REGIONS) for _ in customers]
    yield "data/customers.parquet", _parquet(customers, id="string", name="string", tier="string")
    number = 0
    for period, (start, days) in MONTHS.items():
        orders = []
        for _ in range(ORDERS[period]):
            number += 1
            buyer = int(random.random() * CUSTOMERS)
            cents = _pick(random, PRICES) * (1 + int(random.random() * 9))
            fate = random.random()
            orders.append(
                {
                    "order_id": f"SO-{number:07}",
                    "order_date": start + timedelta(days=int(random.random() * days)),
                    "customer_id": customers[buyer]["id"],
                    "region": home[buyer],
                    "status": "cancelled" if fate < 0.06 else "active",
                    "amount": _money(0 if fate > 0.99 else cents),
                }
            )
        yield (
            f"data/orders/{period}.parquet",
            _parquet(
                orders,
                order_id="string",
                order_date="date",
                customer_id="string",
                region="string",
                status="string",
                amount="money",
            ),
        )
        budget = [
            {"region": region, "team": team, "budget_type": kind, "amount": _money(amount * share)}
            for region, amount in SALES_BUDGET[period].items()
            for team, part in (("Field", 70), ("Web", 30))
            for kind, share in (("original", part), ("revised", part + 2))
        ]
        columns = {"region": "string", "team": "string", "budget_type": "string", "amount": "money"}
        yield f"data/budget/{period}.parquet", _parquet(budget, **columns)


def make_fx() -> Iterator[tuple[str, bytes]]:
    """Ledger lines of four entities for two months, and their budgets."""
    random = Random(2026)
    number = 0
    for period, (start, days) in MONTHS.items():
        lines: list[Sequence[object]] = []
        for _ in range(LINES[period]):
            number += 1
            entity = _pick(random, tuple(ENTITIES))
            account = _pick(random, tuple(ACCOUNTS))
            text, sign, usual = ACCOUNTS[account]
            cents = sign * int(usual * (0.4 + 1.2 * random.random()))
            day = start + timedelta(days=int(random.random() * days))
            foreign = random.random() < 0.05
            currency = _pick(random, tuple(ENTITIES.values())) if foreign else ENTITIES[entity]
            if period == "2026-02" and number % 1_500 == 0:
                currency = "SEK"
            lines.append((f"GL-{number:06}", day, entity, account, f"{text} {number}", currency, _money(cents)))
        names = ("line_id", "booking_date", "entity", "account", "text", "currency", "amount")
        yield f"data/lines-{period}.csv", _csv(names, lines)
        budget = [
            (entity, account, _money(sign * (usual * LINES[period] * percent // 28 // 1_000_000 * 10_000)))
            for entity, percent in PLANNED_PERCENT.items()
            for account, (_, sign, usual) in ACCOUNTS.items()
        ]
        yield f"data/budget-{period}.csv", _csv(("entity", "account", "budget_eur"), budget)


SAMPLES: Mapping[str, Callable[[], Iterable[tuple[str, bytes]]]] = {"sales": make_sales, "fx": make_fx}
"""By template; the smallest one brings its data as files."""


def _pick(random: Random, choices: Sequence[T]) -> T:
    # `random()` is the one method that promises the same numbers in every version of Python.
    return choices[int(random.random() * len(choices))]


def _money(cents: int) -> Decimal:
    return Decimal(cents).scaleb(-2)


def _parquet(rows: Sequence[Mapping[str, object]], **columns: str) -> bytes:
    require_modules(["pyarrow"])
    import pyarrow as pa
    import pyarrow.parquet as pq

    types = {"string": pa.string(), "date": pa.date32(), "money": pa.decimal128(15, 2)}
    schema = pa.schema([(name, types[kind]) for name, kind in columns.items()])
    table = pa.table({name: [row[name] for row in rows] for name in columns}, schema=schema)
    buffer = io.BytesIO()
    pq.write_table(table, buffer)
    return buffer.getvalue()


def _csv(names: Sequence[str], rows: Iterable[Sequence[object]]) -> bytes:
    import csv

    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names)
    writer.writerows(rows)
    return text.getvalue().encode()

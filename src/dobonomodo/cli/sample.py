"""Generates the data of the templates: realistic and reproducible. Uses pyarrow, not Spark."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date, timedelta
from decimal import Decimal
from hashlib import sha256
from random import Random
from typing import TypeVar
from uuid import UUID

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


CLOSED = {"DE01": ("EUR", 100), "US01": ("USD", 72), "CH01": ("CHF", 41)}
"""Entities of the close: their currency, and their size in percent."""
CHART: Mapping[str, tuple[str, str, str]] = {
    "1200": ("Bank", "B10", "BS"),
    "1400": ("Forderungen", "B20", "BS"),
    "1600": ("Verbindlichkeiten", "B30", "BS"),
    "3000": ("Wareneinsatz", "C10", "PL"),
    "4100": ("Löhne und Gehälter", "C20", "PL"),
    "4200": ("Miete", "C30", "PL"),
    "4900": ("IT und Software", "C30", "PL"),
    "8400": ("Umsatzerlöse", "R10", "PL"),
    "8500": ("Dienstleistungen", "R20", "PL"),
}
"""Name, report line and report of each account."""
TREE = (
    ("REV", "Revenue", "EBIT", 10), ("R10", "Products", "REV", 11), ("R20", "Services", "REV", 12),
    ("COST", "Costs", "EBIT", 20), ("C10", "Material", "COST", 21), ("C20", "Personnel", "COST", 22),
    ("C30", "Other costs", "COST", 23), ("EBIT", "Operating result", "", 30),
    ("NET", "Net assets", "", 90), ("B10", "Bank", "NET", 91), ("B20", "Receivables", "NET", 92), ("B30", "Payables", "NET", 93),
)  # fmt: skip
CENTRES = ("HR", "IT", "OPS", "SALES")
POSTINGS = (
    ("8400", "", 98_400_000, "1400"), ("8500", "", 21_750_000, "1400"), ("3000", "OPS", -39_100_000, "1600"),
    *(("4100", centre, -pay, "1200") for centre, pay in zip(CENTRES, (4_120_000, 6_380_000, 14_970_000, 9_260_000), strict=True)),
    ("4200", "OPS", -2_300_000, "1200"), ("4900", "IT", -3_456_700, "1600"), ("4900", "SALES", -410_000, "1600"),
)  # fmt: skip
"""Account, cost centre, a usual amount in cents, and the account on the other side."""
GERMAN_MONTHS = ("Jan", "Feb", "Mrz", "Apr", "Mai", "Jun", "Jul", "Aug", "Sep", "Okt", "Nov", "Dez")


def make_close() -> Iterator[tuple[str, bytes]]:
    """Two years of a ledger, its chart of accounts, rates, heads and a budget, as a German ledger and spreadsheet write them."""
    random = Random(2026)
    rates: list[Sequence[object]] = []
    heads: list[Sequence[object]] = []
    number = 0
    months = [(year, month) for year in (2025, 2026) for month in range(1, 13)]
    for year, month in months:
        period = f"{year}-{month:02}"
        for currency, base in (("EUR", 1_000_000), ("USD", 921_300), ("CHF", 1_047_800)):
            swing = 0 if currency == "EUR" else int(40_000 * (random.random() - 0.5))
            close = 0 if currency == "EUR" else int(12_000 * (random.random() - 0.5))
            rates.append((period, currency, _german(base + swing, 6), _german(base + swing + close, 6)))
        lines: list[Sequence[object]] = []
        for entity, (currency, size) in CLOSED.items():
            for centre, usual in zip(CENTRES, (6, 9, 41, 22), strict=True):
                tenths = max(5, usual * size // 10 + int(6 * random.random()) - 3)
                heads.append((period, entity, centre, _german(tenths, 1)))
            for account, centre, usual, other in POSTINGS:
                number += 1
                cents = int(usual * size * (0.9 + 0.2 * random.random()) * (1.04 if year == 2026 else 1)) // 100
                day = f"{1 + int(28 * random.random()):02}.{month:02}.{year}"
                name = CHART[account][0]
                lines.append(
                    (f"{number}-1", day, entity, account, centre, currency, _german(cents, 2), f"{name} {period}")
                )
                lines.append((f"{number}-2", day, entity, other, "", currency, _german(cents, 2), f"Gegenkonto {name}"))
        names = ("Belegnummer", "Buchungsdatum", "Gesellschaft", "Konto", "Kostenstelle", "Währung", "Betrag", "Text")
        yield f"data/gl-{period}.csv", _german_csv(names, lines)
    yield "data/rates.csv", _german_csv(("Monat", "Währung", "Durchschnitt", "Stichtag"), rates)
    yield "data/headcount.csv", _german_csv(("Monat", "Gesellschaft", "Kostenstelle", "Köpfe"), heads)
    chart = [(account, *facts) for account, facts in CHART.items()]
    yield "data/accounts.csv", _german_csv(("Konto", "Bezeichnung", "Zeile", "Bericht"), chart)
    yield "data/report_lines.csv", _german_csv(("Zeile", "Titel", "Summe", "Position"), TREE)
    budget: list[Sequence[object]] = []
    for entity, (_, size) in CLOSED.items():
        for line in ("R10", "R20", "C10", "C20", "C30"):
            usual = sum(cents for account, _, cents, _ in POSTINGS if CHART[account][1] == line) * size // 100
            planned = [usual * (98 + int(9 * random.random())) // 100 // 100_000 * 100_000 for _ in GERMAN_MONTHS]
            budget.append((entity, line, *(_german(cents, 2) for cents in planned)))
    yield "data/budget.csv", _german_csv(("Gesellschaft", "Zeile", *GERMAN_MONTHS), budget)


def _german(units: int, places: int) -> str:
    """A number of units of the last place as `1.234,56`."""
    whole, fraction = divmod(abs(units), 10**places)
    return f"{'-' if units < 0 else ''}{whole:,}".replace(",", ".") + f",{fraction:0{places}}"


def _german_csv(names: Sequence[str], rows: Iterable[Sequence[object]]) -> bytes:
    return _csv(names, rows, delimiter=";").decode("utf-8").encode("cp1252")


LAKE_ORDERS = {"2026-01": 2_950, "2026-02": 3_110}


def make_lake() -> Iterator[tuple[str, bytes]]:
    """Orders of two months and their customers as Delta tables; the orders are partitioned by period and region."""
    random = Random(2026)
    customers = [
        {"id": f"C{number:04}", "name": f"Customer {number}", "tier": _pick(random, TIERS)} for number in range(1, 301)
    ]
    columns = {"id": "string", "name": "string", "tier": "string"}
    yield from _delta("data/bronze/customers", columns, {(): customers})
    orders: dict[tuple[tuple[str, str], ...], list[Mapping[str, object]]] = {}
    number = 0
    for period, (start, days) in MONTHS.items():
        for _ in range(LAKE_ORDERS[period]):
            number += 1
            region = _pick(random, REGIONS)
            order = {
                "order_id": f"SO-{number:06}",
                "order_date": start + timedelta(days=int(random.random() * days)),
                "customer_id": _pick(random, customers)["id"],
                "status": "cancelled" if random.random() < 0.06 else "active",
                "amount": _money(_pick(random, PRICES) * (1 + int(random.random() * 9))),
            }
            orders.setdefault((("_period", period), ("region", region)), []).append(order)
    columns = {
        "order_id": "string",
        "order_date": "date",
        "customer_id": "string",
        "status": "string",
        "amount": "money",
    }
    yield from _delta("data/bronze/orders", columns, orders)


def _delta(
    folder: str,
    columns: Mapping[str, str],
    rows: Mapping[tuple[tuple[str, str], ...], Sequence[Mapping[str, object]]],
) -> Iterator[tuple[str, bytes]]:
    """A Delta table of one version: a file for each set of values that it is partitioned by, and a log."""
    keys = [name for name, _ in next(iter(rows))]
    types = {**columns, **dict.fromkeys(keys, "string")}
    fields = [
        {"name": name, "type": "decimal(15,2)" if kind == "money" else kind, "nullable": True, "metadata": {}}
        for name, kind in types.items()
    ]
    metadata = {
        "id": str(UUID(bytes=sha256(folder.encode()).digest()[:16])),
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": fields}),
        "partitionColumns": keys,
        "configuration": {},
        "createdTime": 0,
    }
    log: list[dict[str, object]] = [
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
        {"metaData": metadata},
    ]
    for values, part in rows.items():
        content = _parquet(part, **columns)
        path = "/".join([*(f"{name}={value}" for name, value in values), "part-00000.parquet"])
        yield f"{folder}/{path}", content
        stats = json.dumps({"numRecords": len(part)})
        add = {"path": path, "partitionValues": dict(values), "size": len(content), "modificationTime": 0}
        log.append({"add": {**add, "dataChange": True, "stats": stats}})
    yield f"{folder}/_delta_log/{0:020}.json", "".join(f"{json.dumps(action)}\n" for action in log).encode()


SAMPLES: Mapping[str, Callable[[], Iterable[tuple[str, bytes]]]] = {
    "sales": make_sales,
    "fx": make_fx,
    "close": make_close,
    "lake": make_lake,
}
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


def _csv(names: Sequence[str], rows: Iterable[Sequence[object]], *, delimiter: str = ",") -> bytes:
    import csv

    text = io.StringIO()
    writer = csv.writer(text, delimiter=delimiter, lineterminator="\n")
    writer.writerow(names)
    writer.writerows(rows)
    return text.getvalue().encode()

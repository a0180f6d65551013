"""What a destination is called."""

from __future__ import annotations

import pytest

from dobonomodo.plan import Destination, Location


@pytest.mark.parametrize(
    ("destination", "shown", "name"),
    [
        (Destination("parquet", "orders", "lake"), "lake:orders", "orders"),
        (Destination("parquet", "sales/orders", "lake"), "lake:sales/orders", "orders"),
        (Destination("database", "orders", "db", "reporting"), "db:reporting.orders", "orders"),
        (Destination("csv", "out/orders/"), "csv:out/orders/", "orders"),
    ],
)
def test_names(destination: Destination, shown: str, name: str) -> None:
    assert (str(destination), destination.name) == (shown, name)


@pytest.mark.parametrize(
    ("location", "shown"),
    [
        (Location("lake", "parquet", path="a/b.parquet", period="2026-01"), "lake:a/b.parquet"),
        (Location("db", "database", table="t"), "db:t"),
        (Location("db", "database", table="t", schema="s"), "db:s.t"),
    ],
)
def test_locations(location: Location, shown: str) -> None:
    assert str(location) == shown

"""What publishing together means, for outputs that go to one place and to several."""

from __future__ import annotations

from pathlib import Path

from dobonomodo.model import DataSource
from dobonomodo.plan.destination import Destination, Together
from dobonomodo.storage.catalog_table import CatalogTableStorage
from dobonomodo.storage.catalogue import SEVERAL_PLACES, Storages
from dobonomodo.storage.csv import CsvStorage
from dobonomodo.storage.database import DatabaseStorage
from dobonomodo.storage.iceberg import AT_ONCE, ONE_BY_ONE

SOURCES = {
    "lake": DataSource.from_data({"id": "lake", "type": "csv", "options": {"path_prefix": "lake"}}),
    "base": DataSource.from_data({"id": "base", "type": "database", "options": {"url": "postgresql://h/d"}}),
    "ice": DataSource.from_data(
        {"id": "ice", "type": "iceberg", "options": {"uri": "sqlite:///c.db", "warehouse": "w"}}
    ),
    "rest": DataSource.from_data({"id": "rest", "type": "iceberg", "options": {"uri": "http://h", "warehouse": "w"}}),
    "hub": DataSource.from_data({"id": "hub", "type": "table", "options": {"catalog": "main"}}),
}
LAKE = [Destination("csv", name, "lake") for name in ("a", "b")]
BASE = [Destination("database", name, "base") for name in ("a", "b")]
HUB = [Destination("table", name, "hub") for name in ("a", "b")]
OWN = [Destination("csv", name) for name in ("a", "b")]


def together(*destinations: Destination, sandbox: Path | DataSource | None = None) -> Together:
    return Storages(Path("/w"), SOURCES, sandbox).together(destinations)


def test_one_place_says_itself_what_it_means() -> None:
    assert together(*LAKE) == Together(CsvStorage.together)
    assert together(*BASE) == Together(DatabaseStorage.together)
    assert together(*HUB) == Together(CatalogTableStorage.together)
    assert len({CsvStorage.together, DatabaseStorage.together, CatalogTableStorage.together}) == 3


def test_what_a_catalog_offers_is_not_known_to_a_plan() -> None:
    def iceberg(source: str) -> Together:
        return together(*(Destination("iceberg", name, source) for name in ("a", "b")))

    assert iceberg("ice") == Together(ONE_BY_ONE)
    assert iceberg("rest") == Together(f"{AT_ONCE}, else {ONE_BY_ONE}")


def test_several_places_need_an_intent() -> None:
    files, tables = CsvStorage.together, DatabaseStorage.together
    assert together(LAKE[0], BASE[0]) == Together(SEVERAL_PLACES, {"lake": files, "base": tables})
    found = together(*LAKE, BASE[0], OWN[0])
    assert found == Together(SEVERAL_PLACES, {"lake": files, "base": tables, "csv:a": files})


def test_every_location_of_its_own_is_a_place() -> None:
    assert together(*OWN) == Together(SEVERAL_PLACES, dict.fromkeys(("csv:a", "csv:b"), CsvStorage.together))


def test_drafts_are_published_where_they_are_written() -> None:
    # Tables become files; the folder for locations of their own is one place.
    assert together(*BASE, sandbox=Path("/s")) == Together(CsvStorage.together)
    assert together(*OWN, sandbox=Path("/s")) == Together(CsvStorage.together)
    folders = dict.fromkeys(("lake", "base"), CsvStorage.together)
    assert together(LAKE[0], BASE[0], sandbox=Path("/s")) == Together(SEVERAL_PLACES, folders)
    assert together(*LAKE, *BASE, sandbox=SOURCES["base"]) == Together(DatabaseStorage.together)

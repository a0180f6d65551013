"""What a name refers to: C-09, C-10, C-36."""

from __future__ import annotations

import pytest

from dobonomodo.formula import ColumnRef, Columns, Scope
from dobonomodo.formula.types import DATE, INTEGER, TEXT
from tests.unit.formula.orders import columns_from

OWN = columns_from(Id="integer", name="string")
FX = columns_from(id="date", Rate="decimal")
SCOPE = Scope(columns=OWN, table="Orders", joined={"Fx": FX, "FX2": FX})


@pytest.mark.parametrize(
    ("name", "qualifier", "found"),
    [
        ("Id", None, ColumnRef("Id", None, INTEGER)),
        ("ID", None, ColumnRef("Id", None, INTEGER)),
        ("id", "orders", ColumnRef("Id", None, INTEGER)),
        ("NAME", "ORDERS", ColumnRef("name", None, TEXT)),
        ("id", "Fx", ColumnRef("id", "Fx", DATE)),
        ("ID", "fx", ColumnRef("id", "Fx", DATE)),
        ("id", "fx2", ColumnRef("id", "FX2", DATE)),
        # Bare names are the rows' own, whatever is joined.
        ("rate", None, None),
        ("rate", "orders", None),
        ("name", "fx", None),
        ("id", "other", None),
        ("nothing", None, None),
    ],
)
def test_resolve(name: str, qualifier: str | None, found: ColumnRef | None) -> None:
    assert SCOPE.resolve(name, qualifier) == found


def test_the_exact_spelling_comes_first() -> None:
    columns = Columns({"amount": TEXT, "Amount": INTEGER})
    assert [columns.spelling(name) for name in ("amount", "Amount", "AMOUNT")] == ["amount", "Amount", "amount"]


def test_the_exact_alias_comes_first() -> None:
    scope = Scope(joined={"fx": OWN, "FX": FX})
    assert [scope.alias(name) for name in ("fx", "FX", "Fx", "x")] == ["fx", "FX", "fx", None]


def test_synonyms() -> None:
    columns = Columns(
        {"_updated_at": TEXT, "taken": TEXT}, synonyms={"_modified_at": "_updated_at", "TAKEN": "_updated_at"}
    )
    assert columns.spelling("_Modified_At") == "_updated_at"
    assert columns.spelling("taken") == "taken"
    assert list(columns) == ["_updated_at", "taken"]


def test_columns_are_a_mapping_in_order() -> None:
    assert dict(OWN) == {"Id": INTEGER, "name": TEXT}
    assert (len(OWN), list(OWN)) == (2, ["Id", "name"])


def test_case_beyond_ascii() -> None:
    assert Columns({"Größe": TEXT}).spelling("GRÖßE") == "Größe"


def test_nothing_is_visible_in_an_empty_scope() -> None:
    assert Scope().resolve("a") is None
    assert Scope().resolve("a", "b") is None
    assert not Scope().is_main("a")

"""`dobo schema`."""

from __future__ import annotations

import json

import pytest

from tests.unit.cli.conftest import Dobo


@pytest.mark.parametrize("kind", ["workspace", "datasource", "resolver", "calendar", "dataset", "project", None])
def test_schemas_are_json(dobo: Dobo, kind: str | None) -> None:
    result = dobo("schema", *([kind] if kind else []))
    assert (result.code, result.err) == (0, "")
    assert json.loads(result.out)


def test_the_arguments_of_operations_are_in_it(dobo: Dobo) -> None:
    assert "register_as_dataset" in dobo("schema", "project").out

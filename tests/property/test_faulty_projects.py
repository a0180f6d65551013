"""Whatever is missing from a project or stands in the wrong place: there are problems or a plan, and nothing is raised."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from typing import Any

import pytest

from tests.unit.plan.building import plan_text

PROJECT: dict[str, Any] = {
    "project": {
        "id": "p",
        "input_dataset_id": "sales",
        "selectors": {"active": 'status = "active"', "big": "{{active}} AND amount > 10"},
        "resolver_overrides": {"sales": "files"},
        "operations": [
            {
                "seq": 1,
                "type": "update",
                "selector": "{{big}}",
                "arguments": {
                    "joins": [
                        {"alias": "c", "dataset_id": "customers", "on": "c.id = customer_id"},
                        {"alias": "r", "dataset_id": "rates", "dataset_version": 1, "on": "r.country = c.country"},
                    ],
                    "assignments": [
                        {"column": "net", "expression": "amount * r.rate"},
                        {"column": "_labels", "expression": 'CONCAT(_labels, "x")'},
                    ],
                },
            },
            {
                "seq": 2,
                "type": "aggregate",
                "arguments": {
                    "group_by": ["orders._period", "region"],
                    "aggregations": [{"column": "total", "expression": "SUM(net) / COUNT(*)"}],
                },
            },
            {
                "seq": 3,
                "type": "append",
                "arguments": {
                    "source": {"dataset_id": "budget", "dataset_version": 1},
                    "source_selector": "status = 'x'",
                    "aggregation": {
                        "group_by": ["region"],
                        "aggregations": [{"column": "amount", "expression": "SUM(amount)"}],
                    },
                },
            },
            {"seq": 4, "type": "delete", "selector": "amount = 0"},
            {
                "seq": 5,
                "type": "output",
                "selector": "{{active}}",
                "arguments": {
                    "destination": {"datasource_id": "lake", "table": "out"},
                    "columns": ["order_id", "net"],
                    "register_as_dataset": "made",
                },
            },
        ],
    }
}

ODD: tuple[Any, ...] = (
    None, "", " ", 0, -1, 1.5, True, [], {}, [None], {"": None}, [[]], "amount", "{{active}}", "(", "orders", "_row_id", "é\u0301",
    "SUM(amount)", "1/0", "x" * 300, 10**30, [1, "a", {}], {"a": {"b": []}}, "NULL", "'", '"', "\u202e", "sales", "customers", "update",
)  # fmt: skip


def paths(data: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if at:
        yield at
    steps = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in steps:
        yield from paths(value, (*at, key))


ALL = list(paths(PROJECT))


def change(data: Any, path: tuple[Any, ...], value: Any, *, remove: bool) -> None:
    for step in path[:-1]:
        data = data[step]
    if remove:
        del data[path[-1]]
    else:
        data[path[-1]] = value


def survive(data: Any) -> None:
    found = plan_text(json.dumps(data))
    for problem in found.problems:
        assert problem.message()
        problem.hint()
    assert found.plan is not None or found.problems


@pytest.mark.parametrize("path", ALL, ids=lambda path: ".".join(map(str, path)))
def test_without_a_part(path: tuple[Any, ...]) -> None:
    data = copy.deepcopy(PROJECT)
    change(data, path, None, remove=True)
    survive(data)


@pytest.mark.parametrize("path", ALL, ids=lambda path: ".".join(map(str, path)))
def test_with_something_odd_in_its_place(path: tuple[Any, ...]) -> None:
    chance = random.Random(".".join(map(str, path)))
    data = copy.deepcopy(PROJECT)
    change(data, path, chance.choice(ODD), remove=False)
    survive(data)


@pytest.mark.parametrize("seed", range(20))
def test_with_several_faults(seed: int) -> None:
    chance = random.Random(seed)
    data = copy.deepcopy(PROJECT)
    for _ in range(4):
        left = list(paths(data))
        if not left:
            break
        change(data, chance.choice(left), chance.choice(ODD), remove=chance.random() < 0.4)
    survive(data)

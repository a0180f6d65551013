"""The stored rows that an explained row depends on, as a scenario that reproduces it: a test that `dobo test` runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import yaml

from dobonomodo.formula.meaning import Value
from dobonomodo.formula.typed import Literal, walk
from dobonomodo.formula.types import TEXT
from dobonomodo.model.plain import Document
from dobonomodo.plan import DatasetUse, Plan, Step
from dobonomodo.plan.operations import Effect
from dobonomodo.plan.relation import Require, Scan, expressions_of, walk_between, walk_relation
from dobonomodo.plan.system import PERIOD, ROW_ID, is_system
from dobonomodo.why.explain import find_scans, walk_traced
from dobonomodo.why.explanation import plain
from dobonomodo.why.row import StoredRow, Traced, Wanted

TableKey = tuple[str, int, str]
"""A dataset, its version and its table."""


@dataclass(frozen=True, slots=True)
class UsedRows:
    """The rows of one table that an explanation depends on, by their place."""

    use: DatasetUse
    rows: Mapping[int, StoredRow]


def find_used(row: Traced) -> dict[TableKey, UsedRows]:
    """The stored rows that a row was made of, by dataset, version and table."""
    found: dict[TableKey, tuple[DatasetUse, dict[int, StoredRow]]] = {}
    for scan in find_scans(row):
        if isinstance(scan.node, Scan) and scan.stored is not None:
            use = scan.node.use
            _, rows = found.setdefault((use.dataset_id, use.version, use.table), (use, {}))
            rows[scan.stored.number or 0] = scan.stored
    return {key: UsedRows(use, dict(sorted(rows.items()))) for key, (use, rows) in found.items()}


class UsedSource:
    """A source that contains only these rows, at the positions that they have in the inputs."""

    def __init__(self, used: Mapping[TableKey, UsedRows]) -> None:
        self._used = used

    def find(
        self, use: DatasetUse, wanted: Wanted, *, numbers: frozenset[int] | None, columns: frozenset[str] | None
    ) -> Iterator[StoredRow]:
        """Those with wanted values."""
        del columns
        found = self._used.get((use.dataset_id, use.version, use.table))
        for number, row in found.rows.items() if found is not None else ():
            is_at = numbers is None or number in numbers
            if is_at and all(row.values.get(name) in allowed for name, allowed in wanted.items()):
                yield row


class Mask:
    """Replaces texts by others, the same text always by the same, except those that a formula names."""

    def __init__(self, plan: Plan) -> None:
        self._kept = set(_texts_in(plan))
        self._names: dict[str, str] = {}

    def value(self, value: Value) -> Value:
        """A meaningless text instead of a text; other values stay."""
        if not isinstance(value, str) or value in self._kept or not value:
            return value
        return self._names.setdefault(value, f"text {len(self._names) + 1}")

    def rows(self, used: UsedRows) -> UsedRows:
        """Rows with masked text columns."""
        texts = {name.casefold() for name, kind in used.use.columns.items() if kind == TEXT}
        masked = {
            number: replace(
                row,
                values={name: self.value(value) if name in texts else value for name, value in row.values.items()},
            )
            for number, row in used.rows.items()
        }
        return UsedRows(used.use, masked)


def _texts_in(plan: Plan) -> Iterator[str]:
    for step in plan.steps:
        for node in walk_relation(step.top):
            for expression in expressions_of(node):
                for each in walk(expression):
                    if isinstance(each, Literal) and isinstance(each.value, str):
                        yield each.value


def write_scenario(
    name: str,
    snapshot: Document,
    plan: Plan,
    until: Step,
    row: Traced,
    used: Mapping[TableKey, UsedRows],
    expected: Mapping[str, Value],
    *,
    table: str,
) -> str:
    """A scenario as YAML: the definitions of the run, these rows, and the expected row."""
    period = snapshot["period"]
    scenario: dict[str, Any] = {
        "name": name,
        "period": {key: period[key] for key in ("identifier", "start_date", "end_date")},
        "started_at": snapshot["started_at"],
        **({"as_of": snapshot["as_of"]} if snapshot.get("as_of") is not None else {}),
        **({"parameters": dict(snapshot["parameters"])} if snapshot.get("parameters") else {}),
        "datasets": [*_datasets(snapshot, used), *_lookup_tables(snapshot, used)],
        "project": _project(snapshot, plan, until, row),
        "expect": {
            "outputs": {
                table: {
                    "match": "subset",
                    "rows": [{key: plain(value) for key, value in expected.items() if not is_system(key)}],
                }
            }
        },
    }
    return yaml.safe_dump({"scenario": scenario}, sort_keys=False, allow_unicode=True, width=120)


def _datasets(snapshot: Document, used: Mapping[TableKey, UsedRows]) -> Iterator[dict[str, Any]]:
    for each in snapshot["datasets"]:
        document = each["document"]
        main = document["main_table"]
        found = used.get((document["id"], each["version"], main["name"]))
        # Checks of a dataset are about all its rows; where its rows are stored does not matter here.
        own = {key: value for key, value in document.items() if key not in ("checks", "resolver_id")}
        own["main_table"] = {**main, "columns": [_without(column, "source") for column in main["columns"]]}
        yield {"dataset": own, "version": each["version"], "rows": list(_rows(found)) if found is not None else []}


def _lookup_tables(snapshot: Document, used: Mapping[TableKey, UsedRows]) -> Iterator[dict[str, Any]]:
    """Tables that a dataset looks up in itself; a scenario takes their rows from a dataset of their name."""
    main = {each["document"]["main_table"]["name"] for each in snapshot["datasets"]}
    for (_, _, table), found in used.items():
        if table not in main:
            columns = [{"name": name, "type": str(kind)} for name, kind in found.use.columns.items()]
            mode = {"temporal_mode": found.use.temporal_mode} if found.use.temporal_mode is not None else {}
            document = {"id": table, "main_table": {"name": table, **mode, "columns": columns}}
            yield {"dataset": document, "rows": list(_rows(found))}


def _rows(used: UsedRows) -> Iterator[dict[str, object]]:
    spelled = {name.casefold(): name for name in used.use.columns}
    for row in used.rows.values():
        # Columns of the dataset may be left out where they are NULL; for those of the system it matters that they are stored.
        given = {
            spelled.get(name, name): plain(value)
            for name, value in row.values.items()
            if value is not None or (name not in spelled and name != ROW_ID)
        }
        if used.use.temporal_mode == "period" and row.period is not None:
            given.setdefault(PERIOD, row.period)
        yield given


def _project(snapshot: Document, plan: Plan, until: Step, row: Traced) -> dict[str, Any]:
    """The project up to the output, without other outputs and without checks that change no row.

    An operation that fails where rows are missing, and that made no row of the explanation, selects none.
    """
    kept = {step.spec.seq for step in plan.steps if _is_kept(step, until)}
    nodes = {id(each.node) for each in walk_traced(row)}
    idle = {step.spec.seq for step in plan.steps if _is_strict(step) and id(step.lowered.added) not in nodes}
    document = snapshot["project"]["document"]
    own = {key: value for key, value in document.items() if key not in ("resolver_overrides", "calendar_id", "publish")}
    own["operations"] = [
        {**each, "selector": "FALSE"} if each["seq"] in idle else each
        for each in document["operations"]
        if each["seq"] in kept
    ]
    return own


def _is_strict(step: Step) -> bool:
    return step.lowered.added is not None and any(
        isinstance(node, Require) for node in walk_between(step.top, step.before.node)
    )


def _is_kept(step: Step, until: Step) -> bool:
    if step is until:
        return True
    check = step.lowered.check
    if step.spec.seq > until.spec.seq or Effect.WRITES in step.facts.effect:
        return False
    return check is None or check.excludes


def _without(document: Document, key: str) -> dict[str, Any]:
    return {name: value for name, value in document.items() if name != key}

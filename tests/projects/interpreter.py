"""A reference interpreter of whole projects in plain Python, row by row, straight from the rules of the semantics.

Shares no code with the package. It takes a project and datasets as the plain documents that a user would write, with
one addition: each expression is a ``Formula``, a text that knows its tree. Rows are dicts.

A row has an identity, which is not its ``_row_id`` but says when two rows of two outputs are the same row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any

from tests.projects.expression import (
    DECIMAL,
    INTEGER,
    NULL,
    OVER,
    TEXT,
    TIMESTAMP,
    Column,
    Formula,
    Node,
    Read,
    Windowed,
    as_kind,
    compute_windows,
    evaluate,
    qualifiers,
    summarise,
    walk,
)

ALWAYS = (
    "_deleted",
    "_created_at",
    "_updated_at",
    "_source_dataset_id",
    "_source_table",
    "_operation_seq",
    "_labels",
)
"""System columns of every row, beside ``_row_id``."""
TEMPORAL: dict[str | None, tuple[str, ...]] = {"period": ("_period",), "bitemporal": ("_period_from", "_period_to")}

MULTIPLE = "JOIN_MULTIPLE_MATCHES"
OTHER_PERIODS: dict[str, tuple[tuple[str, date], ...]] = {
    "previous": (("2025-12", date(2025, 12, 1)),),
    "previous_year": (("2025-01", date(2025, 1, 1)),),
    "year_to_date": (("2026-01", date(2026, 1, 1)),),
    "{'last': 2}": (("2025-12", date(2025, 12, 1)), ("2026-01", date(2026, 1, 1))),
}
"""What a reading of a run for 2026-01 reads instead, with the first day of each period."""
ALLOCATION = "ALLOCATION"


@dataclass(frozen=True)
class Period:
    """What a run is for."""

    identifier: str
    start_date: date
    as_of: date | None = None
    """At which date bitemporal rows must be valid; the start of the period if left out."""


@dataclass
class Row:
    """A row of the working dataset, or of a source."""

    identity: tuple[Any, ...]
    values: dict[str, Any]
    stored_id: str | None = None
    lookups: dict[str, dict[str, Any]] = field(default_factory=dict)
    """By alias of a lookup of the dataset: the row that was found, nothing where none was."""

    @property
    def active(self) -> bool:
        return not self.values["_deleted"]

    def read(self, qualifier: str | None, name: str) -> Any:
        """The value of a column."""
        return self.values[name] if qualifier is None else self.lookups[qualifier].get(name)


@dataclass(frozen=True)
class Written:
    """What an output wrote: whole rows as they were, and the columns that were asked for."""

    seq: int
    columns: tuple[str, ...]
    """``_row_id`` may be among them; rows do not have it."""
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Counts:
    """What an operation did to how many rows; None where the rules do not say."""

    rows_in: int
    selected: int | None
    added: int
    deleted: int
    rows_out: int


@dataclass(frozen=True)
class Failure:
    """A way in which the run fails; when there are several, any may be reported."""

    kind: str
    seq: int | None
    """The operation; None for a lookup before the first, which shows at whatever output comes next."""
    alias: str | None = None
    count: int | None = None


@dataclass
class Interpreted:
    """The result of a run. After a failure, ``outputs`` are those that were written before."""

    outputs: list[Written] = field(default_factory=list)
    counts: dict[int, Counts] = field(default_factory=dict)
    failures: list[Failure] = field(default_factory=list)
    totals: dict[int, dict[str, Decimal]] = field(default_factory=dict)
    """After each operation, and after loading under 0: the sum of every numeric column over the active rows."""
    joins: dict[tuple[int, str], Joined] = field(default_factory=dict)
    """By operation, 0 for a lookup of the dataset, and alias."""


@dataclass
class Joined:
    """The rows that took part in a join, by whether they found a row."""

    matched: int = 0
    unmatched: list[Row] = field(default_factory=list)

    def note(self, row: Row, matches: Sequence[Row]) -> None:
        if matches:
            self.matched += 1
        else:
            self.unmatched.append(Row(row.identity, dict(row.values), lookups=row.lookups))


def interpret(
    project: Mapping[str, Any], datasets: Sequence[Mapping[str, Any]], *, period: Period, clock: datetime
) -> Interpreted:
    """Run a project. Each dataset is ``{"dataset": its document, "version": n, "rows": [...]}``."""
    return _Run(project, datasets, period, clock).run()


class _Run:
    def __init__(
        self, project: Mapping[str, Any], datasets: Sequence[Mapping[str, Any]], period: Period, clock: datetime
    ) -> None:
        self.project, self.datasets, self.period, self.clock = project, datasets, period, clock
        self.result = Interpreted()
        self.given = self.find(project["input_dataset_id"], None)
        self.table = self.given["dataset"]["main_table"]
        self.columns: dict[str, str] = {each["name"]: kind_of(each["type"]) for each in self.table["columns"]}
        """Business columns with their kinds, in order."""
        self.temporal = TEMPORAL.get(self.table.get("temporal_mode"), ())
        self.rows: list[Row] = []

    def run(self) -> Interpreted:
        self.rows = self.load(self.given)
        self.join_lookups(self.rows, self.given["dataset"].get("lookups", ()))
        self.sum_up(0)
        for operation in sorted(self.project["operations"], key=lambda each: each["seq"]):
            getattr(self, operation["type"])(operation, operation.get("arguments", {}))
            self.sum_up(operation["seq"])
        return self.result

    def sum_up(self, seq: int) -> None:
        numeric = [name for name, kind in self.columns.items() if kind in (INTEGER, DECIMAL)]
        active = [row for row in self.rows if row.active]
        self.result.totals[seq] = {name: sum_of(row.values[name] for row in active) for name in numeric}

    # --- datasets

    def find(self, dataset_id: str, version: int | None) -> Mapping[str, Any]:
        """A pinned version, or the highest that is active (C-55)."""
        versions = [
            each
            for each in self.datasets
            if each["dataset"]["id"] == dataset_id
            and (each["version"] == version if version else each["dataset"].get("status", "active") == "active")
        ]
        return max(versions, key=lambda each: each["version"])

    def load(self, given: Mapping[str, Any], span: Any = None) -> list[Row]:
        """The rows of the run's period, or of others, with their system columns (semantics, Part 3)."""
        dataset, loaded = given["dataset"], []
        table = dataset["main_table"]
        mode = table.get("temporal_mode")
        for number, stored in enumerate(given["rows"]):
            if not self.belongs(stored, mode, OTHER_PERIODS[str(span)] if span is not None else None):
                continue
            values = {each["name"]: stored.get(each["name"]) for each in table["columns"]}
            values |= {
                "_deleted": bool(stored.get("_deleted")),
                "_created_at": _first(stored.get("_created_at"), self.clock),
                "_updated_at": _first(stored.get("_updated_at"), stored.get("_modified_at"), self.clock),
                "_source_dataset_id": _first(
                    stored.get("_source_dataset_id"), stored.get("_source_dataset"), dataset["id"]
                ),
                "_source_table": _first(stored.get("_source_table"), table["name"]),
                "_operation_seq": 0,
                "_labels": _first(stored.get("_labels"), ""),
            }
            if mode == "period":
                values["_period"] = stored["_period"]
            if mode == "bitemporal":
                values["_period_from"], values["_period_to"] = _interval(stored)
            loaded.append(Row(("loaded", dataset["id"], given["version"], number), values, stored.get("_row_id")))
        return loaded

    def belongs(self, stored: Mapping[str, Any], mode: str | None, others: Sequence[tuple[str, date]] | None) -> bool:
        """R-162, R-163, R-164, C-57."""
        if mode == "period":
            periods = [self.period.identifier] if others is None else [name for name, _ in others]
            return stored["_period"] in periods
        if mode == "bitemporal":
            at = (self.period.as_of or self.period.start_date) if others is None else others[-1][1]
            start, end = _interval(stored)
            return start is not None and start <= at and (end is None or end > at)
        return True

    def visible(self, dataset_id: str, version: int | None, span: Any = None) -> tuple[Mapping[str, Any], list[Row]]:
        """The rows of another dataset that are not deleted (C-37, C-56)."""
        given = self.find(dataset_id, version)
        return given, [row for row in self.load(given, span) if row.active]

    def join_lookups(
        self, rows: Sequence[Row], lookups: Sequence[Mapping[str, Any]], *, seq: int | None = None
    ) -> None:
        """C-82."""
        for lookup in lookups:
            _, source = self.visible(lookup["target"]["id"], None)
            for row in rows:
                pairs = [(each["source_column"], each["target_column"]) for each in lookup["join_conditions"]]
                matches = [
                    each
                    for each in source
                    if all(
                        row.values[mine] is not None and row.values[mine] == each.values[theirs]
                        for mine, theirs in pairs
                    )
                ]
                if row.active:
                    self.require_one(matches, seq, lookup["alias"])
                    self.result.joins.setdefault((seq or 0, lookup["alias"]), Joined()).note(row, matches)
                row.lookups[lookup["alias"]] = matches[0].values if len(matches) == 1 else {}

    def require_one(self, matches: Sequence[Row], seq: int | None, alias: str) -> None:
        if len(matches) > 1:
            failure = Failure(MULTIPLE, seq, alias, len(matches))
            if failure not in self.result.failures:
                self.result.failures.append(failure)

    # --- operations

    def update(self, operation: Mapping[str, Any], arguments: Mapping[str, Any]) -> None:
        """C-23 parallel, C-32 at most one match, C-33 no match is NULL, R-013."""
        seq = operation["seq"]
        selector = self.selector(operation)
        active = [row for row in self.rows if row.active]
        selected, joined = self.join(active, arguments.get("joins", ()), selector, seq)
        assignments = [(self.spelling(each["column"]), each["expression"].tree) for each in arguments["assignments"]]
        windows = [each for _, tree in assignments for each in walk(tree) if isinstance(each, Windowed)]
        over = compute_windows(windows, [_reader(row, joined[id(row)]) for row in selected])
        readers = [_reader(row, {**joined[id(row)], OVER: values}) for row, values in zip(selected, over, strict=True)]
        new = [{column: evaluate(tree, read) for column, tree in assignments} for read in readers]
        for column, tree in assignments:
            self.widen(column, tree.kind)
        for row, values in zip(selected, new, strict=True):
            if values.get("_labels", "") is None:  # labels are never NULL (C-18): those of before stay
                del values["_labels"]
            row.values |= {column: self.fit(column, value) for column, value in values.items()}
            row.values["_updated_at"] = self.clock
        self.count(seq, selected=len(selected))

    def join(
        self,
        active: Sequence[Row],
        joins: Sequence[Mapping[str, Any]],
        selector: Node | None,
        seq: int,
    ) -> tuple[list[Row], dict[int, dict[str, dict[str, Any]]]]:
        """The selected rows with what is joined to them, by alias; only they need a match, unless a join selects them."""
        aliases = {join["alias"] for join in joins}
        uses_alias = selector is not None and bool(qualifiers(selector) & aliases)
        taking_part = list(active) if uses_alias else [row for row in active if _chosen(selector, row.read)]
        joined: dict[int, dict[str, dict[str, Any]]] = {id(row): {} for row in taking_part}
        for join in joins:
            _, source = self.visible(join["dataset_id"], join.get("dataset_version"), join.get("period"))
            for row in taking_part:
                matches = [
                    each
                    for each in source
                    if _chosen(join["on"].tree, _reader(row, {**joined[id(row)], join["alias"]: each.values}))
                ]
                self.require_one(matches, seq, join["alias"])
                self.result.joins.setdefault((seq, join["alias"]), Joined()).note(row, matches)
                joined[id(row)][join["alias"]] = matches[0].values if len(matches) == 1 else {}
        return [row for row in taking_part if _chosen(selector, _reader(row, joined[id(row)]))], joined

    def delete(self, operation: Mapping[str, Any], arguments: Mapping[str, Any]) -> None:
        """R-046, C-38: rows that were deleted before keep their time."""
        selected = self.select(operation)
        for row in selected:
            row.values |= {"_deleted": True, "_updated_at": self.clock}
        self.count(operation["seq"], selected=len(selected), deleted=len(selected))

    def aggregate(self, operation: Mapping[str, Any], arguments: Mapping[str, Any]) -> None:
        """R-126 to R-143; new columns come even without a group (C-44)."""
        selected = self.select(operation)
        dataset = self.given["dataset"]
        origin = {"_source_dataset_id": dataset["id"], "_source_table": self.table["name"]}
        kinds = self.kinds_of(arguments)
        if (column := arguments.get("level_column")) is None:
            groups = self.group(arguments, selected)
            made: list[tuple[tuple[Any, ...], dict[str, Any]]]
            made = [(("made", operation["seq"], keys), {**values, **origin}) for keys, values in groups]
        else:
            levels = self.roll_up(operation["seq"], arguments, selected)
            made = [
                (("made", operation["seq"], level, keys), {**values, **origin, column: level})
                for level, keys, values in levels
            ]
            kinds = {column: TEXT, **kinds}
        self.take_in(operation["seq"], made, kinds, selected=len(selected))

    def roll_up(
        self, seq: int, arguments: Mapping[str, Any], rows: Sequence[Row]
    ) -> Iterator[tuple[str, Any, dict[str, Any]]]:
        """Groups of every level, each computed by itself: a subtotal keeps some keys, a node those below it."""
        keys: list[Column] = [each.tree for each in arguments["group_by"]]
        names = [_flat(key) for key in keys]
        levels = [(names[-1], len(keys))]
        for each in arguments.get("rollup", ()):
            name = each if each == "all" else _flat(each.tree)
            levels.append((name, 0 if name == "all" else names.index(name) + 1))
        tree = arguments.get("hierarchy")
        above: dict[Any, list[Any]] = {}
        at = -1
        if tree is not None:
            _, nodes = self.visible(tree["dataset_id"], tree.get("dataset_version"))
            found = ancestors([(row.values[tree["child"]], row.values[tree["parent"]]) for row in nodes])
            if found is None:
                self.result.failures.append(Failure("HIERARCHY_CYCLE", seq))
                return
            above, at = found, [key.name if key.qualifier is None else None for key in keys].index(tree["column"])
        for level, count in levels:
            members: dict[tuple[str, tuple[Any, ...]], list[Row]] = {}
            for row in rows:
                own = [row.read(key.qualifier, key.name) for key in keys]
                kept = [value if number < count else None for number, value in enumerate(own)]
                members.setdefault((level, tuple(kept)), []).append(row)
                for node in above.get(own[at], ()) if 0 <= at < count else ():
                    members.setdefault((f"{level} total", (*kept[:at], node, *kept[at + 1 :])), []).append(row)
            for (name, values), group in members.items():
                by_key = {(key.qualifier, key.name): value for key, value in zip(keys, values, strict=True)}
                columns = {name: value for (qualifier, name), value in by_key.items() if qualifier is None}
                for each in arguments["aggregations"]:
                    columns[each["column"]] = summarise(each["expression"].tree, [row.read for row in group], by_key)
                yield name, values, columns

    def append(self, operation: Mapping[str, Any], arguments: Mapping[str, Any]) -> None:
        """R-144 to R-167, C-51."""
        seq, source = operation["seq"], arguments["source"]
        given, rows = self.visible(source["dataset_id"], source.get("dataset_version"), source.get("period"))
        selector = _tree(arguments.get("source_selector"))
        dataset = given["dataset"]
        used = {name for tree in _trees(arguments) for name in qualifiers(tree)}
        self.join_lookups(rows, [each for each in dataset.get("lookups", ()) if each["alias"] in used], seq=seq)
        kept, joined = self.join(rows, source.get("joins", ()), selector, seq)
        for row in kept:
            row.lookups |= joined[id(row)]
        origin = {"_source_dataset_id": dataset["id"], "_source_table": dataset["main_table"]["name"]}
        if (grouping := arguments.get("aggregation")) is not None:
            names = [each.tree.name for each in grouping["group_by"]]
            made = [
                (("made", seq, keys), {self.spelling(name): value for name, value in values.items()} | origin)
                for keys, grouped in self.group(grouping, kept)
                for values in [{**dict(zip(names, keys, strict=True)), **grouped}]
            ]
            kinds = self.kinds_of(grouping) | {each.tree.name: each.tree.kind for each in grouping["group_by"]}
            self.take_in(seq, made, kinds, selected=None)
            return
        declared = dataset["main_table"]["columns"]
        kinds = {self.spelling(each["name"]): kind_of(each["type"]) for each in declared}
        carried = [
            name for name in self.temporal if name in TEMPORAL.get(dataset["main_table"].get("temporal_mode"), ())
        ]
        made = []
        for row in kept:
            values = {self.spelling(each["name"]): row.values[each["name"]] for each in declared}
            values |= {name: row.values[name] for name in (*carried, "_labels")}
            made.append((("made", seq, row.identity), values | origin))
        self.take_in(seq, made, kinds, selected=len(made))

    def allocate(self, operation: Mapping[str, Any], arguments: Mapping[str, Any]) -> None:
        """Finance, section 2: largest remainder, ties by driver, then natural key, then position."""
        seq, column, places = operation["seq"], self.spelling(arguments["amount"]), arguments["round"]
        source, pool_becomes = arguments["receivers"], arguments.get("pool", "delete")
        given, rows = self.visible(source["dataset_id"], source.get("dataset_version"))
        key = given["dataset"].get("natural_key_columns", ())
        receivers = [row for row in rows if _chosen(_tree(source.get("selector")), row.read)]
        sets = [(self.spelling(each["column"]), each["expression"].tree) for each in arguments.get("set", ())]
        made: list[tuple[tuple[Any, ...], dict[str, Any]]] = []
        distributed: list[Row] = []
        copied = [*self.columns, "_labels", *self.temporal]
        for pool in self.select(operation):
            if pool.values[column] is None:
                continue
            amount = Fraction(pool.values[column]) * 10**places
            matched = [
                (row, _reader(pool, {"receivers": row.values}))
                for row in receivers
                if _chosen(_tree(arguments.get("match")), _reader(pool, {"receivers": row.values}))
            ]
            drivers = [evaluate(arguments["driver"].tree, read) for _, read in matched]
            keys = [tuple(row.values[name] for name in key) for row, _ in matched]
            repeated = bool(key) and len(set(keys)) < len(keys)
            if repeated or amount.denominator != 1 or any(each is None or each < 0 for each in drivers):
                self.result.failures.append(Failure(ALLOCATION, seq))
                continue
            if not sum(drivers):
                if arguments.get("no_receivers", "stop") == "stop":
                    self.result.failures.append(Failure(ALLOCATION, seq))
                continue
            order = [
                (*((value is not None, value) for value in values), row.identity[-1])
                for values, (row, _) in zip(keys, matched, strict=True)
            ]
            parts = share(int(amount), [Fraction(each) for each in drivers], order)
            values = {name: pool.values[name] for name in copied}
            for (row, read), part in zip(matched, parts, strict=True):
                given_values = {name: evaluate(tree, read) for name, tree in sets}
                if given_values.get("_labels", "") is None:
                    del given_values["_labels"]
                exact = Decimal(part).scaleb(-places) if places else part
                made.append((("made", seq, pool.identity, row.identity), {**values, column: exact, **given_values}))
            if pool_becomes == "offset":
                made.append((("made", seq, pool.identity), {**values, column: -pool.values[column]}))
            distributed.append(pool)
        origin = {"_source_dataset_id": self.given["dataset"]["id"], "_source_table": self.table["name"]}
        kinds = {name: tree.kind for name, tree in sets} | {column: DECIMAL if places else self.columns[column]}
        deleted = distributed if pool_becomes == "delete" else []
        for pool in deleted:
            pool.values |= {"_deleted": True, "_updated_at": self.clock}
        rows_made = [(identity, {**values, **origin}) for identity, values in made]
        self.take_in(seq, rows_made, kinds, selected=len(distributed), deleted=len(deleted))

    def output(self, operation: Mapping[str, Any], arguments: Mapping[str, Any]) -> None:
        """C-62, C-63; nothing is written once the run has failed."""
        selector = self.selector(operation)
        everything = arguments.get("include_deleted", False)
        rows = [row for row in self.rows if (everything or row.active) and _chosen(selector, row.read)]
        asked = arguments.get("columns")
        columns = tuple(each.tree.name for each in asked) if asked else (*self.columns, "_row_id", *self.system())
        if not self.result.failures:
            shown = tuple(Row(row.identity, dict(row.values), row.stored_id) for row in rows)
            self.result.outputs.append(Written(operation["seq"], columns, shown))
        self.count(operation["seq"], selected=len(rows))

    # --- what operations share

    def system(self) -> tuple[str, ...]:
        return (*ALWAYS, *self.temporal)

    def spelling(self, name: str) -> str:
        """Columns are found in any case and keep their own (C-10)."""
        known = {each.casefold(): each for each in (*self.columns, *self.system())}
        return known.get(name.casefold(), name)

    def selector(self, operation: Mapping[str, Any]) -> Node | None:
        return _tree(operation.get("selector"))

    def select(self, operation: Mapping[str, Any]) -> list[Row]:
        """Active rows for which the selector is true (C-21, C-40)."""
        selector = self.selector(operation)
        return [row for row in self.rows if row.active and _chosen(selector, row.read)]

    def group(self, grouping: Mapping[str, Any], rows: Sequence[Row]) -> Iterator[tuple[Any, dict[str, Any]]]:
        """The key and the columns of each group; NULL is a key like any other (R-137)."""
        keys: list[Column] = [each.tree for each in grouping["group_by"]]
        groups: dict[tuple[Any, ...], list[Row]] = {}
        for row in rows:
            groups.setdefault(tuple(row.read(key.qualifier, key.name) for key in keys), []).append(row)
        for values, members in groups.items():
            by_key = {(key.qualifier, key.name): value for key, value in zip(keys, values, strict=True)}
            columns = {name: value for (qualifier, name), value in by_key.items() if qualifier is None}
            for each in grouping["aggregations"]:
                columns[each["column"]] = summarise(each["expression"].tree, [row.read for row in members], by_key)
            yield values, columns

    def kinds_of(self, grouping: Mapping[str, Any]) -> dict[str, str]:
        return {each["column"]: each["expression"].tree.kind for each in grouping["aggregations"]}

    def take_in(
        self,
        seq: int,
        made: Sequence[tuple[tuple[Any, ...], Mapping[str, Any]]],
        kinds: Mapping[str, str],
        *,
        selected: int | None,
        deleted: int = 0,
    ) -> None:
        """New rows below the others: system columns of their own, NULL where they have no value."""
        for name, kind in kinds.items():
            if not name.startswith("_"):
                self.widen(self.spelling(name), kind)
        aliases = [lookup["alias"] for lookup in self.given["dataset"].get("lookups", ())]
        system = {
            "_deleted": False,
            "_created_at": self.clock,
            "_updated_at": self.clock,
            "_operation_seq": seq,
            "_labels": "",
        }
        before = len(self.rows)
        for identity, given in made:
            own = {self.spelling(name): value for name, value in given.items()}
            values: dict[str, Any] = dict.fromkeys((*self.columns, *self.system())) | system
            values |= {name: self.fit(name, value) for name, value in own.items() if name in values}
            self.rows.append(Row(identity, values, lookups={alias: {} for alias in aliases}))
        self.count(seq, rows_in=before, selected=selected, added=len(made), deleted=deleted)

    def widen(self, column: str, kind: str) -> None:
        """A column that gets a value of some kind: new ones are NULL elsewhere, numbers become decimal (C-26, R-025)."""
        if column in self.system():
            return
        if column not in self.columns:
            self.columns[column] = TEXT if kind == NULL else kind
            for row in self.rows:
                row.values[column] = None
        elif (self.columns[column], kind) == (INTEGER, DECIMAL):
            self.columns[column] = DECIMAL
            for row in self.rows:
                row.values[column] = self.fit(column, row.values[column])

    def fit(self, column: str, value: Any) -> Any:
        """A value as its column has it; a date among times is its midnight (C-26)."""
        if self.columns.get(column) == TIMESTAMP and type(value) is date:
            return datetime(value.year, value.month, value.day, tzinfo=UTC)
        return as_kind(value, self.columns.get(column, ""))

    def count(
        self, seq: int, *, selected: int | None, added: int = 0, deleted: int = 0, rows_in: int | None = None
    ) -> None:
        before = len(self.rows) if rows_in is None else rows_in
        self.result.counts[seq] = Counts(before, selected, added, deleted, before + added)


def share(units: int, drivers: Sequence[Fraction] | Sequence[int], order: Sequence[Any]) -> list[int]:
    """Parts of a number of units in proportion to drivers: each rounded down, then the largest remainders get one more."""
    total = sum(drivers)
    divided = [divmod(abs(units) * driver, total) for driver in drivers]
    parts = [int(quotient) for quotient, _ in divided]
    by_remainder = sorted(range(len(drivers)), key=lambda at: (-divided[at][1], -drivers[at], order[at]))
    for at in by_remainder[: abs(units) - sum(parts)]:
        parts[at] += 1
    return [part if units >= 0 else -part for part in parts]


def ancestors(pairs: Sequence[tuple[Any, Any]]) -> dict[Any, list[Any]] | None:
    """For each node those above it, None where the pairs are no tree."""
    parents: dict[Any, set[Any]] = {}
    for child, parent in pairs:
        if child is not None:
            parents.setdefault(child, set()).update({parent} - {None})
    if any(len(each) > 1 for each in parents.values()):
        return None
    found: dict[Any, list[Any]] = {}
    for node in parents:
        above: list[Any] = []
        here = node
        while parents.get(here):
            (here,) = parents[here]
            above.append(here)
            if len(above) > len(parents):
                return None
        found[node] = above
    return found


def _flat(key: Column) -> str:
    return key.name if key.qualifier is None else f"{key.qualifier}.{key.name}"


def sum_of(values: Iterable[Any]) -> Decimal:
    """The sum of numbers; NULL adds nothing."""
    return sum((Decimal(value) for value in values if value is not None), Decimal(0))


def kind_of(declared: str) -> str:
    """The kind of a declared type, such as ``decimal(12,2)``."""
    return declared.partition("(")[0]


def _reader(row: Row, joined: Mapping[str, Mapping[str, Any]]) -> Read:
    def read(qualifier: str | None, name: str) -> Any:
        found = joined.get(qualifier) if qualifier is not None else None
        return row.read(qualifier, name) if found is None else found.get(name)

    return read


def _tree(written: Formula | str | None) -> Node | None:
    """A selector that is blank is none (C-20)."""
    return written.tree if isinstance(written, Formula) else None


def _trees(arguments: Any) -> Iterator[Node]:
    """The trees of all formulas in some arguments."""
    if isinstance(arguments, Formula):
        yield arguments.tree
    for each in arguments.values() if isinstance(arguments, Mapping) else ():
        yield from _trees(each)
    for each in arguments if isinstance(arguments, list | tuple) else ():
        yield from _trees(each)


def _chosen(condition: Node | None, read: Read) -> bool:
    return condition is None or evaluate(condition, read) is True


def _first(*values: Any) -> Any:
    return next(value for value in values if value is not None)


def _interval(stored: Mapping[str, Any]) -> tuple[date | None, date | None]:
    names = ("_period_from", "_period_to") if "_period_from" in stored else ("valid_from", "valid_to")
    return stored.get(names[0]), stored.get(names[1])


def shown(value: Any) -> Any:
    """A value for a report: decimals without trailing zeros."""
    return f"{value.normalize():f}" if isinstance(value, Decimal) else value

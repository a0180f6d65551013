"""A dataset: the logical schema of a main table, and the lookups that are joined to it."""

from collections.abc import Iterable, Iterator
from typing import Annotated, ClassVar, Literal

from pydantic import Field, StrictStr

from dobonomodo.model.document import Places
from dobonomodo.model.entity import Entity, check_unique
from dobonomodo.model.horizon import MISSING_HELP, PERIOD_HELP, Missing, PeriodHorizon, check_horizon
from dobonomodo.model.schema import AS_OF, AsOf, Column, Table, TemporalMode, check_as_of, check_columns, column_names
from dobonomodo.model.value import Expected, FileName, Filled, Id, Identifier, Setting, Text
from dobonomodo.problems import Problem
from dobonomodo.problems.definition import DuplicateName, InvalidValue
from dobonomodo.problems.formula import UnknownColumn


class JoinCondition(Entity):
    """A column of the main table that equals a column of the lookup."""

    source_column: Filled = Field(description="A column of the main table.")
    target_column: Filled = Field(description="The column of the lookup that must be equal to it.")


class TableTarget(Entity):
    """A lookup that is a table of its own."""

    cosmetic: ClassVar[frozenset[str]] = frozenset()

    type: Literal["table"] = Field(description="A table that a resolver locates, with its columns declared here.")
    name: FileName = Field(description="The name of the table for resolvers.")
    temporal_mode: TemporalMode | None = Field(default=None, description="How its rows are assigned to periods.")
    columns: tuple[Column, ...] = Field(description="The columns of the table.")

    @classmethod
    def check(cls, places: Places) -> Iterable[Problem]:
        """Columns that can be told apart."""
        return check_columns(places)


class DatasetTarget(Entity):
    """A lookup that is the main table of another dataset."""

    type: Literal["dataset"] = Field(description="The main table of another dataset.")
    id: Id = Field(description="The id of that dataset.")


class Lookup(Entity):
    """Joined columns, visible as ``alias.column`` to every operation; NULL for rows without a match."""

    alias: Identifier = Field(description="The name that formulas use: `alias.column`.")
    target: TableTarget | DatasetTarget = Field(discriminator="type", description="The table or dataset to look up.")
    as_of: AsOf | None = Field(default=None, description=f"{AS_OF} The default is the setting of the dataset.")
    period: PeriodHorizon | None = Field(default=None, description=PERIOD_HELP)
    missing: Missing | None = Field(default=None, description=MISSING_HELP)
    join_conditions: tuple[JoinCondition, ...] = Field(description="Pairs of columns that must all be equal.")

    @classmethod
    def check(cls, places: Places) -> Iterable[Problem]:
        """At least one condition, on columns that the target has."""
        yield from check_horizon(places, "period")
        if places.text("target", "type") == "table":
            yield from check_as_of(places, places.get("target", "temporal_mode"))
        conditions = places.at("join_conditions")
        if conditions is None:
            return
        if conditions.is_list and not tuple(conditions.elements()):
            yield InvalidValue(
                key="join_conditions", expected="at least one condition", found="an empty list", span=conditions.span()
            )
        if known := column_names(places, "target", "columns"):
            qualifier = places.text("alias")
            yield from check_columns_exist(places, "target_column", known=known, qualifier=qualifier)


class Bounds(Entity):
    """The smallest and the largest value of a column."""

    min: Setting | None = Field(default=None, description="The smallest value.")
    max: Setting | None = Field(default=None, description="The largest value.")


class DatasetCheck(Entity):
    """A check of the rows of a dataset, evaluated whenever a run reads them."""

    unique: tuple[Filled, ...] | None = Field(
        default=None, description="No two rows have the same values in these columns."
    )
    not_null: tuple[Filled, ...] | None = Field(default=None, description="These columns have a value in every row.")
    values: dict[str, tuple[Setting, ...]] | None = Field(
        default=None, description="By column, the only values that it may have other than NULL."
    )
    range: dict[str, Bounds] | None = Field(default=None, description="By column, the bounds of its values.")
    rows_against_previous: (
        Annotated[StrictStr, Field(pattern=r"^[0-9]+(\.[0-9]+)?\s*%$"), Expected("a percentage, such as `20%`")] | None
    ) = Field(default=None, description="How far the number of rows may be from that of the previous period.")
    severity: Literal["stop", "warn"] = Field(
        default="stop", description="Publish nothing where it fails (the default), or only say so."
    )

    RULES: ClassVar[tuple[str, ...]] = ("unique", "not_null", "values", "range", "rows_against_previous")

    @classmethod
    def check(cls, places: Places) -> Iterable[Problem]:
        """Exactly one rule."""
        given = [key for key in cls.RULES if places.get(key) is not None]
        if len(given) != 1:
            expected = f"one of {', '.join(f'`{key}`' for key in cls.RULES)}"
            found = " and ".join(f"`{key}`" for key in given) or "none"
            yield InvalidValue(key="checks", expected=expected, found=found, span=places.key_span())

    @property
    def rule(self) -> str:
        """The rule that is given."""
        return next(key for key in self.RULES if getattr(self, key) is not None)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it is about."""
        given = getattr(self, self.rule)
        return tuple(given) if not isinstance(given, str) else ()


class Dataset(Entity):
    """A dataset: its columns, its temporal mode, and its location."""

    kind: ClassVar[str] = "dataset"
    cosmetic: ClassVar[frozenset[str]] = frozenset({"name", "description", "owner", "status", "checks"})
    advice_by_key: ClassVar[dict[str, str]] = {
        "version": "`dobo apply` assigns versions; remove it",
        "columns": "columns belong to `main_table`",
    }

    id: Id = Field(default="", description="The id that other definitions refer to; generated by default.")
    name: Filled = Field(default="", description="The display name; the default is the id.")
    description: Text | None = Field(default=None, description="What the rows represent.")
    owner: Text | None = Field(default=None, description="The person or team responsible for it.")
    status: Literal["active", "disabled"] = Field(default="active", description="A disabled dataset is not read.")
    resolver_id: Id | None = Field(default=None, description="The resolver that locates its rows.")
    natural_key_columns: tuple[Filled, ...] = Field(default=(), description="Columns that identify a row.")
    main_table: Table = Field(description="The table that projects work on.")
    lookups: tuple[Lookup, ...] = Field(default=(), description="Tables that are joined to the main table.")
    checks: tuple[DatasetCheck, ...] = Field(
        default=(), description="What must hold of its rows whenever a run reads them."
    )

    @classmethod
    def check(cls, places: Places) -> Iterable[Problem]:
        """Names that belong together: keys among the columns, aliases that differ."""
        columns = column_names(places, "main_table", "columns")
        keys = places.at("natural_key_columns")
        key_parts = tuple(keys.elements()) if keys is not None else ()
        for part in key_parts:
            name = part.text()
            if name is not None and columns and name.casefold() not in _folded(columns):
                yield UnknownColumn(name=name, known=columns, span=part.span())
        yield from check_unique(((part.text(), part) for part in key_parts), kind="key column", ignore_case=True)
        lookups = tuple(part for lookup in [places.at("lookups")] if lookup is not None for part in lookup.elements())
        aliases = [(lookup.text("alias"), lookup.at("alias") or lookup) for lookup in lookups]
        yield from check_unique(aliases, kind="lookup", ignore_case=True)
        table = places.text("main_table", "name")
        for alias, part in aliases:
            if alias is not None and table is not None and alias.casefold() == table.casefold():
                first = places.span("main_table", "name")
                yield DuplicateName(kind="table", name=alias, first=first, span=part.span())
        for lookup in lookups:
            yield from check_columns_exist(lookup, "source_column", known=columns, qualifier=None)
        checks = places.at("checks")
        for part in checks.elements() if checks is not None and columns else ():
            yield from _check_rule(part, columns)


def _check_rule(places: Places, known: tuple[str, ...]) -> Iterator[Problem]:
    """The columns of a check exist."""
    listed = [
        part for key in ("unique", "not_null") if (given := places.at(key)) is not None for part in given.elements()
    ]
    for part in listed:
        name = part.text()
        if name is not None and name.casefold() not in _folded(known):
            yield UnknownColumn(name=name, known=known, span=part.span())
    for key in ("values", "range"):
        given = places.at(key)
        for name in given.keys if given is not None and given.is_mapping else ():
            if name.casefold() not in _folded(known):
                yield UnknownColumn(name=name, known=known, span=places.key_span(key, name))


def check_columns_exist(
    lookup: Places, key: str, *, known: tuple[str, ...], qualifier: str | None
) -> Iterator[Problem]:
    """Every condition of a lookup names a known column under ``key``; system columns are always there."""
    conditions = lookup.at("join_conditions")
    for condition in conditions.elements() if conditions is not None and known else ():
        name = condition.text(key)
        if name is not None and not name.startswith("_") and name.casefold() not in _folded(known):
            yield UnknownColumn(name=name, known=known, qualifier=qualifier, span=condition.span(key))


def _folded(names: tuple[str, ...]) -> set[str]:
    return {name.casefold() for name in names}

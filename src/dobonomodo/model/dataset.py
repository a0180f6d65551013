"""A dataset: the logical schema of a main table, and the lookups that are joined to it."""

from collections.abc import Iterable, Iterator
from typing import ClassVar, Literal

from pydantic import Field

from dobonomodo.model.document import Places
from dobonomodo.model.entity import Entity, check_unique
from dobonomodo.model.schema import AS_OF, AsOf, Column, Table, TemporalMode, check_as_of, check_columns, column_names
from dobonomodo.model.value import FileName, Filled, Id, Identifier, Text
from dobonomodo.problems import Problem
from dobonomodo.problems.definition import DuplicateName, InvalidValue
from dobonomodo.problems.formula import UnknownColumn


class JoinCondition(Entity):
    """A column of the main table that equals a column of the lookup."""

    source_column: Filled = Field(description="A column of the main table.")
    target_column: Filled = Field(description="The column of the lookup that it equals.")


class TableTarget(Entity):
    """A lookup that is a table of its own."""

    cosmetic: ClassVar[frozenset[str]] = frozenset()

    type: Literal["table"] = Field(description="A table that a resolver finds, with its columns given here.")
    name: FileName = Field(description="The name that resolvers know the table by.")
    temporal_mode: TemporalMode | None = Field(default=None, description="How its rows belong to a time.")
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
    """Columns from elsewhere, visible as ``alias.column`` to every operation; rows without a match have none."""

    alias: Identifier = Field(description="The name that formulas use: `alias.column`.")
    target: TableTarget | DatasetTarget = Field(discriminator="type", description="What is looked up.")
    as_of: AsOf | None = Field(default=None, description=f"{AS_OF} Left out: as the dataset says.")
    join_conditions: tuple[JoinCondition, ...] = Field(description="Columns that must be equal, all of them.")

    @classmethod
    def check(cls, places: Places) -> Iterable[Problem]:
        """At least one condition, on columns that the target has."""
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


class Dataset(Entity):
    """Rows of one kind: what columns they have, how they belong to a time, and where they are found."""

    kind: ClassVar[str] = "dataset"
    cosmetic: ClassVar[frozenset[str]] = frozenset({"name", "description", "owner", "status"})
    advice_by_key: ClassVar[dict[str, str]] = {
        "version": "versions are counted when definitions are applied; leave it out",
        "columns": "columns belong to `main_table`",
    }

    id: Id = Field(default="", description="What other definitions refer to; generated if left out.")
    name: Filled = Field(default="", description="What people call it; the id if left out.")
    description: Text | None = Field(default=None, description="What the rows are.")
    owner: Text | None = Field(default=None, description="Who answers for it.")
    status: Literal["active", "disabled"] = Field(default="active", description="A disabled dataset is not read.")
    resolver_id: Id | None = Field(default=None, description="The resolver that finds its rows.")
    natural_key_columns: tuple[Filled, ...] = Field(default=(), description="Columns that identify a row to its users.")
    main_table: Table = Field(description="The table that projects work on.")
    lookups: tuple[Lookup, ...] = Field(default=(), description="What is joined to the main table first.")

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

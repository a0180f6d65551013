"""A resolver: rules that say where the rows of a table are, for a period."""

from collections.abc import Iterable
from typing import ClassVar, Literal

from pydantic import Field

from dobonomodo.model.document import Places
from dobonomodo.model.entity import Entity
from dobonomodo.model.template import check_relative_path, check_table_name, check_template
from dobonomodo.model.value import Filled, Flag, Id, Text
from dobonomodo.problems import Problem

ANY_LEVEL = "any"


class PathStrategy(Entity):
    """Rows in files."""

    type: Literal["path"] = Field(description="Rows in files.")
    datasource_id: Id = Field(description="The datasource that holds the files.")
    path: Filled = Field(
        description="The file or folder below the datasource's path_prefix; may use {{table_name}}, {{dataset_id}}, "
        "{{dataset_version}}, {{identifier}}, {{YYYY}}, {{MM}}, {{QQ}}, {{DD}}."
    )

    @classmethod
    def check(cls, places: Places) -> Iterable[Problem]:
        """A path that stays inside its datasource."""
        if places.text("path") is not None:
            yield from check_template(places.passage("path"))
            yield from check_relative_path(places.passage("path"))


class TableStrategy(Entity):
    """Rows in a table of a database."""

    type: Literal["table"] = Field(description="Rows in a table of a database.")
    datasource_id: Id = Field(description="The datasource that holds the table.")
    table: Filled = Field(description="The name of the table; may use the same tokens as a path.")
    schema_name: Filled | None = Field(
        default=None, alias="schema", description="The schema of the table, instead of the datasource's."
    )

    @classmethod
    def check(cls, places: Places) -> Iterable[Problem]:
        """Tokens that exist."""
        for key in ("table", "schema"):
            if places.text(key) is not None:
                yield from check_template(places.passage(key))
                yield from check_table_name(places.passage(key), key)


class Rule(Entity):
    """One way to find rows; the first rule that matches is taken."""

    name: Filled | None = Field(default=None, description="What the rule is called in explanations.")
    when: Filled | None = Field(
        default=None,
        description="A condition over table.name, period.identifier, period.level, period.start_date, period.end_date. "
        "A rule without one always matches.",
    )
    data_level: Filled = Field(
        default=ANY_LEVEL,
        description="The calendar level that the data is stored by, or any; a coarser period is read as its parts.",
    )
    strategy: PathStrategy | TableStrategy = Field(discriminator="type", description="Where the rows are.")


class Resolver(Entity):
    """Where tables are found."""

    kind: ClassVar[str] = "resolver"
    cosmetic: ClassVar[frozenset[str]] = frozenset({"name", "description", "owner", "status"})

    id: Id = Field(default="", description="What other definitions refer to; generated if left out.")
    name: Filled = Field(default="", description="What people call it; the id if left out.")
    description: Text | None = Field(default=None, description="What it finds.")
    owner: Text | None = Field(default=None, description="Who answers for it.")
    status: Literal["active", "disabled"] = Field(default="active", description="A disabled resolver is not used.")
    is_default: Flag = Field(default=False, description="Whether datasets without a resolver use this one.")
    rules: tuple[Rule, ...] = Field(description="The rules; the first that matches is taken.")

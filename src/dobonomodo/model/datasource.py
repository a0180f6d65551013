"""A datasource: how to reach a store of data, without the secret that opens it."""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import Field, SerializeAsAny, ValidationInfo, field_validator

from dobonomodo.model.document import Places
from dobonomodo.model.entity import Entity
from dobonomodo.model.secret import find_secrets, is_plain_address
from dobonomodo.model.shape import ChosenBy
from dobonomodo.model.template import check_folder, check_table_name
from dobonomodo.model.value import Expected, Filled, Flag, Id, Text
from dobonomodo.problems import Problem
from dobonomodo.problems.definition import InvalidValue

_SCHEME = re.compile(r"postgres(?:ql)?(?:\+\w+)?://")
_CREDENTIAL_REFERENCE = re.compile(r"env://[A-Za-z_][A-Za-z0-9_]*|file://\S+")


class ParquetOptions(Entity):
    """A folder of Parquet files."""

    refuses_secrets: ClassVar[bool] = True

    path_prefix: Filled = Field(description="The folder; a relative one starts at the workspace.")


class CsvOptions(Entity):
    """A folder of CSV files."""

    refuses_secrets: ClassVar[bool] = True

    path_prefix: Filled = Field(description="The folder; a relative one starts at the workspace.")
    delimiter: Annotated[
        str,
        Field(min_length=1, max_length=1, pattern=r"""^[\t -!#-~]$"""),
        Expected("one ASCII character, as text, not a quote"),
    ] = Field(default=",", description="What stands between two values.")
    has_header: Flag = Field(default=True, description="Whether the first line of a file names the columns.")


class DatabaseOptions(Entity):
    """A database that is reached by an address."""

    refuses_secrets: ClassVar[bool] = True

    url: Filled = Field(description="The address, without a password: `postgresql://user@host:5432/db`.")
    schema_name: Filled | None = Field(default=None, alias="schema", description="The schema that holds the tables.")


Options = ParquetOptions | CsvOptions | DatabaseOptions

OPTIONS_BY_TYPE: Mapping[str, type[Entity]] = {
    "parquet": ParquetOptions,
    "csv": CsvOptions,
    "database": DatabaseOptions,
}


class DataSource(Entity):
    """A store of data: files in a folder, or a database."""

    kind: ClassVar[str] = "datasource"
    cosmetic: ClassVar[frozenset[str]] = frozenset({"name", "description", "owner", "status"})

    id: Id = Field(default="", description="What other definitions refer to; generated if left out.")
    name: Filled = Field(default="", description="What people call it; the id if left out.")
    description: Text | None = Field(default=None, description="What is stored there.")
    owner: Text | None = Field(default=None, description="Who answers for it.")
    type: Literal["parquet", "csv", "database"] = Field(description="The kind of store.")
    status: Literal["active", "disabled"] = Field(default="active", description="A disabled datasource is not used.")
    options: Annotated[SerializeAsAny[Options], ChosenBy("type", OPTIONS_BY_TYPE)] = Field(
        description="How to reach it; what can be set depends on the type. Never a password."
    )
    credential_ref: Text | None = Field(
        default=None, description="Where the password is found: `env://NAME` or `file://path`. Never the password."
    )

    @field_validator("options", mode="wrap")
    @classmethod
    def _choose_options(cls, value: object, check: Callable[[object], Options], info: ValidationInfo) -> object:
        chosen = OPTIONS_BY_TYPE.get(info.data.get("type", ""))
        return chosen.model_validate(value) if chosen is not None else check(value)

    @classmethod
    def check(cls, places: Places) -> Iterable[Problem]:
        """No secrets in the open, and a reference that can be followed."""
        options = places.at("options")
        if options is not None:
            yield from (secrets := tuple(find_secrets(options, "options")))
            if not secrets and places.text("type") == "database":
                yield from _check_address(options)
            elif not secrets and options.text("path_prefix") is not None:
                yield from check_folder(options.passage("path_prefix"), "path_prefix")
            if options.text("schema") is not None:
                yield from check_table_name(options.passage("schema"), "schema")
        reference = places.text("credential_ref")
        if reference is not None and not _CREDENTIAL_REFERENCE.fullmatch(reference):
            yield InvalidValue(
                key="credential_ref",
                expected="`env://NAME` or `file://path`",
                found="this text",
                advice="a definition names where a password is, and never holds it",
                span=places.span("credential_ref"),
            )


def _check_address(options: Places) -> Iterable[Problem]:
    """One form of address, which cannot be read in two ways; no other kind of database is taken for PostgreSQL."""
    url = options.text("url")
    if url is not None and url.strip() and not (_SCHEME.match(url) and is_plain_address(url)):
        yield InvalidValue(
            key="url",
            expected="the address of a PostgreSQL database",
            found="this text",
            advice="write `postgresql://user@host:5432/database`; special characters as `%` and two digits",
            span=options.span("url"),
        )

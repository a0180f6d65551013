"""A datasource: how to reach a store of data, without the secret that opens it. It knows no kind of store: storages say what
the options of their kind are."""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any, ClassVar, Literal, Union

from pydantic import Field, SerializeAsAny, ValidationInfo, create_model, field_validator

from dobonomodo.model.document import Places
from dobonomodo.model.entity import Entity
from dobonomodo.model.plain import PlainDict
from dobonomodo.model.secret import find_secrets
from dobonomodo.model.shape import ChosenBy
from dobonomodo.model.value import Filled, Id, Text
from dobonomodo.problems import Problem
from dobonomodo.problems.definition import InvalidValue

_CREDENTIAL_REFERENCE = re.compile(r"env://[A-Za-z_][A-Za-z0-9_]*|file://\S+")


class DataSource(Entity):
    """A store of data: files in a folder, or a database."""

    kind: ClassVar[str] = "datasource"
    cosmetic: ClassVar[frozenset[str]] = frozenset({"name", "description", "owner", "status"})

    id: Id = Field(default="", description="What other definitions refer to; generated if left out.")
    name: Filled = Field(default="", description="What people call it; the id if left out.")
    description: Text | None = Field(default=None, description="What is stored there.")
    owner: Text | None = Field(default=None, description="Who answers for it.")
    type: Filled = Field(description="The kind of store.")
    status: Literal["active", "disabled"] = Field(default="active", description="A disabled datasource is not used.")
    options: PlainDict = Field(description="How to reach it; what can be set depends on the type. Never a password.")
    credential_ref: Text | None = Field(
        default=None, description="Where the password is found: `env://NAME` or `file://path`. Never the password."
    )

    @classmethod
    def check(cls, places: Places) -> Iterable[Problem]:
        """No secrets in the open, and a reference that can be followed."""
        options = places.at("options")
        if options is not None:
            yield from find_secrets(options, "options")
        reference = places.text("credential_ref")
        if reference is not None and not _CREDENTIAL_REFERENCE.fullmatch(reference):
            yield InvalidValue(
                key="credential_ref",
                expected="`env://NAME` or `file://path`",
                found="this text",
                advice="a definition names where a password is, and never holds it",
                span=places.span("credential_ref"),
            )


class StorageOptions(Entity):
    """The options of one kind of storage."""

    refuses_secrets: ClassVar[bool] = True


def datasource_model(options_by_type: Mapping[str, type[StorageOptions]]) -> type[Entity]:
    """The model of a datasource whose options are those of its type, to check one and to describe it to editors."""

    def choose(cls: type[Entity], value: object, check: Callable[[object], object], info: ValidationInfo) -> object:
        del cls
        chosen = options_by_type.get(info.data.get("type", ""))
        return chosen.model_validate(value) if chosen is not None else check(value)

    fields, models = DataSource.model_fields, tuple(options_by_type.values())
    # Both are made of what is known at run time only.
    kinds: Any = Literal[tuple(options_by_type)]
    options: Any = Annotated[SerializeAsAny[Union[models]], ChosenBy("type", options_by_type)]  # type: ignore[misc, valid-type]  # noqa: UP007
    made: type[Entity] = create_model(
        DataSource.__name__,
        __base__=DataSource,
        __doc__=DataSource.__doc__,
        __validators__={"choose": field_validator("options", mode="wrap")(choose)},
        type=(kinds, Field(description=fields["type"].description)),
        options=(options, Field(description=fields["options"].description)),
    )
    return made

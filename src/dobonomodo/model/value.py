"""The value types of definitions: ids, names, dates. Each type describes what it needs."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field, StrictBool, StrictInt, StrictStr, WithJsonSchema

MAX_NAME_LENGTH = 255

_ISO_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_IDENTIFIER = re.compile(r"[^\W\d]\w*")
_SUBSTITUTION = "${"
"""Spark would replace what follows by one of its own settings."""


@dataclass(frozen=True, slots=True)
class Expected:
    """What a value must be, in words that follow `needs`."""

    what: str


def is_name(text: str) -> bool:
    """Whether a text can name a table, a column or a period, also where it needs backticks in a formula."""
    return (
        0 < len(text) <= MAX_NAME_LENGTH
        and text.isprintable()
        and text == text.strip()
        and "`" not in text
        and _SUBSTITUTION not in text
    )


def is_identifier(text: str) -> bool:
    """Whether a text can be written in a formula as it is: letters, digits and `_`."""
    return _IDENTIFIER.fullmatch(text) is not None and len(text) <= MAX_NAME_LENGTH


def parse_date(text: object) -> date:
    """A date from its only accepted form, year-month-day."""
    if isinstance(text, date):
        return text
    if not isinstance(text, str) or not _ISO_DATE.fullmatch(text):
        raise ValueError
    return date.fromisoformat(text)


def describe(value: object) -> str:
    """A value in a message: its kind, and the value itself if it is short."""
    match value:
        case None:
            return "`null`"
        case bool():
            return f"`{str(value).lower()}`"
        case int() | Decimal():
            return f"the number `{value}`"
        case str():
            if not value.strip():
                return "an empty text"
            return f"`{value}`" if len(value) <= 60 else f"`{value[:57]}...`"
        case dict():
            return "a mapping"
        case list() | tuple():
            return "a list"
        case _:
            return f"`{value}`"


def _require(test: Callable[[str], bool]) -> AfterValidator:
    def validate(text: str) -> str:
        if not test(text):
            raise ValueError
        return text

    return AfterValidator(validate)


def _is_id(text: str) -> bool:
    return is_name(text) and not any(char.isspace() for char in text)


def _is_file_name(text: str) -> bool:
    return is_name(text) and not text.startswith(".") and "/" not in text and "\\" not in text


def _render_setting(value: object) -> object:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | Decimal) else value


Text = Annotated[StrictStr, Expected("text")]
Filled = Annotated[StrictStr, _require(lambda text: bool(text.strip())), Field(min_length=1), Expected("text")]
Flag = Annotated[StrictBool, Expected("`true` or `false`")]
Count = Annotated[StrictInt, Field(ge=1, le=2**31 - 1), Expected("a whole number above zero")]
Number = Annotated[StrictInt, Field(ge=0, le=1000), Expected("a whole number, 0 or more")]
Id = Annotated[StrictStr, _require(_is_id), Field(min_length=1), Expected("an id without white space")]
Identifier = Annotated[
    StrictStr, _require(is_identifier), Field(min_length=1), Expected("a name of letters, digits and `_`")
]
FileName = Annotated[
    StrictStr, _require(_is_file_name), Field(min_length=1), Expected("a name without `/`, backticks or a leading dot")
]
Day = Annotated[
    date,
    BeforeValidator(parse_date),
    WithJsonSchema({"type": "string", "format": "date"}),
    Expected("a valid date, such as `2026-01-31`"),
]
Setting = Annotated[
    str,
    BeforeValidator(_render_setting),
    WithJsonSchema({"type": ["string", "integer", "number", "boolean"]}),
    Expected("text, a number, `true` or `false`"),
]

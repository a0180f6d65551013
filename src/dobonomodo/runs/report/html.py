"""Turns values into HTML: the templates of this package, which escape whatever is put into them."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jinja2 import Environment


def render(template: str, **values: object) -> str:
    """A page. A name that a template uses and nobody gave is an error."""
    return _environment().get_template(template).render(**values)


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("dobonomodo.runs.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {"number": _number, "moment": _moment, "amount": _amount, "signed": _signed}
    return environment


def _number(value: int | None) -> str:
    return "" if value is None else f"{value:,}"


def _amount(value: Decimal | None) -> str:
    return "" if value is None else f"{value:,f}"


def _signed(value: Decimal | None) -> str:
    return "" if value is None else f"{value:+,f}"


def _moment(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"

"""Arguments of the Python API and the command line: accepts dates and times as ISO text, and explains wrong types (C-89)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal

from dobonomodo.model.plain import Document
from dobonomodo.problems import Rejected
from dobonomodo.problems.control import ReasonMissing

A_DAY = 'a date such as date(2026, 1, 31) or "2026-01-31"'
A_TIME = 'a time with its zone such as datetime(2026, 2, 3, 8, tzinfo=UTC) or "2026-02-03T08:00:00Z"'

A_MAPPING = 'values by the names of parameters, such as {"uplift": "0.05"}'
A_VALUE = 'text such as "0.05", an int, a Decimal, a bool, a date or a datetime'


def read_text(name: str, value: object, *, accepted: str) -> str:
    """An argument that must be text."""
    if not isinstance(value, str):
        raise _wrong_type(name, value, accepted)
    return value


def read_project(value: object) -> str:
    """The id of a project."""
    return read_text("project_id", value, accepted='the id of a project as text, such as "monthly-sales"')


def read_period(value: object) -> str:
    """The identifier of a period."""
    return read_text("period", value, accepted='the identifier of a period as text, such as "2026-01"')


def read_run(value: object) -> str:
    """The id of a run, or enough of it."""
    return read_text("run_id", value, accepted="the id of a run as text, as in `run.id`")


def read_reason(value: object) -> str | None:
    """A reason as free text; it must not be blank."""
    if value is None:
        return None
    return read_text("reason", value, accepted='why, as text, such as "late invoice 4711"').strip() or None


def require_reason(value: object, *, act: str) -> str:
    """The reason of something that needs one."""
    found = read_reason(value)
    if found is None:
        raise Rejected([ReasonMissing(act=act)])
    return found


def read_day(name: str, value: object) -> date | None:
    """A day; a time is refused, as it would depend on a zone."""
    if value is None or (isinstance(value, date) and not isinstance(value, datetime)):
        return value
    if not isinstance(value, str):
        raise _wrong_type(name, value, A_DAY)
    try:
        return date.fromisoformat(value)
    except ValueError:
        raise _wrong_value(name, value, A_DAY) from None


def read_moment(name: str, value: object) -> datetime | None:
    """A time in UTC, whatever its zone was."""
    if value is None:
        return None
    if not isinstance(value, datetime | str):
        raise _wrong_type(name, value, A_TIME)
    try:
        found = datetime.fromisoformat(value) if isinstance(value, str) else value
        if found.tzinfo is None or found.utcoffset() is None:
            raise ValueError("without a zone")
        return found.astimezone(UTC)
    except (ValueError, OverflowError):
        raise _wrong_value(name, value, A_TIME) from None


def read_parameters(value: object) -> Mapping[str, object]:
    """Values of parameters by name. A float is refused: it is not the number that was written."""
    if value is None:
        return {}
    if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
        raise _wrong_type("parameters", value, A_MAPPING)
    for name, each in value.items():
        if not isinstance(each, str | int | Decimal | date):
            raise _wrong_type(f'parameters["{name}"]', each, A_VALUE)
    return dict(value)


def check_session(value: object) -> None:
    """A Spark session, classic or Connect, or None; told by its class, so that Spark need not be loaded for it."""
    kinds = [(each.__module__.partition(".")[0], each.__name__) for each in type(value).__mro__]
    if value is not None and ("pyspark", "SparkSession") not in kinds:
        raise _wrong_type("spark", value, "a SparkSession, classic or Connect, or None")


def read_documents(documents: object) -> list[Document]:
    """Definitions made in a program."""
    accepted = 'a list of definitions such as [{"dataset": {...}}, {"project": {...}}]'
    if isinstance(documents, Mapping | str) or not isinstance(documents, Iterable):
        raise _wrong_type("documents", documents, accepted)
    found = list(documents)
    for each in found:
        if not isinstance(each, Mapping):
            raise _wrong_type("documents", each, accepted)
    return found


def read_choice(name: str, value: object, choices: Sequence[str]) -> str:
    """One of a few words."""
    accepted = ", ".join(f'"{each}"' for each in choices)
    if not isinstance(value, str):
        raise _wrong_type(name, value, accepted)
    if value not in choices:
        raise _wrong_value(name, value, accepted)
    return value


def _wrong_type(name: str, value: object, accepted: str) -> TypeError:
    return TypeError(f"`{name}` is {_shown(value)} of type {type(value).__name__}; accepted: {accepted}")


def _wrong_value(name: str, value: object, accepted: str) -> ValueError:
    return ValueError(f"`{name}` is {_shown(value)}; accepted: {accepted}")


def _shown(value: object) -> str:
    """A value as it is written in Python, cut where it is long."""
    written = repr(value)
    return written if len(written) <= 80 else f"{written[:77]}..."

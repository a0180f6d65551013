"""A row of the function catalogue: the arguments of a function, its result type and its Spark SQL."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from types import MappingProxyType
from typing import Protocol

from dobonomodo.formula.meaning import Meaning, Neighbour, Total
from dobonomodo.formula.typed import Literal, Typed, Value
from dobonomodo.formula.types import (
    BOOLEAN,
    DATE,
    INTEGER,
    NULL,
    TEXT,
    TIMESTAMP,
    UNKNOWN,
    Type,
    is_number,
)


class RunValues(Protocol):
    """The values of a run that formulas can read: its clock, in UTC, its period and its parameters."""

    @property
    def started_at(self) -> datetime: ...
    @property
    def period(self) -> str: ...
    @property
    def period_start(self) -> date: ...
    @property
    def period_end(self) -> date: ...
    @property
    def parameters(self) -> Mapping[str, Value]: ...


class _NoRun:
    """Values of a run, for formulas that read none of them."""

    started_at = datetime(2000, 1, 1, tzinfo=UTC)
    period = ""
    period_start = period_end = date(2000, 1, 1)
    parameters: Mapping[str, Value] = MappingProxyType({})


NO_RUN: RunValues = _NoRun()


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument while its call is rendered."""

    sql: str
    node: Typed

    @property
    def type(self) -> Type:
        return self.node.type

    @property
    def value(self) -> Value:
        """What was written, for a literal."""
        return self.node.value if isinstance(self.node, Literal) else None

    @property
    def is_literal(self) -> bool:
        return isinstance(self.node, Literal) and self.node.value is not None


@dataclass(frozen=True, slots=True)
class Parameter:
    """A place for an argument: its name and the types that it takes."""

    label: str
    accepts: Callable[[Type], bool]
    wanted: str
    default: Type = TEXT
    """What a bare NULL becomes here."""
    shared: str | None = None
    """Parameters with the same letter have values of one kind: T are converted to the type that holds them all, S are
    only compared and keep their digits."""
    constant: bool = False
    verify: Callable[[Value], str | None] | None = None
    """For a literal: what is expected instead, or None when it is fine."""
    is_date_text: bool = False
    """A literal here must be an ISO date."""
    optional: bool = False


Result = Type | str | Callable[[Sequence[Typed]], Type]
"""A type, the letter of a shared type, or a function of the arguments."""

Render = str | Callable[[Sequence[Argument], RunValues], str]
"""A template with ``{0}``, ``{1}`` or ``{all}``, or a function of the rendered arguments."""


@dataclass(frozen=True, slots=True)
class Signature:
    """One way to call a function: leading parameters, then a group that may repeat, then perhaps a last one."""

    leading: tuple[Parameter, ...]
    result: Result
    repeated: tuple[Parameter, ...] = ()
    at_least: int = 0
    last: Parameter | None = None

    def place(self, count: int) -> tuple[Parameter, ...] | None:
        """The parameter for each of ``count`` arguments, or None when that many do not fit."""
        required = sum(not parameter.optional for parameter in self.leading)
        if count < required:
            return None
        if count <= len(self.leading):
            return self.leading[:count] if self.at_least == 0 else None
        if not self.repeated:
            return None
        times, left = divmod(count - len(self.leading), len(self.repeated))
        if times < self.at_least or (left and (left > 1 or self.last is None)):
            return None
        return (*self.leading, *self.repeated * times, *([self.last] if left and self.last else []))

    def usage(self, name: str) -> str:
        """``LEFT(text, integer)``, ``COALESCE(value, ...)``."""
        parts = [f"[{each.label}]" if each.optional else each.label for each in self.leading]
        if self.repeated:
            parts += [each.label for each in self.repeated] * max(1, self.at_least) if self.at_least else []
            parts.append("...")
        if self.last:
            parts.append(f"[{self.last.label}]")
        return f"{name}({', '.join(parts)})"


@dataclass(frozen=True, slots=True)
class Window:
    """How a function is used before OVER."""

    template: str = "{call} OVER ({window})"
    frame: str = ""
    """The rows of the partition that count, where there is an order."""
    needs_order: bool = False
    breaks_ties: bool = False
    """Whether the value depends on the order of ties."""


RUNNING = Window(frame="RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW")
"""Of all rows of the partition; with an order, of those up to the row itself and those that are equal to it."""


@dataclass(frozen=True, slots=True)
class Function:
    """A function of the language: signatures, rendering, documentation, examples."""

    name: str
    ways: tuple[tuple[Signature, Render], ...] = field(repr=False)
    summary: str
    examples: tuple[str, ...]
    python: Meaning = field(repr=False)
    """The same in plain Python."""
    aliases: tuple[str, ...] = ()
    window: Window | None = None
    """How it is used before OVER, where it can be."""
    never_fails: bool = False
    """Whether it never raises, for any values of its arguments. If unset, it may raise."""
    keeps_number: bool = False
    """Whether it returns its first argument, a number, unless that is NULL or has to be rounded."""

    @property
    def is_aggregate(self) -> bool:
        """Whether many rows become one value."""
        return isinstance(self.python, Total)

    @property
    def needs_window(self) -> bool:
        """Whether it has a meaning only before OVER."""
        return isinstance(self.python, Neighbour)

    def usages(self) -> tuple[str, ...]:
        """Every way to call it."""
        behind = " OVER (PARTITION BY ... ORDER BY ...)" if self.needs_window else ""
        return tuple(dict.fromkeys(signature.usage(self.name) + behind for signature, _ in self.ways))

    def to_dict(self) -> dict[str, object]:
        """The documentation of the function, as plain data."""
        return {
            "name": self.name,
            "aliases": self.aliases,
            "usage": self.usages(),
            "aggregate": self.is_aggregate,
            "window": self.window is not None,
            "summary": self.summary,
            "examples": self.examples,
        }

    def render(self, way: int, arguments: Sequence[Argument], run: RunValues) -> str:
        """The call in Spark SQL."""
        template = self.ways[way][1]
        if not isinstance(template, str):
            return template(arguments, run)
        sqls = [argument.sql for argument in arguments]
        return template.format(*sqls, all=", ".join(sqls))


def fn(
    name: str,
    signature: Signature | Sequence[tuple[Signature, Render]],
    *rest: str | Callable[[Sequence[Argument], RunValues], str],
    python: Meaning,
    aliases: tuple[str, ...] = (),
    window: Window | None = None,
    never_fails: bool = False,
    keeps_number: bool = False,
) -> Function:
    """A row of the catalogue: name, signature, what it renders to, a line of documentation, examples that are TRUE, its meaning.

    A function with several signatures gives them as pairs of signature and rendering.
    """
    if isinstance(signature, Signature):
        render, *texts = rest
        ways: tuple[tuple[Signature, Render], ...] = ((signature, render),)
    else:
        texts = list(rest)
        ways = tuple(signature)
    summary, *examples = (str(text) for text in texts)
    return Function(
        name=name,
        ways=ways,
        summary=summary,
        examples=tuple(examples),
        python=python,
        aliases=aliases,
        window=window,
        never_fails=never_fails,
        keeps_number=keeps_number,
    )


def sig(*parameters: Parameter | More, to: Result) -> Signature:
    """A signature from its parameters in order."""
    more = next((each for each in parameters if isinstance(each, More)), None)
    if more is None:
        return Signature(tuple(each for each in parameters if isinstance(each, Parameter)), to)
    at = parameters.index(more)
    leading = tuple(each for each in parameters[:at] if isinstance(each, Parameter))
    last = next((each for each in parameters[at + 1 :] if isinstance(each, Parameter)), None)
    return Signature(leading, to, repeated=more.group, at_least=more.at_least, last=last)


@dataclass(frozen=True, slots=True)
class More:
    """A repeatable group of parameters."""

    group: tuple[Parameter, ...]
    at_least: int = 0


def more(*group: Parameter, at_least: int = 0) -> More:
    """Repeatable parameters, with a minimum number of repetitions."""
    return More(group, at_least)


def maybe(parameter: Parameter) -> Parameter:
    """The same parameter, that may be left out."""
    return replace(parameter, optional=True)


def constant(parameter: Parameter, verify: Callable[[Value], str | None] | None = None) -> Parameter:
    """The same parameter, whose argument must be written out."""
    return replace(parameter, constant=True, verify=verify)


def _one_of(*kinds: Type) -> Callable[[Type], bool]:
    return lambda kind: kind in (*kinds, NULL, UNKNOWN)


def _number(kind: Type) -> bool:
    return is_number(kind) or kind in (NULL, UNKNOWN)


text = Parameter("text", _one_of(TEXT), "text")
integer = Parameter("integer", _one_of(INTEGER), "a whole number", INTEGER)
number = Parameter("number", _number, "a number", INTEGER)
condition = Parameter("condition", _one_of(BOOLEAN), "true or false", BOOLEAN)
day = Parameter("date", _one_of(DATE), "a date", DATE)
moment = Parameter("date", _one_of(DATE, TIMESTAMP), "a date or a time", DATE)
clock = Parameter("time", _one_of(TIMESTAMP), "a time", TIMESTAMP)
anything = Parameter("value", lambda kind: True, "a value")
piece = Parameter("text", _one_of(TEXT, INTEGER, DATE), "text, a whole number or a date")
T = Parameter("value", lambda kind: True, "a value", NULL, shared="T")
S = Parameter("value", lambda kind: True, "a value", NULL, shared="S")
ordered = Parameter("value", lambda kind: kind != BOOLEAN, "a number, a date, a time or text", NULL, shared="S")


def same_as_first(arguments: Sequence[Typed]) -> Type:
    """The type of the first argument."""
    return arguments[0].type

"""Validates the shape of a document with pydantic, and converts its errors to problems with places.

It also finds the parts of a document that belong to a model, so that each can check the rules beyond its shape.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from types import NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    Literal,
    NamedTuple,
    TypeAlias,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from pydantic import BaseModel

from dobonomodo.model.secret import holds_secret, is_secret_key
from dobonomodo.model.value import Expected, describe
from dobonomodo.problems.definition import InvalidValue, MissingKey, UnknownKey

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pydantic_core import ErrorDetails

    from dobonomodo.model.document import Places
    from dobonomodo.problems import Problem

Path = tuple[str | int, ...]
"""Where pydantic found something: keys, positions, and the type of a variant behind the key that holds it."""


@dataclass(frozen=True, slots=True)
class ChosenBy:
    """Marks a field whose model depends on the value of a sibling key."""

    key: str
    models: Mapping[str, type[BaseModel]]

    def __hash__(self) -> int:
        return hash((self.key, tuple(self.models)))


@dataclass(frozen=True, slots=True)
class TextOr:
    """Marks a value that is a text or, where one has to say more, a mapping."""

    model: type[BaseModel]

    MAPPING: ClassVar[str] = "mapping"
    """What pydantic calls the second form."""

    @classmethod
    def choose(cls, value: object) -> str:
        """Which form a value has."""
        return cls.MAPPING if isinstance(value, dict | BaseModel) else "text"


@dataclass(frozen=True, slots=True)
class CheckedApart:
    """Marks a field whose value has problems of its own kind, found by its model; ``missing`` if its absence too."""

    missing: bool = False


@dataclass(frozen=True, slots=True)
class Part:
    """A mapping and the model that it is to become."""

    places: Places
    model: type[BaseModel]
    path: Path
    owner: str
    """What it is called in messages."""


_Annotation: TypeAlias = Any
"""A type as a model declares it: a class, a union, or what `Annotated` makes of either."""
_Marks = tuple[object, ...]
_Mark = TypeVar("_Mark")


class _Field(NamedTuple):
    annotation: _Annotation
    missing: str | None
    """What is expected where the field is missing; None if its absence is reported elsewhere."""


class _Value(NamedTuple):
    """A value of a document with what it must be."""

    places: Places
    annotation: _Annotation
    key: str
    path: Path


def key_of(model: type[BaseModel], name: str) -> str:
    """The key under which a field is written."""
    return model.model_fields[name].alias or name


@cache
def keys_of(model: type[BaseModel]) -> frozenset[str]:
    """The keys that a model knows."""
    return frozenset(key_of(model, name) for name in model.model_fields)


# --- parts


def walk_parts(places: Places, model: type[BaseModel], *, owner: str, path: Path = ()) -> Iterator[Part]:
    """Every mapping of a document that belongs to a model, outer ones first, whatever else is wrong with it."""
    if not places.is_mapping:
        return
    yield Part(places, model, path, owner)
    for key, field in _fields_of(model).items():
        part = places.at(key)
        if part is not None:
            yield from _walk_value(_Value(part, field.annotation, key, (*path, key)), beside=places)


def _walk_value(value: _Value, *, beside: Places) -> Iterator[Part]:
    places, key, path = value.places, value.key, value.path
    inner, marks = _unwrap(value.annotation)
    if any(isinstance(mark, CheckedApart) for mark in marks):
        return
    if (chosen := _find_mark(marks, ChosenBy)) is not None:
        name = beside.text(chosen.key) or ""
        if name in chosen.models:
            yield from walk_parts(places, chosen.models[name], owner=_chosen_owner(key, name), path=path)
    elif (either := _find_mark(marks, TextOr)) is not None:
        yield from walk_parts(places, either.model, owner=key, path=(*path, TextOr.MAPPING))
    elif _is_model(inner):
        yield from walk_parts(places, inner, owner=key, path=path)
    elif models := _variants(inner):
        name = places.text("type") or ""
        if name in models:
            yield from walk_parts(places, models[name], owner=f"{key} of type {name}", path=(*path, name))
    elif _origin_of(inner) in (tuple, dict):
        for element in _elements(value):
            yield from _walk_value(element, beside=beside)


def _elements(value: _Value) -> Iterator[_Value]:
    content = value.places.node.value
    steps: Iterable[str | int] = range(len(content)) if isinstance(content, tuple) else value.places.keys
    for step in steps:
        if (element := _step_into(value, step)) is not None:
            yield element


def _step_into(value: _Value, step: str | int) -> _Value | None:
    """An element of a list or a value of a mapping; None where the type has no such parts."""
    inner, marks = _unwrap(value.annotation)
    origin, part = _origin_of(inner), value.places.at(step)
    if part is None or _find_mark(marks, Expected) is not None:
        return None
    if origin is tuple and isinstance(step, int):
        return _Value(part, get_args(inner)[0], value.key.removesuffix("s"), (*value.path, step))
    if origin is dict and isinstance(step, str):
        return _Value(part, get_args(inner)[1], step, (*value.path, step))
    return None


# --- errors


def explain_errors(errors: Iterable[ErrorDetails], root: Places, parts: Iterable[Part], *, owner: str) -> list[Problem]:
    """The problems behind the errors of pydantic, one per place. Those of fields that are checked apart are left out."""
    part_by_path = {part.path: part for part in parts}
    problem_by_path: dict[Path, Problem | None] = {}
    for error in errors:
        path = tuple(error["loc"])
        if not part_by_path:
            problem_by_path.setdefault(path, _wrong(root, (), "a mapping", key=owner))
            continue
        part = next(part_by_path[path[:end]] for end in range(len(path), -1, -1) if path[:end] in part_by_path)
        found, problem = _explain(error["type"], part, path[len(part.path) :])
        problem_by_path.setdefault(found, problem)
    return [problem for problem in problem_by_path.values() if problem is not None]


def _explain(error: str, part: Part, steps: Path) -> tuple[Path, Problem | None]:
    """The problem behind an error at some steps below a part, and the path of the value that it is about."""
    key = str(steps[0])
    path = (*part.path, key)
    field = _fields_of(part.model).get(key)
    if field is None:
        return path, _unknown_key(part, key)
    if error == "missing" and len(steps) == 1:
        return path, _missing_key(part, key, field.missing)
    places = part.places.at(key)
    if places is None or places.node.value is None:
        # A value that was filled in from another one, whose error is reported there.
        return path, None
    value = _Value(places, field.annotation, key, path)
    for step in steps[1:]:
        following = _step_into(value, step)
        if following is None:
            break
        value = following
    return value.path, _explain_value(value, beside=part.places)


def _unknown_key(part: Part, key: str) -> Problem | None:
    if getattr(part.model, "refuses_secrets", False) and is_secret_key(key):
        return None
    advice: Mapping[str, str] = getattr(part.model, "advice_by_key", {})
    known = tuple(_fields_of(part.model))
    span = part.places.key_span(key)
    return UnknownKey(key=key, known=known, owner=_article(part.owner), advice=advice.get(key), span=span)


def _missing_key(part: Part, key: str, expected: str | None) -> Problem | None:
    if expected is None:
        return None
    return MissingKey(key=key, owner=_article(part.owner), expected=expected, span=part.places.key_span())


def _explain_value(value: _Value, *, beside: Places) -> Problem | None:
    places, key = value.places, value.key
    inner, marks = _unwrap(value.annotation)
    if any(isinstance(mark, CheckedApart) for mark in marks):
        return None
    if (chosen := _find_mark(marks, ChosenBy)) is not None:
        name = beside.text(chosen.key) or ""
        return _wrong(places, (), "a mapping", key=_chosen_owner(key, name)) if name in chosen.models else None
    if (models := _variants(inner)) and places.is_mapping:
        expected = " or ".join(f"`{name}`" for name in models)
        if places.get("type") is None:
            return MissingKey(key="type", owner=_article(key), expected=expected, span=places.key_span())
        return _wrong(places, ("type",), expected, key="type", known=tuple(models))
    expected = _expected(value.annotation) or "another value"
    return _wrong(places, (), expected, key=key, known=_literals(inner), needs_text=inner is str)


def _wrong(
    places: Places,
    path: tuple[str, ...],
    expected: str,
    *,
    key: str,
    known: tuple[str, ...] = (),
    needs_text: bool = False,
) -> InvalidValue:
    data = places.get(*path)
    found = describe(data)
    text = data if isinstance(data, str) else None
    if text is not None and (is_secret_key(key) or holds_secret(text)):
        found, text = "this text", None
    advice = None
    if needs_text and isinstance(data, bool | int | Decimal) and places.source is not None:
        advice = f'put it in quotes: `"{places.passage(*path).value}"`'
    return InvalidValue(
        key=key, expected=expected, found=found, known=known, text=text, advice=advice, span=places.span(*path)
    )


# --- what models say of their fields


@cache
def _fields_of(model: type[BaseModel]) -> dict[str, _Field]:
    hints = get_type_hints(model, include_extras=True)
    fields = {}
    for name in model.model_fields:
        annotation = hints[name]
        apart = CheckedApart(missing=True) in _unwrap(annotation)[1]
        missing = None if apart else _expected(annotation) or ""
        fields[key_of(model, name)] = _Field(annotation, missing)
    return fields


def _is_model(inner: _Annotation) -> bool:
    return isinstance(inner, type) and _origin_of(inner) is None and issubclass(inner, BaseModel)


@cache
def _variants(inner: _Annotation) -> dict[str, type[BaseModel]]:
    """The models of a union that are told apart by their key `type`; none for any other type."""
    options = get_args(inner) if _origin_of(inner) in (Union, UnionType) else ()
    if not all(_is_model(option) and "type" in option.model_fields for option in options):
        return {}
    return {name: option for option in options for name in _literals(option.model_fields["type"].annotation)}


def _origin_of(annotation: _Annotation) -> object:
    """What is in front of the brackets of a type, None if there are none."""
    return get_origin(annotation)


@cache
def _unwrap(annotation: _Annotation) -> tuple[_Annotation, _Marks]:
    """The type without `Annotated` and `None`, and the marks on it."""
    marks: _Marks = ()
    while True:
        if _origin_of(annotation) is Annotated:
            annotation, *more = get_args(annotation)
            marks += tuple(more)
        elif _origin_of(annotation) in (Union, UnionType) and NoneType in get_args(annotation):
            options = tuple(option for option in get_args(annotation) if option is not NoneType)
            if len(options) > 1:
                return Union[options], marks  # noqa: UP007 - made at run time
            annotation = options[0]
        else:
            return annotation, marks


def _find_mark(marks: _Marks, kind: type[_Mark]) -> _Mark | None:
    return next((mark for mark in marks if isinstance(mark, kind)), None)


def _expected(annotation: _Annotation) -> str | None:
    inner, marks = _unwrap(annotation)
    if (said := _find_mark(marks, Expected)) is not None:
        return said.what
    if values := _literals(inner):
        return " or ".join(f"`{value}`" for value in values)
    if _origin_of(inner) is tuple:
        return "a list"
    return "a mapping" if _origin_of(inner) is dict or isinstance(inner, type) or _variants(inner) else None


def _literals(inner: _Annotation) -> tuple[str, ...]:
    return get_args(inner) if _origin_of(inner) is Literal else ()


def _chosen_owner(key: str, name: str) -> str:
    return f"{key} of {name}"


def _article(owner: str) -> str:
    return owner if " " in owner else f"`{owner}`"

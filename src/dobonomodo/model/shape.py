"""Whether plain data has the shape of a model: the keys it knows, the keys it needs, values of the right kind.

Walks the fields of the model over the places of the data, so that every fault is found at once and where it stands.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel, TypeAdapter, ValidationError

from dobonomodo.model.secret import holds_secret, is_secret_key
from dobonomodo.model.value import Expected, describe
from dobonomodo.problems.definition import InvalidValue, MissingKey, UnknownKey

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from dobonomodo.model.document import Places
    from dobonomodo.problems import Problem


@dataclass(frozen=True, slots=True)
class ChosenBy:
    """Marks a field whose model depends on what a key beside it says."""

    key: str
    models: Mapping[str, type[BaseModel]]

    def __hash__(self) -> int:
        return hash((self.key, tuple(self.models)))


@dataclass(frozen=True, slots=True)
class CheckedApart:
    """Marks a field whose value has problems of its own kind, found by its model; ``missing`` if its absence too."""

    missing: bool = False


@dataclass(frozen=True, slots=True)
class Part:
    """A mapping and the model that it is to become."""

    places: Places
    model: type[BaseModel]


def key_of(model: type[BaseModel], name: str) -> str:
    """The key under which a field is written."""
    return model.model_fields[name].alias or name


def walk_shape(places: Places, model: type[BaseModel], *, owner: str) -> Iterator[Problem | Part]:
    """Every problem of shape, and every mapping in it that stands for a model, outer ones first."""
    if not places.is_mapping:
        yield _wrong(places, (), "a mapping", key=owner)
        return
    yield Part(places, model)
    fields = _fields_of(model)
    advice_by_key: Mapping[str, str] = getattr(model, "advice_by_key", {})
    refuses_secrets: bool = getattr(model, "refuses_secrets", False)
    for key in places.keys:
        if key not in fields and not (refuses_secrets and is_secret_key(key)):
            advice, span = advice_by_key.get(key), places.key_span(key)
            yield UnknownKey(key=key, known=tuple(fields), owner=_article(owner), advice=advice, span=span)
    for key, shape in fields.items():
        part = places.at(key)
        if part is None or part.node.value is None:
            if shape.required:
                span = places.key_span()
                yield MissingKey(key=key, owner=_article(owner), expected=shape.expected, span=span)
            continue
        yield from _walk_value(part, shape.annotation, key=key, beside=places)


@dataclass(frozen=True, slots=True)
class _Field:
    annotation: Any
    required: bool
    expected: str


@cache
def _fields_of(model: type[BaseModel]) -> dict[str, _Field]:
    hints = get_type_hints(model, include_extras=True)
    return {
        key_of(model, name): _Field(
            hints[name],
            info.is_required() and CheckedApart(missing=True) not in _unwrap(hints[name])[1],
            _expected(hints[name]) or "",
        )
        for name, info in model.model_fields.items()
    }


def _walk_value(places: Places, annotation: Any, *, key: str, beside: Places) -> Iterator[Problem | Part]:
    inner, marks = _unwrap(annotation)
    if any(isinstance(mark, CheckedApart) for mark in marks):
        return
    chosen = next((mark for mark in marks if isinstance(mark, ChosenBy)), None)
    if chosen is not None:
        model = chosen.models.get(beside.text(chosen.key) or "")
        if model is not None:
            yield from walk_shape(places, model, owner=f"{key} of {beside.text(chosen.key)}")
        return
    origin = get_origin(inner)
    if isinstance(inner, type) and origin is None and issubclass(inner, BaseModel):
        yield from walk_shape(places, inner, owner=key)
    elif origin in (Union, UnionType) and all(issubclass(option, BaseModel) for option in get_args(inner)):
        yield from _walk_variant(places, get_args(inner), key=key)
    elif origin is tuple and not any(isinstance(mark, Expected) for mark in marks):
        if not places.is_list:
            yield _wrong(places, (), "a list", key=key)
        for element in places.elements():
            yield from _walk_value(element, get_args(inner)[0], key=_singular(key), beside=beside)
    elif origin is dict:
        if not places.is_mapping:
            yield _wrong(places, (), "a mapping", key=key)
        for name in places.keys:
            part = places.at(name)
            value_type = get_args(inner)[1]
            if part is not None and value_type is not Any:
                yield from _walk_value(part, value_type, key=name, beside=beside)
    else:
        yield from _check_leaf(places, annotation, key=key)


def _walk_variant(places: Places, models: tuple[type[BaseModel], ...], *, key: str) -> Iterator[Problem | Part]:
    """One of several models, told apart by their key `type`."""
    model_by_type = {
        name: model for model in models for name in get_args(_unwrap(model.model_fields["type"].annotation)[0])
    }
    if not places.is_mapping:
        yield _wrong(places, (), "a mapping", key=key)
        return
    wanted = places.get("type")
    expected = " or ".join(f"`{name}`" for name in model_by_type)
    if wanted is None:
        yield MissingKey(key="type", owner=_article(key), expected=expected, span=places.key_span())
    elif not isinstance(wanted, str) or wanted not in model_by_type:
        yield _wrong(places, ("type",), expected, key="type", known=tuple(model_by_type))
    else:
        yield from walk_shape(places, model_by_type[wanted], owner=f"{key} of type {wanted}")


def _check_leaf(places: Places, annotation: Any, *, key: str) -> Iterator[Problem]:
    data = places.data
    try:
        _adapter(annotation).validate_python(data)
    except ValidationError:
        expected = _expected(annotation) or "another value"
        needs_text = _unwrap(annotation)[0] is str
        yield _wrong(places, (), expected, key=key, known=_literals(annotation), needs_text=needs_text)


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


@cache
def _adapter(annotation: Any) -> TypeAdapter[Any]:
    return TypeAdapter(annotation)


def _unwrap(annotation: Any) -> tuple[Any, tuple[Any, ...]]:
    """The type without `Annotated` and `None`, and the marks on it."""
    marks: tuple[Any, ...] = ()
    while True:
        if get_origin(annotation) is Annotated:
            annotation, *more = get_args(annotation)
            marks += tuple(more)
        elif get_origin(annotation) in (Union, UnionType) and NoneType in get_args(annotation):
            options = tuple(option for option in get_args(annotation) if option is not NoneType)
            if len(options) > 1:
                return Union[options], marks  # noqa: UP007 - made at run time
            annotation = options[0]
        else:
            return annotation, marks


def _expected(annotation: Any) -> str | None:
    inner, marks = _unwrap(annotation)
    said = next((mark.what for mark in marks if isinstance(mark, Expected)), None)
    if said is not None:
        return said
    if values := _literals(annotation):
        return " or ".join(f"`{value}`" for value in values)
    if get_origin(inner) is tuple:
        return "a list"
    return "a mapping" if get_origin(inner) is dict or isinstance(inner, type) else None


def _literals(annotation: Any) -> tuple[str, ...]:
    inner, _ = _unwrap(annotation)
    return get_args(inner) if get_origin(inner) is Literal else ()


def _singular(key: str) -> str:
    return key.removesuffix("s")


def _article(owner: str) -> str:
    return owner if " " in owner else f"`{owner}`"

"""The base of all definitions: loading with all problems at once, places in the source, comparison by content."""

import hashlib
import json
import uuid
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import ClassVar, Generic, NamedTuple, Self, TypeVar

from pydantic import BaseModel, ConfigDict, PrivateAttr, ValidationError, model_validator

from dobonomodo.model.document import Entry, Node, Places
from dobonomodo.model.shape import explain_errors, key_of, keys_of, walk_parts
from dobonomodo.problems import InternalError, Problem, Rejected, in_order
from dobonomodo.problems.definition import DuplicateName

NAMESPACE = uuid.UUID("6f1d3c0e-52a4-5c1b-9a77-d0b0d0b0d0b0")
"""Under which ids are generated, always the same one for the same definition."""

T = TypeVar("T")


class Loaded(NamedTuple, Generic[T]):
    """What was loaded, if it could be, and everything that is wrong with it."""

    value: T | None
    problems: tuple[Problem, ...] = ()


class Prepared(NamedTuple):
    """Data in its one canonical form, still at its places, and the contradictions found on the way."""

    places: Places
    problems: tuple[Problem, ...] = ()


class Entity(BaseModel):
    """A definition or a part of one: immutable, equal by content, with the place of everything in it.

    ``load`` and ``from_data`` check every rule; the constructor checks only the kinds of values.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    kind: ClassVar[str] = ""
    cosmetic: ClassVar[frozenset[str]] = frozenset({"name", "description", "owner"})
    """Fields that can change without any number changing."""
    advice_by_key: ClassVar[Mapping[str, str]] = {}
    """Hints for keys that users expect here and that do not exist."""
    refuses_secrets: ClassVar[bool] = False
    """Whether keys that hold secrets have a problem of their own, instead of being unknown."""

    _places: Places | None = PrivateAttr(default=None)

    @model_validator(mode="before")
    @classmethod
    def _fill_in(cls, data: object) -> object:
        """A key without a value is a key left out, and the id is the name of what has no name."""
        if not isinstance(data, dict):
            return data
        known = keys_of(cls)
        given = {key: value for key, value in data.items() if value is not None or key not in known}
        if "name" in cls.model_fields and "id" in given:
            given.setdefault("name", given["id"])
        return given

    @classmethod
    def load(cls, places: Places, *, seed: str = "") -> Loaded[Self]:
        """The definition at a place of a document; ``seed`` makes the id where none is given."""
        prepared, contradictions = cls.prepare(places, seed=seed)
        owner = cls.kind or cls.__name__.lower()
        parts = tuple(walk_parts(prepared, cls, owner=owner))
        problems = list(contradictions)
        for part in parts:
            if issubclass(part.model, Entity):
                problems.extend(part.model.check(part.places))
        entity: Self | None = None
        try:
            entity = cls.model_validate(prepared.data)
        except ValidationError as error:
            shape = explain_errors(error.errors(include_url=False), prepared, parts, owner=owner)
            if not shape and not problems:
                raise InternalError(f"nothing explains why a {cls.__name__} is refused: {error}") from error
            problems.extend(shape)
        ordered = in_order(problems)
        if entity is None or any(problem.severity == "error" for problem in ordered):
            return Loaded(None, ordered)
        entity.attach(prepared)
        return Loaded(entity, ordered)

    @classmethod
    def from_data(cls, data: Mapping[str, object]) -> Self:
        """The definition that plain data describes; raises `Rejected` with every problem."""
        loaded = cls.load(Places.of_data(data))
        if loaded.value is None:
            raise Rejected(loaded.problems)
        return loaded.value

    @classmethod
    def prepare(cls, places: Places, *, seed: str) -> Prepared:
        """The canonical form of what was written: here, an id for what has none."""
        if "id" not in cls.model_fields or not isinstance(places.node.value, dict) or places.get("id") is not None:
            return Prepared(places)
        generated = uuid.uuid5(NAMESPACE, f"{cls.kind}/{seed or render_canonical(places.data)}")
        entries = {**places.node.value, "id": Entry(Node("id"), Node(str(generated)))}
        return Prepared(places.with_entries(entries))

    @classmethod
    def check(cls, places: Places) -> Iterable[Problem]:
        """Rules beyond the shape. Parts of the wrong shape may be there, and have been reported."""
        del places
        return ()

    @property
    def places(self) -> Places:
        """Where the definition and each of its parts were written."""
        return self._places or Places.of_data(self.document())

    def document(self) -> dict[str, object]:
        """The definition as plain JSON data; loading that gives an equal definition."""
        dumped: dict[str, object] = self.model_dump(mode="json", by_alias=True, exclude_none=True)
        return dumped

    def essence(self) -> dict[str, object]:
        """The part of the content that can change a number, as plain data."""
        return {
            key_of(type(self), name): _essence_of(getattr(self, name))
            for name in type(self).model_fields
            if name not in self.cosmetic and getattr(self, name) is not None
        }

    def fingerprint(self) -> str:
        """A hash of the essence: equal for definitions that compute the same."""
        return hashlib.sha256(render_canonical(self.essence()).encode()).hexdigest()

    def attach(self, places: Places) -> None:
        """Remember where this and every part of it was written."""
        self._places = places
        for name in type(self).model_fields:
            key, value = key_of(type(self), name), getattr(self, name)
            if isinstance(value, Entity) and (part := places.at(key)) is not None:
                value.attach(part)
            elif isinstance(value, tuple | dict):
                steps = enumerate(value) if isinstance(value, tuple) else value.items()
                for step, element in steps:
                    if isinstance(element, Entity) and (part := places.at(key, step)) is not None:
                        element.attach(part)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and all(
            getattr(self, name) == getattr(other, name) for name in type(self).model_fields
        )

    def __hash__(self) -> int:
        return hash((type(self), render_canonical(self.document())))


def render_canonical(data: object) -> str:
    """Plain data as JSON in the one form that can be compared: keys sorted, exact numbers as text."""
    return json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=str)


def check_unique(
    named: Iterable[tuple[str | None, Places]], *, kind: str, ignore_case: bool = False
) -> Iterable[Problem]:
    """A problem for each name that was there before; what has no name is passed over."""
    first_by_name: dict[str, Places] = {}
    for name, places in named:
        if name is None:
            continue
        first = first_by_name.setdefault(name.casefold() if ignore_case else name, places)
        if first is not places:
            yield DuplicateName(kind=kind, name=name, first=first.span(), span=places.span())


def _essence_of(value: object) -> object:
    match value:
        case Entity():
            return value.essence()
        case tuple() | list():
            return [_essence_of(element) for element in value]
        case dict():
            return {key: _essence_of(element) for key, element in value.items()}
        case None | bool() | int() | str() | Decimal():
            return value
        case _:
            return str(value)

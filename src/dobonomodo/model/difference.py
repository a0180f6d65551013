"""What differs between two versions of a definition: fields, and operations with their formulas. Pure, over plain data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from dobonomodo.model.plain import Document

_NAMES = ("column", "alias", "name", "seq", "identifier", "dataset_id")
"""Candidate keys that identify the elements of a list; the first that all elements have is used."""

_OPERATIONS = "operations"
_HEAD = ("id", "seq", "name", "type")


@dataclass(frozen=True, slots=True)
class FieldChange:
    """A field that was added, removed or changed; its path tells where it is, such as ``assignments[net].expression``."""

    path: str
    before: object = None
    after: object = None

    def to_dict(self) -> dict[str, object]:
        """As plain data."""
        return {"path": self.path, "before": self.before, "after": self.after}


@dataclass(frozen=True, slots=True)
class OperationChange:
    """An operation that was added, removed or changed."""

    change: Literal["added", "removed", "changed"]
    seq: int
    name: str
    type: str
    fields: tuple[FieldChange, ...]

    def to_dict(self) -> dict[str, object]:
        """As plain data."""
        own = {"change": self.change, "seq": self.seq, "name": self.name, "type": self.type}
        return {**own, "fields": [each.to_dict() for each in self.fields]}


@dataclass(frozen=True, slots=True)
class Difference:
    """What differs between two versions of a definition."""

    before: str
    """The name of the one, such as ``monthly-sales@v3``."""
    after: str
    fields: tuple[FieldChange, ...]
    operations: tuple[OperationChange, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.fields or self.operations)

    def to_dict(self) -> dict[str, object]:
        """As plain data."""
        return {
            "before": self.before,
            "after": self.after,
            "fields": [each.to_dict() for each in self.fields],
            "operations": [each.to_dict() for each in self.operations],
        }


def compare_documents(one: Document, other: Document, *, before: str, after: str) -> Difference:
    """What differs between two documents of the same kind."""
    rest = [{key: value for key, value in each.items() if key != _OPERATIONS} for each in (one, other)]
    operations = _compare_operations(one.get(_OPERATIONS, ()), other.get(_OPERATIONS, ()))
    return Difference(before, after, _compare(*rest), tuple(sorted(operations, key=lambda each: each.seq)))


def _compare_operations(one: Sequence[Document], other: Sequence[Document]) -> Iterator[OperationChange]:
    pairs = _pair(one, other)
    for old, new in pairs:
        fields = _compare(_body(old), _body(new))
        if fields:
            yield _describe("changed", new, fields)
    removed = [each for each in one if not any(each is old for old, _ in pairs)]
    added = [each for each in other if not any(each is new for _, new in pairs)]
    yield from (_describe("removed", each, _compare(_body(each, whole=False), {})) for each in removed)
    yield from (_describe("added", each, _compare({}, _body(each, whole=False))) for each in added)


def _pair(one: Sequence[Document], other: Sequence[Document]) -> list[tuple[Document, Document]]:
    """Which operation became which: one of the same type and name, else of the same type and number."""
    pairs: list[tuple[Document, Document]] = []
    for key in ("name", "seq"):
        left = [each for each in one if not any(each is old for old, _ in pairs)]
        right = [each for each in other if not any(each is new for _, new in pairs)]
        for old in left:
            same = [new for new in right if (new["type"], new[key]) == (old["type"], old[key])]
            twins = [each for each in left if (each["type"], each[key]) == (old["type"], old[key])]
            if len(same) == len(twins) == 1:
                pairs.append((old, same[0]))
    return pairs


def _body(operation: Document, *, whole: bool = True) -> dict[str, object]:
    """What an operation does; its arguments are fields of its own."""
    own = {key: value for key, value in operation.items() if key not in ("id", "type", "arguments")}
    if not whole:
        own = {key: value for key, value in own.items() if key not in _HEAD}
    return {**own, **operation.get("arguments", {})}


def _describe(
    change: Literal["added", "removed", "changed"], operation: Document, fields: tuple[FieldChange, ...]
) -> OperationChange:
    return OperationChange(change, operation["seq"], operation["name"], operation["type"], fields)


def _compare(one: Document, other: Document) -> tuple[FieldChange, ...]:
    old, new = dict(_flatten(one)), dict(_flatten(other))
    return tuple(
        FieldChange(path, old.get(path), new.get(path))
        for path in dict.fromkeys([*old, *new])
        if old.get(path) != new.get(path)
    )


def _flatten(value: object, path: str = "") -> Iterator[tuple[str, object]]:
    """Every value with its path; a list of plain values is one value, its order counts."""
    if isinstance(value, Mapping):
        for key, each in value.items():
            yield from _flatten(each, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list | tuple) and value and all(isinstance(each, Mapping) for each in value):
        key = _find_name(value)
        for number, each in enumerate(value, start=1):
            rest = {name: part for name, part in each.items() if name != key}
            yield from _flatten(rest, f"{path}[{number if key is None else each[key]}]")
    elif value is not None:
        yield path, value


def _find_name(elements: Sequence[Document]) -> str | None:
    """The key that identifies elements; None if they have only their positions."""
    for key in _NAMES:
        names = [each.get(key) for each in elements]
        if None not in names and len(set(map(str, names))) == len(names):
            return key
    return None

"""The outer part of an operation: when it runs, what type it is, which rows it takes.

Which types there are and what their arguments mean is known to `plan` and is not checked here.
"""

import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Annotated, ClassVar, TypeGuard

from pydantic import Field

from dobonomodo.model.document import Entry, Node, Places
from dobonomodo.model.entity import NAMESPACE, Entity, Loaded, Prepared
from dobonomodo.model.plain import PlainDict
from dobonomodo.model.shape import CheckedApart
from dobonomodo.model.value import Filled, Id, Text, describe
from dobonomodo.problems import OperationRef, Problem, in_order
from dobonomodo.problems.definition import DuplicateSeq, InvalidOperation, InvalidSeq, LimitExceeded, OperationReason

MAX_OPERATIONS = 1_000
MAX_SEQ = 2**31 - 1

SYNONYM_BY_KEY = {"seq": "order", "name": "alias", "arguments": "parameters"}


class OperationSpec(Entity):
    """An operation as it is written, with its arguments as plain data."""

    cosmetic: ClassVar[frozenset[str]] = frozenset({"id", "name", "description"})
    advice_by_key: ClassVar[dict[str, str]] = {"kind": "write `type`"}

    id: Id = Field(default="", description="Identifies the operation in its project; generated if left out.")
    seq: Annotated[int, Field(ge=1, le=MAX_SEQ), CheckedApart(missing=True)] = Field(
        description="Operations run in the order of this number; unique in the project, gaps are allowed."
    )
    name: Filled = Field(default="", description="What people call it; `<type>-<seq>` if left out.")
    description: Text | None = Field(default=None, description="What it is for.")
    type: Annotated[str, CheckedApart()] = Field(description="What the operation does.")
    selector_text: Text | None = Field(
        default=None,
        alias="selector",
        description="Which rows it takes: a condition, or a named one as `{{name}}`. Left out: all but deleted ones.",
    )
    arguments: PlainDict = Field(default_factory=dict, description="What is particular to the type.")

    @classmethod
    def prepare(cls, places: Places, *, seed: str) -> Prepared:
        """One operation under its canonical keys; outside of a list it may do without a number."""
        return _prepare_operation(places, owner=seed, position=1)

    @classmethod
    def check(cls, places: Places) -> Iterable[Problem]:
        """A type that can be the name of one, and a number."""
        return tuple(replace(problem, operation=operation_ref(places)) for problem in _check_envelope(places))

    @property
    def selector(self) -> str | None:
        """The condition on rows; a blank one counts as none (C-20)."""
        return None if self.blank_selector else self.selector_text

    @property
    def blank_selector(self) -> bool:
        """Whether a selector was written that says nothing, as a template that went wrong would leave it."""
        return self.selector_text is not None and not self.selector_text.strip()

    @property
    def ref(self) -> OperationRef:
        """How problems name the operation."""
        return OperationRef(self.seq, self.name)

    def essence(self) -> dict[str, object]:
        """Order, type, rows and arguments."""
        return {"seq": self.seq, "type": self.type, "selector": self.selector, "arguments": self.arguments}


def load_operations(places: Places) -> Loaded[tuple[OperationSpec, ...]]:
    """A list of operations, or a single one, that stands alone."""
    if places.is_mapping:
        places = replace(places, node=Node((places.node,), places.node.start, places.node.end))
    prepared, problems = prepare_operations(places, owner="")
    loaded = [OperationSpec.load(element) for element in prepared.elements()]
    everything = in_order([*problems, *(problem for each in loaded for problem in each.problems)])
    if any(problem.severity == "error" for problem in everything):
        return Loaded(None, everything)
    return Loaded(tuple(each.value for each in loaded if each.value is not None), everything)


def prepare_operations(places: Places, *, owner: str) -> Prepared:
    """Operations in the order of `seq`, each under its canonical keys (C-03, C-04, C-06, C-07)."""
    elements = tuple(places.elements())
    if len(elements) > MAX_OPERATIONS:
        limit = LimitExceeded(what="operations in a project", limit=MAX_OPERATIONS, span=places.key_span())
        return Prepared(places.with_elements(()), (limit,))
    unnumbered = not any(key in element.keys for element in elements for key in ("seq", SYNONYM_BY_KEY["seq"]))
    prepared = [
        _prepare_operation(element, owner=owner, position=position if unnumbered else None)
        for position, element in enumerate(elements, start=1)
    ]
    problems = [problem for each in prepared for problem in each.problems]
    problems += _find_duplicate_seqs([each.places for each in prepared])
    ordered = sorted((each.places for each in prepared), key=_seq_or_zero)
    return Prepared(places.with_elements(part.node for part in ordered), tuple(problems))


def _prepare_operation(places: Places, *, owner: str, position: int | None) -> Prepared:
    if not isinstance(places.node.value, dict):
        return Prepared(places)
    problems: list[Problem] = []
    entries = dict(places.node.value)
    for key, synonym in SYNONYM_BY_KEY.items():
        problems += _take_synonym(entries, places, key=key, synonym=synonym)
    problems += _move_selector(entries, places)
    entries.setdefault("seq", Entry(Node("seq"), Node(position)))
    here = places.with_entries(entries)
    kind, seq = here.get("type"), here.get("seq")
    if here.get("name") is None:
        entries["name"] = Entry(Node("name"), Node(f"{kind}-{seq}"))
    if here.get("id") is None:
        entries["id"] = Entry(Node("id"), Node(str(uuid.uuid5(NAMESPACE, f"{owner}/operations/{seq}"))))
    if "arguments" in entries:
        arguments = entries["arguments"]
        entries["arguments"] = replace(arguments, value=_with_written_decimals(places, arguments.value))
    done = places.with_entries(entries)
    ref = operation_ref(done)
    return Prepared(done, tuple(replace(problem, operation=ref) for problem in problems))


def operation_ref(places: Places) -> OperationRef | None:
    """How problems name the operation that stands at a place, if it has a number."""
    seq = places.get("seq")
    return OperationRef(seq, places.text("name") or "") if _is_seq(seq) else None


def _take_synonym(entries: dict[str, Entry], places: Places, *, key: str, synonym: str) -> Iterator[Problem]:
    """Move what stands under a synonym to the canonical key."""
    other = entries.pop(synonym, None)
    if other is None:
        return
    if key not in entries or places.get(key) is None:
        entries[key] = other
    elif places.get(synonym) is not None and places.get(key) != places.get(synonym):
        yield InvalidOperation(
            reason=OperationReason.SYNONYM_CONFLICT,
            known=(key, synonym),
            first=places.key_span(key),
            span=places.key_span(synonym),
        )


def _move_selector(entries: dict[str, Entry], places: Places) -> Iterator[Problem]:
    """Move a selector from the arguments to the operation, where every type has it."""
    arguments = entries.get("arguments")
    if arguments is None or not isinstance(arguments.value.value, dict) or "selector" not in arguments.value.value:
        return
    inner = dict(arguments.value.value)
    moved = inner.pop("selector")
    entries["arguments"] = replace(arguments, value=replace(arguments.value, value=inner))
    if moved.value.value is None:
        return
    outer = entries.get("selector")
    if outer is None or outer.value.value is None:
        entries["selector"] = moved
    elif outer.value.value != moved.value.value:
        inner_places = replace(places, node=arguments.value)
        yield InvalidOperation(
            reason=OperationReason.SELECTOR_CONFLICT,
            found=str(arguments.key.value),
            first=places.key_span("selector"),
            span=inner_places.key_span("selector"),
        )


def _check_envelope(places: Places) -> Iterator[Problem]:
    kind = places.get("type")
    if kind is not None and not isinstance(kind, str):
        yield InvalidOperation(reason=OperationReason.UNKNOWN_TYPE, found=describe(kind), span=places.span("type"))
    seq = places.get("seq")
    if seq is None:
        yield InvalidSeq(found=None, span=places.key_span())
    elif not _is_seq(seq):
        yield InvalidSeq(found=describe(seq), span=places.span("seq"))


def _find_duplicate_seqs(operations: Sequence[Places]) -> Iterable[Problem]:
    first_by_seq: dict[int, Places] = {}
    for places in operations:
        seq = places.get("seq")
        if not _is_seq(seq):
            continue
        first = first_by_seq.setdefault(seq, places)
        if first is not places:
            yield DuplicateSeq(
                seq=seq, first=first.span("seq"), span=places.span("seq"), operation=operation_ref(places)
            )


def _with_written_decimals(places: Places, node: Node) -> Node:
    """Numbers with a fraction as the text they were written as, which JSON can keep exactly."""
    match node.value:
        case dict():
            entries = {
                key: replace(entry, value=_with_written_decimals(places, entry.value))
                for key, entry in node.value.items()
            }
            return replace(node, value=entries)
        case tuple():
            return replace(node, value=tuple(_with_written_decimals(places, element) for element in node.value))
        case Decimal():
            written = str(node.value)
            if places.source is not None and node.start >= 0:
                written = places.source.text[node.start : node.end]
            return replace(node, value=written)
        case _:
            return node


def _is_seq(seq: object) -> TypeGuard[int]:
    return isinstance(seq, int) and not isinstance(seq, bool) and 0 < seq <= MAX_SEQ


def _seq_or_zero(places: Places) -> int:
    seq = places.get("seq")
    return seq if _is_seq(seq) else 0

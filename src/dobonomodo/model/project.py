"""A project: operations that run in order over the rows of a dataset."""

from collections.abc import Iterable
from dataclasses import replace
from typing import ClassVar, Literal, NamedTuple, Self

from pydantic import Field, ValidationError

from dobonomodo.model.document import Entry, Node, Places
from dobonomodo.model.entity import Entity, Loaded, Prepared
from dobonomodo.model.operation import OperationSpec, operation_ref, prepare_operations
from dobonomodo.model.shape import keys_of
from dobonomodo.model.value import Count, Filled, Id, Text, is_identifier
from dobonomodo.problems import Problem
from dobonomodo.problems.definition import InvalidValue

REGISTER = "register_as_dataset"
"""The argument by which an operation makes its rows a dataset."""


class Project(Entity):
    """A recipe. Its operations are in the order of `seq`, whatever the order they were written in."""

    kind: ClassVar[str] = "project"
    cosmetic: ClassVar[frozenset[str]] = frozenset({"id", "name", "description", "owner"})
    advice_by_key: ClassVar[dict[str, str]] = {
        "status": "a file is the draft; `dobo activate` and `dobo deactivate` change the status",
        "version": "versions are counted when definitions are applied; leave it out",
        "dataset_id": "did you mean `input_dataset_id`?",
    }

    id: Id = Field(default="", description="What runs and commands refer to; generated if left out.")
    name: Filled = Field(default="", description="What people call it; the id if left out.")
    description: Text | None = Field(default=None, description="What it computes.")
    owner: Text | None = Field(default=None, description="Who answers for it.")
    input_dataset_id: Id = Field(description="The dataset whose rows the operations work on.")
    input_dataset_version: Count | None = Field(
        default=None, description="A version of the input dataset to stay with; left out, activation pins the latest."
    )
    selectors: dict[str, Filled] = Field(
        default_factory=dict, description="Named conditions, used in selectors and expressions as `{{name}}`."
    )
    resolver_overrides: dict[str, Id] = Field(
        default_factory=dict, description="Resolvers to use instead, by dataset id."
    )
    publish: Literal["together", "as_done"] | None = Field(
        default=None,
        description="Publish all outputs at the end, together (the default), or each when it is done (`as_done`).",
    )
    operations: tuple[OperationSpec, ...] = Field(description="What is done, in the order of `seq`.")

    @classmethod
    def load(cls, places: Places, *, seed: str = "") -> Loaded[Self]:
        """The project at a place; each problem inside an operation names it."""
        loaded = super().load(places, seed=seed)
        operations = places.at("operations")
        if operations is None or not loaded.problems:
            return loaded
        prepared = tuple(prepare_operations(operations, owner="").places.elements())
        return Loaded(loaded.value, tuple(_name_operation(problem, prepared) for problem in loaded.problems))

    @classmethod
    def salvage(cls, places: Places) -> "Salvaged | None":
        """What can be used of a project with problems, so that the rest of it is still checked."""
        whole = places.node.value
        operations = places.at("operations")
        if not isinstance(whole, dict) or operations is None or places.text("input_dataset_id") is None:
            return None
        prepared = prepare_operations(operations, owner="").places
        kept: list[Node] = []
        dropped: list[int] = []
        for part in prepared.elements():
            sound = _without_unknown_keys(part)
            if OperationSpec.load(sound).value is not None:
                kept.append(sound.node)
            else:
                seq = part.get("seq")
                dropped.append(seq if isinstance(seq, int) else 0)
        entries = {key: entry for key, entry in whole.items() if key in ("id", "input_dataset_id")}
        for key in ("selectors", "resolver_overrides"):
            named = places.at(key)
            if named is not None and isinstance(named.node.value, dict):
                texts = {name: entry for name, entry in named.node.value.items() if isinstance(entry.value.value, str)}
                entries[key] = replace(whole[key], value=replace(named.node, value=texts))
        entries["operations"] = Entry(whole["operations"].key, replace(prepared.node, value=tuple(kept)))
        usable = places.with_entries(entries)
        try:
            project = cls.model_validate(usable.data)
        except ValidationError:
            return None
        project.attach(usable)
        return Salvaged(project, min(dropped, default=None))

    @classmethod
    def prepare(cls, places: Places, *, seed: str) -> Prepared:
        """An id, and every operation in its canonical form."""
        places, problems = super().prepare(places, seed=seed)
        operations = places.at("operations")
        if operations is None or not operations.is_list or not isinstance(places.node.value, dict):
            return Prepared(places, problems)
        prepared = prepare_operations(operations, owner=places.text("id") or "")
        entry = Entry(places.node.value["operations"].key, prepared.places.node)
        return Prepared(
            places.with_entries({**places.node.value, "operations": entry}), (*problems, *prepared.problems)
        )

    @classmethod
    def check(cls, places: Places) -> Iterable[Problem]:
        """Names of selectors that can be written between braces."""
        selectors = places.at("selectors")
        for name in selectors.keys if selectors is not None else ():
            if selectors is not None and not is_identifier(name):
                yield InvalidValue(
                    key="selectors",
                    expected="names of letters, digits and `_`",
                    found=f"`{name}`",
                    span=selectors.key_span(name),
                )


class Salvaged(NamedTuple):
    """A project without the operations that could not be read, and the number of the first of those."""

    project: Project
    uncertain_from: int | None


def _without_unknown_keys(places: Places) -> Places:
    known = keys_of(OperationSpec)
    value = places.node.value
    if not isinstance(value, dict):
        return places
    return places.with_entries({key: entry for key, entry in value.items() if key in known})


def _name_operation(problem: Problem, operations: Iterable[Places]) -> Problem:
    span = problem.span
    if problem.operation is not None or span is None:
        return problem
    for places in operations:
        if places.source == span.source and places.node.start <= span.start < places.node.end:
            return replace(problem, operation=operation_ref(places))
    return problem

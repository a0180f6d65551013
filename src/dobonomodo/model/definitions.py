"""All definitions of a workspace together: loaded from texts, and checked against each other."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol, TypeVar

from dobonomodo.model.calendar import Calendar
from dobonomodo.model.dataset import Dataset, check_columns_exist
from dobonomodo.model.datasource import DataSource
from dobonomodo.model.document import Document, Places, load_documents
from dobonomodo.model.project import REGISTER, Project, Salvaged
from dobonomodo.model.resolver import ANY_LEVEL, Resolver
from dobonomodo.model.workspace import Workspace
from dobonomodo.problems import Problem, Source, Span, in_order
from dobonomodo.problems.definition import (
    DuplicateDefault,
    DuplicateId,
    DuplicateWorkspace,
    InvalidDocument,
    UnknownKind,
    UnknownReference,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from dobonomodo.model.entity import Entity, Loaded

ENTITIES: tuple[type[Entity], ...] = (Workspace, DataSource, Resolver, Calendar, Dataset, Project)
SCENARIO = "scenario"
KINDS: tuple[str, ...] = (*(entity.kind for entity in ENTITIES), SCENARIO)

_SCHEMA_KEY = "$schema"
"""Editors read the address of the schema of a JSON file from this key."""

_KEPT_CHARACTERS, _KEPT_TEXTS = 50_000, 200
"""Texts up to this length are kept with what they define, so many of them: a workspace is often opened again unchanged."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Definitions:
    """What a workspace defines, by kind and id. Definitions with problems are not among them."""

    workspace: Workspace = field(default_factory=Workspace)
    has_workspace: bool = False
    """Whether a document describes the workspace; it is all defaults otherwise."""
    lacks_workspace: bool = False
    """Whether a document describes the workspace and could not be loaded."""
    datasources: Mapping[str, DataSource] = field(default_factory=dict)
    resolvers: Mapping[str, Resolver] = field(default_factory=dict)
    calendars: Mapping[str, Calendar] = field(default_factory=dict)
    datasets: Mapping[str, Dataset] = field(default_factory=dict)
    projects: Mapping[str, Project] = field(default_factory=dict)
    salvaged: tuple[Salvaged, ...] = ()
    """Projects that have problems, without the operations that could not be read."""
    broken: Mapping[str, Mapping[str, Places]] = field(default_factory=dict)
    """By kind and id, the definitions that exist and could not be loaded."""
    texts: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """By kind and id, the documents as they were written."""
    scenarios: tuple[Document, ...] = ()

    @property
    def default_resolver(self) -> str | None:
        """The resolver that the workspace names, else the one that is marked, also if that could not be loaded."""
        if self.workspace.default_resolver is not None:
            return self.workspace.default_resolver
        sound = (name for name, resolver in self.resolvers.items() if resolver.is_default)
        broken = (name for name, places in self.broken.get("resolver", {}).items() if places.get("is_default") is True)
        return next(sound, None) or next(broken, None)

    @property
    def default_calendar(self) -> Calendar | None:
        """The calendar that is marked, else the only one there is."""
        marked = next((calendar for calendar in self.calendars.values() if calendar.is_default), None)
        if marked is None and len(self.calendars) == 1:
            return next(iter(self.calendars.values()))
        return marked


class LoadsDataSource(Hashable, Protocol):
    """Loads a datasource by what is known of its type."""

    def __call__(self, places: Places, *, seed: str) -> Loaded[DataSource]:
        """The datasource at a place of a document; ``seed`` makes the id where none is given."""
        ...


def load_definitions(
    sources: Iterable[Source], *, load_datasource: LoadsDataSource = DataSource.load
) -> tuple[Definitions, tuple[Problem, ...]]:
    """The definitions in a number of texts, and every problem of all of them; sound definitions are there in any case.

    Storages know the types of datasources and their options: without ``load_datasource``, those are not checked.
    """
    problems: list[Problem] = []
    drafts: list[_Draft] = []
    scenarios: list[Document] = []
    for source in sources:
        read = (_read_kept if len(source.text) <= _KEPT_CHARACTERS else _read)(source, load_datasource)
        drafts += read.drafts
        scenarios += read.scenarios
        problems += read.problems
    problems += _find_duplicates(drafts)
    problems += _find_defaults(drafts)
    problems += _check_references(drafts)
    first_workspace = next(iter(_of_kind(drafts, Workspace).values()), None)
    definitions = Definitions(
        workspace=first_workspace or Workspace(),
        has_workspace=first_workspace is not None,
        lacks_workspace=any(draft.kind is Workspace and draft.entity is None for draft in drafts),
        datasources=_of_kind(drafts, DataSource),
        resolvers=_of_kind(drafts, Resolver),
        calendars=_of_kind(drafts, Calendar),
        datasets=_of_kind(drafts, Dataset),
        projects=_of_kind(drafts, Project),
        salvaged=tuple(_salvage(drafts)),
        broken=_find_broken(drafts),
        texts=_find_texts(drafts),
        scenarios=tuple(scenarios),
    )
    return definitions, in_order(problems)


@dataclass(frozen=True, slots=True)
class _Draft:
    """A definition that may have failed to load; what it says of itself is used to check the others."""

    kind: type[Entity]
    places: Places
    entity: Entity | None
    text: str

    @property
    def id(self) -> str | None:
        return self.places.text("id") if self.entity is None else getattr(self.entity, "id", "")

    @property
    def span(self) -> Span | None:
        return self.places.span("id") if self.places.at("id") is not None else self.places.key_span()


@dataclass(frozen=True, slots=True)
class _Read:
    """What a text defines, and every problem of it."""

    drafts: tuple[_Draft, ...]
    scenarios: tuple[Document, ...]
    problems: tuple[Problem, ...]


def _read(source: Source, load_datasource: LoadsDataSource) -> _Read:
    documents, faults = load_documents(source)
    drafts: list[_Draft] = []
    scenarios: list[Document] = []
    problems = list(faults)
    for document in documents:
        kind, wrong = _find_kind(document)
        problems += wrong
        if kind == SCENARIO:
            scenarios.append(document)
        elif kind is not None and not wrong:
            model = next(entity for entity in ENTITIES if entity.kind == kind)
            places, seed = document.places.at(kind) or document.places, f"{source.name}#{document.position}"
            loaded = load_datasource(places, seed=seed) if model is DataSource else model.load(places, seed=seed)
            drafts.append(_Draft(model, places, loaded.value if document.sound else None, document.text))
            problems += loaded.problems
    return _Read(tuple(drafts), tuple(scenarios), tuple(problems))


_read_kept = lru_cache(maxsize=_KEPT_TEXTS)(_read)


def _find_kind(document: Document) -> tuple[str | None, tuple[Problem, ...]]:
    places = document.places
    keys = [key for key in places.keys if key != _SCHEMA_KEY]
    if not keys:
        return None, (InvalidDocument(kinds=KINDS, span=places.key_span()),)
    known = [key for key in keys if key in KINDS]
    if not known:
        return None, (UnknownKind(kind=keys[0], known=KINDS, span=places.key_span(keys[0])),)
    second = next((key for key in keys if key != known[0]), None)
    if second is not None:
        return known[0], (InvalidDocument(kinds=KINDS, also=second, span=places.key_span(second)),)
    return known[0], ()


def _find_texts(drafts: Iterable[_Draft]) -> Mapping[tuple[str, str], str]:
    found: dict[tuple[str, str], str] = {}
    for draft in drafts:
        if draft.entity is not None:
            found.setdefault((draft.kind.kind, draft.id or ""), draft.text)
    return MappingProxyType(found)


def _of_kind(drafts: Iterable[_Draft], kind: type[T]) -> Mapping[str, T]:
    """The sound definitions of a kind, the first of each id."""
    found: dict[str, T] = {}
    for draft in drafts:
        if isinstance(draft.entity, kind):
            found.setdefault(draft.id or "", draft.entity)
    return MappingProxyType(found)


def _find_broken(drafts: Iterable[_Draft]) -> Mapping[str, Mapping[str, Places]]:
    broken: dict[str, dict[str, Places]] = {}
    for draft in drafts:
        if draft.entity is None and draft.id:
            broken.setdefault(draft.kind.kind, {})[draft.id] = draft.places
    return broken


def _salvage(drafts: Iterable[_Draft]) -> Iterator[Salvaged]:
    for draft in drafts:
        if draft.kind is Project and draft.entity is None and (found := Project.salvage(draft.places)) is not None:
            yield found


def _find_duplicates(drafts: Iterable[_Draft]) -> Iterator[Problem]:
    first_by_id: dict[tuple[type[Entity], str], _Draft] = {}
    for draft in drafts:
        identity = "" if draft.kind is Workspace else draft.id
        if identity is None:
            continue
        first = first_by_id.setdefault((draft.kind, identity), draft)
        if first is draft:
            continue
        if draft.kind is Workspace:
            yield DuplicateWorkspace(first=first.span, span=draft.span)
        else:
            yield DuplicateId(kind=draft.kind.kind, id=identity, first=first.span, span=draft.span)


def _find_defaults(drafts: Iterable[_Draft]) -> Iterator[Problem]:
    """More than one default of a kind; the choice of the workspace counts as one."""
    first_by_kind: dict[type[Entity], tuple[str, Span | None]] = {}
    for draft in drafts:
        chosen = draft.places.text("default_resolver") if draft.kind is Workspace else None
        if chosen is not None:
            first_by_kind.setdefault(Resolver, (chosen, draft.places.span("default_resolver")))
    for draft in drafts:
        if draft.kind not in (Resolver, Calendar) or draft.places.get("is_default") is not True:
            continue
        name = draft.id or ""
        other, span = first_by_kind.setdefault(draft.kind, (name, draft.places.key_span("is_default")))
        if other != name:
            yield DuplicateDefault(
                kind=draft.kind.kind, id=name, other=other, first=span, span=draft.places.key_span("is_default")
            )


def _check_references(drafts: Iterable[_Draft]) -> Iterator[Problem]:
    ids_by_kind: dict[type[Entity], tuple[str, ...]] = {
        kind: tuple(draft.id for draft in drafts if draft.kind is kind and draft.id) for kind in ENTITIES
    }

    registered = (
        part.text() or "" for draft in drafts if draft.kind is Project for part in draft.places.find(REGISTER)
    )
    ids_by_kind[Dataset] += tuple(registered)

    def check(kind: type[Entity], places: Places, *path: str | int) -> Iterator[Problem]:
        wanted = places.text(*path)
        if wanted is not None and wanted not in ids_by_kind[kind]:
            yield UnknownReference(kind=kind.kind, id=wanted, known=ids_by_kind[kind], span=places.span(*path))

    columns_by_dataset = {
        draft.entity.id: tuple(column.name for column in draft.entity.main_table.columns)
        for draft in drafts
        if isinstance(draft.entity, Dataset)
    }
    for draft in drafts:
        places = draft.places
        if draft.kind is Workspace:
            yield from check(Resolver, places, "default_resolver")
            for name in (places.at("environments") or places).keys:
                yield from check(Resolver, places, "environments", name, "default_resolver")
        elif draft.kind is Resolver:
            rules = places.at("rules")
            for rule in rules.elements() if rules is not None else ():
                yield from check(DataSource, rule, "strategy", "datasource_id")
                yield from _check_level(rule, drafts)
        elif draft.kind is Dataset:
            yield from check(Resolver, places, "resolver_id")
            lookups = places.at("lookups")
            for lookup in lookups.elements() if lookups is not None else ():
                if lookup.text("target", "type") != "dataset":
                    continue
                yield from check(Dataset, lookup, "target", "id")
                known = columns_by_dataset.get(lookup.text("target", "id") or "", ())
                yield from check_columns_exist(lookup, "target_column", known=known, qualifier=lookup.text("alias"))


def _check_level(rule: Places, drafts: Iterable[_Draft]) -> Iterator[Problem]:
    """The level of a rule exists in some calendar, where there are calendars."""
    wanted = rule.text("data_level")
    calendars = [draft.places.at("levels") for draft in drafts if draft.kind is Calendar]
    levels = tuple(
        name for level in calendars if level is not None for part in level.elements() if (name := part.text("name"))
    )
    if wanted is not None and calendars and wanted != ANY_LEVEL and wanted not in levels:
        known = (*dict.fromkeys(levels), ANY_LEVEL)
        yield UnknownReference(kind="calendar level", id=wanted, known=known, span=rule.span("data_level"))

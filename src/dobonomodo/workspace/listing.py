"""Listing and describing: the definitions in the files and in the store, with their versions and status."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from dobonomodo.model import Definitions, Entity
from dobonomodo.model.plain import Document
from dobonomodo.problems import Rejected
from dobonomodo.problems.workspace import NotDefined
from dobonomodo.workspace.arguments import read_choice
from dobonomodo.workspace.files import KINDS

if TYPE_CHECKING:
    from dobonomodo.runs.control import Signed
    from dobonomodo.store import Activation, Store, Version
    from dobonomodo.workspace.answer import Answer
    from dobonomodo.workspace.files import Files
    from dobonomodo.workspace.planning import Planning
    from dobonomodo.workspace.signing import Signing
    from dobonomodo.workspace.stores import Stores

PROJECT = "project"
PLANNED = "planned"
"""The status of a dataset that a project will register, and that no run has registered yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """A definition in a list."""

    kind: str
    id: str
    name: str
    version: int | None
    """The newest one that is recorded."""
    status: str
    is_changed: bool
    """Whether the files say something else than the newest version."""
    live_version: int | None = None
    """Of a project, the version that runs."""

    def to_dict(self) -> dict[str, object]:
        """As plain data."""
        found: dict[str, object] = {
            "id": self.id,
            "name": self.name,
            "version": self.version,
            "status": self.status,
            "changed": self.is_changed,
        }
        return {**found, "live_version": self.live_version} if self.kind == PROJECT else found


@dataclass(frozen=True, slots=True)
class Entry:
    """Something in a list of many kinds, with the id by which one asks for more."""

    id: str
    answer: Answer

    def to_dict(self) -> dict[str, object]:
        """As plain data."""
        return {"id": self.id, **self.answer.to_dict()}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DescribedVersion:
    """One recorded version of a definition."""

    version: int
    status: str
    created_at: datetime
    created_by: str
    activation: Activation | None
    """Of a project that was ever active: since when, and what it reads."""
    conflict: Document | None
    location: Document | None
    """Where the rows of a registered dataset are."""
    signed: tuple[Signed, ...]
    """Who signed a version of a project."""

    @classmethod
    def of(cls, version: Version, signed: tuple[Signed, ...]) -> DescribedVersion:
        """What a record says to people."""
        return cls(
            version=version.version,
            status=version.status,
            created_at=version.created_at,
            created_by=version.created_by,
            activation=version.activation,
            conflict=version.conflict,
            location=version.location,
            signed=signed,
        )

    def to_dict(self) -> dict[str, object]:
        """As plain data, without what a version does not have."""
        found: dict[str, object] = {
            "version": self.version,
            "status": self.status,
            "created_at": self.created_at.isoformat(),
            "created_by": self.created_by,
        }
        if self.activation is not None:
            found["reads"] = f"{self.activation.pin.dataset} v{self.activation.pin.version}"
            found["activated_at"] = self.activation.at.isoformat()
        if self.conflict is not None:
            found["conflict"] = dict(self.conflict)
        if self.location is not None:
            found["location"] = dict(self.location)
        if self.signed:
            found["sign_offs"] = [each.to_dict() for each in self.signed]
        return found


@dataclass(frozen=True, slots=True, eq=False)
class Description:
    """All about one definition."""

    kind: str
    id: str
    versions: tuple[DescribedVersion, ...]
    definition: Document | None
    """As the files have it, else as it was last recorded; None of a dataset that cannot be planned."""
    registered_by: tuple[str, ...] = ()
    """The projects that will register a dataset which does not exist yet."""

    def to_dict(self) -> dict[str, object]:
        """As plain data."""
        return {
            "kind": self.kind,
            "id": self.id,
            "versions": [each.to_dict() for each in self.versions],
            **({"registered_by": list(self.registered_by)} if self.registered_by else {}),
            **({"definition": dict(self.definition)} if self.definition is not None else {}),
        }


class Listing:
    """What there is in a workspace."""

    def __init__(self, files: Files, stores: Stores, planning: Planning, *, signing: Callable[[], Signing]) -> None:
        self._definitions, self._stores, self._planning = files.definitions, stores, planning
        self._signing = signing

    def list(self, kind: str) -> tuple[Listed, ...]:
        """The definitions of a kind, in the files and in the store, with version and status."""
        read_choice("kind", kind, KINDS[1:])
        own = _entities(self._definitions, kind)
        store = self._stores.find_main()
        recorded = {version.id: version for version in store.list_definitions(kind)} if store is not None else {}
        live = _find_live(store) if kind == PROJECT else {}
        rows = [_list(kind, name, own.get(name), recorded.get(name), live.get(name)) for name in {*own, *recorded}]
        if kind == "dataset":
            rows += self._list_planned({*own, *recorded})
        return tuple(sorted(rows, key=lambda row: row.id))

    def _list_planned(self, known: set[str]) -> Iterator[Listed]:
        for name in self._planning.find_makers():
            if name not in known:
                yield Listed(kind="dataset", id=name, name=name, version=None, status=PLANNED, is_changed=False)

    def describe(self, name: str) -> Description:
        """All about the project, dataset or other definition of this id."""
        store = self._stores.find_main()
        for kind in ("project", "dataset", "resolver", "datasource", "calendar"):
            entity = _entities(self._definitions, kind).get(name)
            versions = store.list_versions(kind, name) if store is not None else ()
            if entity is not None or versions:
                definition = entity.document() if entity is not None else versions[-1].document
                described = tuple(DescribedVersion.of(version, self._find_signed(version)) for version in versions)
                return Description(kind, name, described, definition)
        if makers := self._planning.find_makers().get(name):
            planned = self._planning.draft_datasets().find(name)
            known_by = planned.dataset.document() if planned is not None else None
            return Description("dataset", name, (), known_by, registered_by=tuple(makers))
        known = [row.id for kind in ("project", "dataset") for row in self.list(kind)]
        raise Rejected([NotDefined(kind="project or dataset", id=name, known=tuple(known))])

    def _find_signed(self, version: Version) -> tuple[Signed, ...]:
        if version.kind != PROJECT:
            return ()
        signing = self._signing()
        return tuple(signing.list_signed(signing.of_version(version)))


def _entities(definitions: Definitions, kind: str) -> Mapping[str, Entity]:
    groups: Mapping[str, Mapping[str, Entity]] = {
        "datasource": definitions.datasources,
        "resolver": definitions.resolvers,
        "calendar": definitions.calendars,
        "dataset": definitions.datasets,
        "project": definitions.projects,
    }
    return groups[kind]


def _find_live(store: Store | None) -> Mapping[str, Version]:
    return {version.id: version for version in store.list_live_projects()} if store is not None else {}


def _list(kind: str, name: str, entity: Entity | None, version: Version | None, live: Version | None) -> Listed:
    status = getattr(entity, "status", "draft") if version is None else version.status
    recorded_name = str(version.document.get("name", name)) if version is not None else name
    return Listed(
        kind=kind,
        id=name,
        name=getattr(entity, "name", name) if entity is not None else recorded_name,
        version=version.version if version is not None else None,
        status=str(live.status if live is not None else status),
        is_changed=entity is not None and (version is None or version.fingerprint != entity.fingerprint()),
        live_version=live.version if live is not None else None,
    )

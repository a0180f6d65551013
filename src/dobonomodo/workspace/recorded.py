"""What the store has recorded, loaded back as entities: datasets, projects, and the resolvers and datasources of the last apply."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dobonomodo.model import Definitions, Project, load_definitions
from dobonomodo.problems import Problem, Rejected, Source
from dobonomodo.storage import load_datasource

if TYPE_CHECKING:
    from dobonomodo.store import Store, Version


def load_recorded(version: Version, kind: type[Any]) -> Any:
    """A recorded version as an entity; its places are in the record, shown as JSON."""
    text = json.dumps({version.kind: version.document}, indent=2, ensure_ascii=False)
    source = Source(f"{version.id} version {version.version}", text)
    definitions, problems = load_definitions([source], load_datasource=load_datasource)
    group: Mapping[str, Any] = getattr(definitions, f"{version.kind}s")
    entity = group.get(version.id)
    if not isinstance(entity, kind):
        raise Rejected(problems)
    return entity


def load_recorded_project(version: Version) -> Project:
    """A recorded project, with the version of the input dataset that it is pinned to."""
    project: Project = load_recorded(version, Project)
    if version.activation is None:
        return project
    return project.model_copy(update={"input_dataset_version": version.activation.pin.version})


def load_recorded_definitions(store: Store) -> tuple[Definitions, tuple[Problem, ...]]:
    """Resolvers and datasources as they were last applied, with their problems; what the files say since then is draft."""
    documents = [
        {kind: dict(version.document)}
        for kind in ("datasource", "resolver")
        for version in store.list_definitions(kind)
    ]
    sources = [Source("recorded", json.dumps(document)) for document in documents]
    return load_definitions(sources, load_datasource=load_datasource)


def find_live_version(store: Store | None, project_id: str) -> Version | None:
    """The version of a project that is active or in conflict."""
    live = store.list_live_projects() if store is not None else ()
    return next((each for each in live if each.id == project_id), None)


def find_resting_status(store: Store | None, project_id: str) -> str | None:
    """The status of a project without an active version, if that keeps it from running."""
    newest = store.get_version("project", project_id) if store is not None else None
    return newest.status if newest is not None and newest.status == "inactive" else None

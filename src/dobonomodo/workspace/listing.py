"""Listing and describing: the definitions in the files and in the store, with their versions and status."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from dobonomodo.problems import Rejected
from dobonomodo.problems.workspace import NotDefined
from dobonomodo.workspace.arguments import read_choice
from dobonomodo.workspace.files import KINDS

if TYPE_CHECKING:
    from dobonomodo.store import Version
    from dobonomodo.workspace.files import Files
    from dobonomodo.workspace.planning import Planning
    from dobonomodo.workspace.signing import Signing
    from dobonomodo.workspace.stores import Stores


class Listing:
    """What there is in a workspace."""

    def __init__(self, files: Files, stores: Stores, planning: Planning, *, signing: Callable[[], Signing]) -> None:
        self._definitions, self._stores, self._planning = files.definitions, stores, planning
        self._signing = signing

    def list(self, kind: str) -> list[dict[str, Any]]:
        """The definitions of a kind, in the files and in the store, with version and status."""
        read_choice("kind", kind, KINDS[1:])
        own: Mapping[str, Any] = getattr(self._definitions, f"{kind}s")
        store = self._stores.find_main()
        recorded = {version.id: version for version in store.list_definitions(kind)} if store is not None else {}
        live = {version.id: version for version in store.list_live_projects()} if store is not None else {}
        rows = []
        for name in sorted({*own, *recorded}):
            entity, version = own.get(name), recorded.get(name)
            status = getattr(entity, "status", "draft") if version is None else version.status
            if kind == "project" and name in live:
                status = live[name].status
            shown = entity.name if entity is not None else (version.document.get("name", name) if version else name)
            changed = entity is not None and (version is None or version.fingerprint != entity.fingerprint())
            number = version.version if version is not None else None
            row = {"id": name, "name": shown, "version": number, "status": str(status), "changed": changed}
            if kind == "project":
                row["live_version"] = live[name].version if name in live else None
            rows.append(row)
        makers = self._planning.find_makers() if kind == "dataset" else ()
        planned = [name for name in makers if name not in own and name not in recorded]
        rows += [{"id": name, "name": name, "version": None, "status": "planned", "changed": False} for name in planned]
        return sorted(rows, key=lambda row: str(row["id"]))

    def describe(self, name: str) -> dict[str, Any]:
        """All about the project, dataset or other definition of this id."""
        store = self._stores.find_main()
        for kind in ("project", "dataset", "resolver", "datasource", "calendar"):
            entity = getattr(self._definitions, f"{kind}s").get(name)
            versions = store.list_versions(kind, name) if store is not None else ()
            if entity is None and not versions:
                continue
            found: dict[str, Any] = {"kind": kind, "id": name}
            found["versions"] = [
                {**_describe_version(version), **self._describe_signed(version)} for version in versions
            ]
            found["definition"] = entity.document() if entity is not None else dict(versions[-1].document)
            return found
        if makers := self._planning.find_makers().get(name):
            found = {"kind": "dataset", "id": name, "versions": [], "registered_by": makers}
            planned = self._planning.draft_datasets().find(name)
            return found if planned is None else {**found, "definition": planned.dataset.document()}
        known = [row["id"] for kind in ("project", "dataset") for row in self.list(kind)]
        raise Rejected([NotDefined(kind="project or dataset", id=name, known=tuple(known))])

    def _describe_signed(self, version: Version) -> dict[str, Any]:
        """Who signed a version of a project."""
        if version.kind != "project":
            return {}
        signing = self._signing()
        signed = signing.list_signed(signing.of_version(version))
        return {"sign_offs": [each.to_dict() for each in signed]} if signed else {}


def _describe_version(version: Version) -> dict[str, Any]:
    described: dict[str, Any] = {
        "version": version.version,
        "status": version.status,
        "created_at": version.created_at.isoformat(),
        "created_by": version.created_by,
    }
    if version.activation is not None:
        pin = version.activation.pin
        described["reads"] = f"{pin.dataset} v{pin.version}"
        described["activated_at"] = version.activation.at.isoformat()
    if version.conflict is not None:
        described["conflict"] = dict(version.conflict)
    if version.location is not None:
        described["location"] = dict(version.location)
    return described

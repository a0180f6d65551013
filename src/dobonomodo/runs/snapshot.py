"""The snapshot of a run: everything that its result depends on, as plain data, and the way back from it to a plan."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import TYPE_CHECKING

from dobonomodo.model import Dataset, Definitions, Project, load_definitions
from dobonomodo.model.datasource import DataSource
from dobonomodo.model.parameter import settle_parameters, show_value
from dobonomodo.model.plain import Document
from dobonomodo.plan import KnownDataset, Plan, plan_project
from dobonomodo.plan.dataset import DatasetUse, Location, ReadPeriod, freeze_options, recorded_key
from dobonomodo.plan.destination import Together
from dobonomodo.plan.facts import RunFacts
from dobonomodo.plan.resolution import Resolved
from dobonomodo.problems import InternalError, Rejected, Source
from dobonomodo.problems.run import SnapshotTooNew
from dobonomodo.storage import Pinned, destination_kinds, load_datasource, load_pin, load_stored

if TYPE_CHECKING:
    from dobonomodo.store import Override

FORMAT = 1
"""Which keys a snapshot has and what they mean. Another number means that an older program would misread it."""


def take_snapshot(
    plan: Plan,
    facts: RunFacts,
    *,
    as_of: date | None,
    version: int | None,
    status: str,
    datasets: Sequence[KnownDataset],
    resolvers: Sequence[Document],
    datasources: Mapping[str, DataSource],
    together: Together | None,
    inputs: Pinned | None,
    versions: Mapping[str, str],
    override: Override | None = None,
) -> dict[str, object]:
    """Take the snapshot, without secrets: definitions only refer to them. Includes the override that allowed the run."""
    used = {location.datasource_id for use in plan.uses for location in use.locations}
    used |= {use.registered.datasource_id or "" for use in plan.uses if use.registered is not None}
    used |= {step.lowered.write.destination.datasource_id or "" for step in plan.steps if step.lowered.write}
    return {
        "format": FORMAT,
        "project": {
            "id": plan.project.id,
            "name": plan.project.name,
            "version": version,
            "status": status,
            "fingerprint": plan.project.fingerprint(),
            "document": plan.project.document(),
        },
        "period": {
            "identifier": facts.period,
            "start_date": facts.period_start.isoformat(),
            "end_date": facts.period_end.isoformat(),
        },
        "started_at": facts.started_at.isoformat(),
        "as_of": as_of.isoformat() if as_of is not None else None,
        "parameters": {name: show_value(value) for name, value in facts.parameters.items()},
        "datasets": [
            {
                "version": known.version,
                "document": known.dataset.document(),
                "registered": known.registered.document() if known.registered is not None else None,
                "has_period": known.has_period,
            }
            for known in datasets
        ],
        "resolvers": [dict(each) for each in resolvers],
        "datasources": [source.document() for name, source in datasources.items() if name in used],
        "together": together.document() if together is not None else None,
        "readings": [_describe_reading(use, facts, as_of) for use in plan.uses],
        "inputs": None if inputs is None else {key: [pin.document() for pin in pins] for key, pins in inputs.items()},
        "versions": dict(versions),
        "override": (
            {"reason": override.reason, "approved_by": list(override.approved_by)} if override is not None else None
        ),
    }


def _describe_reading(use: DatasetUse, facts: RunFacts, as_of: date | None) -> dict[str, object]:
    bitemporal = use.temporal_mode == "bitemporal"
    return {
        "role": use.role,
        "dataset": use.dataset_id,
        "version": use.version,
        "table": use.table,
        "operation_seq": use.seq,
        "alias": use.alias,
        "as_of": use.valid_on(facts, as_of).isoformat() if bitemporal else None,
        "periods": [each.document() for each in use.periods] if use.periods is not None else None,
        "resolver": use.resolver_id,
        "locations": [_describe_location(location) for location in use.locations],
    }


def _describe_location(location: Location) -> dict[str, object]:
    own = {name: getattr(location, name) for name in Location.__slots__ if name != "options"}
    return {**own, "options": dict(location.options)} if location.options else own


def _load_location(document: Document) -> Location:
    return Location(**{**document, "options": freeze_options(document.get("options", {}))})


@dataclass(frozen=True, slots=True, eq=False)
class RunSpec:
    """What a run computes: created by planning, or by restoring a snapshot."""

    plan: Plan
    facts: RunFacts
    as_of: date | None
    """The day that the run itself named; snapshots of older programs always have one."""
    datasources: Mapping[str, DataSource]
    status: str
    inputs: Pinned | None


def restore_snapshot(snapshot: Document) -> RunSpec:
    """The plan of a run from its snapshot alone: current files and definitions are ignored."""
    _require_known_format(snapshot)
    own = _load(snapshot)
    project: Project = own.projects[snapshot["project"]["id"]]
    planned = plan_project(
        project,
        datasets=_SnapshotDatasets(snapshot),
        resolution=_Located(snapshot),
        datasources=own.datasources,
        kinds=destination_kinds(),
    )
    if planned.plan is None or planned.plan.project.fingerprint() != snapshot["project"]["fingerprint"]:
        raise InternalError("the plan cannot be restored from the snapshot of the run")
    period = snapshot["period"]
    # Snapshots of older programs are of projects without parameters.
    settled = settle_parameters(project.id, project.parameters or {}, snapshot.get("parameters", {}))
    if settled.problems:
        raise InternalError("the parameters cannot be restored from the snapshot of the run")
    facts = RunFacts(
        datetime.fromisoformat(snapshot["started_at"]),
        period["identifier"],
        date.fromisoformat(period["start_date"]),
        date.fromisoformat(period["end_date"]),
        settled.values,
    )
    return RunSpec(
        planned.plan,
        facts,
        date.fromisoformat(snapshot["as_of"]) if snapshot["as_of"] is not None else None,
        own.datasources,
        snapshot["project"]["status"],
        _load_inputs(snapshot["inputs"]),
    )


def load_datasources(snapshot: Document) -> Mapping[str, DataSource]:
    """The datasources that a run read and wrote, as they were."""
    texts = [json.dumps({"datasource": each}) for each in snapshot.get("datasources", ())]
    return load_definitions([Source("snapshot", text) for text in texts])[0].datasources


def _load_inputs(inputs: Document | None) -> Pinned | None:
    return None if inputs is None else {key: tuple(map(load_pin, pins)) for key, pins in inputs.items()}


def _require_known_format(snapshot: Document) -> None:
    found = snapshot.get("format")
    if not isinstance(found, int) or not 1 <= found <= FORMAT:
        raise Rejected([SnapshotTooNew(found=str(found), known=FORMAT)])


def _load(snapshot: Document) -> Definitions:
    documents = [
        {"project": snapshot["project"]["document"]},
        *({"datasource": each} for each in snapshot["datasources"]),
    ]
    sources = [Source("snapshot", json.dumps(each)) for each in documents]
    return load_definitions(sources, load_datasource=load_datasource)[0]


class _SnapshotDatasets:
    """The datasets of a snapshot, each in the version that was used."""

    def __init__(self, snapshot: Document) -> None:
        self._known: dict[tuple[str, int], KnownDataset] = {}
        for each in snapshot["datasets"]:
            text = json.dumps({"dataset": each["document"]})
            found, _ = load_definitions([Source("snapshot", text)])
            (dataset,) = found.datasets.values()
            registered = load_stored(each["registered"]) if each["registered"] is not None else None
            known = KnownDataset(dataset, each["version"], registered, each["has_period"])
            self._known[dataset.id, known.version] = known

    def ids(self) -> Sequence[str]:
        return tuple(dict.fromkeys(name for name, _ in self._known))

    def versions(self, dataset_id: str) -> Sequence[int]:
        return tuple(version for name, version in self._known if name == dataset_id)

    def is_broken(self, dataset_id: str) -> bool:
        del dataset_id
        return False

    def find(self, dataset_id: str, version: int | None = None) -> KnownDataset | None:
        if version is not None:
            return self._known.get((dataset_id, version))
        found = self.versions(dataset_id)
        return self._known[dataset_id, max(found)] if found else None


class _Located:
    """Locations as they were resolved."""

    def __init__(self, snapshot: Document) -> None:
        self._reading_by_key: dict[str, Document] = {recorded_key(each): each for each in snapshot["readings"]}

    def resolve(self, use: DatasetUse, project: Project, dataset: Dataset) -> Resolved:
        del project, dataset
        reading = self._reading_by_key.get(use.key)
        if reading is None:
            return Resolved(None)
        recorded = reading.get("periods")
        periods = tuple(ReadPeriod.load(each) for each in recorded) if recorded is not None else None
        return Resolved(reading["resolver"], tuple(map(_load_location, reading["locations"])), periods=periods)

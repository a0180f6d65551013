"""The life of definitions: applied, activated, in conflict, deactivated. The steps themselves are transactions of the store."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dobonomodo.model import Dataset
from dobonomodo.plan.impact import ColumnConflict, find_conflicts
from dobonomodo.problems import Rejected
from dobonomodo.problems.control import ProjectUntested
from dobonomodo.problems.operation import InputDatasetNotFound, ProjectNotRunnable
from dobonomodo.problems.workspace import NotApplied
from dobonomodo.store import LIVE, Action, Definition, Pin
from dobonomodo.workspace.arguments import read_project, read_reason, require_reason
from dobonomodo.workspace.checking import require_sound
from dobonomodo.workspace.recorded import find_live_version, load_recorded, load_recorded_definitions
from dobonomodo.workspace.stamp import now, who
from dobonomodo.workspace.testing import require_passed

if TYPE_CHECKING:
    from dobonomodo.problems import Problem
    from dobonomodo.scenarios import Result
    from dobonomodo.store import Activation, Change, Version
    from dobonomodo.workspace.files import Files
    from dobonomodo.workspace.planning import Planning
    from dobonomodo.workspace.signing import Signing
    from dobonomodo.workspace.stores import Stores


@dataclass(frozen=True, slots=True, eq=False)
class Applied:
    """What applying changed, and the projects that it put into conflict."""

    changes: tuple[Change, ...]
    """Also those of definitions that are as they were."""
    conflicts: Mapping[str, tuple[ColumnConflict, ...]] = field(default_factory=dict)
    """By project."""

    def to_dict(self) -> dict[str, object]:
        """As plain data, without what is as it was."""
        return {
            "changes": [change.to_dict() for change in self.changes if change.action is not Action.UNCHANGED],
            "conflicts": {project: [each.to_dict() for each in found] for project, found in self.conflicts.items()},
        }


@dataclass(frozen=True, slots=True, eq=False)
class ProjectState:
    """A version of a project after its status changed, the scenarios that were run before, and what to know about it."""

    recorded: Version
    tested: tuple[Result, ...] = ()
    warnings: tuple[Problem, ...] = ()

    @property
    def version(self) -> int:
        """The number of the version."""
        return self.recorded.version

    @property
    def status(self) -> str:
        """Whether it runs."""
        return self.recorded.status

    @property
    def activation(self) -> Activation | None:
        """When it became active, and what it reads since."""
        return self.recorded.activation

    def to_dict(self) -> dict[str, object]:
        """As plain data."""
        found: dict[str, object] = {"project": self.recorded.id, "version": self.version, "status": self.status}
        if self.status not in LIVE or self.activation is None:
            return found
        pin, tested = self.activation.pin, [each.to_dict() for each in self.tested]
        return {**found, "pin": {"dataset": pin.dataset, "version": pin.version}, "scenarios": tested}


class Lifecycle:
    """Moves definitions and projects from one state to the next."""

    def __init__(self, files: Files, stores: Stores, planning: Planning, *, signing: Callable[[], Signing]) -> None:
        self._files, self._stores, self._planning = files, stores, planning
        # Made when it is needed: it knows of runs, which take time to import.
        self._signing = signing

    def changes(self) -> tuple[Change, ...]:
        """What applying the files would change; raises with every problem if there is an error."""
        require_sound(self._files, self._planning)
        return self._stores.main.compare(self._as_recorded())

    def apply(self) -> Applied:
        """Record the definitions: new versions for what changed, and conflicts for active projects that it breaks."""
        require_sound(self._files, self._planning)
        changes = self._stores.main.apply(self._as_recorded(), at=now(), by=who())
        return Applied(changes, self._mark_conflicts())

    def _as_recorded(self) -> list[Definition]:
        return [
            Definition(
                kind=entity.kind,
                id=entity.id,  # type: ignore[attr-defined]
                fingerprint=entity.fingerprint(),
                document=entity.document(),
                status=getattr(entity, "status", "active"),
                text=self._files.definitions.texts.get((entity.kind, entity.id)),  # type: ignore[attr-defined]
            )
            for entity in self._files.entities()
        ]

    def _mark_conflicts(self) -> Mapping[str, tuple[ColumnConflict, ...]]:
        """Check every live project: does the newest version of its input still have the columns that it uses?"""
        found: dict[str, tuple[ColumnConflict, ...]] = {}
        store = self._stores.main
        for live in store.list_live_projects():
            newest = store.get_active_version("dataset", live.activation.pin.dataset) if live.activation else None
            if newest is None or live.activation is None or newest.version == live.activation.pin.version:
                continue
            chosen = self._planning.choose_recorded(live)
            planned = self._planning.plan(chosen.project, chosen.datasets, definitions=chosen.definitions)
            conflicts = find_conflicts(planned.plan, load_recorded(newest, Dataset)) if planned.plan else ()
            if not conflicts:
                continue
            report = _report_conflict(newest, conflicts, pinned=live.activation.pin.version)
            marked = store.mark_conflict(live.id, live.version, report=report, at=now(), by=who())
            if marked.status == "conflict":
                found[live.id] = conflicts
        return found

    def activate(
        self,
        project_id: str,
        *,
        dataset_version: int | None,
        test: Callable[[str], tuple[Result, ...]] | None,
        reason: str | None,
    ) -> ProjectState:
        """Make the newest version of a project the active one, with its input dataset pinned. All or nothing.

        ``test`` runs the scenarios of a project; without it, a reason is needed.
        """
        why = read_reason(reason)
        if test is None:
            why = require_reason(reason, act="activating a project without running its scenarios")
        read_project(project_id)
        draft = self._planning.choose_draft(project_id)
        project, store = draft.project, self._stores.main
        newest = store.get_version("project", project_id)
        if newest is None or newest.fingerprint != project.fingerprint():
            # What could not be applied for its problems is refused for these.
            planned = self._planning.plan(project, draft.datasets)
            if planned.plan is None:
                raise Rejected(self._planning.find_reasons(draft, planned.problems))
            raise Rejected([NotApplied(kind="project", id=project_id)])
        wanted = dataset_version if dataset_version is not None else project.input_dataset_version
        pinned = project.model_copy(update={"input_dataset_version": wanted})
        definitions, _ = load_recorded_definitions(store)
        datasets = self._planning.recorded_datasets(definitions)
        planned = self._planning.plan(pinned, datasets, definitions=definitions)
        if planned.plan is None:
            raise Rejected(planned.problems)
        missing = [each for each in self._planning.find_awaited(planned.plan) if isinstance(each, InputDatasetNotFound)]
        if missing:
            raise Rejected(missing)
        pin, signing = Pin(planned.plan.input.dataset_id, planned.plan.input.version), self._signing()
        approvals = signing.find_approvals("activate", signing.of_version(newest))
        if approvals is not None:
            # Before the scenarios, which take time; the store checks again.
            approvals.require(store.list_signoffs(approvals.subject), by=who())
        results = test(project_id) if test is not None else ()
        require_passed(results)
        active = store.activate(
            project_id,
            newest.version,
            fingerprint=newest.fingerprint,
            pin=pin,
            at=now(),
            by=who(),
            reason=why,
            detail={"scenarios": len(results) if test is not None else None},
            approvals=approvals,
        )
        untested = (ProjectUntested(project=project_id),) if test is not None and not results else ()
        return ProjectState(active, results, untested)

    def keep_pin(self, project_id: str) -> ProjectState:
        """Resolve a conflict by keeping the pinned version of the input dataset."""
        live = self._require_live(project_id)
        return ProjectState(self._stores.main.keep_pin(project_id, live.version, at=now(), by=who()))

    def deactivate(self, project_id: str) -> ProjectState:
        """Stop a project from running."""
        live = self._require_live(project_id)
        return ProjectState(self._stores.main.deactivate(project_id, live.version, at=now(), by=who()))

    def _require_live(self, project_id: str) -> Version:
        read_project(project_id)
        live = find_live_version(self._stores.find_main(), project_id)
        if live is None:
            self._files.find_project(project_id)
            raise Rejected([ProjectNotRunnable(project_id=project_id, status="not active")])
        return live

    def has_newer_files(self, project_id: str) -> bool:
        """Whether the files say something else than the version that would run."""
        live = find_live_version(self._stores.find_main(), project_id)
        own = self._files.definitions.projects.get(project_id)
        return live is not None and own is not None and live.fingerprint != own.fingerprint()


def _report_conflict(newest: Version, conflicts: tuple[ColumnConflict, ...], *, pinned: int) -> dict[str, object]:
    return {
        "dataset": newest.id,
        "version": newest.version,
        "pinned": pinned,
        "columns": [each.to_dict() for each in conflicts],
    }

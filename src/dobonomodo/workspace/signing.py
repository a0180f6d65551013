"""Sign-offs: users confirm what is recorded, and the settings of a workspace may require approvals by others."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

from dobonomodo.problems import Rejected
from dobonomodo.problems.control import NotSigned
from dobonomodo.problems.store import VersionNotFound
from dobonomodo.runs.control import Signed
from dobonomodo.runs.results import find_later_result, find_overwriting, find_results
from dobonomodo.store import Approvals, Override
from dobonomodo.workspace.arguments import read_text
from dobonomodo.workspace.naming import find_run
from dobonomodo.workspace.recorded import find_live_version
from dobonomodo.workspace.signable import Signable, SignableOverride, SignablePeriod, SignableRun, SignableVersion
from dobonomodo.workspace.stamp import now, who

if TYPE_CHECKING:
    from dobonomodo.store import Run, SignOff, Version
    from dobonomodo.workspace.files import Files
    from dobonomodo.workspace.periods import Periods
    from dobonomodo.workspace.planning import PlannedRun
    from dobonomodo.workspace.stores import Stores

_VERSION = re.compile(r"(?P<project>.+)@v(?P<version>[0-9]+)")


class Signing:
    """Signs, withdraws, and evaluates sign-offs."""

    def __init__(self, files: Files, stores: Stores, periods: Periods) -> None:
        self._files, self._stores, self._periods = files, stores, periods

    def sign(self, name: str, *, override: bool, comment: str | None) -> SignOff:
        """Sign something as it is now."""
        found = self.find(name, override=override)
        if obstacles := tuple(found.find_obstacles()):
            raise Rejected(obstacles)
        return self._stores.main.sign(found.subject, found.fingerprint, at=now(), by=who(), comment=comment or None)

    def unsign(self, name: str, *, override: bool, reason: str | None) -> tuple[SignOff, ...]:
        """Withdraw one's own sign-offs of something."""
        found, person = self.find(name, override=override), who()
        withdrawn = self._stores.main.unsign(found.subject, at=now(), by=person, reason=reason or None)
        if not withdrawn:
            raise Rejected([NotSigned(name=found.name, by=person)])
        return withdrawn

    def list_signed(self, *signables: Signable) -> tuple[Signed, ...]:
        """The sign-offs of something, and whether they still count."""
        found = {signable.subject: signable for signable in signables}
        return tuple(
            Signed(each.by, each.at, each.comment, found[each.subject].why_void(each))
            for each in self._stores.main.list_signoffs(*found)
        )

    def find_approvals(self, act: Literal["activate", "override", "lock"], signable: Signable) -> Approvals | None:
        """The approvals that an act needs."""
        needed: int = getattr(self._files.settings.approvals, act)
        if needed == 0:
            return None
        return Approvals(
            subject=signable.subject,
            fingerprint=signable.fingerprint,
            needed=needed,
            command=f"dobo sign {signable.name}",
        )

    def allow_override(self, planned: PlannedRun, *, reason: str) -> Override | None:
        """A run for a closed period, with its reason; refused where approvals are missing. A draft changes no result.

        None where the period is not closed: there is nothing to override.
        """
        if planned.period.status != "closed":
            return None
        if planned.version is None:
            return Override(reason=reason)
        signable = self.of_override(planned.plan.project.id, planned.period.identifier)
        approvals = self.find_approvals("override", signable)
        if approvals is None:
            return Override(reason=reason)
        people = approvals.require(self._stores.main.list_signoffs(approvals.subject), by=who())
        return Override(reason=reason, approvals=approvals, approved_by=people)

    # --- what a name means

    def find(self, name: str, *, override: bool) -> Signable:
        """A version (``PROJECT@v3``), a period, an override (``PROJECT@PERIOD``), or else a run by one of its names."""
        read_text("name", name, accepted='what to sign as text, such as "monthly-sales@v3" or "2026-01"')
        if override:
            project, _, period = name.rpartition("@")
            return self.of_override(project or name, period if project else "")
        if (match := _VERSION.fullmatch(name)) is not None:
            return self._find_version(match["project"], int(match["version"]))
        if self._periods.has(name):
            return self.of_period(name)
        return self.of_run(find_run(self._stores.find_main(), name))

    def of_run(self, run: Run) -> SignableRun:
        """A run."""
        others = self._stores.main.list_runs(project=run.project, period=run.period)
        return SignableRun(run, find_later_result(run, others), find_overwriting(run, others))

    def of_version(self, version: Version) -> SignableVersion:
        """A version of a project."""
        return SignableVersion(version, self._stores.main.get_version("project", version.id) or version)

    def of_period(self, identifier: str) -> SignablePeriod:
        """The results of a period."""
        store = self._stores.find_main()
        runs = store.list_runs(period=identifier) if store is not None else ()
        results = find_results(runs)
        found = (find_overwriting(result, runs) for result in results)
        return SignablePeriod(identifier, results, tuple(run for run in found if run is not None))

    def of_override(self, project: str, period: str) -> SignableOverride:
        """Running a project for a closed period."""
        found = self._periods.find(period)
        store = self._stores.find_main()
        live = find_live_version(store, project)
        if live is None:
            self._files.find_project(project)
        results = [run for run in self.list_results(period) if run.project == project]
        return SignableOverride(project, found.identifier, found.status, live, results[0] if results else None)

    def list_results(self, identifier: str) -> tuple[Run, ...]:
        """The runs whose rows are the results of a period, one per project."""
        store = self._stores.find_main()
        return find_results(store.list_runs(period=identifier)) if store is not None else ()

    def _find_version(self, project: str, number: int) -> SignableVersion:
        versions = self._stores.main.list_versions("project", project)
        found = next((each for each in versions if each.version == number), None)
        if found is None:
            known = tuple(each.version for each in versions)
            raise Rejected([VersionNotFound(kind="project", id=project, version=number, known=known)])
        return SignableVersion(found, versions[-1])

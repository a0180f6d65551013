"""The subjects of sign-offs in their current state: a run, a version of a project, the results of a period, an override.

Pure functions over records.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from dobonomodo.problems.control import CannotSign, Unsignable
from dobonomodo.runs.neighbours import is_draft
from dobonomodo.runs.results import fingerprint_override, fingerprint_results, fingerprint_run
from dobonomodo.runs.state import RunStatus
from dobonomodo.store import Subject

if TYPE_CHECKING:
    from dobonomodo.problems import Problem
    from dobonomodo.store import Run, SignOff, Version


class Signable(Protocol):
    """Something that people can sign."""

    @property
    def subject(self) -> Subject: ...

    @property
    def name(self) -> str:
        """What a person types behind ``dobo sign``."""
        ...

    @property
    def fingerprint(self) -> str:
        """How it is now."""
        ...

    def find_obstacles(self) -> Iterator[Problem]:
        """Why it cannot be signed."""
        ...

    def why_void(self, signed: SignOff) -> str | None:
        """Why a sign-off does not count any more; None if it does."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class SignableRun:
    """A run, the one whose rows have replaced its rows, and one that is no result and has replaced an output of it."""

    run: Run
    later: Run | None
    overwriting: Run | None = None

    @property
    def subject(self) -> Subject:
        """The run."""
        return Subject.of_run(self.run.id, project=self.run.project, period=self.run.period, version=self.run.version)

    @property
    def name(self) -> str:
        """Its id."""
        return self.run.id

    @property
    def fingerprint(self) -> str:
        """Snapshot and digests of the outputs."""
        return fingerprint_run(self.run)

    def find_obstacles(self) -> Iterator[Problem]:
        """A draft, an incomplete run and a replaced run are not results."""
        if is_draft(self.run):
            yield CannotSign(name=self.name, reason=Unsignable.DRAFT)
        elif self.run.status != RunStatus.COMPLETED:
            yield CannotSign(name=self.name, reason=Unsignable.NOT_COMPLETED, detail=self.run.status)
        elif self.later is not None:
            yield CannotSign(name=self.name, reason=Unsignable.REPLACED, detail=self.later.id)
        elif self.overwriting is not None:
            yield _refuse_overwritten(self.name, self.overwriting)

    def why_void(self, signed: SignOff) -> str | None:
        """A later run has replaced the rows."""
        later = self.later or self.overwriting
        if later is not None:
            return f"run {later.id} came later"
        return None if signed.fingerprint == self.fingerprint else "the record of the run has changed"


@dataclass(frozen=True, slots=True, eq=False)
class SignableVersion:
    """A version of a project, and the newest one."""

    version: Version
    newest: Version

    @property
    def subject(self) -> Subject:
        """The version."""
        return Subject.of_project(self.version.id, self.version.version)

    @property
    def name(self) -> str:
        """Project and version."""
        return f"{self.version.id}@v{self.version.version}"

    @property
    def fingerprint(self) -> str:
        """That of the definition."""
        return self.version.fingerprint

    def find_obstacles(self) -> Iterator[Problem]:
        """Only the newest version can become active."""
        if self.newest.version != self.version.version:
            newest = f"{self.version.id}@v{self.newest.version}"
            yield CannotSign(name=self.name, reason=Unsignable.OLD_VERSION, detail=newest)

    def why_void(self, signed: SignOff) -> str | None:
        """There is a later version."""
        if self.newest.version != self.version.version:
            return f"version {self.newest.version} came later"
        return None if signed.fingerprint == self.fingerprint else "the version has changed"


@dataclass(frozen=True, slots=True, eq=False)
class SignablePeriod:
    """The results of a period: one run per project, and the runs that wrote over outputs of them."""

    period: str
    results: tuple[Run, ...]
    overwriting: tuple[Run, ...] = ()

    @property
    def subject(self) -> Subject:
        """The period."""
        return Subject.of_period(self.period)

    @property
    def name(self) -> str:
        """The period."""
        return self.period

    @property
    def fingerprint(self) -> str:
        """That of all results, as far as they are still there."""
        return fingerprint_results(self.results, self.overwriting)

    def find_obstacles(self) -> Iterator[Problem]:
        """A result of which an output was replaced. That a period has no results can be signed."""
        yield from (_refuse_overwritten(self.name, run) for run in self.overwriting)

    def why_void(self, signed: SignOff) -> str | None:
        """A later run has changed a result."""
        if signed.fingerprint == self.fingerprint:
            return None
        later = [run for run in (*self.results, *self.overwriting) if run.updated_at > signed.at]
        return f"run {later[0].id} of {later[0].project} came later" if later else "the results have changed"


@dataclass(frozen=True, slots=True, eq=False)
class SignableOverride:
    """Running the active version of a project for a closed period, over the result that there is."""

    project: str
    period: str
    status: str
    """Of the period."""
    version: Version | None
    result: Run | None

    @property
    def subject(self) -> Subject:
        """Project and period."""
        return Subject.of_override(self.project, self.period)

    @property
    def name(self) -> str:
        """Project and period, with the flag."""
        return f"{self.project}@{self.period} --override"

    @property
    def fingerprint(self) -> str:
        """Of the version, and of what it would replace."""
        return fingerprint_override(self.version, self.period, self.result) if self.version is not None else ""

    def find_obstacles(self) -> Iterator[Problem]:
        """There is nothing to override, or nothing that would run."""
        if self.version is None:
            yield CannotSign(name=self.name, reason=Unsignable.NOT_ACTIVE, detail=self.project)
        if self.status != "closed":
            yield CannotSign(name=self.name, reason=Unsignable.NOT_CLOSED, detail=self.status, period=self.period)

    def why_void(self, signed: SignOff) -> str | None:
        """The override has happened, or another version is active."""
        if signed.fingerprint == self.fingerprint:
            return None
        if self.result is not None and self.result.updated_at > signed.at:
            return f"run {self.result.id} came later"
        return "another version is active now" if self.version is not None else "the project is not active any more"


def _refuse_overwritten(name: str, by: Run) -> Problem:
    return CannotSign(name=name, reason=Unsignable.OVERWRITTEN, detail=by.id, status=by.status)

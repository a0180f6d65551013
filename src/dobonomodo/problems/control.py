"""What an act that others rely on requires of a person: reasons, sign-offs, approvals."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, assert_never

from dobonomodo.problems.problem import LISTED_AT_MOST, Blame, Example, Problem, Severity, listed


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasonMissing(Problem):
    """An action that bypasses a control needs a reason, which is recorded."""

    code: ClassVar[str] = "REASON_MISSING"
    blamed: ClassVar[Blame] = Blame.CALLER
    example: ClassVar[Example] = Example(
        "dobo run monthly-sales --period 2025-12 --override-closed",
        'dobo run monthly-sales --period 2025-12 --override-closed --reason "late invoice 4711"',
    )

    act: str
    """Such as "running a closed period"."""

    def message(self) -> str:
        return f"{self.act} needs a reason"

    def hint(self) -> str | None:
        return 'add --reason "..." (in Python, reason="..."): it is recorded and shown in the history'


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalsMissing(Problem):
    """The workspace asks for approvals (`approvals` in `dobo.yaml`), and too few other people have signed."""

    code: ClassVar[str] = "APPROVALS_MISSING"
    blamed: ClassVar[Blame] = Blame.CONFLICT
    example: ClassVar[Example] = Example(
        "dobo activate monthly-sales   # approvals: {activate: 1}",
        "dobo sign monthly-sales@v4 (typed by another person), then dobo activate monthly-sales",
    )

    subject: str
    needed: int
    approved_by: tuple[str, ...] = ()
    own: str | None = None
    """The person who acts, if they signed themselves: that does not count."""
    command: str

    @property
    def missing(self) -> int:
        """How many more people must sign."""
        return self.needed - len(self.approved_by)

    def message(self) -> str:
        people = "person" if self.needed == 1 else "people"
        have = listed(self.approved_by) + (" has" if len(self.approved_by) == 1 else " have")
        signed = f"{have} signed it" if self.approved_by else "no other person has signed it"
        own = f"; the sign-off of `{self.own}`, who acts, does not count" if self.own is not None else ""
        return f"`{self.subject}` needs the approval of {self.needed} other {people}; {signed} as it is now{own}"

    def hint(self) -> str | None:
        who = "another person" if self.missing == 1 else f"{self.missing} other people"
        return f"have {who} type: {self.command}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PeriodInUse(Problem):
    """A period can be closed or locked only while no run is active for it: a run would still change its results."""

    code: ClassVar[str] = "PERIOD_IN_USE"
    blamed: ClassVar[Blame] = Blame.CONFLICT
    example: ClassVar[Example] = Example(
        "dobo period close 2026-01   # while a run for it is running",
        "dobo cancel latest, or wait; then dobo period close 2026-01",
    )

    period: str
    project: str
    holder: str | None = None
    """Who runs it; None for a run that was killed while it published."""
    run: str | None = None

    def message(self) -> str:
        if self.holder is None:
            return f"run `{self.run}` of project `{self.project}` stopped while it published results of `{self.period}`"
        return f"project `{self.project}` is being run for period `{self.period}`, by {self.holder}"

    def hint(self) -> str | None:
        if self.holder is None:
            return f"complete the publication first: dobo resume {self.run}"
        return "wait until the run is over, or stop it: dobo runs list, dobo cancel RUN"


class Unsignable(StrEnum):
    """Reasons why something cannot be signed."""

    DRAFT = "draft"
    NOT_COMPLETED = "not completed"
    REPLACED = "replaced"
    OVERWRITTEN = "overwritten"
    OLD_VERSION = "old version"
    NOT_ACTIVE = "not active"
    NOT_CLOSED = "not closed"


@dataclass(frozen=True, slots=True, kw_only=True)
class CannotSign(Problem):
    """Only current results can be signed: not a draft, a failed or replaced run, or an old version."""

    code: ClassVar[str] = "CANNOT_SIGN"
    example: ClassVar[Example] = Example(
        "dobo sign latest   # a draft", "dobo activate monthly-sales, dobo run monthly-sales ..., then dobo sign latest"
    )

    name: str
    reason: Unsignable
    detail: str = ""
    period: str = ""
    """The period that would be overridden."""
    status: str = ""
    """Of the run that has replaced an output."""

    def message(self) -> str:
        return f"`{self.name}` cannot be signed: {self._explain()}"

    def _explain(self) -> str:
        match self.reason:
            case Unsignable.DRAFT:
                return "it is a draft, whose rows are in the sandbox"
            case Unsignable.NOT_COMPLETED:
                return f"the run is {self.detail}, not completed"
            case Unsignable.REPLACED:
                return f"run `{self.detail}` has replaced its rows"
            case Unsignable.OVERWRITTEN:
                if self.status == "running":
                    return f"run `{self.detail}` is running and has replaced an output"
                ended = "was cancelled" if self.status == "cancelled" else "failed"
                return f"run `{self.detail}` {ended}, and its quarantine has replaced an output"
            case Unsignable.OLD_VERSION:
                return f"there is a newer version, `{self.detail}`"
            case Unsignable.NOT_ACTIVE:
                return f"project `{self.detail}` has no active version that would run"
            case Unsignable.NOT_CLOSED:
                return f"the period is {self.detail}, and only a closed period can be overridden"
            case _:
                assert_never(self.reason)

    def hint(self) -> str | None:
        match self.reason:
            case Unsignable.DRAFT:
                return "activate the project, run it, and sign that run"
            case Unsignable.NOT_COMPLETED:
                return "sign a run that completed: dobo runs list --status completed"
            case Unsignable.REPLACED | Unsignable.OLD_VERSION:
                return f"sign the current one: dobo sign {self.detail}"
            case Unsignable.OVERWRITTEN:
                if self.status == "running":
                    return f"wait for it, or complete it if it was stopped: dobo resume {self.detail}"
                return "run the period again, and sign that run"
            case Unsignable.NOT_ACTIVE:
                return f"dobo activate {self.detail}"
            case Unsignable.NOT_CLOSED:
                return (
                    "an open period runs without it" if self.detail == "open" else "dobo period reopen P --reason ..."
                )
            case _:
                assert_never(self.reason)


@dataclass(frozen=True, slots=True, kw_only=True)
class NotSigned(Problem):
    """A person withdraws a sign-off that they have not given."""

    code: ClassVar[str] = "NOT_SIGNED"
    example: ClassVar[Example] = Example("dobo unsign 2026-01   # signed by somebody else", "dobo period show 2026-01")

    name: str
    by: str

    def message(self) -> str:
        return f"`{self.by}` has not signed `{self.name}`"

    def hint(self) -> str | None:
        return "everybody withdraws their own sign-offs; `dobo history` shows who signed what"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioFailed(Problem):
    """A scenario of a project fails, so the project is not activated."""

    code: ClassVar[str] = "SCENARIO_FAILED"
    example: ClassVar[Example] = Example(
        "dobo activate monthly-sales   # a scenario of it fails",
        "dobo test, correct the project or the scenario, dobo apply",
    )

    name: str
    file: str
    differences: tuple[str, ...] = ()

    def message(self) -> str:
        return f"scenario `{self.name}` of `{self.file}` fails"

    def notes(self) -> tuple[str, ...]:
        return self.differences[:LISTED_AT_MOST]

    def hint(self) -> str | None:
        return 'run `dobo test`; to activate the project untested, add --no-test --reason "..."'


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectUntested(Problem):
    """A project without scenarios was activated: no test shows that its results are correct."""

    code: ClassVar[str] = "W-10"
    severity: ClassVar[Severity] = "warning"
    example: ClassVar[Example] = Example(
        "scenarios/ without a scenario that uses the project",
        "scenario: {name: ..., project: {use: monthly-sales}, ...}",
    )

    project: str

    def message(self) -> str:
        return f"project `{self.project}` has no scenario that tests it"

    def hint(self) -> str | None:
        return f"add one to scenarios/ with `project: {{use: {self.project}}}`"


CONTROL_PROBLEMS: tuple[type[Problem], ...] = (
    ReasonMissing,
    ApprovalsMissing,
    PeriodInUse,
    CannotSign,
    NotSigned,
    ScenarioFailed,
    ProjectUntested,
)

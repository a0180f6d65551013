"""What stands between a person and an act that others must be able to rely on: reasons, sign-offs, approvals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dobonomodo.problems.problem import Example, Problem, listed


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasonMissing(Problem):
    """An act that goes around a control needs a reason, which is recorded."""

    code: ClassVar[str] = "REASON_MISSING"
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
        signed = f"{have} signed it" if self.approved_by else "nobody else has signed it"
        own = f"; the sign-off of `{self.own}`, who acts, does not count" if self.own is not None else ""
        return f"`{self.subject}` needs the approval of {self.needed} other {people}; {signed} as it is now{own}"

    def hint(self) -> str | None:
        who = "another person" if self.missing == 1 else f"{self.missing} other people"
        return f"have {who} type: {self.command}"


CONTROL_PROBLEMS: tuple[type[Problem], ...] = (ReasonMissing, ApprovalsMissing)

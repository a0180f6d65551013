"""What keeps Spark from starting as it was asked to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dobonomodo.problems.problem import Blame, Example, Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class JavaMissing(Problem):
    """Spark runs on Java, and none that is new enough was found."""

    code: ClassVar[str] = "JAVA_MISSING"
    blamed: ClassVar[Blame] = Blame.ENVIRONMENT
    example: ClassVar[Example] = Example("a machine without Java", "pip install 'dobonomodo[java]'")

    oldest: int
    searched: tuple[tuple[str, str], ...]
    """The places that were searched, each with what was found there."""
    remedies: tuple[tuple[str, str], ...] = ()
    """For each kind of machine, the command that installs one."""

    def message(self) -> str:
        found = "; ".join(f"{place} {reason}" for place, reason in self.searched)
        return f"Spark needs Java {self.oldest} or newer, and none was found: {found}"

    def hint(self) -> str | None:
        return "; ".join(f"{machine}: {command}" for machine, command in self.remedies) or None


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingRefused(Problem):
    """A setting of Spark would change results, or cannot be changed while Spark runs."""

    code: ClassVar[str] = "SETTING_REFUSED"
    blamed: ClassVar[Blame] = Blame.CALLER
    example: ClassVar[Example] = Example(
        "--spark-conf spark.sql.ansi.enabled=false", "--spark-conf spark.sql.shuffle.partitions=64"
    )

    name: str
    fixed: str | None = None
    """The value that it always has; None for a setting that Spark only takes when it starts."""

    def message(self) -> str:
        if self.fixed is not None:
            return f"the setting `{self.name}` affects results and must be `{self.fixed}`"
        return f"the setting `{self.name}` cannot be changed while Spark is running"

    def hint(self) -> str | None:
        return "leave it out" if self.fixed is not None else "set it for the first command of the process"


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionConflict(Problem):
    """One process has one Spark, and it already runs at another place."""

    code: ClassVar[str] = "SESSION_CONFLICT"
    blamed: ClassVar[Blame] = Blame.CALLER
    example: ClassVar[Example] = Example(
        'workspace.run(..., session=SessionOptions(master="local[2]", remote="sc://host"))',
        'workspace.run(..., session=SessionOptions(remote="sc://host"))',
    )

    wanted: str
    running: str

    def message(self) -> str:
        return f"Spark cannot run at `{self.wanted}`: this process already uses `{self.running}`"

    def hint(self) -> str | None:
        return "use one place per process"


SESSION_PROBLEMS: tuple[type[Problem], ...] = (JavaMissing, SettingRefused, SessionConflict)

"""What can be wrong with a workspace as a whole, or with what is asked of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dobonomodo.problems.problem import Blame, Example, Problem, did_you_mean


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkspaceNotFound(Problem):
    """The folder and its parents contain no ``dobo.yaml``."""

    code: ClassVar[str] = "WORKSPACE_NOT_FOUND"
    blamed: ClassVar[Blame] = Blame.CALLER
    example: ClassVar[Example] = Example("cd /tmp && dobo validate", "cd my-workspace && dobo validate")

    folder: str
    exists: bool = True

    def message(self) -> str:
        if not self.exists:
            return f"folder `{self.folder}` does not exist"
        return f"`{self.folder}` and its parent folders contain no dobo.yaml"

    def hint(self) -> str | None:
        return "change to a workspace, name it with -C, or create one: dobo init my-workspace"


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentNotFound(Problem):
    """A command names an environment that the workspace does not have."""

    code: ClassVar[str] = "ENVIRONMENT_NOT_FOUND"
    blamed: ClassVar[Blame] = Blame.CALLER
    example: ClassVar[Example] = Example("dobo --env prd validate", "dobo --env prod validate")

    name: str
    known: tuple[str, ...] = ()

    def message(self) -> str:
        return f"the workspace has no environment `{self.name}`"

    def hint(self) -> str | None:
        return did_you_mean(self.name, self.known, otherwise="define it under `environments` in dobo.yaml")


@dataclass(frozen=True, slots=True, kw_only=True)
class NotDefined(Problem):
    """A command names a project, dataset or other definition that the workspace does not have."""

    code: ClassVar[str] = "NOT_DEFINED"
    example: ClassVar[Example] = Example("dobo plan montly-sales", "dobo plan monthly-sales")

    kind: str
    id: str
    known: tuple[str, ...] = ()

    def message(self) -> str:
        return f"there is no {self.kind} `{self.id}`"

    def hint(self) -> str | None:
        return did_you_mean(self.id, self.known, otherwise=f"the workspace defines no {self.kind}")


@dataclass(frozen=True, slots=True, kw_only=True)
class NotApplied(Problem):
    """The files differ from the recorded version, and only recorded versions can be activated."""

    code: ClassVar[str] = "NOT_APPLIED"
    example: ClassVar[Example] = Example("dobo activate monthly-sales", "dobo apply && dobo activate monthly-sales")

    kind: str
    id: str

    def message(self) -> str:
        return f"{self.kind} `{self.id}` has changes that are not applied"

    def hint(self) -> str | None:
        return "run `dobo apply` first"


@dataclass(frozen=True, slots=True, kw_only=True)
class UnreadableFile(Problem):
    """A file of the workspace cannot be read, or is not UTF-8 text."""

    code: ClassVar[str] = "UNREADABLE_FILE"
    example: ClassVar[Example] = Example(
        "projects/monthly.yaml saved as UTF-16", "projects/monthly.yaml saved as UTF-8"
    )

    path: str
    reason: str

    def message(self) -> str:
        return f"`{self.path}` cannot be read: {self.reason}"


@dataclass(frozen=True, slots=True, kw_only=True)
class UnwritableFolder(Problem):
    """A file or folder cannot be created: the disk is full, the folder is read-only, or this user has no permission."""

    code: ClassVar[str] = "UNWRITABLE_FOLDER"
    blamed: ClassVar[Blame] = Blame.ENVIRONMENT
    example: ClassVar[Example] = Example("dobo init /proc/mine", "dobo init my-workspace")

    path: str
    reason: str

    def message(self) -> str:
        return f"`{self.path}` cannot be written: {self.reason}"

    def hint(self) -> str | None:
        return "choose a folder that this user may write to; no files were left behind"


@dataclass(frozen=True, slots=True, kw_only=True)
class InvalidUsage(Problem):
    """A command was called without something that it needs, or with something that it does not know."""

    code: ClassVar[str] = "INVALID_USAGE"
    blamed: ClassVar[Blame] = Blame.CALLER
    example: ClassVar[Example] = Example("dobo --json run", "dobo --json run monthly-sales --period 2026-01")

    reason: str
    advice: str | None = None

    def message(self) -> str:
        return self.reason

    def hint(self) -> str | None:
        return self.advice


WORKSPACE_PROBLEMS: tuple[type[Problem], ...] = (
    InvalidUsage,
    WorkspaceNotFound,
    EnvironmentNotFound,
    NotDefined,
    NotApplied,
    UnreadableFile,
    UnwritableFolder,
)

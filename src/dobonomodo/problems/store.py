"""What can go wrong with the store."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, assert_never

from dobonomodo.problems.problem import Blame, Example, Problem, did_you_mean, listed


@dataclass(frozen=True, slots=True, kw_only=True)
class InvalidTransition(Problem):
    """A project, period or run cannot change from its state to the requested one."""

    code: ClassVar[str] = "INVALID_TRANSITION"
    example: ClassVar[Example] = Example("dobo period open 2026-01 (a closed period)", "dobo period lock 2026-01")

    subject: str
    """Such as "project `monthly-sales` version 3"."""
    status: str
    wanted: str
    possible: tuple[str, ...] = ()

    def message(self) -> str:
        return f"{self.subject} is `{self.status}`; `{self.wanted}` is not possible"

    def hint(self) -> str | None:
        return f"possible: {listed(self.possible)}" if self.possible else "this is its final state"


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionNotFound(Problem):
    """The store does not have this definition or version."""

    code: ClassVar[str] = "VERSION_NOT_FOUND"
    example: ClassVar[Example] = Example("dobo activate monthly-sales --dataset-version 99", "dobo ls dataset")

    kind: str
    id: str
    version: int | None = None
    known: tuple[int, ...] = ()

    def message(self) -> str:
        if self.version is None or not self.known:
            return f"the store has no {self.kind} `{self.id}`"
        return f"{self.kind} `{self.id}` has no version {self.version}"

    def hint(self) -> str | None:
        if not self.known:
            return "`dobo apply` records definitions in the store"
        return f"its versions are {self.known[0]} to {self.known[-1]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionChanged(Problem):
    """The store has another content under this version than the one that was checked."""

    code: ClassVar[str] = "VERSION_CHANGED"
    example: ClassVar[Example] = Example("dobo activate monthly-sales (edited since the last apply)", "dobo apply")

    kind: str
    id: str
    version: int

    def message(self) -> str:
        return f"version {self.version} of {self.kind} `{self.id}` in the store differs from the one that was checked"

    def hint(self) -> str | None:
        return "run `dobo apply`, then try again"


class TextReason(StrEnum):
    """Reasons why a text cannot be stored."""

    EMPTY = "empty"
    NUL = "nul"
    SURROGATE = "surrogate"
    TOO_LONG = "too long"


@dataclass(frozen=True, slots=True, kw_only=True)
class UnstorableText(Problem):
    """A text that not every database can store unchanged."""

    code: ClassVar[str] = "UNSTORABLE_TEXT"
    example: ClassVar[Example] = Example('id: "a\\0b"', "id: a-b")

    text: str
    reason: TextReason
    limit: int = 0

    def message(self) -> str:
        match self.reason:
            case TextReason.EMPTY:
                return "an id cannot be empty"
            case TextReason.NUL:
                return f"`{self.text}` contains the character NUL"
            case TextReason.SURROGATE:
                return f"`{self.text}` contains half a character (a lone surrogate)"
            case TextReason.TOO_LONG:
                return f"`{self.text}...` is longer than {self.limit} characters"
            case _:
                assert_never(self.reason)

    def hint(self) -> str | None:
        return "choose a short id of letters, digits, `-`, `_` and `.`"


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseLost(Problem):
    """A run lost its lease on project and period: it was suspended for too long, and another run took over."""

    code: ClassVar[str] = "LEASE_LOST"
    blamed: ClassVar[Blame] = Blame.CONFLICT
    example: ClassVar[Example] = Example("a run whose computer slept for an hour", "dobo runs list")

    project: str
    period: str
    fence: int

    def message(self) -> str:
        return (
            f"this run lost its lease on project `{self.project}` and period `{self.period}`: another run took over "
            f"(its fencing number is higher than {self.fence})"
        )

    def hint(self) -> str | None:
        return "this run published nothing after that; `dobo runs list` shows the run that took over"


@dataclass(frozen=True, slots=True, kw_only=True)
class InvalidStoreUrl(Problem):
    """The URL of the store is invalid."""

    code: ClassVar[str] = "INVALID_STORE_URL"
    blamed: ClassVar[Blame] = Blame.CALLER
    example: ClassVar[Example] = Example("store: mysql://host/db", "store: postgresql://user@host/db")

    scheme: str
    reason: str
    known: tuple[str, ...] = ()

    def message(self) -> str:
        return f"the URL of the store (`{self.scheme}`) {self.reason}"

    def hint(self) -> str | None:
        if self.known:
            return did_you_mean(self.scheme, self.known)
        return "write `sqlite:///path/to/store.db` or `postgresql://user@host:5432/database`"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreUnavailable(Problem):
    """The store cannot be reached, read or written."""

    code: ClassVar[str] = "STORE_UNAVAILABLE"
    example: ClassVar[Example] = Example("a PostgreSQL server that is stopped", "dobo doctor")

    store: str
    reason: str
    remedy: str | None = None
    is_transient: bool = False
    """Whether it may go away by itself, as a server that is started later; then a retry helps."""

    @property
    def blame(self) -> Blame:
        """The environment, if it goes away by itself."""
        return Blame.ENVIRONMENT if self.is_transient else self.blamed

    def message(self) -> str:
        return f"the store `{self.store}` cannot be used: {self.reason}"

    def hint(self) -> str | None:
        return self.remedy or "`dobo doctor` tests the connection"


class StoreFault(StrEnum):
    """Reasons why a file is not a store."""

    EMPTY = "empty"
    DAMAGED = "damaged"
    FOREIGN = "foreign"
    FOLDER = "folder"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreInvalid(Problem):
    """The store is damaged, or its URL points to something else."""

    code: ClassVar[str] = "STORE_INVALID"
    blamed: ClassVar[Blame] = Blame.CALLER
    example: ClassVar[Example] = Example(
        "store: sqlite:///bookmarks.db (the file of another program)", "store: sqlite:///.dobo/store.db"
    )

    store: str
    fault: StoreFault
    detail: str = ""

    def message(self) -> str:
        match self.fault:
            case StoreFault.EMPTY:
                return f"the store `{self.store}` is an empty file"
            case StoreFault.DAMAGED:
                return f"the store `{self.store}` is damaged: {self.detail}"
            case StoreFault.FOREIGN:
                return f"`{self.store}` is not a dobo store: {self.detail}"
            case StoreFault.FOLDER:
                return f"`{self.store}` is a folder, not a store"
            case _:
                assert_never(self.fault)

    def hint(self) -> str | None:
        match self.fault:
            case StoreFault.EMPTY | StoreFault.DAMAGED:
                return "restore it from a backup, or move it away: the next command creates a new store without versions and runs"
            case StoreFault.FOREIGN:
                return "set `store` in `dobo.yaml` to another file, or restore the store from a backup; nothing was changed"
            case StoreFault.FOLDER:
                return "set `store` in `dobo.yaml` to a file, such as `sqlite:///.dobo/store.db`"
            case _:
                assert_never(self.fault)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreTooNew(Problem):
    """The store was written by a later version of this program."""

    code: ClassVar[str] = "STORE_TOO_NEW"
    blamed: ClassVar[Blame] = Blame.CALLER
    example: ClassVar[Example] = Example("an older dobo on a store that a newer one has upgraded", "upgrade dobonomodo")

    store: str
    found: str
    known: str

    def message(self) -> str:
        return f"the store `{self.store}` has format {self.found}; this version supports formats up to {self.known}"

    def hint(self) -> str | None:
        return "upgrade `dobonomodo`; the store was not changed"


STORE_PROBLEMS: tuple[type[Problem], ...] = (
    InvalidTransition,
    VersionNotFound,
    VersionChanged,
    UnstorableText,
    LeaseLost,
    InvalidStoreUrl,
    StoreUnavailable,
    StoreInvalid,
    StoreTooNew,
)

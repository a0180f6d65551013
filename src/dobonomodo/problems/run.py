"""What can go wrong while a run computes and writes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import ClassVar, Literal, assert_never

from dobonomodo.problems.problem import LISTED_AT_MOST, Blame, Example, Problem, listed

Diagnosis = Literal["excel", "zip", "gzip", "parquet", "encoding", "separator", "quotes", "escapes"]


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinMultipleMatches(Problem):
    """A selected row matches more than one row of a joined dataset. Choosing one of them could result in a wrong total."""

    code: ClassVar[str] = "JOIN_MULTIPLE_MATCHES"
    example: ClassVar[Example] = Example(
        "two exchange rates for one day and currency", "one exchange rate for a day and currency"
    )

    alias: str
    keys: str
    count: int
    lookup_of: str | None = None
    """The dataset that declares the join as a lookup; None for a join of an operation."""

    def message(self) -> str:
        lookup = f", a lookup of dataset `{self.lookup_of}`," if self.lookup_of is not None else ""
        return f"{self.count} rows of `{self.alias}`{lookup} match {self.keys}; at most one may match"

    def hint(self) -> str | None:
        where = "`on`" if self.lookup_of is None else "`join_conditions` of the lookup"
        return f"correct the data, or add a condition to {where} so that one row matches"


@dataclass(frozen=True, slots=True, kw_only=True)
class RequirementNotMet(Problem):
    """Base of the problems of rows that an operation cannot process."""

    reason: str
    rows: str
    """Columns and values of the first row that was found."""


class AllocationReason(StrEnum):
    """Reasons why an amount cannot be distributed."""

    NO_RECEIVERS = "no receivers"
    NULL_DRIVER = "driver is NULL"
    NEGATIVE_DRIVER = "driver is negative"
    FINE_AMOUNT = "amount is finer than round"
    LARGE_AMOUNT = "amount is too large"
    LARGE_DRIVER = "driver is too large"
    REPEATED_RECEIVER = "receiver is repeated"


@dataclass(frozen=True, slots=True, kw_only=True)
class Allocation(RequirementNotMet):
    """An amount cannot be distributed to its receivers. Nothing is published: parts would be lost, or not add up to the amount."""

    code: ClassVar[str] = "ALLOCATION"
    example: ClassVar[Example] = Example(
        "driver: receivers.heads   # 12, 3 and NULL", "driver: COALESCE(receivers.heads, 0)   # 12, 3 and 0"
    )

    def message(self) -> str:
        match AllocationReason(self.reason):
            case AllocationReason.NO_RECEIVERS:
                what = "an amount has no receivers, or their drivers add up to 0"
            case AllocationReason.NULL_DRIVER:
                what = "the driver of a receiver is NULL"
            case AllocationReason.NEGATIVE_DRIVER:
                what = "the driver of a receiver is negative"
            case AllocationReason.FINE_AMOUNT:
                what = "an amount has more digits behind the point than `round` says"
            case AllocationReason.LARGE_AMOUNT:
                what = "an amount has too many digits to be distributed exactly"
            case AllocationReason.LARGE_DRIVER:
                what = "drivers have too many digits to distribute by them exactly"
            case AllocationReason.REPEATED_RECEIVER:
                what = "a receiver occurs more than once for one amount"
            case other:
                assert_never(other)
        return f"{what}: {self.rows}" if self.rows else what

    def hint(self) -> str | None:
        match AllocationReason(self.reason):
            case AllocationReason.NO_RECEIVERS:
                return "correct the receivers or `match`, or write `no_receivers: keep` to keep such amounts"
            case AllocationReason.NULL_DRIVER:
                return "correct the data, or write `COALESCE(..., 0)`"
            case AllocationReason.NEGATIVE_DRIVER:
                return "correct the data, or write `MAX(..., 0)`"
            case AllocationReason.FINE_AMOUNT:
                return "round the amount in an update before, or raise `round`"
            case AllocationReason.LARGE_AMOUNT:
                return "lower `round`; with `round: 2` an amount may have 30 digits before the point"
            case AllocationReason.LARGE_DRIVER:
                return "round the driver: its total may have 27 digits, those behind the point included"
            case AllocationReason.REPEATED_RECEIVER:
                return (
                    "correct the data: the natural key of the receivers must be unique, since row ids are made from it"
                )
            case other:
                assert_never(other)


class HierarchyReason(StrEnum):
    """Reasons why a hierarchy is not a tree."""

    CYCLE = "cycle"
    SECOND_PARENT = "second parent"
    TOO_LARGE = "too large"


@dataclass(frozen=True, slots=True, kw_only=True)
class HierarchyCycle(Problem):
    """A hierarchy is not a tree: a node is above itself, or has two parents. Totals would count rows twice."""

    code: ClassVar[str] = "HIERARCHY_CYCLE"
    example: ClassVar[Example] = Example(
        "line,parent\nR10,R20\nR20,R10   # each is above the other", "line,parent\nR10,R20\nR20,"
    )

    dataset_id: str
    reason: HierarchyReason
    nodes: tuple[str, ...] = ()

    def message(self) -> str:
        match self.reason:
            case HierarchyReason.CYCLE:
                way = " -> ".join(f"`{node}`" for node in self.nodes)
                return f"the hierarchy `{self.dataset_id}` has a cycle: {way}"
            case HierarchyReason.SECOND_PARENT:
                child, *parents = self.nodes
                both = " and ".join(f"`{parent}`" for parent in parents)
                return f"node `{child}` of the hierarchy `{self.dataset_id}` has two parents: {both}"
            case HierarchyReason.TOO_LARGE:
                return f"the hierarchy `{self.dataset_id}` is too large: at most 100,000 nodes are read"
            case _:
                assert_never(self.reason)

    def hint(self) -> str | None:
        if self.reason is HierarchyReason.TOO_LARGE:
            return "leave out nodes that have no rows"
        return "correct the hierarchy: every node has one parent, and roots have none"


@dataclass(frozen=True, slots=True, kw_only=True)
class ArithmeticOverflow(Problem):
    """A computed number is too large for its type. Integers have 64 bits, decimals 38 digits."""

    code: ClassVar[str] = "ARITHMETIC_OVERFLOW"
    example: ClassVar[Example] = Example("quantity * 9223372036854775807", "TO_DECIMAL(quantity) * 9223372036854775807")

    detail: str

    def message(self) -> str:
        return f"a number is too large: {self.detail}"

    def hint(self) -> str | None:
        return "convert to decimal first, or divide first"


@dataclass(frozen=True, slots=True, kw_only=True)
class InvalidNumber(Problem):
    """A text value could not be parsed as a number."""

    code: ClassVar[str] = "INVALID_NUMBER"
    example: ClassVar[Example] = Example('VALUE("twelve")', 'TRY_VALUE("twelve")')

    text: str

    def message(self) -> str:
        return f"`{self.text}` is not a number"

    def hint(self) -> str | None:
        return "correct the data, or use the TRY_ form of the function, which returns NULL"


Cells = tuple[tuple[str, str], ...]
"""Columns of a row with their values as text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckFailed(Problem):
    """A check of the project does not hold: its expression is false or unknown for some rows, for some groups, or for all rows together."""

    code: ClassVar[str] = "CHECK_FAILED"
    example: ClassVar[Example] = Example(
        "expect: SUM(debit) = SUM(credit)   # debit 100.00, credit 99.95", "debit 100.00, credit 100.00 in the data"
    )

    name: str
    what: Literal["rows", "groups", "total"]
    violations: int
    reached: int
    left: str | None = None
    right: str | None = None
    difference: str | None = None
    sample: tuple[Cells, ...] = ()
    published: tuple[str, ...] = ()
    """The outputs that were published before it was evaluated, and stay."""

    def message(self) -> str:
        if self.what == "total":
            return f"check `{self.name}` does not hold{self._sides()}"
        one = self.violations == 1
        kind = self.what.removesuffix("s") if one else self.what
        return f"check `{self.name}` does not hold for {self.violations:,} {kind} of {self.reached:,}"

    def _sides(self) -> str:
        if self.left is None or self.right is None:
            return ""
        by = f", difference {self.difference}" if self.difference is not None else ""
        return f": {self.left} on the left, {self.right} on the right{by}"

    def hint(self) -> str | None:
        return f"{_tell_published(self.published)}; correct the data or the project, then run again"

    def notes(self) -> tuple[str, ...]:
        shown = tuple(", ".join(f"{name} = {value}" for name, value in row) for row in self.sample[:LISTED_AT_MOST])
        more = self.violations - len(shown)
        return (*shown, f"and {more:,} more") if shown and more > 0 else shown

    def facts(self) -> dict[str, object]:
        return {
            "violations": self.violations,
            "reached": self.reached,
            "left": self.left,
            "right": self.right,
            "difference": self.difference,
            "sample": [dict(row) for row in self.sample],
        }


def _tell_published(outputs: Sequence[str]) -> str:
    return (
        f"published before the check, and not taken back: {listed(outputs)}" if outputs else "no result was published"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckEmpty(Problem):
    """A check that is evaluated for no row: it cannot fail, so it proves nothing."""

    code: ClassVar[str] = "CHECK_EMPTY"
    example: ClassVar[Example] = Example(
        'selector: region = "EMAE"   # no row has this region', 'selector: region = "EMEA"'
    )

    name: str

    def message(self) -> str:
        return f"no row reaches check `{self.name}`, so it checked nothing"

    def hint(self) -> str | None:
        return "correct its selector, or write `empty: pass` if no rows are expected"


CELLS_AT_MOST = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class WrongCell:
    """A stored value, or a whole record, that does not match the declaration of its dataset."""

    place: str
    """The file or table."""
    line: int | None = None
    """The line of the file on which the record starts."""
    row: str | None = None
    """The row of a table, by its key or else by its number."""
    column: str | None = None
    """None for a whole record."""
    value: str | None = None
    """None if there is no value; a long value is shortened."""
    rule: str
    """What is wrong, in words that follow the value."""

    def describe(self) -> str:
        """Place, value and rule in one line."""
        where = [f"`{self.place}`"]
        if self.line is not None:
            where.append(f"line {self.line}")
        if self.row is not None:
            where.append(self.row)
        if self.column is not None:
            where.append(f"column `{self.column}`")
        value = f"`{self.value}` " if self.value is not None else ""
        return f"{', '.join(where)}: {value}{self.rule}"


@dataclass(frozen=True, slots=True, kw_only=True)
class DataLoad(Problem):
    """Stored rows cannot be read, or do not match what the dataset and its datasource declare: columns, types, separator, encoding."""

    code: ClassVar[str] = "DATA_LOAD"
    example: ClassVar[Example] = Example(
        '# sales.csv of a datasource with `delimiter: ","`; amount is decimal(15,2)\n'
        'id;amount;text\n1;800.005;"a \\"b\\""\n2;1,000.00;"not closed',
        "# separator as declared, UTF-8, numbers without thousands and with at most 2 digits behind the point, quotes doubled\n"
        'id,amount,text\n1,800.01,"a ""b"""\n2,1000.00,"closed"',
    )

    dataset_id: str
    """The dataset; the table, if the rows are an output of a run."""
    run: str | None = None
    """The run whose output cannot be read."""
    detail: str
    differences: tuple[str, ...] = ()
    cells: tuple[WrongCell, ...] = ()
    """The first wrong values, in the order of files and lines."""
    counts: tuple[tuple[str, int], ...] = ()
    """How many values of each column are wrong; a record with another number of values counts under an empty name."""
    diagnosis: Diagnosis | None = None
    """What a file is, where it does not match its definition."""
    remedy: str | None = None
    present: tuple[str, ...] = ()
    """The files that exist instead of a missing one."""
    is_transient: bool = False
    """Whether it may go away by itself, as a full disk or a network that is down; then a retry helps."""

    @property
    def blame(self) -> Blame:
        """The environment, if it goes away by itself."""
        return Blame.ENVIRONMENT if self.is_transient else self.blamed

    def renamed(self, path: str, name: str) -> DataLoad:
        """The same of a file that people know under another name."""
        cells = tuple(replace(cell, place=cell.place.replace(path, name)) for cell in self.cells)
        return replace(self, detail=self.detail.replace(path, name), cells=cells)

    def message(self) -> str:
        owner = f"dataset `{self.dataset_id}`"
        if self.run is not None:
            owner = f"output `{self.dataset_id}` of run {self.run}"
        if len(self.cells) == sum(count for _, count in self.counts) == 1:
            return f"{owner}: {self.cells[0].describe()}"
        more = f": {'; '.join(self.differences)}" if self.differences else ""
        return f"{owner}: {self.detail}{more}"

    def notes(self) -> tuple[str, ...]:
        total = sum(count for _, count in self.counts)
        if total < 2:
            return ()
        shown = tuple(cell.describe() for cell in self.cells[:CELLS_AT_MOST])
        return (*shown, f"and {total - len(shown):,} more") if total > len(shown) else shown

    def facts(self) -> dict[str, object]:
        if not self.counts:
            return {}
        return {"cells": [asdict(cell) for cell in self.cells], "counts": dict(self.counts)}

    def hint(self) -> str | None:
        there = f"existing files: {listed(self.present)}" if self.present else None
        return "; ".join(filter(None, (self.remedy, there))) or None


@dataclass(frozen=True, slots=True, kw_only=True)
class AppendDataLoad(DataLoad):
    """The rows to append cannot be read, or do not match the declaration of their dataset."""

    code: ClassVar[str] = "APPEND_008"
    example: ClassVar[Example] = Example("budget/2026/01.parquet does not exist", "budget/2026/01.parquet exists")


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputWrite(Problem):
    """An output could not be written."""

    code: ClassVar[str] = "OUTPUT_WRITE"
    example: ClassVar[Example] = Example("a destination on a full disk", "a destination with free space")

    destination: str
    detail: str
    is_transient: bool = False
    """Whether it may go away by itself, as a full disk or a network that is down; then a retry helps."""

    @property
    def blame(self) -> Blame:
        """The environment, if it goes away by itself."""
        return Blame.ENVIRONMENT if self.is_transient else self.blamed

    def message(self) -> str:
        return f"writing to `{self.destination}` failed: {self.detail}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkFailed(Problem):
    """Spark failed for a reason that is not a known problem of the data."""

    code: ClassVar[str] = "SPARK_FAILED"
    example: ClassVar[Example] = Example("a driver without memory", "`--spark-conf spark.driver.memory=8g`")

    detail: str
    conditions: tuple[str, ...] = ()

    def message(self) -> str:
        kinds = f" ({listed(self.conditions)})" if self.conditions else ""
        return f"Spark failed{kinds}: {self.detail}"

    def hint(self) -> str | None:
        return "`dobo --debug` shows the full error of Spark"


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkUnavailable(Problem):
    """Spark cannot start: there is no suitable Java, or its settings are invalid."""

    code: ClassVar[str] = "SPARK_UNAVAILABLE"
    blamed: ClassVar[Blame] = Blame.ENVIRONMENT
    example: ClassVar[Example] = Example("a machine without Java", "pip install 'dobonomodo[java]'")

    reason: str
    remedy: str | None = None

    def message(self) -> str:
        return f"Spark cannot start: {self.reason}"

    def hint(self) -> str | None:
        return self.remedy or "`dobo doctor` checks what Spark needs"


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkLost(Problem):
    """The connection to Spark was lost: its Java process, Connect server, cluster or executors ended or cannot be reached."""

    code: ClassVar[str] = "SPARK_LOST"
    blamed: ClassVar[Blame] = Blame.ENVIRONMENT
    example: ClassVar[Example] = Example("the Spark Connect server is restarted during a run", "dobo resume RUN")

    detail: str

    def message(self) -> str:
        return f"Spark was lost: {self.detail}"

    def hint(self) -> str | None:
        return "no operation caused this; try again when Spark is available"


@dataclass(frozen=True, slots=True, kw_only=True)
class NoExecutors(Problem):
    """No executor ran a task of Spark within the time that the run may wait."""

    code: ClassVar[str] = "NO_EXECUTORS"
    blamed: ClassVar[Blame] = Blame.ENVIRONMENT
    example: ClassVar[Example] = Example("a cluster without a worker", "dobo run ... --wait-for-executors 1800")

    seconds: float

    def message(self) -> str:
        return f"no Spark executor ran a task for {self.seconds:g} s"

    def hint(self) -> str | None:
        return (
            "check that the cluster has workers with enough free memory and cores; "
            "`--wait-for-executors SECONDS` waits longer"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkersElsewhere(Problem):
    """The workers of Spark do not share the folder in which a run keeps what it reads and writes."""

    code: ClassVar[str] = "WORKERS_ELSEWHERE"
    blamed: ClassVar[Blame] = Blame.ENVIRONMENT
    example: ClassVar[Example] = Example(
        "workspace: {spark: {master: spark://host:7077}}",
        "workspace: {spark: {master: spark://host:7077}, scratch: /mnt/shared/dobo}",
    )

    folder: str
    """The folder, or its address in an object store."""
    detail: str
    remedy: str | None = None

    def message(self) -> str:
        return f"the workers of Spark cannot reach `{self.folder}`: {self.detail}"

    def hint(self) -> str | None:
        return self.remedy or (
            "set `scratch:` in dobo.yaml to a folder that this machine and all workers share, under the same path, "
            "or to an address in an object store"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ScratchUnreachable(Problem):
    """The machine on which `dobo` runs cannot use the object store through which it and the workers of Spark exchange files."""

    code: ClassVar[str] = "SCRATCH_UNREACHABLE"
    blamed: ClassVar[Blame] = Blame.ENVIRONMENT
    example: ClassVar[Example] = Example(
        "scratch: s3://acme-lake/dobo, with keys that may only read",
        "scratch: s3://acme-lake/dobo, with keys that may list, read, write and delete there",
    )

    address: str
    detail: str

    def message(self) -> str:
        return f"this machine cannot use `{self.address}`: {self.detail}"

    def hint(self) -> str | None:
        return (
            "check the address in `scratch:` of dobo.yaml, and that the credentials of this machine may list, read, "
            "write and delete there; then `dobo resume`"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkDiffers(Problem):
    """The session computes differently from Apache Spark, so results could be wrong without an error."""

    code: ClassVar[str] = "SPARK_DIFFERS"
    example: ClassVar[Example] = Example("--remote sc://server-that-wraps-on-overflow", "--remote sc://apache-spark")

    differences: tuple[str, ...]

    def message(self) -> str:
        return f"the Spark session computes differently from Apache Spark: {'; '.join(self.differences)}"

    def hint(self) -> str | None:
        return "use an Apache Spark 4 server whose Java runs with `-Duser.language=en -Duser.country=US`"


@dataclass(frozen=True, slots=True, kw_only=True)
class CredentialNotFound(Problem):
    """A datasource or a Spark setting refers to a secret that does not exist."""

    code: ClassVar[str] = "CREDENTIAL_NOT_FOUND"
    blamed: ClassVar[Blame] = Blame.CALLER
    example: ClassVar[Example] = Example("credential_ref: env://PASWORD", "credential_ref: env://WAREHOUSE_PASSWORD")

    owner: str
    """What refers to it, such as "datasource `warehouse`"."""
    reference: str
    reason: str

    def message(self) -> str:
        return f"the credential `{self.reference}` of {self.owner} {self.reason}"

    def hint(self) -> str | None:
        return "before the run, set the variable or write the secret to the file"


@dataclass(frozen=True, slots=True, kw_only=True)
class InputChanged(Problem):
    """Input files changed after a run took its snapshot."""

    code: ClassVar[str] = "INPUT_CHANGED"
    example: ClassVar[Example] = Example("dobo resume RUN (orders.parquet was replaced)", "dobo run PROJECT --period P")

    changes: tuple[str, ...]

    def message(self) -> str:
        shown = "; ".join(self.changes[:LISTED_AT_MOST])
        more = len(self.changes) - LISTED_AT_MOST
        return f"inputs changed since the run took its snapshot: {shown}" + (f" and {more} more" if more > 0 else "")

    def hint(self) -> str | None:
        return "start a new run, which reads the current files"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunHeld(Problem):
    """Another run of the same project and period is in progress."""

    code: ClassVar[str] = "RUN_HELD"
    blamed: ClassVar[Blame] = Blame.CONFLICT
    example: ClassVar[Example] = Example("dobo run monthly-sales -p 2026-01 (twice at once)", "dobo run ... --wait")

    project: str
    period: str
    holder: str
    since: str

    def message(self) -> str:
        return (
            f"project `{self.project}` is already running for period `{self.period}`: {self.holder}, since {self.since}"
        )

    def hint(self) -> str | None:
        return "wait for it with --wait; `dobo runs list` shows it"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunNotFound(Problem):
    """No run has this id or name, or several runs match it."""

    code: ClassVar[str] = "RUN_NOT_FOUND"
    example: ClassVar[Example] = Example("dobo resume 2026", "dobo resume latest")

    id: str
    known: tuple[str, ...] = ()

    def message(self) -> str:
        return f"there is no run `{self.id}`" if not self.known else f"`{self.id}` matches more than one run"

    def hint(self) -> str | None:
        if self.id == "latest":
            return "there is no run yet; `dobo run` starts one"
        if self.known:
            return f"one of {listed(self.known)}"
        return "`dobo runs list` shows all runs; `latest` names the latest one"


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeRefused(Problem):
    """A run cannot be resumed."""

    code: ClassVar[str] = "RESUME_REFUSED"
    example: ClassVar[Example] = Example("dobo resume RUN (a later run has finished)", "dobo run PROJECT --period P")

    run: str
    reason: str

    def message(self) -> str:
        return f"run `{self.run}` cannot be resumed: {self.reason}"

    def hint(self) -> str | None:
        return "start a new run"


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotTooNew(Problem):
    """A run was recorded by a later version of this program."""

    code: ClassVar[str] = "SNAPSHOT_TOO_NEW"
    example: ClassVar[Example] = Example("dobo resume RUN (a run of a newer dobo)", "upgrade dobonomodo")

    found: str
    known: int

    def message(self) -> str:
        return f"the snapshot of the run has format {self.found}; this version supports formats up to {self.known}"

    def hint(self) -> str | None:
        return "upgrade `dobonomodo`; the run was not changed"


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelRefused(Problem):
    """A run is publishing its outputs. Publication is completed and never undone."""

    code: ClassVar[str] = "CANCEL_REFUSED"
    example: ClassVar[Example] = Example(
        "dobo cancel RUN (a run that was killed while it published)", "dobo resume RUN"
    )

    run: str

    def message(self) -> str:
        return f"run `{self.run}` is publishing its outputs, and some may already be published"

    def hint(self) -> str | None:
        return f"`dobo resume {self.run}` completes it; so does the next run of the same project and period"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCancelled(Problem):
    """A user cancelled the run."""

    code: ClassVar[str] = "RUN_CANCELLED"
    example: ClassVar[Example] = Example("dobo cancel RUN", "dobo run PROJECT --period P")

    run: str

    def message(self) -> str:
        return f"run `{self.run}` was cancelled; its published outputs remain"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunInterrupted(Problem):
    """The run was interrupted before it completed."""

    code: ClassVar[str] = "RUN_INTERRUPTED"
    example: ClassVar[Example] = Example("Ctrl-C during dobo run", "dobo resume RUN")

    run: str
    reason: str = ""

    def message(self) -> str:
        return f"run `{self.run}` was interrupted" + (f": {self.reason}" if self.reason else "")

    def hint(self) -> str | None:
        return f"`dobo runs show {self.run}` shows how to continue"


@dataclass(frozen=True, slots=True, kw_only=True)
class DigestDiffers(Problem):
    """Stored or recomputed rows differ from the rows that a run recorded."""

    code: ClassVar[str] = "DIGEST_DIFFERS"
    example: ClassVar[Example] = Example("an output that was edited by hand", "dobo run PROJECT --period P")

    table: str
    expected: str
    found: str

    def message(self) -> str:
        return f"output `{self.table}`: recorded {self.expected}, found {self.found}"


REQUIREMENTS: tuple[type[RequirementNotMet], ...] = (Allocation,)
"""Problems that a row can stop a job with."""

RUN_PROBLEMS: tuple[type[Problem], ...] = (
    CheckFailed,
    CheckEmpty,
    JoinMultipleMatches,
    Allocation,
    HierarchyCycle,
    ArithmeticOverflow,
    InvalidNumber,
    DataLoad,
    AppendDataLoad,
    OutputWrite,
    SparkFailed,
    SparkUnavailable,
    SparkLost,
    NoExecutors,
    WorkersElsewhere,
    ScratchUnreachable,
    SparkDiffers,
    CredentialNotFound,
    InputChanged,
    RunHeld,
    RunNotFound,
    ResumeRefused,
    SnapshotTooNew,
    CancelRefused,
    RunCancelled,
    RunInterrupted,
    DigestDiffers,
)

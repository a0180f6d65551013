"""What can be wrong with the operations of a project, as far as it can be known before a row is read."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from typing import ClassVar, Literal, assert_never

from dobonomodo.problems.place import Span
from dobonomodo.problems.problem import Blame, Example, Problem, Severity, did_you_mean, listed, nearest

_UPDATE = "type: update\narguments:\n  assignments:"
_AGGREGATE = "type: aggregate\narguments:"


@dataclass(frozen=True, slots=True, kw_only=True)
class EmptyAssignments(Problem):
    """An update without assignments changes nothing."""

    code: ClassVar[str] = "EMPTY_ASSIGNMENTS"
    example: ClassVar[Example] = Example(
        f"{_UPDATE} []", f'{_UPDATE}\n    - {{column: net, expression: "amount * 0.9"}}'
    )

    def message(self) -> str:
        return "an update needs at least one assignment"

    def hint(self) -> str | None:
        return "write `assignments: [{column: ..., expression: ...}]`"


@dataclass(frozen=True, slots=True, kw_only=True)
class DuplicateTarget(Problem):
    """One update sets the same column twice, and all its assignments take effect at the same time."""

    code: ClassVar[str] = "DUPLICATE_TARGET"
    example: ClassVar[Example] = Example(
        f'{_UPDATE}\n    - {{column: net, expression: "amount"}}\n    - {{column: Net, expression: "amount * 2"}}',
        f'{_UPDATE}\n    - {{column: net, expression: "amount * 2"}}',
    )

    name: str
    first: Span | None = None

    def message(self) -> str:
        at = f" (first in line {self.first.line})" if self.first else ""
        return f"column `{self.name}` is assigned twice in one update{at}"

    def hint(self) -> str | None:
        return "use two updates, or one expression"


@dataclass(frozen=True, slots=True, kw_only=True)
class EmptyGroupBy(Problem):
    """An aggregation has no group keys."""

    code: ClassVar[str] = "EMPTY_GROUP_BY"
    example: ClassVar[Example] = Example(f"{_AGGREGATE}\n  group_by: []", f"{_AGGREGATE}\n  group_by: [region]")

    def message(self) -> str:
        return "`group_by` needs at least one column"

    def hint(self) -> str | None:
        return "group by `_period` for one summary row per period"


@dataclass(frozen=True, slots=True, kw_only=True)
class EmptyAggregations(Problem):
    """An aggregation computes nothing."""

    code: ClassVar[str] = "EMPTY_AGGREGATIONS"
    example: ClassVar[Example] = Example(
        f"{_AGGREGATE}\n  group_by: [region]\n  aggregations: []",
        f'{_AGGREGATE}\n  group_by: [region]\n  aggregations:\n    - {{column: total, expression: "SUM(amount)"}}',
    )

    def message(self) -> str:
        return "`aggregations` needs at least one entry"

    def hint(self) -> str | None:
        return "write `aggregations: [{column: total, expression: SUM(amount)}]`"


@dataclass(frozen=True, slots=True, kw_only=True)
class DuplicateGroupBy(Problem):
    """``group_by`` or ``rollup`` contains the same column twice, possibly once with its table."""

    code: ClassVar[str] = "DUPLICATE_GROUP_BY"
    example: ClassVar[Example] = Example("group_by: [region, orders.region]", "group_by: [region]")

    name: str
    key: str = "group_by"

    def message(self) -> str:
        return f"`{self.name}` is in `{self.key}` twice"

    def hint(self) -> str | None:
        return "remove one of the two"


@dataclass(frozen=True, slots=True, kw_only=True)
class DuplicateAggColumn(Problem):
    """Two aggregations have the same result column, or a result column is also a group key."""

    code: ClassVar[str] = "DUPLICATE_AGG_COLUMN"
    example: ClassVar[Example] = Example(
        "group_by: [region]\naggregations:\n  - {column: region, expression: COUNT(*)}",
        "group_by: [region]\naggregations:\n  - {column: order_count, expression: COUNT(*)}",
    )

    name: str
    is_key: bool = False

    def message(self) -> str:
        return f"`{self.name}` is a group key" if self.is_key else f"`{self.name}` is the result of two aggregations"

    def hint(self) -> str | None:
        return "choose another result column"


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemColumnConflict(Problem):
    """An aggregation uses a system column as its result, or as a group key where that is not allowed."""

    code: ClassVar[str] = "SYSTEM_COLUMN_CONFLICT"
    example: ClassVar[Example] = Example("group_by: [_row_id]", "group_by: [_period]")

    name: str
    grouped: bool = False

    def message(self) -> str:
        if self.grouped:
            return f"`{self.name}` is a system column and cannot be a group key"
        return f"`{self.name}` is reserved for the system and cannot be the result of an aggregation"

    def hint(self) -> str | None:
        if self.grouped:
            return "the only system columns that can be group keys are `_period`, `_period_from` and `_period_to`"
        return "choose a name that does not start with `_`"


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinAliasConflict(Problem):
    """Two joins of one update have the same alias, or an alias is already the name of a table."""

    code: ClassVar[str] = "JOIN_ALIAS_CONFLICT"
    example: ClassVar[Example] = Example(
        "joins:\n  - {alias: orders, dataset_id: customers, on: ...}   # the main table is called orders",
        "joins:\n  - {alias: customers, dataset_id: customers, on: ...}",
    )

    alias: str
    taken_by: str
    fixed: bool = False
    """Whether the operation gives the alias."""

    def message(self) -> str:
        return f"the alias `{self.alias}` is already used by {self.taken_by}"

    def hint(self) -> str | None:
        return f"rename {self.taken_by}: the operation itself uses this name" if self.fixed else "choose another alias"


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetMissing(Problem):
    """Base of the problems of a dataset that does not exist."""

    dataset_id: str
    known: tuple[str, ...] = ()
    disabled: bool = False
    version: int | None = None
    """The version that was asked for, where there are others."""
    registered_by: tuple[str, ...] = ()
    """The projects that register it, none of which has run yet."""
    inactive: bool = False
    """Whether they must be activated before they run."""
    period: str | None = None
    """The period that they must run for."""

    def message(self) -> str:
        if self.registered_by:
            return f"dataset `{self.dataset_id}` does not exist yet: {self._makers()} registers it and has not run"
        if self.version is not None:
            return f"dataset `{self.dataset_id}` has no version {self.version}"
        if self.disabled:
            return f"dataset `{self.dataset_id}` has no active version"
        return f"there is no dataset `{self.dataset_id}`"

    def _makers(self) -> str:
        return f"project {' or '.join(f'`{each}`' for each in self.registered_by)}"

    def hint(self) -> str | None:
        if self.registered_by:
            first = self.registered_by[0]
            period = f" --period {self.period}" if self.period else " --period PERIOD"
            activate = f"`dobo activate {first}`, then " if self.inactive else ""
            return f"run it first: {activate}`dobo run {first}{period}`"
        if self.version is not None:
            return "omit the version to use the latest"
        if self.disabled:
            return "set its `status` to active and apply it"
        return did_you_mean(self.dataset_id, self.known, otherwise="define it under `datasets/`")


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionMissing(Problem):
    """Base of the problems of a dataset version that does not exist."""

    dataset_id: str
    version: int
    versions: tuple[int, ...] = ()

    def message(self) -> str:
        return f"dataset `{self.dataset_id}` has no version {self.version}"

    def hint(self) -> str | None:
        known = listed([str(each) for each in self.versions])
        return f"available: {known}; omit `dataset_version` to use the latest" if self.versions else None


@dataclass(frozen=True, slots=True, kw_only=True)
class InputDatasetNotFound(DatasetMissing):
    """The dataset that a project works on does not exist, or none of its versions is active."""

    code: ClassVar[str] = "INPUT_DATASET_NOT_FOUND"
    example: ClassVar[Example] = Example("input_dataset_id: sales-order", "input_dataset_id: sales-orders")


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinDatasetNotFound(DatasetMissing):
    """The dataset of a join does not exist, or none of its versions is active."""

    code: ClassVar[str] = "JOIN_DATASET_NOT_FOUND"
    example: ClassVar[Example] = Example("dataset_id: custmers", "dataset_id: customers")


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinVersionNotFound(VersionMissing):
    """A join refers to a version of a dataset that does not exist."""

    code: ClassVar[str] = "JOIN_VERSION_NOT_FOUND"
    example: ClassVar[Example] = Example("dataset_id: customers\ndataset_version: 9", "dataset_id: customers")


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetCycle(Problem):
    """A project reads, directly or through other projects, the dataset that it registers itself, and no file declares it."""

    code: ClassVar[str] = "DATASET_CYCLE"
    example: ClassVar[Example] = Example(
        "project: {id: closing, input_dataset_id: balances, ...}   # an output has register_as_dataset: balances",
        "dataset: {id: balances, main_table: ...}   # declared in datasets/",
    )

    dataset_id: str
    projects: tuple[str, ...]
    """The way from the project that registers the dataset back to it; each reads what the next one registers."""

    def message(self) -> str:
        if len(set(self.projects)) == 1:
            return f"project `{self.projects[0]}` reads dataset `{self.dataset_id}`, which it registers itself"
        way = " -> ".join(f"`{each}`" for each in self.projects)
        return f"dataset `{self.dataset_id}` depends on itself: {way}, where each project reads what the next registers"

    def hint(self) -> str | None:
        return f"declare dataset `{self.dataset_id}` with its columns in `datasets/`"


@dataclass(frozen=True, slots=True, kw_only=True)
class EmptyProjection(Problem):
    """An output has an empty list of columns."""

    code: ClassVar[str] = "EMPTY_PROJECTION"
    example: ClassVar[Example] = Example("columns: []", "columns: [order_id, amount]")

    registered: bool = False
    """Whether there are columns, but none that a dataset could have."""

    def message(self) -> str:
        if self.registered:
            return "only system columns are written, so the registered dataset would have no columns"
        return "`columns` is empty, so nothing would be written"

    def hint(self) -> str | None:
        return "list the columns, or omit `columns` to write all"


@dataclass(frozen=True, slots=True, kw_only=True)
class DuplicateOutputColumn(Problem):
    """An output lists the same column twice."""

    code: ClassVar[str] = "DUPLICATE_OUTPUT_COLUMN"
    example: ClassVar[Example] = Example("columns: [amount, Amount]", "columns: [amount]")

    name: str

    def message(self) -> str:
        return f"`{self.name}` is in `columns` twice"

    def hint(self) -> str | None:
        return "remove one of the two"


class DestinationReason(StrEnum):
    """Reasons why a destination is invalid."""

    MISSING = "missing"
    BOTH = "both"
    EMPTY_TABLE = "empty table"
    UNKNOWN_DATASOURCE = "unknown datasource"
    DISABLED = "disabled"
    NO_FILES = "no files"
    NO_DATABASE = "no database"
    UNSAFE = "unsafe"
    LINK = "link"
    WRITTEN_TWICE = "written twice"
    NO_PERIOD = "no period"
    NO_NAMED_FILES = "no named files"
    TOKEN = "token"
    APPENDED = "appended"
    NO_SHEETS = "no sheets"
    SHEET_NAME = "sheet name"
    NEEDS_FILE = "needs file"
    NOT_TOGETHER = "not together"
    READ_ONLY = "read only"


@dataclass(frozen=True, slots=True, kw_only=True)
class InvalidDestination(Problem):
    """The destination of an output is invalid, or two outputs would overwrite each other."""

    code: ClassVar[str] = "INVALID_DESTINATION"
    example: ClassVar[Example] = Example(
        'destination: {datasource_id: lake, table: ""}', "destination: {datasource_id: lake, table: processed_orders}"
    )

    reason: DestinationReason
    name: str = ""
    known: tuple[str, ...] = ()
    first_seq: int = 0
    what: Literal["table", "file", "sheet"] = "table"

    def message(self) -> str:
        match self.reason:
            case DestinationReason.MISSING:
                return "the destination names neither a datasource and table nor a location"
            case DestinationReason.BOTH:
                return "the destination names both a datasource and a location"
            case DestinationReason.EMPTY_TABLE:
                return "the destination has an empty name"
            case DestinationReason.UNKNOWN_DATASOURCE:
                return f"there is no datasource `{self.name}`"
            case DestinationReason.DISABLED:
                return f"datasource `{self.name}` is disabled"
            case DestinationReason.READ_ONLY:
                return f"datasource `{self.name}` can only be read"
            case DestinationReason.NO_FILES:
                return (
                    f"`{self.name}` is not a supported file format"
                    if self.name
                    else "the destination has a path but no `type`"
                )
            case DestinationReason.NO_DATABASE:
                return f"`schema` is for databases, and `{self.name}` is a datasource of files"
            case DestinationReason.UNSAFE:
                return f"`{self.name}` is not a path within its folder"
            case DestinationReason.LINK:
                return f"`{self.name}` is a symbolic link that points outside its folder"
            case DestinationReason.WRITTEN_TWICE:
                return f"operation {self.first_seq} already writes to `{self.name}`, and this one would replace it"
            case DestinationReason.NO_PERIOD:
                return f"the file name `{self.name}` is the same for every period, which would replace each other"
            case DestinationReason.NO_NAMED_FILES:
                return f"the destination does not consist of files, so there is no file `{self.name}`"
            case DestinationReason.TOKEN:
                return f"the file name `{self.name}` has a token other than `{{{{period}}}}`"
            case DestinationReason.APPENDED:
                return f"rows cannot be appended to the file `{self.name}`"
            case DestinationReason.NO_SHEETS:
                return f"`sheet: {self.name}` is for Excel files"
            case DestinationReason.SHEET_NAME:
                return f"`{self.name}` is not the name of a sheet"
            case DestinationReason.NEEDS_FILE:
                return "an Excel workbook needs a file name, and the destination has no `file`"
            case DestinationReason.NOT_TOGETHER:
                return f"several outputs write to `{self.name}`, and the project publishes each output separately"
            case _:
                assert_never(self.reason)

    def hint(self) -> str | None:
        match self.reason:
            case DestinationReason.UNKNOWN_DATASOURCE:
                return did_you_mean(self.name, self.known, otherwise="define it under `datasources/`")
            case DestinationReason.WRITTEN_TWICE:
                if self.what != "table":
                    return f"choose another {self.what}"
                return "write `mode: append` on the second, or choose another table"
            case DestinationReason.NO_FILES:
                return f"available: {', '.join(f'`{name}`' for name in self.known)}"
            case DestinationReason.READ_ONLY:
                return f"write to a datasource of another type: {', '.join(f'`{name}`' for name in self.known)}"
            case DestinationReason.UNSAFE:
                return "write a relative path without `.`, `..`, an address such as `s3a://` or control characters"
            case DestinationReason.LINK:
                return "delete the link, or define a datasource whose `path_prefix` is the target of the link"
            case DestinationReason.DISABLED:
                return "set its `status` to active"
            case DestinationReason.NO_DATABASE:
                return "remove `schema`"
            case DestinationReason.NO_PERIOD | DestinationReason.TOKEN:
                return "write `{{period}}` in it, as in `summary-{{period}}.csv`"
            case DestinationReason.NO_NAMED_FILES:
                return "write `table`, or choose a datasource of files"
            case DestinationReason.APPENDED:
                return "remove `mode: append`; a file is replaced as a whole"
            case DestinationReason.NO_SHEETS:
                return "remove `sheet`, or write to a datasource of `type: excel`"
            case DestinationReason.SHEET_NAME:
                return "write 1 to 31 characters without `[ ] : * ? / \\` and without a quote at either end"
            case DestinationReason.NEEDS_FILE:
                return "write `file: report-{{period}}.xlsx`"
            case DestinationReason.NOT_TOGETHER:
                return "remove `publish: as_done` from the project, or write to several files"
            case _:
                return "write `{datasource_id: ..., table: ...}` or `{type: parquet, path: ...}`"


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolverNotFound(Problem):
    """A dataset has no resolver: no override in the project, no `resolver_id` on the dataset, no default."""

    code: ClassVar[str] = "RESOLVER_NOT_FOUND"
    example: ClassVar[Example] = Example(
        "dataset: {id: orders, resolver_id: lak, ...}", "dataset: {id: orders, resolver_id: lake, ...}"
    )

    dataset_id: str
    resolver_id: str | None = None
    known: tuple[str, ...] = ()
    disabled: bool = False

    def message(self) -> str:
        if self.resolver_id is None:
            return f"dataset `{self.dataset_id}` has no resolver, so its rows cannot be located"
        state = "is disabled" if self.disabled else "does not exist"
        return f"resolver `{self.resolver_id}` for dataset `{self.dataset_id}` {state}"

    def hint(self) -> str | None:
        if self.resolver_id is not None and not self.disabled:
            return did_you_mean(self.resolver_id, self.known)
        return "give the dataset a `resolver_id`, or mark a resolver `is_default: true`"


@dataclass(frozen=True, slots=True, kw_only=True)
class NoRuleMatches(Problem):
    """No rule of a resolver matches a table and period."""

    code: ClassVar[str] = "NO_RULE_MATCHES"
    example: ClassVar[Example] = Example(
        "rules:\n  - {when: 'table.name = \"customers\"', strategy: ...}   # and the table is called orders",
        "rules:\n  - {when: 'table.name = \"customers\"', strategy: ...}\n  - {strategy: ...}",
    )

    resolver_id: str
    table: str
    period: str
    tried: tuple[tuple[str, str], ...]
    """Each rule and why it did not match."""

    def message(self) -> str:
        tried = "; ".join(f"{name}: {why}" for name, why in self.tried) or "it has no rules"
        return f"resolver `{self.resolver_id}` has no rule for table `{self.table}` in period `{self.period}` ({tried})"

    def hint(self) -> str | None:
        if any("there is no" in why for _, why in self.tried):
            return "give the rule a `data_level` that the period has, or `any`"
        return "add a rule without `when` at the end, or fix one of the rules"


# --- append


@dataclass(frozen=True, slots=True, kw_only=True)
class AppendDatasetNotFound(DatasetMissing):
    """The source dataset of an append does not exist, or none of its versions is active."""

    code: ClassVar[str] = "APPEND_001"
    example: ClassVar[Example] = Example("source: {dataset_id: budgets}", "source: {dataset_id: budget}")


@dataclass(frozen=True, slots=True, kw_only=True)
class AppendVersionNotFound(VersionMissing):
    """An append refers to a version of a dataset that does not exist."""

    code: ClassVar[str] = "APPEND_002"
    example: ClassVar[Example] = Example(
        "source: {dataset_id: budget, dataset_version: 5}", "source: {dataset_id: budget, dataset_version: 3}"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class AppendColumnMismatch(Problem):
    """The rows to append have a column that the working dataset does not have, or has with another type."""

    code: ClassVar[str] = "APPEND_003"
    example: ClassVar[Example] = Example(
        "aggregations:\n  - {column: budget_total, expression: SUM(amount)}   # the working data has no budget_total",
        "aggregations:\n  - {column: amount, expression: SUM(amount)}",
    )

    name: str
    known: tuple[str, ...] = ()
    working_type: str | None = None
    source_type: str | None = None

    def message(self) -> str:
        if self.working_type is None:
            return f"the appended rows have column `{self.name}`, which the working dataset does not have"
        return f"column `{self.name}` is {self.working_type} in the working dataset and {self.source_type} in the appended rows"

    def hint(self) -> str | None:
        if self.working_type is None:
            near = nearest(self.name, self.known)
            meant = f"did you mean `{near}`? " if near else ""
            return f"{meant}add the column with an update before this, or omit it with an `aggregation`"
        return "append does not convert types; convert one of the two columns"


@dataclass(frozen=True, slots=True, kw_only=True)
class AppendExpressionInvalid(Problem):
    """The ``source_selector`` of an append is not a valid condition on the rows of the source."""

    code: ClassVar[str] = "APPEND_004"
    example: ClassVar[Example] = Example("source_selector: amount >", "source_selector: amount > 10000")

    cause: Problem

    def message(self) -> str:
        return self.cause.message()

    def hint(self) -> str | None:
        return self.cause.hint()

    def label(self) -> str | None:
        return self.cause.label()


@dataclass(frozen=True, slots=True, kw_only=True)
class AppendAggregationInvalid(AppendExpressionInvalid):
    """An aggregation of an append uses an unknown function, or no aggregate function."""

    code: ClassVar[str] = "APPEND_005"
    example: ClassVar[Example] = Example("expression: MEDIAN(amount)", "expression: AVG(amount)")


@dataclass(frozen=True, slots=True, kw_only=True)
class AppendColumnNotFound(AppendExpressionInvalid):
    """An append refers to a column that its source does not have."""

    code: ClassVar[str] = "APPEND_006"
    example: ClassVar[Example] = Example("group_by: [acount_code]", "group_by: [account_code]")


@dataclass(frozen=True, slots=True, kw_only=True)
class AppendResolverNotFound(ResolverNotFound):
    """The source dataset of an append has no resolver."""

    code: ClassVar[str] = "APPEND_007"
    example: ClassVar[Example] = Example("dataset: {id: budget, ...}", "dataset: {id: budget, resolver_id: lake, ...}")


# --- running


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectNotRunnable(Problem):
    """A project is inactive or in conflict, so it cannot run."""

    code: ClassVar[str] = "PROJECT_NOT_RUNNABLE"
    blamed: ClassVar[Blame] = Blame.CONFLICT
    example: ClassVar[Example] = Example("dobo run monthly-sales   # deactivated before", "dobo activate monthly-sales")

    project_id: str
    status: str

    def message(self) -> str:
        state = "in conflict" if self.status == "conflict" else self.status
        return f"project `{self.project_id}` is {state}"

    def hint(self) -> str | None:
        if self.status == "conflict":
            return (
                f"`dobo show {self.project_id}` shows what changed; activate an adapted version or keep the pinned one"
            )
        return f"`dobo activate {self.project_id}` makes it runnable"


@dataclass(frozen=True, slots=True, kw_only=True)
class PeriodNotRunnable(Problem):
    """A period is closed or locked. A closed period can run with an override and a reason, a locked one must be reopened first."""

    code: ClassVar[str] = "PERIOD_NOT_RUNNABLE"
    blamed: ClassVar[Blame] = Blame.CONFLICT
    example: ClassVar[Example] = Example(
        "dobo run monthly-sales --period 2025-12   # closed",
        'dobo run monthly-sales --period 2025-12 --override-closed --reason "late invoice 4711"',
    )

    period: str
    status: str

    def message(self) -> str:
        return f"period `{self.period}` is {self.status}"

    def hint(self) -> str | None:
        if self.status == "closed":
            return 'add --override-closed --reason "..." to run it anyway'
        return f'a locked period cannot run; reopen it first: dobo period reopen {self.period} --reason "..."'


class MakerReason(StrEnum):
    """Reasons why rows cannot be selected by the operation that created them."""

    UNKNOWN = "unknown"
    NO_ROWS = "no rows"
    SEVERAL = "several"
    OTHER_ROWS = "other rows"


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownOperation(Problem):
    """A formula selects the rows of an operation that does not exist, or that creates no rows."""

    code: ClassVar[str] = "UNKNOWN_OPERATION"
    example: ClassVar[Example] = Example('NOT MADE_BY("Totls")', 'NOT MADE_BY("Totals")')

    name: str
    reason: MakerReason = MakerReason.UNKNOWN
    known: tuple[str, ...] = ()
    numbers: tuple[int, ...] = ()
    """The operations of that name, where there are several."""

    def message(self) -> str:
        match self.reason:
            case MakerReason.UNKNOWN:
                return f"the project has no operation `{self.name}`"
            case MakerReason.NO_ROWS:
                return f"the operation `{self.name}` creates no rows"
            case MakerReason.SEVERAL:
                return f"several operations are called `{self.name}`: {', '.join(map(str, self.numbers))}"
            case MakerReason.OTHER_ROWS:
                return "no operation of the project made these rows"
            case _:
                assert_never(self.reason)

    def hint(self) -> str | None:
        if self.reason is MakerReason.SEVERAL:
            return "give each of them a unique name"
        if self.reason is MakerReason.OTHER_ROWS:
            return "`MADE_BY` is for rows of the working dataset"
        return did_you_mean(self.name, self.known, otherwise="no operation of the project creates rows")


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherPeriodMissing(Problem):
    """An operation reads another period than that of the run, and the calendar does not have it."""

    code: ClassVar[str] = "OTHER_PERIOD_MISSING"
    example: ClassVar[Example] = Example(
        "joins: [{alias: before, dataset_id: balances, period: previous, on: ...}]   # in the first period",
        "joins: [{alias: before, dataset_id: balances, period: previous, missing: empty, on: ...}]",
    )

    which: str
    """What the reading says."""
    period: str
    calendar: str

    def message(self) -> str:
        where = f"calendar `{self.calendar}`" if self.calendar else "the calendar"
        return f"{where} does not have the period that is `{self.which}` for `{self.period}`"

    def hint(self) -> str | None:
        return "extend the calendar, or write `missing: empty` to read nothing then"


# --- warnings


@dataclass(frozen=True, slots=True, kw_only=True)
class SummariesAggregated(Problem):
    """An aggregate or a window can include the summary rows of an earlier aggregate, so that totals count amounts twice."""

    code: ClassVar[str] = "W-01"
    severity: ClassVar[Severity] = "warning"
    example: ClassVar[Example] = Example(
        "type: aggregate   # after another aggregate", "type: aggregate\nselector: _operation_seq = 0"
    )

    earlier: int
    window: bool = False

    def message(self) -> str:
        which = "rows of a window" if self.window else "rows to aggregate"
        return f"the {which} can include the summary rows of operation {self.earlier}"

    def hint(self) -> str | None:
        return "add `selector: _operation_seq = 0` to aggregate only the loaded rows"


@dataclass(frozen=True, slots=True, kw_only=True)
class BlankDelete(Problem):
    """A delete whose selector is blank deletes every active row."""

    code: ClassVar[str] = "W-02"
    severity: ClassVar[Severity] = "warning"
    example: ClassVar[Example] = Example('type: delete\nselector: ""', "type: delete\nselector: amount = 0")

    def message(self) -> str:
        return "the selector is blank, so the operation deletes every row"

    def hint(self) -> str | None:
        return "write a condition; to delete every row, remove `selector`"


@dataclass(frozen=True, slots=True, kw_only=True)
class UnfilteredPeriods(Problem):
    """A source has a ``_period`` column but no temporal mode, so it is not filtered by period."""

    code: ClassVar[str] = "W-04"
    severity: ClassVar[Severity] = "warning"
    example: ClassVar[Example] = Example(
        "main_table: {name: budget, columns: [...]}",
        "main_table: {name: budget, temporal_mode: period, columns: [...]}",
    )

    dataset_id: str

    def message(self) -> str:
        return f"dataset `{self.dataset_id}` has no temporal mode, so the rows of all periods are read"

    def hint(self) -> str | None:
        return "set `temporal_mode: period` to read one period, or `snapshot` to read all rows"


@dataclass(frozen=True, slots=True, kw_only=True)
class PeriodlessRegistered(Problem):
    """Rows without a period are registered in a dataset that is read by period, so no run will read them."""

    code: ClassVar[str] = "W-05"
    severity: ClassVar[Severity] = "warning"
    example: ClassVar[Example] = Example(
        "group_by: [region]\n# then an output with register_as_dataset",
        "group_by: [_period, region]\n# then an output with register_as_dataset",
    )

    made_by: int

    def message(self) -> str:
        return f"the rows that operation {self.made_by} adds have no `_period`, so no run will read them from the registered dataset"

    def hint(self) -> str | None:
        return "group by `_period` there, or exclude those rows from this output"


@dataclass(frozen=True, slots=True, kw_only=True)
class WithoutEffect(Problem):
    """No output writes the result of an operation."""

    code: ClassVar[str] = "W-06"
    severity: ClassVar[Severity] = "warning"
    example: ClassVar[Example] = Example("operations: [update]", "operations: [update, output]")

    no_output: bool

    def message(self) -> str:
        if self.no_output:
            return "the project has no output, so nothing is written"
        return "no output follows this operation, so it has no effect"

    def hint(self) -> str | None:
        return "add an `output` at the end"


@dataclass(frozen=True, slots=True, kw_only=True)
class UnusedSelector(Problem):
    """No operation uses a selector."""

    code: ClassVar[str] = "W-07"
    severity: ClassVar[Severity] = "warning"
    example: ClassVar[Example] = Example(
        "selectors: {active: 'status = \"active\"'}   # and no {{active}} anywhere",
        'selectors: {active: \'status = "active"\'}\n...\nselector: "{{active}}"',
    )

    name: str

    def message(self) -> str:
        return f"selector `{self.name}` is not used"

    def hint(self) -> str | None:
        return f"use it as `{{{{{self.name}}}}}`, or remove it"


@dataclass(frozen=True, slots=True, kw_only=True)
class UnderscoreColumn(Problem):
    """The name of a new column starts with ``_``. Such names are reserved for system columns."""

    code: ClassVar[str] = "W-08"
    severity: ClassVar[Severity] = "warning"
    example: ClassVar[Example] = Example("column: _note", "column: note")

    name: str

    def message(self) -> str:
        return f"`{self.name}` can conflict with a system column of a later release"

    def hint(self) -> str | None:
        return f"call it `{self.name.lstrip('_') or 'note'}`"


@dataclass(frozen=True, slots=True, kw_only=True)
class OneDayForPeriod(Problem):
    """A bitemporal dataset is read for a period that has several lower periods, and the values of one day apply to all of them."""

    code: ClassVar[str] = "W-09"
    severity: ClassVar[Severity] = "warning"
    example: ClassVar[Example] = Example(
        "dobo run group-result --period 2026-Q1   # over daily rates",
        "main_table: {name: rates, temporal_mode: bitemporal, as_of: period_end, columns: [...]}",
    )

    dataset_id: str
    day: date
    period: str
    level: str
    count: int
    """How many periods of that level there are."""

    def message(self) -> str:
        return (
            f"dataset `{self.dataset_id}` is read as of {self.day} for the whole period `{self.period}`, "
            f"which has {self.count} periods of level `{self.level}`"
        )

    def hint(self) -> str | None:
        return "set the day with `as_of: period_start`, `as_of: period_end` or --as-of, or run the lower periods"


OPERATION_PROBLEMS: tuple[type[Problem], ...] = (
    EmptyAssignments,
    DuplicateTarget,
    EmptyGroupBy,
    EmptyAggregations,
    DuplicateGroupBy,
    DuplicateAggColumn,
    SystemColumnConflict,
    JoinAliasConflict,
    JoinDatasetNotFound,
    JoinVersionNotFound,
    InputDatasetNotFound,
    DatasetCycle,
    EmptyProjection,
    DuplicateOutputColumn,
    InvalidDestination,
    ResolverNotFound,
    NoRuleMatches,
    AppendDatasetNotFound,
    AppendVersionNotFound,
    AppendColumnMismatch,
    AppendExpressionInvalid,
    AppendAggregationInvalid,
    AppendColumnNotFound,
    AppendResolverNotFound,
    ProjectNotRunnable,
    PeriodNotRunnable,
    UnknownOperation,
    OtherPeriodMissing,
    SummariesAggregated,
    BlankDelete,
    UnfilteredPeriods,
    PeriodlessRegistered,
    WithoutEffect,
    UnusedSelector,
    UnderscoreColumn,
    OneDayForPeriod,
)

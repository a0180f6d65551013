"""What can be wrong with a definition: its YAML, its keys and values, and how definitions refer to each other."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar, assert_never

from dobonomodo.problems.problem import Blame, Example, Problem, did_you_mean, edit_distance, listed, nearest

if TYPE_CHECKING:
    from dobonomodo.problems.place import Span


@dataclass(frozen=True, slots=True, kw_only=True)
class YamlSyntax(Problem):
    """A document is not well-formed YAML or JSON, so it cannot be read."""

    code: ClassVar[str] = "YAML_SYNTAX"
    example: ClassVar[Example] = Example('project: {id: "monthly, operations: []}', 'project: {id: "monthly"}')

    fault: str
    advice: str | None = None

    def message(self) -> str:
        return self.fault

    def hint(self) -> str | None:
        return self.advice


class YamlFeature(StrEnum):
    """Features of YAML that definitions do not support."""

    TAG = "tag"
    RECURSION = "recursion"
    COMPLEX_KEY = "complex key"
    NULL_KEY = "null key"
    NO_NUMBER = "no number"


@dataclass(frozen=True, slots=True, kw_only=True)
class YamlUnsupported(Problem):
    """Definitions do not support this feature of YAML: tags, values that contain themselves, keys that are not text."""

    code: ClassVar[str] = "YAML_UNSUPPORTED"
    example: ClassVar[Example] = Example(
        "project: {id: p, input_dataset_id: d, operations: [{type: delete, selector: {{old}}}]}",
        'project: {id: p, input_dataset_id: d, operations: [{type: delete, selector: "{{old}}"}]}',
    )

    feature: YamlFeature
    found: str = ""

    def message(self) -> str:
        match self.feature:
            case YamlFeature.TAG:
                return f"definitions do not support tags such as `{self.found}`"
            case YamlFeature.RECURSION:
                return f"`*{self.found}` contains itself"
            case YamlFeature.COMPLEX_KEY:
                return "a key must be text, not a list or a mapping"
            case YamlFeature.NULL_KEY:
                return "a key is missing before `:`"
            case YamlFeature.NO_NUMBER:
                return f"`{self.found}` is not a number that formulas can compute with"
            case _:
                assert_never(self.feature)

    def hint(self) -> str | None:
        match self.feature:
            case YamlFeature.TAG:
                return "remove the tag; to keep a value text, put it in quotes"
            case YamlFeature.COMPLEX_KEY:
                return "`{{...}}` needs quotes around it in YAML" if self.found == "{{" else None
            case YamlFeature.NO_NUMBER:
                return "put it in quotes if it is a text"
            case YamlFeature.RECURSION | YamlFeature.NULL_KEY:
                return None
            case _:
                assert_never(self.feature)


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitExceeded(Problem):
    """A definition exceeds a limit of size, depth or length. It is not read any further."""

    code: ClassVar[str] = "LIMIT_EXCEEDED"
    example: ClassVar[Example] = Example(f"project: {'[' * 70}{']' * 70}", "project: {id: p, operations: []}")

    what: str
    limit: int

    def message(self) -> str:
        return f"there are more than {self.limit:,} {self.what}"


@dataclass(frozen=True, slots=True, kw_only=True)
class DuplicateKey(Problem):
    """A mapping has the same key twice, so it is unclear which value applies."""

    code: ClassVar[str] = "DUPLICATE_KEY"
    example: ClassVar[Example] = Example("resolver: {id: a, id: b, rules: []}", "resolver: {id: a, rules: []}")

    key: str
    first: Span | None = None

    def message(self) -> str:
        return f"key `{self.key}` is given twice{_also_at(self.first)}"

    def hint(self) -> str | None:
        return "remove one of the two"


@dataclass(frozen=True, slots=True, kw_only=True)
class InvalidDocument(Problem):
    """A document is not a mapping with one top-level key that names its kind."""

    code: ClassVar[str] = "INVALID_DOCUMENT"
    example: ClassVar[Example] = Example("- seq: 1", "resolver: {id: lake, rules: []}")

    kinds: tuple[str, ...]
    also: str | None = None
    """A second top-level key."""

    def message(self) -> str:
        if self.also is not None:
            return f"`{self.also}` is a second top-level key; a document defines one thing"
        return "a document starts with one key that names its kind"

    def hint(self) -> str | None:
        if self.also is not None:
            return "put `---` on a line of its own between two definitions"
        return f"the kinds are {listed(self.kinds)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownKind(Problem):
    """The top-level key of a document is not a kind of definition."""

    code: ClassVar[str] = "UNKNOWN_KIND"
    example: ClassVar[Example] = Example("resolvr: {id: lake, rules: []}", "resolver: {id: lake, rules: []}")

    kind: str
    known: tuple[str, ...]

    def message(self) -> str:
        return f"`{self.kind}` is not a kind of definition"

    def hint(self) -> str | None:
        return did_you_mean(self.kind, self.known)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownKey(Problem):
    """A mapping has a key that is not allowed there. Unknown keys are never ignored."""

    code: ClassVar[str] = "UNKNOWN_KEY"
    example: ClassVar[Example] = Example("resolver: {id: lake, rulez: []}", "resolver: {id: lake, rules: []}")

    key: str
    known: tuple[str, ...]
    owner: str = ""
    advice: str | None = None

    def message(self) -> str:
        return f"`{self.key}` is not a key of {self.owner or 'this mapping'}"

    def hint(self) -> str | None:
        return self.advice or did_you_mean(self.key, self.known, otherwise="no keys are allowed here")


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingKey(Problem):
    """A required key is missing."""

    code: ClassVar[str] = "MISSING_KEY"
    example: ClassVar[Example] = Example("resolver: {id: lake}", "resolver: {id: lake, rules: []}")

    key: str
    owner: str = ""
    expected: str = ""

    def message(self) -> str:
        return f"key `{self.key}` of {self.owner or 'this mapping'} is missing"

    def hint(self) -> str | None:
        return f"add `{self.key}:` with {self.expected}" if self.expected else None


@dataclass(frozen=True, slots=True, kw_only=True)
class InvalidValue(Problem):
    """A value does not have the type or format that its key requires."""

    code: ClassVar[str] = "INVALID_VALUE"
    example: ClassVar[Example] = Example("resolver: {id: 100, rules: []}", 'resolver: {id: "100", rules: []}')

    key: str
    expected: str
    found: str
    known: tuple[str, ...] = ()
    text: str | None = None
    """The value, where it is a text and ``known`` lists the allowed texts."""
    advice: str | None = None

    def message(self) -> str:
        return f"`{self.key}` needs {self.expected}, not {self.found}"

    def hint(self) -> str | None:
        if self.advice:
            return self.advice
        return did_you_mean(self.text or "", self.known) if self.known else None


@dataclass(frozen=True, slots=True, kw_only=True)
class DuplicateId(Problem):
    """Two definitions of one kind have the same id."""

    code: ClassVar[str] = "DUPLICATE_ID"
    example: ClassVar[Example] = Example(
        "resolver: {id: a, rules: []}\n---\nresolver: {id: a, rules: []}",
        "resolver: {id: a, rules: []}\n---\nresolver: {id: b, rules: []}",
    )

    kind: str
    id: str
    first: Span | None = None

    def message(self) -> str:
        return f"there is another {self.kind} with the id `{self.id}`{_also_at(self.first)}"

    def hint(self) -> str | None:
        return "give one of the two another id"


@dataclass(frozen=True, slots=True, kw_only=True)
class DuplicateName(Problem):
    """Two things of one kind have the same name. Column names are compared without regard to case."""

    code: ClassVar[str] = "DUPLICATE_NAME"
    example: ClassVar[Example] = Example(
        "dataset: {id: d, main_table: {name: t, columns: [{name: a, type: date}, {name: A, type: date}]}}",
        "dataset: {id: d, main_table: {name: t, columns: [{name: a, type: date}, {name: b, type: date}]}}",
    )

    kind: str
    name: str
    first: Span | None = None

    def message(self) -> str:
        return f"there is another {self.kind} named `{self.name}`{_also_at(self.first)}"

    def hint(self) -> str | None:
        return "rename one of the two"


@dataclass(frozen=True, slots=True, kw_only=True)
class DuplicateDefault(Problem):
    """More than one resolver, or more than one calendar, is marked as the default."""

    code: ClassVar[str] = "DUPLICATE_DEFAULT"
    example: ClassVar[Example] = Example(
        "resolver: {id: a, is_default: true, rules: []}\n---\nresolver: {id: b, is_default: true, rules: []}",
        "resolver: {id: a, is_default: true, rules: []}\n---\nresolver: {id: b, rules: []}",
    )

    kind: str
    id: str
    other: str
    first: Span | None = None

    def message(self) -> str:
        return f"{self.kind} `{self.other}` is already the default{_also_at(self.first)}"

    def hint(self) -> str | None:
        return f"only one {self.kind} can be the default"


@dataclass(frozen=True, slots=True, kw_only=True)
class DuplicateWorkspace(Problem):
    """A workspace has more than one `workspace` document."""

    code: ClassVar[str] = "DUPLICATE_WORKSPACE"
    example: ClassVar[Example] = Example("workspace: {name: a}\n---\nworkspace: {name: b}", "workspace: {name: a}")

    first: Span | None = None

    def message(self) -> str:
        return f"there is another `workspace` document{_also_at(self.first)}"

    def hint(self) -> str | None:
        return "keep one of the two; put what differs between installations under `environments`"


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownReference(Problem):
    """A definition refers by id to another one that does not exist."""

    code: ClassVar[str] = "UNKNOWN_REFERENCE"
    example: ClassVar[Example] = Example(
        "workspace: {default_resolver: lak}\n---\nresolver: {id: lake, rules: []}",
        "workspace: {default_resolver: lake}\n---\nresolver: {id: lake, rules: []}",
    )

    kind: str
    id: str
    known: tuple[str, ...] = ()

    def message(self) -> str:
        return f"there is no {self.kind} `{self.id}`"

    def hint(self) -> str | None:
        return did_you_mean(self.id, self.known, otherwise=f"no {self.kind} is defined")


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretInDefinition(Problem):
    """A definition contains a password or key, which would end up in git, logs and reports."""

    code: ClassVar[str] = "SECRET_IN_DEFINITION"
    example: ClassVar[Example] = Example(
        "datasource: {id: w, type: database, options: {url: 'postgresql://me:secret@host/db'}}",
        "datasource: {id: w, type: database, options: {url: 'postgresql://me@host/db'}, credential_ref: env://W_PASSWORD}",
    )

    key: str
    advice: str | None = None

    def message(self) -> str:
        return f"`{self.key}` contains a secret"

    def hint(self) -> str | None:
        where = self.advice or "refer to it: `credential_ref: env://NAME`"
        return f"delete it here, change the password, and {where}"


class OperationReason(StrEnum):
    """Reasons why an operation is invalid."""

    UNKNOWN_TYPE = "unknown type"
    SYNONYM_CONFLICT = "synonym conflict"
    SELECTOR_CONFLICT = "selector conflict"
    SELECTOR_ON_APPEND = "selector on append"
    EXCLUDED_AND_STOPPED = "excluded and stopped"
    ROWS_OF_GROUPS = "rows of groups"
    MIXED_STATES = "mixed states"
    UNUSED_AGAINST = "unused against"
    SET_AMOUNT = "set amount"
    NO_LEVEL_COLUMN = "no level column"
    HALF_INTERVAL = "half interval"


@dataclass(frozen=True, slots=True, kw_only=True)
class InvalidOperation(Problem):
    """An operation has an unknown type, or its keys contradict each other."""

    code: ClassVar[str] = "INVALID_OPERATION"
    example: ClassVar[Example] = Example(
        "project: {id: p, input_dataset_id: d, operations: [{seq: 1, type: delte}]}",
        "project: {id: p, input_dataset_id: d, operations: [{seq: 1, type: delete}]}",
    )

    reason: OperationReason
    found: str = ""
    known: tuple[str, ...] = ()
    first: Span | None = None

    def message(self) -> str:
        match self.reason:
            case OperationReason.UNKNOWN_TYPE:
                return f"there is no operation type `{self.found}`"
            case OperationReason.SYNONYM_CONFLICT:
                pair = " and ".join(f"`{name}`" for name in self.known)
                return f"{pair} are synonyms and have different values"
            case OperationReason.SELECTOR_CONFLICT:
                return f"the selector inside `{self.found}` differs from the selector of the operation"
            case OperationReason.SELECTOR_ON_APPEND:
                return "an append has no `selector`: it does not act on existing rows"
            case OperationReason.EXCLUDED_AND_STOPPED:
                return "`exclude` needs `severity: warn`: a check that stops the run cannot exclude rows"
            case OperationReason.ROWS_OF_GROUPS:
                return f"`{self.found}` is for checks of single rows, and this one compares aggregates"
            case OperationReason.MIXED_STATES:
                return f"one aggregate reads {' and '.join(self.known)}; their rows do not belong together"
            case OperationReason.UNUSED_AGAINST:
                return "`expect` reads no column of `against`, so the check does not compare with it"
            case OperationReason.NO_LEVEL_COLUMN:
                return f"`{self.found}` needs `level_column`: otherwise a subtotal looks like a group whose key is NULL"
            case OperationReason.SET_AMOUNT:
                return f"`set` cannot give `{self.found}` a value: on new rows it is the part of the distributed amount"
            case OperationReason.HALF_INTERVAL:
                return f"rows with `_period_from` and without `_period_to` cannot be read as dataset `{self.found}`"
            case _:
                assert_never(self.reason)

    def hint(self) -> str | None:
        match self.reason:
            case OperationReason.UNKNOWN_TYPE:
                return did_you_mean(self.found, self.known) if self.known else "write an operation type"
            case OperationReason.SYNONYM_CONFLICT | OperationReason.SELECTOR_CONFLICT:
                return "remove one of the two"
            case OperationReason.SELECTOR_ON_APPEND:
                return "use `source_selector` in `arguments` to select the rows to append"
            case OperationReason.EXCLUDED_AND_STOPPED:
                return "write `severity: warn` next to `exclude: true`, or leave `exclude` out"
            case OperationReason.ROWS_OF_GROUPS:
                return "leave it out, or write `expect` without aggregate functions and `group_by`"
            case OperationReason.MIXED_STATES:
                return "write one aggregate for each, as in SUM(amount) = SUM(start.amount)"
            case OperationReason.UNUSED_AGAINST:
                return "use a column as `against.column` inside an aggregate, or leave `against` out"
            case OperationReason.NO_LEVEL_COLUMN:
                return "add `level_column: level` to the arguments"
            case OperationReason.SET_AMOUNT:
                return "leave it out; an update after the allocation can change parts"
            case OperationReason.HALF_INTERVAL:
                return "write both columns or none of them"
            case _:
                assert_never(self.reason)


@dataclass(frozen=True, slots=True, kw_only=True)
class InvalidSeq(Problem):
    """The sequence number of an operation is not a whole number above zero, or is missing where others have one."""

    code: ClassVar[str] = "INVALID_SEQ"
    example: ClassVar[Example] = Example(
        "project: {id: p, input_dataset_id: d, operations: [{seq: 0, type: delete}]}",
        "project: {id: p, input_dataset_id: d, operations: [{seq: 1, type: delete}]}",
    )

    found: str | None

    def message(self) -> str:
        if self.found is None:
            return "`seq` is missing, and other operations of this project have one"
        return f"`seq` needs a whole number above zero, not {self.found}"

    def hint(self) -> str | None:
        return "operations run in the order of `seq`; gaps are allowed"


@dataclass(frozen=True, slots=True, kw_only=True)
class DuplicateSeq(Problem):
    """Two operations of a project have the same sequence number, so their order is undefined."""

    code: ClassVar[str] = "DUPLICATE_SEQ"
    example: ClassVar[Example] = Example(
        "project: {id: p, input_dataset_id: d, operations: [{seq: 1, type: delete}, {seq: 1, type: delete}]}",
        "project: {id: p, input_dataset_id: d, operations: [{seq: 1, type: delete}, {seq: 2, type: delete}]}",
    )

    seq: int
    first: Span | None = None

    def message(self) -> str:
        return f"`seq` {self.seq} is used by another operation{_also_at(self.first)}"

    def hint(self) -> str | None:
        return "give each operation a unique number; gaps are allowed"


@dataclass(frozen=True, slots=True, kw_only=True)
class InvalidColumnName(Problem):
    """A column has an invalid name."""

    code: ClassVar[str] = "INVALID_COLUMN_NAME"
    example: ClassVar[Example] = Example(
        "dataset: {id: d, main_table: {name: t, columns: [{name: '', type: date}]}}",
        "dataset: {id: d, main_table: {name: t, columns: [{name: due, type: date}]}}",
    )

    name: str

    def message(self) -> str:
        return f"`{self.name}` is not a valid column name" if self.name.strip() else "a column needs a name"

    def hint(self) -> str | None:
        return "use letters, digits and `_`, starting with a letter"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReservedColumn(Problem):
    """A column has a name that is reserved for system columns."""

    code: ClassVar[str] = "RESERVED_COLUMN"
    example: ClassVar[Example] = Example(
        "dataset: {id: d, main_table: {name: t, columns: [{name: _period, type: string}]}}",
        "dataset: {id: d, main_table: {name: t, columns: [{name: booked_in, type: string}]}}",
    )

    name: str

    def message(self) -> str:
        return f"`{self.name}` is reserved for the system"

    def hint(self) -> str | None:
        return "names that start with `_` are system columns, which always exist and are not declared"


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownToken(Problem):
    """A location template has an unknown token."""

    code: ClassVar[str] = "UNKNOWN_TOKEN"
    example: ClassVar[Example] = Example(
        "resolver: {id: r, rules: [{strategy: {type: path, datasource_id: l, path: '{{YEAR}}.csv'}}]}\n---\n"
        "datasource: {id: l, type: csv, options: {path_prefix: data}}",
        "resolver: {id: r, rules: [{strategy: {type: path, datasource_id: l, path: '{{YYYY}}.csv'}}]}\n---\n"
        "datasource: {id: l, type: csv, options: {path_prefix: data}}",
    )

    token: str
    known: tuple[str, ...]

    def message(self) -> str:
        return f"`{self.token}` is not a known token"

    def hint(self) -> str | None:
        name = self.token.strip("{} ")
        candidate = nearest(name, [known.strip("{}") for known in self.known])
        return did_you_mean(f"{{{{{candidate or name}}}}}", self.known)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnsafePath(Problem):
    """A path points outside the folder of its datasource."""

    code: ClassVar[str] = "UNSAFE_PATH"
    example: ClassVar[Example] = Example(
        "resolver: {id: r, rules: [{strategy: {type: path, datasource_id: l, path: ../a.csv}}]}\n---\n"
        "datasource: {id: l, type: csv, options: {path_prefix: data}}",
        "resolver: {id: r, rules: [{strategy: {type: path, datasource_id: l, path: a.csv}}]}\n---\n"
        "datasource: {id: l, type: csv, options: {path_prefix: data}}",
    )

    path: str
    is_link: bool = False
    """Whether a symbolic link leads there."""

    def message(self) -> str:
        how = "is a symbolic link that points" if self.is_link else "points"
        return f"`{self.path}` {how} outside the folder of its datasource"

    def hint(self) -> str | None:
        if self.is_link:
            return "replace the link by its target, or define a datasource whose `path_prefix` is the target"
        return "write a path relative to the datasource's `path_prefix`, without `..`"


class PeriodReason(StrEnum):
    """Reasons why a level or period of a calendar is invalid."""

    ENDS_BEFORE_START = "ends before start"
    UNKNOWN_LEVEL = "unknown level"
    UNKNOWN_PARENT = "unknown parent"
    PARENT_LEVEL = "parent level"
    OUTSIDE_PARENT = "outside parent"
    NOT_GENERATED = "not generated"
    DOES_NOT_FIT = "does not fit"


@dataclass(frozen=True, slots=True, kw_only=True)
class InvalidPeriod(Problem):
    """A period of a calendar does not fit its dates, its level or its parent."""

    code: ClassVar[str] = "INVALID_PERIOD"
    example: ClassVar[Example] = Example(
        "calendar: {id: c, levels: [{name: month}], "
        "periods: [{identifier: m, level: month, start_date: 2026-01-31, end_date: 2026-01-01}]}",
        "calendar: {id: c, levels: [{name: month}], "
        "periods: [{identifier: m, level: month, start_date: 2026-01-01, end_date: 2026-01-31}]}",
    )

    reason: PeriodReason
    identifier: str
    other: str = ""
    known: tuple[str, ...] = ()

    def message(self) -> str:
        match self.reason:
            case PeriodReason.ENDS_BEFORE_START:
                return f"`{self.identifier}` ends before it starts"
            case PeriodReason.UNKNOWN_LEVEL:
                return f"the calendar has no level `{self.other}`"
            case PeriodReason.UNKNOWN_PARENT:
                return f"the calendar has no period `{self.other}`"
            case PeriodReason.PARENT_LEVEL:
                return f"`{self.other}` is not at the level above `{self.identifier}`"
            case PeriodReason.OUTSIDE_PARENT:
                return f"`{self.identifier}` is not within its parent `{self.other}`"
            case PeriodReason.NOT_GENERATED:
                return f"period `{self.identifier}` has no `{self.other}`, and no generated period has this identifier"
            case PeriodReason.DOES_NOT_FIT:
                return f"`{self.identifier}` is too short to be divided into `{self.other}`"
            case _:
                assert_never(self.reason)

    def hint(self) -> str | None:
        return did_you_mean(self.other, self.known) if self.known else None


@dataclass(frozen=True, slots=True, kw_only=True)
class PeriodNotFound(Problem):
    """The calendar does not have the requested period."""

    code: ClassVar[str] = "PERIOD_NOT_FOUND"
    example: ClassVar[Example] = Example("dobo run monthly --period 2026-1", "dobo run monthly --period 2026-01")

    identifier: str
    calendar: str
    known: tuple[str, ...] = ()
    ranges: tuple[tuple[str, str, str], ...] = ()
    """Of each level: its name, its first period and its last."""

    def message(self) -> str:
        if not self.calendar:
            return f"there is no period `{self.identifier}`"
        return f"calendar `{self.calendar}` has no period `{self.identifier}`"

    def hint(self) -> str | None:
        if not self.known:
            return "define a calendar with periods" if not self.calendar else "it has no periods"
        meant = f"did you mean `{candidate}`? " if (candidate := _meant_period(self.identifier, self.known)) else ""
        if not self.ranges:
            return meant.strip() or f"available: {listed(self.known)}; `dobo period list` shows all"
        there = ", ".join(f"{level} `{first}` to `{last}`" for level, first, last in self.ranges)
        return f"{meant}available: {there}; `dobo period list` shows all"


@dataclass(frozen=True, slots=True, kw_only=True)
class InvalidPeriodRange(Problem):
    """A range of periods has no beginning or end, or they are of two levels, or in the wrong order."""

    code: ClassVar[str] = "INVALID_PERIOD_RANGE"
    blamed: ClassVar[Blame] = Blame.CALLER
    example: ClassVar[Example] = Example(
        "dobo run monthly --period 2026-03..2026-01", "dobo run monthly --period 2026-01..2026-03"
    )

    text: str
    wrong: str
    instead: str | None = None

    def message(self) -> str:
        return f"`{self.text}` is not a range of periods: {self.wrong}"

    def hint(self) -> str | None:
        return self.instead or "write the first and the last period of one level: `2026-01..2026-12`"


_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")


def _meant_period(identifier: str, known: tuple[str, ...]) -> str | None:
    """The period that has the same numbers, written in another way; another number is another period."""
    written = re.sub(r"^([0-9]{4})([0-9]{2})$", r"\1-\2", identifier.casefold().strip())
    for number, name in enumerate(_MONTHS, start=1):
        written = re.sub(rf"(?<![a-z]){name}[a-z]*", str(number), written)

    same = [each for each in known if _parts_of_period(each) == _parts_of_period(written)]
    return min(same, key=lambda each: edit_distance(each, written), default=None)


def _parts_of_period(text: str) -> tuple[list[str], list[str]]:
    """The numbers of an identifier without leading zeros, and its letters."""
    numbers = sorted(each.lstrip("0") for each in re.findall("[0-9]+", text))
    return numbers, re.findall("[a-z]+", text.casefold())


def _also_at(first: Span | None) -> str:
    return f", at {first.source.name}:{first.line}:{first.column}" if first else ""


DEFINITION_PROBLEMS: tuple[type[Problem], ...] = (
    YamlSyntax,
    YamlUnsupported,
    LimitExceeded,
    DuplicateKey,
    InvalidDocument,
    UnknownKind,
    UnknownKey,
    MissingKey,
    InvalidValue,
    DuplicateId,
    DuplicateName,
    DuplicateDefault,
    DuplicateWorkspace,
    UnknownReference,
    SecretInDefinition,
    InvalidOperation,
    InvalidSeq,
    DuplicateSeq,
    InvalidColumnName,
    ReservedColumn,
    UnknownToken,
    UnsafePath,
    InvalidPeriod,
    PeriodNotFound,
    InvalidPeriodRange,
)

"""``output``: write rows to a destination, and perhaps register them as a dataset. The only operation that writes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from posixpath import normpath
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Discriminator, Field, Tag

from dobonomodo.formula import Scope, Typed, columns_of
from dobonomodo.model.document import Places
from dobonomodo.model.entity import Entity
from dobonomodo.model.plain import PlainDict
from dobonomodo.model.shape import TextOr
from dobonomodo.model.template import check_relative_path
from dobonomodo.model.value import Expected, Filled, Flag, Id, Text, is_name
from dobonomodo.plan.columns import resolve_name
from dobonomodo.plan.context import Context
from dobonomodo.plan.dataset import freeze_options
from dobonomodo.plan.destination import (
    FILES,
    Destination,
    DestinationKind,
    name_store,
    names_period,
    without_period,
)
from dobonomodo.plan.expression import ACTIVE, TRUE, all_of
from dobonomodo.plan.operations.lowered import Lowered
from dobonomodo.plan.operations.operation import Effect, Facts, Operation
from dobonomodo.plan.relation import Keep, SortKey, Write
from dobonomodo.plan.rows import Rows
from dobonomodo.plan.system import OPERATION_SEQ, PERIOD, PERIOD_FROM, PERIOD_TO, is_system
from dobonomodo.problems import Passage, Problem, Span
from dobonomodo.problems.definition import InvalidColumnName, InvalidOperation, OperationReason, ReservedColumn
from dobonomodo.problems.operation import (
    DestinationReason,
    DuplicateOutputColumn,
    EmptyProjection,
    InvalidDestination,
    PeriodlessRegistered,
)

if TYPE_CHECKING:
    from dobonomodo.plan.step import Step


_SHEET = re.compile(r"(?!')[^\[\]:*?/\\\x00-\x1f]{1,31}(?<!')")


class DestinationSpec(Entity):
    """A table of a datasource, or a folder of files."""

    datasource_id: Text | None = Field(default=None, description="The datasource to write to.")
    table: Text | None = Field(default=None, description="The table, or folder of files, in that datasource.")
    schema_name: Filled | None = Field(
        default=None, alias="schema", description="The schema of the table in a database."
    )
    type: Text | None = Field(default=None, description="For a location without a datasource: the type of files.")
    path: Text | None = Field(default=None, description="For a location without a datasource: the folder to write to.")
    file: Text | None = Field(
        default=None,
        description="One file with this name, in addition to or instead of a table; {{period}} is replaced by the period of the run.",
    )
    sheet: Text | None = Field(
        default=None, description="The sheet of a workbook; several outputs may write sheets of one file."
    )
    options: PlainDict | None = Field(
        default=None, description="How the files are written, where that differs from the options of the datasource."
    )


class OutputColumn(Entity):
    """A column that is written under another name."""

    cosmetic: ClassVar[frozenset[str]] = frozenset()

    column: Filled = Field(description="The column to write.")
    written: Filled | None = Field(default=None, alias="as", description="What it is called where it is written.")


class OrderColumn(Entity):
    """A column by which rows are ordered."""

    cosmetic: ClassVar[frozenset[str]] = frozenset()

    column: Filled = Field(description="The column to order by.")
    descending: Flag = Field(default=False, description="Whether large values come first.")


ColumnOrName = Annotated[
    Annotated[Filled, Tag("text")] | Annotated[OutputColumn, Tag(TextOr.MAPPING)],
    Discriminator(TextOr.choose),
    TextOr(OutputColumn),
    Expected("a column, or `{column: ..., as: ...}`"),
]
OrderOrName = Annotated[
    Annotated[Filled, Tag("text")] | Annotated[OrderColumn, Tag(TextOr.MAPPING)],
    Discriminator(TextOr.choose),
    TextOr(OrderColumn),
    Expected("a column, or `{column: ..., descending: true}`"),
]


class Output(Operation):
    """Write the selected rows; deleted ones only on request."""

    type: ClassVar[str] = "output"
    facts: ClassVar[Facts] = Facts(Effect.WRITES, badge="↓", color="amber", counted="written")

    destination: DestinationSpec = Field(default=DestinationSpec(), description="The destination.")
    mode: Literal["replace", "append"] | None = Field(
        default=None, description="Replace the rows of the same period (the default), or append to them."
    )
    columns: tuple[ColumnOrName, ...] | None = Field(
        default=None,
        description="The columns to write, in this order; the default is all columns. "
        "`{column: net, as: Net amount}` writes a column under another name.",
    )
    order_by: tuple[OrderOrName, ...] | None = Field(
        default=None,
        description="The order of the rows, in one file: columns, or `{column: net, descending: true}`.",
    )
    include_deleted: Flag = Field(default=False, description="Whether deleted rows are also written.")
    register_as_dataset: Id | None = Field(default=None, description="Register the output as a dataset with this id.")

    def lower(self, rows: Rows, ctx: Context) -> Lowered:
        """The rows stay unchanged; the written rows are a separate branch of the plan."""
        selector = ctx.selector(ctx.scope(rows))
        chosen = all_of(TRUE if self.include_deleted else ACTIVE, selector)
        destination = find_destination(self.destination, "destination", ctx, appends=self.mode == "append")
        if destination.file is not None and self.mode == "append":
            span = ctx.arguments.span("mode")
            ctx.report(InvalidDestination(reason=DestinationReason.APPENDED, name=destination.file, span=span))
        names = self._columns(rows, ctx)
        columns = tuple(names)
        order = self._order(rows, ctx)
        if self.register_as_dataset:
            self._check_registration(rows, columns, chosen, ctx)
        kept = rows.node if chosen == TRUE else Keep(rows.node, chosen)
        write = Write(
            rows=kept,
            columns=columns,
            destination=destination,
            mode=self.mode or "replace",
            register_as=self.register_as_dataset,
            include_deleted=self.include_deleted,
            names={name: written for name, written in names.items() if name != written},
            order=order,
        )
        read = frozenset(columns) | {key.column for key in order}
        return Lowered(rows, selected=chosen, write=write, reads=rows.names_in(chosen) | read)

    @classmethod
    def describe(cls, step: Step) -> list[str]:
        """Where the rows go."""
        write = step.lowered.write
        if write is None:
            return []
        lines = [f"writes {len(write.columns)} columns to {write.destination}"]
        return [*lines, f"ordered by {', '.join(map(str, write.order))}"] if write.order else lines

    def _check_registration(self, rows: Rows, columns: tuple[str, ...], chosen: Typed, ctx: Context) -> None:
        """A dataset has business columns; in period mode, rows without a period are never found again."""
        span = ctx.arguments.span("register_as_dataset")
        if rows.certain and columns and all(is_system(name) for name in columns):
            ctx.report(EmptyProjection(registered=True, span=span))
        for name in columns:
            if name.startswith("_") and not is_system(name):
                ctx.report(ReservedColumn(name=name, span=span))
        if PERIOD_FROM in columns and PERIOD_TO not in columns and PERIOD not in columns:
            found, reason = self.register_as_dataset or "", OperationReason.HALF_INTERVAL
            ctx.report(InvalidOperation(reason=reason, found=found, span=span))
        used = {column.name for column in columns_of(chosen)}
        if PERIOD in columns and rows.periodless_of and not used & {OPERATION_SEQ, PERIOD}:
            ctx.report(PeriodlessRegistered(made_by=rows.periodless_of[-1], span=span))

    def _columns(self, rows: Rows, ctx: Context) -> dict[str, str]:
        """The columns to write, each with its name there."""
        if self.columns is None:
            return {name: name for name in rows.columns}
        if not self.columns:
            ctx.report(EmptyProjection(span=ctx.arguments.key_span("columns")))
        scope = Scope(columns=rows.columns, table=rows.table)
        chosen: dict[str, str] = {}
        for position, given in enumerate(self.columns):
            at = ctx.arguments.at("columns", position) or ctx.arguments
            renamed = at.at("as") if isinstance(given, OutputColumn) else None
            at = at.at("column") or at
            found = resolve_name(at, scope)
            if isinstance(found, Problem):
                ctx.report(found)
                continue
            written = given.written if isinstance(given, OutputColumn) and given.written else found.name
            taken = {name.casefold() for name in chosen.values()}
            if found.name in chosen or written.casefold() in taken:
                name = given if isinstance(given, str) else written
                ctx.report(DuplicateOutputColumn(name=name, span=(renamed or at).span()))
                continue
            if renamed is not None:
                for problem in check_written_name(renamed, registered=self.register_as_dataset is not None):
                    ctx.report(problem)
            chosen[found.name] = written
        return chosen

    def _order(self, rows: Rows, ctx: Context) -> tuple[SortKey, ...]:
        scope = Scope(columns=rows.columns, table=rows.table)
        keys: list[SortKey] = []
        for position, given in enumerate(self.order_by or ()):
            at = ctx.arguments.at("order_by", position) or ctx.arguments
            at = at.at("column") or at
            found = resolve_name(at, scope)
            if isinstance(found, Problem):
                ctx.report(found)
            elif any(key.column == found.name for key in keys):
                ctx.report(DuplicateOutputColumn(name=found.name, span=at.span()))
            else:
                keys.append(SortKey(found.name, isinstance(given, OrderColumn) and given.descending))
        return tuple(keys)


def check_written_name(places: Places, *, registered: bool) -> Iterator[Problem]:
    """A name for a column where it is written: one line of text, and where it becomes a dataset, a name for formulas."""
    name = places.text()
    if name is None:
        return
    if name.startswith("_"):
        yield ReservedColumn(name=name, span=places.span())
    elif not is_name(name) if registered else not name.isprintable() or name != name.strip():
        yield InvalidColumnName(name=name, span=places.span())


def find_destination(spec: DestinationSpec, key: str, ctx: Context, *, appends: bool) -> Destination:
    """Where rows go, as ``key`` of the arguments says; reports what is wrong with it."""
    places = ctx.arguments.at(key)
    span = places.span() if places is not None else ctx.arguments.key_span(key)

    def refuse(
        reason: DestinationReason, *, name: str = "", known: tuple[str, ...] = (), at: Span | None = None
    ) -> Destination:
        ctx.report(InvalidDestination(reason=reason, name=name, known=known, span=at or span))
        return Destination("?", name or "?")

    of_source = (spec.datasource_id, spec.table, spec.schema_name)
    of_location = (spec.path, spec.type)
    appends = appends and spec.file is None
    if any(each is not None for each in of_source) and any(each is not None for each in of_location):
        return refuse(DestinationReason.BOTH)
    if places is None and ctx.spec.places.at("arguments", key) is not None:
        return Destination("?", "?")  # it is not a mapping, which has been reported
    if spec.datasource_id is None and spec.path is None and spec.type is None:
        return refuse(DestinationReason.MISSING)
    if spec.datasource_id is not None and not spec.datasource_id.strip():
        return refuse(DestinationReason.MISSING)
    name = spec.table if spec.datasource_id is not None else spec.path
    if name is None and spec.file is not None and spec.file.strip():
        name = name_store(spec.file, spec.sheet)
    if name is None or not name.strip():
        return refuse(DestinationReason.EMPTY_TABLE)
    kind, inline = spec.type or "", tuple(name for name, each in ctx.kinds.items() if each.inline)
    if spec.datasource_id is not None:
        source = ctx.datasources.get(spec.datasource_id)
        at = places.span("datasource_id") if places is not None else None
        if source is None:
            known = tuple(ctx.datasources)
            return refuse(DestinationReason.UNKNOWN_DATASOURCE, name=spec.datasource_id, known=known, at=at)
        if source.status != "active":
            return refuse(DestinationReason.DISABLED, name=spec.datasource_id, at=at)
        kind = source.type
        if not ctx.kinds[kind].can_write:
            known = tuple(name for name, each in ctx.kinds.items() if each.can_write)
            return refuse(DestinationReason.READ_ONLY, name=spec.datasource_id, known=known, at=at)
        if spec.schema_name is not None and not ctx.kinds[kind].has_schemas:
            return refuse(DestinationReason.NO_DATABASE, name=spec.datasource_id)
    elif kind not in inline:
        return refuse(DestinationReason.NO_FILES, name=kind, known=inline)
    if (wrong := _check_file(spec, ctx.kinds[kind])) is not None:
        about = "sheet" if wrong in (DestinationReason.NO_SHEETS, DestinationReason.SHEET_NAME) else "file"
        at = places.span(about) if places is not None and places.at(about) is not None else None
        return refuse(wrong, name=(spec.sheet if about == "sheet" else spec.file) or "", at=at)
    if places is not None and (given := places.at("options")) is not None:
        for problem in ctx.kinds[kind].check_options(given, kind):
            ctx.report(problem)
    is_path = ctx.kinds[kind].are_paths
    is_hidden = name.startswith(f"{FILES}/")
    if not is_hidden and not _is_safe(name, is_path=is_path):
        return refuse(DestinationReason.UNSAFE, name=name)
    if spec.schema_name is not None and not spec.schema_name.isprintable():
        return refuse(DestinationReason.UNSAFE, name=spec.schema_name)
    destination = Destination(
        kind,
        name,
        spec.datasource_id,
        spec.schema_name,
        normpath(spec.file) if spec.file is not None else None,
        spec.sheet,
        freeze_options(spec.options or {}),
    )
    place = (spec.datasource_id, spec.schema_name, normpath(name) if is_path else name)
    first = ctx.destinations.setdefault(place, ctx.spec.seq)
    if spec.file is not None and first == ctx.spec.seq:
        first = _find_same_file(spec.datasource_id, spec.file, spec.sheet, ctx, span)
    if first != ctx.spec.seq and not appends:
        what: Literal["table", "file", "sheet"] = "sheet" if spec.sheet else "file" if spec.file else "table"
        reason, shown = DestinationReason.WRITTEN_TWICE, str(destination)
        ctx.report(InvalidDestination(reason=reason, name=shown, first_seq=first, what=what, span=span))
    return destination


def _find_same_file(datasource_id: str | None, file: str, sheet: str | None, ctx: Context, span: Span | None) -> int:
    """The first output that writes a file, or the same sheet of it; a file with sheets is not written as a whole too."""
    name = without_period(normpath(file))
    whole, sheets = (datasource_id, "file", name), (datasource_id, "sheets", name)
    if sheet is None:
        first = ctx.destinations.get(sheets, ctx.spec.seq)
        return min(first, ctx.destinations.setdefault(whole, ctx.spec.seq))
    if ctx.destinations.setdefault(sheets, ctx.spec.seq) != ctx.spec.seq and ctx.project.publish == "as_done":
        ctx.report(InvalidDestination(reason=DestinationReason.NOT_TOGETHER, name=file, span=span))
    first = ctx.destinations.setdefault((*sheets, sheet.casefold()), ctx.spec.seq)
    return min(first, ctx.destinations.get(whole, first))


def _check_file(spec: DestinationSpec, kind: DestinationKind) -> DestinationReason | None:
    """Why an output cannot write a file of its own name."""
    if spec.sheet is not None and not kind.has_sheets:
        return DestinationReason.NO_SHEETS
    if spec.sheet is not None and not _SHEET.fullmatch(spec.sheet):
        return DestinationReason.SHEET_NAME
    if spec.file is None:
        return DestinationReason.NEEDS_FILE if kind.has_sheets else None
    if not kind.has_named_files:
        return DestinationReason.NO_NAMED_FILES
    if not names_period(spec.file):
        return DestinationReason.NO_PERIOD
    plain = without_period(spec.file)
    if "{" in plain or "}" in plain:
        return DestinationReason.TOKEN
    if not _is_safe(plain, is_path=True) or plain.endswith("/") or any(p.startswith(".") for p in plain.split("/")):
        return DestinationReason.UNSAFE
    return None


def _is_safe(name: str, *, is_path: bool) -> bool:
    """Whether a destination is below the folder that it belongs to, and is not that folder. Drafts make folders of tables too."""
    parts = name.split("/")
    if not name.isprintable() or "." in parts or ".." in parts:
        return False
    return not is_path or not any(check_relative_path(Passage.alone(name)))

"""``output``: write rows to a destination, and perhaps register them as a dataset. The only operation that writes."""

from __future__ import annotations

from posixpath import normpath
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from dobonomodo.formula import Scope, Typed, columns_of
from dobonomodo.model.entity import Entity
from dobonomodo.model.template import check_relative_path
from dobonomodo.model.value import Filled, Flag, Id, Text
from dobonomodo.plan.columns import resolve_name
from dobonomodo.plan.context import Context
from dobonomodo.plan.destination import Destination
from dobonomodo.plan.expression import ACTIVE, TRUE, all_of
from dobonomodo.plan.operations.lowered import Lowered
from dobonomodo.plan.operations.operation import Effect, Facts, Operation
from dobonomodo.plan.relation import Keep, Write
from dobonomodo.plan.rows import Rows
from dobonomodo.plan.system import OPERATION_SEQ, PERIOD, is_system
from dobonomodo.problems import Passage, Problem, Span
from dobonomodo.problems.definition import ReservedColumn
from dobonomodo.problems.operation import (
    DestinationReason,
    DuplicateOutputColumn,
    EmptyProjection,
    InvalidDestination,
    PeriodlessRegistered,
)

if TYPE_CHECKING:
    from dobonomodo.plan.step import Step


class DestinationSpec(Entity):
    """A table of a datasource, or a folder of files."""

    datasource_id: Text | None = Field(default=None, description="The datasource to write to.")
    table: Text | None = Field(default=None, description="The table, or folder of files, in that datasource.")
    schema_name: Filled | None = Field(
        default=None, alias="schema", description="The schema of the table in a database."
    )
    type: Text | None = Field(default=None, description="For a location without a datasource: parquet or csv.")
    path: Text | None = Field(default=None, description="For a location without a datasource: the folder to write to.")


class Output(Operation):
    """Write the selected rows; deleted ones only on request."""

    type: ClassVar[str] = "output"
    facts: ClassVar[Facts] = Facts(Effect.WRITES, badge="↓", color="amber", counted="written")

    destination: DestinationSpec = Field(default=DestinationSpec(), description="The destination.")
    mode: Literal["replace", "append"] | None = Field(
        default=None, description="Replace the rows of the same period (the default), or append to them."
    )
    columns: tuple[Filled, ...] | None = Field(
        default=None, description="The columns to write, in this order; the default is all columns."
    )
    include_deleted: Flag = Field(default=False, description="Whether deleted rows are also written.")
    register_as_dataset: Id | None = Field(default=None, description="Register the output as a dataset with this id.")

    def lower(self, rows: Rows, ctx: Context) -> Lowered:
        """The rows stay as they are; what is written hangs beside them."""
        selector = ctx.selector(ctx.scope(rows))
        chosen = all_of(TRUE if self.include_deleted else ACTIVE, selector)
        destination = find_destination(self.destination, "destination", ctx, appends=self.mode == "append")
        columns = self._columns(rows, ctx)
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
        )
        return Lowered(rows, selected=chosen, write=write, reads=rows.names_in(chosen) | frozenset(columns))

    @classmethod
    def describe(cls, step: Step) -> list[str]:
        """Where the rows go."""
        write = step.lowered.write
        return [f"writes {len(write.columns)} columns to {write.destination}"] if write else []

    def _check_registration(self, rows: Rows, columns: tuple[str, ...], chosen: Typed, ctx: Context) -> None:
        """A dataset has business columns; in period mode, rows without a period are never found again."""
        span = ctx.arguments.span("register_as_dataset")
        if rows.certain and columns and all(is_system(name) for name in columns):
            ctx.report(EmptyProjection(registered=True, span=span))
        for name in columns:
            if name.startswith("_") and not is_system(name):
                ctx.report(ReservedColumn(name=name, span=span))
        used = {column.name for column in columns_of(chosen)}
        if PERIOD in columns and rows.periodless_of and not used & {OPERATION_SEQ, PERIOD}:
            ctx.report(PeriodlessRegistered(made_by=rows.periodless_of[-1], span=span))

    def _columns(self, rows: Rows, ctx: Context) -> tuple[str, ...]:
        if self.columns is None:
            return tuple(rows.columns)
        if not self.columns:
            ctx.report(EmptyProjection(span=ctx.arguments.key_span("columns")))
        scope = Scope(columns=rows.columns, table=rows.table)
        chosen: list[str] = []
        for position, name in enumerate(self.columns):
            at = ctx.arguments.at("columns", position) or ctx.arguments
            found = resolve_name(at, scope)
            if isinstance(found, Problem):
                ctx.report(found)
            elif found.name in chosen:
                ctx.report(DuplicateOutputColumn(name=name, span=at.span()))
            else:
                chosen.append(found.name)
        return tuple(chosen)


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
    if any(each is not None for each in of_source) and any(each is not None for each in of_location):
        return refuse(DestinationReason.BOTH)
    if places is None and ctx.spec.places.at("arguments", key) is not None:
        return Destination("?", "?")  # it is no mapping, which has been reported
    if spec.datasource_id is None and spec.path is None and spec.type is None:
        return refuse(DestinationReason.MISSING)
    if spec.datasource_id is not None and not spec.datasource_id.strip():
        return refuse(DestinationReason.MISSING)
    name = spec.table if spec.datasource_id is not None else spec.path
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
        if spec.schema_name is not None and not ctx.kinds[kind].has_schemas:
            return refuse(DestinationReason.NO_DATABASE, name=spec.datasource_id)
    elif kind not in inline:
        return refuse(DestinationReason.NO_FILES, name=kind, known=inline)
    is_path = ctx.kinds[kind].are_paths
    if not _is_safe(name, is_path=is_path):
        return refuse(DestinationReason.UNSAFE, name=name)
    if spec.schema_name is not None and not spec.schema_name.isprintable():
        return refuse(DestinationReason.UNSAFE, name=spec.schema_name)
    destination = Destination(kind, name, spec.datasource_id, spec.schema_name)
    place = (spec.datasource_id, spec.schema_name, normpath(name) if is_path else name)
    first = ctx.destinations.setdefault(place, ctx.spec.seq)
    if first != ctx.spec.seq and not appends:
        ctx.report(
            InvalidDestination(
                reason=DestinationReason.WRITTEN_TWICE, name=str(destination), first_seq=first, span=span
            )
        )
    return destination


def _is_safe(name: str, *, is_path: bool) -> bool:
    """Whether a destination is below the folder that it belongs to, and is not that folder. Drafts make folders of tables too."""
    parts = name.split("/")
    if not name.isprintable() or "." in parts or ".." in parts:
        return False
    return not is_path or not any(check_relative_path(Passage.alone(name)))

"""A plan for people and for programs: what is read, done and written, and where every column comes from."""

from __future__ import annotations

from datetime import date
from typing import assert_never

from dobonomodo.formula import Typed, render_formula
from dobonomodo.formula.sql import quote_name
from dobonomodo.formula.typed import Literal
from dobonomodo.model.parameter import Parameter, show_value
from dobonomodo.model.plain import PlainDict
from dobonomodo.plan.condition import take_apart
from dobonomodo.plan.conservation import Conservation, find_conservation
from dobonomodo.plan.dataset import DatasetUse
from dobonomodo.plan.destination import Together
from dobonomodo.plan.facts import RunFacts
from dobonomodo.plan.planner import Plan
from dobonomodo.plan.relation import (
    Ancestors,
    AssignIds,
    Derive,
    Expand,
    Group,
    Keep,
    Lookup,
    Match,
    Rel,
    Require,
    Reshape,
    Scan,
    Stack,
    Window,
    Write,
)
from dobonomodo.plan.rows import Origin
from dobonomodo.plan.step import Step
from dobonomodo.plan.system import ROW_ID, is_system


def describe_plan(
    plan: Plan,
    run: RunFacts | None = None,
    *,
    as_of: date | None = None,
    together: Together | None = None,
    sql: bool = False,
) -> PlainDict:
    """The plan as plain data; with ``run``, for its period and clock; ``as_of`` is the day that the run names.

    ``together`` says what publishing the outputs together means, if they are.
    """
    return {
        "project": plan.project.id,
        "name": plan.project.name,
        "period": run.period if run else None,
        "parameters": _describe_parameters(plan, run),
        "reads": [_describe_use(use, _day(use, run, as_of)) for use in plan.uses],
        "operations": [_describe_step(step, run if sql else None) for step in plan.steps],
        "writes": [_describe_write(step, step.lowered.write) for step in plan.steps if step.lowered.write],
        "together": together.document() if together is not None else None,
        "totals": [
            {"column": each.column, "changes": [{"seq": seq, "how": how} for seq, how in each.changes]}
            for each in find_conservation(plan)
        ],
    }


def _describe_parameters(plan: Plan, run: RunFacts | None) -> PlainDict:
    values = run.parameters if run is not None else {}
    return {
        name: {
            "type": str(each.type),
            "value": show_value(values[name]) if name in values else None,
            "default": each.default,
            "description": each.description,
        }
        for name, each in (plan.project.parameters or {}).items()
    }


def _day(use: DatasetUse, run: RunFacts | None, as_of: date | None) -> date | None:
    """The day on which the rows of a reading must be valid, None where there is no such day."""
    return use.valid_on(run, as_of) if run is not None and use.temporal_mode == "bitemporal" else None


def _describe_use(use: DatasetUse, day: date | None) -> PlainDict:
    return {
        "role": use.role,
        "dataset": use.dataset_id,
        "version": use.version,
        "table": use.table,
        "alias": use.alias,
        "operation_seq": use.seq,
        "temporal_mode": use.temporal_mode,
        "as_of": day.isoformat() if day is not None else None,
        "period": use.horizon.document(),
        "periods": [each.identifier for each in use.periods] if use.periods is not None else None,
        "missing": "empty" if use.may_be_missing else "fail",
        "resolver": use.resolver_id,
        "locations": [str(location) for location in use.locations],
        "registered_by": list(use.registered_by) if use.is_awaited else [],
        "columns": {name: str(kind) for name, kind in use.columns.items()},
        **({"sources": dict(use.sources)} if use.sources else {}),
        **({"options": dict(use.locations[0].options)} if use.locations and use.locations[0].options else {}),
    }


def _describe_step(step: Step, run: RunFacts | None) -> PlainDict:
    described: PlainDict = {
        "seq": step.spec.seq,
        "name": step.spec.name,
        "type": step.spec.type,
        "selector": step.spec.selector,
        "adds": {name: str(kind) for name, kind in step.added_columns().items()},
        "changes": {name: str(after) for name, (_, after) in step.shown_changes().items()},
        "reads": sorted(step.lowered.reads),
    }
    if run is not None:
        described["sql"] = render_step(step, run)
    return described


def _describe_write(step: Step, write: Write) -> PlainDict:
    rows = step.before
    return {
        "seq": step.spec.seq,
        "destination": str(write.destination),
        "table": write.destination.name,
        "mode": write.mode,
        "include_deleted": write.include_deleted,
        "register_as": write.register_as,
        "columns": [
            {
                "name": name,
                **({"as": write.names[name]} if name in write.names else {}),
                "type": str(rows.columns[name]),
                **_describe_origin(rows.origins.get(name, Origin())),
            }
            for name in write.columns
        ],
        **({"order_by": [str(key) for key in write.order]} if write.order else {}),
        **({"file": write.destination.file} if write.destination.file is not None else {}),
        **({"options": dict(write.destination.options)} if write.destination.options else {}),
    }


def _describe_origin(origin: Origin) -> PlainDict:
    return {
        "inputs": sorted(origin.inputs),
        "conditions": sorted(origin.conditions),
        "operations": list(origin.operations),
    }


# --- for people


def render_plan(
    plan: Plan,
    run: RunFacts | None = None,
    *,
    as_of: date | None = None,
    which: str | None = None,
    together: Together | None = None,
    sql: bool = False,
) -> str:
    """The plan as text; ``which`` is the version of the project, ``together`` the guarantee for publishing together."""
    project = plan.project
    head = ", ".join(filter(None, (f"{project.name} ({project.id})", which, f"period {run.period}" if run else None)))
    lines = [head, ""]
    if plan.project.parameters:
        lines += [
            "parameters",
            *_table([_parameter_row(name, each, run) for name, each in plan.project.parameters.items()]),
        ]
        lines += [""]
    lines += ["reads"]
    lines += _table([_read_row(use, _day(use, run, as_of)) for use in plan.uses])
    lines += ["", "does"]
    for step in plan.steps:
        lines += _render_step(step, run if sql else None)
    lines += ["", "writes (a draft: into the sandbox)" if which == "draft" else "writes"]
    writes = [(step, step.lowered.write) for step in plan.steps if step.lowered.write]
    for step, write in writes:
        lines += _render_write(step, write)
    if not writes:
        lines.append("  nothing")
    if together is not None:
        lines.append(f"  published together: {together.means}")
        lines += [f"        {place}: {means}" for place, means in together.places.items()]
    if totals := find_conservation(plan):
        lines += ["", "totals of the input that operations can change"]
        lines += _table([_total_row(each) for each in totals])
    return "\n".join(lines)


def _parameter_row(name: str, parameter: Parameter, run: RunFacts | None) -> tuple[str, ...]:
    default = f"default {parameter.default}" if parameter.default is not None else "no default"
    value = show_value(run.parameters[name]) if run is not None and name in run.parameters else ""
    return (name, str(parameter.type), value, default, parameter.description or "")


def _total_row(total: Conservation) -> tuple[str, ...]:
    changed = ", ".join(f"{seq} {how}" for seq, how in total.changes)
    return (total.column, changed or "none: its total stays as it was loaded")


def _read_row(use: DatasetUse, day: date | None) -> tuple[str, ...]:
    shown = f"as {use.alias or use.table}"
    where = ", ".join(str(location) for location in use.locations)
    if use.is_awaited:
        where = f"available after a run of {' or '.join(use.registered_by)}"
    elif not where:
        where = "where it was registered" if use.registered is not None else f"by resolver {use.resolver_id}"
    if not use.horizon.is_current:
        where = f"{where}, {describe_periods(use)}"
    if day is not None:
        where = f"{where}, as of {day}"
    if use.locations and use.locations[0].options:
        said = ", ".join(f"{key} {_show_option(value)}" for key, value in use.locations[0].options)
        where = f"{where}, with {said}"
    return (use.role, f"{use.dataset_id} v{use.version}", shown, f"operation {use.seq}" if use.seq else "", where)


def _show_option(value: object) -> str:
    listed = value if isinstance(value, tuple) else (value,)
    return " ".join(f"`{str(each).lower() if isinstance(each, bool) else each}`" for each in listed)


def describe_periods(use: DatasetUse) -> str:
    """The periods of a reading: as the definitions say, and each of them where they are known."""
    if use.periods is None:
        return f"{use.horizon}"
    listed = ", ".join(each.identifier for each in use.periods) or "none"
    return f"{use.horizon}: {listed}"


def _render_step(step: Step, run: RunFacts | None) -> list[str]:
    spec = step.spec
    lines = [f"  {spec.seq:>4}  {spec.type:<9}  {spec.name}"]
    said = [*describe_selector(step), *step.describe()]
    if run is not None:
        said += [f"| {line}" for line in render_step(step, run)]
    return lines + [f"{'':19}{line}" for line in said]


def describe_selector(step: Step) -> list[str]:
    """Which rows, with named selectors spelled out."""
    selector = step.spec.selector
    if not selector:
        return []
    lines = [f"where {_one_line(selector)}"]
    for name, condition in step.selectors.items():
        if f"{{{{{name}}}}}" in selector.replace(" ", ""):
            lines.append(f"      {{{{{name}}}}} is {_one_line(condition)}")
    return lines


def _one_line(text: object) -> str:
    return " ".join(str(text).split())


def _render_write(step: Step, write: Write) -> list[str]:
    extras: list[str] = [write.mode]
    if write.include_deleted:
        extras.append("with deleted rows")
    if write.register_as:
        extras.append(f"registered as {write.register_as}")
    if write.order:
        extras.append(f"ordered by {', '.join(map(str, write.order))}")
    if write.destination.file is not None and not write.destination.is_file:
        extras.append(f"and the file {write.destination.file}")
    if write.destination.options:
        extras.append(", ".join(f"{key} {_show_option(value)}" for key, value in write.destination.options))
    lines = [f"  {step.spec.seq:>4}  {write.destination}  ({', '.join(extras)})"]
    rows = step.before
    table: list[tuple[str, ...]] = []
    for name in write.columns:
        if is_system(name):
            continue
        origin = rows.origins.get(name, Origin())
        through = f"through {', '.join(map(str, origin.operations))}" if origin.operations else ""
        shown = f"{name} as {write.names[name]}" if name in write.names else name
        table.append((shown, str(rows.columns[name]), ", ".join(sorted(origin.inputs)), through))
    lines += [f"      {line}" for line in _table(table)]
    system = [name for name in write.columns if is_system(name)]
    if system:
        lines.append(f"        and {', '.join(system)}")
    return lines


def _table(rows: list[tuple[str, ...]]) -> list[str]:
    widths = [max((len(cell) for cell in column), default=0) for column in zip(*rows, strict=True)]
    return [
        "  " + "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]


# --- Spark SQL


def render_step(step: Step, run: RunFacts) -> list[str]:
    """The Spark SQL of what an operation does, part by part."""
    lines: list[str] = []
    _render_node(step.top, step.before.node, run, lines)
    return lines


def _is_null(value: Typed) -> bool:
    return isinstance(value, Literal) and value.value is None


def _render_node(node: Rel, stop: Rel, run: RunFacts, lines: list[str]) -> None:
    """The nodes above ``stop``, the first to happen first."""

    def sql(expression: Typed) -> str:
        return render_formula(expression, run)

    if node is stop:
        return
    match node:
        case Scan():
            lines.append(f"read {node.use.dataset_id} v{node.use.version}")
        case Keep():
            _render_node(node.rows, stop, run, lines)
            lines.append(f"WHERE {sql(node.condition)}")
        case Ancestors():
            _render_node(node.rows, stop, run, lines)
            lines.append(f"all pairs of a node and one above it by {node.child.name} and {node.parent.name}")
        case Expand():
            _render_node(node.rows, stop, run, lines)
            for choice in node.choices:
                shown = ", ".join(f"{sql(value)} AS {quote_name(name)}" for name, value in choice.items())
                lines.append(f"EACH ROW WITH {shown}")
        case Require():
            _render_node(node.rows, stop, run, lines)
            lines.append(f"FAIL WHERE {sql(node.violated)}  -- {node.reason}")
        case Derive() | Reshape():
            _render_node(node.rows, stop, run, lines)
            given = {name: value for name, value in node.values.items() if not _is_null(value) and name != ROW_ID}
            lines.extend(f"SELECT {sql(value)} AS {quote_name(name)}" for name, value in given.items())
            if empty := [quote_name(name) for name, value in node.values.items() if _is_null(value)]:
                lines.append(f"SELECT NULL AS {', '.join(empty)}")
        case Lookup() | Match():
            _render_node(node.rows, stop, run, lines)
            inner: list[str] = []
            _render_node(node.source, stop, run, inner)
            kind, note = "JOIN", ""
            if isinstance(node, Lookup):
                kind, note = "LEFT JOIN", f"  -- at most one match, found {take_apart(node).way.value}"
            if isinstance(node, Match) and node.unmatched:
                kind = "LEFT JOIN"
            lines.append(f"{kind} ({'; '.join(inner)}) AS {quote_name(node.alias)}")
            lines.append(f"  ON {sql(node.only)} AND {sql(node.on)}{note}")
        case Window():
            _render_node(node.rows, stop, run, lines)
            for name, over in node.values.items():
                lines.append(f"SELECT {sql(over)} AS {quote_name(f'{node.alias}.{name}')}")
        case Group():
            _render_node(node.rows, stop, run, lines)
            lines.append(f"GROUP BY {', '.join(sql(key) for key in node.keys.values())}")
            lines.extend(f"SELECT {sql(value)} AS {quote_name(name)}" for name, value in node.values.items())
        case AssignIds():
            _render_node(node.rows, stop, run, lines)
            lines.append(f"SELECT new row id from the run, operation {node.seq} and {', '.join(node.by)}")
        case Stack():
            _render_node(node.rows, stop, run, lines)
            _render_node(node.more, stop, run, lines)
            lines.append("UNION ALL with the rows before")
        case _:
            assert_never(node)

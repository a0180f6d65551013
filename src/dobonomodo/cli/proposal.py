"""Proposes a workspace for existing files: copies of them, and definitions that load them unchanged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from dobonomodo.cli.console import usage_error
from dobonomodo.cli.dataset import FOLDER, infer_file, render_definition
from dobonomodo.formula.types import DecimalType, as_decimal, is_number

if TYPE_CHECKING:
    from dobonomodo.formula import Type
    from dobonomodo.model.plain import PlainDict
    from dobonomodo.storage.inference import Inferred, InferredColumn

PROJECT = "first-look"
_LEVELS = """  levels:
    - {name: year, identifier_pattern: "{year}"}
    - {name: quarter, parent_level: year, identifier_pattern: "{year}-Q{sequence}"}
    - {name: month, parent_level: quarter, identifier_pattern: "{year}-{sequence:02}"}
"""


@dataclass(frozen=True, slots=True)
class ProposedWorkspace:
    """The files of a workspace, and what to read first."""

    contents: Mapping[str, bytes]
    table: str
    period: str
    notes: tuple[str, ...]


def propose_workspace(files: Sequence[Path]) -> ProposedWorkspace:
    """Definitions for some files; those whose names differ in the period alone are one dataset."""
    by_table: dict[str, list[Inferred]] = {}
    for file in files:
        found = infer_file(file)
        by_table.setdefault(found.table, []).append(found)
    tables = {table: _unite(found) for table, found in by_table.items()}
    first = next(iter(tables.values()))
    periods = sorted(found.period for group in by_table.values() for found in group if found.period)
    period = periods[-1] if periods else f"{datetime.now(UTC):%Y}-01"
    contents = {
        "dobo.yaml": b"workspace:\n  name: First look\n  default_resolver: files\n",
        "calendars/calendar.yaml": _render_calendar([*periods, period]).encode(),
        "resolvers/files.yaml": render_definition("resolver", _describe_resolver(tables)).encode(),
        f"projects/{PROJECT}.yaml": _render_project(first).encode(),
    }
    for table, found in tables.items():
        contents[f"datasets/{table}.yaml"] = render_definition("dataset", found.dataset()).encode()
        source: PlainDict = {"id": found.kind, "type": found.kind, "options": {"path_prefix": FOLDER}}
        contents[f"datasources/{found.kind}.yaml"] = render_definition("datasource", source).encode()
    for group in by_table.values():
        for found in group:
            contents[f"{FOLDER}/{found.path.name}"] = found.path.read_bytes()
    notes = tuple(f"{table}: {note}" for table, found in tables.items() for note in found.notes)
    return ProposedWorkspace(contents, first.table, period, notes)


def _unite(found: Sequence[Inferred]) -> Inferred:
    """One definition for the files of several periods."""
    first = found[0]
    for other in found[1:]:
        sources = [column.source.casefold() for column in other.columns]
        if (first.kind, first.options) != (other.kind, other.options) or sources != [
            column.source.casefold() for column in first.columns
        ]:
            usage_error(
                f"{first.path} and {other.path} are not written alike; give them names that differ in more than a period"
            )
        pairs = zip(first.columns, other.columns, strict=True)
        notes = tuple(dict.fromkeys((*first.notes, *other.notes)))
        first = replace(first, columns=tuple(_widen(one, more) for one, more in pairs), notes=notes)
    return first


def _widen(one: InferredColumn, other: InferredColumn) -> InferredColumn:
    return replace(one, kind=_unite_types(one.kind, other.kind), is_key=one.is_key and other.is_key)


def _unite_types(one: Type, other: Type) -> Type:
    from dobonomodo.formula.types import TEXT

    if one == other:
        return one
    if not (is_number(one) and is_number(other)):
        return TEXT
    both = (as_decimal(one), as_decimal(other))
    scale = max(each.scale for each in both)
    return DecimalType(min(38, max(each.whole for each in both) + scale), scale)


def _describe_resolver(tables: Mapping[str, Inferred]) -> PlainDict:
    rules = []
    for table, found in tables.items():
        strategy: PlainDict = {"type": "path", "datasource_id": found.kind, "path": found.template}
        if found.options:
            strategy["options"] = dict(found.options)
        rules.append({"name": table, "when": f'table.name = "{table}"', "strategy": strategy})
    return {"id": "files", "rules": rules}


def _render_calendar(periods: Sequence[str]) -> str:
    years = sorted(period[:4] for period in periods)
    generated = f"  generate: {{from: {years[0]}-01-01, to: {years[-1]}-12-31}}\n"
    return f"calendar:\n  id: calendar\n  is_default: true\n{_LEVELS}{generated}"


def _render_project(found: Inferred) -> str:
    from dobonomodo.plan.operations.output import Output

    columns = [column.name for column in found.columns]
    arguments: PlainDict = {
        "destination": {"type": found.kind, "file": f"results/{found.table}-{{{{period}}}}{found.path.suffix}"},
        "columns": columns,
        "order_by": list(found.key) or columns[:1],
    }
    operations = [{"seq": 10, "type": Output.type, "arguments": arguments}]
    return render_definition("project", {"id": PROJECT, "input_dataset_id": found.table, "operations": operations})

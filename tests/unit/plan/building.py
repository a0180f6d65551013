"""How planning is tested: operations as YAML text in, a plan or the codes, fields and places of problems out.

The world around them is small: orders by month, customers with tiers, exchange rates by day, budgets.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from textwrap import dedent, indent
from typing import Any, TypeVar

from dobonomodo.model import Dataset, Definitions, Period, Project, Schedule, load_definitions
from dobonomodo.plan import KnownDataset, Plan, Planned, Resolution, Step, plan_project
from dobonomodo.plan.relation import Rel, walk_relation
from dobonomodo.plan.system import is_system
from dobonomodo.problems import Problem, Source, Span
from dobonomodo.storage import destination_kinds
from tests.world import KnownDatasets, define, resolution_of

FILE = "projects/p.yaml"

WORLD = """\
datasource: {id: lake, type: parquet, options: {path_prefix: data}}
---
datasource: {id: warehouse, type: database, options: {url: "postgresql://db:5432/w"}}
---
datasource: {id: ledger, type: sql, options: {url: "sqlite:///ledger.db"}}
---
datasource: {id: old, type: parquet, status: disabled, options: {path_prefix: old}}
---
resolver:
  id: files
  is_default: true
  rules:
    - {name: all, strategy: {type: path, datasource_id: lake, path: "{{table_name}}"}}
---
dataset:
  id: sales
  natural_key_columns: [order_id]
  main_table:
    name: orders
    temporal_mode: period
    columns:
      - {name: order_id, type: string, nullable: false}
      - {name: customer_id, type: string}
      - {name: region, type: string}
      - {name: status, type: string}
      - {name: quantity, type: integer}
      - {name: amount, type: "decimal(15,2)"}
      - {name: booked, type: date}
      - {name: shipped_at, type: timestamp}
      - {name: paid, type: boolean}
---
dataset:
  id: customers
  main_table:
    name: customers
    temporal_mode: snapshot
    columns: [{name: id, type: string}, {name: tier, type: string}, {name: country, type: string}]
---
dataset:
  id: rates
  main_table:
    name: fx_rates
    temporal_mode: bitemporal
    columns: [{name: country, type: string}, {name: rate, type: "decimal(12,8)"}]
---
dataset:
  id: budget
  main_table:
    name: budgets
    temporal_mode: period
    columns: [{name: region, type: string}, {name: amount, type: decimal}, {name: status, type: string}]
---
dataset:
  id: sleeping
  status: disabled
  main_table: {name: sleeping, columns: [{name: id, type: string}]}
"""

OUTPUT = """
- seq: 900
  type: output
  arguments: {destination: {datasource_id: lake, table: out}}
"""

SYSTEM = (
    "_row_id",
    "_deleted",
    "_created_at",
    "_updated_at",
    "_source_dataset_id",
    "_source_table",
    "_operation_seq",
    "_labels",
)

T = TypeVar("T", bound=Rel)


@dataclass(frozen=True)
class World:
    """Definitions that operations are planned among."""

    definitions: Definitions
    datasets: KnownDatasets
    resolution: Resolution
    broken: frozenset[str] = field(default=frozenset())

    def with_dataset(self, text: str, *, version: int = 1, **facts: Any) -> World:
        """The same world with one more dataset, or one more version of one."""
        dataset = dataset_from(text)
        known = KnownDataset(dataset, version, **facts)
        listed = {**self.datasets.by_id, dataset.id: (*self.datasets.by_id.get(dataset.id, ()), known)}
        return replace(self, datasets=KnownDatasets(listed, self.datasets.broken))

    def without(self, *ids: str, broken: bool = False) -> World:
        """The same world without some datasets; ``broken``: they are there and cannot be read."""
        left = {name: known for name, known in self.datasets.by_id.items() if name not in ids}
        return replace(self, datasets=KnownDatasets(left, frozenset(ids) if broken else frozenset()))

    def resolving(self, **changes: Any) -> World:
        """The same world where rows are found in another way."""
        return replace(self, resolution=replace(self.resolution, **changes))


def world_from(text: str = WORLD) -> World:
    definitions = define(text)
    return World(definitions, KnownDatasets.of(definitions), resolution_of(definitions))


def dataset_from(text: str) -> Dataset:
    definitions, problems = load_definitions([Source("more.yaml", dedent(text))])
    assert [each.code for each in problems if each.code != "UNKNOWN_REFERENCE"] == []
    (dataset,) = definitions.datasets.values()
    return dataset


WORLD_BUILT = world_from()


def project_text(operations: str, *, head: str = "", input_id: str = "sales") -> str:
    body = indent(dedent(operations).strip("\n"), "    ")
    more = indent(dedent(head).strip("\n"), "  ")
    return f"project:\n  id: p\n  input_dataset_id: {input_id}\n{more + chr(10) if more else ''}  operations:\n{body}\n"


def load_project(text: str) -> tuple[Project | None, int | None, tuple[Problem, ...]]:
    """A project, whole or what is left of it, with the number of the first operation that is lost."""
    definitions, problems = load_definitions([Source(FILE, text)])
    own = tuple(each for each in problems if each.code != "UNKNOWN_REFERENCE")
    if definitions.projects:
        return next(iter(definitions.projects.values())), None, own
    if definitions.salvaged:
        project, lost = definitions.salvaged[0]
        return project, 2**31 if lost is None else lost, own
    return None, None, own


def planned(
    operations: str,
    *,
    head: str = "",
    world: World = WORLD_BUILT,
    output: bool = True,
    input_id: str = "sales",
) -> Planned:
    """Operations of a project over ``sales``, planned; an output at the end unless it is not wanted."""
    text = project_text(dedent(operations).strip("\n") + (OUTPUT if output else ""), head=head, input_id=input_id)
    return plan_text(text, world)


def plan_text(text: str, world: World = WORLD_BUILT) -> Planned:
    """The text of a project, planned, with every problem of reading and of planning it."""
    project, uncertain_from, problems = load_project(text)
    if project is None:
        return Planned(None, problems)
    found = plan_project(
        project,
        datasets=world.datasets,
        resolution=world.resolution,
        datasources=world.definitions.datasources,
        kinds=destination_kinds(),
        uncertain_from=uncertain_from,
    )
    together = sorted((*problems, *found.problems), key=lambda each: each.sort_key)
    return Planned(found.plan, tuple(together))


def plan_of(operations: str, **more: Any) -> Plan:
    """The plan of operations that have no error."""
    found = planned(operations, **more)
    assert found.plan is not None, [problem.message() for problem in found.problems]
    return found.plan


def found(operations: str, **more: Any) -> list[tuple[str, str]]:
    """The code of each problem, and the text that its caret is under."""
    return [(problem.code, shown(problem.span)) for problem in planned(operations, **more).problems]


def codes(operations: str, **more: Any) -> list[str]:
    return [problem.code for problem in planned(operations, **more).problems]


def problem_in(operations: str, **more: Any) -> Any:
    """The only problem."""
    problems = planned(operations, **more).problems
    assert len(problems) == 1, [(each.code, each.message()) for each in problems]
    return problems[0]


def shown(span: Span | None) -> str:
    """The text at a place."""
    return "" if span is None else span.source.text[span.start : span.end]


def step_of(plan: Plan, seq: int) -> Step:
    return next(step for step in plan.steps if step.spec.seq == seq)


def types_after(plan: Plan, seq: int) -> dict[str, str]:
    """The types of the business columns after an operation."""
    return {name: str(kind) for name, kind in step_of(plan, seq).after.columns.items() if not is_system(name)}


def nodes(top: Rel, kind: type[T]) -> list[T]:
    """The nodes of a kind in a tree."""
    return [node for node in walk_relation(top) if isinstance(node, kind)]


@contextmanager
def no_problem(operations: str, **more: Any) -> Iterator[Plan]:
    result = planned(operations, **more)
    assert result.problems == (), [(each.code, each.message()) for each in result.problems]
    assert result.plan is not None
    yield result.plan


def update(*assignments: str, seq: int = 1, selector: str | None = None, joins: str = "") -> str:
    """An update: each assignment is ``column = expression``."""
    lines = [f"- seq: {seq}", "  type: update"]
    if selector is not None:
        lines.append(f"  selector: {quoted(selector)}")
    lines.append("  arguments:")
    if joins:
        lines += ["    joins:", indent(dedent(joins).strip("\n"), "      ")]
    lines.append("    assignments:")
    for each in assignments:
        column, _, expression = each.partition(" = ")
        lines.append(f"      - {{column: {column}, expression: {quoted(expression)}}}")
    return "\n".join(lines) + "\n"


def aggregate(keys: str, *aggregations: str, seq: int = 1, selector: str | None = None) -> str:
    lines = [f"- seq: {seq}", "  type: aggregate"]
    if selector is not None:
        lines.append(f"  selector: {quoted(selector)}")
    lines += ["  arguments:", f"    group_by: [{keys}]", "    aggregations:"]
    for each in aggregations:
        column, _, expression = each.partition(" = ")
        lines.append(f"      - {{column: {column}, expression: {quoted(expression)}}}")
    return "\n".join(lines) + "\n"


def append(
    dataset: str, *, seq: int = 1, version: int | None = None, where: str | None = None, grouping: str = ""
) -> str:
    source = f"dataset_id: {dataset}" + (f", dataset_version: {version}" if version else "")
    lines = [f"- seq: {seq}", "  type: append", "  arguments:", f"    source: {{{source}}}"]
    if where is not None:
        lines.append(f"    source_selector: {quoted(where)}")
    if grouping:
        lines.append(f"    aggregation: {grouping}")
    return "\n".join(lines) + "\n"


def delete(selector: str | None = None, *, seq: int = 1) -> str:
    return f"- seq: {seq}\n  type: delete\n" + (f"  selector: {quoted(selector)}\n" if selector is not None else "")


def output(
    destination: str = "{datasource_id: lake, table: out}", *, seq: int = 900, selector: str = "", **more: str
) -> str:
    lines = [f"- seq: {seq}", "  type: output"]
    if selector:
        lines.append(f"  selector: {quoted(selector)}")
    lines += ["  arguments:", f"    destination: {destination}"]
    lines += [f"    {key}: {value}" for key, value in more.items()]
    return "\n".join(lines) + "\n"


def join(alias: str, dataset: str, on: str, *, version: int | None = None) -> str:
    pin = f", dataset_version: {version}" if version else ""
    return f"- {{alias: {alias}, dataset_id: {dataset}{pin}, on: {quoted(on)}}}\n"


def quoted(text: str) -> str:
    """A YAML scalar in single quotes."""
    return "'" + text.replace("'", "''") + "'"


MONTHS = Schedule(
    "c",
    (
        Period.from_data({"identifier": "2026", "level": "year", "start_date": "2026-01-01", "end_date": "2026-12-31"}),
        *(
            Period.from_data(
                {"identifier": f"2026-Q{q}", "level": "quarter", "parent": "2026", "start_date": start, "end_date": end}
            )
            for q, start, end in ((1, "2026-01-01", "2026-03-31"), (2, "2026-04-01", "2026-06-30"))
        ),
        *(
            Period.from_data(
                {
                    "identifier": f"2026-0{m}",
                    "level": "month",
                    "parent": f"2026-Q{(m + 2) // 3}",
                    "start_date": f"2026-0{m}-01",
                    "end_date": f"2026-0{m}-{days}",
                }
            )
            for m, days in ((1, 31), (2, 28), (3, 31), (4, 30), (5, 31), (6, 30))
        ),
    ),
    {"year": None, "quarter": "year", "month": "quarter"},
)
"""The first half of a year."""

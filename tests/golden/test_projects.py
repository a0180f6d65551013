"""The exact reports of faulty projects, as the files in ``projects`` say.

``twelve.txt`` is the report of a workspace with twelve faults of twelve kinds in three files. ``operations.txt`` has a
small project for each problem that an operation can have. ``make golden`` rewrites the reports.
"""

from __future__ import annotations

from datetime import date
from functools import cache
from pathlib import Path
from textwrap import indent
from typing import NamedTuple

import pytest

from dobonomodo.problems import Problem
from dobonomodo.problems.operation import (
    OPERATION_PROBLEMS,
    DatasetCycle,
    DestinationReason,
    InputDatasetNotFound,
    InvalidDestination,
    OneDayForPeriod,
    PeriodNotRunnable,
    ProjectNotRunnable,
)
from dobonomodo.problems.render import render_full
from dobonomodo.workspace import Workspace
from tests.golden.text_file import compare
from tests.unit.plan.building import MONTHS, WORLD_BUILT, World, planned

FOLDER = Path(__file__).parent / "projects"
FAULTY = Path(__file__).parents[1] / "data" / "workspaces" / "faulty"


class Case(NamedTuple):
    """Operations over ``sales``, and perhaps keys of the project or another world around it."""

    operations: str
    head: str = ""
    world: World = WORLD_BUILT
    input_id: str = "sales"
    output: bool = True


def destination(text: str) -> Case:
    return Case(f"- {{seq: 1, type: output, arguments: {{destination: {text}}}}}", output=False)


NOWHERE = WORLD_BUILT.resolving(default_resolver=None)
MONTHLY = WORLD_BUILT.resolving(schedule=MONTHS, period=MONTHS.by_identifier["2026-01"])
NO_MODE = WORLD_BUILT.with_dataset(
    "dataset: {id: mixed, main_table: {name: mixed, columns: [{name: region, type: string}]}}", has_period=True
)
PICKY = MONTHLY.resolving(
    resolvers={
        "files": MONTHLY.definitions.resolvers["files"].model_copy(
            update={
                "rules": tuple(
                    rule.model_copy(update={"data_level": "week"})
                    for rule in MONTHLY.definitions.resolvers["files"].rules
                )
            }
        )
    }
)
SUMMED = "- {seq: 1, type: aggregate, arguments: {group_by: [region], aggregations: [{column: total, expression: SUM(amount)}]}}"


def aggregated(arguments: str) -> Case:
    return Case(f"- {{seq: 1, type: aggregate, arguments: {{{arguments}}}}}")


def joined(join: str) -> Case:
    return Case(f"""\
- seq: 1
  name: add the tier
  type: update
  arguments:
    joins: [{join}]
    assignments: [{{column: tier, expression: c.tier}}]
""")


def appended(arguments: str, world: World = WORLD_BUILT) -> Case:
    return Case(f"- {{seq: 1, name: budget, type: append, arguments: {{{arguments}}}}}", world=world)


def leveled(arguments: str) -> Case:
    return aggregated(
        "group_by: [region, status], level_column: level, aggregations: [{column: n, expression: COUNT(*)}], "
        + arguments
    )


def allocated(arguments: str) -> Case:
    return Case(f"- {{seq: 1, name: share, type: allocate, arguments: {{{arguments}}}}}")


CASES: dict[str, Case] = {
    "an update without assignments": Case("- {seq: 1, type: update, arguments: {assignments: []}}"),
    "a target twice": Case(
        "- seq: 1\n  type: update\n  arguments:\n    assignments:\n"
        "      - {column: net, expression: amount}\n      - {column: Net, expression: amount * 2}"
    ),
    "no keys": aggregated("group_by: [], aggregations: [{column: n, expression: COUNT(*)}]"),
    "no aggregations": aggregated("group_by: [region]"),
    "a key twice": aggregated("group_by: [region, orders.Region], aggregations: [{column: n, expression: COUNT(*)}]"),
    "a result that is a key": aggregated("group_by: [region], aggregations: [{column: region, expression: COUNT(*)}]"),
    "two results in one column": aggregated(
        "group_by: [region], aggregations: [{column: n, expression: COUNT(*)}, {column: N, expression: SUM(amount)}]"
    ),
    "a system column as a result": aggregated(
        "group_by: [region], aggregations: [{column: _total, expression: SUM(amount)}]"
    ),
    "a system column as a key": aggregated("group_by: [_row_id], aggregations: [{column: n, expression: COUNT(*)}]"),
    "an alias that is taken": joined(
        "{alias: c, dataset_id: customers, on: c.id = customer_id}, {alias: orders, dataset_id: customers, on: paid}"
    ),
    "a join with an unknown dataset": joined("{alias: c, dataset_id: custmers, on: c.id = customer_id}"),
    "a join with a disabled dataset": joined("{alias: c, dataset_id: sleeping, on: c.id = customer_id}"),
    "a join with an unknown version": joined(
        "{alias: c, dataset_id: customers, dataset_version: 9, on: c.id = customer_id}"
    ),
    "an unknown input": Case("- {seq: 1, type: delete}", input_id="sale"),
    "a disabled input": Case("- {seq: 1, type: delete}", input_id="sleeping"),
    "an unknown version of the input": Case("- {seq: 1, type: delete}", head="input_dataset_version: 9"),
    "an output of no columns": Case(
        "- {seq: 1, type: output, arguments: {destination: {type: csv, path: x}, columns: []}}", output=False
    ),
    "a column twice": Case(
        "- {seq: 1, type: output, arguments: {destination: {type: csv, path: x}, columns: [amount, Amount]}}",
        output=False,
    ),
    "a destination that is missing": destination("{}"),
    "a destination that says too much": destination("{datasource_id: lake, table: x, path: y}"),
    "a destination without a name": destination('{datasource_id: lake, table: ""}'),
    "an unknown datasource": destination("{datasource_id: lak, table: x}"),
    "a disabled datasource": destination("{datasource_id: old, table: x}"),
    "a kind of file that cannot be written": destination("{type: orc, path: x}"),
    "a kind of file that is missing": destination("{path: x}"),
    "a schema for files": destination("{datasource_id: lake, table: x, schema: s}"),
    "a datasource that can only be read": destination("{datasource_id: ledger, table: x}"),
    "a file without a period": destination("{type: csv, file: summary.csv}"),
    "a file with another token": destination('{type: csv, file: "{{YYYY}}/{{period}}.csv"}'),
    "a file in a database": destination('{datasource_id: warehouse, table: x, file: "{{period}}.csv"}'),
    "a sheet of a text file": destination('{type: csv, file: "{{period}}.csv", sheet: Sales}'),
    "a workbook without a name": destination("{type: excel, path: results}"),
    "a sheet that cannot be": destination('{type: excel, file: "{{period}}.xlsx", sheet: "a/b"}'),
    "a file that rows are appended to": Case(
        '- {seq: 1, type: output, arguments: {destination: {type: csv, file: "{{period}}.csv"}, mode: append}}',
        output=False,
    ),
    "sheets that are not published together": Case(
        '- {seq: 1, type: output, arguments: {destination: {type: excel, file: "{{period}}.xlsx", sheet: A}}}\n'
        '- {seq: 2, type: output, arguments: {destination: {type: excel, file: "{{period}}.xlsx", sheet: B}}}',
        head="publish: as_done",
        output=False,
    ),
    "a path that leads away": destination("{type: csv, path: ../x}"),
    "a destination twice": Case(
        "- {seq: 1, type: output, arguments: {destination: {datasource_id: lake, table: x}}}\n"
        "- {seq: 2, type: output, arguments: {destination: {datasource_id: lake, table: x}}}",
        output=False,
    ),
    "no resolver": Case("- {seq: 1, type: delete}", world=NOWHERE),
    "an override that does not exist": Case("- {seq: 1, type: delete}", head="resolver_overrides: {sales: fils}"),
    "no rule": Case("- {seq: 1, type: delete}", world=PICKY),
    "an append from an unknown dataset": appended("source: {dataset_id: budgt}"),
    "an append from an unknown version": appended("source: {dataset_id: budget, dataset_version: 5}"),
    "an append with a column too many": appended("source: {dataset_id: customers}"),
    "an append with another type": appended(
        "source: {dataset_id: budget}, aggregation: {group_by: [region], aggregations: [{column: paid, expression: COUNT(*)}]}"
    ),
    "a source selector that is none": appended("source: {dataset_id: budget}, source_selector: amount >"),
    "an aggregation that is none": appended(
        "source: {dataset_id: budget}, aggregation: {group_by: [region], aggregations: [{column: amount, expression: MEDIAN(amount)}]}"
    ),
    "a key that the source does not have": appended(
        "source: {dataset_id: budget}, aggregation: {group_by: [regon], aggregations: [{column: amount, expression: SUM(amount)}]}"
    ),
    "an append without a resolver": Case(
        "- {seq: 1, name: budget, type: append, arguments: {source: {dataset_id: budget}}}",
        head="resolver_overrides: {sales: files}",
        world=NOWHERE,
    ),
    "summaries of summaries": Case(
        SUMMED
        + "\n- {seq: 2, type: aggregate, arguments: {group_by: [status], aggregations: [{column: n, expression: COUNT(*)}]}}"
    ),
    "a delete with a blank selector": Case('- {seq: 1, type: delete, selector: ""}'),
    "a source without temporal mode": appended("source: {dataset_id: mixed}", world=NO_MODE),
    "rows without a period": Case(
        SUMMED + "\n- {seq: 2, type: output, arguments: {destination: {type: csv, path: x}, register_as_dataset: d}}",
        output=False,
    ),
    "no output": Case("- {seq: 1, type: delete, selector: paid}", output=False),
    "work after the last output": Case(
        "- {seq: 1, type: output, arguments: {destination: {type: csv, path: x}}}\n- {seq: 2, type: delete, selector: paid}",
        output=False,
    ),
    "a selector that nothing uses": Case(
        "- {seq: 1, type: delete, selector: paid}", head="selectors: {big: amount > 1000}"
    ),
    "subtotals without a level": aggregated(
        "group_by: [region, status], rollup: [all], aggregations: [{column: n, expression: COUNT(*)}]"
    ),
    "a subtotal by another column": leveled("rollup: [all, regon]"),
    "a subtotal by the last key": leveled("rollup: [status]"),
    "a subtotal twice": leveled("rollup: [all, region, orders.Region]"),
    "a level that is a key": aggregated(
        "group_by: [region], rollup: [all], level_column: Region, aggregations: [{column: n, expression: COUNT(*)}]"
    ),
    "a tree over another column": leveled("hierarchy: {column: regin, dataset_id: customers, child: id, parent: tier}"),
    "a tree that does not exist": leveled("hierarchy: {column: region, dataset_id: customrs, child: id, parent: tier}"),
    "a tree without its column": leveled(
        "hierarchy: {column: region, dataset_id: customers, child: id, parent: parnt}"
    ),
    "an amount that does not exist": allocated('amount: amout, receivers: {dataset_id: budget}, driver: "1"'),
    "an amount that is no number": allocated('amount: region, receivers: {dataset_id: budget}, driver: "1"'),
    "an amount of the system": allocated('amount: _operation_seq, receivers: {dataset_id: budget}, driver: "1"'),
    "no such receivers": allocated("amount: amount, receivers: {dataset_id: budgt}, driver: receivers.amount"),
    "a driver that is no number": allocated(
        "amount: amount, receivers: {dataset_id: budget}, driver: receivers.region"
    ),
    "a driver without its qualifier": allocated("amount: amount, receivers: {dataset_id: rates}, driver: rate"),
    "a driver over many rows": allocated(
        "amount: amount, receivers: {dataset_id: budget}, driver: SUM(receivers.amount)"
    ),
    "a receiver that is chosen by the wrong name": allocated(
        "amount: amount, receivers: {dataset_id: budget, selector: orders.amount > 0}, driver: receivers.amount"
    ),
    "an amount that is set": allocated(
        "amount: amount, receivers: {dataset_id: budget}, driver: receivers.amount, set: [{column: Amount, expression: '1'}]"
    ),
    "a pool that is none": allocated('amount: amount, receivers: {dataset_id: budget}, driver: "1", pool: remove'),
    "the rows of an operation that is not there": Case(
        f'{SUMMED.replace("seq: 1,", "seq: 1, name: Totals,")}\n- {{seq: 2, type: delete, selector: MADE_BY("Totls")}}'
    ),
    "the rows of an operation that makes none": Case(
        "- {seq: 1, name: Zeros, type: delete, selector: MADE_BY('Zeros')}"
    ),
    "a parameter that is not there": Case(
        "- {seq: 1, type: update, arguments: {assignments: [{column: net, expression: amount * param.uplfit}]}}\n"
        "- {seq: 2, type: delete, selector: amount < param.uplift}",
        head="parameters: {uplift: {type: integer}}",
    ),
    "a parameter of another type": Case(
        "- {seq: 1, type: delete, selector: region = param.uplift}",
        head="parameters: {uplift: {type: integer, default: 3}}",
    ),
    "a default that does not fit": Case(
        "- {seq: 1, type: delete, selector: amount < param.uplift}",
        head="parameters: {uplift: {type: 'decimal(5,4)', default: 3%}}",
    ),
    "a parameter that nothing uses": Case(
        "- {seq: 1, type: delete, selector: paid}", head="parameters: {uplift: {type: date}}"
    ),
    "a period before the first": joined(
        "{alias: c, dataset_id: customers, period: previous, on: c.id = customer_id}"
    )._replace(world=MONTHLY),
    "periods that are none": joined("{alias: c, dataset_id: customers, period: previos, on: c.id = customer_id}"),
    "several periods of a bitemporal dataset": Case(
        "- {seq: 1, type: update, arguments: {joins: [{alias: r, dataset_id: rates, period: {last: 3}, on: r.country = region}], "
        "assignments: [{column: rate, expression: r.rate}]}}"
    ),
    "a join of an append without its alias": appended(
        "source: {dataset_id: budget, joins: [{alias: c, dataset_id: customers, on: c.country = region}]}, "
        'source_selector: tier = "gold"'
    ),
    "a new column that starts with an underscore": Case(
        "- {seq: 1, type: update, arguments: {assignments: [{column: _note, expression: region}]}}"
    ),
}

WHEN_RUN: dict[str, Problem] = {
    "a project that reads its own result": DatasetCycle(dataset_id="balances", projects=("closing", "closing")),
    "a run before the one it builds on": InputDatasetNotFound(
        dataset_id="balances", registered_by=("closing",), period="2026-01"
    ),
    "one day's values for a whole quarter": OneDayForPeriod(
        dataset_id="fx-rates", day=date(2026, 1, 1), period="2026-Q1", level="month", count=3
    ),
    "a link out of a datasource": InvalidDestination(reason=DestinationReason.LINK, name="lake:processed_orders"),
    "a project that was deactivated": ProjectNotRunnable(project_id="monthly-sales", status="inactive"),
    "a project in conflict": ProjectNotRunnable(project_id="monthly-sales", status="conflict"),
    "a closed period": PeriodNotRunnable(period="2026-01", status="closed"),
    "a locked period": PeriodNotRunnable(period="2026-01", status="locked"),
}


@cache
def problems_of(title: str) -> tuple[Problem, ...]:
    case = CASES[title]
    return planned(
        case.operations, head=case.head, world=case.world, input_id=case.input_id, output=case.output
    ).problems


def test_twelve_faults(update_golden: bool) -> None:
    compare(FOLDER / "twelve.txt", render_full(Workspace.open(FAULTY).problems()) + "\n", update=update_golden)


def test_they_are_twelve_kinds_in_three_files() -> None:
    problems = Workspace.open(FAULTY).problems()
    assert len(problems) == len({problem.code for problem in problems}) == 12
    assert len({problem.span.source.name for problem in problems if problem.span}) == 3
    assert all(problem.span and problem.hint() for problem in problems)


def test_operations(update_golden: bool) -> None:
    blocks = []
    for title, case in CASES.items():
        written = indent("\n".join(filter(None, (case.head, case.operations.rstrip("\n")))), "> ")
        blocks.append(f"=== {title}\n{written}\n\n{render_full(problems_of(title))}")
    blocks += [f"=== {title}\n\n{render_full([problem])}" for title, problem in WHEN_RUN.items()]
    compare(FOLDER / "operations.txt", "\n\n".join(blocks) + "\n", update=update_golden)


@pytest.mark.parametrize("title", CASES)
def test_one_fault_has_one_report(title: str) -> None:
    assert len(problems_of(title)) == (3 if title == "an append with a column too many" else 1)


def test_every_kind_is_shown() -> None:
    shown = [*(problem for title in CASES for problem in problems_of(title)), *WHEN_RUN.values()]
    assert set(OPERATION_PROBLEMS) <= {type(problem) for problem in shown}
    assert set(DestinationReason) == {problem.reason for problem in shown if isinstance(problem, InvalidDestination)}


def test_every_report_has_a_hint() -> None:
    for title in CASES:
        assert all(problem.hint() for problem in problems_of(title)), title

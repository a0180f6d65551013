"""`dobo formula`: one expression, its type and the Spark SQL it becomes."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from dobonomodo.cli.console import Exit, Json, show, show_json, show_problems, stop, usage_error

if TYPE_CHECKING:
    from dobonomodo.formula import Scope
    from dobonomodo.plan.facts import RunFacts


@dataclass(frozen=True, slots=True)
class Checked:
    """A formula that has no problems."""

    expression: str
    type: str
    sql: str
    columns: list[str]

    def to_dict(self) -> dict[str, object]:
        """As plain data."""
        return asdict(self)


def formula(
    expression: Annotated[str, typer.Argument(help="The expression, in quotes.")],
    column: Annotated[
        list[str] | None,
        typer.Option(
            "--column", "-c", metavar="NAME:TYPE", help="A column that it can use; `fx.rate:decimal` for a joined one."
        ),
    ] = None,
    selector: Annotated[
        list[str] | None,
        typer.Option("--selector", metavar="NAME=EXPR", help="A selector that it can use as {{NAME}}."),
    ] = None,
    group_by: Annotated[
        list[str] | None, typer.Option("--group-by", metavar="COLUMN", help="Check it as an aggregation with this key.")
    ] = None,
    started_at: Annotated[
        str | None,
        typer.Option(
            "--started-at", metavar="TIME", help="The time for NOW() and TODAY(); the default is the current time."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Check one expression; show its type and the Spark SQL it becomes."""
    from dobonomodo.formula import check_formula, columns_of, flat_name, parse, print_formula, render_formula
    from dobonomodo.problems import Passage

    run = _facts(started_at)
    scope = _scope(column or [], selector or [], group_by)
    passage = Passage.alone(expression)
    checked = check_formula(passage, scope)
    parsed = parse(passage).tree
    if checked.tree is None or parsed is None:
        if as_json:
            show_json("formula", None, problems=checked.problems, ok=False)
        else:
            show_problems(checked.problems)
        stop(Exit.FAILURE)
    columns = [flat_name(each) for each in columns_of(checked.tree)]
    sql = render_formula(checked.tree, run)
    if as_json:
        show_json("formula", Checked(print_formula(parsed), str(checked.type), sql, columns), problems=checked.problems)
        return
    show_problems(checked.problems)
    show(f"formula  {print_formula(parsed)}")
    show(f"type     {checked.type}")
    show(f"reads    {', '.join(columns) or 'nothing'}")
    show(f"sql      {sql}")


def _scope(columns: list[str], selectors: list[str], group_by: list[str] | None) -> Scope:
    from dobonomodo.formula import Columns, Scope, Type, parse_type
    from dobonomodo.formula.types import TYPE_NAMES
    from dobonomodo.problems import Passage

    own: dict[str, Type] = {}
    joined: dict[str, dict[str, Type]] = {}
    for text in columns:
        path, colon, type_name = text.rpartition(":")
        kind = parse_type(type_name)
        if not colon or not path:
            usage_error(f"`{text}` is not NAME:TYPE, such as `amount:decimal`")
        if kind is None:
            usage_error(f"`{type_name}` is not a type; available: {', '.join(TYPE_NAMES)}")
        if "${" in path:
            usage_error(f"a column name cannot contain `${{`: `{path}`")
        alias, dot, name = path.partition(".")
        if dot:
            joined.setdefault(alias, {})[name] = kind
        else:
            own[path] = kind
    pairs = [text.partition("=") for text in selectors]
    if wrong := next((text for text, (_, sign, _) in zip(selectors, pairs, strict=True) if not sign), None):
        usage_error(f'`{wrong}` is not NAME=EXPR, such as `active=status = "open"`')
    scope = Scope(
        columns=Columns(own),
        joined={alias: Columns(types) for alias, types in joined.items()},
        selectors={name.strip(): Passage.alone(text, name=f"selector {name.strip()}") for name, _, text in pairs},
        windows=group_by is None,
    )
    return scope if group_by is None else _group(scope, group_by)


def _group(scope: Scope, group_by: list[str]) -> Scope:
    from dataclasses import replace

    keys = []
    for name in group_by:
        alias, dot, column = name.rpartition(".")
        key = scope.resolve(column, alias if dot else None)
        if key is None:
            usage_error(f"`{name}` is not one of the columns given with --column")
        keys.append(key)
    return replace(scope, group_by=tuple(keys))


def _facts(started_at: str | None) -> RunFacts:
    """The run that the expression is rendered for: this clock, and its month as the period."""
    from calendar import monthrange

    from dobonomodo.cli.plan import moment
    from dobonomodo.plan.facts import RunFacts

    now = moment(started_at) or datetime.now(UTC).replace(microsecond=0)
    first = now.date().replace(day=1)
    return RunFacts(now, f"{first:%Y-%m}", first, first.replace(day=monthrange(first.year, first.month)[1]))

"""From syntax tree to checked tree: names, types, aggregates, selectors. Finds all problems of an expression, not the first."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date, datetime
from decimal import Decimal
from typing import assert_never

from dobonomodo.formula import tree
from dobonomodo.formula.conversion import (
    convert,
    make_comparable,
    narrowest_type,
    number_for_null,
    number_literal,
    parse_moment,
)
from dobonomodo.formula.functions.catalogue import FUNCTION_BY_NAME, FUNCTIONS
from dobonomodo.formula.functions.foreign import INSTEAD, INSTEAD_OVER, UNSUPPORTED_AGGREGATES
from dobonomodo.formula.functions.signature import Function, Parameter, Signature
from dobonomodo.formula.functions.signature import piece as text_piece
from dobonomodo.formula.parse import MAX_DEPTH, MAX_TOKENS, parse
from dobonomodo.formula.print import print_formula
from dobonomodo.formula.render import rendered_depth, rendered_size
from dobonomodo.formula.scope import MADE_BY, MAKER, PARAM, Scope
from dobonomodo.formula.typed import (
    Apply,
    Cast,
    Literal,
    Operation,
    Order,
    Over,
    ParameterRef,
    Typed,
    decimal_of,
    flat_name,
)
from dobonomodo.formula.types import (
    BOOLEAN,
    DATE,
    INTEGER,
    NULL,
    TEXT,
    TIMESTAMP,
    UNKNOWN,
    DecimalType,
    Type,
    describe,
    fits,
    is_number,
    type_product,
    type_quotient,
    type_sum,
    unify,
)
from dobonomodo.problems import Passage, Problem, Span, in_order
from dobonomodo.problems.formula import (
    AggregateNotAllowed,
    AggregateReason,
    ExpressionSyntax,
    InvalidAggregate,
    InvalidDate,
    InvalidWindow,
    NullComparison,
    SelectorCycle,
    SelectorUndefined,
    SyntaxReason,
    TypeMismatch,
    UnknownColumn,
    UnknownFunction,
    WindowReason,
    WrongArity,
)
from dobonomodo.problems.operation import MakerReason, UnknownOperation
from dobonomodo.problems.parameter import UnknownParameter

MAX_SQL = 100_000
"""Characters of Spark SQL that one expression may become; ten times as many exhaust the memory of the driver."""
MAX_SQL_DEPTH = 200
"""Brackets and CASEs inside each other, of which some functions need several. Between 210 and 320 of them fill the stack
of 1 MB that a thread of Java has by default, when Spark's parser runs before Java has compiled it (4.3)."""

HOLE = Literal(None, UNKNOWN)
"""A placeholder for an expression with a reported problem, so that checking can continue."""

_ARITHMETIC = {"+": type_sum, "-": type_sum, "*": type_product, "/": type_quotient}


@dataclass(frozen=True, slots=True)
class Checked:
    """The result of checking an expression. With errors among the problems, ``tree`` must not be used."""

    tree: Typed | None
    problems: tuple[Problem, ...] = ()
    selectors: frozenset[str] = frozenset()
    """The selectors it refers to, directly or through others."""
    parameters: frozenset[str] = frozenset()
    """The parameters it reads, in selectors too."""

    @property
    def type(self) -> Type:
        """The type of the value; unknown where there is a problem."""
        return self.tree.type if self.tree else UNKNOWN


def check_formula(
    passage: Passage, scope: Scope, *, wanted: Type | None = None, what: str = "this expression"
) -> Checked:
    """Parse and check an expression in a ``scope``; ``wanted`` is the required type."""
    parsed = parse(passage)
    if parsed.tree is None:
        return Checked(None, in_order(parsed.problems))
    checker = _Checker(scope, passage, depth=parsed.tree.depth)
    node = checker.check_whole(parsed.tree, wanted=wanted, what=what)
    problems = in_order([*parsed.problems, *checker.problems])
    return Checked(
        None if _failed(problems) else node, problems, frozenset(checker.used), frozenset(checker.read_parameters)
    )


def _failed(problems: Iterable[Problem]) -> bool:
    return any(problem.severity == "error" for problem in problems)


class _Checker:
    def __init__(self, scope: Scope, passage: Passage, *, depth: int) -> None:
        self.scope = scope
        self.passage = passage
        self.problems: list[Problem] = []
        self.selectors: list[str] = []
        self.used: set[str] = set()
        self.read_parameters: set[str] = set()
        self.depth = depth
        self.visited = 0
        self.aggregate: str | None = None
        self.window: str | None = None
        self.found_aggregate = False
        self.ungrouped: list[tuple[tree.Column, Passage]] = []

    # --- the whole

    def check_whole(self, node: tree.Expression, *, wanted: Type | None, what: str) -> Typed:
        checked = self.check(node)
        if self.scope.group_by is not None:
            self._check_grouping()
        if wanted is not None:
            checked = self._want(checked, wanted, node, what=what)
        if _failed(self.problems):
            return checked
        if rendered_size(checked) > MAX_SQL:
            return self._too_large(node, SyntaxReason.TOO_MANY_PARTS, MAX_TOKENS)
        if rendered_depth(checked) > MAX_SQL_DEPTH:
            return self._too_large(node, SyntaxReason.TOO_DEEP, MAX_SQL_DEPTH)
        return checked

    def _check_grouping(self) -> None:
        """Columns outside aggregate functions must be group keys, and there must be an aggregate function."""
        keys = tuple(flat_name(key) for key in self.scope.group_by or ())
        if not self.found_aggregate:
            name = print_formula(self.ungrouped[0][0]) if self.ungrouped else ""
            if not _failed(self.problems):
                self.problems.append(
                    InvalidAggregate(
                        span=self.passage.span(0, len(self.passage.value)),
                        expression=self.passage.value,
                        reason=AggregateReason.NONE,
                        name=name,
                    )
                )
            return
        for column, passage in self.ungrouped:
            self.problems.append(
                InvalidAggregate(
                    span=passage.span(column.start, column.end),
                    expression=passage.value,
                    reason=AggregateReason.UNGROUPED,
                    name=print_formula(column),
                    group_by=keys,
                )
            )

    # --- one node

    def check(self, node: tree.Expression) -> Typed:
        """The checked form of a node, or a hole where it has a problem."""
        self.visited += 1
        if self.visited > MAX_TOKENS:
            return self._too_large(node, SyntaxReason.TOO_MANY_PARTS, MAX_TOKENS)
        match node:
            case tree.Number():
                return number_literal(node.value)
            case tree.Text():
                return Literal(node.value, TEXT)
            case tree.Truth():
                return Literal(node.value, BOOLEAN)
            case tree.Null():
                return Literal(None, NULL)
            case tree.Column():
                return self._column(node)
            case tree.SelectorRef():
                return self._selector(node)
            case tree.Call():
                return self._call(node)
            case tree.Over():
                return self._over(node)
            case tree.Negate():
                return self._negate(node)
            case tree.Binary():
                return self._binary(node)
            case tree.Logic():
                operands = tuple(self._condition(each, what=node.operator) for each in node.operands)
                return Operation(node.operator, operands, BOOLEAN)
            case tree.Not():
                return Operation("NOT", (self._condition(node.operand, what="NOT"),), BOOLEAN)
            case tree.IsNull():
                operator = "IS NOT NULL" if node.negated else "IS NULL"
                return Operation(operator, (self.check(node.operand),), BOOLEAN)
            case tree.In():
                return self._compare(node, "NOT IN" if node.negated else "IN", (node.operand, *node.items))
            case tree.Between():
                operator = "NOT BETWEEN" if node.negated else "BETWEEN"
                return self._compare(node, operator, (node.operand, node.low, node.high), ordered=True)
            case tree.Like():
                operator = "NOT LIKE" if node.negated else "LIKE"
                operands = tuple(
                    self._want(self.check(each), TEXT, each, what=operator) for each in (node.operand, node.pattern)
                )
                return Operation(operator, operands, BOOLEAN)
            case tree.Case():
                return self._case(node)
            case _:
                assert_never(node)

    def _parameter(self, node: tree.Column) -> Typed:
        known = self.scope.parameters
        stored = known.spelling(node.name) if known is not None else None
        if known is None or stored is None:
            self._report(UnknownParameter, node, name=node.name, known=tuple(known or ()), allowed=known is not None)
            return HOLE
        self.read_parameters.add(stored)
        return ParameterRef(stored, known[stored])

    def _column(self, node: tree.Column) -> Typed:
        if self.scope.names_parameter(node.qualifier):
            return self._parameter(node)
        found = self.scope.resolve(node.name, node.qualifier)
        if found is None:
            self.problems.append(self._unknown_column(node))
            return HOLE
        if self.scope.group_by is not None and self.aggregate is None and found not in self.scope.group_by:
            self.ungrouped.append((node, self.passage))
        return found

    def _unknown_column(self, node: tree.Column) -> Problem:
        scope, qualifier = self.scope, node.qualifier
        known: tuple[str, ...] = tuple(scope.columns)
        if qualifier is not None and not scope.is_main(qualifier):
            alias = scope.alias(qualifier)
            known = tuple(scope.joined[alias]) if alias is not None else ()
        upcoming = {name.casefold() for name in scope.upcoming}
        elsewhere = (scope.table, *scope.joined) if qualifier is None else ()
        under = [each for each in elsewhere if each and scope.resolve(node.name, each)]
        if qualifier is None and scope.parameters is not None and scope.parameters.spelling(node.name) is not None:
            under.append(PARAM)
        return UnknownColumn(
            span=self._span(node),
            expression=self.passage.value,
            name=node.name,
            qualifier=qualifier,
            known=known,
            state=scope.state if qualifier is None or scope.is_main(qualifier) else None,
            known_qualifiers=tuple(filter(None, (scope.table, *scope.joined))),
            also_under=tuple(under),
            made_by_this_update=(qualifier is None or scope.is_main(qualifier)) and node.name.casefold() in upcoming,
        )

    def _selector(self, node: tree.SelectorRef) -> Typed:
        name = node.name
        if name not in self.scope.selectors:
            known = tuple(self.scope.selectors)
            self._report(SelectorUndefined, node, name=name, known=known)
            return HOLE
        self.used.add(name)
        if name in self.selectors:
            circle = (*self.selectors[self.selectors.index(name) :], name)
            self._report(SelectorCycle, node, names=circle)
            return HOLE
        passage = self.scope.selectors[name]
        parsed = parse(passage)
        self.problems.extend(parsed.problems)
        if parsed.tree is None:
            return HOLE
        if self.depth + parsed.tree.depth > MAX_DEPTH:
            return self._too_large(node, SyntaxReason.TOO_DEEP, MAX_DEPTH)
        with self._inside_selector(name, passage, parsed.tree.depth):
            return self._condition(parsed.tree, what=f"selector `{name}`")

    @contextmanager
    def _inside_selector(self, name: str, passage: Passage, depth: int) -> Iterator[None]:
        outer = self.passage
        self.passage, self.depth = passage, self.depth + depth
        self.selectors.append(name)
        yield
        self.selectors.pop()
        self.passage, self.depth = outer, self.depth - depth

    def _negate(self, node: tree.Negate) -> Typed:
        operand = self.check(node.operand)
        if isinstance(operand, Literal) and isinstance(operand.value, Decimal | int) and is_number(operand.type):
            return number_literal(Decimal(operand.value).copy_negate())
        if operand.type == NULL:
            operand = Literal(None, INTEGER)
        if not is_number(operand.type) and operand.type != UNKNOWN:
            self._mismatch(node.operand, what="`-`", expected="a number", found=operand.type)
            return HOLE
        return Operation("NEGATE", (operand,), operand.type)

    def _condition(self, node: tree.Expression, *, what: str) -> Typed:
        return self._want(self.check(node), BOOLEAN, node, what=what)

    def _case(self, node: tree.Case) -> Typed:
        tests = [self._condition(test, what="WHEN") for test, _ in node.branches]
        written = [value for _, value in node.branches] + ([node.otherwise] if node.otherwise else [])
        values = [self.check(value) for value in written]
        common = self._common(values, written, what="CASE")
        if common is None:
            return HOLE
        converted = [convert(value, common) for value in values]
        if node.otherwise is None:
            converted.append(Literal(None, common))
        operands = [each for pair in zip(tests, converted, strict=False) for each in pair]
        return Operation("CASE", (*operands, converted[-1]), common)

    # --- operators

    def _binary(self, node: tree.Binary) -> Typed:
        if node.operator == "&":
            return self._join_text(node)
        if node.operator not in _ARITHMETIC:
            return self._compare(node, node.operator, (node.left, node.right), ordered=node.operator not in ("=", "<>"))
        left, right = self.check(node.left), self.check(node.right)
        if UNKNOWN in (left.type, right.type):
            for at, kind in ((node.left, left.type), (node.right, right.type)):
                if kind in (TEXT, BOOLEAN):
                    advice = _arithmetic_advice(node.operator, kind)
                    self._mismatch(at, what=f"`{node.operator}`", expected="numbers", found=kind, advice=advice)
            return HOLE
        if (left.type == DATE and node.operator in "+-") or (right.type == DATE and node.operator == "+"):
            return self._shift_date(node, left, right)
        left, right = number_for_null(left, right.type), number_for_null(right, left.type)
        wrong = [(at, each.type) for at, each in ((node.left, left), (node.right, right)) if not is_number(each.type)]
        for at, kind in wrong:
            advice = _arithmetic_advice(node.operator, kind)
            self._mismatch(at, what=f"`{node.operator}`", expected="numbers", found=kind, advice=advice)
        if wrong:
            return HOLE
        if left.type == right.type == INTEGER and node.operator != "/":
            return Operation(node.operator, (left, right), INTEGER)
        types = _ARITHMETIC[node.operator](decimal_of(left), decimal_of(right))
        return Operation(node.operator, (convert(left, types.left), convert(right, types.right)), types.result)

    def _shift_date(self, node: tree.Binary, left: Typed, right: Typed) -> Typed:
        """``date + days``, ``days + date``, ``date - days`` and ``date - date``."""
        if left.type == right.type == DATE and node.operator == "-":
            return Operation("DAYS BETWEEN", (left, right), INTEGER)
        day, count, written = (left, right, node.right) if left.type == DATE else (right, left, node.left)
        if count.type not in (INTEGER, NULL):
            expected = "whole days" if node.operator == "+" else "whole days or a date"
            advice = "`DATE(text)` converts text to a date" if count.type == TEXT and node.operator == "-" else None
            what = f"`{node.operator}` beside a date"
            self._mismatch(written, what=what, expected=expected, found=_found(count.type), advice=advice)
            return HOLE
        operator = "ADD DAYS" if node.operator == "+" else "SUBTRACT DAYS"
        return Operation(operator, (day, convert(count, INTEGER)), DATE)

    def _join_text(self, node: tree.Binary) -> Typed:
        operands = []
        for written in (node.left, node.right):
            operand = self.check(written)
            if operand.type == NULL:
                operand = Literal(None, TEXT)
            if not text_piece.accepts(operand.type):
                advice = 'choose a format: `TEXT(x, "0.00")`' if is_number(operand.type) else None
                if operand.type == BOOLEAN:
                    advice = "`&` and `||` join texts; use `AND` and `OR` for conditions"
                found = _found(operand.type)
                self._mismatch(written, what="`&`", expected=text_piece.wanted, found=found, advice=advice)
                operand = HOLE
            operands.append(operand if operand.type in (TEXT, UNKNOWN) else Cast(operand, TEXT))
        return Operation("&", tuple(operands), TEXT)

    def _compare(
        self, node: tree.Expression, operator: str, written: Sequence[tree.Expression], *, ordered: bool = False
    ) -> Typed:
        operands = [self.check(each) for each in written]
        moments = [each.type for each in operands if each.type in (DATE, TIMESTAMP)]
        if moments:
            operands = [self._moment(operand, each, moments) for operand, each in zip(operands, written, strict=True)]
        if len(written) == 2 and any(isinstance(each, tree.Null) for each in written):
            other = written[1] if isinstance(written[0], tree.Null) else written[0]
            self._report(NullComparison, node, operator=operator, operand=print_formula(other))
        common = self._common(operands, written, what=f"`{operator}`")
        if common is None or common == UNKNOWN:
            return Operation(operator, tuple(operands), BOOLEAN)
        if ordered and common == BOOLEAN:
            self._mismatch(written[0], what=f"`{operator}`", expected="values that can be ordered", found=common)
        return Operation(operator, tuple(make_comparable(operands, common)), BOOLEAN)

    def _moment(self, operand: Typed, written: tree.Expression, moments: Sequence[Type]) -> Typed:
        """A text literal that is compared with dates or times is converted to one."""
        if not (isinstance(operand, Literal) and isinstance(operand.value, str)):
            return operand
        value = parse_moment(operand.value)
        if value is None:
            self._report(InvalidDate, written, text=operand.value)
            return HOLE
        if isinstance(value, datetime):
            return Literal(value, TIMESTAMP)
        return convert(Literal(value, DATE), TIMESTAMP if TIMESTAMP in moments else DATE)

    def _common(self, operands: Sequence[Typed], written: Sequence[tree.Expression], *, what: str) -> Type | None:
        """The common type of all operands; otherwise a problem at the first operand that does not fit."""
        common = unify(each.type for each in operands)
        if common is not None:
            return narrowest_type(operands) if isinstance(common, DecimalType) else common
        for count in range(2, len(operands) + 1):
            before = unify(each.type for each in operands[: count - 1])
            if before is not None and unify((before, operands[count - 1].type)) is None:
                self._report_pair(operands[count - 1], written[count - 1], before, what=what)
                break
        return None

    def _report_pair(self, operand: Typed, written: tree.Expression, before: Type, *, what: str) -> None:
        advice = None
        if isinstance(operand, Literal) and isinstance(operand.value, str) and is_number(before):
            plain = re.fullmatch(r"\s*-?[0-9]+(\.[0-9]+)?\s*", operand.value)
            advice = (
                f"write {operand.value.strip()} without quotes" if plain else "`VALUE(text)` converts text to a number"
            )
        elif before == TEXT and is_number(operand.type):
            advice = "if it is text, such as an account code, put it in quotes; `VALUE(text)` converts text to a number"
        elif {before, operand.type} <= {TEXT, DATE, TIMESTAMP}:
            advice = "`DATE(text)` converts text to a date"
        self._mismatch(
            written,
            what=what,
            expected=f"values of one kind, here {describe(before)}",
            found=operand.type,
            advice=advice,
        )

    # --- functions

    def _call(self, node: tree.Call) -> Typed:
        if node.name == MADE_BY:
            return self._made_by(node)
        function = FUNCTION_BY_NAME.get(node.name)
        if node.star:
            return self._call_star(node, function)
        if function is None:
            return self._unknown_function(node)
        if function.needs_window:
            return self._without_window(node, function)
        if function.is_aggregate:
            return self._aggregate(node, function)
        return self._apply(node, function)

    def _made_by(self, node: tree.Call) -> Typed:
        """Whether an operation made the row: its name is replaced by its number, which may change."""
        usage = (f'{MADE_BY}("name of an operation")',)
        if node.star or len(node.arguments) != 1:
            self._report(WrongArity, node, function=node.name, given=len(node.arguments) + node.star, usage=usage)
            return HOLE
        (written,) = node.arguments
        if not isinstance(written, tree.Text):
            self._mismatch(
                written,
                what=f"`{MADE_BY}`",
                expected="the name of an operation in quotes",
                found=describe(self.check(written).type),
            )
            return HOLE
        numbers = (self.scope.makers or {}).get(written.value, ())
        if len(numbers) != 1:
            reason = MakerReason.UNKNOWN
            if self.scope.makers is None:
                reason = MakerReason.OTHER_ROWS
            elif numbers:
                reason = MakerReason.SEVERAL
            elif written.value in self.scope.idle:
                reason = MakerReason.NO_ROWS
            known = tuple(self.scope.makers or ())
            self._report(UnknownOperation, written, name=written.value, reason=reason, known=known, numbers=numbers)
            return HOLE
        maker = self._column(tree.Column(MAKER, start=node.start, end=node.end))
        return Operation("=", (maker, Literal(numbers[0], INTEGER)), BOOLEAN)

    def _call_star(self, node: tree.Call, function: Function | None) -> Typed:
        if node.name == "COUNT":
            return self._aggregate(node, FUNCTION_BY_NAME["COUNT_ALL"])
        if function is None:
            return self._unknown_function(node)
        self._report(
            WrongArity,
            node,
            function=node.name,
            given=1,
            usage=function.usages(),
            instead="`*` is only allowed in `COUNT(*)`",
        )
        return HOLE

    def _unknown_function(self, node: tree.Call) -> Typed:
        before, ungrouped = self.found_aggregate, len(self.ungrouped)
        for argument in node.arguments:
            self.check(argument)
        grouping = self.scope.group_by is not None and self.aggregate is None and self.found_aggregate == before
        if grouping and node.name in UNSUPPORTED_AGGREGATES:
            del self.ungrouped[ungrouped:]
            supported = tuple(function.name for function in FUNCTIONS if function.is_aggregate)
            reason = AggregateReason.UNSUPPORTED
            self._report(InvalidAggregate, _name_of(node), reason=reason, name=node.name, supported=supported)
            return HOLE
        known = tuple(name for name, function in FUNCTION_BY_NAME.items() if self._is_offered(function))
        known = (*known, MADE_BY) if self.scope.makers is not None else known
        self._report(UnknownFunction, _name_of(node), name=node.name, known=known, instead=INSTEAD.get(node.name))
        return HOLE

    def _is_offered(self, function: Function) -> bool:
        """Whether a function may be called here."""
        over_rows = function.window is not None and self.scope.windows
        if function.is_aggregate:
            return over_rows or self.scope.group_by is not None
        return over_rows or not function.needs_window

    def _aggregate(self, node: tree.Call, function: Function) -> Typed:
        if self.window is not None:
            self._report(InvalidWindow, node, reason=WindowReason.NESTED, name=node.name)
        elif self.scope.group_by is None:
            over = None
            if self._has_windows and function.window is not None:
                over = print_formula(tree.Over(node, partition=self._suggest_keys((TEXT,))))
            self._report(AggregateNotAllowed, _name_of(node), function=node.name, over=over)
        elif self.aggregate is not None:
            self._report(InvalidAggregate, node, reason=AggregateReason.NESTED, name=node.name)
        outer, self.aggregate, self.found_aggregate = self.aggregate, node.name, True
        try:
            return self._apply(node, function)
        finally:
            self.aggregate = outer

    # --- windows

    @property
    def _has_windows(self) -> bool:
        """Whether windows are allowed here; a named selector is for any place."""
        return self.scope.windows and not self.selectors

    def _over(self, node: tree.Over) -> Typed:
        call = node.call
        function = FUNCTION_BY_NAME.get(call.name)
        if call.star and call.name == "COUNT":
            call, function = replace(call, star=False), FUNCTION_BY_NAME["COUNT_ALL"]
        if function is None or call.star:
            return self._call(call)
        refused = self._refuse_window(node, function)
        with self._inside_window(function.name):
            found = self._apply(call, function) if function.window is not None else self._check_all(call.arguments)
            partition = tuple(self._key(each) for each in node.partition)
            order = tuple(Order(self._key(each.key), each.descending) for each in node.order)
        return Over(found, partition, order) if isinstance(found, Apply) and not refused else HOLE

    def _check_all(self, nodes: Iterable[tree.Expression]) -> Typed:
        """Find the problems of expressions whose results are discarded."""
        for node in nodes:
            self.check(node)
        return HOLE

    @contextmanager
    def _inside_window(self, name: str) -> Iterator[None]:
        outer = self.window, self.aggregate
        self.window = self.aggregate = name
        yield
        self.window, self.aggregate = outer

    def _refuse_window(self, node: tree.Over, function: Function) -> bool:
        """Report a window that is invalid, or not allowed here."""
        name = node.call.name
        if not self._has_windows:
            self._report(AggregateNotAllowed, node, function=name, window=True)
        elif self.window is not None:
            self._report(InvalidWindow, node, reason=WindowReason.NESTED, name=name)
        elif function.window is None:
            supported = tuple(each.name for each in FUNCTIONS if each.window is not None)
            reason, instead = WindowReason.NO_WINDOW_FUNCTION, INSTEAD_OVER.get(name)
            self._report(
                InvalidWindow, _name_of(node.call), reason=reason, name=name, supported=supported, instead=instead
            )
        elif function.window.needs_order and not node.order:
            instead = print_formula(replace(node, order=self._suggest_order()))
            self._report(InvalidWindow, node, reason=WindowReason.NO_ORDER, name=name, instead=instead)
        else:
            return False
        return True

    def _without_window(self, node: tree.Call, function: Function) -> Typed:
        """A function that has a meaning only before OVER."""
        ungrouped = len(self.ungrouped)
        self._apply(node, function)
        del self.ungrouped[ungrouped:]
        if self.scope.group_by is not None:
            supported = tuple(each.name for each in FUNCTIONS if each.is_aggregate)
            reason = AggregateReason.UNSUPPORTED
            self._report(InvalidAggregate, _name_of(node), reason=reason, name=node.name, supported=supported)
        elif not self._has_windows:
            self._report(AggregateNotAllowed, _name_of(node), function=node.name, window=True)
        elif self.window is not None:
            self._report(InvalidWindow, node, reason=WindowReason.NESTED, name=node.name)
        else:
            instead = print_formula(tree.Over(node, order=self._suggest_order()))
            self._report(InvalidWindow, _name_of(node), reason=WindowReason.NO_OVER, name=node.name, instead=instead)
        return HOLE

    def _key(self, node: tree.Expression) -> Typed:
        """A key of a window; a literal, such as a column in quotes, is not a key."""
        key = self.check(node)
        if isinstance(key, Literal | ParameterRef) and key.type != UNKNOWN:
            quoted = key.value if isinstance(key, Literal) else None
            column = self.scope.resolve(quoted) if isinstance(quoted, str) else None
            instead = f"write the column without quotes: `{column.name}`" if column is not None else None
            self._report(
                InvalidWindow, node, reason=WindowReason.CONSTANT_KEY, name=print_formula(node), instead=instead
            )
        return key

    def _suggest_order(self) -> tuple[tree.Ordering, ...]:
        return tuple(tree.Ordering(key) for key in self._suggest_keys((DATE, TIMESTAMP, INTEGER)))

    def _suggest_keys(self, kinds: Sequence[Type]) -> tuple[tree.Expression, ...]:
        """A column to show in an example, of the first of these types if there is one."""
        own = {name: kind for name, kind in self.scope.columns.items() if not name.startswith("_")}
        found = [name for kind in kinds for name, each in own.items() if each == kind]
        return tuple(tree.Column(name) for name in [*found, *own][:1])

    # --- calls

    def _apply(self, node: tree.Call, function: Function) -> Typed:
        operands = [self.check(argument) for argument in node.arguments]
        ways = [
            (way, signature, placed)
            for way, (signature, _) in enumerate(function.ways)
            if (placed := signature.place(len(operands))) is not None
        ]
        if not ways:
            self._report_arity(node, function)
            return HOLE
        accepted = [each for each in ways if all(map(_accepts, each[2], operands))]
        way, signature, placed = accepted[0] if accepted else ways[0]
        if not accepted:
            self._report_argument(node, [each[2] for each in ways], operands)
            return HOLE
        verified = [self._verify(*each, name=node.name) for each in zip(placed, operands, node.arguments, strict=True)]
        if not all(verified):
            return HOLE
        converted = self._share(signature, placed, operands, node)
        if converted is None:
            return HOLE
        return Apply(function, way, tuple(converted), _result(signature, placed, converted))

    def _report_arity(self, node: tree.Call, function: Function) -> None:
        instead = None
        group = FUNCTION_BY_NAME.get(f"{node.name}_AGG")
        if group is not None and len(node.arguments) == 1:
            shown = print_formula(node.arguments[0])
            instead = f"for a group of rows write `{group.name}({shown})`; within one row it needs two or more values"
        self._report(
            WrongArity, node, function=node.name, given=len(node.arguments), usage=function.usages(), instead=instead
        )

    def _report_argument(self, node: tree.Call, ways: Sequence[Sequence[Parameter]], operands: Sequence[Typed]) -> None:
        """The first argument that does not fit, for the signature that accepts the most arguments."""
        firsts = [
            next(
                at
                for at, (parameter, operand) in enumerate(zip(placed, operands, strict=True))
                if not _accepts(parameter, operand)
            )
            for placed in ways
        ]
        at = max(firsts)
        wanted = " or ".join(
            dict.fromkeys(placed[at].wanted for placed, first in zip(ways, firsts, strict=True) if first == at)
        )
        found = operands[at].type
        advice = None
        if is_number(found) and "text" in wanted:
            advice = 'choose a format: `TEXT(x, "0.00")`, or `TO_TEXT(x)`'
        elif found == TEXT and wanted == "a number":
            advice = "`VALUE(text)` converts text to a number"
        elif found == TEXT and "date" in wanted:
            advice = "`DATE(text)` converts text to a date"
        elif isinstance(found, DecimalType) and wanted == "a whole number":
            advice = "`TO_INTEGER(x)` removes the fraction"
        shown = _found(found) if "whole number" in wanted else found
        self._mismatch(node.arguments[at], what=f"`{node.name}`", expected=wanted, found=shown, advice=advice)

    def _verify(self, parameter: Parameter, operand: Typed, written: tree.Expression, *, name: str) -> bool:
        """Whether a literal is one that the parameter can take."""
        is_literal = isinstance(operand, Literal) and operand.value is not None
        if parameter.constant and not is_literal and operand.type != UNKNOWN:
            expected = f"{parameter.wanted} as a literal"
            varies = "run to run" if isinstance(operand, ParameterRef) else "row to row"
            self._mismatch(written, what=f"`{name}`", expected=expected, found=f"a value that can differ from {varies}")
            return False
        if not isinstance(operand, Literal) or operand.value is None:
            return True
        if parameter.verify and (expected_instead := parameter.verify(operand.value)):
            self._mismatch(written, what=f"`{name}`", expected=expected_instead, found=f"`{operand.value}`")
            return False
        if parameter.is_date_text and type(parse_moment(str(operand.value))) is not date:
            self._report(InvalidDate, written, text=str(operand.value))
            return False
        return True

    def _share(
        self, signature: Signature, placed: Sequence[Parameter], operands: Sequence[Typed], node: tree.Call
    ) -> list[Typed] | None:
        """The arguments, those of shared parameters in their common type, a bare NULL in the type of its place."""
        converted = list(operands)
        for letter in dict.fromkeys(parameter.shared for parameter in placed if parameter.shared):
            places = [at for at, parameter in enumerate(placed) if parameter.shared == letter]
            common = self._common(
                [operands[at] for at in places], [node.arguments[at] for at in places], what=f"`{node.name}`"
            )
            if common is None:
                return None
            given = [operands[at] for at in places]
            compared = make_comparable(given, common) if letter == "S" else (convert(each, common) for each in given)
            for at, operand in zip(places, compared, strict=True):
                converted[at] = operand
        for at, parameter in enumerate(placed):
            if not parameter.shared and operands[at].type == NULL:
                converted[at] = convert(operands[at], parameter.default)
        return converted

    # --- problems

    def _want(self, operand: Typed, wanted: Type, written: tree.Expression, *, what: str) -> Typed:
        if not fits(operand.type, wanted):
            self._mismatch(written, what=what, expected=describe(wanted), found=operand.type)
            return HOLE
        return convert(operand, wanted)

    def _mismatch(
        self, node: tree.Expression, *, what: str, expected: str, found: Type | str, advice: str | None = None
    ) -> None:
        if found == UNKNOWN:
            return
        shown = found if isinstance(found, str) else describe(found)
        self._report(TypeMismatch, node, what=what, expected=expected, found=shown, advice=advice)

    def _report(self, kind: type[Problem], node: tree.Expression, **details: object) -> None:
        self.problems.append(kind(span=self._span(node), expression=self.passage.value, **details))  # type: ignore[arg-type]

    def _too_large(self, node: tree.Expression, reason: SyntaxReason, limit: int) -> Typed:
        if not any(isinstance(problem, ExpressionSyntax) for problem in self.problems):
            self._report(ExpressionSyntax, node, reason=reason, limit=limit)
        return HOLE

    def _span(self, node: tree.Expression) -> Span:
        return self.passage.span(node.start, node.end)


def _name_of(node: tree.Call) -> tree.Call:
    """The place of the function's name alone."""
    return replace(node, start=node.name_start, end=node.name_start + len(node.name))


# --- values and conversions


def _found(kind: Type) -> Type | str:
    """A number's type in words, where only a whole number will do."""
    return "a number with a fraction" if isinstance(kind, DecimalType) else kind


def _arithmetic_advice(operator: str, kind: Type) -> str | None:
    if kind == TEXT:
        return (
            "join texts with `&`; `VALUE(text)` converts text to a number"
            if operator == "+"
            else "`VALUE(text)` converts text to a number"
        )
    if kind in (DATE, TIMESTAMP):
        return "add or subtract whole days: `date + 1`, `date - 1`, `date - date`"
    if kind == BOOLEAN:
        return "use `IF(condition, 1, 0)`"
    return None


def _accepts(parameter: Parameter, operand: Typed) -> bool:
    return parameter.accepts(operand.type)


def _result(signature: Signature, placed: Sequence[Parameter], operands: Sequence[Typed]) -> Type:
    if isinstance(signature.result, str):
        letter = signature.result
        return next(
            operand.type for parameter, operand in zip(placed, operands, strict=True) if parameter.shared == letter
        )
    if callable(signature.result):
        return UNKNOWN if any(each.type == UNKNOWN for each in operands) else signature.result(operands)
    return signature.result

"""Parses text to a syntax tree. Any text results in a tree or problems, never in an exception."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any, NamedTuple, TypeVar

from lark import Lark, Token, Transformer, UnexpectedCharacters, UnexpectedToken

from dobonomodo.formula import tree
from dobonomodo.formula.functions.foreign import INSTEAD
from dobonomodo.formula.types import MAX_DIGITS
from dobonomodo.problems import Passage, Problem
from dobonomodo.problems.formula import ExpressionSyntax, SyntaxReason

MAX_LENGTH = 32_768
MAX_DEPTH = 100
"""Spark's own parser gives up between 150 and 200 levels of CASE, whatever the stack."""
MAX_TOKENS = 10_000
_KEPT_LENGTH, _KEPT_TEXTS = 1_000, 1_000
"""Texts up to this length are kept with their trees, so many of them."""

KEYWORDS = frozenset(
    ["AND", "OR", "NOT", "IS", "IN", "BETWEEN", "LIKE", "TRUE", "FALSE", "NULL", "CASE", "WHEN", "THEN", "ELSE", "END"]
)

_SYNONYMS = {"==": "=", "!=": "<>", "||": "&"}
_OPERAND_ENDS = frozenset(
    {"NAME", "QUOTED_NAME", "NUMBER", "PERCENT", "TEXT", "TRUE", "FALSE", "NULL", "SELECTOR", "END", "RPAR"}
)
_BEFORE_A_VALUE = frozenset({"AND", "OR", "NOT", "COMMA", "WHEN", "THEN", "ELSE"})
_OPERATORS = frozenset({"COMPARE", "JOIN_TEXT", "ADD", "SUBTRACT", "STAR", "DIVIDE"})


@dataclass(frozen=True, slots=True)
class Parsed:
    """The result of a text: a tree, or the problems that prevent one.

    A text with a mistake whose meaning is clear has both, so that the rest of it can still be checked.
    """

    tree: tree.Expression | None
    problems: tuple[Problem, ...] = ()


def parse(passage: Passage) -> Parsed:
    """Read an expression."""
    text = passage.value
    found, faults = _parse_kept(text) if len(text) <= _KEPT_LENGTH else _parse(text)
    return Parsed(found, tuple(fault.at(passage) for fault in faults))


class _Fault(NamedTuple):
    """What is wrong with some characters of a text."""

    reason: SyntaxReason
    start: int
    end: int
    found: str = ""
    expected: tuple[str, ...] = ()
    limit: int = 0
    advice: str | None = None

    def at(self, passage: Passage) -> Problem:
        """The problem, where the text is written."""
        return ExpressionSyntax(
            span=passage.span(self.start, self.end),
            expression=passage.value,
            reason=self.reason,
            found=self.found,
            expected=self.expected,
            limit=self.limit,
            advice=self.advice,
        )


_Outcome = tuple[tree.Expression | None, tuple[_Fault, ...]]


def _parse(text: str) -> _Outcome:
    report = _Report()
    if not text.strip():
        return report.stop(SyntaxReason.EMPTY, 0, len(text))
    if lone := re.search(r"[\ud800-\udfff]", text):
        return report.stop(SyntaxReason.UNKNOWN_CHARACTER, lone.start(), lone.end(), found=f"U+{ord(lone[0]):04X}")
    if len(text) > MAX_LENGTH:
        return report.stop(SyntaxReason.TOO_LONG, MAX_LENGTH, MAX_LENGTH + 1, limit=MAX_LENGTH)
    tokens = _lex(text, report)
    if tokens is None:
        return None, tuple(report.faults)
    if not tokens:
        return report.stop(SyntaxReason.EMPTY, 0, len(text))
    if len(tokens) > MAX_TOKENS:
        token = tokens[MAX_TOKENS]
        return report.stop(SyntaxReason.TOO_MANY_PARTS, _start(token), _end(token), limit=MAX_TOKENS)
    parser = _lark().parse_interactive()
    try:
        for token in tokens:
            parser.feed_token(token)
        found: tree.Expression = parser.feed_eof(tokens[-1])  # type: ignore[no-untyped-call]
    except UnexpectedToken as error:
        accepted = parser.accepts()  # type: ignore[no-untyped-call]
        _report_word(error.token, accepted, tokens, report)
        return None, tuple(report.faults)
    except _Limit as error:
        return report.stop(error.reason, error.start, error.end, limit=error.limit)
    return found, tuple(report.faults)


# A plan is made more than once of the same formulas. Trees are frozen, and know nothing of the place of their text.
_parse_kept = lru_cache(maxsize=_KEPT_TEXTS)(_parse)


class _Report:
    """Collects the faults of one text."""

    def __init__(self) -> None:
        self.faults: list[_Fault] = []

    def add(
        self,
        reason: SyntaxReason,
        start: int,
        end: int,
        *,
        found: str = "",
        expected: tuple[str, ...] = (),
        advice: str | None = None,
    ) -> None:
        self.faults.append(_Fault(reason, start, end, found, expected, advice=advice))

    def stop(self, reason: SyntaxReason, start: int, end: int, *, found: str = "", limit: int = 0) -> _Outcome:
        self.faults.append(_Fault(reason, start, end, found, limit=limit))
        return None, tuple(self.faults)


# --- characters to words


def _lex(text: str, report: _Report) -> list[Token] | None:
    """The words of a text, or None when a character among them has no meaning.

    A semicolon is reported and read as the comma it was meant to be, so that the rest is still checked.
    """
    readable = True
    while True:
        try:
            tokens = list(_classify(list(_lark().lex(text))))
        except UnexpectedCharacters as error:
            at: int = error.pos_in_stream  # type: ignore[assignment]
            char = text[at]
            end, repaired = _report_character(text, at, report)
            readable = readable and repaired is not None
            text = text[:at] + (repaired or " " * (end - at)) + text[end:]
            if char in "\"'`" or len(report.faults) >= 10:
                return None
        else:
            return tokens if readable else None


def _report_character(text: str, at: int, report: _Report) -> tuple[int, str | None]:
    """Say what is wrong with a run of characters: where it ends, and what to read instead if it is clear."""
    char = text[at]
    if char in "\"'":
        report.add(SyntaxReason.UNCLOSED_TEXT, at, len(text))
        return len(text), None
    if char == "`":
        report.add(SyntaxReason.UNCLOSED_NAME, at, len(text))
        return len(text), None
    end = at + 1
    while char != ";" and end < len(text) and text[end] == char:
        end += 1
    shown = char if char.isprintable() else f"U+{ord(char):04X}"
    advice = _CHARACTER_ADVICE.get(char)
    if char.isdigit():
        end = at + len(re.match(r"\w+", text[at:]).group())  # type: ignore[union-attr]
        shown, advice = text[at:end], "a name cannot start with a digit; put it in backticks"
    report.add(SyntaxReason.UNKNOWN_CHARACTER, at, end, found=shown, advice=advice)
    return end, "," if char == ";" else None


_CHARACTER_ADVICE = {
    ";": "separate arguments with a comma",
    "“": 'use the straight quote `"`',
    "”": 'use the straight quote `"`',
    "„": 'use the straight quote `"`',
    "‘": "use the straight quote `'`",
    "’": "use the straight quote `'`",
    "%": "for a remainder write `MOD(n, d)`; for a percentage write a number directly before `%`, as in `10%`",
    "^": "write a product, as in `x * x`",
    "!": "write `NOT`, or `<>` for not equal",
    "|": "write `OR`; `||` joins texts",
    "{": "a selector is written `{{NAME}}`",
    "}": "a selector is written `{{NAME}}`",
    "[": "put column names with special characters in backticks",
    "]": "put column names with special characters in backticks",
    ":": "formulas have no cell ranges; write the column name",
    "$": "formulas have no cell addresses; write the column name",
    "×": "multiply with `*`",
    "÷": "divide with `/`",
    "−": "use the hyphen `-` as minus",
    "–": "use the hyphen `-` as minus",
    "≤": "write `<=`",
    "≥": "write `>=`",
    "≠": "write `<>`",
    "\\": "a backslash is only allowed inside a text",
}


def _classify(tokens: list[Token]) -> Iterator[Token]:
    """Distinguish keywords, functions and columns; all three are words to the lexer.

    After a dot every word is a column. NOT, AND and OR directly before a parenthesis are functions where an
    operator is not possible, as in ``flag = NOT(x)`` and ``AND(a, b)``. The words of a window are such only in its place.
    """
    previous = ""
    depth = 0
    windows: list[int] = []
    for token, following in zip(tokens, [*tokens[1:], None], strict=False):
        if token.type == "LPAR":
            depth += 1
            windows += [depth] if previous == "OVER" else []
        elif token.type == "RPAR":
            windows = [each for each in windows if each < depth]
            depth -= 1
        if token.type == "NAME":
            called = following is not None and following.type == "LPAR"
            word = token.upper()
            if previous == "DOT":
                kind = "NAME"
            elif _is_of_window(word, previous, following, within=windows[-1:] == [depth]):
                kind = word
            elif word in ("AND", "OR"):
                kind = "FUNCTION" if called and previous not in _OPERAND_ENDS else word
            elif word == "NOT":
                kind = "FUNCTION" if called and previous in _OPERATORS else word
            elif word in KEYWORDS:
                kind = word
            else:
                kind = "FUNCTION" if called else "NAME"
            token = token.update(type=kind)
        yield token
        previous = token.type


def _is_of_window(word: str, previous: str, following: Token | None, *, within: bool) -> bool:
    """Whether a word is one of ``OVER (PARTITION BY a ORDER BY b DESC)`` at its place; all of them may name columns."""
    match word:
        case "OVER":
            return previous == "RPAR" and following is not None and following.type == "LPAR"
        case "PARTITION" | "ORDER":
            by = following is not None and following.upper() == "BY"
            return within and by and (previous in ("LPAR", "ASC", "DESC") or previous in _OPERAND_ENDS)
        case "BY":
            return within and previous in ("PARTITION", "ORDER")
        case "ASC" | "DESC":
            return within and previous in _OPERAND_ENDS
        case _:
            return False


# --- words to tree


class _Limit(Exception):
    def __init__(self, reason: SyntaxReason, start: int, end: int, limit: int) -> None:
        self.reason, self.start, self.end, self.limit = reason, start, end, limit


_Parts = list[Any]
"""The words and nodes that a rule consists of. Lark knows no types of them; the grammar says what they are."""

_NodeT = TypeVar("_NodeT", bound=tree.Node)


class _Builder(Transformer[Token, tree.Expression]):
    """Builds nodes while the parser reads, without recursion."""

    def _place(
        self, kind: Callable[..., _NodeT], parts: _Parts | list[Token], *values: object, **named: object
    ) -> _NodeT:
        """A node of this kind that spans its parts."""
        depth = 1
        for part in parts:
            if not isinstance(part, Token):
                depth = max(depth, part.depth + 1)
        start, end = _start(parts[0]), _end(parts[-1])
        if depth > MAX_DEPTH:
            raise _Limit(SyntaxReason.TOO_DEEP, start, end, MAX_DEPTH)
        return kind(*values, **named, start=start, end=end, depth=depth)

    def start(self, parts: list[tree.Expression]) -> tree.Expression:
        return parts[0]

    def disjunction(self, parts: _Parts) -> tree.Expression:
        return self._place(tree.Logic, parts, "OR", tuple(parts[::2]))

    def conjunction(self, parts: _Parts) -> tree.Expression:
        return self._place(tree.Logic, parts, "AND", tuple(parts[::2]))

    def negation(self, parts: _Parts) -> tree.Expression:
        return self._place(tree.Not, parts, parts[1])

    def binary(self, parts: _Parts) -> tree.Expression:
        left, operator, right = parts
        return self._place(tree.Binary, parts, _SYNONYMS.get(operator, str(operator)), left, right)

    def is_null(self, parts: _Parts) -> tree.Expression:
        return self._place(tree.IsNull, parts, parts[0], False)

    def is_not_null(self, parts: _Parts) -> tree.Expression:
        return self._place(tree.IsNull, parts, parts[0], True)

    def is_in(self, parts: _Parts) -> tree.Expression:
        return self._in(parts, negated=False)

    def is_not_in(self, parts: _Parts) -> tree.Expression:
        return self._in(parts, negated=True)

    def _in(self, parts: _Parts, *, negated: bool) -> tree.Expression:
        operands = [part for part in parts if not isinstance(part, Token)]
        return self._place(tree.In, parts, operands[0], tuple(operands[1:]), negated)

    def between(self, parts: _Parts) -> tree.Expression:
        return self._place(tree.Between, parts, parts[0], parts[2], parts[4], False)

    def not_between(self, parts: _Parts) -> tree.Expression:
        return self._place(tree.Between, parts, parts[0], parts[3], parts[5], True)

    def like(self, parts: _Parts) -> tree.Expression:
        return self._place(tree.Like, parts, parts[0], parts[2], False)

    def not_like(self, parts: _Parts) -> tree.Expression:
        return self._place(tree.Like, parts, parts[0], parts[3], True)

    def negate(self, parts: _Parts) -> tree.Expression:
        return self._place(tree.Negate, parts, parts[1])

    def number(self, parts: list[Token]) -> tree.Expression:
        return self._number(parts, str(parts[0]), shift=0)

    def percent(self, parts: list[Token]) -> tree.Expression:
        return self._number(parts, parts[0][:-1], shift=-2)

    def _number(self, parts: list[Token], digits: str, *, shift: int) -> tree.Expression:
        mantissa, _, exponent = digits.lower().partition("e")
        scale = len(mantissa.partition(".")[2]) - (int(exponent) if len(exponent) < 6 and exponent else 0) - shift
        whole = len(mantissa.partition(".")[0].lstrip("0")) + len(mantissa.partition(".")[2]) - scale
        if len(exponent) >= 6 or max(whole, 0) + max(scale, 0) > MAX_DIGITS:
            start, end = _start(parts[0]), _end(parts[0])
            raise _Limit(SyntaxReason.NUMBER_TOO_LONG, start, end, MAX_DIGITS)
        return self._place(tree.Number, parts, Decimal(f"{mantissa}e{int(exponent or 0) + shift}"))

    def text(self, parts: list[Token]) -> tree.Expression:
        quote = parts[0][0]
        return self._place(tree.Text, parts, parts[0][1:-1].replace(quote * 2, quote))

    def true(self, parts: list[Token]) -> tree.Expression:
        return self._place(tree.Truth, parts, True)

    def false(self, parts: list[Token]) -> tree.Expression:
        return self._place(tree.Truth, parts, False)

    def null(self, parts: list[Token]) -> tree.Expression:
        return self._place(tree.Null, parts)

    def selector(self, parts: list[Token]) -> tree.Expression:
        return self._place(tree.SelectorRef, parts, parts[0][2:-2].strip())

    def column(self, parts: list[Token]) -> tree.Expression:
        names = [_unquote(part) for part in parts if part.type != "DOT"]
        return self._place(tree.Column, parts, names[-1], names[0] if len(names) == 2 else None)

    def function(self, parts: list[Token]) -> Token:
        return parts[0]

    def call(self, parts: _Parts) -> tree.Expression:
        name, arguments = parts[0].upper(), tuple(part for part in parts[1:] if not isinstance(part, Token))
        if name == "NOT" and len(arguments) == 1:
            return self._place(tree.Not, parts, arguments[0])
        return self._place(tree.Call, parts, name, arguments, name_start=_start(parts[0]))

    def call_star(self, parts: _Parts) -> tree.Expression:
        return self._place(tree.Call, parts, parts[0].upper(), (), star=True, name_start=_start(parts[0]))

    def over(self, parts: _Parts) -> tree.Expression:
        call, *rest = parts
        if isinstance(call, tree.Not):
            call = self._place(tree.Call, [call], "NOT", (call.operand,), name_start=call.start)
        keys = [each for part in rest if isinstance(part, list) for each in part if not isinstance(each, Token)]
        order = tuple(key for key in keys if isinstance(key, tree.Ordering))
        partition = tuple(key for key in keys if not isinstance(key, tree.Ordering))
        return self._place(tree.Over, [call, *keys, parts[-1]], call, partition, order)

    def partition(self, parts: _Parts) -> _Parts:
        return parts

    def order(self, parts: _Parts) -> _Parts:
        return parts

    def ordering(self, parts: _Parts) -> tree.Ordering:
        return self._place(tree.Ordering, parts, parts[0], isinstance(parts[-1], Token) and parts[-1].type == "DESC")

    def when(self, parts: _Parts) -> _Parts:
        return parts

    def case(self, parts: _Parts) -> tree.Expression:
        branches = tuple((part[1], part[3]) for part in parts if isinstance(part, list))
        words = [part for part in parts if not isinstance(part, list)]
        otherwise = next((part for part in words if not isinstance(part, Token)), None)
        flat = [inner for part in parts for inner in (part if isinstance(part, list) else [part])]
        return self._place(tree.Case, flat, branches, otherwise)

    def group(self, parts: _Parts) -> tree.Expression:
        inner: tree.Expression
        opening, inner, closing = parts
        if inner.depth >= MAX_DEPTH:
            raise _Limit(SyntaxReason.TOO_DEEP, _start(opening), _end(closing), MAX_DEPTH)
        return replace(inner, start=_start(opening), end=_end(closing), depth=inner.depth + 1)


def _start(part: Token | tree.Node) -> int:
    return (part.start_pos or 0) if isinstance(part, Token) else part.start


def _end(part: Token | tree.Node) -> int:
    return (part.end_pos or 0) if isinstance(part, Token) else part.end


def _unquote(token: Token) -> str:
    return token[1:-1].replace("``", "`") if token.type == "QUOTED_NAME" else str(token)


@cache
def _lark() -> Lark:
    grammar = files("dobonomodo.formula").joinpath("grammar.lark").read_text(encoding="utf-8")
    reader = Lark(
        grammar, parser="lalr", lexer="basic", transformer=_Builder(), keep_all_tokens=True, maybe_placeholders=False
    )
    # Otherwise ``lex`` compiles its patterns again for every text (lark 1.3).
    reader.lexer = reader._build_lexer()  # noqa: SLF001
    return reader


# --- what to say of a word in the wrong place

_EXPECTED = {
    "NUMBER": "a value",
    "RPAR": "`)`",
    "LPAR": "`(`",
    "COMMA": "`,`",
    "COMPARE": "an operator",
    "THEN": "`THEN`",
    "WHEN": "`WHEN`",
    "END": "`END`",
    "NULL": "`NULL`",
    "NAME": "a column name",
    "PARTITION": "`PARTITION BY`",
    "ORDER": "`ORDER BY`",
    "BY": "`BY`",
}


def _report_word(token: Token, accepted: set[str], tokens: list[Token], report: _Report) -> None:
    """Say which word is misplaced, and what was meant if it is one of the usual mistakes."""
    expected = tuple(words for kind, words in _EXPECTED.items() if kind in accepted)
    if _EXPECTED["NUMBER"] in expected:
        expected = (_EXPECTED["NUMBER"],)
    if token.type == "$END":
        end = _end(tokens[-1])
        opened = [each.type for each in tokens].count("LPAR") > [each.type for each in tokens].count("RPAR")
        advice = "a closing parenthesis is missing" if opened else None
        report.add(SyntaxReason.UNFINISHED, end - 1, end, expected=expected, advice=advice)
        return
    at = next(place for place, each in enumerate(tokens) if each is token)
    previous = tokens[at - 1] if at else None
    if token.type == "COMPARE" and _compares_before(tokens[:at]):
        report.add(SyntaxReason.CHAINED_COMPARISON, _start(token), _end(token), found=str(token))
        return
    report.add(
        SyntaxReason.UNEXPECTED,
        _start(token),
        _end(token),
        found=str(token),
        expected=expected,
        advice=_advise(token, previous, tokens),
    )


def _compares_before(tokens: list[Token]) -> bool:
    """Whether there is a comparison at the same level before here, with an operand after it."""
    level = 0
    for token in reversed(tokens):
        level += (token.type == "RPAR") - (token.type == "LPAR")
        if level < 0 or (level == 0 and token.type in _BEFORE_A_VALUE):
            return False
        if level == 0 and token.type == "COMPARE":
            return token is not tokens[-1]
    return False


def _inside_number(tokens: list[Token], comma: Token) -> bool:
    """Whether there are digits directly on both sides of a comma."""
    touching = {_end(each) for each in tokens if each.type == "NUMBER"} | {
        _start(each) for each in tokens if each.type == "NUMBER"
    }
    return _start(comma) in touching and _end(comma) in touching


def _advise_window(token: Token, previous: Token | None, tokens: list[Token]) -> str | None:
    """What is meant by words that SQL has around windows."""
    word = token.upper()
    if word == "OVER" and previous is not None and previous.type == "RPAR":
        behind = "directly behind a function" if token.type == "OVER" else "with parentheses"
        return f"a window is written {behind}: `SUM(amount) OVER (PARTITION BY region)`"
    if previous is not None and previous.upper() == "DISTINCT" and previous.type == "NAME":
        return "write `COUNT_DISTINCT(x)` in an aggregate; there is no DISTINCT in a window"
    if not any(each.type == "OVER" for each in tokens):
        return None
    if word in ("ROWS", "RANGE"):
        return (
            "leave it out: with `ORDER BY` a total runs up to the row and those equal to it, without it is of all rows"
        )
    if word == "NULLS":
        return "leave it out: NULL comes first, with `DESC` last"
    if word == "BY" and previous is not None and previous.upper() == "ORDER":
        return "there is no comma before `ORDER BY`"
    if token.type == "PARTITION":
        return "`PARTITION BY` comes before `ORDER BY`, and once"
    if word in ("DESCENDING", "ASCENDING"):
        return f"write `{word[:4].rstrip('E')}`"
    return None


def _advise(token: Token, previous: Token | None, tokens: list[Token]) -> str | None:
    if advice := _advise_window(token, previous, tokens):
        return advice
    if token.upper() == "AS" and any(each.type == "FUNCTION" and each.upper() == "CAST" for each in tokens):
        return INSTEAD["CAST"]
    pair = f"{previous or ''}{token}"
    if pair in ("=<", "=>", "=!", "&&"):
        return {"=<": "write `<=`", "=>": "write `>=`", "=!": "write `<>`", "&&": "write `AND`"}[pair]
    if token == "=" and previous is None:
        return "remove the `=` at the start"
    if token.type == "ADD":
        return "remove the `+`"
    if token.type == "DOT" and previous is not None and previous.type in ("NAME", "QUOTED_NAME"):
        return "a column has at most one qualifier, as in `orders.amount`"
    if token.type == "DOT" and previous is not None and previous.type == "NUMBER":
        return "write a digit after the point, or remove the point"
    if token.type == "DOT":
        return "write a digit before the point, as in `0.5`"
    if token.type == "COMMA" and _inside_number(tokens, token):
        return "use a decimal point, and no thousands separator"
    if (
        token.upper() in KEYWORDS
        and token.type != "TEXT"
        and (previous is None or previous.type in _OPERATORS | {"COMMA", "LPAR"})
    ):
        return f"if `{token}` is a column, put it in backticks"
    if previous is not None and previous.type in ("NAME", "QUOTED_NAME") and token.type in ("NAME", "QUOTED_NAME"):
        return "put a name with a space in backticks; put an operator or a comma between two values"
    return None

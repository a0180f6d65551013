"""Common mistakes in YAML and what to write instead: tabs, and formulas that need quotes."""

from __future__ import annotations

import re
from dataclasses import dataclass

QUOTED_AT_MOST = 60
"""Characters of a value that are repeated in an advice."""

_ENTRY = re.compile(r"(?:^|[\s{,\[])(?P<key>[A-Za-z_][\w.-]*):[ \t]+(?P<value>\S.*)$")
_NEXT_ENTRY = re.compile(r",\s*[A-Za-z_][\w.-]*:(?:\s|$)")
_STARTERS = {"`": "a backtick"} | {each: f"`{each}`" for each in "%@*&!>|"}
_COMMENT = re.compile(r"\s#.*$")
_MASK = "**"
"""How a secret starts that is masked."""


@dataclass(frozen=True, slots=True)
class Mistake:
    """What is wrong, what to do about it, and the place."""

    fault: str
    advice: str
    start: int
    end: int


def find_mistake(text: str, at: int) -> Mistake | None:
    """The mistake that made the parser stop at a place; None if it is not a common one."""
    start = text.rfind("\n", 0, at) + 1
    line = text[start : end if (end := text.find("\n", at)) >= 0 else len(text)]
    return _find_tab(line, start) or _find_unquoted(line, start, at)


def _find_tab(line: str, start: int) -> Mistake | None:
    if (found := re.match(r" *(\t+)", line)) is None:
        return None
    fault, advice = "a tab is not allowed in the indentation", "indent with spaces: replace each tab with two spaces"
    return Mistake(fault, advice, start + found.start(1), start + found.end(1))


def _find_unquoted(line: str, start: int, at: int) -> Mistake | None:
    """A value that YAML takes for something else because of the character it starts with."""
    entry = _entry_around(line, at - start)
    if entry is None:
        return None
    value = _cut(entry["value"])
    if value.startswith(_MASK):
        return None
    begin = start + entry.start("value")
    advice = f"put the whole value in quotes{quote_entry(entry['key'], value)}"
    opening = value[0]
    if opening in "\"'":
        closing = _closing(value)
        if closing is None or at <= begin + closing:
            return None
        rest = begin + closing + 1
        rest += len(value[closing + 1 :]) - len(value[closing + 1 :].lstrip())
        fault = "the value continues after its closing quote"
        return Mistake(fault, advice, rest, max(rest + 1, begin + len(value)))
    if value.startswith("{{") and "}}" in value and at > begin:
        rest = begin + value.index("}}") + 2
        return Mistake("the value continues after `}}`", advice, rest, max(rest + 1, begin + len(value)))
    if "{" in line[: entry.start("value")] and is_open(value[: at - begin]) and not is_open(value):
        return Mistake(describe_comma(entry["key"]), advice, begin, begin + len(value))
    if opening in _STARTERS:
        return Mistake(f"a value cannot start with {_STARTERS[opening]} in YAML", advice, begin, begin + 1)
    return None


def _entry_around(line: str, column: int) -> re.Match[str] | None:
    """The last ``key: value`` of a line whose value starts at a column or before it."""
    found = None
    place = 0
    while (entry := _ENTRY.search(line, place)) and entry.start("value") <= column:
        found, place = entry, entry.start("value")
    return found


def _closing(value: str) -> int | None:
    """Where a quoted text ends that starts a value."""
    pattern = r'"(?:[^"\\]|\\.)*"' if value[0] == '"' else r"'(?:[^']|'')*'"
    found = re.match(pattern, value)
    return None if found is None else found.end() - 1


def _cut(value: str) -> str:
    """A value without a comment, the entries after it and the brackets around it."""
    value = _COMMENT.sub("", value)
    if (following := _NEXT_ENTRY.search(value)) is not None:
        value = value[: following.start()]
    value = value.rstrip()
    while value and value[-1] in "}]" and value.count(value[-1]) > value.count("{" if value[-1] == "}" else "["):
        value = value[:-1].rstrip()
    return value


def quote_entry(key: str, value: str) -> str:
    """``: `key: "value"` `` for an advice; nothing for a value that is too long to be repeated."""
    if len(value) > QUOTED_AT_MOST or "\n" in value:
        return ""
    quoted = f'"{value}"' if '"' not in value and "\\" not in value else "'" + value.replace("'", "''") + "'"
    return f": `{key}: {quoted}`"


def describe_comma(key: str) -> str:
    """What a comma does to a formula without quotes between braces."""
    return f"the comma ends the value of `{key}` inside `{{ }}`"


def is_open(value: str) -> bool:
    """Whether a text has more opening parentheses than closing ones, texts in quotes left out."""
    plain = re.sub(r"\"[^\"]*\"|'[^']*'", "", value)
    return plain.count("(") > plain.count(")")

"""Location templates: text with ``{{tokens}}`` that a table and a period fill in."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from dobonomodo.problems.definition import InvalidValue, UnknownToken, UnsafePath

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from dobonomodo.problems import Passage, Problem

TOKENS = ("table_name", "dataset_id", "dataset_version", "identifier", "YYYY", "MM", "QQ", "DD")

_TOKEN = re.compile(r"\{\{\s*([^{}]*?)\s*\}\}")
_LOOSE_BRACES = re.compile(r"\{\{|\}\}")
_ABSOLUTE = re.compile(r"[/\\~]|[A-Za-z]:|[A-Za-z][A-Za-z0-9+.-]*:/")
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")


def is_address(text: str) -> bool:
    """Whether a text is an address with a scheme, supported or not, and no path of the file system."""
    return _ADDRESS.match(text) is not None


def render_template(template: str, value_by_token: Mapping[str, str]) -> str:
    """The template with every token filled in; all its tokens must have a value."""
    return _TOKEN.sub(lambda found: value_by_token[found[1]], template)


def check_template(passage: Passage) -> Iterator[Problem]:
    """Tokens that exist, braces that belong to one."""
    known = tuple(f"{{{{{token}}}}}" for token in TOKENS)
    for found in _TOKEN.finditer(passage.value):
        if found[1] not in TOKENS:
            yield UnknownToken(token=found[0], known=known, span=passage.span(found.start(), found.end()))
    without = _TOKEN.sub(lambda found: "\0" * len(found[0]), passage.value)
    for found in _LOOSE_BRACES.finditer(without):
        yield UnknownToken(token=found[0], known=known, span=passage.span(found.start(), found.end()))


def check_relative_path(passage: Passage) -> Iterator[Problem]:
    """A path that stays below where it starts."""
    path = passage.value
    if _ABSOLUTE.match(path) or ".." in re.split(r"[/\\]", path) or not path.isprintable():
        yield UnsafePath(path=path, span=passage.span(0, len(path)))


def check_table_name(passage: Passage, key: str) -> Iterator[Problem]:
    """A name that a database can have, and that can be shown."""
    if not passage.value.isprintable():
        span = passage.span(0, len(passage.value))
        yield InvalidValue(key=key, expected="a name without control characters", found=_UNPRINTABLE, span=span)


def check_folder(passage: Passage, key: str) -> Iterator[Problem]:
    """A folder of the file system, wherever it is; an address such as `s3a://bucket` would be taken for a relative path."""
    span = passage.span(0, len(passage.value))
    if is_address(passage.value):
        advice = "mount the storage as a folder, or copy the files"
        yield InvalidValue(
            key=key, expected="a folder of the file system", found="an address", advice=advice, span=span
        )
    elif not passage.value.isprintable():
        yield InvalidValue(key=key, expected="a path without control characters", found=_UNPRINTABLE, span=span)


_UNPRINTABLE = "text with control characters"

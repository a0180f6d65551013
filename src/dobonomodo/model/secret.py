"""Recognises secrets in definitions, where they are forbidden, and masks them in output.

Addresses are read as the drivers read them. What every driver reads the same way is decided here by a strict grammar, so that
checking needs no driver; all other addresses are given to the drivers' own parsers, and refused where those find a password.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING
from urllib.parse import unquote, unquote_plus

from dobonomodo.problems.definition import SecretInDefinition

if TYPE_CHECKING:
    from dobonomodo.model.document import Places
    from dobonomodo.problems import Problem

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_SECRET_WORD = re.compile(r".*(?:password|passwd|passphrase|passfile|secret|credential).*|pass|pwd|passcode|token")
_SECRET_WORDS = re.compile(r"(?:api|access|account|private|shared|storage|signing|client|server)key")
_REFERRING_WORDS = frozenset(
    {"class", "enabled", "file", "id", "mechanism", "name", "path", "provider", "ref", "type", "uri"}
)
"""Last words of keys that say where a secret is, or what kind of secret it is."""
_MOUNTED = re.compile(r"\.secrets\.|\.secretKeyRef\.")
"""Kubernetes: what follows is the name of a secret, and the value says where it is mounted."""
_POSSIBLE_KEY = re.compile(r"pass|pwd|secret|token|key|cred|%", re.IGNORECASE)

_USER_INFO = re.compile(r"://[^/\s:@'\"]*:([^\s'\"]{1,2000})@")
_BARE_USER_INFO = re.compile(r"(?!file:|(?:[\w+.-]+:){1,2}//)[^/?#@:\s]+:(?!\*+@)[^@\s]+@")
"""In an address without a scheme, as some drivers have it: `user:password@account/database`."""
_PARAMETER = re.compile(r"[?&;]([\w.%+-]+)=([^&;\s'\"]+)")
_PROPERTY = re.compile(r"-D([\w.%+-]+)=('[^'\n]*'|\"[^\"\n]*\"|[^\s'\"]+)")
_DSN = re.compile(r"\b(?:host|hostaddr|dbname|service)[ \t]*=[^\n]*", re.IGNORECASE)
_DSN_PAIR = re.compile(r"([\w.%+-]+)[ \t]*=[ \t]*('(?:\\.|[^'\\\n])*'|[^\s'\"]+)")
_PAIR = re.compile(r"(?:^|(?<=[\s?&;,]))([\w.%+-]+)\s*=\s*('(?:\\.|[^'\\])*'|[^\s&;]+)")
_KEY = r"[\"']?([\w.%+-]+)[\"']?[ \t]*:[ \t]+"
_SHOWN_KEY = re.compile(rf"(?:^|[{{,\[])[ \t]*(?:-[ \t]+)?{_KEY}(?=\S)", re.MULTILINE)
_SHOWN_VALUE = re.compile(
    r"(?:\"(?:\\.|[^\"\\\n])*\"|'(?:''|[^'\n])*')?[^\n]*?"
    + rf"(?=[ \t]{{0,9}}(?:[}}\]]{{0,9}}[ \t]{{0,9}}$|,[ \t]{{0,9}}{_KEY}))",
    re.MULTILINE,
)
"""What follows a key, up to the next key or the end of the line: in a broken text nobody knows where it ends."""
_REFERENCES = ("env://", "file://")

_HOST = r"(?:[\w.~%-]*|\[[0-9A-Fa-f:.]*\])(?::[0-9]+)?"
_PLAIN_ADDRESS = re.compile(
    rf"[a-z][a-z0-9+.-]*://(?:[\w.~%+-]*@)?{_HOST}(?:,{_HOST})*(?:/[\w.~%+-]*)?"
    r"(?:\?(?P<query>[\w.~%+-]+=[\w.~%+,:/-]*(?:&[\w.~%+-]+=[\w.~%+,:/-]*)*))?"
)
"""User, hosts, database and parameters, in a form that cannot be read in two ways."""


@lru_cache(maxsize=4096)
def is_secret_key(key: str) -> bool:
    """Whether a key is one that people put passwords behind, in any spelling: `sslPassword`, `pass%77ord`, `secret.key`."""
    if _POSSIBLE_KEY.search(key) is None or _MOUNTED.search(key):
        return False
    words = [word.lower() for word in _WORD.findall(unquote_plus(key))]
    if not words or words[-1] in _REFERRING_WORDS:
        return False
    pairs = (one + other for one, other in pairwise(words))
    return any(_SECRET_WORD.fullmatch(word) and word != "secrets" for word in words) or any(
        _SECRET_WORDS.fullmatch(each) for each in (*words, *pairs)
    )


def is_reference(text: str) -> bool:
    """Whether a text says where a secret is, instead of being one."""
    return text.strip("'\"").startswith(_REFERENCES)


def holds_secret(text: str) -> bool:
    """Whether a text has a password in it, as an address, a connection string or an option of Java has."""
    return any(True for _ in _find_ranges(text))


def setting_holds_secret(text: str) -> bool:
    """The same for a text that is a setting and no prose or formula: `name=value` counts wherever it occurs."""
    return holds_secret(text) or any(_is_hidden(found) for found in _PAIR.finditer(text))


def address_holds_secret(address: str) -> bool:
    """Whether the address of a database has a password in it, wherever a driver would find one."""
    if is_plain_address(address):
        return False
    return (
        setting_holds_secret(address)
        or _BARE_USER_INFO.match(address) is not None
        or any(password and set(password) != {"*"} for password in _ask_drivers(address))
    )


def is_plain_address(address: str) -> bool:
    """Whether an address is of the one form that all drivers read alike, and without a secret."""
    plain = _PLAIN_ADDRESS.fullmatch(address)
    if plain is None:
        return False
    query = plain["query"] or ""
    keys = [pair.partition("=")[0] for pair in query.split("&")]
    # The value of a parameter may be a connection string.
    return not any(is_secret_key(key) for key in keys) and not ("%" in query and setting_holds_secret(unquote(query)))


def mask_secrets(text: str) -> str:
    """The same text with asterisks in place of passwords; every character stays where it was."""
    return mask_ranges(text, [*_find_behind_keys(text), *_find_ranges(text)])


def mask_ranges(text: str, ranges: list[tuple[int, int]]) -> str:
    """The same text with asterisks in some places; lines stay lines."""
    if not ranges:
        return text
    characters = list(text)
    for start, end in ranges:
        characters[start:end] = ["\n" if each == "\n" else "*" for each in characters[start:end]]
    return "".join(characters)


def is_masked_key(key: str) -> bool:
    """Whether what follows a key is not shown, be it a secret or something in place of a reference to one."""
    return is_secret_key(key) or key == "credential_ref"


def find_secrets(places: Places, key: str, *, references: bool = False, advice: str | None = None) -> Iterator[Problem]:
    """A problem for every secret in a part of a definition; with ``references``, `env://NAME` may replace one."""
    for name in places.keys:
        part = places.at(name)
        if part is None:
            continue
        if is_secret_key(name):
            if not (references and is_reference(part.text() or "")):
                yield SecretInDefinition(key=name, advice=advice, span=places.key_span(name))
        else:
            yield from find_secrets(part, name, references=references, advice=advice)
    for element in places.elements():
        yield from find_secrets(element, key, references=references, advice=advice)
    text = places.text() or ""
    if ("://" in text or "=" in text or (key == "url" and "@" in text)) and address_holds_secret(text):
        yield SecretInDefinition(key=key, advice=advice, span=places.span())


def _find_ranges(text: str) -> Iterator[tuple[int, int]]:
    """Where passwords occur in any text, such as a whole file."""
    if "://" in text:
        for found in _USER_INFO.finditer(text):
            if set(found[1]) != {"*"}:
                yield found.span(1)
    if "=" not in text:
        return
    for pattern in (_PARAMETER, _PROPERTY):
        yield from (found.span(2) for found in pattern.finditer(text) if _is_hidden(found))
    for line in _DSN.finditer(text):
        start = text.rfind("\n", 0, line.start()) + 1
        pairs = _DSN_PAIR.finditer(text, start, line.end())
        yield from (found.span(2) for found in pairs if _is_hidden(found))


def _find_behind_keys(text: str) -> Iterator[tuple[int, int]]:
    for key in _SHOWN_KEY.finditer(text):
        if is_masked_key(key[1]):
            value = _SHOWN_VALUE.match(text, key.end())
            if value is not None and not is_reference(value[0]):
                yield value.span()


def _is_hidden(pair: re.Match[str]) -> bool:
    return is_secret_key(pair[1]) and not is_reference(pair[2]) and set(pair[2].strip("'\"")) != {"*"}


def _ask_drivers(address: str) -> Iterator[str | None]:
    """The passwords that the drivers' own parsers find; a driver that is not installed finds none."""
    with suppress(ImportError, ValueError):
        from sqlalchemy import make_url
        from sqlalchemy.exc import ArgumentError

        with suppress(ArgumentError):
            url = make_url(address)
            yield url.password
            values = (each for value in url.query.values() for each in ([value] if isinstance(value, str) else value))
            yield from (value for value in values if setting_holds_secret(value))
    with suppress(ImportError):
        from psycopg import ProgrammingError
        from psycopg.conninfo import conninfo_to_dict

        with suppress(ProgrammingError):
            for key, value in conninfo_to_dict(address).items():
                yield str(value) if is_secret_key(key) and value else None

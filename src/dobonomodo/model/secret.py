"""Secrets do not belong in definitions: how one is recognised, and how it is kept out of what is shown."""

from __future__ import annotations

import re

_SECRET_WORDS = r"pass(?:word|wd|phrase)?|pwd|secret|token|api[-_.]?key|access[-_.]?key|private[-_.]?key|credentials?"
_SECRET_KEY = re.compile(rf"(?:^|[-_.])(?:{_SECRET_WORDS})(?:$|[-_.])", re.IGNORECASE)
_USER_INFO = re.compile(r"://[^/\s:@'\"]*:([^\s/'\"]+)@")
_PARAMETER = re.compile(rf"[?&;](?:[\w.-]*[-_.])?(?:{_SECRET_WORDS})=([^&;\s'\"]+)", re.IGNORECASE)
_SHOWN_KEY = re.compile(
    rf"(?:^|[{{,])[ \t]*(?:-[ \t]+)?[\"']?(?:[\w.-]*[-_.])?(?:{_SECRET_WORDS})(?:[-_.][\w.-]*)?[\"']?[ \t]*:[ \t]+"
    r"(\"(?:\\.|[^\"\\\n])*\"|'(?:''|[^'\n])*'|[^\s,}'\"#][^\n,}]*)",
    re.IGNORECASE | re.MULTILINE,
)
_REFERENCES = ("env://", "file://")


def is_secret_key(key: str) -> bool:
    """Whether a key is one that people put passwords behind."""
    return _SECRET_KEY.search(key) is not None


def holds_secret(text: str) -> bool:
    """Whether a text, such as the address of a database, has a password in it."""
    return _USER_INFO.search(text) is not None or _PARAMETER.search(text) is not None


def mask_secrets(text: str) -> str:
    """The same text with asterisks in place of passwords; every character stays where it was."""
    for pattern in (_SHOWN_KEY, _USER_INFO, _PARAMETER):
        text = pattern.sub(_mask, text)
    return text


def _mask(found: re.Match[str]) -> str:
    if found[1].strip("'\"").startswith(_REFERENCES):
        return found[0]
    start, end = found.start(1) - found.start(), found.end(1) - found.start()
    return found[0][:start] + "*" * (end - start) + found[0][end:]

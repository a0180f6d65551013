"""Addresses in object stores and in HDFS: ``s3://bucket/folder`` and their like, parsed once and spelled in one way."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from posixpath import normpath
from typing import TYPE_CHECKING

from dobonomodo.model.template import is_address
from dobonomodo.problems.definition import InvalidValue
from dobonomodo.problems.problem import listed

if TYPE_CHECKING:
    from dobonomodo.problems import Passage, Problem

__all__ = ["HDFS", "OBJECT_STORES", "SCHEMES", "SHOWN_SCHEMES", "Address", "check_address", "is_address"]

HDFS = "hdfs"
OBJECT_STORES = ("s3", "gs", "az")
SCHEMES = {"s3": "s3", "s3a": "s3", "gs": "gs", "az": "az", "abfss": "az", HDFS: HDFS}
"""The scheme that each supported one means."""
SHOWN_SCHEMES = "`s3://`, `gs://`, `az://`, `abfss://` or `hdfs://`"

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/")
_FORM = re.compile(
    r"[A-Za-z0-9]+://(?P<bucket>[A-Za-z0-9][A-Za-z0-9._-]*)(?P<port>:[0-9]+)?(?:@(?P<account>[A-Za-z0-9.-]+))?(?:/(?P<key>.*))?"
)


@dataclass(frozen=True, slots=True)
class Address:
    """A place in an object store: a bucket, and the key of an object or of what its keys begin with."""

    scheme: str
    bucket: str
    """In HDFS, the name node with its port, or the name of a service."""
    key: str = ""
    account: str | None = None
    """The account of Azure, where the address names one: ``abfss://container@account.dfs.core.windows.net/folder``."""

    @classmethod
    def parse(cls, text: str) -> Address:
        """An address from text; raises ``ValueError`` with the reason."""
        found = _SCHEME.match(text)
        if found is None or found[1].lower() not in SCHEMES:
            raise ValueError("an address of an object store that is supported")
        form = _FORM.fullmatch(text)
        if form is None or not text.isprintable():
            raise ValueError(f"an address such as `{found[1].lower()}://bucket/folder`")
        parts = [part for part in (form["key"] or "").split("/") if part]
        if any(part in (".", "..") for part in parts):
            raise ValueError("an address without `.` and `..`")
        if form["account"] is not None and SCHEMES[found[1].lower()] != "az":
            raise ValueError(f"an address without `{form['account']}`")
        if form["port"] is not None and SCHEMES[found[1].lower()] != HDFS:
            raise ValueError(f"an address without `{form['port']}`")
        account = (form["account"] or "").partition(".")[0] or None
        return cls(SCHEMES[found[1].lower()], form["bucket"] + (form["port"] or ""), "/".join(parts), account)

    def __truediv__(self, path: str) -> Address:
        """What is below it."""
        inner = normpath(path.strip("/") or ".")
        if inner == ".." or inner.startswith("../"):
            raise ValueError(f"`{path}` leads out of `{self}`")
        return self if inner == "." else replace(self, key=f"{self.key}/{inner}".lstrip("/"))

    def __str__(self) -> str:
        if self.account is not None:
            return f"abfss://{self.bucket}@{self.account}.dfs.core.windows.net/{self.key}".rstrip("/")
        return f"{self.scheme}://{self.bucket}/{self.key}".rstrip("/")

    @property
    def name(self) -> str:
        """The last part of its key."""
        return self.key.rpartition("/")[2]

    @property
    def parent(self) -> Address:
        """What it is in."""
        return replace(self, key=self.key.rpartition("/")[0])

    def relative(self, key: str) -> str:
        """A key of the same bucket, from here."""
        return key.removeprefix(f"{self.key}/") if self.key else key


def check_address(passage: Passage, key: str, *, schemes: Sequence[str] | None = None) -> Iterator[Problem]:
    """An address that can be followed; ``schemes`` are those that are supported here, if not all are."""
    try:
        address = Address.parse(passage.value)
        if schemes is not None and address.scheme not in schemes:
            raise ValueError("an address of an object store that is supported here")
    except ValueError as fault:
        span = passage.span(0, len(passage.value))
        shown = SHOWN_SCHEMES if schemes is None else listed([f"{each}://" for each in schemes])
        advice = f"files are in a folder, or at an address that begins with {shown}"
        yield InvalidValue(key=key, expected=str(fault), found=f"`{passage.value}`", advice=advice, span=span)

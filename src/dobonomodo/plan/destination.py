"""Where an output goes."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from urllib.parse import quote

from dobonomodo.model.datasource import StorageOptions
from dobonomodo.model.document import Places
from dobonomodo.problems import Problem
from dobonomodo.problems.definition import InvalidValue

FILES = ".dobo-files"
"""The folder in which the product keeps what it wrote to files of their own names."""

_LONGEST = 180
_TOKEN = re.compile(r"\{\{\s*(?:identifier|period)\s*\}\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class DestinationKind:
    """Properties of the destinations of one kind of storage that a plan depends on. Storages declare them."""

    are_paths: bool
    """Whether a name is a path below the folder of the datasource."""
    inline: bool
    """Whether an output may give a location of its own, without a datasource."""
    has_schemas: bool
    """Whether tables are in schemas."""
    can_write: bool = True
    """Whether outputs can go there; otherwise it is only read."""
    has_named_files: bool = False
    """Whether an output may write one file with a name of its own."""
    has_sheets: bool = False
    """Whether one file can hold several outputs."""
    options: type[StorageOptions] | None = None
    """The options that a location may set; None if there are none."""

    def check_options(self, places: Places, kind: str) -> Iterator[Problem]:
        """The options of one location of this kind."""
        if self.options is not None:
            yield from self.options.load(places).problems
        elif places.keys:
            advice = f"a location of type `{kind}` has no options"
            yield InvalidValue(key="options", expected="no options", found="options", advice=advice, span=places.span())


def name_store(file: str, sheet: str | None) -> str:
    """The hidden folder for a file, and for each part of a file that holds several outputs."""
    key = "@".join(quote(part, safe="") for part in _TOKEN.split(file)) + (f"={quote(sheet, safe='')}" if sheet else "")
    if len(key) > _LONGEST:
        key = f"{key[: _LONGEST - 65]}={hashlib.sha256(key.encode()).hexdigest()}"
    return f"{FILES}/{key}"


def names_period(file: str) -> bool:
    """Whether the name of a file has a place for the period, so that periods do not replace each other."""
    return _TOKEN.search(file) is not None


def without_period(file: str) -> str:
    """The name of a file in which the period is an ordinary letter."""
    return _TOKEN.sub("P", file)


@dataclass(frozen=True, slots=True)
class Together:
    """The guarantee for publishing the outputs of a run together. Storages declare it."""

    means: str
    places: Mapping[str, str] = field(default_factory=dict)
    """The same for each of several places."""

    def document(self) -> dict[str, object]:
        """As plain data."""
        return {"means": self.means, "places": dict(self.places)}


@dataclass(frozen=True, slots=True)
class Destination:
    """A table of a datasource, or a folder of files given in the output itself."""

    kind: str
    """The kind of storage."""
    table: str
    """The name of the table; for a location, its path."""
    datasource_id: str | None = None
    schema: str | None = None
    file: str | None = None
    """The name of one file, in which `{{identifier}}` is replaced by the period."""
    sheet: str | None = None
    """The part of the file, where a file can hold several outputs."""
    options: tuple[tuple[str, object], ...] = ()
    """How the files are written, where that differs from the datasource."""

    @property
    def is_file(self) -> bool:
        """Whether users read only the file; the folder behind it is hidden."""
        return self.table.startswith(f"{FILES}/")

    @property
    def name(self) -> str:
        """How reports and results name the output."""
        if self.is_file and self.file is not None:
            stem = PurePosixPath(_TOKEN.sub("", self.file)).stem.strip("-_. ")
            return self.sheet or stem or PurePosixPath(self.file).name
        return self.table.rstrip("/").rpartition("/")[2]

    def file_name(self, period: str) -> str | None:
        """The name of the file for a period."""
        return _TOKEN.sub(lambda _: period, self.file) if self.file is not None else None

    def __str__(self) -> str:
        place = f"{self.datasource_id}:" if self.datasource_id else f"{self.kind}:"
        if self.is_file and self.file is not None:
            return place + self.file + (f" ({self.sheet})" if self.sheet else "")
        return place + (f"{self.schema}.{self.table}" if self.schema else self.table)

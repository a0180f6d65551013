"""Where an output goes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class DestinationKind:
    """What destinations of one kind of storage are, as far as a plan depends on it. Storages say it of themselves."""

    are_paths: bool
    """Whether a name is a path below the folder of the datasource."""
    inline: bool
    """Whether an output may give a location of its own, without a datasource."""
    has_schemas: bool
    """Whether tables are in schemas."""


@dataclass(frozen=True, slots=True)
class Together:
    """What publishing the outputs of a run together means where they go. Storages say it."""

    means: str
    places: Mapping[str, str] = field(default_factory=dict)
    """The same for each of several places that more than one output goes to."""

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

    @property
    def name(self) -> str:
        """How reports and results name the output."""
        return self.table.rstrip("/").rpartition("/")[2]

    def __str__(self) -> str:
        place = f"{self.datasource_id}:" if self.datasource_id else f"{self.kind}:"
        return place + (f"{self.schema}.{self.table}" if self.schema else self.table)

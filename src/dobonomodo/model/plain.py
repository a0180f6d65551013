"""Plain data: what JSON holds, and records are kept as."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

Document = Mapping[str, Any]
"""A record as plain data. Loaders convert it to a frozen class immediately."""

PlainDict = dict[str, Any]
"""A record to be shown or stored."""


def render_document(document: Document) -> str:
    """The canonical text of a record: sorted, without spaces, ASCII alone. Equal records have equal texts."""
    return json.dumps(document, sort_keys=True, separators=(",", ":"), allow_nan=False)


def hash_document(document: Document) -> str:
    """SHA-256 over the canonical text of a record."""
    return hashlib.sha256(render_document(document).encode()).hexdigest()

"""Plain data: what JSON holds, and records are kept as."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Document = Mapping[str, Any]
"""A record as plain data. Whoever loads it turns it into a frozen class at once."""

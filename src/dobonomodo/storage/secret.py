"""Resolves a reference to a secret. The secret is passed on and never shown or stored."""

from __future__ import annotations

import os
from pathlib import Path

from dobonomodo.problems import Rejected
from dobonomodo.problems.run import CredentialNotFound


def find_secret(reference: str | None, *, root: Path, owner: str) -> str | None:
    """The secret behind ``env://NAME`` or ``file://path``; None without a reference."""
    if reference is None:
        return None
    scheme, _, rest = reference.partition("://")
    if scheme == "env":
        if rest not in os.environ:
            raise Rejected([CredentialNotFound(owner=owner, reference=reference, reason="is not set")])
        return os.environ[rest]
    try:
        return (root / rest).read_text(encoding="utf-8").rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as fault:
        reason = getattr(fault, "strerror", None) or "cannot be read"
        raise Rejected([CredentialNotFound(owner=owner, reference=reference, reason=reason)]) from fault

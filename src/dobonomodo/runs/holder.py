"""Who holds a lease: a random token with the identity of the process, so that a dead process is recognised at once.

A process id alone does not identify a process: ids are reused, and containers with the same host name have equal ids.
"""

from __future__ import annotations

import os
import secrets
import socket
from pathlib import Path

_ENDED = ("Z", "X")
"""States of a process that runs no more: it waits to be collected, or is dead."""


def new_token() -> str:
    """A token for one lease: machine, process and start of the process where the system tells them, and a random part."""
    number = os.getpid()
    return f"{_machine()}/{number}/{_start_of(number) or ''}/{secrets.token_hex(8)}"


def describe_holder(name: str) -> str:
    """This process, as people see it."""
    return f"{name}@{socket.gethostname()} (process {os.getpid()})"


def is_dead(token: str) -> bool:
    """Whether a token is of a process of this machine that has ended; False wherever that is not certain."""
    machine, _, rest = token.partition("/")
    number, _, rest = rest.partition("/")
    start, _, _ = rest.partition("/")
    if not machine or machine != _machine() or not start or not number.isdigit():
        return False
    return _start_of(int(number)) != start


def _machine() -> str:
    """The boot of the kernel and the namespace in which process ids count; empty where the system does not tell."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot}:{Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return ""


def _start_of(number: int) -> str | None:
    """When a process started, in the kernel's own count; None if it has ended."""
    try:
        # The name of the program is in brackets, and may contain brackets and blanks.
        state, *fields = Path(f"/proc/{number}/stat").read_text(encoding="latin-1").rpartition(")")[2].split()
    except (OSError, ValueError):
        return None
    return None if state in _ENDED else fields[18]

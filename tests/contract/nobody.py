"""Work without the rights of root, which permissions do not bind."""

from __future__ import annotations

import codecs
import multiprocessing
import os
import pwd
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from multiprocessing.connection import Connection


def as_nobody(work: Callable[..., Any], *arguments: Any) -> Any:
    """What comes of some work in a process without the rights of root."""
    context = multiprocessing.get_context("spawn")
    mine, theirs = context.Pipe()
    process = context.Process(target=_run_as_nobody, args=(work, arguments, theirs))
    process.start()
    theirs.close()
    try:
        return mine.recv()
    finally:
        process.join()


def _run_as_nobody(work: Callable[..., Any], arguments: tuple[Any, ...], answer: Connection) -> None:
    """Do something without the rights of root; the answer is what came of it."""
    if os.geteuid() == 0:
        # Afterwards Python itself may be out of reach.
        codecs.lookup("utf-8-sig")
        for name in (
            "pyarrow.csv",
            "dobonomodo.store.format",
            "dobonomodo.store.sql",
            "sqlalchemy.dialects.sqlite",
            "sqlite3",
        ):
            import_module(name)
        nobody = pwd.getpwnam("nobody")
        os.setgroups([])
        os.setgid(nobody.pw_gid)
        os.setuid(nobody.pw_uid)
    answer.send(work(*arguments))

"""Commands in processes that start at once: each is forked from one that has loaded the product, and can be killed like any other."""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from multiprocessing.context import ForkServerProcess

LOADED = [
    "pytest",
    "dobonomodo.cli.main",
    "dobonomodo.cli.run",
    "dobonomodo.workspace",
    "pyspark.sql.connect.session",
    "deltalake",
    "obstore",
    "pyarrow.dataset",
    "pyiceberg.catalog.sql",
    "pyiceberg.io.pyarrow",
]
"""What takes a second or two to load, and starts no threads by that."""

_FORKS = multiprocessing.get_context("forkserver")


def fork(arguments: Sequence[str], *, out: Path) -> ForkServerProcess:
    """A command that is at work; what it says is in a file."""
    _FORKS.set_forkserver_preload(LOADED)
    process = _FORKS.Process(target=_work, args=(list(arguments), dict(os.environ), out))
    process.start()
    return process


def _work(arguments: list[str], environment: Mapping[str, str], out: Path) -> None:
    from dobonomodo.cli.main import run

    os.environ.clear()
    os.environ.update(environment)
    with out.open("wb") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    sys.exit(run(arguments))

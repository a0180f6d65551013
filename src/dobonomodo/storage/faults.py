"""Failures to read or write rows, described in terms of the dataset or destination."""

from __future__ import annotations

import errno
import os
import shutil
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from dobonomodo.plan.dataset import DatasetUse
from dobonomodo.problems import RunFailed
from dobonomodo.problems.run import AppendDataLoad, DataLoad, Diagnosis, OutputWrite
from dobonomodo.storage.findings import Findings

_PASSING = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EPERM, errno.EROFS, errno.EIO, errno.ESTALE})

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)

_SPARK = frozenset({"pyspark", "py4j"})


def loading_failed(
    use: DatasetUse,
    detail: str,
    *,
    differences: Sequence[str] = (),
    findings: Findings | None = None,
    diagnosis: Diagnosis | None = None,
    remedy: str | None = None,
    present: Sequence[str] = (),
    retry_helps: bool = False,
) -> RunFailed:
    """Rows that cannot be read; an append has its own problem code."""
    kind = AppendDataLoad if use.role == "append" else DataLoad
    problem = kind(
        dataset_id=use.dataset_id,
        detail=detail,
        differences=tuple(differences),
        cells=findings.cells if findings else (),
        counts=tuple(findings.counts.items()) if findings else (),
        diagnosis=diagnosis,
        remedy=remedy,
        present=tuple(present),
        is_transient=retry_helps,
        operation=use.operation,
    )
    return RunFailed(problem)


def refuse(findings: Findings, use: DatasetUse) -> None:
    """Raise if anything is wrong in the files or tables of a reading."""
    if findings:
        remedy = "; ".join(findings.remedies) or None
        raise loading_failed(use, findings.summarize(), findings=findings, remedy=remedy)


def writing_failed(destination: str, detail: str, *, retry_helps: bool = False) -> RunFailed:
    """Rows that cannot be written."""
    return RunFailed(OutputWrite(destination=destination, detail=detail, is_transient=retry_helps))


def is_passing(fault: BaseException) -> bool:
    """Whether a retry may succeed: a full disk, a missing permission."""
    return isinstance(fault, OSError) and fault.errno in _PASSING


def is_of_spark(fault: BaseException) -> bool:
    """Whether Spark raised it. If the Java process of Spark has ended, this is a plain socket error, or an unset variable that
    PySpark reads although the socket could not be opened (Spark 4.3).
    """
    if _package_of(type(fault).__module__) in _SPARK:
        return True
    frames = (frame for frame, _ in traceback.walk_tb(fault.__traceback__))
    return isinstance(fault, ConnectionError | EOFError | UnboundLocalError) and any(
        _package_of(frame.f_globals.get("__name__", "")) in _SPARK for frame in frames
    )


def _package_of(module: str) -> str:
    return module.partition(".")[0]


def find_lack_of_room(fault: Exception) -> str | None:
    """Spark's message about a full disk, if it is one."""
    if not is_of_spark(fault):
        return None
    report = str(fault)
    return next((text for text in map(os.strerror, _NO_ROOM) if text in report), None)


@contextmanager
def removing_on_failure(path: Path) -> Iterator[None]:
    """Delete a file or folder that cannot be completed: it may be what fills the disk."""
    try:
        yield
    except BaseException:
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
        raise

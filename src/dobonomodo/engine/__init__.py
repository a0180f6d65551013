"""Spark: where it runs and how it is set up. With storage, the only package that knows pyspark."""

from dobonomodo.engine.archive import make_archive, make_archive_later
from dobonomodo.engine.java import Java, find_java, require_java
from dobonomodo.engine.session import (
    RESULT_SETTINGS,
    adapt_session,
    computes_here,
    is_remote,
    open_session,
    require_possible,
)
from dobonomodo.engine.size import InputSize

__all__ = [
    "RESULT_SETTINGS",
    "InputSize",
    "Java",
    "adapt_session",
    "computes_here",
    "find_java",
    "is_remote",
    "make_archive",
    "make_archive_later",
    "open_session",
    "require_java",
    "require_possible",
]

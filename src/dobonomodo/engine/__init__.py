"""Spark: where it runs and how it is set up. With storage, the only package that knows pyspark."""

from dobonomodo.engine.archive import make_archive, make_archive_later
from dobonomodo.engine.java import Java, find_java, require_java
from dobonomodo.engine.session import (
    RESULT_SETTINGS,
    adapt_session,
    is_remote,
    open_session,
    require_possible,
)

__all__ = [
    "RESULT_SETTINGS",
    "Java",
    "adapt_session",
    "find_java",
    "is_remote",
    "make_archive",
    "make_archive_later",
    "open_session",
    "require_java",
    "require_possible",
]

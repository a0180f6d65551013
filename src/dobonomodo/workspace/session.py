"""The Spark session of a command. A Spark that cannot start is a problem with a remedy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from dobonomodo.problems import RunFailed
from dobonomodo.problems.package import SPARK, require_modules
from dobonomodo.problems.run import SparkUnavailable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def open_spark(
    *,
    master: str | None = None,
    remote: str | None = None,
    conf: Mapping[str, str],
    app_name: str = "dobo",
    input_bytes: int | None = None,
) -> SparkSession:
    """A session of our own; what keeps it from starting is not a fault of the data."""
    from dobonomodo.engine import JavaMissing, SessionConflict, SettingRefused, SparkMissing, open_session

    require_modules(SPARK)
    try:
        return open_session(master=master, remote=remote, conf=conf, app_name=app_name, input_bytes=input_bytes)
    except (JavaMissing, SparkMissing, SettingRefused, SessionConflict) as fault:
        reason, _, remedy = str(fault).partition("\nTo get ")
        lines = [" ".join(line.split()) for line in remedy.partition(":")[2].splitlines()]
        problem = SparkUnavailable(reason=" ".join(reason.split()), remedy="; ".join(filter(None, lines)) or None)
        raise RunFailed(problem, retry_helps=True) from fault

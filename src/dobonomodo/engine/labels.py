"""Labels of the Spark jobs of a run: tags with run, project and operation, and a description in the Spark UI."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from dobonomodo.engine.faults import find_loss
from dobonomodo.engine.session import is_remote
from dobonomodo.storage.faults import is_of_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from dobonomodo.plan import Plan, Step
    from dobonomodo.plan.facts import RunFacts


_DESCRIPTION = "spark.job.description"


@dataclass(frozen=True, slots=True)
class Labels:
    """How jobs are marked."""

    tags: tuple[str, ...]
    description: str


def labels_of(plan: Plan, facts: RunFacts, *, run: str | None, step: Step | None) -> Labels:
    """The labels of jobs of a plan, and of an operation if it is known. A tag must not contain a comma."""
    facts_by_name = {"run": run, "project": plan.project.id, "period": facts.period}
    if step is not None:
        facts_by_name["operation"] = str(step.spec.seq)
        if step.lowered.write is not None:
            facts_by_name["destination"] = step.lowered.write.destination.name
    tags = tuple(f"dobo-{name}={value}".replace(",", "_") for name, value in facts_by_name.items() if value)
    what = f", {step.spec.seq} {step.spec.name}" if step is not None else ""
    return Labels(tags, f"dobo {run or ''} {plan.project.id} {facts.period}{what}".replace("  ", " "))


@contextmanager
def labelled(spark: SparkSession, labels: Labels) -> Iterator[None]:
    """Label the jobs of a block, and restore the session's own labels afterwards. A session without labels is used as it is."""
    added, described = [], None
    with _ignoring_label_failures():
        own = spark.getTags()
        for tag in labels.tags:
            if tag not in own:
                spark.addTag(tag)
                added.append(tag)
        if not is_remote(spark):
            described = spark.sparkContext.getLocalProperty(_DESCRIPTION)
            spark.sparkContext.setJobDescription(labels.description)
    try:
        yield
    finally:
        with _ignoring_label_failures():
            for tag in added:
                spark.removeTag(tag)
            if not is_remote(spark):
                # None removes it, although the signature does not allow None (Spark 4.3).
                spark.sparkContext.setLocalProperty(_DESCRIPTION, cast(str, described))


@contextmanager
def _ignoring_label_failures() -> Iterator[None]:
    """A failed label never fails a run; a lost Spark is detected by the next job."""
    try:
        with suppress(AttributeError, NotImplementedError):
            yield
    except Exception as fault:
        if not is_of_spark(fault) and find_loss(fault) is None:
            raise

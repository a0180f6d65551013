"""Jobs carry the run, project and operation that they belong to, and sessions of users get their own marks back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dobonomodo.engine.labels import Labels, labelled

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LABELS = Labels(("dobo-run=r1", "dobo-operation=70"), "dobo r1 sales 2026-01, 70 Write")


def test_jobs_are_labelled_and_nothing_stays(spark: SparkSession) -> None:
    session, context = spark.newSession(), spark.sparkContext
    session.addTag("mine")
    context.setJobDescription("my job")
    try:
        with labelled(session, LABELS):
            assert session.getTags() == {"mine", *LABELS.tags}
            assert context.getLocalProperty("spark.job.description") == LABELS.description
            assert session.range(3).count() == 3
        assert session.getTags() == {"mine"}
        assert context.getLocalProperty("spark.job.description") == "my job"
    finally:
        session.clearTags()
        context.setJobDescription("")


def test_a_session_that_has_no_tags_is_used_as_it_is() -> None:
    class Old:
        __module__ = "pyspark.sql.connect.session"

        def getTags(self) -> set[str]:  # noqa: N802
            raise NotImplementedError

    with labelled(Old(), LABELS):  # type: ignore[arg-type]
        pass

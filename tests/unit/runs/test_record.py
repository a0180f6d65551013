"""What a record says of a run, in Python and in notebooks."""

from __future__ import annotations

from dobonomodo.runs.progress import Progress, PublishedOutput
from dobonomodo.runs.record import view_run
from tests.unit.runs.reporting import Page, make_output, make_run, make_view


def test_times_are_seconds() -> None:
    made = make_output()
    output = PublishedOutput(
        90, "out", "lake:out", 3, "d-3", None, None, milliseconds=2500, columns=made.columns, location=made.location
    )
    view = view_run(make_run(1, progress=Progress(outputs=(output,), milliseconds=7250).document()))
    assert (view.seconds, view.outputs["out"].seconds) == (7.25, 2.5)


def test_a_notebook_shows_counts_and_outputs() -> None:
    page = Page(make_view(project="<close>")._repr_html_())
    assert page.words.startswith("<close>, 2026-01: completed")
    assert page.cells[:8] == ["10", "Double", "update", "3", "2", "0", "0", "3"]
    assert "out: 3 rows, digest d-3" in page.words

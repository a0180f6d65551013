"""What `dobo plan` says about two projects, as the files in ``plans`` say: plain, with SQL, and as JSON.

``monthly-sales`` is the annotated example of the seeds. ``revenue`` has lookups, a bitemporal join, an append with
aggregation, three outputs and a registration. ``make golden`` rewrites the files.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from dobonomodo.cli.main import run
from tests.golden.text_file import compare

FOLDER = Path(__file__).parent / "plans"
DATA = Path(__file__).parents[1] / "data" / "workspaces"
PLANS = {"monthly-sales": ("sales", "2026-01"), "revenue": ("rich", "2026-Q1")}
FORMS = {"txt": (), "sql.txt": ("--sql",), "json": ("--sql", "--json")}

Show = Callable[..., str]


@pytest.fixture
def show(capsys: pytest.CaptureFixture[str]) -> Show:
    """What the command says about a project."""

    def call(project: str, *flags: str) -> str:
        workspace, period = PLANS[project]
        folder = str(DATA / workspace)
        code = run(["-C", folder, "plan", project, "-p", period, "--started-at", "2026-02-03T08:00:00Z", *flags])
        out, err = capsys.readouterr()
        assert (code, err) == (0, "")
        return out

    return call


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("project", PLANS)
def test_plan(show: Show, project: str, form: str, update_golden: bool) -> None:
    compare(FOLDER / f"{project}.{form}", show(project, *FORMS[form]), update=update_golden)


@pytest.mark.parametrize("project", PLANS)
def test_the_same_plan_twice(show: Show, project: str) -> None:
    assert show(project, "--sql", "--json") == show(project, "--sql", "--json")


def test_the_example_of_the_seeds_is_verbatim() -> None:
    seed = (DATA.parent / "seeds" / "annotated-example.yaml").read_text(encoding="utf-8")
    project = (DATA / "sales" / "projects" / "monthly-sales.yaml").read_text(encoding="utf-8")
    lines = [line.strip() for line in seed.splitlines() if line.strip() and not line.startswith("#")]
    assert lines == [
        line.strip() for line in project.splitlines()[7:] if line.strip() and not line.strip().startswith("#")
    ]

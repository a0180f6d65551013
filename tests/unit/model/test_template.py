"""Location templates: tokens and relative paths."""

import pytest

from dobonomodo.model.template import check_relative_path, check_template, render_template
from dobonomodo.problems import Passage
from dobonomodo.problems.definition import UnknownToken


def test_tokens_are_filled_in() -> None:
    values = {"table_name": "orders", "YYYY": "2026", "MM": "01"}
    assert render_template("{{table_name}}/{{ YYYY }}/{{MM}}.csv", values) == "orders/2026/01.csv"


@pytest.mark.parametrize("text", ["{{YEAR}}", "{{yyyy}}", "{{}}", "{{", "a}}", "{{{{MM}}"])
def test_what_cannot_be_filled_in(text: str) -> None:
    problems = list(check_template(Passage.alone(text)))
    assert problems
    assert all(isinstance(problem, UnknownToken) for problem in problems)


def test_every_known_token_is_accepted() -> None:
    text = "{{table_name}}{{dataset_id}}{{dataset_version}}{{identifier}}{{YYYY}}{{MM}}{{QQ}}{{DD}}"
    assert list(check_template(Passage.alone(text))) == []


@pytest.mark.parametrize("path", ["/a", "\\a", "../a", "a/../b", "a\\..\\b", "..", "C:/a", "s3://b/a", "~/a", "a/.."])
def test_paths_that_lead_elsewhere(path: str) -> None:
    assert [problem.code for problem in check_relative_path(Passage.alone(path))] == ["UNSAFE_PATH"]


@pytest.mark.parametrize("path", ["a", "a/b.csv", "{{YYYY}}/x..y", "...", "a/..b"])
def test_paths_that_stay(path: str) -> None:
    assert list(check_relative_path(Passage.alone(path))) == []

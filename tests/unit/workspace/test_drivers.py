"""What `dobo validate` says of databases that are only read, and of drivers that are not installed."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

import dobonomodo as dobo
from dobonomodo.problems import Problem, Rejected, RunFailed
from tests.unit.model.loading import shown

WORKSPACE = """
workspace: {default_resolver: tables SETTINGS}
---
datasource: {id: base, type: sql, options: {URL}}
---
resolver: {id: tables, rules: [{strategy: {type: table, datasource_id: base, table: "{{table_name}}"}}]}
---
calendar:
  id: c
  levels: [{name: month}]
  periods: [{identifier: "2026-01", level: month, start_date: 2026-01-01, end_date: 2026-01-31}]
---
dataset: {id: lines, main_table: {name: lines, columns: [{name: id, type: integer}]}}
"""


def write(root: Path, url: str, settings: str = "") -> None:
    text = WORKSPACE.replace("URL", url).replace(" SETTINGS", settings)
    (root / "dobo.yaml").write_text(text, encoding="utf-8")


def validate(root: Path) -> list[Problem]:
    with closing(dobo.open(root)) as workspace:
        return list(workspace.problems())


@pytest.mark.parametrize(
    ("url", "code", "severity", "hint"),
    [
        ('url: "mysq://h/d"', "INVALID_VALUE", "error", "did you mean `mysql`?"),
        ('url: "mysql+mysqldb://h/d"', "W-16", "warning", "pip install mysqlclient"),
        ('url: "bigquery://h/d"', "W-16", "warning", "pip install sqlalchemy-bigquery"),
        ('url: "h", driver: adbc_driver_flightsql', "W-16", "warning", "pip install adbc-driver-flightsql"),
    ],
)
def test_a_driver_that_is_not_installed(tmp_path: Path, url: str, code: str, severity: str, hint: str) -> None:
    write(tmp_path, url)
    (problem,) = validate(tmp_path)
    assert (problem.code, problem.severity, problem.hint()) == (code, severity, hint)
    assert problem.span is not None
    assert problem.span.line == 4
    # The caret is under what names it: the driver, or else the URL.
    assert shown(problem.span) == url.rpartition(": ")[2]


def test_a_run_is_told_what_to_install(tmp_path: Path) -> None:
    write(tmp_path, 'url: "mysql+mysqldb://h/d"')
    with closing(dobo.open(tmp_path)) as workspace, pytest.raises(RunFailed) as failed:
        workspace.sample("lines", 1)
    assert failed.value.problem.code == "PACKAGE_MISSING"


def test_a_disabled_datasource_needs_nothing(tmp_path: Path) -> None:
    write(tmp_path, 'url: "mysql+mysqldb://h/d"')
    text = (tmp_path / "dobo.yaml").read_text(encoding="utf-8").replace("type: sql,", "type: sql, status: disabled,")
    (tmp_path / "dobo.yaml").write_text(text, encoding="utf-8")
    assert validate(tmp_path) == []


def test_what_is_installed_is_fine(tmp_path: Path) -> None:
    for url in (
        'url: "sqlite:///a.db"',
        "url: a.db, driver: adbc_driver_sqlite",
        "url: a.db, driver: adbc_driver_duckdb",
    ):
        write(tmp_path, url)
        assert validate(tmp_path) == []


@pytest.mark.parametrize("settings", [", sandbox: base", ", environments: {test: {sandbox: base}}"])
def test_drafts_cannot_write_there(tmp_path: Path, settings: str) -> None:
    write(tmp_path, 'url: "sqlite:///a.db"', settings)
    (problem,) = validate(tmp_path)
    assert (problem.code, "`base`" in problem.message(), "`parquet`" in (problem.hint() or "")) == (
        "INVALID_VALUE",
        True,
        True,
    )


def test_rows_of_a_datasource_that_is_broken_cannot_be_shown(tmp_path: Path) -> None:
    write(tmp_path, "url: nothing")
    with closing(dobo.open(tmp_path)) as workspace, pytest.raises(Rejected) as rejected:
        workspace.sample("lines", 1)
    assert list(rejected.value.problems) == validate(tmp_path)

"""What killed runs leave at their destinations: the next run and `dobo clean` remove it, and resuming goes on all the same."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from tests.faults.closing import Closing, data_of

if TYPE_CHECKING:
    from tests.postgresql import Server

pytestmark = [pytest.mark.spark, pytest.mark.postgresql]


@pytest.fixture
def closing(tmp_path: Path, postgresql_server: Server, connect_url: str) -> Iterator[Closing]:
    with postgresql_server.fresh_database() as url:
        yield Closing.make(tmp_path, url=url, remote=connect_url)


def staging_tables(closing: Closing) -> list[str]:
    with psycopg.connect(closing.url, password=closing.password) as connection:
        rows = connection.execute("SELECT relname FROM pg_class WHERE starts_with(relname, 'dobo_stage_')").fetchall()
    return [row[0] for row in rows]


def unpublished(closing: Closing) -> list[str]:
    """Versions of files without a manifest."""
    versions = (closing.root / "data").glob("*/.dobo-data/closed/*~*")
    return [path.name for path in versions if not (path / "manifest.json").exists()]


def clean(closing: Closing, *flags: str) -> list[dict[str, Any]]:
    done = closing.command("clean", "--json", *flags)
    assert done.returncode == 0, done.stdout
    found: list[dict[str, Any]] = data_of(done)["leftovers"]
    return found


def inputs_of(closing: Closing, run: str) -> list[Path]:
    return sorted((closing.root / ".dobo" / "runs" / run / "inputs").glob("*.parquet"))


def test_staged_files_and_tables_of_runs_that_are_over_are_listed_and_removed(closing: Closing) -> None:
    assert closing.run(failpoint="output.staged:2").returncode == -9
    assert closing.run(failpoint="output.converted:3").returncode == -9
    second, first = closing.open().runs()
    assert (len(staging_tables(closing)), len(unpublished(closing))) == (1, 4)
    # Resuming uses them again.
    assert clean(closing) == []
    for run in (first, second):
        assert closing.command("cancel", run.id).returncode == 0
    listed = clean(closing, "--dry-run")
    kinds = [(each["kind"], each["run_id"]) for each in listed if each["kind"].startswith("stag")]
    assert sorted(kinds) == sorted(
        [*[("staged files", each.id) for each in (first, second)] * 2, ("staging table", second.id)]
    )
    assert all(each["bytes"] > 0 for each in listed)
    assert (len(staging_tables(closing)), len(unpublished(closing))) == (1, 4)
    assert clean(closing) == listed
    assert (staging_tables(closing), unpublished(closing)) == ([], [])
    assert clean(closing) == []
    assert list((closing.root / ".dobo" / "runs").iterdir()) == []


def test_the_next_run_of_the_period_removes_them(closing: Closing) -> None:
    assert closing.run(failpoint="output.converted:3").returncode == -9
    (killed,) = closing.open().runs()
    assert closing.command("run", "closing", "-p", "2026-02").returncode == 0
    assert len(staging_tables(closing)) == 1
    assert inputs_of(closing, killed.id)
    assert closing.run().returncode == 0
    assert (staging_tables(closing), unpublished(closing)) == ([], [])
    assert list((closing.root / ".dobo" / "runs").iterdir()) == []


def test_those_of_a_run_at_work_stay(closing: Closing) -> None:
    with closing.waiting("output.converted:3") as run:
        tables = staging_tables(closing)
        assert len(tables) == 1
        assert clean(closing) == []
        # Nor does a run of another period that ends meanwhile touch them.
        assert closing.command("run", "closing", "-p", "2026-02").returncode == 0
        assert staging_tables(closing) == tables
        closing.go()
        run.communicate()
    assert run.returncode == 0
    assert staging_tables(closing) == []


def test_a_database_that_is_away(closing: Closing, postgresql_server: Server) -> None:
    assert closing.run(failpoint="output.converted:3").returncode == -9
    (killed,) = closing.open().runs()
    assert closing.command("cancel", killed.id).returncode == 0
    postgresql_server.stop()
    try:
        done = closing.command("clean", "--json")
    finally:
        postgresql_server.start()
    assert done.returncode == 6
    assert '"OUTPUT_WRITE"' in done.stdout
    assert closing.password not in done.stdout
    # What could not be looked at is looked at again.
    assert [each["kind"] for each in clean(closing)][:1] == ["staging table"]

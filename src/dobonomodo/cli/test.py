"""`dobo test`: run scenarios on real Spark."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from dobonomodo.cli.console import (
    Exit,
    Json,
    Settings,
    in_folder,
    open_workspace,
    put_problems,
    say,
    show,
    show_json,
    stop,
    writing,
)
from dobonomodo.problems import Rejected

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from dobonomodo.scenarios import Result

MAX_NAME = 60
"""Maximum number of characters that a scenario gives to the name of a file; file systems limit it to 255 bytes."""


def test(
    paths: Annotated[
        list[Path] | None, typer.Argument(help="Files or folders; the default is scenarios/ of the workspace.")
    ] = None,
    choose: Annotated[
        str | None, typer.Option("-k", metavar="EXPR", help="Only scenarios whose name matches: `fx and not gold`.")
    ] = None,
    first: Annotated[bool, typer.Option("-x", help="Stop at the first failure.")] = False,
    junitxml: Annotated[Path | None, typer.Option("--junitxml", metavar="F", help="Write a JUnit report.")] = None,
    as_json: Json = False,
) -> None:
    """Run scenarios: given rows, a project, and the expected rows."""
    from dobonomodo import scenarios as suite

    workspace = open_workspace()
    wanted = [in_folder(path) for path in paths or ()] or [workspace.root / "scenarios"]
    missing = [path for path in wanted if not path.exists()]
    if missing:
        _leave_without(f"there is no {missing[0]}", as_json=as_json)
    found, problems = suite.find_scenarios(wanted, root=workspace.root)
    chosen = suite.choose(found, choose)
    if problems:
        raise Rejected(problems)
    if not chosen:
        _leave_without("no scenario found", as_json=as_json)
    results = []
    kept: set[str] = set()
    for result in suite.run_suite(chosen, _spark, definitions=workspace.definitions, stop_at_first=first):
        results.append(result)
        if not as_json:
            _show(result, workspace.root, kept)
    failed = [result for result in results if not result.passed]
    if junitxml is not None:
        with writing(in_folder(junitxml)):
            in_folder(junitxml).write_text(suite.render_junit(results), encoding="utf-8")
    if as_json:
        problems = [problem for result in failed for problem in result.problems]
        show_json("test", results, problems=problems, ok=not failed)
    else:
        show(f"{len(results) - len(failed)} passed, {len(failed)} failed")
    if failed:
        stop(Exit.FAILURE)


_session: list[SparkSession] = []


def _spark() -> SparkSession:
    """One session for all scenarios, set up for few rows."""
    if not _session:
        from dobonomodo.engine import InputSize
        from dobonomodo.workspace.session import open_spark

        say("starting Spark")
        _session.append(open_spark(app_name="dobo test", conf={}, size=InputSize(0, 0)))
    return _session[0]


def _leave_without(reason: str, *, as_json: bool) -> NoReturn:
    """End without a result."""
    if as_json:
        show_json("test", [], ok=False)
    say(reason)
    stop(Exit.NOTHING)


def _show(result: Result, root: Path, kept: set[str]) -> None:
    if result.passed:
        if Settings.verbose:
            show(f"passed  {result.file}: {result.name} ({result.seconds:.2f} s)")
        return
    show(f"FAILED  {result.file}: {result.name}")
    if result.problems:
        put_problems(result.problems, sys.stdout)
        return
    for line in result.differences:
        show(f"        {line}")
    if result.actual:
        folder = root / ".dobo" / "failed"
        folder.mkdir(parents=True, exist_ok=True)
        show(f"        the actual rows are in {keep_rows(result, folder, kept).relative_to(root)}")


def keep_rows(result: Result, folder: Path, kept: set[str]) -> Path:
    """Write the actual rows of a scenario to a file of its own; ``kept`` are the names of those before it."""
    name = re.sub(r"[^\w.]+", "-", f"{Path(result.file).stem}-{result.name}")[:MAX_NAME].strip("-")
    names = (name, *(f"{name}-{number}" for number in range(2, len(kept) + 2)))
    free = next(each for each in names if each.casefold() not in kept)
    kept.add(free.casefold())
    path = folder / f"{free}.json"
    path.write_text(json.dumps(result.actual, indent=2, default=str, ensure_ascii=False), encoding="utf-8")
    return path

"""`dobo test`: run scenarios on real Spark."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

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
    show_problems,
    stop,
    writing,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from dobonomodo.scenarios import Result


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
        say(f"there is no {missing[0]}")
        stop(Exit.NOTHING)
    found, problems = suite.find_scenarios(wanted, root=workspace.root)
    chosen = suite.choose(found, choose)
    if problems:
        show_problems(problems)
        stop(Exit.FAILURE)
    if not chosen:
        say("no scenario found")
        stop(Exit.NOTHING)
    results = []
    for result in suite.run_suite(chosen, _spark, definitions=workspace.definitions, stop_at_first=first):
        results.append(result)
        if not as_json:
            _show(result, workspace.root)
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


def _show(result: Result, root: Path) -> None:
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
        kept = folder / (Path(result.file).stem + ".json")
        kept.write_text(json.dumps(result.actual, indent=2, default=str, ensure_ascii=False), encoding="utf-8")
        show(f"        the actual rows are in {kept.relative_to(root)}")

"""`dobo run`, `resume`, `cancel` and `verify`: from a checked project to published outputs, and back to them."""

from __future__ import annotations

import logging
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from dobonomodo.cli.arguments import ProjectId, RunId, Set, periods, read_set
from dobonomodo.cli.console import (
    Exit,
    Json,
    Log,
    LogFormat,
    Settings,
    complain,
    find_exit,
    open_workspace,
    say,
    show,
    show_json,
    show_problems,
    stop,
    usage_error,
)
from dobonomodo.cli.decisions import Reason
from dobonomodo.cli.plan import day, moment, plan

if TYPE_CHECKING:
    from dobonomodo.runs import RunView
    from dobonomodo.runs.comparison import Other
    from dobonomodo.workspace import SessionOptions, Workspace

Master = Annotated[str | None, typer.Option("--master", metavar="URL", help="Where Spark runs: local[4], spark://...")]
Remote = Annotated[str | None, typer.Option("--remote", metavar="URL", help="A Spark Connect server: sc://host:15002.")]
Conf = Annotated[list[str] | None, typer.Option("--spark-conf", metavar="K=V", help="A setting of Spark.")]
WaitForExecutors = Annotated[
    float | None,
    typer.Option("--wait-for-executors", metavar="S", min=1, help="Seconds to wait for executors of Spark [300]."),
]
Wait = Annotated[bool, typer.Option("--wait", help="Wait for another run of the same project and period.")]


def run(
    project: ProjectId,
    period: Annotated[
        list[str],
        typer.Option(
            "--period",
            "-p",
            metavar="P",
            help="A period, a range such as 2026-01..2026-12, or `latest`; repeatable.",
            autocompletion=periods,
        ),
    ],
    as_of: Annotated[
        str | None, typer.Option("--as-of", metavar="D", help="The day on which bitemporal rows must be valid.")
    ] = None,
    started_at: Annotated[
        str | None,
        typer.Option("--started-at", metavar="T", help="The time of the run; the default is the current time."),
    ] = None,
    override_closed: Annotated[
        bool, typer.Option("--override-closed", help="Run a closed period; needs --reason.")
    ] = False,
    reason: Reason = None,
    draft: Annotated[bool, typer.Option("--draft", help="Run the files and write to the sandbox.")] = False,
    parameters: Set = None,
    master: Master = None,
    remote: Remote = None,
    spark_conf: Conf = None,
    wait_for_executors: WaitForExecutors = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be read, done and written.")] = False,
    wait: Wait = False,
    no_figures: Annotated[bool, typer.Option("--no-figures", help="Compute no totals.")] = False,
    log: Log = LogFormat.TEXT,
    as_json: Json = False,
) -> None:
    """Run a project for one or more periods, one after the other in date order."""
    del log
    if reason is not None and not override_closed:
        usage_error("--reason belongs to --override-closed")
    workspace = open_workspace()
    chosen = workspace.find_periods(period, started_at=moment(started_at))
    if dry_run:
        for each in chosen:
            plan(
                project,
                period=each.identifier,
                as_of=as_of,
                started_at=started_at,
                draft=draft,
                parameters=parameters,
                as_json=as_json,
            )
        return
    workspace.require_runnable(chosen, override_closed=override_closed)
    finished: list[RunView] = []
    stopped: tuple[str, str] | None = None
    if not draft and workspace.has_newer_files(project):
        say("the files changed after this version was activated; `--draft` runs them and writes to the sandbox")
    try:
        with ending_cleanly():
            for each in chosen:
                from dobonomodo.cli.progress import make_progress

                progress = make_progress()
                try:
                    view = workspace.run(
                        project,
                        period=each.identifier,
                        as_of=day(as_of),
                        started_at=moment(started_at),
                        draft=draft,
                        override_closed=override_closed,
                        reason=reason,
                        wait=wait,
                        figures=False if no_figures else None,
                        listener=progress,
                        session=choose_session(master, remote, spark_conf, wait_for_executors),
                        parameters=read_set(parameters),
                    )
                except (KeyboardInterrupt, SystemExit):
                    stopped = (each.identifier, progress.run_id) if progress.run_id is not None else None
                    raise
                finally:
                    _release(progress)
                finished.append(view)
                if not as_json:
                    _show_end(view, workspace, among_others=len(chosen) > 1)
                if view.status != "completed":
                    break
    finally:
        if len(chosen) > 1 and not as_json and not Settings.quiet:
            from dobonomodo.cli.progress import show_periods
            from dobonomodo.model.locale import LOCALES

            names = [each.identifier for each in chosen]
            show_periods(names, finished, LOCALES[workspace.settings.locale], stopped=stopped)
    _leave(finished, workspace, as_json=as_json, thing="run")


def resume(
    run_id: RunId,
    master: Master = None,
    remote: Remote = None,
    spark_conf: Conf = None,
    wait_for_executors: WaitForExecutors = None,
    wait: Wait = False,
    log: Log = LogFormat.TEXT,
    as_json: Json = False,
) -> None:
    """Continue a run that failed or was killed; published outputs are not written again."""
    from dobonomodo.cli.progress import make_progress

    del log
    progress = make_progress()
    workspace = open_workspace()
    with ending_cleanly():
        try:
            session = choose_session(master, remote, spark_conf, wait_for_executors)
            view = workspace.resume(run_id, wait=wait, listener=progress, session=session)
        finally:
            _release(progress)
    if not as_json:
        _show_end(view, workspace)
    _leave([view], workspace, as_json=as_json, thing="resume")


def cancel(run_id: RunId, as_json: Json = False) -> None:
    """Cancel a run; outputs that it has published stay."""
    view = open_workspace().cancel(run_id)
    if as_json:
        show_json("cancel", view)
    else:
        say(f"run {view.id} is cancelled; if it is in progress, it stops within seconds")


def verify(
    run_id: RunId,
    replay: Annotated[bool, typer.Option("--replay", help="Compute everything again and compare.")] = False,
    master: Master = None,
    remote: Remote = None,
    spark_conf: Conf = None,
    wait_for_executors: WaitForExecutors = None,
    as_json: Json = False,
) -> None:
    """Check that the outputs of a run still match its record."""
    with ending_cleanly():
        session = choose_session(master, remote, spark_conf, wait_for_executors)
        view, problems = open_workspace().verify(run_id, replay=replay, session=session, report=say)
    if as_json:
        show_json("verify", view, problems=problems, ok=not problems)
    else:
        differing = {getattr(problem, "table", None) for problem in problems}
        how = "computed again" if replay else "read back"
        for output in view.outputs.values():
            if output.table not in differing:
                show(f"{output.table}: {output.rows:,} rows, {how}, digest {output.digest} as recorded")
        show_problems(list(problems))
        if not view.outputs:
            say(f"run {view.id} has published no output")
    if problems:
        stop(Exit.FAILURE)
    if not view.outputs:
        stop(Exit.NOTHING)


def choose_session(
    master: str | None, remote: str | None, settings: list[str] | None, wait_for_executors: float | None
) -> SessionOptions:
    """The Spark connection that the flags of a command select."""
    from dobonomodo.model.secret import address_holds_secret, is_reference, is_secret_key, setting_holds_secret
    from dobonomodo.model.workspace import TOKEN_VARIABLE
    from dobonomodo.workspace import SessionOptions

    if master is not None and remote is not None:
        usage_error("use either --master or --remote")
    for flag, address in (("--master", master), ("--remote", remote)):
        if address is not None and address_holds_secret(address):
            usage_error(f"{flag} contains a secret, which other users can see; pass it in {TOKEN_VARIABLE}")
    conf = {}
    for setting in settings or ():
        name, equal, value = setting.partition("=")
        if not equal or not name:
            usage_error("--spark-conf needs the form name=value")
        if setting_holds_secret(value) or (is_secret_key(name) and not is_reference(value)):
            usage_error(f"the setting `{name}` contains a secret, which other users can see; write {name}=env://NAME")
        conf[name] = value
    options = SessionOptions(master, remote, conf)
    return options if wait_for_executors is None else replace(options, wait_for_executors=wait_for_executors)


@contextmanager
def ending_cleanly() -> Iterator[None]:
    """SIGTERM ends a run like Ctrl-C: its record is written and its lease released."""

    def end(number: int, frame: object) -> NoReturn:
        del number, frame
        raise SystemExit(143)

    # Py4J logs an interruption to the root logger, as a traceback.
    if not Settings.debug:
        logging.getLogger().addHandler(logging.NullHandler())

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _release(progress: Any) -> None:
    """Restore the terminal; an interrupted run shows how to resume it."""
    progress.stop()
    if isinstance(sys.exc_info()[1], KeyboardInterrupt | SystemExit) and progress.resumable:
        complain(f"to resume: dobo resume {progress.run_id}")


def _show_end(view: RunView, workspace: Workspace, *, among_others: bool = False) -> None:
    """The end of a run; a completed one among the runs for several periods is shown in short."""
    from dobonomodo.cli.progress import show_end, show_end_of_period
    from dobonomodo.model.locale import LOCALES

    resumable = view.status == "failed" and workspace.can_resume(view.id)
    locale = LOCALES[workspace.settings.locale]
    if among_others and view.status == "completed":
        show_end_of_period(view, locale)
    else:
        show_end(view, resumable=resumable, others=_find_others(view, workspace), locale=locale)
    if view.locked is not None:
        from dobonomodo.cli.diff import show_locked

        show_locked(view.locked)


def _find_others(view: RunView, workspace: Workspace) -> Sequence[Other]:
    """What to compare with; a run that failed may have lost its store."""
    return workspace.compare(view.id) if view.status == "completed" else ()


def _leave(views: list[RunView], workspace: Workspace, *, as_json: bool, thing: str) -> None:
    from dobonomodo.engine import make_archive_later

    make_archive_later()
    last = views[-1]
    failed = last.status != "completed"
    if as_json:
        from dobonomodo.runs.record import Compared

        found = [Compared(view, _find_others(view, workspace)) for view in views]
        problems = [*last.problems, *last.warnings]
        show_json(thing, found[0] if len(found) == 1 else found, problems=problems, ok=not failed)
    if not failed:
        return
    sys.stderr.flush()
    stop(find_exit(last.problems))

"""The progress of a run: live lines on a terminal, one plain line for each change of state elsewhere."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any

from dobonomodo.cli.console import Settings, complain, log, make_console, say, terminal_width
from dobonomodo.model.locale import ENGLISH
from dobonomodo.problems.render import INDENT, fold_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dobonomodo.model.locale import Locale
    from dobonomodo.plan import Plan, Step
    from dobonomodo.plan.counts import OperationCounts
    from dobonomodo.runs import RunView
    from dobonomodo.runs.comparison import Other

MARKS = {"completed": "green", "failed": "red", "cancelled": "yellow", "running": "cyan"}


def make_progress() -> PlainProgress | LiveProgress | JsonProgress:
    """Live on a terminal, plain in a file or a pipe, lines of JSON where they are asked for."""
    if Settings.log_json:
        return JsonProgress()
    live = sys.stderr.isatty() and not Settings.quiet
    return LiveProgress() if live else PlainProgress()


class PlainProgress:
    """One line for each change of state."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._shown: set[int] = set()
        self.run_id: str | None = None
        self.resumable = False

    def started(self, run: RunView, plan: Plan) -> None:
        """The run has its record."""
        del plan
        self.run_id, self.resumable = run.id, run.snapshot.get("inputs") is not None
        which = "draft, into the sandbox" if run.draft else f"version {run.version}"
        self._line(f"run {run.id}: {run.project} ({which}), period {run.period}")

    def working(self, what: str) -> None:
        """What comes next."""
        self._line(what)

    def output_started(self, step: Step) -> None:
        """Spark computes an output."""
        self._line(f"{step.spec.seq} {step.spec.name}: computing and writing")

    def advanced(self, run: RunView) -> None:
        """An output is published, and what led to it is known."""
        for operation in run.operations:
            if operation.rows_in is not None and operation.seq not in self._shown:
                self._shown.add(operation.seq)
                self._line(f"{operation.seq} {operation.name} ({operation.type}): {describe_counts(operation)}")

    def finished(self, run: RunView) -> None:
        """The run is over."""
        del run

    def stop(self) -> None:
        """Nothing to give back."""

    def _line(self, text: str) -> None:
        say(f"[{time.monotonic() - self._began:6.1f} s] {text}")


class JsonProgress:
    """One line of JSON for each event, with the run that it belongs to."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._shown: set[int] = set()
        self._facts: dict[str, object] = {}
        self.run_id: str | None = None
        self.resumable = False

    def started(self, run: RunView, plan: Plan) -> None:
        """The run has its record."""
        del plan
        self.run_id, self.resumable = run.id, run.snapshot.get("inputs") is not None
        self._facts = {"run_id": run.id, "project": run.project, "period": run.period}
        self._log("run_started", draft=run.draft, version=run.version, attempt=run.attempts)

    def working(self, what: str) -> None:
        """What comes next."""
        self._log("working", text=what)

    def output_started(self, step: Step) -> None:
        """Spark computes an output."""
        self._log("output_started", seq=step.spec.seq, name=step.spec.name)

    def advanced(self, run: RunView) -> None:
        """An output is published, and what led to it is known."""
        for operation in run.operations:
            if operation.rows_in is not None and operation.seq not in self._shown:
                self._shown.add(operation.seq)
                text, named = describe_counts(operation), f"{operation.name} ({operation.type})"
                self._log("operation", seq=operation.seq, name=named, rows_in=operation.rows_in, text=text)

    def finished(self, run: RunView) -> None:
        """The run is over."""
        outputs = [{"table": each.table, "rows": each.rows, "digest": each.digest} for each in run.outputs.values()]
        level = "info" if run.status == "completed" else "error"
        self._log("run_finished", level=level, status=run.status, outputs=outputs)

    def stop(self) -> None:
        """Nothing to give back."""

    def _log(self, event: str, *, level: str = "info", **facts: object) -> None:
        log(event, level=level, seconds=round(time.monotonic() - self._began, 3), **self._facts, **facts)


class LiveProgress:
    """A table that fills while Spark works."""

    def __init__(self) -> None:
        from rich.live import Live

        self._console = make_console(sys.stderr, markup=True)
        self._began = time.monotonic()
        self._what = "starting"
        self.run_id: str | None = None
        self.resumable = False
        self._operations: Sequence[OperationCounts] = ()
        self._active: int | None = None
        self._live = Live(
            console=self._console,
            refresh_per_second=8,
            get_renderable=self._render,
            transient=True,
            redirect_stderr=False,
        )

    def started(self, run: RunView, plan: Plan) -> None:
        """The run has its record."""
        from rich.markup import escape

        del plan
        self.run_id, self.resumable = run.id, run.snapshot.get("inputs") is not None
        which = "draft, into the sandbox" if run.draft else f"version {run.version}"
        self._live.stop()
        project, period = escape(run.project), escape(run.period)
        self._console.print(f"run [bold]{run.id}[/]: {project} ({which}), period [bold]{period}[/]")
        self._operations = run.operations
        self._live.start()

    def working(self, what: str) -> None:
        """What comes next."""
        self._what = what
        if not self._live.is_started:
            self._live.start()

    def output_started(self, step: Step) -> None:
        """Spark computes an output."""
        self._active = step.spec.seq
        self._what = f"computing {step.spec.name}"

    def advanced(self, run: RunView) -> None:
        """An output is published, and what led to it is known."""
        self._operations = run.operations
        self._active = None

    def finished(self, run: RunView) -> None:
        """The run is over; its table stays on the screen with the summary."""
        del run
        self._live.stop()

    def stop(self) -> None:
        """Give the terminal back."""
        self._live.stop()

    def _render(self) -> Any:
        from rich.console import Group
        from rich.spinner import Spinner
        from rich.text import Text

        seconds = time.monotonic() - self._began
        lines: list[Any] = []
        for operation in self._operations:
            done = operation.rows_in is not None
            mark, style = ("✓", "green") if done else ("▸", "cyan") if operation.seq == self._active else ("·", "dim")
            text = Text(
                f" {mark} {operation.seq:>4}  {operation.type:<9}  {operation.name}", style=style if not done else ""
            )
            if done:
                text.append(f"  {describe_counts(operation)}", style="dim")
            lines.append(text)
        lines.append(Spinner("dots", text=Text(f"{self._what}  {seconds:.0f} s")))
        return Group(*lines)


def describe_counts(operation: OperationCounts) -> str:
    """The row counts of an operation as text, without redundant ones."""
    if operation.rows_in is None:
        return "not reached"
    from dobonomodo.plan.operations import Effect, find_facts

    facts = find_facts(operation.type)
    parts = [f"{operation.rows_in:,} rows"]
    if Effect.ADDS in facts.effect:
        parts.append(f"{operation.added or 0:,} added")
    else:
        parts.append(f"{operation.selected or 0:,} {facts.counted}")
    if operation.seconds is not None:
        parts.append(f"{operation.seconds:.1f} s")
    return ", ".join(parts)


def show_summary(run: RunView, others: Sequence[Other], locale: Locale) -> None:
    """The results of a run: rows, outputs, figures compared with other runs."""
    from rich.markup import escape

    from dobonomodo.cli.checks import show_checks
    from dobonomodo.cli.figures import show_figures
    from dobonomodo.cli.table import show_counts

    console = make_console(sys.stderr, markup=True)
    console.print()
    lines: list[tuple[str, ...]] = [("seq", "operation", "in", "selected", "added", "deleted", "out")]
    for each in run.operations:
        numbers = [each.rows_in, each.selected, each.added, each.deleted, each.rows_out]
        counts = ["" if number is None else locale.show(number) for number in numbers]
        lines.append((str(each.seq), f"{each.name} ({each.type})", *counts))
    if any(each.rows_in is not None or each.selected is not None for each in run.operations):
        show_counts(lines, right={0, 2, 3, 4, 5, 6})
    show_checks(console, run.checks, locale)
    for output in run.outputs.values():
        where = output.location.shown or output.destination
        kept = (
            f", dataset {escape(output.dataset_id or '')} v{output.dataset_version}" if output.dataset_version else ""
        )
        console.print(
            f"\nwrote [bold]{locale.show(output.rows)}[/] rows to [bold]{escape(where)}[/]{kept}\n"
            f"[dim]digest {output.digest}[/]"
        )
    show_figures(run, others, locale)
    color = MARKS.get(run.status, "white")
    console.print(f"\n[{color}]{run.status}[/] in {run.seconds:.1f} s")


def show_end(run: RunView, *, resumable: bool, others: Sequence[Other] = (), locale: Locale = ENGLISH) -> None:
    """The warnings of a run, its problems if it failed, then the summary, and the next command."""
    for problem in (*(() if Settings.quiet else run.warnings), *run.problems):
        complain("")
        _complain(f"{problem.severity}[{problem.code}]: ", problem.message())
        for note in problem.notes():
            _complain("  ", note)
        if problem.operation is not None:
            _complain("  --> ", f"operation {problem.operation.seq} `{problem.operation.name}`")
        if problem.expression:
            _complain("      ", problem.expression)
        if hint := problem.hint():
            _complain("   help: ", hint)
    if not Settings.quiet:
        show_summary(run, others, locale)
    if run.status == "failed":
        draft = " --draft" if run.draft else ""
        again = f"dobo resume {run.id}" if resumable else f"dobo run {run.project} --period {run.period}{draft}"
        complain(f"\nto {'continue from here' if resumable else 'start again'}: {again}")
    if run.status == "completed":
        say(f"next: dobo runs report {run.id}\n      dobo verify {run.id}")


def show_end_of_period(run: RunView, locale: Locale = ENGLISH) -> None:
    """A completed run among others, in one line, with the checks that did not pass; the figures of all follow in the end."""
    from dobonomodo.cli.checks import show_checks

    if Settings.quiet:
        return
    console = make_console(sys.stderr, markup=True)
    for warning in run.warnings:
        _complain(f"{warning.severity}[{warning.code}]: ", warning.message())
    show_checks(console, [each for each in run.checks if each.outcome != "passed"], locale)
    rows = (f"{name} {locale.show(output.rows)} rows" for name, output in run.outputs.items())
    say(f"period {run.period} {run.status} in {run.seconds:.1f} s: {', '.join(rows) or 'no output'}")


def show_periods(
    periods: Sequence[str],
    runs: Sequence[RunView],
    locale: Locale = ENGLISH,
    *,
    stopped: tuple[str, str] | None = None,
) -> None:
    """The result of each of several periods, in one table, and their figures; ``stopped`` is what was interrupted."""
    from dobonomodo.cli.figures import show_figures_by_period
    from dobonomodo.cli.table import show_counts

    run_by_period = {run.period: run for run in runs}
    tables = list(dict.fromkeys(name for run in runs for name in run.outputs))
    lines = [("period", "status", *(f"rows of {name}" for name in tables), "seconds", "run")]
    for period in periods:
        run = run_by_period.get(period)
        if run is None:
            status, run_id = ("interrupted", stopped[1]) if stopped and stopped[0] == period else ("not run", "")
            lines.append((period, status, *("" for _ in tables), "", run_id))
            continue
        rows = [locale.show(run.outputs[name].rows) if name in run.outputs else "" for name in tables]
        lines.append((period, run.status, *rows, f"{run.seconds:.1f}", run.id))
    show_figures_by_period(runs, locale)
    say("")
    show_counts(lines, right=set(range(2, len(tables) + 3)))
    if any(run.status == "completed" for run in runs):
        say("next: dobo runs report RUN")


def _complain(start: str, text: str) -> None:
    """A line, folded where the terminal is too narrow for it."""
    first, *more = fold_words(text, terminal_width(sys.stderr), indent=INDENT, start=len(start))
    complain("\n".join([start + first, *(" " * INDENT + line for line in more)]))

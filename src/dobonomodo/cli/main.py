"""The command `dobo`: the list of commands, the common flags, and how exceptions are reported."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.exceptions import TyperException

from dobonomodo.cli.activate import activate, deactivate
from dobonomodo.cli.apply import apply
from dobonomodo.cli.audit import audit
from dobonomodo.cli.clean import clean
from dobonomodo.cli.console import Exit, Json, Settings, complain, find_exit, show_json, show_problems
from dobonomodo.cli.dataset import dataset
from dobonomodo.cli.diff import diff
from dobonomodo.cli.doctor import doctor
from dobonomodo.cli.evidence import evidence
from dobonomodo.cli.explain import explain
from dobonomodo.cli.formula import formula
from dobonomodo.cli.functions import functions
from dobonomodo.cli.history import history
from dobonomodo.cli.init import init
from dobonomodo.cli.ls import ls, show_one
from dobonomodo.cli.period import period
from dobonomodo.cli.plan import plan
from dobonomodo.cli.run import cancel, resume, verify
from dobonomodo.cli.run import run as run_project
from dobonomodo.cli.runs import runs
from dobonomodo.cli.schema import schema
from dobonomodo.cli.sign import sign, unsign
from dobonomodo.cli.test import test
from dobonomodo.cli.validate import validate
from dobonomodo.cli.why import why, why_not

if TYPE_CHECKING:
    from dobonomodo.problems import Problem

app = typer.Typer(
    name="dobo",
    help="Period calculations as data: checked before a row is read, the same every time, explained.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # importing rich for the help text alone takes longer than everything else
    context_settings={"help_option_names": ["-h", "--help"]},
)

_COMMANDS: tuple[tuple[str, Callable[..., None]], ...] = (
    ("init", init),
    ("validate", validate),
    ("test", test),
    ("plan", plan),
    ("run", run_project),
    ("resume", resume),
    ("cancel", cancel),
    ("verify", verify),
    ("why", why),
    ("why-not", why_not),
    ("clean", clean),
    ("apply", apply),
    ("activate", activate),
    ("deactivate", deactivate),
    ("sign", sign),
    ("unsign", unsign),
    ("history", history),
    ("diff", diff),
    ("evidence", evidence),
    ("ls", ls),
    ("show", show_one),
    ("formula", formula),
    ("functions", functions),
    ("explain", explain),
    ("schema", schema),
    ("doctor", doctor),
)

for _name, _command in _COMMANDS:
    app.command(_name)(_command)
app.add_typer(audit, name="audit")
app.add_typer(dataset, name="dataset")
app.add_typer(period, name="period")
app.add_typer(runs, name="runs")


def _show_version(value: bool) -> None:
    if value:
        from dobonomodo import __version__

        typer.echo(f"dobo {__version__}")
        raise typer.Exit


@app.callback()
def common(
    context: typer.Context,
    directory: Annotated[str | None, typer.Option("-C", metavar="DIR", help="Work in this folder.")] = None,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="Show fewer messages.")] = False,
    verbose: Annotated[bool, typer.Option("-v", "--verbose", help="Show more messages.")] = False,
    no_color: Annotated[bool, typer.Option("--no-color", help="No colours, like NO_COLOR.")] = False,
    environment: Annotated[
        str | None, typer.Option("--env", metavar="E", help="An environment of the workspace.")
    ] = None,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks.")] = False,
    as_json: Json = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Flags that every command knows, before its name and behind it."""
    del version, as_json
    Settings.command = context.invoked_subcommand or "dobo"
    _take_flags(directory=directory, quiet=quiet, verbose=verbose, no_color=no_color, env=environment, debug=debug)


def _take_flags(
    *,
    directory: str | None = None,
    quiet: bool = False,
    verbose: bool = False,
    no_color: bool = False,
    env: str | None = None,
    debug: bool = False,
) -> None:
    """Add to the common flags; those that are not given stay as they are."""
    Settings.folder = Settings.folder if directory is None else directory
    Settings.environment = Settings.environment if env is None else env
    Settings.quiet, Settings.verbose = Settings.quiet or quiet, Settings.verbose or verbose
    Settings.debug = Settings.debug or debug
    if no_color:
        Settings.color = False


def main() -> None:
    """Run a command and leave with its exit code."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Run a command and return its exit code; tracebacks are shown only with --debug."""
    from dobonomodo.problems import Rejected, RunFailed
    from dobonomodo.problems.internal import InternalFault
    from dobonomodo.problems.package import find_missing_package
    from dobonomodo.problems.workspace import InvalidUsage

    Settings.reset()
    try:
        result = _all_commands()(arguments, prog_name="dobo", standalone_mode=False)
    except TyperException as error:
        from dobonomodo.cli.usage import explain_usage, join_help

        # An option that does not exist is found before the others are read.
        Settings.as_json = Settings.as_json or "--json" in arguments
        message, *more = explain_usage(error).splitlines()
        if Settings.as_json:
            return refuse([InvalidUsage(reason=message, advice=join_help(more))])
        complain("\n".join([message, *more]))
        return Exit.USAGE
    except (KeyboardInterrupt, typer.Abort):
        complain("interrupted")
        return Exit.INTERRUPTED
    except Rejected as error:
        return refuse(error.problems)
    except RunFailed as error:
        return refuse([error.problem])
    except Exception as error:  # noqa: BLE001  the last place where a traceback can be kept from the user
        if Settings.debug:
            complain(traceback.format_exc())
        if isinstance(error, ImportError) and (missing := find_missing_package(error)) is not None:
            return refuse([missing.problem])
        return refuse([InternalFault(detail=f"{type(error).__name__}: {error}")])
    return result if isinstance(result, int) else Exit.SUCCESS


@cache
def _all_commands() -> Any:
    """All commands; put together once, which takes longer than most of them."""
    root = typer.main.get_command(app)
    flags = [each for each in root.params if each.name in _FLAGS]
    for command in walk_commands(root):
        known = {name for each in command.params for name in each.opts}
        command.params += [_behind(flag) for flag in flags if known.isdisjoint(flag.opts)]
    return root


_FLAGS = frozenset({"directory", "quiet", "verbose", "no_color", "environment", "debug", "as_json"})


def walk_commands(root: Any) -> Iterator[Any]:
    """Every command and group below a group."""
    for command in getattr(root, "commands", {}).values():
        yield command
        yield from walk_commands(command)


def _behind(flag: Any) -> Any:
    """A flag of the root as one of another command, whose function does not receive it."""

    def take(context: Any, parameter: Any, value: Any) -> None:
        del context, parameter
        if flag.name == "as_json":
            Settings.as_json = Settings.as_json or value
        elif value:
            _take_flags(**{"env" if flag.name == "environment" else flag.name: value})

    own = copy(flag)
    # Under a name that no parameter of the command has.
    own.name, own.expose_value, own.callback = f"common {flag.name}", False, take
    return own


def refuse(problems: Sequence[Problem]) -> int:
    """Show why a command was refused, as text or JSON; the exit code tells who must act."""
    if Settings.as_json:
        show_json(Settings.command, None, problems=problems, ok=False)
    else:
        show_problems(problems)
    return find_exit(problems)

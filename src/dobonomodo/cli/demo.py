"""`make demo`: from an empty folder to results for two months, then the report of a mistake. Runs what a user would type."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from dobonomodo.cli.console import Exit, colored, put
from dobonomodo.cli.init import make_workspace
from dobonomodo.cli.main import run
from dobonomodo.cli.table import show_rows
from dobonomodo.workspace import Workspace

FOLDER = "demo-workspace"
PROJECT = "monthly-sales"
PERIODS = ("2026-01", "2026-02")

MISTAKES = (
    ("orders.customer_id = customers.id", "orders.custmer_id = customers.id"),
    ("ROUND(orders.amount * 0.9, 2)", "ROUND(orders.amount * 0.9; 2)"),
    ("SUM(orders.discounted_price)", "VLOOKUP(orders.discounted_price)"),
    ("orders.amount = 0", 'orders.amount = "0"'),
    ("datasource_id: warehouse", "datasource_id: warehose"),
)


def main() -> int:
    """Show a workspace from its first file to its results, then the report of a mistake."""
    began = time.monotonic()
    home = Path.cwd()
    folder = home / FOLDER
    if folder.exists() and not (folder / "dobo.yaml").exists():
        sys.stderr.write(f"{folder} exists and is not a workspace; move it away first\n")
        return Exit.USAGE
    shutil.rmtree(folder, ignore_errors=True)
    _say("A workspace is a folder of YAML files and data.", f"dobo init {FOLDER} --template sales")
    make_workspace(folder, "sales")
    (folder / ".gitignore").write_text("*\n")
    _print(_render_tree(folder))
    os.chdir(folder)
    try:
        return _show(home, folder, began)
    finally:
        os.chdir(home)


def _show(home: Path, folder: Path, began: float) -> int:
    project = folder / "projects" / f"{PROJECT}.yaml"
    _say("The calculation is a list of operations. This is one of the eight:")
    _print(_cut_operation(project.read_text(encoding="utf-8"), 20))
    steps = (
        ("Everything is checked before a row is read, and without Spark.", ["validate"]),
        ("What a run would read, do and write.", ["plan", PROJECT, "--period", PERIODS[0]]),
        ("Definitions are recorded, with versions. An active project writes to its real destination.", ["apply", "-y"]),
        (None, ["activate", PROJECT]),
        ("Two months, one run each.", ["run", PROJECT, *(part for each in PERIODS for part in ("--period", each))]),
    )
    for title, arguments in steps:
        code = _dobo(arguments, title=title)
        if code != Exit.SUCCESS:
            return code
    _show_results(folder)
    code = _show_mistakes(folder) or _show_failing_check(folder)
    _say_goodbye(home, folder, began)
    return code


# --- what came out


def _show_results(folder: Path) -> None:
    processed = _read(folder / "results" / "processed_orders")
    removed = _read(folder / "results" / "removed_orders")
    orders = [row for row in processed if row["row_type"] == "order"]
    made = sorted(
        (row for row in processed if row["row_type"] != "order"),
        key=lambda row: (row["_period"], row["region"], row["row_type"] == "budget"),
    )
    _say(f"Table processed_orders has {len(orders):,} orders with a price after discount, such as these:")
    gold = [row for row in orders if row["customer_tier"] == "gold"]
    detail = ["order_id", "order_date", "region", "amount", "customer_tier", "discounted_price"]
    _show_table(detail, [*gold[:2], *orders[:2]])
    _say("It also has the totals of every region, and the budget:")
    _show_table(["_period", "region", "row_type", "total_sales", "order_count"], made)
    _say(f"Deleted rows are not lost: table removed_orders has {len(removed):,} orders without an amount.")
    _show_table(["order_id", "order_date", "customer_id", "region", "status", "amount"], removed[:3])
    _say("Where the files are. Any tool can read them; each month is a folder that is replaced as a whole.")
    for path in sorted((folder / "results").glob("*/run_period=*")):
        files = list(path.glob("*.parquet"))
        size = sum(file.stat().st_size for file in files)
        _print(f"{Path(FOLDER) / path.relative_to(folder)}/*.parquet   {size / 1024:,.0f} KB\n")


def _read(table: Path) -> list[dict[str, object]]:
    """The rows of all periods."""
    import pyarrow.parquet as pq

    rows: list[dict[str, object]] = pq.read_table(table).to_pylist()
    return rows


def _show_table(columns: Sequence[str], rows: Iterable[Mapping[str, object]]) -> None:
    show_rows("", [{name: row[name] for name in columns} for row in rows])
    sys.stdout.flush()


# --- the report of a mistake


def _show_mistakes(folder: Path) -> int:
    title = "The same project with five mistakes in it, all of them found at once."
    return _fail_in_copy(folder, MISTAKES, ["validate"], title=title)


def _show_failing_check(folder: Path) -> int:
    """A project that can be computed and whose result is wrong."""
    title = "The same project, with an operation that deletes too much. Its checks fail, and nothing is published."
    wrong = ("selector: orders.amount = 0", "selector: orders.amount < 100")
    return _fail_in_copy(folder, (wrong,), ["run", PROJECT, "--period", PERIODS[1]], title=title)


def _fail_in_copy(folder: Path, changes: Sequence[tuple[str, str]], arguments: Sequence[str], *, title: str) -> int:
    """Show how a command fails on a copy of the workspace with other text in its project."""
    with tempfile.TemporaryDirectory(prefix="dobo-demo-") as temporary:
        copy = Path(temporary) / "copy"
        shutil.copytree(folder, copy, ignore=shutil.ignore_patterns("results", ".dobo"))
        project = copy / "projects" / f"{PROJECT}.yaml"
        broken = project.read_text(encoding="utf-8")
        for right, wrong in changes:
            broken = broken.replace(right, wrong, 1)
        project.write_text(broken, encoding="utf-8")
        os.chdir(copy)
        try:
            code = _dobo(arguments, title=title)
        finally:
            os.chdir(folder)
    return Exit.SUCCESS if code == Exit.FAILURE else Exit.FAILURE


def _say_goodbye(home: Path, folder: Path, began: float) -> None:
    found = Path(sys.executable).with_name("dobo")
    command = str(found.relative_to(home)) if found.is_relative_to(home) else str(found)
    latest = Workspace.open(folder).runs(limit=1)[0].id
    _say(f"That took {time.monotonic() - began:.0f} s. Three commands to try next:")
    _print(f"{command} -C {FOLDER} runs report {latest}\n    one HTML file about the last run\n")
    _print(f"{command} -C {FOLDER} verify {latest}\n    proves that its results are still what it wrote\n")
    _print(f"{command} -C {FOLDER} test\n    computes the scenarios and compares to the last digit\n")
    _print(f"\nThen change a formula in {FOLDER}/projects/{PROJECT}.yaml. {FOLDER}/README.md shows how to continue.\n")


# --- talking


def _dobo(arguments: Sequence[str], *, title: str | None) -> int:
    _say(title, f"dobo {' '.join(arguments)}")
    code = int(run(list(arguments)))
    sys.stdout.flush()
    sys.stderr.flush()
    return code


def _say(title: str | None, command: str | None = None) -> None:
    sys.stderr.flush()
    bold, dim, plain = ("\x1b[1m", "\x1b[36m", "\x1b[0m") if colored(sys.stdout) else ("", "", "")
    lines = []
    if title is not None:
        lines.append(f"\n{bold}{title}{plain}\n")
    if command is not None:
        lines.append(f"{dim}$ {command}{plain}")
    _print("\n".join(lines) + "\n")


def _print(text: str) -> None:
    put(text, sys.stdout)


def _render_tree(folder: Path) -> str:
    """The files by folder, without those that only tools read."""
    lines = [f"{FOLDER}/"]
    for path in sorted(folder.iterdir(), key=lambda each: (each.is_file(), each.name)):
        if path.name.startswith(".") or path.name == "schema.json":
            continue
        inside = [str(each.relative_to(path)) for each in sorted(path.rglob("*")) if each.is_file()]
        lines.append(f"  {path.name}/".ljust(16) + ", ".join(inside) if path.is_dir() else f"  {path.name}")
    return "\n".join(lines) + "\n"


def _cut_operation(text: str, seq: int) -> str:
    """The lines of one operation of a project file."""
    start = text.index(f"    - seq: {seq}\n")
    return text[start : text.index("\n\n", start)] + "\n"


if __name__ == "__main__":
    sys.exit(main())

"""`make demo`: what exists so far, shown on a workspace of its own. Runs the commands a user would type."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

from dobonomodo.cli.init import make_workspace
from dobonomodo.cli.main import run

MISTAKES = (
    ("orders.customer_id = customers.id", "orders.custmer_id = customers.id"),
    ("ROUND(orders.amount * 0.9, 2)", "ROUND(orders.amount * 0.9; 2)"),
    ("SUM(orders.discounted_price)", "VLOOKUP(orders.discounted_price)"),
    ("orders.amount = 0", 'orders.amount = "0"'),
    ("datasource_id: warehouse", "datasource_id: warehose"),
)


def main() -> int:
    """Show a workspace from first file to proven result, then what a mistake looks like."""
    folder = Path(tempfile.mkdtemp(prefix="dobo-demo-"))
    try:
        return _show(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _show(folder: Path) -> int:
    _say("A workspace is a folder of YAML files. This is a project in it, six operations on monthly orders:")
    make_workspace(folder, "sales")
    os.chdir(folder)
    project = folder / "projects" / "monthly-sales.yaml"
    _print(project.read_text(encoding="utf-8"))
    codes = [
        _dobo("validate", say="Everything is checked before a row is read, without Spark:"),
        _dobo("plan", "monthly-sales", "--period", "2026-01", say="What a run would read, do and write:"),
        _dobo(
            "formula",
            "ROUND(amount * fx.rate, 2)",
            "--column",
            "amount:decimal(15,2)",
            "--column",
            "fx.rate:decimal(12,8)",
            say="A formula, its exact type, and the Spark SQL it becomes:",
        ),
        _dobo("-v", "test", say="The scenarios of the workspace, on real Spark, compared to the last digit:"),
    ]
    broken = project.read_text(encoding="utf-8")
    for right, wrong in MISTAKES:
        broken = broken.replace(right, wrong, 1)
    project.write_text(broken, encoding="utf-8")
    codes.append(1 - _dobo("validate", say="The same with five mistakes, all of them found at once:"))
    _say(
        "Try it yourself: .venv/bin/dobo init my-workspace --template sales && cd my-workspace\n"
        "then ../.venv/bin/dobo validate, plan monthly-sales --period 2026-01, test\n"
        "Not there yet: dobo run, which computes and writes from files."
    )
    return max(codes)


def _dobo(*arguments: str, say: str) -> int:
    shown = " ".join(f"'{each}'" if " " in each or "*" in each else each for each in arguments)
    _say(f"{say}\n$ dobo {shown}")
    return int(run(list(arguments)))


def _say(text: str) -> None:
    sys.stderr.flush()
    sys.stdout.write(f"\n\x1b[1m{text}\x1b[0m\n\n" if sys.stdout.isatty() else f"\n== {text}\n\n")
    sys.stdout.flush()


def _print(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())

"""Generates pages of docs/ from the program. `--check` only reports whether they are up to date."""

from __future__ import annotations

import sys
from pathlib import Path

from dobonomodo.cli.explain import cause
from dobonomodo.formula.functions import CHAPTERS
from dobonomodo.formula.functions.special import SPECIALS
from dobonomodo.problems import PROBLEMS

FOLDER = Path(__file__).parents[3] / "docs"


def render_functions() -> str:
    """docs/functions.md."""
    lines = [
        "# Functions",
        "",
        "<!-- made by `make docs` from the function catalogue -->",
        "",
        "Every example is a formula that is TRUE; the tests run all of them on Spark.",
        "Those of the aggregates run over three rows: amount 10.50, 20.00 and NULL; quantity 1, 2, 3; region N, N, S.",
        "Those of the windows are TRUE in each of these rows.",
        "A NULL argument gives NULL unless the description says otherwise.",
    ]
    for title, chapter in CHAPTERS:
        lines += ["", f"## {title}"]
        for function in chapter:
            lines += ["", f"### {function.name}", "", function.summary]
            if function.aliases:
                lines.append(f"Synonyms: {', '.join(f'`{alias}`' for alias in function.aliases)}.")
            if function.window is not None and not function.needs_window:
                lines.append(
                    f"In assignments of an update also `{function.name}(...) OVER (PARTITION BY ... ORDER BY ...)`."
                )
            lines += ["", "```", *function.usages(), "", *function.examples, "```"]
    lines += ["", "## Rows of an operation"]
    for special in SPECIALS:
        lines += ["", f"### {special.name}", "", special.summary, "", "```", special.usage, "", special.example, "```"]
    return "\n".join(lines) + "\n"


def render_problems() -> str:
    """docs/problems.md."""
    lines = [
        "# Problems",
        "",
        "<!-- made by `make docs` from the problem catalogue -->",
        "",
        "Every problem has a code. `dobo explain CODE` shows the same as this page.",
    ]
    for kind in PROBLEMS:
        lines += ["", f"## {kind.code}", "", f"*{kind.severity}* — {cause(kind)}", ""]
        lines += ["Wrong:", "", "```", kind.example.wrong, "```", "", "Right:", "", "```", kind.example.right, "```"]
    return "\n".join(lines) + "\n"


PAGES = {"functions.md": render_functions, "problems.md": render_problems}


def main(arguments: list[str]) -> int:
    """Write the pages, or with --check say which are stale."""
    stale = [name for name, render in PAGES.items() if _read(FOLDER / name) != render()]
    if "--check" in arguments:
        for name in stale:
            sys.stderr.write(f"docs/{name} is stale: run make docs\n")
        return 1 if stale else 0
    for name in stale:
        (FOLDER / name).write_text(PAGES[name](), encoding="utf-8")
        sys.stdout.write(f"wrote docs/{name}\n")
    return 0


def _read(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.exists() else None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""The example notebook runs from the first cell to the last, and each result can be shown."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest

NOTEBOOK = Path(__file__).parents[2] / "examples" / "sales.ipynb"


@pytest.mark.usefixtures("spark")
def test_every_cell_runs() -> None:
    cells = json.loads(NOTEBOOK.read_text())["cells"]
    names: dict[str, Any] = {}
    shown = []
    for cell in cells:
        if cell["cell_type"] != "code":
            continue
        tree = ast.parse("".join(cell["source"]))
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, str(NOTEBOOK), "exec"), names)
        if isinstance(last, ast.Expr):
            shown.append(eval(compile(ast.Expression(last.value), str(NOTEBOOK), "eval"), names))
    no_problems, plan, run, rows, differences, problems = shown
    assert no_problems._repr_html_() == "<p>no problems</p>"
    assert "monthly-sales" in plan._repr_html_()
    assert (run.status, run.draft) == ("completed", True)
    assert "completed" in run._repr_html_()
    assert all(len(first) == 3 for first in rows.values())
    assert differences == ()
    assert [problem.code for problem in problems] == ["UNKNOWN_COLUMN"]
    assert "custmer_id" in problems._repr_html_()

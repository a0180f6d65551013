"""Rules about the source itself that neither types nor import contracts can say."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Mapping
from functools import cache
from pathlib import Path

import pytest

import dobonomodo
from dobonomodo.plan.operations import OPERATION_BY_TYPE
from dobonomodo.storage import STORAGES

SOURCE = Path(dobonomodo.__file__).parent
OPERATIONS = SOURCE / "plan" / "operations"
STORAGE = SOURCE / "storage"
KINDS = frozenset(each.kind for each in STORAGES) - {"table"}
"""The kinds of storage but `table`: documents of all kinds have the name of a table under that key."""
OTHER_MEANINGS = {
    "append": {
        # what a dataset is read for
        "plan/dataset.py", "plan/reading.py", "engine/loading.py", "storage/faults.py", "scenarios/run.py", "why/loading.py",
        # how an output treats what was written before
        "plan/relation.py", "storage/table_target.py", "storage/folder.py", "storage/delta_target.py",
        "storage/object_target.py", "storage/catalog_log.py",
    },
    "aggregate": {"formula/functions/signature.py", "formula/functions/special.py"},  # a kind of function
}  # fmt: skip
"""Files in which a word is there that is also the name of an operation type, and means something else."""
OTHER_KINDS = {
    "parquet": {
        "problems/run.py",  # what a file was found to be
        "scenarios/rows.py", "scenarios/run.py",  # the files of a scenario
        "cli/sample.py",  # the files of a table
    },
    "csv": {"scenarios/rows.py"},
    "excel": {
        "problems/run.py",  # what a file was found to be
        "problems/package.py",  # the extra of the package that brings its modules
    },
    "sql": {"engine/faults.py", "plan/explain.py"},  # a rendered formula
    "delta": {"problems/package.py"},
    "iceberg": {"problems/package.py"},
}  # fmt: skip
"""The same for kinds of storage."""


MOST_LINES_WITH_ANY = 73
"""A third of those that there once were; imports do not count."""


@cache
def find_texts(text: str) -> tuple[tuple[int, str], ...]:
    """Every text of a module but its docstrings, with its line."""
    nodes = list(ast.walk(ast.parse(text)))
    silent = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    return tuple(
        (node.lineno, node.value)
        for node in nodes
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in silent
    )


@cache
def find_modules() -> list[tuple[Path, str, str]]:
    """The path, name and text of every module."""
    paths = sorted(SOURCE.rglob("*.py"))
    return [(path, path.relative_to(SOURCE).as_posix(), path.read_text(encoding="utf-8")) for path in paths]


def find_named_types(text: str, name: str) -> list[str]:
    """The operation types that a module names, with their lines."""
    return find_words(text, name, OPERATION_BY_TYPE, OTHER_MEANINGS)


def find_words(text: str, name: str, words: Collection[str], others: Mapping[str, set[str]]) -> list[str]:
    """Which of some words a module has as texts, with their lines; in some modules words have other meanings."""
    if not any(f'"{word}"' in text or f"'{word}'" in text for word in words):
        return []  # most modules, which need not be parsed
    return [
        f"{name}:{line} {value!r}"
        for line, value in find_texts(text)
        if value in words and name not in others.get(value, ())
    ]


def test_only_operations_name_operation_types() -> None:
    # What others need to know of a type is one of its facts.
    found = [
        line
        for path, name, text in find_modules()
        if OPERATIONS not in path.parents
        for line in find_named_types(text, name)
    ]
    assert found == []


def test_only_storages_name_kinds_of_storage() -> None:
    # What others need to know of a kind is a fact of its class.
    found = [
        line
        for path, name, text in find_modules()
        if STORAGE not in path.parents
        for line in find_words(text, name, KINDS, OTHER_KINDS)
    ]
    assert found == []


def test_a_named_kind_is_found() -> None:
    assert find_words('if source.type == "database": ...', "cli/doctor.py", KINDS, OTHER_KINDS) == [
        "cli/doctor.py:1 'database'"
    ]


@pytest.mark.parametrize(
    "code", ['if kind == "delete": ...', 'match kind:\n    case "update": ...', 'A = {"output": 1}']
)
def test_a_named_type_is_found(code: str) -> None:
    assert len(find_named_types(code, "engine/engine.py")) == 1


def test_docstrings_may_name_types() -> None:
    assert find_named_types('"""delete"""', "engine/engine.py") == []


def test_exceptions_are_still_needed() -> None:
    for word, names in (*OTHER_MEANINGS.items(), *OTHER_KINDS.items()):
        for name in names:
            text = (SOURCE / name).read_text(encoding="utf-8")
            assert word in {value for _, value in find_texts(text)}, (word, name)


def test_the_plan_is_not_explained_by_its_arguments() -> None:
    # What `dobo plan` says and what a failed formula is called come from what runs.
    for name in ("plan/explain.py", "plan/step.py", "engine/engine.py", "runs/report/page.py", "cli/progress.py"):
        tree = ast.parse((SOURCE / name).read_text(encoding="utf-8"))
        used = [node.lineno for node in ast.walk(tree) if isinstance(node, ast.Attribute) and node.attr == "arguments"]
        assert used == [], name


def test_the_workspace_is_a_facade() -> None:
    # What a method does is in the room that it opens: files, datasets, lifecycle and the other modules beside it.
    facade = SOURCE / "workspace" / "workspace.py"
    assert len(facade.read_text(encoding="utf-8").splitlines()) < 350
    rooms = [path.stem for path in facade.parent.glob("*.py") if path.stem not in ("__init__", "workspace")]
    assert {"files", "datasets", "lifecycle"} <= set(rooms)


def test_few_lines_take_any_type() -> None:
    # What is read from documents and libraries has a type as soon as it is checked.
    lines = [
        line
        for _, _, text in find_modules()
        for line in text.splitlines()
        if "Any" in line and re.search(r"\bAny\b", line) and "import" not in line
    ]
    assert len(lines) <= MOST_LINES_WITH_ANY


def test_commands_hand_answers_on() -> None:
    # Their JSON is that of Python and of a later server: no command makes a shape of its own.
    found = [
        f"{path.name}:{call.lineno}"
        for path in sorted((SOURCE / "cli").glob("*.py"))
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "show_json"
        for shape in (ast.Dict, ast.DictComp)
        if any(isinstance(part, shape) for part in ast.walk(call.args[1]))
    ]
    assert found == []

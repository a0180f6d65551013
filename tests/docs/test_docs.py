"""What the documentation shows is true: scenarios pass, formulas mean what is said, definitions load, links lead somewhere."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from dobonomodo.cli.init import make_workspace
from dobonomodo.formula import render_formula
from dobonomodo.formula.types import BOOLEAN
from dobonomodo.model import Definitions, load_definitions, load_documents
from dobonomodo.model.operation import load_operations
from dobonomodo.plan.operations import OPERATION_BY_TYPE
from dobonomodo.problems import Passage, Source
from dobonomodo.problems.render import render_full
from dobonomodo.scenarios import find_scenarios, run_suite
from dobonomodo.scenarios.suite import Found
from dobonomodo.storage import load_datasource
from dobonomodo.workspace import Workspace
from tests.unit.formula.orders import columns_from
from tests.world import JANUARY

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from dobonomodo.formula import Scope
    from dobonomodo.formula.check import Checked

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")])


class Block(NamedTuple):
    """A fenced block of a page."""

    page: str
    line: int
    language: str
    text: str

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}"


def _blocks() -> Iterator[Block]:
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for found in re.finditer(r"^```(\w*)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
            line = text.count("\n", 0, found.start()) + 2
            yield Block(page.relative_to(ROOT).as_posix(), line, found[1], found[2])


BLOCKS = list(_blocks())


def _written(language: str) -> list[Block]:
    return [block for block in BLOCKS if block.language == language]


# --- YAML


def _scenarios() -> Iterator[Found]:
    for block in _written("yaml"):
        for document in load_documents(Source(block.place, block.text))[0]:
            # The tutorial's uses what the tutorial defines; it is run there.
            if document.places.at("scenario") is not None and block.page != "docs/tutorial.md":
                name = document.places.text("scenario", "name") or ""
                yield Found(name, block.place, document, ROOT)


SCENARIOS = list(_scenarios())


@pytest.mark.parametrize("found", SCENARIOS, ids=lambda found: f"{found.file}: {found.name}")
def test_scenarios_pass(found: Found, spark: SparkSession) -> None:
    (result,) = run_suite([found], lambda: spark, definitions=Definitions())
    assert result.differences == ()


def test_every_operation_has_a_scenario() -> None:
    shown = {
        operation.get("type")
        for found in SCENARIOS
        if found.file.startswith("docs/operations.md")
        for operation in (
            found.document.places.at("scenario", "project", "operations") or found.document.places
        ).elements()
    }
    assert shown == {"update", "aggregate", "append", "allocate", "delete", "output"}


@pytest.mark.parametrize("block", _written("yaml"), ids=lambda block: block.place)
def test_definitions_load(block: Block) -> None:
    """Each document by itself: a page shows parts, and may refer to what it does not show."""
    documents, problems = load_documents(Source(block.place, block.text))
    assert problems == ()
    assert documents
    for document in documents:
        if document.places.is_list:
            operations, problems = load_operations(document.places)
            assert problems == ()
            assert {each.type for each in operations or ()} <= set(OPERATION_BY_TYPE)
            continue
        if document.places.at("scenario") is not None:
            continue
        kept = block.text[document.places.node.start : document.places.node.end]
        found = [
            problem
            for problem in load_definitions([Source(block.place, kept)], load_datasource=load_datasource)[1]
            if problem.severity == "error"
        ]
        assert [problem for problem in found if problem.code != "UNKNOWN_REFERENCE"] == []


# --- formulas


def _scope() -> Scope:
    from dobonomodo.formula import Scope

    return Scope(
        columns=columns_from(
            id="string",
            region="string",
            status="string",
            amount="decimal(15,2)",
            quantity="integer",
            paid="boolean",
            order_date="date",
        ),
        table="orders",
        joined={"fx": columns_from(currency="string", rate="decimal(12,6)")},
        selectors={"open": Passage.alone('status = "open"')},
        windows=True,
    )


def _check(text: str) -> Checked:
    from dobonomodo.formula import check_formula

    return check_formula(Passage.alone(text), _scope())


def _lines(language: str) -> list[tuple[str, str]]:
    return [
        (f"{block.page}:{block.line + number}", line)
        for block in _written(language)
        for number, line in enumerate(block.text.splitlines())
        if line.strip()
    ]


@pytest.mark.parametrize(("place", "formula"), _lines("formula"))
def test_formulas_are_sound(place: str, formula: str) -> None:
    checked = _check(formula)
    assert (checked.tree is not None, checked.problems) == (True, ()), place


@pytest.mark.parametrize(("place", "formula"), _lines("wrong"))
def test_wrong_formulas_have_the_problem_that_is_said(place: str, formula: str) -> None:
    text, _, code = formula.rpartition("--")
    assert code.strip() in {problem.code for problem in _check(text).problems}, place


def test_true_formulas_are_true(spark: SparkSession) -> None:
    formulas = _lines("true")
    trees = [(place, text, _check(text)) for place, text in formulas]
    assert [(place, text) for place, text, checked in trees if checked.tree is None or checked.type != BOOLEAN] == []
    rendered = [
        f"{render_formula(checked.tree, JANUARY)} AS e{number}"
        for number, (_, _, checked) in enumerate(trees)
        if checked.tree is not None
    ]
    (row,) = spark.range(1).selectExpr(*rendered).collect()
    assert [text for (_, text, _), value in zip(trees, row, strict=True) if value is not True] == []
    assert len(formulas) > 20


# --- links and names


def _links() -> list[tuple[str, str]]:
    found = []
    for page in PAGES:
        text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
        for link in re.findall(r"\[[^\]]*\]\(([^)\s]+)\)", text):
            if not re.match(r"[a-z]+://", link):
                found.append((page.relative_to(ROOT).as_posix(), link))
    return found


@pytest.mark.parametrize(("page", "link"), _links())
def test_links_resolve(page: str, link: str) -> None:
    path, _, anchor = link.partition("#")
    target = (ROOT / page).parent / path if path else ROOT / page
    assert target.exists()
    if anchor and target.suffix == ".md":
        titles = re.findall(r"^#+ (.+)$", target.read_text(encoding="utf-8"), re.MULTILINE)
        assert anchor in {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


def test_every_page_can_be_reached_from_the_readme() -> None:
    reached, left = set(), [ROOT / "README.md"]
    while left:
        page = left.pop()
        if page in reached or not page.exists():
            continue
        reached.add(page)
        for link in re.findall(r"\]\(([^)#\s]+\.md)", page.read_text(encoding="utf-8")):
            if "://" not in link:
                left.append((page.parent / link).resolve())
    missing = set(PAGES) - reached - set((ROOT / "docs" / "decisions").glob("*.md"))
    assert sorted(page.name for page in missing) == []


def test_the_command_page_has_every_command() -> None:
    from dobonomodo.cli.main import _all_commands

    text = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    assert sorted(name for name in _all_commands().commands if not re.search(rf"dobo {name}\b", text)) == []


def test_every_exit_code_is_said() -> None:
    from dobonomodo.cli.console import Exit

    text = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    assert [code for code in Exit if not re.search(rf"^\| {code.value} ", text, re.MULTILINE)] == []


# --- the pages that are followed step by step


def _files(page: str, kind: str) -> dict[str, str]:
    """The blocks behind a comment such as ``<!-- file: path -->``, by path."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    return dict(re.findall(rf"^<!-- {kind}: (\S+) -->\n```\w+\n(.*?)^```$", text, re.DOTALL | re.MULTILINE))


def test_the_tutorial_can_be_followed(tmp_path: Path, spark: SparkSession) -> None:
    for name, text in _files("tutorial.md", "file").items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    workspace = Workspace.open(tmp_path)
    assert workspace.problems() == ()
    found, problems = find_scenarios([tmp_path / "scenarios"], root=tmp_path)
    assert problems == []
    results = list(run_suite(found, lambda: spark, definitions=workspace.definitions))
    assert [result.differences for result in results] == [()]

    assert workspace.run("commissions", period="2026-01", spark=spark).status == "completed"
    ((folder, expected),) = _files("tutorial.md", "output").items()
    rows = [
        line
        for path in (tmp_path / folder).glob("*/*.csv")
        for line in path.read_text(encoding="utf-8").splitlines()[1:]
    ]
    assert sorted(rows) == sorted(expected.splitlines()[1:])

    workspace.apply()
    workspace.activate("commissions")
    assert workspace.run("commissions", period="2026-01", spark=spark).status == "completed"
    assert (tmp_path / "results" / "commissions").is_dir()

    project = tmp_path / "projects" / "commissions.yaml"
    project.write_text(project.read_text(encoding="utf-8").replace("IF(amount", "IF(amout"), encoding="utf-8")
    (problem,) = Workspace.open(tmp_path).problems()
    shown = render_full([problem]).splitlines()
    text = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
    assert "\n".join(shown[:6]) in text


def test_the_readme_shows_what_comes_out(tmp_path: Path, spark: SparkSession) -> None:
    make_workspace(tmp_path, "sales")
    (project,) = [block.text for block in _written("yaml") if block.page == "README.md"]
    (tmp_path / "projects" / "sales-by-region.yaml").write_text(project, encoding="utf-8")
    workspace = Workspace.open(tmp_path)
    assert workspace.problems() == ()
    run = workspace.run("sales-by-region", period="2026-01", spark=spark)
    (rows,) = workspace.sample(run.id, 10).values()
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    shown = re.findall(r"^([A-Z]{4}) +([\d.]+)$", text, re.MULTILINE)
    assert sorted(shown) == sorted((row["region"], str(row["net"])) for row in rows)
    slip = project.replace("customer_id", "custmer_id")
    (tmp_path / "projects" / "sales-by-region.yaml").write_text(slip, encoding="utf-8")
    assert "\n".join(render_full(Workspace.open(tmp_path).problems()).splitlines()[:6]) in text


def test_the_python_page_runs(tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    make_workspace(tmp_path / "my-workspace", "minimal")
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"spark": spark}
    for block in _written("python"):
        if block.page == "docs/python.md":
            exec(compile(block.text, block.place, "exec"), names)
    assert names["differences"] == ()

"""In which order projects are planned of which one reads what another registers."""

from __future__ import annotations

from dataclasses import dataclass, field

from dobonomodo.model import Dataset, Project, load_definitions
from dobonomodo.plan.chain import Chain
from dobonomodo.plan.planner import Planned
from dobonomodo.problems import Source
from tests.unit.plan.building import dataset_from


def project(name: str, *, reads: str, makes: str) -> Project:
    output = f"{{destination: {{datasource_id: lake, table: {makes}}}, register_as_dataset: {makes}}}"
    text = f"project: {{id: {name}, input_dataset_id: {reads}, operations: [{{seq: 1, type: output, arguments: {output}}}]}}"
    return load_definitions([Source("projects.yaml", text)])[0].projects[name]


@dataclass
class Planning:
    """A chain of projects that keeps a diary of what it plans."""

    projects: dict[str, Project]
    makers: dict[str, tuple[str, ...]]
    stored: dict[str, Dataset] = field(default_factory=dict)
    order: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.chain = Chain(
            self.makers, project=self.projects.__getitem__, plan=self.plan, stored=lambda name: self.stored.get(name)
        )

    def plan(self, project: Project) -> Planned:
        self.order.append(project.id)
        return Planned(None)


def three() -> dict[str, Project]:
    return {
        "a": project("a", reads="orders", makes="one"),
        "b": project("b", reads="one", makes="two"),
        "c": project("c", reads="two", makes="three"),
    }


MAKERS: dict[str, tuple[str, ...]] = {"one": ("a",), "two": ("b",), "three": ("c",)}


def test_who_registers_is_planned_first_and_once() -> None:
    planning = Planning(three(), MAKERS)
    planning.chain.planned(planning.projects["c"])
    planning.chain.planned(planning.projects["b"])
    assert planning.order == ["a", "b", "c"]
    assert planning.chain.problems == ()


def test_who_registers_what() -> None:
    chain = Planning(three(), {**MAKERS, "one": ("a", "b")}).chain
    assert chain.ids() == ("one", "two", "three")
    assert (chain.makers("one"), chain.makers("orders")) == (("a", "b"), ())


def test_what_is_stored_needs_no_project() -> None:
    stored = dataset_from("dataset: {id: one, main_table: {name: one, columns: [{name: id, type: integer}]}}")
    planning = Planning(three(), MAKERS, {"one": stored})
    planning.chain.planned(planning.projects["c"])
    assert planning.order == ["b", "c"]


def test_a_circle_is_reported_once() -> None:
    planning = Planning({**three(), "a": project("a", reads="three", makes="one")}, MAKERS)
    planning.chain.planned(planning.projects["a"])
    (cycle,) = planning.chain.problems
    assert cycle.code == "DATASET_CYCLE"
    assert planning.order == ["b", "c", "a"]

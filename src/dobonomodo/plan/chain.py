"""Chains of projects: the plan of a project tells which dataset it registers, before any run has registered it (C-93)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from dobonomodo.model.dataset import Dataset, DatasetTarget
from dobonomodo.model.document import Places
from dobonomodo.model.project import REGISTER, Project
from dobonomodo.plan.dataset import KnownDataset
from dobonomodo.plan.planner import Planned
from dobonomodo.plan.registration import registered_dataset
from dobonomodo.problems import OperationRef, Problem, Span
from dobonomodo.problems.operation import DatasetCycle


@dataclass(frozen=True, slots=True)
class _Reading:
    """A dataset that a project names, and where."""

    dataset_id: str
    span: Span | None
    operation: OperationRef | None = None


class Chain:
    """The datasets that projects register, each planned once, and only when another project reads it.

    ``makers`` are the projects that register each dataset; ``project`` gives one of them and ``plan`` plans it;
    ``stored`` finds a dataset that is known without the chain.
    """

    def __init__(
        self,
        makers: Mapping[str, Sequence[str]],
        *,
        project: Callable[[str], Project],
        plan: Callable[[Project], Planned],
        stored: Callable[[str], Dataset | None],
        unreadable: Iterable[Places] = (),
    ) -> None:
        self._makers, self._project, self._plan = makers, cache(project), plan
        self._stored = cache(stored)
        self._unreadable = frozenset(each.text() for places in unreadable for each in places.find(REGISTER))
        self._planned: dict[str, Planned] = {}
        self._maker_by_id: dict[str, str] = {}
        self._cycles: dict[str, DatasetCycle] = {}
        """By dataset: the way back to the project that reads it."""

    @property
    def problems(self) -> tuple[Problem, ...]:
        """The cycles among the projects planned so far."""
        return tuple(self._cycles.values())

    def ids(self) -> tuple[str, ...]:
        """Every dataset that a project registers."""
        return tuple(self._makers)

    def makers(self, dataset_id: str) -> tuple[str, ...]:
        """The projects that register a dataset."""
        return tuple(self._makers.get(dataset_id, ()))

    def find(self, dataset_id: str) -> KnownDataset | None:
        """The dataset that a project will register, if its plan has no error."""
        if dataset_id in self._cycles or dataset_id not in self._makers:
            return None
        maker = self._maker_by_id.get(dataset_id, self._makers[dataset_id][0])
        plan = self.planned(self._project(maker)).plan
        for step in reversed(plan.steps) if plan is not None else ():
            write = step.lowered.write
            if write is not None and write.register_as == dataset_id:
                columns = write.written_types(step.before.columns)
                dataset = registered_dataset(dataset_id, columns)
                return KnownDataset(dataset, 1, registered_by=self.makers(dataset_id), planned=True)
        return None

    def is_broken(self, dataset_id: str) -> bool:
        """Whether a project registers a dataset and has problems, which are reported there."""
        return dataset_id in self._unreadable or (dataset_id in self._makers and self.find(dataset_id) is None)

    def planned(self, project: Project) -> Planned:
        """The plan of a project, after those whose results it reads; without recursion, so chains may be long."""
        path = [project]
        while path:
            current = path[-1]
            if current.id in self._planned or (following := self._next_maker(current, path)) is None:
                path.pop()
                if current.id not in self._planned:
                    self._planned[current.id] = Planned(
                        None
                    )  # a request for it meanwhile finds it broken, and does not recurse forever
                    self._planned[current.id] = self._plan(current)
            else:
                path.append(following)
        return self._planned[project.id]

    def _next_maker(self, project: Project, path: list[Project]) -> Project | None:
        """A project that must be planned before this one."""
        on_path = [each.id for each in path]
        for reading in self._readings(project):
            dataset_id = reading.dataset_id
            makers = self._makers.get(dataset_id, ())
            settled = dataset_id in self._cycles or dataset_id in self._maker_by_id
            if not makers or settled or self._stored(dataset_id) is not None:
                continue
            free = [each for each in makers if each not in on_path]
            if not free:
                way = (*on_path[on_path.index(makers[0]) :], makers[0])
                self._cycles[dataset_id] = DatasetCycle(
                    dataset_id=dataset_id, projects=way, span=reading.span, operation=reading.operation
                )
                continue
            self._maker_by_id[dataset_id] = free[0]
            if free[0] not in self._planned:
                return self._project(free[0])
        return None

    def _readings(self, project: Project) -> Iterator[_Reading]:
        """What a project reads, with the lookups of declared datasets."""
        for reading in _named_readings(project):
            yield reading
            stored = self._stored(reading.dataset_id)
            for lookup in stored.lookups if stored is not None else ():
                if isinstance(lookup.target, DatasetTarget):
                    yield _Reading(lookup.target.id, lookup.places.span("target", "id"))


def _named_readings(project: Project) -> Iterator[_Reading]:
    yield _Reading(project.input_dataset_id, project.places.span("input_dataset_id"))
    for spec in project.operations:
        arguments = spec.places.at("arguments")
        for places in arguments.find("dataset_id") if arguments is not None else ():
            yield _Reading(places.text() or "", places.span(), spec.ref)


def find_makers(operations: Iterable[tuple[str, Mapping[str, object]]]) -> dict[str, list[str]]:
    """The projects that register each dataset, from pairs of a project and the arguments of one of its operations."""
    makers: dict[str, list[str]] = {}
    for project_id, arguments in operations:
        name = arguments.get(REGISTER)
        if isinstance(name, str) and project_id not in makers.setdefault(name, []):
            makers[name].append(project_id)
    return makers

"""Planning: a project of the files or of the store, with the datasets it can use, becomes a plan. Nothing is read or written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import TYPE_CHECKING

from dobonomodo.model import Calendar, DataSource, Definitions, Period, Project
from dobonomodo.model.parameter import ParameterValue, settle_parameters
from dobonomodo.plan import Plan, Planned, Resolution, plan_project
from dobonomodo.plan.chain import Chain, find_makers
from dobonomodo.plan.destination import Together
from dobonomodo.plan.facts import RunFacts
from dobonomodo.plan.reading import check_awaited, check_days
from dobonomodo.problems import Problem, Rejected, in_order
from dobonomodo.problems.operation import ProjectNotRunnable
from dobonomodo.storage import Storages, destination_kinds
from dobonomodo.workspace.arguments import read_day, read_moment, read_parameters, read_project
from dobonomodo.workspace.checking import find_ambiguous, find_problems, find_used, require_readable, settle
from dobonomodo.workspace.datasets import KnownDatasets
from dobonomodo.workspace.paths import check_links, check_links_of_any_period
from dobonomodo.workspace.periods import require_runnable
from dobonomodo.workspace.recorded import (
    find_live_version,
    find_resting_status,
    load_recorded_definitions,
    load_recorded_project,
)
from dobonomodo.workspace.stamp import now

if TYPE_CHECKING:
    from dobonomodo.store import Version
    from dobonomodo.workspace.files import Files
    from dobonomodo.workspace.periods import Periods
    from dobonomodo.workspace.stores import Stores


@dataclass(frozen=True, slots=True, eq=False)
class PlannedRun:
    """A plan together with the period and clock it is for, and the version of the project it is of."""

    plan: Plan
    problems: tuple[Problem, ...]
    facts: RunFacts
    as_of: date | None
    """The day that the run itself names for bitemporal rows."""
    period: Period
    version: int | None
    status: str
    datasets: KnownDatasets
    definitions: Definitions
    together: Together | None = None
    """The guarantee for publishing the outputs together; None if there is nothing to publish together."""

    def to_dict(self, *, sql: bool = False) -> dict[str, object]:
        """As plain data; with ``sql``, the Spark SQL of each operation too."""
        from dobonomodo.plan.explain import describe_plan

        described = describe_plan(self.plan, self.facts, as_of=self.as_of, together=self.together, sql=sql)
        return {**described, "version": self.version, "status": self.status}

    def _repr_html_(self) -> str:
        from html import escape

        from dobonomodo.plan.explain import render_plan

        text = render_plan(self.plan, self.facts, as_of=self.as_of, which=self.status, together=self.together)
        return f"<pre>{escape(text)}</pre>"


@dataclass(frozen=True, slots=True, eq=False)
class DescribedPlan:
    """A plan for programs."""

    planned: PlannedRun
    sql: bool

    def to_dict(self) -> dict[str, object]:
        """As plain data."""
        return self.planned.to_dict(sql=self.sql)


@dataclass(frozen=True, slots=True, eq=False)
class ProjectToPlan:
    """A project with the datasets and definitions that it is planned with."""

    project: Project
    datasets: KnownDatasets
    definitions: Definitions
    problems: tuple[Problem, ...]
    """Those of the definitions."""
    version: int | None = None
    """None for the files as they are."""
    status: str = "draft"


class Planning:
    """Plans projects of the files (drafts) and of the store (recorded versions)."""

    def __init__(self, files: Files, stores: Stores, periods: Periods) -> None:
        self._files, self._stores, self._periods = files, stores, periods

    def plan_run(
        self,
        project_id: str,
        *,
        period: str,
        as_of: date | str | None,
        started_at: datetime | str | None,
        draft: bool,
        override_closed: bool,
        to_run: bool,
        parameters: Mapping[str, object] | None,
    ) -> PlannedRun:
        """What a run of a project for a period would read, do and write; with ``to_run``, refused where it may not run."""
        read_project(project_id)
        clock, day = read_moment("started_at", started_at) or now(), read_day("as_of", as_of)
        given = read_parameters(parameters)
        found = self._periods.find(period)
        if to_run:
            require_runnable(found, override_closed=override_closed)
        chosen = self._choose(project_id, draft=draft, to_run=to_run)
        planned = self.plan(chosen.project, chosen.datasets, period=found, definitions=chosen.definitions)
        if planned.plan is None:
            raise Rejected(self.find_reasons(chosen, planned.problems))
        if ambiguous := self._find_ambiguous(planned.plan, found, draft=chosen.version is None):
            raise Rejected(ambiguous)
        settled = self._settle(planned.plan.project, given)
        is_draft = chosen.version is None
        if to_run and (awaited := self.find_awaited(planned.plan, period=found.identifier, draft=is_draft)):
            raise Rejected(in_order(awaited))
        return PlannedRun(
            plan=planned.plan,
            problems=in_order(
                [
                    *planned.problems,
                    *check_days(planned.plan, found, self._periods.find_schedule(found.identifier), as_of=day),
                ]
            ),
            facts=RunFacts(clock, found.identifier, found.start_date, found.end_date, settled),
            as_of=day,
            period=found,
            version=chosen.version,
            status=chosen.status,
            datasets=chosen.datasets,
            definitions=chosen.definitions,
            together=self._find_together(planned.plan, chosen),
        )

    def _settle(self, project: Project, given: Mapping[str, object]) -> Mapping[str, ParameterValue]:
        """The parameters of a run: those that are given, else those of the environment, else the defaults."""
        otherwise = self._files.settings.parameters.get(project.id, {})
        settled = settle_parameters(project.id, project.parameters or {}, given, otherwise=otherwise)
        if settled.problems:
            raise Rejected(settled.problems)
        return settled.values

    def _find_ambiguous(self, plan: Plan, period: Period, *, draft: bool) -> tuple[Problem, ...]:
        """Definitions in the files that the plan uses and that are there twice; recorded ones have one place."""
        calendar = self._periods.find_calendar(period.identifier)
        used = {(Calendar.kind, calendar.id)} if calendar is not None else set()
        if draft:
            used |= {*find_used(plan), (DataSource.kind, self._files.settings.sandbox)}
        return find_ambiguous(self._files.problems, used)

    def _find_together(self, plan: Plan, chosen: ProjectToPlan) -> Together | None:
        destinations = [step.lowered.write.destination for step in plan.steps if step.lowered.write is not None]
        wanted = plan.project.publish
        if not destinations or wanted == "as_done" or (len(destinations) == 1 and wanted is None):
            return None
        sandbox = self._stores.sandbox_place if chosen.version is None else None
        return Storages(self._files.root, chosen.definitions.datasources, sandbox).together(destinations)

    def _choose(self, project_id: str, *, draft: bool, to_run: bool) -> ProjectToPlan:
        """The live version with what the store has recorded, else the draft with the files as they are."""
        store = self._stores.find_main()
        live = None if draft else find_live_version(store, project_id)
        if live is not None:
            status: str | None = live.status if live.status != "active" else None
        else:
            status = find_resting_status(store, project_id)
        if to_run and status is not None:
            raise Rejected([ProjectNotRunnable(project_id=project_id, status=status)])
        return self.choose_draft(project_id, count=True) if live is None else self.choose_recorded(live)

    def choose_draft(self, project_id: str, *, count: bool = False) -> ProjectToPlan:
        """The project as the files have it; ``count`` if its datasets need the numbers of their versions."""
        require_readable(project_id, self._files, self)
        return self.draft(self._files.find_project(project_id), count=count)

    def draft(self, project: Project, *, count: bool = False) -> ProjectToPlan:
        """A project with what the files define."""
        datasets = self.draft_datasets(count=count)
        return ProjectToPlan(project, datasets, self._files.definitions, self._files.problems)

    def choose_recorded(self, version: Version) -> ProjectToPlan:
        """The project as it was recorded, with what else was recorded."""
        definitions, problems = load_recorded_definitions(self._stores.main)
        return ProjectToPlan(
            load_recorded_project(version),
            self.recorded_datasets(definitions),
            definitions,
            problems,
            version=version.version,
            status=version.status,
        )

    def plan(
        self,
        project: Project,
        datasets: KnownDatasets,
        *,
        period: Period | None = None,
        definitions: Definitions | None = None,
        uncertain_from: int | None = None,
    ) -> Planned:
        """A plan, or the problems that prevent one; with the paths of a period if one is given."""
        own = definitions or self._files.definitions
        planned = plan_project(
            project,
            datasets=datasets,
            resolution=self._resolution(own, period),
            datasources=own.datasources,
            kinds=destination_kinds(),
            uncertain_from=uncertain_from,
        )
        if planned.plan is None:
            return planned
        links = tuple(check_links(planned.plan, own.datasources, root=self._files.root))
        return Planned(None, (*planned.problems, *links)) if links else planned

    def find_reasons(self, chosen: ProjectToPlan, own: Sequence[Problem]) -> Sequence[Problem]:
        """Why there is no plan: the problems of the project, and of what it is planned with."""
        if chosen.version is None and not any(problem.severity == "error" for problem in own):
            return find_problems(self._files, self)
        return settle([*chosen.problems, *own], chosen.definitions)

    def find_links(self, plan: Plan) -> tuple[Problem, ...]:
        """Links that lead a draft out of its datasources in some period."""
        own = self._files.definitions
        resolution = self._resolution(own, None)
        return tuple(check_links_of_any_period(plan, resolution, own.datasources, root=self._files.root))

    def _resolution(self, own: Definitions, period: Period | None) -> Resolution:
        return Resolution(
            resolvers=own.resolvers,
            default_resolver=self._files.settings.default_resolver or own.default_resolver,
            datasources=own.datasources,
            broken=frozenset(own.broken.get("resolver", {})),
            schedule=self._periods.find_schedule(period.identifier) if period is not None else None,
            period=period,
            schedules=tuple(calendar.schedule for calendar in own.calendars.values()),
        )

    def find_awaited(self, plan: Plan, *, period: str | None = None, draft: bool = False) -> tuple[Problem, ...]:
        """What a plan reads before a run has registered it; results of drafts are seen by drafts only."""
        active = None if draft else [live.id for live in self._stores.main.list_live_projects()]
        return tuple(check_awaited(plan, period, active=active))

    def find_makers(self) -> Mapping[str, Sequence[str]]:
        """The datasets that the projects in the files register, with those projects."""
        projects = self._files.definitions.projects.values()
        return find_makers((project.id, spec.arguments) for project in projects for spec in project.operations)

    def draft_datasets(self, *, count: bool = False) -> KnownDatasets:
        """What the files define and the projects in them register, over what is stored."""
        own = self._files.definitions
        return KnownDatasets(
            own,
            self._stores.find_main_to_check,
            count=count,
            sandbox=self._stores.find_sandbox,
            chain=lambda datasets: Chain(
                self.find_makers(),
                project=own.projects.__getitem__,
                plan=lambda project: self.plan(project, datasets),
                stored=datasets.find_stored,
                unreadable=own.broken.get("project", {}).values(),
            ),
        )

    def recorded_datasets(self, definitions: Definitions) -> KnownDatasets:
        """What is recorded, and what the recorded projects register: the live version of each, else the newest."""
        store = self._stores.main

        def make_chain(datasets: KnownDatasets) -> Chain:
            recorded = {each.id: each for each in store.list_definitions("project")}
            recorded |= {each.id: each for each in store.list_live_projects()}
            operations = [
                (each.id, spec["arguments"]) for each in recorded.values() for spec in each.document["operations"]
            ]
            return Chain(
                find_makers(operations),
                project=lambda name: load_recorded_project(recorded[name]),
                plan=lambda project: self.plan(project, datasets, definitions=definitions),
                stored=datasets.find_stored,
            )

        return KnownDatasets(None, lambda: store, chain=make_chain)

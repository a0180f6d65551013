"""Where the rows of a table are for a period: which resolver, which rule, which locations. Pure, like all planning."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from dobonomodo.model.dataset import Dataset
from dobonomodo.model.datasource import DataSource
from dobonomodo.model.document import Places
from dobonomodo.model.period import Period, Schedule
from dobonomodo.model.project import Project
from dobonomodo.model.resolver import ANY_LEVEL, PathStrategy, Resolver, Rule
from dobonomodo.model.template import check_relative_path, render_template
from dobonomodo.plan.dataset import DatasetUse, Location, ReadPeriod, freeze_options
from dobonomodo.plan.rule import check_rule, decide, read_condition
from dobonomodo.problems import Passage, Problem
from dobonomodo.problems.definition import UnsafePath
from dobonomodo.problems.operation import NoRuleMatches, OtherPeriodMissing, ResolverNotFound


@dataclass(frozen=True, slots=True)
class Resolved:
    """The result of the search for a table."""

    resolver_id: str | None
    locations: tuple[Location, ...] = ()
    problems: tuple[Problem, ...] = ()
    rule: str | None = None
    blocked: bool = False
    """Whether the cause is reported where it is defined."""
    overridden: bool = False
    """Whether the resolver is one that the project names."""
    periods: tuple[ReadPeriod, ...] | None = None
    """The periods to read, where they are other ones than the run's."""


class Locator(Protocol):
    """Knows where the rows of a table are."""

    def resolve(self, use: DatasetUse, project: Project, dataset: Dataset) -> Resolved:
        """The locations of a table, or why there are none."""
        ...


@dataclass(frozen=True, slots=True)
class Resolution:
    """Everything that determines where rows are found. Without a period, only the resolver is searched."""

    resolvers: Mapping[str, Resolver] = field(default_factory=dict)
    default_resolver: str | None = None
    datasources: Mapping[str, DataSource] = field(default_factory=dict)
    broken: frozenset[str] = frozenset()
    """Resolvers that exist and could not be read, which is reported where they are defined."""
    schedule: Schedule | None = None
    period: Period | None = None
    schedules: tuple[Schedule, ...] = ()
    """Those of all calendars, by which periods that are named are checked where no period is given."""

    def resolve(self, use: DatasetUse, project: Project, dataset: Dataset) -> Resolved:
        """The locations of a table for the periods that the reading is for."""
        if self.period is None:
            found = self._resolve(use, project, dataset, ())
            fault = use.horizon.find_fault(self.schedules)
            return replace(found, problems=(*found.problems, fault)) if fault is not None else found
        if use.horizon.is_current:
            return self._resolve(use, project, dataset, (self.period,))
        chosen = choose_periods(use, self.period, self.schedule)
        if isinstance(chosen, Problem):
            return Resolved(None, problems=(chosen,))
        found = self._resolve(use, project, dataset, chosen)
        return replace(found, periods=read_periods(chosen))

    def locate_all(self, use: DatasetUse) -> Iterator[Location]:
        """Where a reading finds its rows, period by period of the calendar."""
        resolver = self.resolvers.get(use.resolver_id or "")
        if resolver is None or self.schedule is None:
            return
        for period in self.schedule.periods:
            yield from self._apply(resolver, use, period).locations

    def _resolve(self, use: DatasetUse, project: Project, dataset: Dataset, periods: tuple[Period, ...]) -> Resolved:
        """The project's override, else the dataset's resolver, else where it was registered, else the default (R-081)."""
        override = project.resolver_overrides.get(dataset.id)
        chosen = override or dataset.resolver_id
        if chosen is None and (use.registered is not None or use.planned):
            return Resolved(None)
        chosen = chosen or self.default_resolver
        if chosen is None and use.registered_by:
            return Resolved(None)
        if chosen in self.broken:
            return Resolved(chosen, blocked=True)
        resolver = self.resolvers.get(chosen) if chosen is not None else None
        if resolver is None or resolver.status != "active":
            problem = ResolverNotFound(
                dataset_id=dataset.id, resolver_id=chosen, known=tuple(self.resolvers), disabled=resolver is not None
            )
            return Resolved(None, problems=(problem,), overridden=override is not None)
        return _merge([self._apply(resolver, use, period) for period in periods], resolver.id)

    def _apply(self, resolver: Resolver, use: DatasetUse, period: Period) -> Resolved:
        tried: list[tuple[str, str]] = []
        for position, rule in enumerate(resolver.rules):
            name = rule.name or f"rule {position + 1}"
            if rule.when is not None and read_condition(rule.when) is None:
                return Resolved(resolver.id, blocked=True)
            reason = self._mismatch(rule, use, period)
            if reason is not None:
                tried.append((name, reason))
                continue
            if rule.strategy.datasource_id not in self.datasources:
                return Resolved(resolver.id, blocked=True)
            locations, problems = self._locate(rule, use, period)
            return Resolved(resolver.id, locations, problems, name)
        missing = NoRuleMatches(resolver_id=resolver.id, table=use.table, period=period.identifier, tried=tuple(tried))
        return Resolved(resolver.id, problems=(missing,))

    def _mismatch(self, rule: Rule, use: DatasetUse, period: Period) -> str | None:
        """Why a rule is not for this table and period, None if it is."""
        if rule.when is not None:
            condition = read_condition(rule.when)
            facts = {
                "table.name": use.table,
                "period.identifier": period.identifier,
                "period.level": period.level,
                "period.start_date": period.start_date,
                "period.end_date": period.end_date,
            }
            if condition is None or decide(condition, facts) is not True:
                return f"`{rule.when}` is not true"
        if rule.data_level != ANY_LEVEL and not self._parts(period, rule.data_level):
            return f"there is no `{rule.data_level}` for period `{period.identifier}`"
        return None

    def _parts(self, period: Period, level: str) -> tuple[Period, ...]:
        """The periods of a level that hold a period's data: its parts, itself, or the one that contains it."""
        if self.schedule is None:
            return (period,) if level == period.level else ()
        found = self.schedule.children(period, level)
        if found:
            return found
        above: Period | None = period
        while above is not None and above.level != level:
            above = self.schedule.by_identifier.get(above.parent or "")
        return (above,) if above is not None else ()

    def _locate(self, rule: Rule, use: DatasetUse, period: Period) -> tuple[tuple[Location, ...], tuple[Problem, ...]]:
        parts = (period,) if rule.data_level == ANY_LEVEL else self._parts(period, rule.data_level)
        rendered = [self._render(rule, use, part) for part in parts]
        problems = tuple(problem for location in rendered for problem in _leaves_prefix(location))
        shared = len({str(location) for location in rendered}) < len(rendered)
        wider = rule.data_level == ANY_LEVEL or (parts[0].level != period.level and not self._is_part(parts[0], period))
        if shared or wider:
            rendered = [replace(each, period=None) for each in rendered]
        return tuple(dict.fromkeys(rendered)), problems

    def _is_part(self, part: Period, period: Period) -> bool:
        return period.contains(part.start_date, part.end_date)

    def _render(self, rule: Rule, use: DatasetUse, period: Period) -> Location:
        strategy = rule.strategy
        start = period.start_date
        values = {
            "table_name": use.table,
            "dataset_id": use.dataset_id,
            "dataset_version": str(use.version),
            "identifier": period.identifier,
            "YYYY": f"{start.year:04d}",
            "MM": f"{start.month:02d}",
            "QQ": f"Q{(start.month + 2) // 3}",
            "DD": f"{start.day:02d}",
        }
        kind = self.datasources[strategy.datasource_id].type
        if isinstance(strategy, PathStrategy):
            path = render_template(strategy.path, values)
            options = freeze_options(strategy.options or {})
            return Location(strategy.datasource_id, kind, path=path, period=period.identifier, options=options)
        table = render_template(strategy.table, values)
        schema = render_template(strategy.schema_name, values) if strategy.schema_name else None
        return Location(strategy.datasource_id, kind, table=table, schema=schema, period=period.identifier)


def choose_periods(use: DatasetUse, period: Period, schedule: Schedule | None) -> tuple[Period, ...] | Problem:
    """The periods of a reading in a run, empty if they are missing and may be; otherwise the problem."""
    found = use.horizon.choose(period, schedule)
    if isinstance(found, OtherPeriodMissing) and use.may_be_missing:
        return ()
    return found


def read_periods(periods: tuple[Period, ...]) -> tuple[ReadPeriod, ...]:
    """The same as a reading knows them."""
    return tuple(ReadPeriod(each.identifier, each.start_date, each.end_date) for each in periods)


def _merge(found: Sequence[Resolved], resolver_id: str) -> Resolved:
    """The locations of several periods. One that is the same for several of them belongs to none of them."""
    if len(found) == 1:
        return found[0]
    locations = [location for each in found for location in each.locations]
    shared = {str(one) for one in locations if sum(str(one) == str(other) for other in locations) > 1}
    merged = dict.fromkeys(replace(each, period=None) if str(each) in shared else each for each in locations)
    return Resolved(
        resolver_id,
        tuple(merged),
        tuple(dict.fromkeys(problem for each in found for problem in each.problems)),
        next((each.rule for each in found if each.rule is not None), None),
        blocked=any(each.blocked for each in found),
    )


def _leaves_prefix(location: Location) -> Iterator[Problem]:
    if location.path is not None and any(check_relative_path(Passage.alone(location.path))):
        yield UnsafePath(path=location.path)


def check_resolver(places: Places) -> Iterator[Problem]:
    """The problems of a resolver's conditions."""
    rules = places.at("rules")
    for rule in rules.elements() if rules is not None else ():
        if rule.text("when") is not None:
            yield from check_rule(rule.passage("when")).problems

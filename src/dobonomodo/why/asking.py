"""Explains rows of a recorded run: finds the stored row, recomputes it, and explains it if both are equal."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from dobonomodo.engine.loading import seed_part
from dobonomodo.engine.rowid import find_place, seed_of
from dobonomodo.formula.meaning import Value
from dobonomodo.plan import Step
from dobonomodo.plan.facts import RunFacts
from dobonomodo.plan.relation import Group, Scan, Write, walk_relation
from dobonomodo.plan.system import OPERATION_SEQ, ROW_ID, is_system
from dobonomodo.problems import Rejected
from dobonomodo.problems.audit import OutputChanged
from dobonomodo.problems.problem import LISTED_AT_MOST
from dobonomodo.problems.why import (
    NotAContributor,
    NotMaskable,
    NotProved,
    OutputNotFound,
    RowNotFound,
    SeveralRows,
    TooManyRowsToExplain,
)
from dobonomodo.runs import Output, RunSpec, RunView, restore_snapshot
from dobonomodo.storage import Inputs, Storages
from dobonomodo.storage.finding import DamagedFileError
from dobonomodo.storage.kept import KeptInputs
from dobonomodo.storage.storage import Pin
from dobonomodo.why.absence import Absence, AbsenceFinder, Reason
from dobonomodo.why.explain import Explainer, group_of, names_of, trace_path
from dobonomodo.why.explanation import Contribution, Explanation, StoredPlace, Summary, Touch, columns_behind, show
from dobonomodo.why.interpret import Interpreter, SeveralMatches, constants_of
from dobonomodo.why.key import read_key, show_key
from dobonomodo.why.loading import Loader
from dobonomodo.why.row import AT_MOST, LargeGroups, StoredRow, TooManyRows, Traced
from dobonomodo.why.scenario import Mask, TableKey, UsedRows, UsedSource, find_used, write_scenario
from dobonomodo.why.stored import OutputRows, PinnedRows

if TYPE_CHECKING:
    from dobonomodo.model.datasource import DataSource

FindLater = Callable[[Output], str | None]
"""The later run that has replaced the rows of an output."""
FindDamage = Callable[[Output, Storages], str | None]
"""What is wrong with the file that people open, where an output writes one of its own name."""

OpenLarge = Callable[[RunSpec, int | None], LargeGroups]
"""Opens what computes large groups of a run, with a limited number of their rows."""
OpenOther = Callable[[str], "tuple[AskedRun, str] | None"]
"""The run that wrote a file, and the output; None for a file that no run wrote."""


class AskedRun:
    """One run, its plan and its rows."""

    def __init__(
        self,
        view: RunView,
        *,
        root: Path,
        datasources: Mapping[str, DataSource],
        folder: Path,
        find_later: FindLater,
        find_damage: FindDamage,
        open_large: OpenLarge | None = None,
    ) -> None:
        self.view, self._open_large = view, open_large
        self._spec = restore_snapshot(view.snapshot)
        self._facts = self._spec.facts
        self._find_later, self._find_damage = find_later, find_damage
        self._unchanged: set[int] = set()
        self._storages = Storages(root, {**datasources, **self._spec.datasources})
        self._inputs = Inputs(
            root=root,
            datasources=self._storages.datasources,
            folder=folder / view.id,
            facts=self._facts,
            as_of=self._spec.as_of,
        )
        plan = self._spec.plan
        self._seed = seed_of(plan.project.id, plan.project.fingerprint(), self._facts)
        source = PinnedRows(self._inputs, self._spec.inputs or {}, hashes=view.inputs or {}, kept=KeptInputs.of(root))
        self._loader = Loader(source, self._facts, self._spec.as_of, self._seed)
        self._explainer = Explainer(plan, self._facts)

    @property
    def facts(self) -> RunFacts:
        """The clock and period of the run."""
        return self._facts

    def why(
        self,
        table: str | None,
        key: Mapping[str, object],
        *,
        column: str | None = None,
        contributors: int | None = 20,
        path: Sequence[Mapping[str, object]] = (),
    ) -> Explanation:
        """Why the row with a key has its values; ``Rejected`` where there is no such row, or no proof.

        ``path`` names a contributor of the row, then a contributor of that one, and so on; the last of them is explained.
        """
        output = self.find_output(table)
        types = output.types()
        asked = read_key(key, types)
        named = next(iter(read_key({column: None}, types))) if column is not None else None
        step = self._step_of(output)
        stored = self._find_stored(output, asked)
        known = replace(stored, values=step.write.working_names(stored.values))
        large = self._open_large(self._spec, contributors) if self._open_large is not None else None
        try:
            own = next(iter(step.write.working_names({named: None}))) if named is not None else None
            row = self._find_computed(output, step, known, large, by=own)
            touches, origin = self._explainer.explain(row, step, contributors=contributors, column=own)
            found = Explanation(
                run=self.view.id,
                project=self.view.project,
                period=self.view.period,
                table=output.table,
                row=stored.values,
                key=asked,
                column=named,
                operations=self._with_lookups(touches, row),
                origin=origin,
                names={written: name for name, written in step.write.names.items()},
            )
            for each in path:
                found, row = self._explain_contributor(found, row, each, contributors=contributors)
            return found
        except TooManyRows as fault:
            raise Rejected([TooManyRowsToExplain(dataset=fault.use.dataset_id, limit=AT_MOST)]) from fault

    def _explain_contributor(
        self, whole: Explanation, row: Traced, key: Mapping[str, object], *, contributors: int | None
    ) -> tuple[Explanation, Traced]:
        """One of the rows that a total is made of; only what leads to it is read."""
        group, summary = group_of(row), whole.origin
        if group is None or not isinstance(group.node, Group) or not isinstance(summary, Summary):
            shown = ", ".join(f"{name} = {value}" for name, value in key.items())
            raise Rejected([NotAContributor(key=show_key(whole.key), contributor=shown, rows=None)])
        types = group.node.rows.schema.columns
        asked = read_key(key, types, owner="the rows of this total have")
        found = self.interpreter().find_members(group, {name: frozenset([value]) for name, value in asked.items()})
        if not found:
            fault = NotAContributor(key=show_key(whole.key), contributor=show_key(asked), rows=summary.rows)
            raise Rejected([fault])
        if len(found) > 1:
            rows = tuple(self._explainer.name_member(each) for each in found[:LISTED_AT_MOST])
            more = len(found) > LISTED_AT_MOST
            raise Rejected([SeveralRows(table=whole.table, key=show_key(asked), rows=rows, more=more)])
        behind = columns_behind(whole.operations, whole.asked)
        totals = {name: each for name, each in summary.totals.items() if behind is None or name in behind}
        reads = frozenset(name for each in totals.values() for name in each.reads)
        by = next(iter(reads)) if len(reads) == 1 else None
        touches, origin = self._explainer.explain_contributor(found[0], group, contributors=contributors, column=by)
        first = replace(
            touches[0],
            values={name: each for name, each in touches[0].values.items() if name in totals},
            reads={name: each for name, each in touches[0].reads.items() if name in totals},
        )
        amounts = {name: each.value for name, each in first.values.items()}
        needed = None if behind is None else reads | frozenset(totals)
        explanation = replace(
            whole,
            row={name: found[0].values[name] for name in types if not is_system(name)},
            key=asked,
            operations=self._with_lookups((first, *touches[1:]), found[0]),
            origin=origin,
            contribution=Contribution(whole, summary.rows, amounts, needed),
        )
        return explanation, found[0]

    def write_scenario(self, table: str | None, key: Mapping[str, object], *, mask: bool = False) -> str:
        """The stored rows that a row depends on, with the definitions of the run, as a scenario that reproduces the row.

        With ``mask``, texts are replaced by others, the same text always by the same.
        """
        output = self.find_output(table)
        asked = read_key(key, output.types())
        stored, step = self._find_stored(output, asked), self._step_of(output)
        known = replace(stored, values=step.write.working_names(stored.values))
        try:
            row = self._find_computed(output, step, known)
        except TooManyRows as fault:
            raise Rejected([TooManyRowsToExplain(dataset=fault.use.dataset_id, limit=AT_MOST)]) from fault
        used, expected, name = find_used(row), stored.values, f"{output.table}: {show_key(asked)}"
        if mask:
            masking = Mask(self._spec.plan)
            used = {each: masking.rows(rows) for each, rows in used.items()}
            expected, name = self._compute_masked(output, step, row, used, masking), f"a row of {output.table}"
        plan, snapshot = self._spec.plan, self.view.snapshot
        return write_scenario(name, snapshot, plan, step, row, used, expected, table=output.table)

    def _compute_masked(
        self, output: Output, step: Step, row: Traced, used: Mapping[TableKey, UsedRows], mask: Mask
    ) -> Mapping[str, Value]:
        """The row, computed from masked inputs."""
        loader = Loader(UsedSource(used), self._facts, self._spec.as_of, self._seed)
        identity = tuple(mask.value(each) if isinstance(each, str) else each for each in row.identity)
        rows = self._interpreter_of(loader).find(step.write.rows, {})
        found = next((each for each in rows if each.identity == identity), None)
        if found is None:
            raise Rejected([NotMaskable(table=output.table)])
        return {step.write.written_name(name): found.values[name] for name in step.write.columns}

    def deepen(self, explanation: Explanation, open_other: OpenOther, *, depth: int) -> Explanation:
        """The explanation extended by how other runs computed the rows that this one read; ``depth`` counts runs, including this one."""
        if depth <= 1:
            return explanation

        def lead_on(row: StoredPlace) -> StoredPlace:
            other = open_other(row.file) if row.file is not None else None
            if other is None:
                return row
            run, table = other
            columns = {name.casefold() for name in run.find_output(table).columns}
            known = {name: value for name, value in row.stored.items() if name in columns}
            key = {ROW_ID: known[ROW_ID]} if known.get(ROW_ID) is not None else known
            further = run.deepen(run.why(table, key), open_other, depth=depth - 1)
            return replace(row, further=replace(further, key=row.key or further.key))

        def lead_joins(touch: Touch) -> Touch:
            joins = (replace(each, row=lead_on(each.row)) if each.row is not None else each for each in touch.joins)
            return replace(touch, joins=tuple(joins))

        origin = explanation.origin
        return replace(
            explanation,
            operations=tuple(lead_joins(touch) for touch in explanation.operations),
            origin=lead_on(origin) if isinstance(origin, StoredPlace) else origin,
        )

    def why_not(self, table: str | None, key: Mapping[str, object], *, column: str | None = None) -> Absence:
        """Why there is no row with a key, or why a column of it was not set."""
        output = self.find_output(table)
        step = self._step_of(output)
        types = {**step.before.columns, **output.types()}
        asked = read_key(key, types)
        named = next(iter(read_key({column: None}, types))) if column is not None else None
        finder = AbsenceFinder(self._spec.plan, self._facts, self._loader, self._explainer)
        try:
            if set(asked) <= set(output.columns) and self.find_rows(output, asked, at_most=1):
                reasons = tuple(self._explain_there(finder, output, asked, named))
            else:
                reasons = tuple(self._explain_missing(finder, output, asked))
        except TooManyRows as fault:
            raise Rejected([TooManyRowsToExplain(dataset=fault.use.dataset_id, limit=AT_MOST)]) from fault
        return Absence(
            run=self.view.id,
            project=self.view.project,
            period=self.view.period,
            table=output.table,
            key=asked,
            column=named,
            reasons=reasons,
        )

    def _explain_there(
        self, finder: AbsenceFinder, output: Output, asked: Mapping[str, Value], column: str | None
    ) -> Iterable[Reason]:
        if column is None:
            return (Reason("there", f"the row exists: `dobo why {self.view.id} {quote(output.table)}` explains it"),)
        explanation, step = self.why(output.table, asked), self._step_of(output)
        return finder.explain_unset(step, next(iter(step.write.working_names({column: None}))), explanation)

    def _explain_missing(self, finder: AbsenceFinder, output: Output, asked: Mapping[str, Value]) -> Iterable[Reason]:
        step, interpreter = self._step_of(output), self.interpreter()
        asked = step.write.working_names(asked)
        wanted = {name: frozenset([value]) for name, value in asked.items()}
        if interpreter.find(step.write.rows, wanted):
            raise self._refuse(output, "missing row")
        return finder.explain_missing(step, asked, interpreter)

    def find_output(self, table: str | None) -> Output:
        """The output of a name, or the only one."""
        outputs = self.view.outputs
        if table is None and len(outputs) == 1:
            return next(iter(outputs.values()))
        found = outputs.get(table) if table is not None else None
        if found is None:
            raise Rejected([OutputNotFound(run=self.view.id, table=table, known=tuple(outputs))])
        return found

    def _step_of(self, output: Output) -> Step:
        return next(step for step in self._spec.plan.steps if step.spec.seq == output.seq)

    # --- the stored row

    def find_rows(self, output: Output, asked: Mapping[str, Value], *, at_most: int) -> list[StoredRow]:
        """The stored rows of an output that have a key."""
        if output.location.lasting is None and (later := self._find_later(output)) is not None:
            raise self._refuse(output, "replaced", other=later)
        self._require_file(output)
        try:
            rows = OutputRows(self._inputs, self._pin_rows(output), output.types())
            return list(islice(rows.find({name: frozenset([value]) for name, value in asked.items()}), at_most))
        except FileNotFoundError as fault:
            later = self._find_later(output)
            raise self._refuse(output, "gone" if later is None else "replaced", other=later) from fault
        except DamagedFileError as fault:
            raise Rejected([OutputChanged(run=self.view.id, table=output.table, detail=str(fault))]) from fault

    def _pin_rows(self, output: Output) -> Pin:
        """The rows that the run wrote; if their files were removed and no later run replaced them, those in their place."""
        pin = partial(
            self._storages.of_record(output.location).pin_output, name=output.destination, period=self.view.period
        )
        lasting = output.location.lasting
        if lasting is None:
            return pin(output.location)
        try:
            return pin(lasting)
        except FileNotFoundError:
            if self._find_later(output) is not None:
                raise
            return pin(output.location)

    def _require_file(self, output: Output) -> None:
        """Refuse to explain rows that are not those of the file that people open."""
        if output.seq in self._unchanged:
            return
        if (detail := self._find_damage(output, self._storages)) is not None:
            raise Rejected([OutputChanged(run=self.view.id, table=output.table, detail=detail)])
        self._unchanged.add(output.seq)

    def _find_stored(self, output: Output, asked: Mapping[str, Value]) -> StoredRow:
        found = self._find_by_place(output, asked) or self.find_rows(output, asked, at_most=LISTED_AT_MOST + 1)
        if not found:
            raise Rejected([RowNotFound(table=output.table, key=show_key(asked), run=self.view.id)])
        if len(found) > 1:
            shown = tuple(_name_row(row) for row in found[:LISTED_AT_MOST])
            more = len(found) > LISTED_AT_MOST
            raise Rejected([SeveralRows(table=output.table, key=show_key(asked), rows=shown, more=more)])
        return found[0]

    def _find_by_place(self, output: Output, asked: Mapping[str, Value]) -> list[StoredRow]:
        """A row by its id, with the natural key that the loaded row of this place has: files are in the order of keys, not of ids."""
        plan, write = self._spec.plan, self._step_of(output).write
        scan = next((each for each in walk_relation(plan.start.node) if isinstance(each, Scan)), None)
        names = [name for name in plan.start.keys.get(0, ()) if name in write.columns]
        if list(asked) != [ROW_ID] or scan is None or not names:
            return []
        place = find_place(self._seed, seed_part(scan.use), str(asked[ROW_ID]))
        loaded = self._loader.load(scan, {ROW_ID: frozenset([asked[ROW_ID]])}, None) if place is not None else []
        if len(loaded) != 1:
            return []
        key = {write.written_name(name): loaded[0].values[name] for name in names}
        return self.find_rows(output, {**key, **asked}, at_most=1)

    # --- the computed row

    def _find_computed(
        self,
        output: Output,
        step: Step,
        stored: StoredRow,
        large: LargeGroups | None = None,
        *,
        by: str | None = None,
    ) -> Traced:
        """The row of the plan that is stored; refused if no such row exists."""
        wanted = {name: frozenset([value]) for name, value in stored.values.items()}
        for name, value in constants_of(step.write.rows):
            wanted.setdefault(name, frozenset([value]))
        interpreter = self._interpreter_of(self._loader, large, by)
        try:
            found = interpreter.find(step.write.rows, wanted)
            if found:
                return found[0]
            near = {name: wanted[name] for name in self._identifying(step, stored) if name in wanted}
            others = interpreter.find(step.write.rows, near) if near else []
        except SeveralMatches as fault:
            raise self._refuse(output, "differs", differences=(f"join `{fault.alias}` has several matches",)) from fault
        if len(others) != 1:
            raise self._refuse(output, "missing")
        raise self._refuse(output, "differs", differences=tuple(_compare(step.write, stored, others[0])))

    def interpreter(self) -> Interpreter:
        """Computes rows of the plan."""
        return self._interpreter_of(self._loader)

    def _interpreter_of(self, loader: Loader, large: LargeGroups | None = None, by: str | None = None) -> Interpreter:
        return Interpreter(
            loader,
            facts=self._facts,
            seed=self._seed,
            large=large,
            by=by,
            always=names_of(self._spec.plan.steps) | {OPERATION_SEQ},
        )

    def _identifying(self, step: Step, stored: StoredRow) -> Iterable[str]:
        """The columns that identify a row."""
        if ROW_ID in stored.values:
            return (ROW_ID, OPERATION_SEQ)
        made_by = stored.values.get(OPERATION_SEQ, 0)
        return (OPERATION_SEQ, *step.before.keys.get(made_by if isinstance(made_by, int) else 0, ()))

    def _refuse(
        self, output: Output, reason: str, *, differences: tuple[str, ...] = (), other: str | None = None
    ) -> Rejected:
        return Rejected(
            [NotProved(table=output.table, reason=reason, differences=differences, run=self.view.id, other=other)]  # type: ignore[arg-type]
        )

    def _with_lookups(self, touches: tuple[Touch, ...], row: Traced) -> tuple[Touch, ...]:
        """With the lookups of the input dataset, which come before all operations."""
        joins = self._explainer.start_joins(trace_path(row))
        if not joins:
            return touches
        return (*touches, replace(Touch(0, "lookups of the input", "", "selected"), joins=joins))


def _name_row(row: StoredRow) -> str:
    shown = [f"{name} {show(value)}" for name, value in row.values.items() if not is_system(name)][:6]
    row_id = row.values.get(ROW_ID)
    return ", ".join([*shown, *([f"--row-id {row_id}"] if row_id is not None else [])])


def _compare(write: Write, stored: StoredRow, computed: Traced) -> Iterable[str]:
    for name, value in stored.values.items():
        if computed.values.get(name) != value:
            yield f"{write.written_name(name)}: stored {show(value)}, computed {show(computed.values.get(name))}"

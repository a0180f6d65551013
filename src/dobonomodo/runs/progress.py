"""How far a run got, as the store keeps it: frozen classes with one ``load`` and one ``document`` each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from dobonomodo.model.plain import Document
from dobonomodo.plan.check import CheckResult
from dobonomodo.plan.counts import OperationCounts
from dobonomodo.runs.figures import Figures
from dobonomodo.storage import InputHashes, StagedRows, Stored, load_stored

if TYPE_CHECKING:
    from dobonomodo.plan import Plan

_COUNTS = ("rows_in", "selected", "added", "deleted", "rows_out")


@dataclass(frozen=True, slots=True, eq=False)
class StagedOutput:
    """An output that is completely written to staging."""

    seq: int
    rows: int
    digest: str
    milliseconds: int
    place: StagedRows

    def document(self) -> dict[str, object]:
        """As plain data."""
        return {**{name: getattr(self, name) for name in self.__slots__}, "place": self.place.document()}

    @classmethod
    def load(cls, document: Document) -> StagedOutput:
        """From plain data."""
        found = {name: document[name] for name in cls.__slots__}
        return cls(**{**found, "place": StagedRows.load(document["place"])})


@dataclass(frozen=True, slots=True, eq=False)
class PublishedOutput:
    """What an output wrote, and where."""

    seq: int
    table: str
    destination: str
    rows: int
    digest: str
    dataset_id: str | None
    dataset_version: int | None
    milliseconds: int
    columns: Mapping[str, str]
    """The types, by name."""
    location: Stored

    def document(self) -> dict[str, object]:
        """As plain data."""
        found = {name: getattr(self, name) for name in self.__slots__}
        # A list, since databases keep no order of keys.
        columns = [list(pair) for pair in self.columns.items()]
        return {**found, "columns": columns, "location": self.location.document()}

    @classmethod
    def load(cls, document: Document) -> PublishedOutput:
        """From plain data."""
        found = {name: document.get(name) for name in cls.__slots__}
        found |= {"columns": dict(document.get("columns", ())), "location": load_stored(document["location"])}
        return cls(**{**found, "milliseconds": document.get("milliseconds", 0)})


@dataclass(frozen=True, slots=True, eq=False)
class Progress:
    """How far a run got."""

    operations: tuple[OperationCounts, ...] = ()
    staged: tuple[StagedOutput, ...] = ()
    """Outputs that are complete and not yet published."""
    intent: tuple[int, ...] | None = None
    """The outputs that are being published together: this is completed, never taken back."""
    outputs: tuple[PublishedOutput, ...] = ()
    attempts: int = 1
    milliseconds: int = 0
    last_completed_operation: int | None = None
    warnings: tuple[Document, ...] = ()
    problems: tuple[Document, ...] = ()
    checks: tuple[CheckResult, ...] = ()
    """The checks that were evaluated."""
    figures: Figures | None = None
    """None if they are switched off."""
    inputs: InputHashes | None = None
    """The SHA-256 of the files that were read; known once something is published, None in runs of earlier versions."""

    @classmethod
    def begin(
        cls, plan: Plan, *, warnings: Iterable[Document] = (), figures: bool = False, digests: bool = False
    ) -> Progress:
        """A run that has done nothing yet."""
        operations = tuple(OperationCounts(step.spec.seq, step.spec.name, step.spec.type) for step in plan.steps)
        return cls(operations, warnings=tuple(warnings), figures=Figures(with_digests=digests) if figures else None)

    @property
    def published(self) -> frozenset[int]:
        """The numbers of the outputs that are published and recorded."""
        return frozenset(output.seq for output in self.outputs)

    @property
    def intended(self) -> tuple[StagedOutput, ...]:
        """The staged outputs that are being published."""
        return tuple(output for output in self.staged if output.seq in (self.intent or ()))

    def with_staged(
        self, output: StagedOutput, counts: Iterable[OperationCounts], figures: Figures | None = None
    ) -> Progress:
        """One more output is complete, the operations before it are counted, and its figures are known."""
        found = {each.seq: each for each in counts if each.rows_in is not None}
        operations = []
        for known in self.operations:
            each = found.get(known.seq)
            entry = known if each is None else replace(known, **{name: getattr(each, name) for name in _COUNTS})
            if known.seq == output.seq:
                # A check may write fewer rows than it selects.
                selected = output.rows if entry.rows_in is None else entry.selected
                entry = replace(entry, selected=selected, milliseconds=output.milliseconds)
            operations.append(entry)
        others = (each for each in self.staged if each.seq != output.seq)
        all_figures = self.figures.merge(figures) if self.figures is not None and figures is not None else self.figures
        return replace(self, operations=tuple(operations), staged=(*others, output), figures=all_figures)

    def with_kept(self, staged: Iterable[StagedOutput]) -> Progress:
        """Only these of the staged outputs are used again; the others are computed anew."""
        kept = tuple(staged)
        dropped = {each.seq for each in self.staged} - {each.seq for each in kept}
        figures = self.figures.without(dropped) if self.figures is not None else None
        return replace(self, staged=kept, figures=figures)

    def with_checks(self, results: Iterable[CheckResult]) -> Progress:
        """The progress with more check results."""
        known = {(each.seq, each.name): each for each in (*self.checks, *results)}
        return replace(self, checks=tuple(known[key] for key in sorted(known)))

    def with_warnings(self, found: Iterable[Document]) -> Progress:
        """The progress with more warnings, each once for an operation; the same if there are none."""
        known = {(each["code"], each.get("operation_seq"), each.get("message")) for each in self.warnings}
        new = [each for each in found if (each["code"], each["operation_seq"], each["message"]) not in known]
        return replace(self, warnings=(*self.warnings, *new)) if new else self

    def with_published(self, outputs: Iterable[PublishedOutput]) -> Progress:
        """The progress after the intended outputs are published."""
        known = (*self.outputs, *outputs)
        seqs = {output.seq for output in known}
        return replace(
            self,
            outputs=tuple(sorted(known, key=lambda each: each.seq)),
            staged=tuple(each for each in self.staged if each.seq not in seqs),
            intent=None,
            last_completed_operation=max(seqs, default=None),
        )

    def document(self) -> dict[str, object]:
        """As plain data."""
        return {
            "operations": [each.document() for each in self.operations],
            "staged": [each.document() for each in self.staged],
            "intent": list(self.intent) if self.intent is not None else None,
            "outputs": [each.document() for each in self.outputs],
            "attempts": self.attempts,
            "milliseconds": self.milliseconds,
            "last_completed_operation": self.last_completed_operation,
            "warnings": [dict(each) for each in self.warnings],
            "problems": [dict(each) for each in self.problems],
            "checks": [each.document() for each in self.checks],
            "figures": self.figures.document() if self.figures is not None else None,
            "inputs": (
                {key: [list(files) for files in pins] for key, pins in self.inputs.items()}
                if self.inputs is not None
                else None
            ),
        }

    @classmethod
    def load(cls, document: Document) -> Progress:
        """From plain data; what earlier versions did not keep is empty."""
        intent, figures = document.get("intent"), document.get("figures")
        return cls(
            operations=tuple(OperationCounts.load(each) for each in document.get("operations", ())),
            staged=tuple(StagedOutput.load(each) for each in document.get("staged", ())),
            intent=tuple(intent) if intent is not None else None,
            outputs=tuple(PublishedOutput.load(each) for each in document.get("outputs", ())),
            attempts=document.get("attempts", 1),
            milliseconds=document.get("milliseconds", 0),
            last_completed_operation=document.get("last_completed_operation"),
            warnings=tuple(document.get("warnings", ())),
            problems=tuple(document.get("problems", ())),
            checks=tuple(CheckResult.load(each) for each in document.get("checks", ())),
            figures=Figures.load(figures) if figures is not None else None,
            inputs=document.get("inputs"),
        )

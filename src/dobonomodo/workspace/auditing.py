"""Audit: whether history, records, outputs and their manifests are unchanged since they were written."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dobonomodo.problems import InternalError, Problem, Rejected, RunFailed
from dobonomodo.problems.audit import HistoryBroken, OutputChanged, RecordChanged
from dobonomodo.runs.progress import Progress
from dobonomodo.runs.results import find_later_writer
from dobonomodo.store import StoreAudit, audit_store
from dobonomodo.workspace.files import KINDS
from dobonomodo.workspace.session import SparkChoice
from dobonomodo.workspace.verifying import explain_damage, inspect_named, open_storages

if TYPE_CHECKING:
    from dobonomodo.runs.progress import PublishedOutput
    from dobonomodo.storage import Inspected, Noted, Storages
    from dobonomodo.store import Run
    from dobonomodo.workspace.files import Files
    from dobonomodo.workspace.stores import Stores


@dataclass(frozen=True, slots=True, eq=False)
class Audited:
    """The result of an audit: what was checked, and the findings."""

    entries: int
    versions: int
    runs: int
    periods: int
    outputs: int
    files: int
    """Output files and manifests whose SHA-256 matches the record."""
    heads: int
    """Notes of the history at destinations that are entries of it."""
    unproved: tuple[str, ...]
    """Items that older versions wrote without a proof."""
    problems: tuple[Problem, ...]

    def to_dict(self) -> dict[str, object]:
        """As plain data."""
        names = ("entries", "versions", "runs", "periods", "outputs", "files", "heads")
        return {**{name: getattr(self, name) for name in names}, "unproved": list(self.unproved)}


def audit_workspace(files: Files, stores: Stores, *, report: Callable[[str], None]) -> Audited:
    """Audit everything that the store records."""
    store = stores.find_main()
    if store is None:
        return Audited(0, 0, 0, 0, 0, 0, 0, (), ())
    report("checking the history and the records of the store")
    found = audit_store(store, kinds=KINDS, calendars=files.definitions.calendars)
    outputs = _OutputAudit(files, found, store=store.id)
    problems = [*_describe(found), *outputs.check(report)]
    return Audited(
        entries=len(found.history),
        versions=found.versions,
        runs=len(found.runs),
        periods=found.periods,
        outputs=outputs.outputs,
        files=outputs.files,
        heads=outputs.heads,
        unproved=(*found.unproved, *outputs.unproved),
        problems=tuple(problems),
    )


def _describe(found: StoreAudit) -> Iterator[Problem]:
    for place in found.damage:
        yield RecordChanged(subject=place, detail="it is not a text that this program writes")
    if found.broken is not None:
        yield HistoryBroken(number=found.broken)
    yield from (RecordChanged(subject=each.subject, detail=each.detail) for each in found.doubts)


class _OutputAudit:
    """Compares the outputs of all runs with their records."""

    def __init__(self, files: Files, found: StoreAudit, *, store: str) -> None:
        self._files, self._store = files, store
        # Of a run whose record is in doubt nothing more can be said.
        doubted = {each.subject for each in found.doubts}
        self._runs = tuple(run for run in found.runs if f"run {run.id}" not in doubted)
        self._hashes: Mapping[int, str] = {entry.number: entry.hash for entry in found.history}
        self._seen: set[Noted] = set()
        self.outputs = self.files = 0
        self.unproved: list[str] = []

    @property
    def heads(self) -> int:
        """How many notes of the history were found at destinations, and are entries of it."""
        return sum(self._hashes.get(head.number) == head.hash for head in self._seen)

    def check(self, report: Callable[[str], None]) -> Iterator[Problem]:
        """Differences from the record; outputs that later runs replaced may be missing."""
        for run in self._runs:
            try:
                outputs = Progress.load(run.progress).outputs
            except (KeyError, ValueError, TypeError, AttributeError, InternalError):
                # Of a run that is running: the history says nothing of it yet.
                yield RecordChanged(subject=f"run {run.id}", detail="its record cannot be read")
                continue
            if outputs:
                report(f"checking the outputs of run {run.id}")
            for output in outputs:
                yield from self._check(run, output)

    def _check(self, run: Run, output: PublishedOutput) -> Iterator[Problem]:
        self.outputs += 1
        name = f"output {output.table} of run {run.id}"
        try:
            storages = open_storages(self._files, run, session=SparkChoice(self._files).session())
            storage = storages.of_record(output.location)
            now = storage.inspect(output.location, run=run.id, seq=output.seq)
        except (RunFailed, Rejected, KeyError, OSError) as fault:
            self.unproved.append(f"{name}: it cannot be reached ({fault})")
            return
        self.files += now.files
        yield from self._check_named(run, output, storages, name)
        yield from (OutputChanged(run=run.id, table=output.table, detail=each) for each in now.changed)
        if now.gone and find_later_writer(run, output.location, self._runs) is None:
            lost = ", ".join(now.gone)
            yield OutputChanged(run=run.id, table=output.table, detail=f"{lost} is missing")
        yield from self._check_heads(name, now)
        if not now.files and not now.gone and not now.changed:
            self.unproved.append(f"{name}: its rows have a digest alone, which `dobo verify` compares")

    def _check_named(self, run: Run, output: PublishedOutput, storages: Storages, name: str) -> Iterator[Problem]:
        """The file that people open, where the output writes one of its own name."""
        try:
            named = inspect_named(run, output.location, storages, lambda: self._runs)
        except (RunFailed, Rejected, KeyError, OSError) as fault:
            self.unproved.append(f"{name}: `{output.location.shown}` cannot be read ({fault})")
            return
        self.files += named.found.files
        if named.doubt is not None:
            self.unproved.append(f"{name}: {named.doubt}")
        if (detail := explain_damage(named.found)) is not None:
            yield OutputChanged(run=run.id, table=output.table, detail=detail)

    def _check_heads(self, name: str, now: Inspected) -> Iterator[Problem]:
        """The entries that a destination notes; other stores may have published there too."""
        for head in now.heads:
            if head.store != self._store or head in self._seen:
                continue
            self._seen.add(head)
            if self._hashes.get(head.number) != head.hash:
                yield HistoryBroken(number=head.number, noted_by=f"the destination of {name}")

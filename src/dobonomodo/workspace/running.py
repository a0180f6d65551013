"""The data and the engine of a run: implementations of the protocols of ``runs``."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import date, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from dobonomodo.plan import DatasetUse, Plan
from dobonomodo.plan.check import CheckResult
from dobonomodo.plan.facts import RunFacts
from dobonomodo.plan.registration import registered_dataset
from dobonomodo.problems import RunFailed
from dobonomodo.runs.figures import FIRST_ROWS, FirstRows
from dobonomodo.runs.progress import StagedOutput
from dobonomodo.runs.record import Output, RunView
from dobonomodo.runs.runner import Computed
from dobonomodo.runs.snapshot import RunSpec
from dobonomodo.storage import (
    InputHashes,
    Inputs,
    KeptInputs,
    Noted,
    Outputs,
    Pinned,
    RestoredInputs,
    StagedRows,
    Storages,
    Stored,
    WrittenOutput,
)
from dobonomodo.storage.executors import Executors
from dobonomodo.storage.fence import Fence
from dobonomodo.storage.first_rows import first_rows, leading_rows
from dobonomodo.storage.leftover import Leftover
from dobonomodo.storage.transport import UPLOADED, Transport
from dobonomodo.store import Definition
from dobonomodo.workspace.background import InThread
from dobonomodo.workspace.files import RUNS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from dobonomodo.engine import InputSize
    from dobonomodo.engine.computed import Computed as ComputedOutput
    from dobonomodo.engine.engine import SparkEngine
    from dobonomodo.model import DataSource
    from dobonomodo.storage import Session
    from dobonomodo.storage.inputs import SparkReader
    from dobonomodo.store import Lease, Store
    from dobonomodo.why.stored import PinnedRows

OWNER = "store"
"""The file in the folder of a run that names the store which has its record."""
VERIFIED = "verify"
"""The folder in it for rows that were read back."""


def new_run_id(at: datetime) -> str:
    """An id that sorts by time, can be read and can be typed."""
    return f"{at:%Y%m%d-%H%M%S}-{secrets.token_hex(3)}"


class RunData:
    """The rows that one run reads and writes."""

    def __init__(
        self,
        *,
        root: Path,
        run: str,
        planned: RunSpec,
        registry: Callable[[], Store],
        store_id: str,
        sandbox: Path | DataSource | None,
        keep_inputs: bool = False,
        scratch: Path | None = None,
        transport: Transport | None = None,
        executors: Callable[[Path], Executors] | None = None,
        session: Session | None = None,
    ) -> None:
        """``scratch`` is the folder that workers share, where they are elsewhere; ``transport`` is the way to those that share none.

        ``session`` is for what Spark alone can read. ``executors`` gives those of Spark for work in the folder of the run,
        where they are worth asking.
        """
        self._kept, self._keep = KeptInputs.of(root), keep_inputs
        self._hashing: InThread[InputHashes] | None = None
        self._planned, self._registry, self.transport = planned, registry, transport
        self._folder = (scratch or root / RUNS) / run
        asked = executors(self._folder.absolute()) if executors is not None else None
        self._inputs = Inputs(
            root=root,
            datasources=planned.datasources,
            folder=self._folder,
            facts=planned.facts,
            as_of=planned.as_of,
            shared=scratch is not None,
            transport=transport,
            executors=asked,
            session=session,
        )
        self._outputs = Outputs(
            Storages(root, planned.datasources, sandbox if planned.status == "draft" else None, session),
            folder=self._folder,
            period=planned.facts.period,
            run=run,
            fence=Fence(store_id, planned.plan.project.id, planned.facts.period, 0),
            started=planned.facts.started_at.timestamp(),
            # Small inputs result in one output file, as users expect.
            in_one_file=lambda: self.size().is_small,
            apart=scratch is not None or transport is not None,
            transport=transport,
            executors=asked,
        )
        self._written = {
            step.spec.seq: WrittenOutput(step.spec.seq, write, write.written_types(step.before.columns))
            for step in planned.plan.steps
            if (write := step.lowered.write) is not None
        }
        self._spark: SparkSession | None = None
        self._staged: dict[int, StagedRows] = {}
        self._pinned: Pinned = planned.inputs or {}

    @property
    def folder(self) -> Path:
        """What Spark reads and writes, but for files that are read and written where they are."""
        return self._folder

    def hold(self, fence: int) -> None:
        """Write under a fencing number from now on."""
        self._outputs.fence = replace(self._outputs.fence, number=fence)

    def pin(self) -> Pinned:
        """Find, check and fingerprint the inputs."""
        self._mark()
        uses = self._planned.plan.uses
        self._pinned = self._inputs.extract(uses, self._inputs.pin(uses))
        return self._pinned

    def check(self) -> None:
        """Refuse destinations that cannot take the rows."""
        for step in self._planned.plan.steps:
            if (output := self._written.get(step.spec.seq)) is None:
                continue
            try:
                self._outputs.check(output)
            except RunFailed as failed:
                failed.problem = replace(failed.problem, operation=step.spec.ref)
                raise

    def find_changes(self, *, listing: bool) -> tuple[str, ...]:
        """Changes to the pinned inputs."""
        return self._inputs.find_changes(self._pinned, listing=listing)

    def prepare(self) -> None:
        """Extract missing inputs again."""
        self._mark()
        self._pinned = self._inputs.extract(self._planned.plan.uses, self._pinned)

    def start_hashing(self) -> None:
        """Hash the inputs in a thread, and copy those that must be kept."""
        uses, pinned = self._planned.plan.uses, self._pinned
        kept = self._kept if self._keep else None
        self._hashing = InThread(lambda: self._inputs.keep(uses, pinned, kept))

    def hash_inputs(self) -> InputHashes:
        """The hashes, once all are known."""
        if self._hashing is None:
            self.start_hashing()
        if self._hashing is None:
            raise AssertionError("it has begun")
        return self._hashing.result()

    def restore(self, hashes: InputHashes) -> RestoredInputs:
        """Restore the inputs of the run, from kept copies if the originals have changed; returns the lost ones."""
        restored = self._inputs.restore(self._planned.plan.uses, self._pinned, hashes, self._kept)
        self._pinned = restored.pinned
        return restored

    def rows(self, hashes: InputHashes) -> PinnedRows:
        """The rows that the run read, searchable without Spark."""
        from dobonomodo.why.stored import PinnedRows

        return PinnedRows(self._inputs, self._pinned, hashes=hashes, kept=self._kept)

    def find_lost(self, hashes: InputHashes) -> dict[str, tuple[str, ...]]:
        """The datasets whose rows are lost, neither unchanged nor available as copies, with the changes to them."""
        lost: dict[str, tuple[str, ...]] = {}
        for use in self._planned.plan.uses:
            changes = self._inputs.restore([use], self._pinned, hashes, self._kept).changes
            if changes:
                lost[use.dataset_id] = tuple(dict.fromkeys([*lost.get(use.dataset_id, ()), *changes]))
        return lost

    def find_commit(self, seq: int) -> tuple[int, str] | None:
        """Rows and digest of what an output published, if it did."""
        commit = self._outputs.find_commit(self._written[seq])
        return (commit.rows, commit.digest) if commit is not None else None

    def stage(self, output: Computed) -> StagedRows:
        """Let Spark write rows to staging."""
        seq, shared = output.step.spec.seq, output.shared
        if shared is None:
            staged = self._outputs.stage(output.frame, self._written[seq], divided_by=output.divided_by)
        else:
            host, files = self._written[shared.seq], self._staged[shared.seq]
            staged = self._outputs.share(self._written[seq], host, files, shared.parts, self._session)
        self._staged[seq] = staged
        return staged

    @property
    def _session(self) -> SparkSession:
        if self._spark is None:
            raise AssertionError("nothing is read before there is a session")
        return self._spark

    def reopen(self, seq: int, staged: StagedRows, *, part: int | None = None) -> DataFrame | None:
        """The rows that were staged, or one part of them, as a frame; None if there is no file with any."""
        return self._outputs.reopen(self._written[seq], staged, self._session, part=part)

    def first_rows(self, seq: int, staged: StagedRows, columns: Sequence[str], *, order: Sequence[str]) -> FirstRows:
        """The first of the rows that were staged, in the order of some columns."""
        files, write = self._outputs.files_of(staged), self._written[seq].write
        if write.order:
            shown = tuple(str(replace(key, column=write.written_name(key.column))) for key in write.order)
            return FirstRows(tuple(columns), shown, leading_rows(files, columns, count=FIRST_ROWS))
        return FirstRows(tuple(columns), tuple(order), first_rows(files, columns, order=order, count=FIRST_ROWS))

    def convert(self, output: StagedOutput) -> StagedRows:
        """Verify the number of rows, and convert them to the format of the destination."""
        return self._outputs.convert(self._written[output.seq], output.place, rows=output.rows)

    def claim(self, outputs: Sequence[StagedOutput]) -> None:
        """Fail if a later run has claimed a destination."""
        self._outputs.claim([self._written[output.seq] for output in outputs])

    def publish(self, outputs: Sequence[StagedOutput], *, head: Noted, of_failed_run: bool) -> None:
        """Publish outputs, all outputs of one place atomically."""
        staged = [(self._written[each.seq], each.place, each.rows, each.digest) for each in outputs]
        self._outputs.publish(staged, head=head, of_failed_run=of_failed_run)

    def stored(self, seq: int) -> Stored:
        """Where a published output is."""
        return self._outputs.stored(self._written[seq])

    def register(self, seq: int, *, run: str, at: datetime, by: str, lease: Lease) -> int | None:
        """Register a published output as the next version of its dataset; idempotent."""
        output = self._written[seq]
        if output.write.register_as is None:
            return None
        united, stored = self._outputs.registered(output)
        dataset = registered_dataset(output.write.register_as, united)
        definition = Definition(
            kind="dataset", id=dataset.id, fingerprint=dataset.fingerprint(), document=dataset.document()
        )
        # The store of drafts knows no leases.
        held = None if self._planned.status == "draft" else lease
        return (
            self._registry()
            .register(definition, location=stored.document(), origin=f"{run}/{seq}", at=at, by=by, lease=held)
            .version
        )

    def clear(self) -> None:
        """Delete what only an unfinished run needs."""
        shutil.rmtree(self._folder / "inputs", ignore_errors=True)
        shutil.rmtree(self._folder / "outputs", ignore_errors=True)
        with suppress(OSError):
            for path in self._folder.iterdir():
                if path.is_file():
                    path.unlink()
            self._folder.rmdir()
        if self.transport is not None:
            # A run that is completed stays so; what is left is found again.
            with suppress(RunFailed):
                self.transport.clear(but=VERIFIED)

    def _mark(self) -> None:
        """Leave a folder with the id of the store: it marks that this run may have leftovers elsewhere."""
        with suppress(OSError):
            self._folder.mkdir(parents=True, exist_ok=True)
            (self._folder / OWNER).write_text(self._outputs.fence.store)
        if self.transport is not None:
            self.transport.note(OWNER, self._outputs.fence.store)

    def leftover_findings(self) -> Iterator[Callable[[], list[Leftover]]]:
        """For each output, how to find what attempts at it left at its destination."""
        for output in self._written.values():
            yield partial(self._outputs.find_leftovers, output)

    def reader(self, spark: SparkSession) -> SparkReader:
        """A reader of the inputs for Spark."""
        self._spark = spark
        return self._inputs.reader(spark, self._pinned)

    @property
    def scratch(self) -> str:
        """Where Spark keeps rows that it needs again; it is removed with the run's extracted inputs."""
        return self.transport.address(UPLOADED) if self.transport is not None else f"{self._folder.absolute()}/inputs"

    def size(self) -> InputSize:
        """How many bytes and rows the inputs have, with bytes that were extracted."""
        from dobonomodo.engine import InputSize

        pinned = sum(pin.size for pins in self._pinned.values() for pin in pins)
        extracted = (self._folder / "inputs").glob("*.parquet")
        stored = pinned + sum(path.stat().st_size for path in extracted)
        return InputSize(stored, self._inputs.count(self._planned.plan.uses, self._pinned))


class Computing:
    """The engine of a run: Spark, reading what the run has pinned."""

    def __init__(self, engine: SparkEngine, reader: SparkReader) -> None:
        self._engine, self._reader = engine, reader

    def outputs(
        self, plan: Plan, facts: RunFacts, *, as_of: date | None, skip: Collection[int], figures: bool, digests: bool
    ) -> Iterator[ComputedOutput]:
        """The outputs of a plan, one after the other."""
        # Outputs that are published one by one are computed one by one: a failed output does not block those before it.
        sharing = plan.project.publish != "as_done"
        return self._engine.outputs(
            plan,
            facts,
            reader=self._reader,
            as_of=as_of,
            skip=skip,
            staging=True,
            sharing=sharing,
            figures=figures,
            digests=digests,
        )

    def contracts(self, plan: Plan, facts: RunFacts, *, as_of: date | None) -> tuple[CheckResult, ...]:
        """Evaluate the checks that are declared by the datasets which a plan reads."""
        return self._engine.contracts(plan, facts, reader=self._reader, as_of=as_of)

    def checks(
        self, plan: Plan, facts: RunFacts, *, as_of: date | None, skip: Collection[int]
    ) -> tuple[CheckResult, ...]:
        """The checks that no output has evaluated."""
        return self._engine.checks(plan, facts, reader=self._reader, as_of=as_of, skip=skip)

    def stored_columns(self, use: DatasetUse) -> Collection[str]:
        """The columns with which the rows of a reading are stored; none if it was not read."""
        return self._reader.columns(use)

    def digest(self, frame: DataFrame, columns: Sequence[str]) -> str:
        """The digest of rows that are written."""
        return self._engine.digest(frame, columns)

    def interrupt(self) -> None:
        """Stop computing."""
        self._engine.interrupt()


def output_frame(
    spark: SparkSession,
    run: RunView,
    output: Output,
    *,
    root: Path,
    runs: Path,
    transport: Transport | None,
    datasources: Mapping[str, DataSource],
) -> DataFrame:
    """The rows that an output wrote, read from where it put them. ``runs`` is the folder of the folders of runs."""
    from dobonomodo.formula import Columns

    columns = output.types()
    use = DatasetUse(
        role="input",
        dataset_id=output.table,
        version=1,
        table=output.table,
        temporal_mode=None,
        columns=Columns(columns),
        nullable=frozenset(columns),
    )
    place = f"{run.id}/{VERIFIED}/{output.seq}"
    shutil.rmtree(runs / place, ignore_errors=True)
    facts = RunFacts(run.started_at, run.period, date.min, date.max)
    inputs = Inputs(
        root=root,
        datasources=datasources,
        folder=runs / place,
        facts=facts,
        as_of=None,
        transport=transport.below(place) if transport is not None else None,
        session=lambda: spark,
    )
    storage = Storages(root, datasources, session=lambda: spark).of_record(output.location)
    pin = storage.pin_output(output.location, name=output.destination, period=run.period)
    (rows,) = inputs.read(spark, use, inputs.extract([use], {use.key: (pin,)})[use.key])
    return rows.frame.select(*(f"`{name.replace('`', '``')}`" for name in columns))

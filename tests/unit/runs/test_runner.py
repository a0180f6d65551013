"""The life of a run over a real store, with an engine and data that only keep a diary."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from dobonomodo.plan import KnownDataset
from dobonomodo.plan.counts import UnmatchedKey
from dobonomodo.problems import Rejected, RunFailed
from dobonomodo.problems.run import OutputWrite
from dobonomodo.problems.store import StoreUnavailable
from dobonomodo.runs import Runner, RunSpec, RunView, restore_snapshot, take_snapshot, view_run
from dobonomodo.runs.figures import FirstRows
from dobonomodo.runs.lease import Pace
from dobonomodo.runs.progress import StagedOutput
from dobonomodo.runs.runner import Computed, Quiet, Who, cancel_run
from dobonomodo.storage import InputHashes, Noted, Pinned, StagedRows
from dobonomodo.storage.folder import StoredFiles
from dobonomodo.storage.parquet import ParquetFormat
from dobonomodo.store import Held, Lease, Run, Store
from tests.world import FILES, LAKE, EngineByHand, define, new_store, spec_of

LINES = """
dataset: {id: lines, main_table: {name: lines, columns: [{name: id, type: integer}]}}
---
project:
  id: close
  input_dataset_id: lines
  operations:
    - {seq: 1, name: double, type: update, arguments: {assignments: [{column: twice, expression: id * 2}]}}
    - {seq: 2, type: output, arguments: {destination: {datasource_id: lake, table: one}}}
    - {seq: 3, type: output, arguments: {destination: {datasource_id: lake, table: two}, register_as_dataset: two}}
"""


@dataclass
class Diary:
    """Data that remember what was asked of them, and fail where a test says so."""

    published: dict[int, tuple[int, str]] = field(default_factory=dict)
    log: list[str] = field(default_factory=list)
    hashing: list[str] = field(default_factory=list)
    heads: list[Noted] = field(default_factory=list)
    of_failed_run: list[int] = field(default_factory=list)
    """The outputs that were published as those of a failed run."""
    changes: tuple[str, ...] = ()
    fails_at: str | None = None
    fence: int = 0
    gone: bool = False
    """Whether staged rows are not there any more."""

    def _note(self, what: str) -> None:
        self.log.append(what)
        if what == self.fails_at:
            raise RunFailed(OutputWrite(destination="x", detail="disk full", is_transient=True))

    def hold(self, fence: int) -> None:
        self.fence = fence

    def check(self) -> None:
        self._note("check")

    def pin(self) -> Pinned:
        self._note("pin")
        return {"input/lines/v1/lines/0/": ()}

    def find_changes(self, *, listing: bool) -> tuple[str, ...]:
        return self.changes

    def prepare(self) -> None:
        self._note("prepare")

    def start_hashing(self) -> None:
        self.hashing.append(f"begun after {self.log[-1]}")

    def hash_inputs(self) -> InputHashes:
        self.hashing.append(f"wanted after {self.log[-1]}")
        return {"input/lines/v1/lines/0/": (("ab12",),)}

    def stage(self, output: Computed) -> StagedRows:
        self._note(f"stage {output.step.spec.seq}")
        return StagedRows(f"staged/{output.step.spec.seq}", 0)

    def reopen(self, seq: int, staged: StagedRows, *, part: int | None = None) -> Any:
        return None if self.gone else staged.folder

    def first_rows(self, seq: int, staged: StagedRows, columns: Sequence[str], *, order: Sequence[str]) -> FirstRows:
        self._note(f"first rows {seq}")
        return FirstRows(tuple(columns), tuple(order), (("1",),))

    def convert(self, output: StagedOutput) -> StagedRows:
        self._note(f"convert {output.seq}")
        return replace(output.place, attempt=self.fence)

    def claim(self, outputs: Sequence[StagedOutput]) -> None:
        self._note(f"claim {[output.seq for output in outputs]}")

    def publish(self, outputs: Sequence[StagedOutput], *, head: Noted, of_failed_run: bool) -> None:
        self.heads.append(head)
        self.of_failed_run += [output.seq for output in outputs if of_failed_run]
        for output in outputs:
            self._note(f"publish {output.seq}")
            self.published[output.seq] = (output.rows, output.digest)

    def find_commit(self, seq: int) -> tuple[int, str] | None:
        return self.published.get(seq)

    def stored(self, seq: int) -> StoredFiles:
        return StoredFiles(ParquetFormat(), f"out/{seq}", f"out/{seq}/data", ())

    def register(self, seq: int, *, run: str, at: datetime, by: str, lease: Lease) -> int | None:
        assert lease.fence == self.fence
        self._note(f"register {seq}")
        return 1 if seq == 3 else None

    def clear(self) -> None:
        self._note("clear")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = new_store(tmp_path)
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def planned() -> RunSpec:
    return plan_definitions(LINES)


def plan_definitions(text: str) -> RunSpec:
    return spec_of(define(LAKE, FILES, text))


def snapshot_of(planned: RunSpec, inputs: Pinned | None) -> dict[str, Any]:
    return take_snapshot(
        planned.plan,
        planned.facts,
        as_of=planned.as_of,
        version=1,
        status="active",
        datasets=[KnownDataset(use_dataset(planned), 1)],
        resolvers=[],
        datasources=planned.datasources,
        together=None,
        inputs=inputs,
        versions={"dobonomodo": "0"},
    )


def use_dataset(planned: RunSpec) -> Any:
    return define(LAKE, FILES, LINES).datasets[planned.plan.input.dataset_id]


PACE = Pace(lease=0.3, heartbeat=0.05)


def no_data(run: Run) -> Any:
    raise AssertionError(f"nobody was publishing, not even {run.id}")


def runner(store: Store, *, holder: str = "me", pace: Pace = PACE, open_data: Any = no_data) -> Runner:
    return Runner(store, who=Who("ann", holder), open_data=open_data, pace=pace)


def start(
    store: Store,
    planned: RunSpec,
    data: Diary,
    engine: Any = None,
    run_id: str = "r1",
    figures: bool = False,
    digests: bool = False,
    **options: Any,
) -> RunView:
    return runner(store, **options).start(
        run_id,
        planned,
        data,
        lambda: engine or EngineByHand(),
        version=1,
        snapshot=lambda inputs: snapshot_of(planned, inputs),
        figures=figures,
        digests=digests,
    )


def resume(store: Store, data: Diary, run_id: str = "r1", engine: Any = None, **options: Any) -> RunView:
    record = store.get_run(run_id)
    assert record is not None
    spec = restore_snapshot(record.snapshot)
    return runner(store, **options).resume(record, spec, data, lambda: engine or EngineByHand())


def test_from_start_to_end(store: Store, planned: RunSpec) -> None:
    data = Diary()
    run = start(store, planned, data)
    assert run.status == "completed"
    assert data.log == [
        "check",
        "pin",
        "prepare",
        "stage 2",
        "convert 2",
        "stage 3",
        "convert 3",
        "claim [2, 3]",
        "publish 2",
        "publish 3",
        "register 2",
        "register 3",
        "clear",
    ]
    assert {name: (output.digest, output.dataset_version) for name, output in run.outputs.items()} == {
        "one": ("d2", None),
        "two": ("d3", 1),
    }
    assert run.last_completed_operation == 3
    assert (run.operations[0].rows_in, run.operations[1].selected) == (3, 3)
    assert not isinstance(take(store), Held)


def test_inputs_are_hashed_beside_the_engine_and_recorded_before_anything_is_published(
    store: Store, planned: RunSpec
) -> None:
    data = Diary()
    run = start(store, planned, data)
    assert data.hashing == ["begun after prepare", "wanted after convert 3"]
    assert run.inputs == {"input/lines/v1/lines/0/": [["ab12"]]}


def test_destinations_note_the_head_of_the_history(store: Store, planned: RunSpec) -> None:
    data = Diary()
    start(store, planned, data)
    started = next(entry for entry in store.list_history() if entry.event == "started")
    assert data.heads == [(store.id, started.number, started.hash)]


def test_a_run_that_publishes_nothing_records_no_hashes(store: Store, planned: RunSpec) -> None:
    data = Diary(fails_at="stage 3")
    assert start(store, planned, data).inputs is None
    assert data.hashing == ["begun after prepare"]


def test_outputs_are_published_as_they_are_done_on_request(store: Store, planned: RunSpec) -> None:
    data = Diary(fails_at="stage 3")
    project = planned.plan.project.model_copy(update={"publish": "as_done"})
    as_done = replace(planned, plan=replace(planned.plan, project=project))
    assert start(store, as_done, data).status == "failed"
    assert data.log[3:] == ["stage 2", "convert 2", "claim [2]", "publish 2", "register 2", "stage 3"]


def take(store: Store) -> Any:
    return store.take_lease("close", "2026-01", token="other", holder="other", at=datetime.now(UTC))


PLACES = (
    "stage 2",
    "convert 2",
    "stage 3",
    "convert 3",
    "claim [2, 3]",
    "publish 2",
    "publish 3",
    "register 2",
    "register 3",
)
INTENDED = PLACES.index("publish 2")


@pytest.mark.parametrize("place", PLACES)
def test_failed_anywhere_and_resumed(store: Store, planned: RunSpec, place: str) -> None:
    data = Diary(fails_at=place)
    failed = start(store, planned, data)
    assert failed.status == "failed"
    assert failed.problems[0].code == "OUTPUT_WRITE"
    assert failed.problems[0].retry_helps is True
    assert failed.is_publishing == (PLACES.index(place) >= INTENDED)
    assert failed.outputs == {}
    data.fails_at = None
    data.log.clear()
    run = resume(store, data)
    assert run.status == "completed"
    assert run.attempts == 2
    assert {output.seq: output.digest for output in run.outputs.values()} == {2: "d2", 3: "d3"}
    assert run.problems == ()
    staged = [each for each in data.log if each.startswith("stage")]
    assert len(staged) == {"stage 2": 2, "convert 2": 2, "stage 3": 1, "convert 3": 1}.get(place, 0)


@pytest.mark.parametrize("place", PLACES[INTENDED:])
def test_the_next_run_completes_what_a_killed_one_was_publishing(store: Store, planned: RunSpec, place: str) -> None:
    first = Diary(fails_at=place)
    start(store, planned, first)
    first.fails_at = None
    first.log.clear()
    opened = []

    def open_data(run: Run) -> Any:
        opened.append(run.id)
        return restore_snapshot(run.snapshot), first

    second = Diary()
    view = start(store, planned, second, run_id="r2", open_data=open_data)
    assert (view.status, opened) == ("completed", ["r1"])
    record = store.get_run("r1")
    assert record is not None
    assert (record.status, len(view_run(record).outputs), record.fence) == ("completed", 2, 1)
    assert first.log == ["publish 2", "publish 3", "register 2", "register 3", "clear"]
    assert first.fence == 2


def test_a_run_that_is_publishing_is_not_cancelled(store: Store, planned: RunSpec) -> None:
    start(store, planned, Diary(fails_at="publish 3"))
    record = store.get_run("r1")
    assert record is not None
    with pytest.raises(Rejected) as refused:
        cancel_run(store, record, at=datetime.now(UTC), by="ann")
    assert [problem.code for problem in refused.value.problems] == ["CANCEL_REFUSED"]
    assert store.get_run("r1") == record


def test_cancelling_looks_again_when_the_run_goes_on_meanwhile(store: Store, planned: RunSpec) -> None:
    start(store, planned, Diary(fails_at="stage 3"))
    seen = store.get_run("r1")
    assert seen is not None
    store.change_run_status(
        "r1", before="failed", after="failed", at=datetime.now(UTC), by="ann", progress={"intent": [2]}
    )
    with pytest.raises(Rejected) as refused:
        cancel_run(store, seen, at=datetime.now(UTC), by="ann")
    assert [problem.code for problem in refused.value.problems] == ["CANCEL_REFUSED"]


@pytest.mark.parametrize("lost", ["gone", "changed"])
def test_staged_rows_that_are_not_what_was_recorded_are_computed_again(
    store: Store, planned: RunSpec, lost: str
) -> None:
    data = Diary(fails_at="stage 3")
    start(store, planned, data)
    data.fails_at, data.gone = None, lost == "gone"
    data.log.clear()
    engine = EngineByHand()
    if lost == "changed":
        engine.digest = lambda frame, columns: "other"  # type: ignore[method-assign]
    run = resume(store, data, engine=engine)
    assert run.status == "completed"
    assert [each for each in data.log if each.startswith("stage")] == ["stage 2", "stage 3"]


# --- figures


def test_a_source_whose_stored_rows_have_a_period_is_warned_of_once(store: Store) -> None:
    # C-58: a plan does not know it
    append = "    - {seq: 1, type: append, arguments: {source: {dataset_id: lines}}}"
    planned = plan_definitions(re.sub("    - {seq: 1,.*", append, LINES))
    data = Diary(fails_at="stage 3")
    assert start(store, planned, data).status == "failed"
    data.fails_at = None
    (warning,) = resume(store, data).warnings
    assert (warning.code, warning.operation and warning.operation.seq) == ("W-04", 1)


def test_figures_of_all_outputs_are_recorded(store: Store, planned: RunSpec) -> None:
    data, engine = Diary(), EngineByHand()
    run = start(store, planned, data, engine, figures=True)
    assert [each for each in data.log if each.startswith("first")] == ["first rows 2", "first rows 3"]
    figures = run.figures
    assert figures is not None
    assert [(each.seq, each.table, each.rows, dict(each.totals)) for each in figures.outputs] == [
        (2, "one", 3, {"id": Decimal(2)}),
        (3, "two", 3, {"id": Decimal(3)}),
    ]
    assert figures.outputs[0].first == FirstRows(("id", "twice"), ("id", "twice"), (("1",),))
    assert (figures.loaded, figures.changes) == ({"id": Decimal(6)}, {1: {"twice": Decimal(12)}})
    assert [(each.alias, each.unmatched, each.most_frequent) for each in figures.joins] == [
        ("rates", 0, ()),
        ("tiers", 2, (UnmatchedKey(("7",), 5),)),
        ("late", 2, (UnmatchedKey(("7",), 5),)),
    ]
    # Unmatched keys take a job of their own: it runs once, and only for joins that have some.
    assert [each.asked for each in engine.written] == [["tiers"], ["late"]]


def test_figures_can_be_switched_off(store: Store, planned: RunSpec) -> None:
    data = Diary()
    run = start(store, planned, data)
    assert run.figures is None
    assert not any(each.startswith("first") for each in data.log)


def test_a_resumed_run_has_digests_of_columns_as_it_began(store: Store, planned: RunSpec) -> None:
    data = Diary(fails_at="stage 3")
    start(store, planned, data, figures=True, digests=True)
    data.fails_at = None
    run = resume(store, data)
    assert run.figures is not None
    assert [each.digests is not None for each in run.figures.outputs] == [True, True]


@pytest.mark.parametrize("figures", [True, False])
def test_a_resumed_run_has_figures_as_it_began(store: Store, planned: RunSpec, figures: bool) -> None:
    data = Diary(fails_at="stage 3")
    failed = start(store, planned, data, figures=figures)
    assert [each.seq for each in failed.figures.outputs] == [2] if failed.figures is not None else not figures
    data.fails_at = None
    engine = EngineByHand()
    run = resume(store, data, engine=engine)
    assert (run.figures is not None) == figures
    assert [each.seq for each in run.figures.outputs] == [2, 3] if run.figures is not None else True
    assert [each.asked for each in engine.written] == [["late"] if figures else []]


def test_figures_of_rows_that_are_not_there_any_more_are_forgotten(store: Store, planned: RunSpec) -> None:
    data = Diary(fails_at="stage 3")
    start(store, planned, data, figures=True)
    data.fails_at, data.gone = "stage 2", True
    failed = resume(store, data)
    assert failed.figures is not None
    assert failed.figures.outputs == ()


def test_inputs_that_cannot_be_found_fail_the_run(store: Store, planned: RunSpec) -> None:
    run = start(store, planned, Diary(fails_at="pin"))
    assert (run.status, run.last_completed_operation) == ("failed", None)
    with pytest.raises(Rejected) as refused:
        resume(store, Diary())
    assert [problem.code for problem in refused.value.problems] == ["RESUME_REFUSED"]


def test_changed_inputs_stop_a_run_and_its_resumption(store: Store, planned: RunSpec) -> None:
    data = Diary()
    failed = start(store, planned, data, EngineByHand(between=lambda seq: setattr(data, "changes", ("`x` is gone",))))
    assert [problem.code for problem in failed.problems] == ["INPUT_CHANGED"]
    assert data.published == {}
    with pytest.raises(Rejected) as refused:
        resume(store, data)
    assert [problem.code for problem in refused.value.problems] == ["INPUT_CHANGED"]


def test_a_lease_that_is_held(store: Store, planned: RunSpec) -> None:
    def second(seq: int) -> None:
        if seq != 2:
            return
        with pytest.raises(Rejected) as refused:
            runner(store, holder="you").start(
                "r2", planned, Diary(), EngineByHand, version=1, snapshot=lambda inputs: snapshot_of(planned, inputs)
            )
        (problem,) = refused.value.problems
        assert (problem.code, getattr(problem, "holder", None)) == ("RUN_HELD", "me")

    assert start(store, planned, Diary(), EngineByHand(between=second)).status == "completed"
    assert store.get_run("r2") is None


def test_a_run_whose_lease_is_not_renewed_is_taken_over(store: Store, planned: RunSpec) -> None:
    class Killed(BaseException):
        """Ends the process, as far as the store can see."""

    with pytest.raises(Killed):
        start(store, planned, Diary(), EngineByHand(between=_raising(Killed)))
    store.change_run_status("r1", before="failed", after="running", at=datetime.now(UTC), by="ann")
    assert isinstance(take(store), Lease)
    data = Diary()
    assert resume(store, data).status == "completed"
    assert data.fence == 3


class Asleep(EngineByHand):
    """An engine in a process that is suspended at an output, while another run takes over and completes."""

    def __init__(self, at: int, meanwhile: Callable[[], RunView]) -> None:
        super().__init__(lambda seq: self._sleep(seq))
        self._at, self._meanwhile = at, meanwhile
        self.other: RunView | None = None

    def _sleep(self, seq: int) -> None:
        if seq == self._at:
            self.other = self._meanwhile()


NEVER = Pace(lease=0.3, heartbeat=3600)
"""The pace of a process that is suspended: it renews nothing."""


@pytest.mark.parametrize("seq", [2, 3])
def test_a_run_that_slept_through_its_lease_fails_and_says_so(store: Store, planned: RunSpec, seq: int) -> None:
    engine = Asleep(seq, lambda: start(store, planned, Diary(), run_id="r2"))
    data = Diary()
    late = start(store, planned, data, engine, pace=NEVER)
    assert engine.other is not None
    assert engine.other.status == "completed"
    assert (late.status, [problem.code for problem in late.problems]) == ("failed", ["LEASE_LOST"])
    assert late.problems[0].retry_helps is False
    assert data.published == {}
    record = store.get_run("r1")
    assert record is not None
    assert view_run(record).problems == late.problems
    assert isinstance(take(store), Lease)


def test_a_run_that_was_resumed_elsewhere_leaves_the_record_alone(store: Store, planned: RunSpec) -> None:
    engine = Asleep(2, lambda: resume(store, Diary()))
    late = start(store, planned, Diary(), engine, pace=NEVER)
    assert (late.status, [problem.code for problem in late.problems]) == ("failed", ["LEASE_LOST"])
    record = store.get_run("r1")
    assert record is not None
    assert (record.status, record.fence, view_run(record).problems) == ("completed", 2, ())


def test_nothing_is_registered_after_the_lease_is_lost(store: Store, planned: RunSpec) -> None:
    class Late(Diary):
        def publish(self, outputs: Sequence[StagedOutput], *, head: Noted, of_failed_run: bool) -> None:
            super().publish(outputs, head=head, of_failed_run=of_failed_run)
            if self.log.count("publish 2") == 1:
                start(store, planned, Diary(), run_id="r2", open_data=lambda run: (planned, self))

    data = Late()
    late = start(store, planned, data, pace=NEVER)
    assert data.log.count("register 2") == 1, "by the run that took over, which completed this one"
    assert (late.status, len(late.outputs)) == ("completed", 2)


def test_the_time_of_earlier_attempts_counts(store: Store, planned: RunSpec) -> None:
    time = [0.0]

    def pass_time(seconds: float, seq: int) -> None:
        time[0] += seconds if seq == 2 else 0

    pace = replace(PACE, monotonic=lambda: time[0])
    first = start(store, planned, Diary(fails_at="stage 2"), EngineByHand(partial(pass_time, 100)), pace=pace)
    second = resume(store, Diary(), engine=EngineByHand(partial(pass_time, 10)), pace=pace)
    assert (first.seconds, second.seconds) == (100, 110)


def _raising(fault: type[BaseException]) -> Callable[[int], None]:
    def between(seq: int) -> None:
        raise fault

    return between


def test_interrupted(store: Store, planned: RunSpec) -> None:
    with pytest.raises(KeyboardInterrupt):
        start(store, planned, Diary(), EngineByHand(between=_raising(KeyboardInterrupt)))
    record = store.get_run("r1")
    assert record is not None
    view = view_run(record)
    assert (view.status, view.problems[0].code) == ("failed", "RUN_INTERRUPTED")
    assert not isinstance(take(store), Held)


def test_cancelling_interrupts_the_engine(store: Store, planned: RunSpec) -> None:
    interrupted = threading.Event()

    class Busy(EngineByHand):
        def interrupt(self) -> None:
            interrupted.set()

    def cancel(seq: int) -> None:
        record = store.get_run("r1")
        assert record is not None
        cancel_run(store, record, at=datetime.now(UTC), by="ann")
        assert interrupted.wait(timeout=60)

    assert start(store, planned, Diary(), Busy(between=cancel)).status == "cancelled"


def test_cancelled_while_at_work(store: Store, planned: RunSpec) -> None:
    def cancel(seq: int) -> None:
        record = store.get_run("r1")
        assert record is not None
        if seq == 3:
            cancel_run(store, record, at=datetime.now(UTC), by="ann")

    data = Diary()
    run = start(store, planned, data, EngineByHand(between=cancel))
    assert run.status == "cancelled"
    assert data.published == {}
    with pytest.raises(Rejected) as refused:
        resume(store, data)
    assert [problem.code for problem in refused.value.problems] == ["INVALID_TRANSITION"]


@dataclass
class Disturbed(Diary):
    """Data during whose work something happens."""

    at: str = ""
    meanwhile: Callable[[], object] = lambda: None

    def _note(self, what: str) -> None:
        super()._note(what)
        if what == self.at:
            self.meanwhile()

    def find_changes(self, *, listing: bool) -> tuple[str, ...]:
        self._note("find changes")
        return super().find_changes(listing=listing)


UNPUBLISHED = ("find changes", *PLACES[:INTENDED])


@pytest.mark.parametrize("place", UNPUBLISHED)
def test_cancelled_at_any_place_before_it_publishes(store: Store, planned: RunSpec, place: str) -> None:
    def cancel() -> None:
        record = store.get_run("r1")
        assert record is not None
        cancel_run(store, record, at=datetime.now(UTC), by="ann")

    data = Disturbed(at=place, meanwhile=cancel)
    run = start(store, planned, data, pace=NEVER)
    assert (run.status, run.problems) == ("cancelled", ())
    after = data.log[data.log.index(place) + 1 :]
    assert [each for each in after if not each.startswith("convert")] == []


class Listening(Quiet):
    """Has something happen as soon as outputs are published and recorded."""

    def __init__(self, meanwhile: Callable[[], object]) -> None:
        self._meanwhile = meanwhile

    def advanced(self, run: RunView) -> None:
        if run.outputs:
            self._meanwhile()


class Noting(Quiet):
    """Keeps what the run says that it does."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    def working(self, what: str) -> None:
        self.heard.append(what)


def start_with(store: Store, planned: RunSpec, listener: Quiet) -> RunView:
    listening = Runner(store, who=Who("ann", "me"), open_data=no_data, pace=NEVER, listener=listener)
    return listening.start(
        "r1", planned, Diary(), EngineByHand, version=1, snapshot=lambda inputs: snapshot_of(planned, inputs)
    )


def start_listening(store: Store, planned: RunSpec, meanwhile: Callable[[], object]) -> RunView:
    return start_with(store, planned, Listening(meanwhile))


def test_a_run_says_what_it_does(store: Store, planned: RunSpec) -> None:
    listener = Noting()
    start_with(store, planned, listener)
    assert listener.heard == ["reading inputs", "starting Spark", "computing", "publishing"]


def test_a_run_that_has_published_everything_is_not_cancelled(store: Store, planned: RunSpec) -> None:
    def cancel() -> None:
        record = store.get_run("r1")
        assert record is not None
        with pytest.raises(Rejected) as refused:
            cancel_run(store, record, at=datetime.now(UTC), by="ann")
        assert [problem.code for problem in refused.value.problems] == ["CANCEL_REFUSED"]

    run = start_listening(store, planned, cancel)
    assert (run.status, len(run.outputs), run.is_publishing) == ("completed", 2, False)


def test_a_run_that_stopped_when_it_had_published_everything_is_completed_by_the_next(
    store: Store, planned: RunSpec
) -> None:
    with pytest.raises(KeyboardInterrupt):
        start_listening(store, planned, partial(_raising(KeyboardInterrupt), 3))
    opened: list[str] = []
    first = Diary()

    def open_data(run: Run) -> Any:
        opened.append(run.id)
        return restore_snapshot(run.snapshot), first

    for run_id in ("r2", "r3"):
        assert start(store, planned, Diary(), run_id=run_id, open_data=open_data).status == "completed"
    record = store.get_run("r1")
    assert record is not None
    assert (record.status, len(view_run(record).outputs), opened, first.log) == ("completed", 2, ["r1"], ["clear"])


@pytest.mark.parametrize("place", UNPUBLISHED)
def test_the_lease_is_lost_at_any_place_before_it_publishes(store: Store, planned: RunSpec, place: str) -> None:
    data = Disturbed(at=place, meanwhile=partial(take_over, store))
    run = start(store, planned, data, pace=NEVER)
    assert (run.status, [problem.code for problem in run.problems]) == ("failed", ["LEASE_LOST"])
    after = data.log[data.log.index(place) + 1 :]
    assert [each for each in after if not each.startswith("convert")] == []


def take_over(store: Store) -> None:
    """Take the lease from a run, as if it had slept; one that is awake may renew it just then."""
    taken: Any = None
    while not isinstance(taken, Lease):
        (lease,) = store.list_leases()
        taken = store.take_over(lease, token="new", holder="you", at=datetime.now(UTC))


@pytest.mark.parametrize("place", ["publish 3", "register 3"])
def test_who_loses_the_lease_while_it_completes_another_run_leaves_its_record_alone(
    store: Store, planned: RunSpec, place: str
) -> None:
    start(store, planned, Diary(fails_at="publish 2"))
    before = store.get_run("r1")
    first = Disturbed(at=place, meanwhile=partial(take_over, store))
    with pytest.raises(RunFailed) as failed:
        start(store, planned, Diary(), run_id="r2", pace=NEVER, open_data=lambda run: (planned, first))
    assert failed.value.problem.code == "LEASE_LOST"
    assert store.get_run("r1") == before
    assert store.get_run("r2") is None


def test_what_an_older_program_published_without_an_intent_is_recorded_and_not_computed_again(
    store: Store, planned: RunSpec
) -> None:
    start(store, planned, Diary(fails_at="stage 2"))
    data = Diary(published={2: (7, "d-old")})
    run = resume(store, data)
    assert run.status == "completed"
    assert (run.outputs["one"].rows, run.outputs["one"].digest) == (7, "d-old")
    assert [each for each in data.log if each.endswith(" 2")] == ["register 2"]


def test_who_resumes_completes_what_a_later_run_was_publishing(store: Store, planned: RunSpec) -> None:
    """Otherwise the publication of the later run would be completed one day, over that of the resumed one."""
    start(store, planned, Diary(fails_at="stage 2"))
    later = Diary(fails_at="publish 2")
    start(store, planned, later, run_id="r2")
    later.fails_at = None
    resumed = Diary()
    with pytest.raises(Rejected) as refused:
        resume(store, resumed, open_data=lambda run: (restore_snapshot(run.snapshot), later))
    assert [problem.code for problem in refused.value.problems] == ["RESUME_REFUSED"]
    record = store.get_run("r2")
    assert record is not None
    assert (record.status, sorted(later.published), resumed.log) == ("completed", [2, 3], [])


class Unreachable:
    """A store that cannot be asked about leases."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def check_lease(self, lease: Lease) -> None:
        raise RunFailed(StoreUnavailable(store="x", reason="no route", is_transient=True))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


def test_what_the_heartbeat_noticed_counts_also_when_the_store_cannot_be_reached(
    store: Store, planned: RunSpec
) -> None:
    class Interrupted(EngineByHand):
        """An engine that is stopped when the lease is lost."""

        def __init__(self) -> None:
            super().__init__()
            self.stopped = threading.Event()

        def outputs(self, *arguments: Any, **options: Any) -> Iterator[Computed]:
            yield from ()
            take_over(store)
            assert self.stopped.wait(1800)
            raise RunFailed(OutputWrite(destination="x", detail="interrupted"))

        def interrupt(self) -> None:
            self.stopped.set()

    run = start(Unreachable(store), planned, Diary(), Interrupted(), pace=Pace(heartbeat=0.01))
    assert [problem.code for problem in run.problems] == ["LEASE_LOST"]


def test_a_later_run_makes_an_earlier_one_unresumable(store: Store, planned: RunSpec) -> None:
    start(store, planned, Diary(fails_at="stage 3"))
    assert start(store, planned, Diary(), run_id="r2").status == "completed"
    with pytest.raises(Rejected) as refused:
        resume(store, Diary())
    assert [problem.code for problem in refused.value.problems] == ["RESUME_REFUSED"]


def test_a_later_run_without_outputs_is_in_nobodys_way(store: Store, planned: RunSpec) -> None:
    start(store, planned, Diary(fails_at="stage 3"))
    assert start(store, planned, Diary(fails_at="stage 2"), run_id="r2").status == "failed"
    assert resume(store, Diary()).status == "completed"


def test_the_snapshot_gives_the_same_plan_after_a_way_through_json(planned: RunSpec) -> None:
    restored = restore_snapshot(json.loads(json.dumps(snapshot_of(planned, {}))))
    assert restored.plan.project.fingerprint() == planned.plan.project.fingerprint()
    assert restored.facts == planned.facts
    assert [use.locations for use in restored.plan.uses] == [use.locations for use in planned.plan.uses]

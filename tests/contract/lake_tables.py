"""What holds for tables of Delta and of Iceberg alike, in folders and in object stores."""

from __future__ import annotations

from dobonomodo.storage import Storages, WrittenOutput, load_stored
from tests.contract.storages import SEQ, Storage, arrow_table, failure, publish
from tests.contract.test_storages import SIMPLE, rows
from tests.world import PERIOD


def check_replaced_fenced_and_found(storage: Storage) -> None:
    """Rows of a period are replaced, a late run is refused, and what was published is found again."""
    storage.put(rows("a", "b"), SIMPLE, run="run-1")
    stored = load_stored(storage.put(rows("c", start=3), SIMPLE, run="run-2"))
    storage.put(rows("d", start=4), SIMPLE, run="run-3", period="2026-02")
    assert storage.see(SIMPLE) == [*rows("c", start=3), *rows("d", start=4)]
    # What was made here to be uploaded is removed with the run's staged files.
    assert {path.name for path in (storage.root / ".dobo/runs/run-2").glob("*")} <= {"outputs"}
    port = Storages(storage.root, {storage.source.id: storage.source}).of_record(stored)
    inspected = port.inspect(stored, run="run-2", seq=SEQ)
    assert (inspected.changed, inspected.gone, inspected.files) == ((), (), 2)
    assert port.sample(stored, SIMPLE, 5) == rows("c", start=3)
    assert port.keep(stored, period=PERIOD, run="run-2", seq=SEQ) is not None
    outputs, output = storage.outputs(run="run-9", fence=0), WrittenOutput(SEQ, storage.write(SIMPLE), SIMPLE)
    staged = storage.stage_by_hand(outputs, arrow_table(SIMPLE, rows("late")), output)
    assert failure(lambda: publish(outputs, output, staged, rows=1, digest="x")).problem.code == "LEASE_LOST"

"""What readers of an object store follow, as plain data."""

from __future__ import annotations

import json

import pytest

from dobonomodo.formula.types import INTEGER, DecimalType
from dobonomodo.problems import RunFailed
from dobonomodo.storage.fence import Fence
from dobonomodo.storage.object_pointer import (
    DataFile,
    DataPart,
    Manifest,
    State,
    TableState,
    is_manifest,
    manifest_key,
    store_of,
    versions_in,
)
from dobonomodo.storage.target import Commit, Noted

PART = DataPart(
    ".dobo-data/t/2026-01~run-1-10-1",
    (DataFile("a.csv", 3, "tag", "hash", 5), DataFile("b.csv", 4, "tag", "hash", 6)),
    {"id": INTEGER, "amount": DecimalType(9, 2), "unknown": None},
)


@pytest.mark.parametrize("head", [Noted("store", 3, "hash"), None])
def test_a_manifest_comes_back_and_lists_its_files(head: Noted | None) -> None:
    commits = (Commit("run-1", 10, 2, "digest", 1), Commit("run-2", 20, 3, "digest"))
    manifest = Manifest("t", "2026-01", commits, (PART, DataPart("later", (), {})), head)
    assert Manifest.parse(manifest.render()) == manifest
    assert json.loads(manifest.render())["files"] == [f"{PART.version}/data/a.csv", f"{PART.version}/data/b.csv"]
    assert manifest.version == "later"
    assert [manifest.find_commit(*each) for each in (("run-2", 20), ("run-1", 20), ("run-2", 10))] == [
        commits[1],
        None,
        None,
    ]


def test_the_state_of_tables_comes_back() -> None:
    state = State({"b": TableState({"p-2": "two", "p-1": "one"}, {"key": 3}), "a": TableState()})
    assert State.parse(state.render()) == state
    assert json.loads(state.render()) == {
        "format": 1,
        "tables": {
            "a": {"periods": {}, "fences": {}},
            "b": {"periods": {"p-1": {"manifest": "one"}, "p-2": {"manifest": "two"}}, "fences": {"key": 3}},
        },
    }
    assert state.table("b").manifests["p-1"] == "one"
    assert state.table("c") == TableState()
    changed = state.having("a", TableState({"p-1": "x"}))
    assert (changed.table("a").manifests, changed.table("b")) == ({"p-1": "x"}, state.table("b"))


def test_a_table_takes_no_lower_number_than_it_has_seen() -> None:
    fence = [Fence("store", "project", "2026-01", number) for number in range(4)]
    claimed = TableState({"p": "x"}).claim(fence[2])
    assert claimed == TableState({"p": "x"}, {fence[2].key: 2})
    assert claimed.claim(fence[2]) is claimed
    assert claimed.claim(fence[3]).fences == {fence[3].key: 3}
    other = Fence("store", "another project", "2026-01", 1)
    assert claimed.claim(other).fences == {fence[2].key: 2, other.key: 1}
    with pytest.raises(RunFailed) as failed:
        claimed.claim(fence[1])
    assert failed.value.problem.code == "LEASE_LOST"


def test_keys_of_tables_and_their_versions() -> None:
    assert store_of("t") == ".dobo-data/t"
    assert store_of("deep/er/t") == "deep/er/.dobo-data/t"
    key = manifest_key(PART.version, "abc")
    assert is_manifest(key.removeprefix(f"{PART.version}/"))
    assert not is_manifest("data.json")
    keys = [".dobo-data/t/v1/data/x", ".dobo-data/t/v1/data.json", ".dobo-data/t/v2/kept", ".dobo-data/t/loose"]
    assert list(versions_in(keys, ".dobo-data/t")) == [
        (".dobo-data/t/v1", ["data/x", "data.json"]),
        (".dobo-data/t/v2", ["kept"]),
    ]

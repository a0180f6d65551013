"""One pointer for the tables of a datasource: what readers find, before and after, and at every moment in between."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

import pytest

from dobonomodo.storage import pointer as module
from dobonomodo.storage.manifest import HIDDEN
from dobonomodo.storage.pointer import CURRENT, Pointer, find_folder, links_of
from tests.unit.storage.syncing import Syncs

JANUARY, FEBRUARY = "run_period=2026-01", "run_period=2026-02"


def data(prefix: Path, text: str) -> Path:
    """A folder of data with one file."""
    folder = prefix / HIDDEN / "data" / text
    folder.mkdir(parents=True)
    (folder / "part").write_text(text)
    return folder


def see(folder: Path) -> dict[str, str]:
    return {path.name: (path / "part").read_text() for path in folder.iterdir()}


def test_tables_appear_together(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "deep" / "two"
    with Pointer(tmp_path).locked():
        Pointer(tmp_path).publish({one: {JANUARY: data(tmp_path, "a")}, two: {JANUARY: data(tmp_path, "b")}})
    assert (see(one), see(two)) == ({JANUARY: "a"}, {JANUARY: "b"})
    assert (one / JANUARY).resolve() == tmp_path / HIDDEN / "data" / "a"


def test_links_and_tables_that_do_not_change_stay(tmp_path: Path) -> None:
    one, two, pointer = tmp_path / "one", tmp_path / "two", Pointer(tmp_path)
    pointer.publish({one: {JANUARY: data(tmp_path, "a")}})
    pointer.publish({two: {JANUARY: data(tmp_path, "b")}})
    pointer.publish({one: {FEBRUARY: data(tmp_path, "c")}})
    assert (see(one), see(two)) == ({JANUARY: "a", FEBRUARY: "c"}, {JANUARY: "b"})


def test_a_reader_that_resolved_the_pointer_sees_what_was(tmp_path: Path) -> None:
    one, two, pointer = tmp_path / "one", tmp_path / "two", Pointer(tmp_path)
    pointer.publish({one: {JANUARY: data(tmp_path, "a1")}, two: {JANUARY: data(tmp_path, "b1")}})
    state = (tmp_path / HIDDEN / CURRENT).resolve()
    pointer.publish({one: {JANUARY: data(tmp_path, "a2")}, two: {JANUARY: data(tmp_path, "b2")}})
    assert (see(state / "one"), see(state / "two")) == ({JANUARY: "a1"}, {JANUARY: "b1"})
    assert (see(one), see(two)) == ({JANUARY: "a2"}, {JANUARY: "b2"})


def test_a_workspace_can_be_moved(tmp_path: Path) -> None:
    before = tmp_path / "before"
    Pointer(before).publish({before / "deep" / "one": {JANUARY: data(before, "a")}})
    before.rename(tmp_path / "after")
    assert see(tmp_path / "after" / "deep" / "one") == {JANUARY: "a"}


@pytest.mark.parametrize("can_exchange", [True, False])
def test_a_folder_of_links_is_taken_over(tmp_path: Path, can_exchange: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """As versions before this one made it."""
    if not can_exchange:
        monkeypatch.setattr(module, "_exchange", lambda *_: False)
    one = tmp_path / "one"
    one.mkdir()
    (one / JANUARY).symlink_to(os.path.relpath(data(tmp_path, "old"), one))
    Pointer(tmp_path).publish({one: {FEBRUARY: data(tmp_path, "new")}})
    assert one.is_symlink()
    assert see(one) == {JANUARY: "old", FEBRUARY: "new"}
    assert sorted(os.listdir(tmp_path)) == [HIDDEN, "one"]


def test_a_table_keeps_its_pointer(tmp_path: Path) -> None:
    """One folder may be reached through two datasources."""
    folder = tmp_path / "deep" / "one"
    assert Pointer.of(folder, prefix=tmp_path) == Pointer(tmp_path)
    Pointer(tmp_path).publish({folder: {JANUARY: data(tmp_path, "a")}})
    assert Pointer.of(folder, prefix=tmp_path / "deep") == Pointer(tmp_path)


def test_names_may_be_long_and_odd(tmp_path: Path) -> None:
    names = ["a" * 180, "größe %2F", "deep/er", ".dot", "é" * 100]
    changes = {tmp_path / name: {JANUARY: data(tmp_path, str(number))} for number, name in enumerate(names)}
    Pointer(tmp_path).publish(changes)
    assert [see(folder) for folder in changes] == [{JANUARY: str(number)} for number in range(len(names))]


def test_replaced_states_go_and_the_current_one_stays(tmp_path: Path) -> None:
    one, two, pointer = tmp_path / "one", tmp_path / "two", Pointer(tmp_path)
    pointer.publish({one: {JANUARY: data(tmp_path, "a")}, two: {JANUARY: data(tmp_path, "x")}})
    pointer.publish({one: {JANUARY: data(tmp_path, "b")}})
    kept = len(list((tmp_path / HIDDEN / ".states").iterdir()))
    pointer.sweep(before=0)
    assert len(list((tmp_path / HIDDEN / ".states").iterdir())) == kept == 2
    pointer.sweep(before=2**40)
    assert len(list((tmp_path / HIDDEN / ".states").iterdir())) == 1
    assert [len(list(each.iterdir())) for each in (tmp_path / HIDDEN / ".tables").iterdir()] == [1, 1]
    assert (see(one), see(two)) == ({JANUARY: "b"}, {JANUARY: "x"})


def test_what_a_killed_publication_left_is_in_nobodys_way(tmp_path: Path) -> None:
    one, pointer = tmp_path / "one", Pointer(tmp_path)
    pointer.publish({one: {JANUARY: data(tmp_path, "a")}})
    (tmp_path / HIDDEN / ".current.next").symlink_to("nowhere")
    (tmp_path / ".one.link").symlink_to("nowhere")
    number = max(int(entry.name) for entry in (tmp_path / HIDDEN / ".states").iterdir()) + 1
    (tmp_path / HIDDEN / ".states" / str(number)).mkdir()
    pointer.publish({one: {JANUARY: data(tmp_path, "b")}})
    assert see(one) == {JANUARY: "b"}


def test_a_folder_that_is_not_there_has_no_links(tmp_path: Path) -> None:
    assert links_of(tmp_path / "nothing") == {}


def test_one_publication_at_a_time(tmp_path: Path) -> None:
    pointer = Pointer(tmp_path / "not" / "there")
    for _ in range(2):
        with pointer.locked(), (pointer.prefix / HIDDEN / ".lock").open("w") as other, pytest.raises(BlockingIOError):
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_a_state_is_on_the_disk_before_readers_are_led_to_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, hidden = tmp_path / "deep" / "one", tmp_path / HIDDEN
    rows = data(tmp_path, "a")
    syncs = Syncs(monkeypatch, one.exists)
    Pointer(tmp_path).publish({one: {JANUARY: rows}})
    state, table = (hidden / CURRENT).resolve(), one.resolve()
    for folder in (table, table.parent, state, state.parent, one.parent):
        assert syncs.of(folder) == [False], folder
    assert syncs.of(hidden) == [True]


def test_a_folder_that_is_taken_over_is_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = tmp_path / "one"
    one.mkdir()
    syncs = Syncs(monkeypatch, one.is_symlink)
    Pointer(tmp_path).publish({one: {JANUARY: data(tmp_path, "a")}})
    assert syncs.of(tmp_path) == [True]


def test_long_names_are_told_apart(tmp_path: Path) -> None:
    """They begin alike, further than a name in the hidden folder can be long."""
    names = [f"{'a' * 150}/{'b' * 150}{end}" for end in ("", "c", "d")]
    Pointer(tmp_path).publish({tmp_path / name: {JANUARY: data(tmp_path, name[-1])} for name in names})
    assert [see(tmp_path / name) for name in names] == [{JANUARY: "b"}, {JANUARY: "c"}, {JANUARY: "d"}]


def test_links_of_users_are_followed_up_to_that_of_a_table(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    table = tmp_path / "real" / "table"
    Pointer(tmp_path / "real").publish({table: {JANUARY: data(tmp_path, "a")}})
    (tmp_path / "folder").symlink_to("real")
    (tmp_path / "real" / "alias").symlink_to("../folder/table")
    (tmp_path / "alias").symlink_to(tmp_path / "folder" / "alias")
    (tmp_path / "nowhere").symlink_to("real/new")
    for path, expected in (
        ("real/table", table),
        ("folder/table", table),
        ("alias", table),
        ("nowhere", tmp_path / "real" / "new"),
        ("folder/other", tmp_path / "real" / "other"),
        ("folder", tmp_path / "real"),
    ):
        assert find_folder(tmp_path / path) == expected, path
    assert Pointer.of(tmp_path / "folder", prefix=tmp_path) == Pointer(tmp_path)


def test_links_in_a_circle_come_to_an_end(tmp_path: Path) -> None:
    (tmp_path / "one").symlink_to("two")
    (tmp_path / "two").symlink_to("one")
    assert find_folder(tmp_path / "one").parent == tmp_path


@pytest.mark.parametrize("target", [f"x/{CURRENT}/one", f"{HIDDEN}/other/one", f"{HIDDEN}/{CURRENT}/deep/one"])
def test_a_link_of_somebody_else_is_no_pointer(tmp_path: Path, target: str) -> None:
    (tmp_path / "one").symlink_to(target)
    assert Pointer.of(tmp_path / "one", prefix=tmp_path / "own") == Pointer(tmp_path / "own")

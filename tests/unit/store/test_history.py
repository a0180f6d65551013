from __future__ import annotations

import hashlib
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import pytest

from dobonomodo.store import Entry, Event, Head, Subject, find_break
from dobonomodo.store.history import link_entry
from dobonomodo.store.signoff import find_signoffs

AT = datetime(2026, 2, 3, 8, tzinfo=UTC)
START = Head(0, "store")
PERIOD = Subject.of_period("2026-01")


def chain(count: int) -> list[Entry]:
    entries: list[Entry] = []
    head = START
    for number in range(count):
        entry = Entry(subject=PERIOD, event=Event.SIGN, at=AT, by=f"person {number}", detail={"fingerprint": "f"})
        entries.append(link_entry(entry, to=head))
        head = Head(entries[-1].number, entries[-1].hash)
    return entries


def test_an_empty_history_is_whole() -> None:
    assert find_break([], start=START) is None


def test_every_entry_holds_the_hash_of_the_one_before() -> None:
    entries = chain(3)
    assert [entry.number for entry in entries] == [1, 2, 3]
    assert [entry.previous for entry in entries] == ["store", entries[0].hash, entries[1].hash]
    assert find_break(entries, start=START) is None
    assert find_break(entries[1:], start=Head(1, entries[0].hash)) is None


@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_change_a_removal_and_an_insertion_are_found(number: int) -> None:
    entries = chain(3)
    changed = [replace(entry, reason="another") if entry.number == number else entry for entry in entries]
    assert find_break(changed, start=START) == number
    if number < 3:
        assert find_break([entry for entry in entries if entry.number != number], start=START) == number
        assert find_break([*entries[:number], entries[0], *entries[number:]], start=START) == number + 1


def test_a_change_with_a_hash_of_its_own_breaks_the_next_link() -> None:
    first, second, third = chain(3)
    forged = link_entry(replace(second, by="somebody else"), to=Head(1, first.hash))
    assert find_break([first, forged, third], start=START) == 3


def test_a_history_of_another_store_is_found() -> None:
    assert find_break(chain(1), start=Head(0, "another store")) == 1


def test_the_hash_does_not_depend_on_the_time_zone() -> None:
    entry = Entry(subject=PERIOD, event=Event.SIGN, at=AT, by="ann")
    moved = replace(entry, at=AT.astimezone(timezone(timedelta(hours=5))))
    assert link_entry(entry, to=START).hash == link_entry(moved, to=START).hash


def test_the_hash_stays_what_it_was() -> None:
    """Histories are kept for years: another way of hashing would break all of them."""
    subject = Subject.of_run("run-1", project="sales", period="2026-01", version=1)
    entry = Entry(subject=subject, event="completed", at=AT, by="ann", before="running", after="completed", reason="ü")
    linked = link_entry(replace(entry, detail={"progress": "f"}), to=START)
    text = (
        '{"after":"completed","at":"2026-02-03T08:00:00.000000Z","before":"running","by":"ann","calendar":null,'
        '"detail":{"progress":"f"},"event":"completed","id":"run-1","kind":"run","number":1,"period":"2026-01",'
        '"previous":"store","project":"sales","reason":"\\u00fc","version":1}'
    )
    assert linked.hash == hashlib.sha256(text.encode()).hexdigest()


def test_sign_offs_are_what_was_not_withdrawn() -> None:
    def entry(event: Event, by: str, fingerprint: str = "f", subject: Subject = PERIOD) -> Entry:
        detail = {"fingerprint": fingerprint} if event is Event.SIGN else None
        return Entry(subject=subject, event=event, at=AT, by=by, detail=detail, reason="checked")

    other = Subject.of_project("sales", 1)
    found = find_signoffs(
        [
            entry(Event.SIGN, "ann"),
            entry(Event.SIGN, "bob"),
            entry(Event.SIGN, "ann", "g"),
            entry(Event.SIGN, "ann", subject=other),
            entry(Event.UNSIGN, "ann"),
            entry(Event.SIGN, "ann", "h"),
        ]
    )
    assert [(each.subject.kind, each.by, each.fingerprint, each.comment) for each in found] == [
        ("period", "bob", "f", "checked"),
        ("project", "ann", "f", "checked"),
        ("period", "ann", "h", "checked"),
    ]

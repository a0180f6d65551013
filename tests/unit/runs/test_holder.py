"""Which process a token is of, and whether that process has ended."""

from __future__ import annotations

import os

import pytest

from dobonomodo.runs.holder import describe_holder, is_dead, new_token


def test_tokens_differ() -> None:
    assert new_token() != new_token()


def test_a_process_that_runs_is_not_dead() -> None:
    assert not is_dead(new_token())


@pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="this system does not tell when a process started")
def test_a_process_id_that_was_used_again_is_another_process() -> None:
    machine, number, start, rest = new_token().split("/")
    assert is_dead(f"{machine}/{number}/{int(start) - 1}/{rest}")


@pytest.mark.parametrize("token", ["", "elsewhere/1/1/x", "//1/x", "x", "///"])
def test_nothing_is_said_of_processes_elsewhere(token: str) -> None:
    assert not is_dead(token)
    assert not is_dead(new_token().replace("/", "//", 1))


def test_people_see_the_process() -> None:
    assert describe_holder("ann").startswith("ann@")
    assert str(os.getpid()) in describe_holder("ann")

"""Which process a token is of, and whether that process has ended: with real processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from dobonomodo.runs.holder import describe_holder, is_dead, new_token

PROGRAM = "from dobonomodo.runs.holder import new_token; print(new_token(), flush=True); input()"


def test_tokens_differ() -> None:
    assert new_token() != new_token()


def test_a_process_that_runs_is_not_dead() -> None:
    assert not is_dead(new_token())


@pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="this system does not tell when a process started")
def test_a_process_is_dead_when_it_has_ended_even_if_nobody_collected_it() -> None:
    with subprocess.Popen([sys.executable, "-c", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        token = process.stdout.readline().decode().strip()
        assert not is_dead(token)
        process.send_signal(signal.SIGSTOP)
        assert not is_dead(token)
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert is_dead(token)
    assert is_dead(token)


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

"""Whether a process has ended, of real ones."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from dobonomodo.runs.holder import is_dead

PROGRAM = "from dobonomodo.runs.holder import new_token; print(new_token(), flush=True); input()"


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

"""Failpoints: named places at which a test can make the program die, to prove that nothing is lost there.

They ship with the product and do nothing unless the environment names one.
"""

from __future__ import annotations

import os
import signal
import time

VARIABLE = "DOBO_FAILPOINT"
"""``name`` or ``name:3`` for the third time it is reached.

``name@path`` waits there until there is such a file, and makes one with ``.waiting`` behind its name.
"""

FAILPOINTS = (
    "run.recorded",
    "input.pinned",
    "input.extracting",
    "input.extracted",
    "output.staging",
    "output.staged",
    "output.converting",
    "output.converted",
    "output.ready",
    "checks.evaluated",
    "checks.passed",
    "publish.claimed",
    "publish.intended",
    "publish.before",
    "publish.during",
    "publish.naming",
    "publish.after",
    "output.registered",
    "output.recorded",
    "run.finishing",
    "run.finished",
)

_reached: dict[str, int] = {}


def reach(name: str) -> None:
    """Pass a failpoint; the process is killed here if the environment says so, as by ``kill -9``."""
    wanted = os.environ.get(VARIABLE)
    if not wanted:
        return
    place, _, action = wanted.partition("@")
    place, _, number = place.partition(":")
    if place != name:
        return
    _reached[name] = _reached.get(name, 0) + 1
    if _reached[name] != int(number or 1):
        return
    if action:
        open(f"{action}.waiting", "w").close()
        while not os.path.exists(action):
            time.sleep(0.05)
        return
    os.kill(os.getpid(), signal.SIGKILL)

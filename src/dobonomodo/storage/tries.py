"""Commits upon the version of a table that was looked at: if somebody else was faster, it is looked at again before the next try.

What is looked at each time (whether the commit is there already, whether a later run has claimed the key) is for the target to say.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

from dobonomodo.storage.faults import writing_failed

T = TypeVar("T")

_LONGEST = 20
"""So many times the pause is the longest that is waited."""


def look_again(look: Callable[[], T | None], *, name: str, tries: int, pause: float) -> Iterator[T]:
    """The table, again and again while others commit to it, each time as they left it; nothing is waited for before the second look.

    ``look`` gives None for a table that has to be opened again. Pauses are random, so that those who met once do not meet again.
    """
    for number in range(tries):
        table = look()
        if table is not None:
            yield table
        time.sleep(random.uniform(0, pause) * min(number, _LONGEST))
    raise writing_failed(name, "other writers committed first each time", retry_helps=True)

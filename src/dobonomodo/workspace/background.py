"""A computation in a background thread."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

Result = TypeVar("Result")


class InThread(Generic[Result]):
    """A running computation. The process may end without waiting for its result."""

    def __init__(self, compute: Callable[[], Result]) -> None:
        self._compute = compute
        self._found: list[Result] = []
        self._fault: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._found.append(self._compute())
        except BaseException as fault:  # noqa: BLE001  it is raised where the result is wanted
            self._fault = fault

    def result(self) -> Result:
        """Wait for it; raises what it raised."""
        self._thread.join()
        if self._fault is not None:
            raise self._fault
        return self._found[0]

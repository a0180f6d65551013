"""A run in a background thread, as `Workspace.start` returns it. ``execution.py`` runs it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING

from dobonomodo.runs import Listener, Quiet, RunView

if TYPE_CHECKING:
    from dobonomodo.plan import Plan, Step


class RunHandle:
    """A run that continues in the background. The process waits for it before it ends."""

    def __init__(
        self, run_id: str, *, find: Callable[[str], RunView], cancel: Callable[[str], RunView], result: Future[RunView]
    ) -> None:
        self.id = run_id
        self._find, self._cancel, self._result = find, cancel, result

    @property
    def view(self) -> RunView:
        """The run as it is recorded now."""
        return self._find(self.id)

    @property
    def status(self) -> str:
        """``running``, ``completed``, ``failed`` or ``cancelled``, as it is recorded now."""
        return self.view.status

    @property
    def is_over(self) -> bool:
        """Whether the thread has ended."""
        return self._result.done()

    def wait(self, timeout: float | None = None) -> RunView:
        """The run when it is over; raises ``TimeoutError`` if it is not over after so many seconds."""
        return self._result.result(timeout)

    def cancel(self) -> RunView:
        """Cancel the run; published outputs stay. `wait` returns when it has stopped."""
        return self._cancel(self.id)

    def __repr__(self) -> str:
        return f"RunHandle({self.id!r}, {'over' if self.is_over else 'running'})"


class _Beginning:
    """A listener that notices the record of the run, and passes everything on."""

    def __init__(self, listener: Listener | None) -> None:
        self._listener = listener or Quiet()
        self.changed = threading.Event()
        self.run_id: str | None = None

    def started(self, run: RunView, plan: Plan) -> None:
        self.run_id = run.id
        self.changed.set()
        self._listener.started(run, plan)

    def working(self, what: str) -> None:
        self._listener.working(what)

    def output_started(self, step: Step) -> None:
        self._listener.output_started(step)

    def advanced(self, run: RunView) -> None:
        self._listener.advanced(run)

    def finished(self, run: RunView) -> None:
        self._listener.finished(run)


def start_run(
    work: Callable[[Listener], RunView],
    *,
    find: Callable[[str], RunView],
    cancel: Callable[[str], RunView],
    listener: Listener | None,
) -> RunHandle:
    """Execute a run in a thread. Returns a handle once the run is recorded; earlier exceptions are raised here."""
    beginning, result = _Beginning(listener), Future[RunView]()

    def compute() -> None:
        try:
            result.set_result(work(beginning))
        except BaseException as fault:  # noqa: BLE001  whoever waits for the run gets it
            result.set_exception(fault)
        finally:
            beginning.changed.set()

    threading.Thread(target=compute, name="dobo-run", daemon=False).start()
    beginning.changed.wait()
    if beginning.run_id is None:
        # Refused before there was a record.
        return RunHandle(result.result().id, find=find, cancel=cancel, result=result)
    return RunHandle(beginning.run_id, find=find, cancel=cancel, result=result)

"""The Spark session of a command, and the engine on it. A Spark that cannot start is reported with a hint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING

from dobonomodo.model.secret import is_reference, is_secret_key
from dobonomodo.problems.package import SPARK, require_modules

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from dobonomodo.engine import InputSize
    from dobonomodo.engine.engine import SparkEngine
    from dobonomodo.runs import Listener
    from dobonomodo.storage import Session
    from dobonomodo.workspace.files import Files


@dataclass(frozen=True, slots=True)
class SessionOptions:
    """How Spark is to be reached for one command, where that differs from the workspace."""

    master: str | None = None
    remote: str | None = None
    conf: Mapping[str, str] = field(default_factory=dict)
    wait_for_executors: float = 300
    """Seconds that Spark may have tasks and no executor that runs them."""


@dataclass(frozen=True, slots=True, eq=False)
class SparkChoice:
    """The Spark that one call computes on: a session of the caller's, or one of our own by the settings of the workspace."""

    files: Files
    given: SparkSession | None = None
    options: SessionOptions = field(default_factory=SessionOptions)

    def require(self) -> None:
        """Raise if Spark is not installed, has impossible settings, or lacks a secret."""
        from dobonomodo.engine import require_possible

        require_modules(SPARK)
        if self.given is None:
            master, remote = self._place()
            require_possible(master=master, remote=remote, conf=self._conf())

    def may_be_elsewhere(self) -> bool:
        """Whether Spark computes in other processes than its driver, or on another machine, as far as is known before it is opened."""
        from dobonomodo.engine.reach import may_be_elsewhere
        from dobonomodo.engine.session import LOCAL, is_local

        if self.given is not None:
            return may_be_elsewhere(self.given)
        master, remote = self._place()
        return remote is not None or not is_local(master or LOCAL)

    def engine(
        self,
        *,
        size: InputSize | None = None,
        listener: Listener | None = None,
        scratch: str | None = None,
        run: str | None = None,
    ) -> SparkEngine:
        """Spark, ready to compute. One that we have not started ourselves must first show that it computes as Spark does.

        ``scratch`` is a place for rows that are computed once and read again.
        """
        from dobonomodo.engine import computes_here, is_remote
        from dobonomodo.engine.cutting import hold_in_memory, stage_in
        from dobonomodo.engine.engine import SparkEngine
        from dobonomodo.engine.executors import Patience
        from dobonomodo.engine.faults import noticing_loss
        from dobonomodo.runs import Quiet

        with noticing_loss():
            session = self._session(size)
        patience = Patience(limit=self.options.wait_for_executors, say=(listener or Quiet()).working)
        cut, small = None, size is not None and size.is_small
        if small and computes_here(session):
            cut = hold_in_memory()
        elif scratch is not None:
            cut = stage_in(scratch, session)
        engine = SparkEngine(session, small_inputs=small, cut=cut, patience=patience, run=run)
        if self.given is not None or is_remote(session):
            engine.require_arithmetic(of=session if self.given is None else self.given)
        return engine

    def session(self) -> Session:
        """A function that returns one shared session: for storages that need Spark before anything is computed."""
        from dobonomodo.engine.faults import noticing_loss

        @cache
        def opened() -> SparkSession:
            self.require()
            with noticing_loss():
                return self._session(None)

        return opened

    def _session(self, size: InputSize | None) -> SparkSession:
        from dobonomodo.engine import adapt_session

        if self.given is not None:
            return adapt_session(self.given)
        master, remote = self._place()
        return open_spark(master=master, remote=remote, conf=self._conf(), size=size)

    def _place(self) -> tuple[str | None, str | None]:
        """Master and remote: of the command if it names either, else of the workspace."""
        settings, chosen = self.files.settings.spark, self.options
        own = chosen.master is not None or chosen.remote is not None
        return (chosen.master, chosen.remote) if own else (settings.master, settings.remote)

    def _conf(self) -> dict[str, str]:
        """The settings of Spark. A secret is only referred to, and looked up now."""
        from dobonomodo.storage.secret import find_secret

        settings = {**self.files.settings.spark.conf, **self.options.conf}
        hidden = {name for name, value in settings.items() if is_secret_key(name) and is_reference(value)}
        return {
            name: (find_secret(value, root=self.files.root, owner=f"setting `{name}`") or "")
            if name in hidden
            else str(value)
            for name, value in settings.items()
        }


def open_spark(
    *,
    master: str | None = None,
    remote: str | None = None,
    conf: Mapping[str, str],
    app_name: str = "dobo",
    size: InputSize | None = None,
) -> SparkSession:
    """A session of our own; what keeps it from starting is a problem with a code."""
    from dobonomodo.engine import open_session

    require_modules(SPARK)
    return open_session(master=master, remote=remote, conf=conf, app_name=app_name, size=size)

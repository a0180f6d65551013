"""The stores of a workspace: everybody's, and the one in which drafts register datasets. Opened when they are first needed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from dobonomodo.model.workspace import DEFAULT_SANDBOX
from dobonomodo.problems import Problem, Rejected
from dobonomodo.store import open_store

if TYPE_CHECKING:
    from dobonomodo.model import DataSource
    from dobonomodo.store import Store
    from dobonomodo.workspace.files import Files

REGISTERED = "registered.db"
"""The file in the sandbox with the datasets that drafts have registered."""


class Stores:
    """Opens each store once.

    ``problems`` gives every problem of the workspace, for whoever needs settings that cannot be read.
    """

    def __init__(self, files: Files, *, problems: Callable[[], Sequence[Problem]]) -> None:
        self._files, self._problems = files, problems
        # Two threads that need a store open it once.
        self._lock = threading.RLock()
        self._main: Store | None = None
        self._sandbox: Store | None = None

    @property
    def main(self) -> Store:
        """The store of the workspace; created if it does not exist."""
        self.require_settings()
        with self._lock:
            if self._main is None:
                self._main = open_store(self._files.settings.store, root=self._files.root)
            return self._main

    @property
    def path(self) -> Path | None:
        """Where the store is, if it is a file."""
        address = self._files.settings.store
        path = address.removeprefix("sqlite:///")
        return self._files.root / path if path != address else None

    def find_main(self) -> Store | None:
        """The store, unless it was never made."""
        self.require_settings()
        path = self.path
        # Opening the store reports a folder that this user may not read.
        with suppress(OSError):
            if path is not None and not path.exists():
                return None
        return self.main

    def find_main_to_check(self) -> Store | None:
        """The store that checking may read; settings that cannot be read are a problem of their own."""
        return self.find_main() if self._files.has_settings else None

    @property
    def sandbox(self) -> Store:
        """Where drafts register datasets, apart from everybody's."""
        with self._lock:
            if self._sandbox is None:
                self._sandbox = open_store(f"sqlite:///{REGISTERED}", root=self.sandbox_folder)
            return self._sandbox

    def find_sandbox(self) -> Store | None:
        """The store of drafts, unless no draft has registered anything."""
        return self.sandbox if (self.sandbox_folder / REGISTERED).exists() else None

    @property
    def sandbox_folder(self) -> Path:
        """Where drafts write, unless the sandbox is a datasource."""
        name = self._files.settings.sandbox
        named = name not in self._files.definitions.datasources
        return self._files.root / (name if named else DEFAULT_SANDBOX)

    @property
    def sandbox_place(self) -> DataSource | Path:
        """Where drafts write: a datasource, or a folder."""
        return self._files.definitions.datasources.get(self._files.settings.sandbox) or self.sandbox_folder

    def require_settings(self) -> None:
        """Raise with every problem if the file of the workspace could not be read: defaults must not replace it."""
        if not self._files.has_settings:
            raise Rejected(self._problems())

    def close(self) -> None:
        """Close all connections; a store that is needed later is opened again."""
        with self._lock:
            for store in (self._main, self._sandbox):
                if store is not None:
                    store.close()
            self._main = self._sandbox = None

"""The datasets that planning can use: those of the files, those of the store, and those that projects will register."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from dobonomodo.model import Dataset, Definitions
from dobonomodo.plan import KnownDataset
from dobonomodo.workspace.recorded import load_recorded

if TYPE_CHECKING:
    from dobonomodo.plan.chain import Chain
    from dobonomodo.store import Store, Version


class KnownDatasets:
    """The datasets that planning can use: those of the files, as they would be recorded, over those of the store."""

    def __init__(
        self,
        definitions: Definitions | None,
        store: Callable[[], Store | None],
        *,
        count: bool = False,
        sandbox: Callable[[], Store | None] = lambda: None,
        chain: Callable[[KnownDatasets], Chain],
    ) -> None:
        self._definitions = definitions
        self._open = store
        self._count = count
        self._open_sandbox = sandbox
        self._make_chain = chain

    @cached_property
    def chain(self) -> Chain:
        """What the projects register, as planned."""
        return self._make_chain(self)

    @cached_property
    def _store(self) -> Store | None:
        return self._open()

    @cached_property
    def _sandbox(self) -> Store | None:
        """What drafts have registered."""
        return self._open_sandbox()

    def ids(self) -> Sequence[str]:
        files = self._definitions
        own = (*files.datasets, *files.broken.get("dataset", {})) if files is not None else ()
        stores = [store for store in (self._store, self._sandbox) if store is not None]
        recorded = [version for store in stores for version in store.list_definitions("dataset")]
        return tuple(dict.fromkeys([*own, *(version.id for version in recorded), *self.chain.ids()]))

    def versions(self, dataset_id: str) -> Sequence[int]:
        recorded = self._store.list_versions("dataset", dataset_id) if self._store is not None else ()
        numbers = [version.version for version in recorded]
        own = self._own(dataset_id)
        return numbers if own is None else sorted({*numbers, self._number(own)})

    def is_broken(self, dataset_id: str) -> bool:
        if self._is_unreadable(dataset_id):
            return True
        return self.chain.is_broken(dataset_id) and not self.versions(dataset_id)

    def _is_unreadable(self, dataset_id: str) -> bool:
        """Whether the files declare a dataset in a way that cannot be read."""
        return self._definitions is not None and dataset_id in self._definitions.broken.get("dataset", {})

    def find(self, dataset_id: str, version: int | None = None) -> KnownDataset | None:
        """A version that is stored or declared; where there is none, what a project will register (C-93).

        An older version does not replace a declaration that cannot be read.
        """
        if version is None and self._is_unreadable(dataset_id):
            return None
        known = self._find_stored(dataset_id, version)
        if known is None and version is None and not self.versions(dataset_id):
            return self.chain.find(dataset_id)
        return known

    def find_stored(self, dataset_id: str) -> Dataset | None:
        """A dataset that is known without the plans of projects."""
        known = self._find_stored(dataset_id, None)
        return known.dataset if known is not None else None

    def _find_stored(self, dataset_id: str, version: int | None) -> KnownDataset | None:
        own = self._own(dataset_id)
        makers = self.chain.makers(dataset_id)
        if (own is None or makers) and (found := self._registered(dataset_id, version, own)) is not None:
            return _known(found)
        if own is not None and own.status == "active":
            number = self._number(own, needed=version is not None)
            if version in (None, number):
                return KnownDataset(own, number, registered_by=makers)
        found = self._recorded(self._store, dataset_id, version, own) if self._store is not None else None
        return _known(found, makers) if found is not None else None

    def _registered(self, dataset_id: str, version: int | None, own: Dataset | None) -> Version | None:
        """A version that a run registered; without a number the newest, unless a resolver is declared (C-83)."""
        for store in (self._store, self._sandbox):
            if store is None:
                continue
            if version is not None:
                found = store.get_version("dataset", dataset_id, version=version)
            else:
                found = _newest_registered(store, dataset_id, own)
            if found is not None and found.location is not None:
                return found
        return None

    def _recorded(self, store: Store, dataset_id: str, version: int | None, own: Dataset | None) -> Version | None:
        if version is not None:
            return store.get_version("dataset", dataset_id, version=version)
        found = store.get_active_version("dataset", dataset_id)
        if found is not None and own is not None and found.version == self._number(own, needed=True):
            return None
        return found

    def _own(self, dataset_id: str) -> Dataset | None:
        return self._definitions.datasets.get(dataset_id) if self._definitions is not None else None

    def _number(self, dataset: Dataset, *, needed: bool = False) -> int:
        """The version that a dataset of the files has or would get; 1 if it is not needed."""
        if not (self._count or needed) or self._store is None:
            return 1
        newest = self._store.get_version("dataset", dataset.id)
        if newest is None:
            return 1
        return newest.version if newest.fingerprint == dataset.fingerprint() else newest.version + 1


def _newest_registered(store: Store, dataset_id: str, own: Dataset | None) -> Version | None:
    """The newest active version that a run registered; None where the dataset is declared with a resolver."""
    newest = store.get_active_version("dataset", dataset_id)
    if newest is None or (own.resolver_id if own is not None else newest.document.get("resolver_id")) is not None:
        return None
    if newest.location is not None:
        return newest
    versions = reversed(store.list_versions("dataset", dataset_id))
    return next((each for each in versions if each.location is not None and each.status == "active"), None)


def _known(version: Version, makers: tuple[str, ...] = ()) -> KnownDataset:
    from dobonomodo.storage import load_stored

    stored = load_stored(version.location) if version.location is not None else None
    has_period = stored is not None and "_period" in (stored.columns or ())
    waiting = makers if stored is None else ()
    dataset = load_recorded(version, Dataset)
    return KnownDataset(dataset, version.version, stored, has_period, registered_by=waiting)

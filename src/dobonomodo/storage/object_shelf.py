"""Files in an object store. Inputs of a run are downloaded, each object in its pinned version."""

from __future__ import annotations

import errno
import hashlib
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Self

from dobonomodo.problems import Rejected
from dobonomodo.problems.run import CredentialNotFound
from dobonomodo.storage.access import Access
from dobonomodo.storage.address import HDFS, Address
from dobonomodo.storage.files import PinnedFile, is_hidden, most_alike
from dobonomodo.storage.folder import KEY, Format, StoredFiles, StoredFolders, compare_named
from dobonomodo.storage.manifest import DATA, HIDDEN, MANIFEST, version_of
from dobonomodo.storage.named import MARK
from dobonomodo.storage.named_object import NamedObject
from dobonomodo.storage.object_copies import Copy, download_all
from dobonomodo.storage.object_pointer import (
    KEPT,
    OWN,
    DataPart,
    Manifest,
    ObjectPointer,
    State,
    is_manifest,
    manifest_key,
    store_of,
)
from dobonomodo.storage.object_target import ObjectTarget
from dobonomodo.storage.objects import PAGE, FoundObject, Objects, do_at_once, open_objects
from dobonomodo.storage.secret import find_secret
from dobonomodo.storage.shelf import Listed
from dobonomodo.storage.storage import Answer
from dobonomodo.storage.target import Inspected, Noted

if TYPE_CHECKING:
    from dobonomodo.model.datasource import DataSource
    from dobonomodo.plan.dataset import DatasetUse, Location
    from dobonomodo.storage.executors import Executors
    from dobonomodo.storage.storage import Scratch
    from dobonomodo.storage.target import OutputPlace, Target


@dataclass(frozen=True, slots=True)
class ObjectShelf:
    """The objects below the address of a datasource."""

    root: Path
    datasource_id: str
    prefix: Address
    endpoint: str | None = None
    region: str | None = None
    credential_ref: str | None = None

    @classmethod
    def of(cls, source: DataSource, root: Path, *, option: str = "path_prefix") -> Self:
        """Those of a datasource, below the address in an option. Its secret is looked up when it is needed."""
        options = source.options
        prefix = Address.parse(options[option])
        return cls(root, source.id, prefix, options.get("endpoint"), options.get("region"), source.credential_ref)

    @property
    def objects(self) -> Objects:
        """Those of the bucket. The secret is looked up here."""
        secret = find_secret(self.credential_ref, root=self.root, owner=f"datasource `{self.datasource_id}`")
        if secret is not None and (reason := _find_fault(secret, self.prefix.scheme)) is not None:
            owner, reference = f"datasource `{self.datasource_id}`", self.credential_ref or ""
            raise Rejected([CredentialNotFound(owner=owner, reference=reference, reason=reason)])
        return open_objects(self.prefix, Access(self.endpoint, self.region, secret))

    @property
    def _pointer(self) -> ObjectPointer:
        return ObjectPointer(self.objects, self.prefix)

    def call(self) -> Answer | None:
        """What a listing says."""
        try:
            found = self.objects.look(self.prefix.key)
        except OSError as fault:
            return Answer(f"{self.prefix}: {fault.strerror}", works=False)
        more = "at least " if len(found) == PAGE else ""
        return Answer(f"{self.prefix} answers, {more}{len(found):,} object{'' if len(found) == 1 else 's'}")

    def leaves(self, location: Location) -> bool:
        """Objects have no links."""
        del location
        return False

    def escapes(self, table: str) -> bool:
        """Objects have no links."""
        del table
        return False

    # --- reading

    def list_location(self, use: DatasetUse, location: Location) -> Listed:
        """A table that runs wrote, one of its periods, an object, or all objects below a folder."""
        del use
        place = self.prefix / (location.path or location.table or "")
        return Listed(self._list(place), str(place))

    def _list(self, place: Address) -> tuple[PinnedFile, ...]:
        pointer = self._pointer
        path = self.prefix.relative(place.key) if place != self.prefix else ""
        state, _ = pointer.read()
        if (of_table := self._list_table(state, path)) is not None:
            return of_table
        if place.key and (found := pointer.objects.find(place.key)) is not None:
            return (self._pin_object(found),)
        below = [each for each in pointer.objects.list(place.key) if not _is_hidden(place.relative(each.key))]
        tables = [name for name in state.tables if not path or name.startswith(f"{path}/")]
        files: dict[str, tuple[PinnedFile, ...]] = {each.key: (self._pin_object(each),) for each in below}
        files |= {pointer.key(name): self._list_table(state, name) or () for name in tables}
        if not files:
            raise FileNotFoundError(errno.ENOENT, "No such file or directory", str(place))
        return tuple(file for _, pinned in sorted(files.items()) for file in pinned)

    def _list_table(self, state: State, path: str) -> tuple[PinnedFile, ...] | None:
        """The files of a table, or of one of its periods; None if no run wrote it."""
        if (table := state.tables.get(path)) is not None and table.manifests:
            return self._pin_manifests(self._pointer.read_manifests(table).values())
        folder, _, name = path.rpartition("/")
        key, is_period, period = name.partition("=")
        table = state.tables.get(folder)
        if table is None or not is_period or not key.endswith(KEY) or period not in table.manifests:
            return None
        return self._pin_manifests([self._pointer.read_manifest(table.manifests[period])])

    def _pin_manifests(self, manifests: Iterable[Manifest]) -> tuple[PinnedFile, ...]:
        in_order = sorted(manifests, key=lambda each: each.period)
        return tuple(file for each in in_order for part in each.parts for file in self._pin_part(part))

    def _pin_part(self, part: DataPart) -> tuple[PinnedFile, ...]:
        folder = self.prefix / part.data
        return tuple(PinnedFile(str(folder / file.name), file.size, file.modified, file.etag) for file in part.files)

    def _pin_object(self, found: FoundObject) -> PinnedFile:
        uri = str(replace(self.prefix, key=found.key))
        return PinnedFile(uri, found.size, int(found.modified * 1e9), found.etag)

    def list_folder(self, folder: str) -> Listed:
        """The files that one output wrote."""
        part = self._pointer.require_part(self._version_of(folder))
        return Listed(self._pin_part(part), folder)

    def _version_of(self, data: str) -> str:
        """The version of a folder of data, below the datasource."""
        return self.prefix.relative(Address.parse(data).parent.key)

    def list_beside(self, missing: str) -> Sequence[str]:
        """What there is in the nearest folder that has something, published tables and their periods too."""
        place, pointer = Address.parse(missing), self._pointer
        tables = pointer.read()[0].tables
        published = [pointer.key(f"{name}/{KEY}={each}") for name, table in tables.items() for each in table.manifests]
        while place.key != self.prefix.key and place.key:
            wanted, place = place.name, place.parent
            below = [key for key in published if key.startswith(f"{place.key}/".lstrip("/"))]
            keys = [*(each.key for each in pointer.objects.list(place.key)), *below]
            if shown := most_alike({place.relative(key).partition("/")[0] for key in keys}, wanted):
                return shown
        return ()

    def pin(self, stored: StoredFiles) -> tuple[PinnedFile, ...]:
        """As they were written."""
        part = self._pointer.require_part(self._version_of(stored.data))
        return tuple(file for file in self._pin_part(part) if Address.parse(file.path).name in stored.files)

    def find_columns(self, files: Sequence[PinnedFile]) -> tuple[str, ...]:
        """What manifests say."""
        versions = {
            self.prefix.relative(Address.parse(each.path).parent.parent.key) for each in files if _is_written(each)
        }
        if not versions:
            return ()
        state, _ = self._pointer.read()
        stores = {version.rpartition("/")[0] for version in versions}
        parts = do_at_once(self._pointer.require_part, sorted(versions))
        for name, table in state.tables.items():
            if store_of(name) in stores:
                parts += [part for each in self._pointer.read_manifests(table).values() for part in each.parts]
        return tuple(sorted({name.casefold() for part in parts for name in part.columns}))

    def find_changes(self, files: Sequence[PinnedFile]) -> Iterable[str]:
        """Objects that are gone or have another content."""
        objects = self.objects
        found = do_at_once(lambda file: objects.find(Address.parse(file.path).key), files)
        for file, now in zip(files, found, strict=True):
            if now is None:
                yield f"`{file.path}` is gone"
            elif now.size != file.size:
                yield f"`{file.path}` had {file.size} bytes, now {now.size}"
            elif now.etag != file.etag:
                yield f"`{file.path}` was changed"

    def find_new(self, listed: str, files: Sequence[PinnedFile]) -> Iterable[str]:
        """Objects that were added."""
        known = {file.path for file in files}
        try:
            found = self._list(Address.parse(listed))
        except FileNotFoundError:
            return ()
        return [file.path for file in found if file.path not in known]

    def paths(self, files: Sequence[PinnedFile], scratch: Scratch) -> list[Path]:
        """Copies in the folder of the run; what a run wrote has the same folders around it as on a machine."""
        base = Path(scratch.folder) / f"{scratch.stem}-objects"
        return [_path_of(file, base, number) for number, file in enumerate(files)]

    def fetch(self, files: Sequence[PinnedFile], scratch: Scratch) -> None:
        """Download what is not there, several objects at once, each as it was pinned."""
        pairs = zip(files, self.paths(files, scratch), strict=True)
        self._download([(file, path) for file, path in pairs if not _is_fetched(file, path)], scratch.executors)

    def _download(self, wanted: Sequence[tuple[PinnedFile, Path]], executors: Executors | None = None) -> None:
        pointer = self._pointer
        versions = {path.parents[1]: _version(file) for file, path in wanted if _is_written(file)}

        def put_manifest(item: tuple[Path, Address]) -> None:
            folder, version = item
            folder.mkdir(parents=True, exist_ok=True)
            part = pointer.require_part(self.prefix.relative(version.key))
            (folder / MANIFEST).write_bytes(part.as_manifest())

        do_at_once(put_manifest, versions.items())
        copies = [Copy(Address.parse(file.path).key, path, file.size, file.etag or "") for file, path in wanted]
        download_all(pointer.objects, copies, executors)

    def open_files(self, stored: StoredFiles | StoredFolders) -> Iterator[Path]:
        """Copies, one after the other."""
        for folder in stored.folders:
            for file in self.list_folder(folder).files:
                with tempfile.TemporaryDirectory() as copies:
                    path = _path_of(file, Path(copies), 0)
                    self._download([(file, path)])
                    yield path

    # --- writing

    def target(self, output: OutputPlace, form: Format) -> Target:
        """A table of the datasource."""
        named = None
        if output.file is not None:
            named = NamedObject(self._pointer, output.file, store_of(output.table).rpartition("/")[0], output.sheet)
        return ObjectTarget(
            self.objects,
            self.prefix,
            self.datasource_id,
            output.table,
            form,
            output.period,
            output.run,
            output.seq,
            dict(output.columns),
            output.fence,
            output.attempt,
            named,
            output.executors,
        )

    def inspect(self, stored: StoredFiles) -> Inspected:
        """The hashes of the objects and of their manifest; what is beside them."""
        pointer, version = self._pointer, self._version_of(stored.data)
        folder = f"{version}/{DATA}"
        expected = {f"{folder}/{name}": sha256 for name, sha256 in zip(stored.files, stored.hashes or (), strict=False)}
        if stored.manifest is not None:
            expected[manifest_key(version, stored.manifest)] = stored.manifest
        found = do_at_once(lambda key: pointer.objects.hash(pointer.key(key)), expected)
        changed, gone, right = [], [], 0
        for (key, sha256), now in zip(expected.items(), found, strict=True):
            if now is None:
                gone.append(f"`{pointer.uri(key)}`")
            elif now == sha256:
                right += 1
            else:
                changed.append(f"`{pointer.uri(key)}` is not what the run wrote")
        store = version.rpartition("/")[0]
        listed = [self.prefix.relative(each.key) for each in pointer.objects.list(pointer.key(store))]
        known = {f"{folder}/{name}" for name in stored.files}
        more = [key for key in listed if key.startswith(f"{folder}/") and key not in known]
        changed += [f"`{pointer.uri(key)}` was put there by somebody else" for key in more]
        heads, broken = self._read_heads([key for key in listed if is_manifest(key.rpartition("/")[2])])
        return Inspected(tuple(heads), tuple(dict.fromkeys([*changed, *broken])), tuple(gone), right)

    def _read_heads(self, manifests: Sequence[str]) -> tuple[list[Noted], list[str]]:
        heads, broken = [], []
        for key, content in zip(manifests, do_at_once(self._read, manifests), strict=True):
            try:
                head = Manifest.parse(content).head if content is not None else None
            except (ValueError, KeyError, TypeError, AttributeError):
                broken.append(f"`{self._pointer.uri(key)}` cannot be read")
                continue
            heads += [head] if head is not None else []
        return heads, broken

    def _read(self, key: str) -> bytes | None:
        found = self._pointer.objects.read(self._pointer.key(key))
        return found[0] if found is not None else None

    def inspect_named(self, stored: StoredFiles) -> Inspected:
        """The hash of the object that people open."""
        name = stored.named
        if name is None:
            return Inspected()
        pointer, version = self._pointer, self._version_of(stored.data)
        file = self.prefix.relative(Address.parse(name).key)
        named = NamedObject(pointer, file, version.rpartition("/")[0])
        return compare_named(
            stored,
            name,
            mark=pointer.uri(f"{version}/{MARK}"),
            find_marked=lambda: named.find_hash(version),
            hash_named=lambda: pointer.objects.hash(named.key),
        )

    def keep(self, stored: StoredFiles) -> StoredFiles | None:
        """The objects stay where they are."""
        pointer, version = self._pointer, self._version_of(stored.data)
        keys = {self.prefix.relative(each.key) for each in pointer.objects.list(pointer.key(version))}
        if f"{version}/{OWN}" not in keys or not keys >= {f"{version}/{DATA}/{name}" for name in stored.files}:
            return None
        pointer.objects.put(pointer.key(f"{version}/{KEPT}"), b"")
        return replace(stored, folder=stored.data, named=None, named_sha256=None)


def _find_fault(secret: str, scheme: str) -> str | None:
    """Why a store has no use for a secret."""
    if scheme == HDFS:
        return "is of no use: HDFS knows the user, or a ticket of Kerberos"
    return "is not `ACCESS_KEY_ID:SECRET_ACCESS_KEY`" if scheme == "s3" and secret.count(":") not in (1, 2) else None


def _is_hidden(path: str) -> bool:
    return any(is_hidden(part) for part in path.split("/"))


def _is_written(file: PinnedFile) -> bool:
    """Whether a run wrote it."""
    return file.etag is not None and version_of(Path(file.path)) is not None


def _version(file: PinnedFile) -> Address:
    return Address.parse(file.path).parent.parent


def _path_of(file: PinnedFile, base: Path, number: int) -> Path:
    if file.etag is None:
        return Path(file.path)
    address = Address.parse(file.path)
    if _is_written(file):
        version = address.parent.parent
        tag = hashlib.sha256(str(version.parent).encode()).hexdigest()[:8]
        return base / tag / HIDDEN / version.parent.name / version.name / DATA / address.name
    return base / str(number) / address.name


def _is_fetched(file: PinnedFile, path: Path) -> bool:
    if file.etag is None:
        return True
    try:
        return path.stat().st_size == file.size
    except FileNotFoundError:
        return False

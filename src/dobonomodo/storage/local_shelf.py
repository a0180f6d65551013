"""Files in folders of this machine. Relative paths start at the workspace."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dobonomodo.storage.faults import loading_failed, writing_failed
from dobonomodo.storage.files import (
    PinnedFile,
    datasource_folders,
    find_changes,
    is_below,
    leads_out,
    list_beside,
    list_files,
    pin_files,
)
from dobonomodo.storage.folder import (
    FolderTarget,
    Format,
    StoredFiles,
    StoredFolders,
    inspect_files,
    inspect_named,
    keep_files,
)
from dobonomodo.storage.manifest import find_columns
from dobonomodo.storage.named import NamedFile
from dobonomodo.storage.pointer import find_folder
from dobonomodo.storage.shelf import Listed

if TYPE_CHECKING:
    from dobonomodo.plan.dataset import DatasetUse, Location
    from dobonomodo.storage.storage import Answer, Scratch
    from dobonomodo.storage.target import Inspected, OutputPlace, Target


@dataclass(frozen=True, slots=True)
class LocalShelf:
    """Files in folders of this machine."""

    root: Path
    prefix: Path | None = None
    """The folder of the datasource, whose tables are published together; None for locations that outputs give themselves."""
    within: Path | None = None
    """The folder that destinations must not leave, where that is not the prefix."""

    @property
    def datasource_id(self) -> None:
        """Files have addresses of their own."""

    def call(self) -> Answer | None:
        """There is no server."""
        return None

    def leaves(self, location: Location) -> bool:
        """Whether a symbolic link leads out of the datasource."""
        if self.prefix is None or location.path is None:
            return False
        path = self.prefix / location.path
        # Most paths are where they seem to be, which is quick to see.
        return leads_out(self.prefix, path) and not is_below(os.path.realpath(path), datasource_folders(self.prefix))

    def escapes(self, table: str) -> bool:
        """Whether a symbolic link leads out of the datasource, or out of the workspace."""
        folder = self.prefix or self.root
        return leads_out(folder, folder / table)

    # --- reading

    def list_location(self, use: DatasetUse, location: Location) -> Listed:
        """The files below the folder of the datasource."""
        prefix = self.prefix or self.root
        path = prefix / (location.path or location.table or "")
        files, folders = pin_files(path), datasource_folders(prefix)
        if outside := next((file.path for file in files if not is_below(file.path, folders)), None):
            detail = f"a symbolic link points outside datasource `{location.datasource_id}`, to `{outside}`"
            raise loading_failed(use, detail)
        return Listed(files, str(path))

    def list_folder(self, folder: str) -> Listed:
        """The files of a folder of the workspace."""
        path = self.root / folder
        return Listed(pin_files(path), str(path))

    def list_beside(self, missing: str) -> Sequence[str]:
        """The names in the nearest existing folder."""
        return list_beside(Path(missing))

    def pin(self, stored: StoredFiles) -> tuple[PinnedFile, ...]:
        """The files as they are now."""
        return tuple(PinnedFile.of(self.root / stored.data / file) for file in stored.files)

    def find_columns(self, files: Sequence[PinnedFile]) -> tuple[str, ...]:
        """What manifests beside the files say."""
        return find_columns(Path(file.path) for file in files)

    def find_changes(self, files: Sequence[PinnedFile]) -> Iterable[str]:
        """Files that are gone or were written to."""
        return find_changes(files)

    def find_new(self, listed: str, files: Sequence[PinnedFile]) -> Iterable[str]:
        """Files that were added to a folder."""
        known = {file.path for file in files}
        try:
            found = [str(path.resolve()) for path in list_files(Path(listed))]
        except OSError:
            return ()
        return [path for path in found if path not in known]

    def paths(self, files: Sequence[PinnedFile], scratch: Scratch) -> list[Path]:
        """The files themselves."""
        del scratch
        return [Path(file.path) for file in files]

    def fetch(self, files: Sequence[PinnedFile], scratch: Scratch) -> None:
        """They are there."""

    def open_files(self, stored: StoredFiles | StoredFolders) -> Iterator[Path]:
        """The files themselves."""
        for folder in stored.folders:
            yield from sorted((self.root / folder).iterdir())

    # --- writing

    def target(self, output: OutputPlace, form: Format) -> Target:
        """A folder of the datasource; a location that an output gives itself is published on its own."""
        folder = (self.prefix or self.root) / output.table
        prefix = self.prefix or folder.parent
        within = self.within or self.prefix or self.root
        # Links between files are relative, and would lead elsewhere from behind a link.
        path = find_folder(folder)
        if leads_out(within, path) or path == Path(os.path.realpath(within)):
            raise writing_failed(str(folder), f"it points outside its folder, to `{path}`")
        file = (self.prefix or self.root) / output.file if output.file is not None else None
        if file is not None and leads_out(within, file.parent):
            raise writing_failed(str(file), "it points outside its folder")
        return FolderTarget(
            path,
            Path(os.path.realpath(prefix)),
            Path(os.path.realpath(self.root)),
            form,
            output.period,
            output.run,
            output.seq,
            dict(output.columns),
            output.fence,
            output.attempt,
            NamedFile(Path(os.path.realpath(file.parent)) / file.name, output.sheet) if file is not None else None,
            output.apart,
        )

    def inspect(self, stored: StoredFiles) -> Inspected:
        """The hashes of the files and of their manifest."""
        return inspect_files(stored, root=self.root)

    def inspect_named(self, stored: StoredFiles) -> Inspected:
        """The hash of the file that people open."""
        return inspect_named(stored, root=self.root)

    def keep(self, stored: StoredFiles) -> StoredFiles | None:
        """The files stay where they are."""
        return keep_files(stored, root=self.root)

"""Objects with names of their own: what people open, beside what the product keeps of every output.

A mark beside the kept data says what was put there: so a publication that was killed is completed, and an object that somebody
else wrote or changed is never replaced.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dobonomodo.failpoint import reach
from dobonomodo.storage.faults import writing_failed
from dobonomodo.storage.kept import hash_file
from dobonomodo.storage.manifest import HIDDEN
from dobonomodo.storage.named import MARK
from dobonomodo.storage.object_pointer import ObjectPointer
from dobonomodo.storage.objects import Stamp

_NOT_OURS = "the file exists, and is not as a run wrote it; move it elsewhere, or choose another name"


@dataclass(frozen=True, slots=True)
class NamedObject:
    """One object, or one part of an object that holds several outputs."""

    pointer: ObjectPointer
    file: str
    """Below the datasource."""
    marks: str
    """Where the marks of earlier publications are, below the datasource."""
    sheet: str | None = None

    @property
    def key(self) -> str:
        """Its key in the bucket."""
        return self.pointer.key(self.file)

    @property
    def shown(self) -> str:
        """Its address."""
        return self.pointer.uri(self.file)

    def require_own(self) -> Stamp | None:
        """Refuse to replace an object that no run wrote, or that was changed since; gives what may be replaced."""
        if HIDDEN in self.file.split("/"):
            raise writing_failed(self.shown, "it is inside the folder of a table")
        found = self.pointer.objects.find(self.key)
        if found is None:
            return None
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(folder) / "file"
            self.pointer.objects.download(self.key, copy, size=found.size, etag=found.etag)
            sha256 = hash_file(copy)
        listed = self.pointer.objects.list(self.pointer.key(self.marks))
        marks = (self._read(each.key) for each in listed if each.key.endswith(f"/{MARK}"))
        if not any(mark is not None and mark["sha256"] == sha256 for mark in marks):
            raise writing_failed(self.shown, _NOT_OURS)
        read = self.pointer.objects.read(self.key)
        return read[1] if read is not None else None

    def is_placed(self, version: str) -> bool:
        """Whether the rows of a version are in the object."""
        mark = self._read(self.pointer.key(f"{version}/{MARK}"))
        return mark is not None and bool(mark["placed"])

    def find_hash(self, version: str) -> str | None:
        """The SHA-256 of the object that was made of the rows of a version; None if there was none."""
        mark = self._read(self.pointer.key(f"{version}/{MARK}"))
        return str(mark["sha256"]) if mark is not None else None

    def place(self, path: Path, versions: Sequence[str]) -> None:
        """Put a finished file where it belongs, in one act, and remember it with the versions whose rows it holds."""
        before = self.require_own()
        told = {"file": self.shown, "sha256": hash_file(path)}
        self._mark(versions, {**told, "placed": False})
        reach("publish.naming")
        if self.pointer.objects.put_if_match(self.key, path.read_bytes(), before) is None:
            raise writing_failed(self.shown, _NOT_OURS)
        self._mark(versions, {**told, "placed": True})

    def _mark(self, versions: Sequence[str], mark: dict[str, object]) -> None:
        for version in versions:
            self.pointer.objects.put(self.pointer.key(f"{version}/{MARK}"), json.dumps(mark).encode())

    def _read(self, key: str) -> dict[str, object] | None:
        found = self.pointer.objects.read(key)
        return json.loads(found[0]) if found is not None else None

"""Comparing definitions: two recorded versions, or a recorded version and the files."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from dobonomodo.model.difference import Difference, compare_documents
from dobonomodo.problems import Rejected
from dobonomodo.problems.store import VersionNotFound
from dobonomodo.workspace.arguments import read_text

if TYPE_CHECKING:
    from dobonomodo.model.plain import Document
    from dobonomodo.workspace.files import Files
    from dobonomodo.workspace.stores import Stores

_VERSION = re.compile(r"(?P<id>.+)@v(?P<version>[0-9]+)")


def names_definition(name: str, *, files: Files) -> bool:
    """Whether a name is that of a version of a project, or of a project of the files, and not of a run."""
    return _VERSION.fullmatch(name) is not None or name in files.definitions.projects


def compare_projects(one: str, other: str, *, files: Files, stores: Stores) -> Difference:
    """What differs between two versions of projects (``PROJECT@v3``); ``PROJECT`` alone is the project of the files."""
    documents = [_find_document(name, files, stores) for name in (one, other)]
    return compare_documents(*documents, before=one, after=other)


def _find_document(name: str, files: Files, stores: Stores) -> Document:
    read_text("name", name, accepted='a version of a project as text, such as "monthly-sales@v3"')
    match = _VERSION.fullmatch(name)
    if match is None:
        return files.find_project(name).document()
    store, number = stores.find_main(), int(match["version"])
    versions = store.list_versions("project", match["id"]) if store is not None else ()
    for version in versions:
        if version.version == number:
            return version.document
    known = tuple(version.version for version in versions)
    raise Rejected([VersionNotFound(kind="project", id=match["id"], version=number, known=known)])

"""The definition files of a workspace: finding the root, reading the files, and what they define. Knows no store and no Spark."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from dobonomodo.model import Definitions, Entity, Project, load_definitions
from dobonomodo.model.plain import Document
from dobonomodo.model.workspace import Workspace as Settings
from dobonomodo.problems import Problem, Rejected, Source, in_order
from dobonomodo.problems.definition import DuplicateWorkspace
from dobonomodo.problems.workspace import EnvironmentNotFound, NotDefined, UnreadableFile, WorkspaceNotFound
from dobonomodo.storage import load_datasource
from dobonomodo.storage.address import is_address
from dobonomodo.storage.transport import Transport, check_scratch
from dobonomodo.workspace.arguments import read_documents

FILE = "dobo.yaml"
FOLDERS = ("datasources", "resolvers", "calendars", "datasets", "projects", "scenarios")
SUFFIXES = frozenset({".yaml", ".yml", ".json"})
KINDS = ("workspace", "datasource", "resolver", "calendar", "dataset", "project")
MAX_FILE = 10_000_000
RUNS = ".dobo/runs"
"""Where runs keep what they need while they are running, unless the settings name another folder."""


@dataclass(frozen=True, slots=True, eq=False)
class Files:
    """What the files of a workspace define, without what could not be read, and the problems of reading them."""

    root: Path
    definitions: Definitions
    problems: tuple[Problem, ...]
    settings: Settings
    """The defaults, where the file that says otherwise has errors: then nothing is read or written by them."""

    @classmethod
    def load(
        cls, root: Path, sources: Sequence[Source], *, faults: Sequence[Problem] = (), environment: str | None = None
    ) -> Files:
        """The definitions in some texts, with the settings of an environment."""
        definitions, found = load_definitions(sources, load_datasource=load_datasource)
        problems = [*found, *_check_scratch(definitions.workspace)]
        loaded = definitions.workspace.in_environment(environment)
        if loaded.value is None:
            known = tuple(definitions.workspace.environments)
            raise Rejected([EnvironmentNotFound(name=environment or "", known=known)])
        return cls(root, definitions, in_order([*faults, *problems]), loaded.value)

    @property
    def runs(self) -> Path:
        """The folder of the folders of runs."""
        return self.root / (RUNS if self.is_scratch_remote else self.settings.scratch or RUNS)

    @property
    def are_runs_shared(self) -> bool:
        """Whether the workers of Spark see the folders of runs, and perhaps nothing else."""
        return self.settings.scratch is not None and not self.is_scratch_remote

    @property
    def is_scratch_remote(self) -> bool:
        """Whether this machine and the workers of Spark exchange files through an object store."""
        return is_address(self.settings.scratch or "")

    @property
    def transport(self) -> Transport | None:
        """The way to workers that share nothing but an object store with this machine."""
        if not self.is_scratch_remote:
            return None
        try:
            return Transport.of(self.settings.scratch or "")
        except ValueError as fault:
            raise Rejected(self.problems) from fault

    @property
    def has_settings(self) -> bool:
        """Whether the settings are those of the workspace: not the defaults in place of some that could not be read, and no others."""
        own = self.definitions
        if any(isinstance(problem, DuplicateWorkspace) for problem in self.problems):
            return False
        return not own.lacks_workspace and (own.has_workspace or not any(map(_is_error_of_file, self.problems)))

    def entities(self) -> Iterator[Entity]:
        """Everything that applying records."""
        own = self.definitions
        for group in (own.datasources, own.resolvers, own.calendars, own.datasets, own.projects):
            yield from group.values()

    def find_project(self, project_id: str) -> Project:
        """A project that could be read."""
        projects = self.definitions.projects
        if project_id not in projects:
            raise Rejected([NotDefined(kind="project", id=project_id, known=tuple(projects))])
        return projects[project_id]


def find_root(folder: Path) -> Path:
    """The workspace that contains a folder; None if the folder does not exist."""
    try:
        start = folder.resolve()
    except ValueError as fault:
        # A name that no file can have, as one with NUL.
        raise Rejected([WorkspaceNotFound(folder=str(folder), exists=False)]) from fault
    for candidate in (start, *start.parents) if start.exists() else ():
        if (candidate / FILE).is_file():
            return candidate
    raise Rejected([WorkspaceNotFound(folder=str(folder), exists=start.exists())])


def read_files(root: Path) -> tuple[list[Source], list[Problem]]:
    """The text of every definition file, and a problem for each that cannot be read."""
    paths = [root / FILE]
    for name in FOLDERS:
        paths += sorted(path for path in (root / name).rglob("*") if path.suffix in SUFFIXES and path.is_file())
    sources: list[Source] = []
    faults: list[Problem] = []
    for path in paths:
        name = path.relative_to(root).as_posix()
        try:
            if path.stat().st_size > MAX_FILE:
                faults.append(UnreadableFile(path=name, reason=f"it is larger than {MAX_FILE // 1_000_000} MB"))
                continue
            sources.append(Source(name, path.read_text(encoding="utf-8")))
        except UnicodeDecodeError as fault:
            faults.append(UnreadableFile(path=name, reason=f"byte {fault.start} is not UTF-8"))
        except OSError as fault:
            faults.append(UnreadableFile(path=name, reason=fault.strerror or str(fault)))
    return sources, faults


def write_documents(documents: Iterable[Document]) -> list[Source]:
    """Definitions made in a program, as the texts that a user could have written."""
    return [
        Source(f"document {number}", json.dumps(document, indent=2, ensure_ascii=False, default=str))
        for number, document in enumerate(read_documents(documents), start=1)
    ]


def _check_scratch(settings: Settings) -> Iterator[Problem]:
    """Addresses of scratch that cannot be followed, in every environment."""
    for part in (settings.places, *(each.places for each in settings.environments.values())):
        if is_address(part.text("scratch") or ""):
            yield from check_scratch(part.passage("scratch"))


def _is_error_of_file(problem: Problem) -> bool:
    if isinstance(problem, UnreadableFile):
        return problem.path == FILE
    return problem.severity == "error" and problem.span is not None and problem.span.source.name == FILE

"""Evidence: one package for an auditor, with all that a run depended on, what it wrote, who decided what, and a program that
checks it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from dobonomodo.plan.explain import describe_plan
from dobonomodo.runs.progress import Progress
from dobonomodo.runs.results import find_later_writer
from dobonomodo.runs.snapshot import restore_snapshot
from dobonomodo.storage import KeptInputs, load_stored
from dobonomodo.workspace import package

if TYPE_CHECKING:
    from dobonomodo.model.plain import Document
    from dobonomodo.runs import RunView
    from dobonomodo.storage import Storages
    from dobonomodo.store import Run, Store, Version

README = """\
Evidence of run {run}: project {project}, period {period}.

Check it with the program inside. It needs Python 3.9 or later, and nothing else:

    python {name}
    python {name} --workspace FOLDER     also hashes inputs and outputs where they are

or unpack it and run `python verify.py`. A package proves what it says only if its fingerprint is the one that was printed when it was made.

evidence.json    what the run read and wrote, who decided what, checks, counts, programs
snapshot.json    all that the result depends on, as the run recorded it
record.json      how the run went, as it is recorded
plan.json        what each operation does, and where every column comes from
cells/           rows of the outputs, each explained back to where it was stored
history.json     who did what, when and why: a chain of hashes
definitions/     the definitions exactly as they were written
verify.py        the program
manifest.json    the SHA-256 of every file
"""
_MAIN = b"""import sys

from verify import main

sys.exit(main([sys.path[0], *sys.argv[1:]]))
"""


@dataclass(frozen=True, slots=True)
class Evidence:
    """A package that was written."""

    path: Path
    fingerprint: str
    """To be kept by another person: it detects a package that was rewritten as a whole."""
    files: int

    def to_dict(self) -> dict[str, object]:
        """As plain data."""
        return {"path": str(self.path), "fingerprint": self.fingerprint, "files": self.files}


def write_evidence(
    view: RunView, run: Run, *, store: Store, storages: Storages, to: Path, more: Mapping[str, bytes] | None = None
) -> Evidence:
    """Write the package of a run. ``more`` are files of others: explained rows below `cells/`."""
    files = package.seal({**collect_evidence(view, run, store=store, storages=storages, name=to.name), **(more or {})})
    to.write_bytes(package.pack(files))
    return Evidence(to, json.loads(files[package.MANIFEST])["fingerprint"], len(files))


def collect_evidence(view: RunView, run: Run, *, store: Store, storages: Storages, name: str) -> dict[str, bytes]:
    """The files of a package, without their manifest."""
    definitions = list(_list_definitions(run, store))
    texts = {each["file"]: text for each, text in definitions if each["file"] is not None and text is not None}
    spec = restore_snapshot(run.snapshot)
    evidence = {
        "store": store.id,
        "run": view.to_dict(),
        "by": run.by,
        "clock": view.started_at,
        "programs": run.snapshot["versions"],
        "inputs": list(_list_inputs(run, storages.root)),
        "outputs": list(_list_outputs(run, storages, store)),
        "definitions": [each for each, _ in definitions],
        "override": view.override.to_dict() if view.override is not None else None,
        "sign_offs": [each.to_dict() for each in view.signed],
        "warnings": [problem.to_dict() for problem in view.warnings],
        "problems": [problem.to_dict() for problem in view.problems],
    }
    record = {
        "run_id": run.id,
        "project": run.project,
        "version": run.version,
        "period": run.period,
        "status": run.status,
        "by": run.by,
        "created_at": run.created_at,
        "updated_at": run.updated_at,
        "progress": run.progress,
    }
    readme = README.format(run=run.id, project=run.project, period=run.period, name=name)
    return {
        "README.txt": readme.encode(),
        "verify.py": Path(package.__file__).read_bytes(),
        "__main__.py": _MAIN,
        package.EVIDENCE: render_json(evidence),
        package.SNAPSHOT: render_json(run.snapshot),
        package.RECORD: render_json(record),
        package.HISTORY: render_json([entry.to_dict() for entry in store.list_history()]),
        "plan.json": render_json(describe_plan(spec.plan, spec.facts, as_of=spec.as_of)),
        **texts,
    }


def _list_definitions(run: Run, store: Store) -> Iterator[tuple[dict[str, Any], bytes | None]]:
    """What the run was defined by, with the text of each as it was written."""
    snapshot = run.snapshot
    project = snapshot["project"]
    used: list[tuple[str, int | None, Document]] = [("project", project["version"], project["document"])]
    used += [("dataset", each["version"], each["document"]) for each in snapshot["datasets"]]
    used += [("resolver", None, each) for each in snapshot["resolvers"]]
    used += [("datasource", None, each) for each in snapshot["datasources"]]
    used += [("calendar", None, each.document) for each in store.list_definitions("calendar")]
    for kind, number, document in used:
        name = str(document["id"])
        version = _find_version(store.list_versions(kind, name), number, document)
        file = f"definitions/{kind}-{quote(name, safe='')}"
        file += f"-v{version.version}.yaml" if version is not None else ".yaml"
        text = version.text if version is not None else None
        about = {
            "kind": kind,
            "id": name,
            "version": version.version if version is not None else None,
            "document": version.document if version is not None else document,
            "file": file if text is not None else None,
            "applied_by": version.created_by if version is not None else None,
            "applied_at": version.created_at if version is not None else None,
            "activated_by": version.activation.by if version is not None and version.activation is not None else None,
            "activated_at": version.activation.at if version is not None and version.activation is not None else None,
            "why_not_applied": "it is older" if version is not None else "it was a draft, and is in the snapshot alone",
        }
        yield about, text.encode() if text is not None else None


def _find_version(versions: Sequence[Version], number: int | None, document: Document) -> Version | None:
    """The recorded version of a definition that a run used; a draft may have used an unrecorded one."""
    if number is not None:
        return next((each for each in versions if each.version == number and _is_same(each.document, document)), None)
    return next((each for each in reversed(versions) if _is_same(each.document, document)), None)


def _is_same(recorded: Document, used: Document) -> bool:
    """Whether a run used a recorded document. Activation pins the version of the input dataset."""
    pin = "input_dataset_version"
    return {**recorded, pin: None} == {**used, pin: None}


def _list_inputs(run: Run, root: Path) -> Iterator[dict[str, Any]]:
    hashes, kept = Progress.load(run.progress).inputs or {}, KeptInputs.of(root)
    for key, pins in (run.snapshot["inputs"] or {}).items():
        for number, pin in enumerate(pins):
            known = hashes.get(key, ())
            found = known[number] if number < len(known) else ()
            files = [
                {
                    **file,
                    "sha256": sha256,
                    "kept": sha256 is not None and kept.has(sha256, name=Path(file["path"]).name),
                }
                for file, sha256 in zip(pin["files"], (*found, *[None] * len(pin["files"])), strict=False)
            ]
            yield {"reading": key, "name": pin["name"], "fingerprint": pin.get("fingerprint"), "files": files}


def _list_outputs(run: Run, storages: Storages, store: Store) -> Iterator[dict[str, Any]]:
    for output in run.progress.get("outputs", ()):
        location = load_stored(output["location"])
        later = find_later_writer(run, location, store.list_runs(period=run.period))
        yield {
            "seq": output["seq"],
            "table": output["table"],
            "destination": output["destination"],
            "rows": output["rows"],
            "digest": output["digest"],
            "columns": output["columns"],
            "manifest": output["location"].get("manifest"),
            "version": output["location"].get("version"),
            "replaced_by": later.id if later is not None else None,
            "files": [
                {"path": file.path, "sha256": file.sha256, "named": file.is_named}
                for file in storages.list_files(location)
            ],
        }


def render_json(document: object) -> bytes:
    """Readable JSON: sorted, decimals as text, times as the history has them."""
    return json.dumps(document, indent=1, sort_keys=True, ensure_ascii=False, default=_plain).encode() + b"\n"


def _plain(value: object) -> object:
    match value:
        case Decimal():
            return f"{value:f}"
        case datetime() | date():
            return value.isoformat().replace("+00:00", "Z")
        case _:
            return str(value)

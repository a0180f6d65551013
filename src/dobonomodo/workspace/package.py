"""Verify a package of evidence: python verify.py PACKAGE.zip [--workspace FOLDER] [--fingerprint HEX]

Needs Python 3.9 or later and nothing else. Without arguments it checks the folder that it is in, into which a package was unpacked.
With --workspace it also hashes the inputs and outputs of the run where they are. --fingerprint is the one that was printed when the
package was made: compare it with what somebody else kept, since whoever can rewrite all of a package can rewrite its hashes too.

Exit code 0 if everything is what it was, 1 if something is not.
"""

# This text goes into every package, as it is. The product imports it to make packages: it must need the standard library alone.

from __future__ import annotations

import hashlib
import io
import json
import os
import struct
import sys
import zipfile
import zlib
from decimal import Context, Decimal, InvalidOperation
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

Files = dict[str, bytes]
Document = dict[str, Any]
Line = tuple[str, bool, str]
"""What was checked, whether it is right, and a detail."""

MANIFEST = "manifest.json"
SNAPSHOT, RECORD, HISTORY, EVIDENCE = "snapshot.json", "record.json", "history.json", "evidence.json"
CELLS = "cells/"
FORMAT = 1
_SKIPPED = ("__pycache__",)
_EXACT = Context(prec=2000)
"""Arithmetic with room for every digit of any two amounts."""


def sha256(content: bytes) -> str:
    """The SHA-256 of bytes."""
    return hashlib.sha256(content).hexdigest()


def canonical(document: object) -> bytes:
    """The one text of a record: sorted, without spaces, ASCII alone."""
    return json.dumps(document, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


# --- packages


def pack(files: Files) -> bytes:
    """A ZIP file in which every byte follows from the content: sorted, not compressed, without times."""
    body, directory = bytearray(), bytearray()
    for name in sorted(files):
        content, raw = files[name], name.encode("utf-8")
        common = struct.pack(
            "<HHHHHIIIHH", 20, 0x800, 0, 0, 33, zlib.crc32(content), len(content), len(content), len(raw), 0
        )
        directory += struct.pack("<IH", 0x02014B50, 20) + common + struct.pack("<HHHII", 0, 0, 0, 0, len(body)) + raw
        body += struct.pack("<I", 0x04034B50) + common + raw + content
    end = struct.pack("<IHHHHIIH", 0x06054B50, 0, 0, len(files), len(files), len(directory), len(body), 0)
    return bytes(body + directory + end)


def unpack(content: bytes) -> Files:
    """The files of a package; raises ValueError if one byte of the ZIP file is not as ``pack`` writes it."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            files = {name: archive.read(name) for name in archive.namelist()}
    except Exception as fault:
        raise ValueError("this is not a package: " + str(fault)) from fault
    if pack(files) != content:
        raise ValueError("bytes of the ZIP file itself were changed")
    return files


def seal(files: Files) -> Files:
    """The files with their manifest, which has the hash of each."""
    listed = {name: sha256(content) for name, content in files.items()}
    manifest: Document = {"format": FORMAT, "files": listed}
    manifest["fingerprint"] = sha256(canonical(manifest))
    text = json.dumps(manifest, indent=1, sort_keys=True).encode() + b"\n"
    return {**files, MANIFEST: text}


def read_folder(folder: str) -> Files:
    """The files of a package that was unpacked."""
    files = {}
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name not in _SKIPPED]
        for name in names:
            path = os.path.join(place, name)
            with open(path, "rb") as file:
                files[os.path.relpath(path, folder).replace(os.sep, "/")] = file.read()
    return files


# --- checks


def check(files: Files, workspace: str | None = None, fingerprint: str | None = None) -> list[Line]:
    """All lines of the table."""
    lines = list(_check_files(files))
    if fingerprint is not None:
        found = json.loads(files.get(MANIFEST, b"{}")).get("fingerprint") if lines[0][1] else None
        lines.append(("fingerprint of the package", found == fingerprint, str(found)))
    if not all(right for _, right, _ in lines):
        return lines
    snapshot, record, history, evidence = (json.loads(files[name]) for name in (SNAPSHOT, RECORD, HISTORY, EVIDENCE))
    lines += _check_history(history, evidence["store"])
    lines += _check_run(history, snapshot, record)
    lines += _check_definitions(history, evidence["definitions"], files)
    lines += _check_cells(evidence, record, files)
    if workspace is not None:
        lines += _check_places(evidence, workspace)
    return lines


def _check_files(files: Files) -> Iterator[Line]:
    try:
        manifest = json.loads(files[MANIFEST])
        listed, said = manifest["files"], manifest.pop("fingerprint")
        is_whole = said == sha256(canonical(manifest)) and manifest["format"] == FORMAT
        is_whole = (
            is_whole and seal({name: files[name] for name in listed if name in files})[MANIFEST] == files[MANIFEST]
        )
    except (KeyError, ValueError, TypeError, AttributeError):
        yield MANIFEST, False, "it was changed, or is not there"
        return
    missing = any(name not in files for name in listed)
    yield MANIFEST, is_whole or missing, "fingerprint " + str(said) if is_whole else "it was changed"
    for name in sorted({*listed, *files} - {MANIFEST}):
        if name not in files:
            yield name, False, "it is not there"
        elif name not in listed:
            yield name, False, "it does not belong to the package"
        else:
            right = sha256(files[name]) == listed[name]
            yield name, right, "sha256 " + listed[name] if right else "it was changed"


def _check_history(history: list[Document], store: str) -> Iterator[Line]:
    previous, number = store, 0
    for entry in history:
        own = {key: value for key, value in entry.items() if key != "hash"}
        number += 1
        if entry["number"] != number or entry["previous"] != previous or entry["hash"] != sha256(canonical(own)):
            yield "history", False, "entry " + str(number) + " does not follow the one before it"
            return
        previous = entry["hash"]
    yield "history", True, str(number) + " entries, each with the hash of the one before"


def _check_run(history: list[Document], snapshot: Document, record: Document) -> Iterator[Line]:
    own = [entry for entry in history if (entry["kind"], entry["id"]) == ("run", record["run_id"])]
    started = [entry for entry in own if entry["event"] == "started"]
    if not started:
        yield "snapshot", True, "older than the history: its hash is in no entry"
    else:
        right = (started[0]["detail"] or {}).get("snapshot") == sha256(canonical(snapshot))
        yield (
            "snapshot",
            right,
            "as the history has it since the run started" if right else "not the one that the history has",
        )
    hashed = [entry for entry in own if "progress" in (entry["detail"] or {})]
    if not hashed:
        yield "record", True, "no entry of the history has its hash"
    else:
        right = hashed[-1]["detail"]["progress"] == sha256(canonical(record["progress"]))
        yield "record", right, "as the history has it" if right else "not the one that the history has"


def _check_definitions(history: list[Document], definitions: list[Document], files: Files) -> Iterator[Line]:
    for each in definitions:
        name = (
            "definition " + each["kind"] + " " + each["id"] + (" v" + str(each["version"]) if each["version"] else "")
        )
        said = [
            entry["detail"]
            for entry in history
            if entry["event"] in ("apply", "register")
            and (entry["kind"], entry["id"], entry["version"]) == (each["kind"], each["id"], each["version"])
        ]
        if not said:
            yield name, True, "not in the history: " + each["why_not_applied"]
            continue
        right = said[-1].get("document") == sha256(canonical(each["document"]))
        if each["file"] is not None and "text" in said[-1]:
            right = right and said[-1]["text"] == sha256(files[each["file"]])
        yield name, right, "as it was applied" if right else "not the one that the history has"


def _check_cells(evidence: Document, record: Document, files: Files) -> Iterator[Line]:
    for name in sorted(each for each in files if each.startswith(CELLS)):
        cell = json.loads(files[name])
        outputs = {each["table"]: each for each in evidence["outputs"]}
        if cell["run_id"] != record["run_id"] or cell["table"] not in outputs:
            yield name, False, "it is about another run"
        elif not cell["proved"]:
            yield name, True, "not explained: " + ", ".join(each["code"] for each in cell["problems"])
        else:
            fault = _find_fault(cell, outputs[cell["table"]], evidence["inputs"])
            yield name, fault is None, fault or "computed again when the package was made, and the same"


def _find_fault(cell: Document, output: Document, inputs: list[Document]) -> str | None:
    """What an explained row says that cannot be: columns that were not written, inputs that were not read, sums that are wrong."""
    written = {column for column, _ in output["columns"]}
    if not set(cell["row"]) <= written:
        return "it has columns that the run did not write"
    loaded, summary = cell["loaded"], cell["summary"]
    places = [each["name"] for each in inputs]
    if loaded is not None and not any(loaded["place"].startswith(place) for place in places):
        return "it was loaded from what the run did not read"
    if summary is None or summary["rows"] != len(summary["contributors"]):
        return None
    totals: dict[str, Document] = summary["totals"]
    for column, total in totals.items():
        parts = [each["amounts"].get(column) for each in summary["contributors"]]
        if total.get("is_sum", _seems_sum(total, parts)) and not _adds_up(total["value"], parts):
            return column + " is not the sum of its contributors"
    return None


def _seems_sum(total: Document, parts: list[object]) -> bool:
    """Whether to add up a total of a package of an earlier version, which does not state that it is a sum."""
    value = total["value"]
    return total["text"].startswith("SUM(") and None not in (value, *parts) and not isinstance(value, bool)


def _adds_up(total: object, parts: list[object]) -> bool:
    """Whether a total is exactly the sum of the amounts of its rows; NULL adds nothing."""
    try:
        numbers = [Decimal(str(part)) for part in parts if part is not None]
        if total is None:
            return not numbers
        found = Decimal(0)
        for number in numbers:
            found = _EXACT.add(found, number)
        return found == Decimal(str(total))
    except InvalidOperation:
        return False


def _check_places(evidence: Document, workspace: str) -> Iterator[Line]:
    for kind in ("outputs", "inputs"):
        for each in evidence[kind]:
            if kind == "outputs" and (not each["files"] or each.get("version") is not None):
                yield "output " + each["table"], True, _explain_limit(each)
            for file in each["files"]:
                later = ": run " + each["replaced_by"] + " replaced it" if each.get("replaced_by") else ""
                name = kind[:-1] + " " + os.path.basename(file["path"])
                if file["sha256"] is None:
                    yield name, True, "its hash was not recorded"
                    continue
                if "://" in file["path"]:
                    yield name, True, "not checked: " + file["path"] + " is read by `dobo audit verify` alone"
                    continue
                try:
                    with open(os.path.join(workspace, file["path"]), "rb") as opened:
                        found = _hash_opened(opened)
                except OSError:
                    kept = ", a copy is kept" if file.get("kept") else ""
                    yield name, kind == "inputs" or bool(later), "it is not there any more" + kept + later
                    continue
                right = found == file["sha256"]
                later = later if file.get("named") else ""
                detail = file["path"] + ("" if right else " has changed since" + later)
                yield name, right or kind == "inputs" or bool(later), detail


def _explain_limit(output: Document) -> str:
    """What cannot be checked of an output without the program that wrote it."""
    if not output["files"]:
        return "not checked: no files are recorded; `dobo verify` compares its rows"
    return (
        "version " + str(output["version"]) + " of a table; `dobo audit verify` checks its log, this program its files"
    )


def _hash_opened(file: IO[bytes]) -> str:
    digest = hashlib.sha256()
    for block in iter(lambda: file.read(1 << 20), b""):
        digest.update(block)
    return digest.hexdigest()


# --- the command


def main(arguments: list[str]) -> int:
    """Check a package and print a table; the exit code tells whether everything is right."""
    options: dict[str, str | None] = {"--workspace": None, "--fingerprint": None}
    places: list[str] = []
    rest = iter(arguments)
    for each in rest:
        if each in options:
            options[each] = next(rest, None)
        else:
            places.append(each)
    place = places[0] if places else os.path.dirname(os.path.abspath(__file__))
    try:
        if os.path.isdir(place):
            files = read_folder(place)
        else:
            with open(place, "rb") as file:
                files = unpack(file.read())
        lines = check(files, options["--workspace"], options["--fingerprint"])
    except (OSError, ValueError, KeyError, TypeError) as fault:
        lines = [(place, False, str(fault))]
    width = max(len(line[0]) for line in lines)
    for what, right, detail in lines:
        print(what.ljust(width) + "  " + ("ok   " if right else "WRONG") + "  " + detail)  # noqa: T201
    wrong = sum(not right for _, right, _ in lines)
    print(str(len(lines)) + " checked, " + (str(wrong) + " WRONG" if wrong else "all as it was"))  # noqa: T201
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

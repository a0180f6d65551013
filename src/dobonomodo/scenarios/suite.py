"""A suite of scenarios: found in files, chosen by name, run in one Spark session, reported."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from dobonomodo.model import Definitions, Document, load_documents
from dobonomodo.problems import Problem, Rejected, Source
from dobonomodo.problems.render import printable, printable_lines
from dobonomodo.problems.workspace import UnreadableFile
from dobonomodo.scenarios.run import Result, load_scenario, run_scenario
from dobonomodo.scenarios.scenario import Scenario

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

AT_ONCE = min(4, os.cpu_count() or 1)
"""Scenarios that run at the same time: most of one is work of a single thread, in Python and in the driver of Spark."""


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """A scenario in a file, not yet read in detail."""

    name: str
    file: str
    document: Document
    folder: Path


def find_scenarios(paths: Iterable[Path], *, root: Path) -> tuple[list[Found], list[Problem]]:
    """The scenarios in files and folders, and what is wrong with the files."""
    found: list[Found] = []
    problems: list[Problem] = []
    for path in paths:
        files = (
            [path]
            if path.is_file()
            else sorted(each for each in path.rglob("*") if each.suffix in (".yaml", ".yml", ".json"))
        )
        for file in files:
            name = (
                file.resolve().relative_to(root.resolve()).as_posix()
                if file.resolve().is_relative_to(root.resolve())
                else str(file)
            )
            try:
                source = Source(name, file.read_text(encoding="utf-8"))
            except UnicodeDecodeError as fault:
                problems.append(UnreadableFile(path=name, reason=f"byte {fault.start} is not UTF-8"))
                continue
            except OSError as fault:
                problems.append(UnreadableFile(path=name, reason=fault.strerror or str(fault)))
                continue
            documents, faults = load_documents(source)
            problems += faults
            for document in documents:
                title = document.places.text("scenario", "name")
                if document.places.at("scenario") is not None:
                    found.append(Found(title or file.stem, name, document, file.parent))
    return found, problems


def found_in(document: Document, *, root: Path) -> Found:
    """A scenario of a document that was read from the workspace at ``root``."""
    file = document.source.name
    return Found(document.places.text("scenario", "name") or Path(file).stem, file, document, (root / file).parent)


def choose(scenarios: Iterable[Found], expression: str | None) -> list[Found]:
    """The scenarios whose name or file fits words joined by `and`, `or` and `not`."""
    if not expression:
        return list(scenarios)
    ways = [part.split(" and ") for part in expression.lower().split(" or ")]

    def fits(found: Found) -> bool:
        text = f"{found.file} {found.name}".lower()
        return any(all(_holds(word.strip(), text) for word in way) for way in ways)

    return [found for found in scenarios if fits(found)]


def _holds(word: str, text: str) -> bool:
    return word.removeprefix("not ").strip() not in text if word.startswith("not ") else word in text


def run_suite(
    scenarios: Sequence[Found],
    spark: Callable[[], SparkSession],
    *,
    definitions: Definitions,
    stop_at_first: bool = False,
) -> Iterator[Result]:
    """Run scenarios, some at a time, and return their results in order; Spark is only started if one is sound."""
    loaded = [(found, _load(found)) for found in scenarios]
    if stop_at_first:
        unsound = (at for at, (_, each) in enumerate(loaded) if isinstance(each, Result))
        del loaded[next(unsound, len(loaded)) + 1 :]
    session = spark() if any(isinstance(each, Scenario) for _, each in loaded) else None

    def run(found: Found, scenario: Scenario | Result) -> Result:
        if isinstance(scenario, Result):
            return scenario
        if session is None:
            raise AssertionError(found.name)
        try:
            return run_scenario(scenario, session, definitions=definitions, folder=found.folder, file=found.file)
        except Rejected as rejected:
            return _refuse(found, rejected)

    with ThreadPoolExecutor(AT_ONCE) as pool:
        running = [pool.submit(run, *each) for each in loaded]
        try:
            for each in running:
                result = each.result()
                yield result
                if stop_at_first and not result.passed:
                    return
        finally:
            for each in running:
                each.cancel()


def _load(found: Found) -> Scenario | Result:
    """A scenario, or what is wrong with it."""
    places = found.document.places.at("scenario")
    if places is None:
        raise AssertionError(found.name)
    try:
        return load_scenario(places)
    except Rejected as rejected:
        return _refuse(found, rejected)


def _refuse(found: Found, rejected: Rejected) -> Result:
    lines = tuple(f"the scenario is invalid: {problem.code}: {problem.message()}" for problem in rejected.problems)
    return Result(found.name, found.file, lines, problems=tuple(rejected.problems))


def render_junit(results: Sequence[Result]) -> str:
    """The results as JUnit ElementTree."""
    failures = sum(not result.passed for result in results)
    seconds = sum(result.seconds for result in results)
    suite = ElementTree.Element(
        "testsuite", name="dobo", tests=str(len(results)), failures=str(failures), time=f"{seconds:.3f}"
    )
    for result in results:
        case = ElementTree.SubElement(
            suite,
            "testcase",
            classname=printable(result.file),
            name=printable(result.name),
            time=f"{result.seconds:.3f}",
        )
        if not result.passed:
            failure = ElementTree.SubElement(case, "failure", message=printable(result.differences[0]))
            failure.text = "\n".join(printable_lines(each) for each in result.differences)
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True)

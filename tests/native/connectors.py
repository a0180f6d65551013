"""The connectors of Spark for lake tables and S3, where `make jars` has fetched them, and a session that has them."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "build" / "native"
JARS = FOLDER / "jars"
SERVERS = FOLDER / "servers"
"""Not beside the connectors, all of which are in the class path of Spark."""
LISTS = {JARS: Path(__file__).with_name("connectors.txt"), SERVERS: Path(__file__).with_name("servers.txt")}
"""By folder, the list of what is in it."""
SPARK = "4.1"
"""The versions of Spark for which there are connectors of both formats."""

EXTENSIONS = (
    "io.delta.sql.DeltaSparkSessionExtension",
    "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
)


def listed_files() -> dict[Path, tuple[str, str]]:
    """By file, the Maven coordinates and the SHA-256."""
    lines = (
        (folder, line.split())
        for folder, listed in LISTS.items()
        for line in listed.read_text().splitlines()
        if not line.startswith("#")
    )
    return {folder / jar_name(coordinate): (coordinate, sha256) for folder, (coordinate, sha256) in lines}


def find_server(module: str) -> Path:
    """The file of a server."""
    (found,) = (path for path, (coordinate, _) in listed_files().items() if coordinate.split(":")[1] == module)
    return found


def start_java(arguments: Sequence[str | Path], *, folder: Path, **environment: str) -> subprocess.Popen[bytes]:
    """A server in a process of its own; what it says is in ``java.log``."""
    from dobonomodo.engine import find_java

    java = find_java()
    assert java is not None
    with (folder / "java.log").open("w") as said:
        return subprocess.Popen(
            [java.home / "bin/java", "-Xmx512m", "-XX:TieredStopAtLevel=1", *arguments],
            cwd=folder,
            env={**os.environ, **environment},
            stdout=said,
            stderr=said,
        )


def free_port() -> int:
    """A port of loopback that nobody listens to."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


def why_not_here() -> str | None:
    """Why tests of the connectors cannot run in this process; None if they can."""
    if not all(path.exists() for path in listed_files()):
        return "the connectors of Spark are not here: `make jars` fetches them from Maven Central"
    found = metadata.version("pyspark")
    return None if found.startswith(f"{SPARK}.") else f"there are no connectors for Spark {found}: use `make native`"


def jar_name(coordinate: str) -> str:
    """The file of a connector."""
    _, module, version = coordinate.split(":")
    return f"{module}-{version}.jar"


ICEBERG_CATALOG = "ice"
"""The catalog of Iceberg tables that the session of the tests knows."""


def connector_settings(folder: Path) -> dict[str, str]:
    """Settings of a session with all connectors; its catalogs are in a folder."""
    return {
        "spark.driver.extraClassPath": f"{JARS}/*",
        "spark.sql.extensions": ",".join(EXTENSIONS),
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        **iceberg_catalog(ICEBERG_CATALOG, folder / "ice.db", folder / "ice"),
        # Delta works on 50 partitions by default, however small a table is.
        "spark.databricks.delta.snapshotPartitions": "1",
    }


def iceberg_catalog(name: str, database: Path, warehouse: Path) -> dict[str, str]:
    """Settings of a catalog of Iceberg tables in an SQLite database."""
    own = f"spark.sql.catalog.{name}"
    return {
        own: "org.apache.iceberg.spark.SparkCatalog",
        f"{own}.catalog-impl": "org.apache.iceberg.jdbc.JdbcCatalog",
        f"{own}.uri": f"jdbc:sqlite:{database}?busy_timeout=60000",
        f"{own}.jdbc.schema-version": "V1",
        f"{own}.warehouse": str(warehouse),
    }

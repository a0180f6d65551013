"""The connectors of Spark for lake tables and S3, where `make jars` has fetched them, and a session that has them."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "build" / "native"
JARS = FOLDER / "jars"
LISTED = Path(__file__).with_name("connectors.txt")
SPARK = "4.1"
"""The versions of Spark for which there are connectors of both formats."""

EXTENSIONS = (
    "io.delta.sql.DeltaSparkSessionExtension",
    "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
)


def listed_connectors() -> dict[str, str]:
    """Maven coordinates with the SHA-256 of the files."""
    lines = (line.split() for line in LISTED.read_text().splitlines() if not line.startswith("#"))
    return dict(lines)


def why_not_here() -> str | None:
    """Why tests of the connectors cannot run in this process; None if they can."""
    if not all((JARS / jar_name(each)).exists() for each in listed_connectors()):
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

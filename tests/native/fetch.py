"""`make jars`: fetches the connectors by Spark's own client of Maven repositories, and refuses what is not as it was."""

from __future__ import annotations

import hashlib
import shutil
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from tests.native.connectors import FOLDER, JARS, jar_name, listed_connectors


def main() -> int:
    missing = {each: sha256 for each, sha256 in listed_connectors().items() if not (JARS / jar_name(each)).exists()}
    if not missing:
        return 0
    ivy = FOLDER / "ivy"
    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.jars.ivySettings", str(Path(__file__).with_name("ivysettings.xml")))
    session = builder.config("spark.jars.ivy", str(ivy)).getOrCreate()
    JARS.mkdir(parents=True, exist_ok=True)
    for coordinate, sha256 in missing.items():
        session.sql(f"ADD JAR 'ivy://{coordinate}?transitive=false'")
        (found,) = (ivy / "jars").glob(f"*_{jar_name(coordinate)}")
        if hashlib.sha256(found.read_bytes()).hexdigest() != sha256:
            print(f"{coordinate} is not the file that tests/native/connectors.txt names", file=sys.stderr)  # noqa: T201
            return 1
        shutil.copyfile(found, JARS / f".{jar_name(coordinate)}")
        (JARS / f".{jar_name(coordinate)}").replace(JARS / jar_name(coordinate))
    session.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())

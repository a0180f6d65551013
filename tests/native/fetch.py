"""`make jars`: fetches the connectors by Spark's own client of Maven repositories, and refuses what is not as it was."""

from __future__ import annotations

import hashlib
import shutil
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from tests.native.connectors import FOLDER, listed_files


def main() -> int:
    missing = {path: listed for path, listed in listed_files().items() if not path.exists()}
    if not missing:
        return 0
    ivy = FOLDER / "ivy"
    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.jars.ivySettings", str(Path(__file__).with_name("ivysettings.xml")))
    session = builder.config("spark.jars.ivy", str(ivy)).getOrCreate()
    for path, (coordinate, sha256) in missing.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        session.sql(f"ADD JAR 'ivy://{coordinate}?transitive=false'")
        (found,) = (ivy / "jars").glob(f"*_{path.name}")
        if hashlib.sha256(found.read_bytes()).hexdigest() != sha256:
            print(f"{coordinate} is not the file that tests/native names", file=sys.stderr)  # noqa: T201
            return 1
        shutil.copyfile(found, path.with_name(f".{path.name}"))
        path.with_name(f".{path.name}").replace(path)
    session.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())

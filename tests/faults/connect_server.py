"""A Spark Connect server in a process of its own: prints its port and the id of its Java process, and ends with its stdin."""

from __future__ import annotations

import sys
from typing import Any

from dobonomodo.engine import open_session


def main() -> None:
    session = open_session(
        master="local[2]",
        conf={
            "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
            "spark.connect.grpc.binding.address": "127.0.0.1",
            "spark.connect.grpc.binding.port": "0",
        },
    )
    context = session.sparkContext
    java: Any = context._gateway
    service = getattr(getattr(context._jvm, "org.apache.spark.sql.connect.service.SparkConnectService$"), "MODULE$")
    sys.stdout.write(f"{service.localPort()} {java.proc.pid}\n")
    sys.stdout.flush()
    sys.stdin.read()


if __name__ == "__main__":
    main()

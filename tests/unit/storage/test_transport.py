from __future__ import annotations

import pytest

from dobonomodo.problems import Passage
from dobonomodo.storage.transport import Transport, check_scratch, modules_of


@pytest.mark.parametrize(
    ("address", "spelled"),
    [
        ("s3://bucket/dobo", "s3a://bucket/dobo/run/x"),
        ("s3a://bucket/dobo/", "s3a://bucket/dobo/run/x"),
        ("gs://bucket/dobo", "gs://bucket/dobo/run/x"),
        ("abfss://box@acme.dfs.core.windows.net/dobo", "abfss://box@acme.dfs.core.windows.net/dobo/run/x"),
    ],
)
def test_spark_gets_the_spelling_that_it_knows(address: str, spelled: str) -> None:
    assert Transport.of(address).below("run").address("x") == spelled


@pytest.mark.parametrize(
    "address",
    [
        "s3://bucket/dobo",
        "s3a://bucket/dobo/a=1_2.3+4-5",
        "gs://bucket/dobo",
        "abfss://box@acme.dfs.core.windows.net/dobo",
    ],
)
def test_addresses_that_can_be_followed(address: str) -> None:
    assert list(check_scratch(Passage.alone(address))) == []


@pytest.mark.parametrize(
    "address",
    [
        "ftp://name/dobo",
        "ftp://host/dobo",
        "file:///mnt/dobo",
        "s3:/bucket/dobo",
        "s3://bucket",
        "s3://bucket/",
        "s3://bucket/a/../b",
        "s3://bucket/a b",
        "s3://bucket/{a}",
        "s3://bucket/größe",
        "az://box/dobo",
    ],
)
def test_addresses_that_cannot(address: str) -> None:
    problems = list(check_scratch(Passage.alone(address)))
    assert [each.code for each in problems] == ["INVALID_VALUE"]


def test_a_driver_needs_the_client_of_its_store() -> None:
    assert modules_of("s3://bucket/dobo") == ("obstore", "pyarrow")
    assert modules_of("hdfs://node:8020/dobo") == ("hdfs_native", "pyarrow")

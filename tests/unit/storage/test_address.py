from __future__ import annotations

import pytest

from dobonomodo.problems.definition import InvalidValue
from dobonomodo.storage.address import Address, is_address
from tests.unit.model.loading import load


@pytest.mark.parametrize(
    ("text", "address", "shown"),
    [
        ("s3://bucket/a/b", Address("s3", "bucket", "a/b"), "s3://bucket/a/b"),
        ("s3a://bucket/a/b/", Address("s3", "bucket", "a/b"), "s3://bucket/a/b"),
        ("S3://bucket", Address("s3", "bucket"), "s3://bucket"),
        ("gs://my.bucket//a", Address("gs", "my.bucket", "a"), "gs://my.bucket/a"),
        ("az://box/x y", Address("az", "box", "x y"), "az://box/x y"),
        ("hdfs://node:8020/a/b", Address("hdfs", "node:8020", "a/b"), "hdfs://node:8020/a/b"),
        ("HDFS://service/", Address("hdfs", "service"), "hdfs://service"),
        (
            "abfss://box@acc.dfs.core.windows.net/x",
            Address("az", "box", "x", "acc"),
            "abfss://box@acc.dfs.core.windows.net/x",
        ),
    ],
)
def test_an_address_is_spelled_in_one_way(text: str, address: Address, shown: str) -> None:
    assert Address.parse(text) == address
    assert str(address) == shown
    assert Address.parse(shown) == address


@pytest.mark.parametrize(
    "text",
    [
        "hdfs:///y",
        "hdfs://ann@node/x",
        "hdfs://node:port/x",
        "s3://bucket:80/x",
        "ftp://a",
        "s3:/a",
        "s3://",
        "s3:///x",
        "s3://a/../b",
        "s3://user:pw@b/x",
        "s3://b@a/x",
        "data",
        "s3://a/\n",
    ],
)
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(ValueError, match="an address"):
        Address.parse(text)


def test_a_path_of_the_file_system_is_no_address() -> None:
    assert [is_address(text) for text in ("data", "/data", "C:/data", "s3a://x", "hdfs://x", "a:b")] == [
        False, False, False, True, True, False,
    ]  # fmt: skip


def test_what_is_below_an_address_stays_there() -> None:
    base = Address.parse("s3://bucket/a/b")
    assert str(base / "c/./d") == "s3://bucket/a/b/c/d"
    assert base / "." == base
    assert ((base / "c").parent, (base / "c").name) == (base, "c")
    assert base.relative("a/b/c/d") == "c/d"
    for path in ("..", "../bb", "c/../../x"):
        with pytest.raises(ValueError, match="leads out"):
            base / path
    with pytest.raises(ValueError, match="leads out"):
        Address.parse("s3://bucket") / "../x"


def test_an_address_of_a_whole_bucket() -> None:
    bucket = Address.parse("s3://bucket")
    assert (bucket.name, bucket.parent, bucket.relative("a/b")) == ("", bucket, "a/b")
    assert (bucket / "a").parent == bucket
    assert str(bucket / "/a/") == "s3://bucket/a"
    assert bucket / "" == bucket
    assert Address.parse("s3://bucket/a").relative("ab/c") == "ab/c"


@pytest.mark.parametrize(
    ("kind", "option", "place", "expected", "advised"),
    [
        ("parquet", "path_prefix", "ftp://host/a", "an object store that is supported", "`hdfs://`"),
        ("parquet", "path_prefix", "s3://", "`s3://bucket/folder`", "`hdfs://`"),
        ("delta", "path_prefix", "hdfs://node/a", "supported here", "s3://"),
    ],
)
def test_an_address_that_cannot_be_followed(kind: str, option: str, place: str, expected: str, advised: str) -> None:
    text = f"datasource: {{id: s, type: {kind}, options: {{{option}: '{place}'}}}}"
    (problem,) = load(text)[1]
    assert isinstance(problem, InvalidValue)
    assert (problem.key, problem.found, expected in problem.expected) == (option, f"`{place}`", True)
    assert advised in (problem.advice or "")
    assert problem.span is not None
    assert problem.span.source.text[problem.span.start : problem.span.end].strip("'") == place

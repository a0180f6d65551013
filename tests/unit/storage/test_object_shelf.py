from __future__ import annotations

from pathlib import Path

import pytest

from dobonomodo.plan.dataset import Location
from dobonomodo.problems import Rejected
from dobonomodo.problems.run import CredentialNotFound
from dobonomodo.storage.object_shelf import ObjectShelf
from tests.world import source_of


def shelf(prefix: str, **more: str) -> ObjectShelf:
    return ObjectShelf.of(source_of("parquet", path_prefix=prefix, **more), Path("/nowhere"))


def test_a_datasource_says_how_its_store_is_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEYS", "key:secret")
    own = shelf("s3://bucket/x", endpoint="http://own", region="there", credential_ref="env://KEYS").objects
    assert (own.access.endpoint, own.access.region, own.access.secret) == ("http://own", "there", "key:secret")
    assert own.uri("a/b") == "s3://bucket/a/b"
    assert shelf("s3://bucket/x").objects.access.secret is None


@pytest.mark.parametrize(
    ("prefix", "secret", "is_refused"),
    [
        ("s3://bucket/x", "key:secret:token", False),
        ("s3://bucket/x", "key:secret:token:more", True),
        ("s3://bucket/x", "key", True),
        ("az://box/x", "a2V5", False),
        ("gs://bucket/x", "{}", False),
        ("hdfs://node:8020/x", "key:secret", True),
    ],
)
def test_a_secret_that_a_store_has_no_use_for(
    monkeypatch: pytest.MonkeyPatch, prefix: str, secret: str, is_refused: bool
) -> None:
    monkeypatch.setenv("KEYS", secret)
    own = shelf(prefix, credential_ref="env://KEYS")
    if not is_refused:
        assert own.objects.access.secret == secret
        return
    with pytest.raises(Rejected) as refused:
        _ = own.objects
    (problem,) = refused.value.problems
    assert isinstance(problem, CredentialNotFound)
    assert (problem.owner, problem.reference) == ("datasource `files`", "env://KEYS")
    assert secret not in problem.message()


def test_no_object_leads_out_of_its_bucket() -> None:
    own = shelf("s3://bucket/x")
    assert own.leaves(Location("files", "path", path="a/b")) is False
    assert own.escapes("a/b") is False

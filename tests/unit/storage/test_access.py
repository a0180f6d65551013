from __future__ import annotations

import os
from pathlib import Path

import pytest

from dobonomodo.storage.access import Access, carry
from dobonomodo.storage.address import Address
from dobonomodo.storage.object_store import StoreObjects
from tests.object_server import KEY, SECRET, ObjectServer


def test_a_profile_has_keys_and_an_address(
    object_server: ObjectServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    bucket = Address.parse(object_server.fresh_bucket())
    (tmp_path / "credentials").write_text(f"[other]\naws_access_key_id = {KEY}\naws_secret_access_key = {SECRET}\n")
    (tmp_path / "config").write_text(
        f"[profile other]\nregion = eu-central-1\nendpoint_url = {object_server.endpoint}\n"
    )
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_ENDPOINT_URL", "AWS_REGION"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_PROFILE", "other")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    StoreObjects.of(bucket, Access()).put("x", b"by a profile")
    carried = StoreObjects.of(bucket, Access()).for_tasks()
    for name in ("AWS_PROFILE", "AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"):
        monkeypatch.delenv(name)
    assert carried.read("x") is not None
    assert SECRET not in repr(carried)
    named = Access(endpoint=object_server.endpoint, region="eu-central-1", secret=f"{KEY}:{SECRET}")
    assert StoreObjects.of(bucket, named).read("x") is not None


def test_another_machine_gets_the_keys_that_we_have(
    object_server: ObjectServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket = Address.parse(object_server.fresh_bucket())
    own = StoreObjects.of(bucket, Access())
    own.put("x", b"")
    carried = own.for_tasks()
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_ENDPOINT_URL", "AWS_REGION"):
        monkeypatch.delenv(name)
    assert carried.find("x") is not None
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "somebody")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "else")
    named = Access(endpoint=object_server.endpoint, secret=f"{KEY}:{SECRET}")
    assert StoreObjects.of(bucket, named).for_tasks().access.secret == f"{KEY}:{SECRET}"


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"AWS_REGION": "a"}, "a"),
        ({"AWS_DEFAULT_REGION": "b"}, "b"),
        ({"AWS_REGION": "a", "AWS_DEFAULT_REGION": "b"}, "a"),
    ],
    ids=str,
)
def test_the_region_of_the_environment_is_carried(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, variables: dict[str, str], expected: str
) -> None:
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    for name in ("AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert carry(Access(), "s3").region == expected
    assert carry(Access(region="own"), "s3").region == "own"
    assert carry(Access(), "gs").region is None

"""Where the keys of an object store come from, and what the store is told."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from obstore.exceptions import GenericError
from obstore.store import AzureStore, GCSStore, S3Store
from pyarrow.fs import S3FileSystem

from dobonomodo.storage.access import PATIENCE, Access, S3Access, carry, connect, connect_arrow, find_s3
from dobonomodo.storage.address import Address

Set = Callable[..., None]
"""Sets variables."""


@pytest.fixture
def variables(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Set:
    """An environment that knows nothing of stores, but of two files for profiles."""
    for name in [name for name in os.environ if name.startswith(("AWS_", "AZURE_", "GOOGLE_", "DOBO_"))]:
        monkeypatch.delenv(name)

    def set_all(**values: str) -> None:
        for name, value in values.items():
            monkeypatch.setenv(name, value)

    set_all(AWS_CONFIG_FILE=str(tmp_path / "config"), AWS_SHARED_CREDENTIALS_FILE=str(tmp_path / "credentials"))
    return set_all


@pytest.fixture
def profiles(tmp_path: Path) -> None:
    """One that the tools take, one with a token, and one that says how to get keys."""
    (tmp_path / "config").write_text(
        "[default]\nregion = here\n[profile other]\nregion = there\nendpoint_url = http://other\n"
        "[profile role]\nrole_arn = x%y\n"
    )
    (tmp_path / "credentials").write_text(
        "[default]\naws_access_key_id = D\naws_secret_access_key = S\n"
        "[other]\naws_access_key_id = O\naws_secret_access_key = %T\naws_session_token = U\n"
    )


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"AWS_REGION": "a"}, "a"),
        ({"AWS_DEFAULT_REGION": "b"}, "b"),
        ({"AWS_REGION": "a", "AWS_DEFAULT_REGION": "b"}, "a"),
    ],
    ids=str,
)
def test_the_region_of_the_environment_is_carried(variables: Set, given: dict[str, str], expected: str) -> None:
    variables(**given)
    assert carry(Access(), "s3").region == expected
    assert carry(Access(region="own"), "s3").region == "own"
    assert carry(Access(), "gs").region is None


@pytest.mark.usefixtures("profiles")
def test_another_machine_gets_the_keys_that_are_used_here(variables: Set) -> None:
    own = Access("http://own", "own", "X:Y")
    assert carry(own, "s3") == own
    assert carry(own, "gs") is own
    assert carry(Access(), "s3") == Access(None, "here", "D:S")
    variables(AWS_PROFILE="other")
    assert carry(Access(), "s3") == Access("http://other", "there", "O:%T:U")
    variables(AWS_PROFILE="role")
    assert carry(Access(), "s3") == Access()
    variables(AWS_ACCESS_KEY_ID="E", AWS_SECRET_ACCESS_KEY="F")
    assert carry(Access(), "s3").secret is None, "a profile that is asked for comes first"
    variables(AWS_PROFILE="default")
    assert carry(Access(), "s3").secret == "D:S"


def test_another_machine_gets_the_keys_of_the_environment(variables: Set) -> None:
    variables(AWS_ACCESS_KEY_ID="E")
    assert carry(Access(), "s3") == Access(), "half of them is of no use"
    variables(AWS_SECRET_ACCESS_KEY="F")
    assert carry(Access(), "s3") == Access(None, None, "E:F")
    variables(AWS_SESSION_TOKEN="G", AWS_ENDPOINT_URL="http://all")
    assert carry(Access(), "s3") == Access("http://all", None, "E:F:G")
    variables(AWS_ENDPOINT_URL_S3="http://s3")
    assert carry(Access(), "s3").endpoint == "http://s3"


@pytest.mark.usefixtures("profiles")
def test_tools_get_keys_where_they_do_not_find_them(variables: Set) -> None:
    assert find_s3(Access("http://own", "own", "X:Y:Z")) == S3Access("http://own", "own", ["X", "Y", "Z"], False)
    assert find_s3(Access()) == S3Access(None, "here", ["D", "S"], False)
    variables(AWS_PROFILE="role")
    assert find_s3(Access()) == S3Access(None, "us-east-1", [], True)
    variables(AWS_PROFILE="nobody")
    assert find_s3(Access()) == S3Access(None, "us-east-1", [], False)
    variables(AWS_PROFILE="other", AWS_ACCESS_KEY_ID="E", AWS_SECRET_ACCESS_KEY="F")
    assert find_s3(Access()) == S3Access("http://other", "there", ["O", "%T", "U"], False)


@pytest.mark.usefixtures("profiles")
def test_tools_find_the_keys_of_the_environment_by_themselves(variables: Set) -> None:
    variables(AWS_ACCESS_KEY_ID="E", AWS_SECRET_ACCESS_KEY="F")
    assert find_s3(Access()) == S3Access(None, "here", (), False)


@pytest.mark.usefixtures("variables", "profiles")
@pytest.mark.parametrize("content", [b"no section", b"\xff\xfe", b"[default\n", None], ids=str)
def test_a_file_of_profiles_that_cannot_be_read_has_none(tmp_path: Path, content: bytes | None) -> None:
    (tmp_path / "config").unlink()
    if content is not None:
        (tmp_path / "config").write_bytes(content)
    assert find_s3(Access()) == S3Access(None, "us-east-1", ["D", "S"], False)


def test_s3_is_told_what_is_known(variables: Set) -> None:
    address = "s3://bucket/folder"
    store = _open(address, Access("http://own", "there", "X:Y:Z"))
    assert isinstance(store, S3Store)
    assert store.config == {
        "bucket": "bucket",
        "endpoint": "http://own",
        "region": "there",
        "access_key_id": "X",
        "secret_access_key": "Y",
        "session_token": "Z",
    }
    without_token = _open(address, Access("https://own", None, "X:Y"))
    assert "session_token" not in without_token.config
    assert [_allows_http(each) for each in (store, without_token)] == [True, False]
    variables(AWS_ACCESS_KEY_ID="E", AWS_SECRET_ACCESS_KEY="F")
    by_environment = _open(address, Access())
    assert by_environment.config == {"bucket": "bucket", "region": "us-east-1"}
    assert not _allows_http(by_environment)


@pytest.mark.usefixtures("variables")
def test_arrow_reaches_the_same_store() -> None:
    for secret in ("X:Y", "X:Y:Z", None):
        found = connect_arrow(Access("http://own", "there", secret))
        assert (type(found), found.region) == (S3FileSystem, "there")


@pytest.mark.usefixtures("variables")
def test_google_is_told_what_is_known() -> None:
    address = "gs://bucket/folder"
    store, named = _open(address, Access()), _open(address, Access("http://own"))
    assert isinstance(store, GCSStore)
    assert store.config == {"bucket": "bucket"}
    assert named.config == {"bucket": "bucket", "base_url": "http://own"}
    assert [_allows_http(each) for each in (store, named)] == [False, True]
    with pytest.raises(GenericError, match="service account"):
        _open(address, Access(secret="no key"))


def test_azure_is_told_what_is_known(variables: Set) -> None:
    own = _open("abfss://box@acme.dfs.core.windows.net/x", Access("http://own", None, "a2V5"))
    assert isinstance(own, AzureStore)
    config = {"container_name": "box", "account_name": "acme", "account_key": "a2V5", "endpoint": "http://own"}
    assert own.config == config
    variables(AZURE_STORAGE_ACCOUNT_NAME="acme")
    by_environment = _open("az://box", Access())
    assert by_environment.config == {"container_name": "box"}
    assert [_allows_http(each) for each in (own, by_environment)] == [True, False]


def test_a_request_is_tried_again_for_a_minute_or_as_long_as_one_says(variables: Set) -> None:
    address = "s3://bucket"
    assert _open(address, Access()).retry_config["retry_timeout"] == timedelta(minutes=1)
    variables(**{PATIENCE: "2.5"})
    assert _open(address, Access()).retry_config["retry_timeout"] == timedelta(seconds=2.5)


def _open(address: str, access: Access) -> Any:
    return connect(Address.parse(address), access)


def _allows_http(store: Any) -> bool:
    return bool(store.client_options["allow_http"] == "true")

"""Credentials for an object store: a secret that a datasource refers to, otherwise the default credential chain of the store's tools.

For S3 that is the environment (``AWS_*``), a profile, then the role of the machine. Secrets are passed on and never shown.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from configparser import ConfigParser, Error
from dataclasses import dataclass, field
from datetime import timedelta
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from dobonomodo.storage.address import Address

if TYPE_CHECKING:
    from obstore.store import (
        AzureConfig,
        ClientConfig,
        GCSConfig,
        ObjectStore,
        RetryConfig,
        S3Config,
        S3CredentialProvider,
    )
    from pyarrow.fs import S3FileSystem

PATIENCE = "DOBO_OBJECT_STORE_PATIENCE"
"""A variable: for how many seconds a request is tried again."""
CONNECTING, ANSWERING = 5, 120
"""Timeouts in seconds for a connection and for a response."""
_PREFIXES = ("AWS_", "AZURE_", "GOOGLE_", PATIENCE)
_DEFAULT_REGION = "us-east-1"


@dataclass(frozen=True, slots=True)
class Access:
    """How to reach a store, beyond its address."""

    endpoint: str | None = None
    region: str | None = None
    secret: str | None = field(default=None, repr=False)


def carry(access: Access, scheme: str) -> Access:
    """The same for another machine: it receives our S3 keys. If we use a role, it uses its own role."""
    if scheme != "s3":
        return access
    environment = _environment()
    profile = _read_profile(environment)
    endpoint, region = _find_server(access, environment, profile)
    found = profile if _needs_profile(environment) else {name.lower(): value for name, value in environment.items()}
    keys = [found[key] for key in _PROFILE_KEYS if key in found]
    return Access(endpoint, region, access.secret or (":".join(keys) if len(keys) > 1 else None))


def _find_server(
    access: Access, environment: Mapping[str, str], profile: Mapping[str, str]
) -> tuple[str | None, str | None]:
    """The endpoint and the region of S3, if they are not the defaults."""
    endpoint = environment.get("AWS_ENDPOINT_URL_S3") or environment.get("AWS_ENDPOINT_URL")
    region = environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION")
    return access.endpoint or endpoint or profile.get("endpoint_url"), access.region or region or profile.get("region")


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name.startswith(_PREFIXES)}


def _needs_profile(environment: Mapping[str, str]) -> bool:
    return "AWS_ACCESS_KEY_ID" not in environment or "AWS_PROFILE" in environment


def connect(address: Address, access: Access) -> ObjectStore:
    """The object store of an address. Connections are reused while the environment is unchanged."""
    environment = tuple(sorted(_environment().items()))
    return _connect(address.scheme, address.bucket, address.account, access, environment)


@lru_cache(maxsize=32)
def _connect(
    scheme: str, bucket: str, account: str | None, access: Access, environment: tuple[tuple[str, str], ...]
) -> ObjectStore:
    settings = dict(environment)
    match scheme:
        case "s3":
            return _connect_s3(bucket, access, settings)
        case "gs":
            return _connect_gs(bucket, access, settings)
        case _:
            return _connect_az(bucket, account, access, settings)


def _connect_s3(bucket: str, access: Access, environment: dict[str, str]) -> ObjectStore:
    from obstore.store import S3Store

    found = _find_s3(access, environment)
    config: S3Config = {"region": found.region}
    if found.endpoint is not None:
        config["endpoint"] = found.endpoint
    if len(found.keys) > 1:
        config["access_key_id"], config["secret_access_key"] = found.keys[:2]
    if len(found.keys) > 2:
        config["session_token"] = found.keys[2]
    provider = _ask_boto3(environment) if found.is_by_role else None
    client, patience = _client(found.endpoint), _patience(environment)
    return S3Store(bucket, config=config, client_options=client, retry_config=patience, credential_provider=provider)


def connect_arrow(access: Access) -> S3FileSystem:
    """S3 as a file system of Arrow, for what obstore cannot address."""
    from pyarrow.fs import S3FileSystem

    found = find_s3(access)
    key, secret, token = (*found.keys, *[None] * 3)[:3]
    return S3FileSystem(
        access_key=key,
        secret_key=secret,
        session_token=token,
        region=found.region,
        endpoint_override=found.endpoint,
        connect_timeout=CONNECTING,
        request_timeout=ANSWERING,
    )


@dataclass(frozen=True, slots=True)
class S3Access:
    """Endpoint, region and credentials of S3."""

    endpoint: str | None
    region: str
    keys: Sequence[str] = field(repr=False)
    """Key id, secret key and optionally a session token; empty if the store's tools find them in the environment."""
    is_by_role: bool
    """Whether a profile says how to get keys."""


def find_s3(access: Access) -> S3Access:
    """The S3 settings for a tool that needs each of them explicitly."""
    return _find_s3(access, dict(os.environ))


def _find_s3(access: Access, environment: dict[str, str]) -> S3Access:
    profile = _read_profile(environment)
    endpoint, region = _find_server(access, environment, profile)
    region = region or _DEFAULT_REGION
    if access.secret is not None:
        return S3Access(endpoint, region, access.secret.split(":", 2), is_by_role=False)
    if not _needs_profile(environment):
        return S3Access(endpoint, region, (), is_by_role=False)
    keys = [profile[key] for key in _PROFILE_KEYS if key in profile]
    return S3Access(endpoint, region, keys, is_by_role=bool(profile) and not keys)


_PROFILE_KEYS = ("aws_access_key_id", "aws_secret_access_key", "aws_session_token")


def _read_profile(environment: dict[str, str]) -> dict[str, str]:
    """The settings of a profile in the files of the AWS tools; empty where there is none."""
    home, name = Path.home() / ".aws", environment.get("AWS_PROFILE", "default")
    found: dict[str, str] = {}
    for variable, file, section in (
        ("AWS_CONFIG_FILE", "config", name if name == "default" else f"profile {name}"),
        ("AWS_SHARED_CREDENTIALS_FILE", "credentials", name),
    ):
        parser = ConfigParser(interpolation=None)
        try:
            parser.read(environment.get(variable, home / file), encoding="utf-8")
        except (Error, OSError, UnicodeDecodeError):
            continue
        if parser.has_section(section):
            found |= parser.items(section)
    return found


def _ask_boto3(environment: dict[str, str]) -> S3CredentialProvider | None:
    """Profiles with single sign-on, roles or programs need the AWS library; without it, the role of the machine is tried."""
    try:
        import boto3
        from obstore.auth.boto3 import Boto3CredentialProvider
    except ImportError:
        return None
    session = boto3.Session(profile_name=environment.get("AWS_PROFILE"))
    return Boto3CredentialProvider(session) if session.get_credentials() is not None else None


def _connect_gs(bucket: str, access: Access, environment: dict[str, str]) -> ObjectStore:
    from obstore.store import GCSStore

    config: GCSConfig = {}
    if access.secret is not None:
        config["service_account_key"] = access.secret
    if access.endpoint is not None:
        config["base_url"] = access.endpoint
    client, patience = _client(access.endpoint), _patience(environment)
    return GCSStore(bucket, config=config, client_options=client, retry_config=patience)


def _connect_az(container: str, account: str | None, access: Access, environment: dict[str, str]) -> ObjectStore:
    from obstore.store import AzureStore

    config: AzureConfig = {}
    if account is not None:
        config["account_name"] = account
    if access.secret is not None:
        config["account_key"] = access.secret
    if access.endpoint is not None:
        config["endpoint"] = access.endpoint
    client, patience = _client(access.endpoint), _patience(environment)
    return AzureStore(container, config=config, client_options=client, retry_config=patience)


def _client(endpoint: str | None) -> ClientConfig:
    return {
        "allow_http": endpoint is not None and endpoint.startswith("http://"),
        "connect_timeout": f"{CONNECTING}s",
        "timeout": f"{ANSWERING}s",
    }


def _patience(environment: dict[str, str]) -> RetryConfig:
    return {"retry_timeout": timedelta(seconds=float(environment.get(PATIENCE, "60")))}

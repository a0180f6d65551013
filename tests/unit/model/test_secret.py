"""Secrets are recognised by key and inside addresses, and masked without moving a character."""

import pytest

from dobonomodo.model.secret import holds_secret, is_secret_key, mask_secrets


@pytest.mark.parametrize(
    "key", ["password", "Password", "db_password", "passwd", "pwd", "api_key", "aws.secret.key", "token"]
)
def test_keys_that_hold_secrets(key: str) -> None:
    assert is_secret_key(key)


@pytest.mark.parametrize("key", ["compass", "path_prefix", "tokens_used", "key", "schema", "passenger"])
def test_keys_that_do_not(key: str) -> None:
    assert not is_secret_key(key)


@pytest.mark.parametrize(
    "text",
    ["postgresql://me:pw@host/db", "jdbc:x://host/db?user=a&password=b", "jdbc:sqlserver://h;password=b", "s3://:k@b"],
)
def test_addresses_with_a_password(text: str) -> None:
    assert holds_secret(text)


@pytest.mark.parametrize("text", ["postgresql://me@host:5432/db", "sqlite:///a.db", "10:30 @ home", "a ? b : c"])
def test_addresses_without(text: str) -> None:
    assert not holds_secret(text)


def test_masking_moves_nothing() -> None:
    text = 'password: hunter2\nurl: db://me:hunter2@h/d\n{token: \'hunter2\', a: 1}\n"secret": "hunter2"\n'
    masked = mask_secrets(text)
    assert "hunter2" not in masked
    assert len(masked) == len(text)
    assert masked.splitlines()[2] == "{token: *********, a: 1}"


def test_references_to_secrets_are_shown() -> None:
    text = "credential_ref: env://PASSWORD\npassword: file:///run/secret\n"
    assert mask_secrets(text) == text


def test_formulas_are_shown() -> None:
    text = "selector: 'users.password = \"x\"'\nname: password\n"
    assert mask_secrets(text) == text


def test_masking_takes_linear_time() -> None:
    text = "?" + "a_" * 50_000 + "," + "-." * 50_000
    assert mask_secrets(text) == text

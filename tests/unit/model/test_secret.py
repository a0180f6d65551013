"""Secrets are recognised by key and inside addresses, and masked without moving a character."""

import sys
from collections.abc import Callable

import pytest

from dobonomodo.model import load_documents
from dobonomodo.model.secret import address_holds_secret, holds_secret, is_plain_address, is_secret_key, mask_secrets
from dobonomodo.problems import Source
from dobonomodo.problems.render import render_full
from tests.unit.model.loading import load, sound


@pytest.mark.parametrize(
    "key",
    [
        "password",
        "Password",
        "db_password",
        "passwd",
        "pwd",
        "api_key",
        "aws.secret.key",
        "token",
        "sslpassword",
        "pass%77ord",
        "%70assword",
        "passfile",
        "keyStorePassword",
        "accessKey",
        "spark.hadoop.fs.s3a.secret.key",
        "spark.hadoop.fs.s3a.access.key",
        "fs.azure.account.key.me.dfs.core.windows.net",
        "spark.ssl.trustStorePassword",
        "oauth_client_secret",
        "scram_client_key",
    ],
)
def test_keys_that_hold_secrets(key: str) -> None:
    assert is_secret_key(key)


@pytest.mark.parametrize(
    "key",
    [
        "compass",
        "path_prefix",
        "tokens_used",
        "key",
        "schema",
        "passenger",
        "sslkey",
        "spark.hadoop.fs.s3a.aws.credentials.provider",
        "spark.hadoop.hadoop.security.credential.provider.path",
        "spark.kubernetes.authenticate.oauthTokenFile",
        "spark.kubernetes.driver.secrets.spark-secret",
        "spark.kubernetes.driver.secretKeyRef.TOKEN",
        "spark.sql.shuffle.partitions",
    ],
)
def test_keys_that_do_not(key: str) -> None:
    assert not is_secret_key(key)


@pytest.mark.parametrize(
    "text",
    ["postgresql://me:pw@host/db", "jdbc:x://host/db?user=a&password=b", "jdbc:sqlserver://h;password=b", "s3://:k@b"],
)
def test_addresses_with_a_password(text: str) -> None:
    assert holds_secret(text)


SECRET = "hunter2"
ADDRESSES = [
    "postgresql://me:hunter2@host/db",
    "postgresql://me:hunter2/x@host/db",
    "postgresql://me:123/hunter2@host/db",
    "postgresql://me:hunter2?x@host/db",
    "postgresql://me:hunter2#x@host/db",
    "postgresql://me:a@hunter2@host/db",
    "postgresql://me:hunter2 x@host/db",
    "postgresql://host/db?password=hunter2",
    "postgresql://host/db?sslpassword=hunter2",
    "postgresql://host/db?a=1&sslPassword=hunter2",
    "postgresql://host/db?pass%77ord=hunter2",
    "postgresql://host/db?%70%61%73%73word=hunter2",
    "postgresql://host/db?passfile=hunter2",
    "postgresql:///db?host=h&password=hunter2",
    "host=h dbname=d user=me password=hunter2",
    "host=h dbname=d password='hunter2 x'",
    "host = h password = hunter2",
    "user=me password=hunter2",
    "password=hunter2",
    "passfile=hunter2 host=h",
    "jdbc:postgresql://host/db?user=me&password=hunter2",
    "jdbc:sqlserver://host;password=hunter2",
    "mysql+pymysql://me:hunter2@host/db",
    "mssql+pyodbc:///?odbc_connect=DRIVER%3DX%3BUID%3Dme%3BPWD%3Dhunter2",
    "mssql+pyodbc:///?odbc_connect=DRIVER%3D%7BODBC Driver 18%7D%3BPWD%3Dhunter2",
    "me:hunter2@account/database/schema?warehouse=w",
]


@pytest.mark.parametrize("address", ADDRESSES)
def test_a_secret_anywhere_in_an_address_is_found(address: str) -> None:
    assert address_holds_secret(address)
    assert not is_plain_address(address)


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://host/db",
        "postgresql://me@host:5432/db",
        "postgresql://me%40here@one:1,two:2/db?target_session_attrs=any&sslmode=require",
        "postgresql://[::1]:5432/db?sslrootcert=/etc/ca.pem",
        "postgresql:///db?host=/var/run/postgresql",
        "postgresql+psycopg://host/db",
    ],
)
def test_an_address_without_a_secret_is_plain(address: str) -> None:
    assert is_plain_address(address)
    assert not address_holds_secret(address)


@pytest.mark.parametrize(
    "address",
    ["me@account/database", "me:***@account/database", "file:a@b.db", "C:/data/a.db", "jdbc:x://me@host/db", "a:b"],
)
def test_an_address_without_a_scheme(address: str) -> None:
    assert not address_holds_secret(address)


def in_options(address: str) -> str:
    return f"datasource: {{id: s, type: database, options: {{url: {_quoted(address)}}}}}"


def in_store(address: str) -> str:
    return f"workspace: {{store: {_quoted(address)}}}"


def in_environment(address: str) -> str:
    return f"workspace:\n  environments:\n    prod:\n      store: {_quoted(address)}\n"


def in_escapes(address: str) -> str:
    """As YAML may write it too: no pattern over the file sees the address."""
    escaped = "".join(f"\\x{ord(each):02x}" for each in address)
    return f'workspace: {{store: "{escaped}"}}'


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


@pytest.mark.parametrize("write", [in_options, in_store, in_environment, in_escapes])
@pytest.mark.parametrize("address", ADDRESSES)
def test_a_secret_in_an_address_is_refused_and_not_shown(write: Callable[[str], str], address: str) -> None:
    text = write(address)
    definitions, problems = load(text)
    assert [problem.code for problem in problems] == ["SECRET_IN_DEFINITION"]
    assert not definitions.datasources
    assert SECRET not in f"{definitions!r} {problems!r}"
    (problem,) = problems
    assert problem.span is not None
    assert SECRET not in render_full(problems) + problem.span.source.text
    assert len(problem.span.source.text) == len(text)


@pytest.mark.parametrize("address", ADDRESSES)
def test_without_drivers_most_secrets_are_found_and_nothing_else_is_accepted(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("sqlalchemy", "psycopg", "psycopg.conninfo"):
        monkeypatch.setitem(sys.modules, name, None)
    assert load(in_options(address))[1]


@pytest.mark.parametrize(
    "setting",
    [
        "spark.hadoop.fs.s3a.secret.key: hunter2",
        '"spark.hadoop.fs.s3a.secret.key":"hunter2"',
        "spark.driver.extraJavaOptions: '-Xmx1g -Djavax.net.ssl.trustStorePassword=hunter2'",
        "spark.x: 'jdbc:postgresql://h/d?password=hunter2'",
        "spark.x: 'https://me:hunter2@proxy:8080'",
        "spark.x: 'host=h password=hunter2'",
    ],
)
@pytest.mark.parametrize(
    "frame", ["{{spark: {{conf: {{{}}}}}}}", "{{environments: {{p: {{spark: {{conf: {{{}}}}}}}}}}}"]
)
def test_a_secret_in_a_setting_of_spark_is_refused_and_not_shown(frame: str, setting: str) -> None:
    problems = load(f"workspace: {frame.format(setting)}")[1]
    assert [problem.code for problem in problems] == ["SECRET_IN_DEFINITION"]
    assert SECRET not in render_full(problems) + repr(problems)


@pytest.mark.parametrize(
    "text",
    [
        "workspace: {spark: {remote: 'sc://host:15002/;token=hunter2'}}",
        "workspace: {spark: {password: hunter2}}",
        "workspace: {password: {a: hunter2}}",
        "workspace: {environments: {prod: {db_password: hunter2}}}",
        "datasource: {id: a, type: csv, options: {path_prefix: a, password: {x: hunter2}}}",
    ],
)
def test_other_places_of_secrets(text: str) -> None:
    assert [problem.code for problem in load(text)[1]] == ["SECRET_IN_DEFINITION"]


def test_a_setting_of_spark_may_refer_to_a_secret() -> None:
    text = (
        "workspace: {spark: {conf: {spark.hadoop.fs.s3a.secret.key: 'env://KEY', spark.ssl.keyPassword: 'file://k'}}}"
    )
    assert sound(text).workspace.spark.conf["spark.hadoop.fs.s3a.secret.key"] == "env://KEY"


@pytest.mark.parametrize(
    "text", ["mysql://me@host/db", "postgresql://me@host:port/db", "a database", "postgresql://h/a/b"]
)
def test_what_is_no_address_is_refused(text: str) -> None:
    assert [problem.code for problem in load(in_options(text))[1]] == ["INVALID_VALUE"]


@pytest.mark.parametrize("text", ["postgresql://me@host:5432/db", "sqlite:///a.db", "10:30 @ home", "a ? b : c"])
def test_addresses_without(text: str) -> None:
    assert not holds_secret(text)


def test_masking_moves_nothing() -> None:
    text = 'password: hunter2\nurl: db://me:hunter2@h/d\n{token: \'hunter2\', a: 1}\n"secret": "hunter2"\n'
    masked = mask_secrets(text)
    assert "hunter2" not in masked
    assert len(masked) == len(text)
    assert masked.splitlines()[2] == "{token: *********, a: 1}"


@pytest.mark.parametrize(
    "text",
    [
        'password: "x" hunter2',
        'password: "my"hunter2"',
        "password: 'my'hunter2",
        "password: my,hunter2",
        "options: {password: my,hunter2}",
        "options: {password: my}hunter2, id: 1}",
        'options: {password: "my"hunter2, id: 1}',
        "options: [password: my hunter2]",
        'password: "my # hunter2"',
        'password: "my, key: hunter2"',
        "password: @hunter2",
    ],
)
def test_a_secret_is_masked_to_its_end_where_the_text_is_broken(text: str) -> None:
    assert "hunter2" not in mask_secrets(text)
    _, problems = load_documents(Source("x.yaml", f"datasource:\n  {text}\n"))
    assert "hunter2" not in render_full(problems)


def test_references_to_secrets_are_shown() -> None:
    text = "credential_ref: env://PASSWORD\npassword: file:///run/secret\n"
    assert mask_secrets(text) == text


def test_formulas_are_shown() -> None:
    text = "selector: 'users.password = \"x\"'\nname: password\n"
    assert mask_secrets(text) == text


def test_masking_takes_linear_time() -> None:
    text = "?" + "a_" * 10_000 + "," + "-." * 10_000
    assert mask_secrets(text) == text
    for broken in ("}" * 20_000 + "x", "a" + " " * 20_000 + "x", ", a" * 6_000):
        assert set(mask_secrets(f"password: {broken}").removeprefix("password: ")) == {"*"}

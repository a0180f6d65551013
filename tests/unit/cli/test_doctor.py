"""`dobo doctor`."""

from __future__ import annotations

import shutil
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from dobonomodo.cli import doctor
from tests.postgresql import PASSWORD, USER, Server, postgresql_server
from tests.unit.cli.conftest import Dobo, change

__all__ = ["postgresql_server"]

MACHINE = ["Python", "Java", "PySpark", "PyArrow", "SQLite", "disk, temporary files", "workspace"]

WAREHOUSE = """
datasource:
  id: warehouse
  type: database
  options: {url: "postgresql://reporting@127.0.0.1:1/figures", schema: public}
  credential_ref: env://WAREHOUSE_PASSWORD
"""


def _by_check(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {each["check"]: each for each in document["data"]}


def _without(monkeypatch: pytest.MonkeyPatch, *packages: str) -> None:
    real = metadata.version

    def version(name: str) -> str:
        if name in packages:
            raise metadata.PackageNotFoundError(name)
        return real(name)

    monkeypatch.setattr(metadata, "version", version)
    for package in packages:
        for name in [each for each in sys.modules if each.split(".")[0] == package]:
            monkeypatch.delitem(sys.modules, name)
        monkeypatch.setitem(sys.modules, package, None)


def _without_java(monkeypatch: pytest.MonkeyPatch, empty: Path) -> None:
    monkeypatch.setenv("PATH", str(empty))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr("dobonomodo.engine.java._packaged_home", lambda: None)


@pytest.fixture
def java(monkeypatch: pytest.MonkeyPatch) -> None:
    """A Java, on machines that have none too."""
    from dobonomodo.engine import Java

    found = Java(home=Path("/java"), version="17.0.9", origin="JAVA_HOME")
    monkeypatch.setattr("dobonomodo.engine.require_java", lambda: found)


@pytest.mark.usefixtures("java")
def test_outside_of_a_workspace(dobo: Dobo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = dobo("doctor", "--json")
    assert (result.code, result.document["schema"], result.document["ok"]) == (0, "dobo/doctor/1", True)
    assert [each["check"] for each in result.document["data"]] == MACHINE
    assert {each["status"] for each in result.document["data"]} == {"ok"}
    text = dobo("doctor")
    assert text.code == 0
    assert len(text.out.splitlines()) == len(MACHINE) + 2


def test_without_spark_and_java(dobo: Dobo, sales: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _without(monkeypatch, "pyspark")
    (tmp_path / "bin").mkdir()
    _without_java(monkeypatch, tmp_path / "bin")
    result = dobo("doctor", "--json")
    found = _by_check(result.document)
    assert (result.code, result.document["ok"]) == (6, False)
    assert {name for name, each in found.items() if each["status"] == "failed"} == {"Java", "PySpark"}
    assert "pip install 'dobonomodo[spark]'" in found["PySpark"]["remedy"]
    assert "openjdk" in found["Java"]["remedy"]
    assert all(each["remedy"] for each in found.values() if each["status"] != "ok")
    text = dobo("doctor")
    assert text.code == 6
    assert text.out.count("to do: ") == 2


@pytest.mark.parametrize(
    ("version", "wanted", "fits"),
    [
        ("4.3.0", "<4.4,>=4.1", True),
        ("4.1.0", "<4.4,>=4.1", True),
        ("4.4.0", "<4.4,>=4.1", False),
        ("3.5.7", "<4.4,>=4.1", False),
        ("4.4.0.dev1", "<4.4,>=4.1", False),
        ("18", ">=18", True),
        ("1.0", "", True),
    ],
)
def test_versions_are_compared_with_what_the_package_asks_for(version: str, wanted: str, fits: bool) -> None:
    assert doctor._fits(version, wanted) is fits


@pytest.mark.usefixtures("java", "sales")
def test_a_version_out_of_range(dobo: Dobo, monkeypatch: pytest.MonkeyPatch) -> None:
    real = metadata.version
    monkeypatch.setattr(metadata, "version", lambda name: "3.5.1" if name == "pyspark" else real(name))
    result = dobo("doctor", "--json")
    assert result.code == 6
    assert _by_check(result.document)["PySpark"]["status"] == "failed"
    assert "3.5.1" in _by_check(result.document)["PySpark"]["detail"]


@pytest.mark.usefixtures("java")
def test_a_workspace_with_its_store(dobo: Dobo, stored: Path) -> None:
    result = dobo("doctor", "--json")
    found = _by_check(result.document)
    assert result.code == 0
    assert list(found) == [*MACHINE, "disk, workspace", "permission", "store"]
    assert found["workspace"]["detail"] == str(stored)


@pytest.mark.usefixtures("java")
def test_nothing_is_made(dobo: Dobo, sales: Path) -> None:
    before = sorted(sales.rglob("*"))
    assert dobo("doctor").code == 0
    assert sorted(sales.rglob("*")) == before


@pytest.mark.usefixtures("java")
def test_a_broken_store(dobo: Dobo, stored: Path) -> None:
    (stored / ".dobo" / "store.db").write_text("this is no database, however long it may be " * 100)
    result = dobo("doctor", "--json")
    assert result.code == 6
    assert _by_check(result.document)["store"]["status"] == "failed"


@pytest.mark.usefixtures("java")
def test_errors_in_definitions_are_a_warning(dobo: Dobo, faulty: Path) -> None:
    del faulty
    result = dobo("doctor", "--json")
    assert _by_check(result.document)["workspace"]["status"] == "warning"
    assert _by_check(result.document)["workspace"]["remedy"] == "dobo validate"


@pytest.mark.usefixtures("java")
@pytest.mark.parametrize(("free", "status"), [(10, "ok"), (2, "warning"), (0, "failed")])
def test_room_on_the_disk(dobo: Dobo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free: int, status: str) -> None:
    monkeypatch.chdir(tmp_path)
    usage = shutil.disk_usage(tmp_path)._replace(free=free * 2**30)
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: usage)
    found = _by_check(dobo("doctor", "--json").document)["disk, temporary files"]
    assert found["status"] == status
    assert bool(found["remedy"]) == (status != "ok")


@pytest.mark.usefixtures("java")
def test_a_secret_that_is_not_set(dobo: Dobo, sales: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (sales / "datasources" / "more.yaml").write_text(WAREHOUSE.replace("id: warehouse", "id: figures"))
    monkeypatch.delenv("WAREHOUSE_PASSWORD", raising=False)
    result = dobo("doctor", "--json")
    found = _by_check(result.document)
    assert result.code == 6
    assert found["secret of figures"]["status"] == "failed"
    assert "WAREHOUSE_PASSWORD" in found["secret of figures"]["detail"]
    assert "database figures" not in found


@pytest.mark.usefixtures("java")
def test_a_server_that_does_not_answer(dobo: Dobo, sales: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (sales / "datasources" / "more.yaml").write_text(WAREHOUSE.replace("id: warehouse", "id: figures"))
    monkeypatch.setenv("WAREHOUSE_PASSWORD", "hunter2-hunter2")
    for arguments in (("doctor", "--json"), ("doctor",)):
        result = dobo(*arguments)
        assert result.code == 6
        assert "hunter2" not in result.out + result.err
    found = _by_check(dobo("doctor", "--json").document)
    assert found["secret of figures"]["status"] == "ok"
    assert found["driver psycopg"]["status"] == "ok"
    assert (found["database figures"]["status"], bool(found["database figures"]["remedy"])) == ("failed", True)


@pytest.mark.usefixtures("java")
def test_a_driver_that_is_missing(dobo: Dobo, sales: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (sales / "datasources" / "more.yaml").write_text(WAREHOUSE.replace("id: warehouse", "id: figures"))
    monkeypatch.setenv("WAREHOUSE_PASSWORD", "secret")
    _without(monkeypatch, "psycopg")
    found = _by_check(dobo("doctor", "--json").document)
    assert found["driver psycopg"]["status"] == "failed"
    assert "dobonomodo[postgresql]" in found["driver psycopg"]["remedy"]
    assert "database figures" not in found


@pytest.mark.usefixtures("java")
def test_a_store_that_cannot_be_reached(dobo: Dobo, sales: Path) -> None:
    change(sales, "dobo.yaml", "name: sales", 'name: sales, store: "postgresql://dobo@127.0.0.1:1/dobo"')
    result = dobo("doctor", "--json")
    assert result.code == 6
    assert _by_check(result.document)["store"]["status"] == "failed"


@pytest.mark.usefixtures("java")
@pytest.mark.parametrize("address", ["postgresql://dobo:hunter2@127.0.0.1:1/dobo", "host=127.0.0.1 password=hunter2"])
def test_a_store_with_a_secret_in_its_address(dobo: Dobo, sales: Path, address: str) -> None:
    change(sales, "dobo.yaml", "name: sales", f'name: sales, store: "{address}"')
    result = dobo("doctor", "--json")
    found = _by_check(result.document)
    assert result.code == 6
    assert found["store"]["status"] == "failed"
    assert "hunter2" not in result.out + result.err


@pytest.mark.postgresql
@pytest.mark.usefixtures("java")
def test_a_server_that_answers(
    dobo: Dobo, sales: Path, monkeypatch: pytest.MonkeyPatch, postgresql_server: Server
) -> None:
    with postgresql_server.fresh_database() as url:
        address = url.replace(f"{USER}:{PASSWORD}@", f"{USER}@")
        text = WAREHOUSE.replace("id: warehouse", "id: figures")
        (sales / "datasources" / "more.yaml").write_text(
            text.replace("postgresql://reporting@127.0.0.1:1/figures", address)
        )
        for password, status in ((PASSWORD, "ok"), ("wrong-horse", "failed")):
            monkeypatch.setenv("WAREHOUSE_PASSWORD", password)
            result = dobo("doctor", "--json")
            assert _by_check(result.document)["database figures"]["status"] == status
            assert password not in result.out + result.err

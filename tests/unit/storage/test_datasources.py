"""Datasources: options by type, and no secrets."""

from dataclasses import replace
from pathlib import Path

import pytest

from dobonomodo.formula.types import INTEGER, TEXT
from dobonomodo.model import DataSource, load_definitions
from dobonomodo.plan import Location
from dobonomodo.plan.destination import Destination
from dobonomodo.problems import InternalError, RunFailed, Source
from dobonomodo.problems.definition import InvalidValue, MissingKey
from dobonomodo.problems.run import DataLoad, OutputWrite
from dobonomodo.storage import STORAGES, Storages, load_pin
from dobonomodo.storage.catalogue import check_drivers
from dobonomodo.storage.csv import CsvFormat, CsvStorage
from dobonomodo.storage.csv_dialect import Dialect
from dobonomodo.storage.faults import loading_failed, writing_failed
from dobonomodo.storage.fence import Fence
from dobonomodo.storage.file_storage import named_as
from dobonomodo.storage.files import pin_files
from dobonomodo.storage.folder import FolderTarget, StoredFiles, StoredFolders
from dobonomodo.storage.local_shelf import LocalShelf
from dobonomodo.storage.manifest import HIDDEN
from dobonomodo.storage.named import NamedFile
from dobonomodo.storage.target import OutputPlace, Target
from tests import world
from tests.unit.model.loading import found, load, sound
from tests.world import source_of, use_of

KINDS = tuple(each.kind for each in STORAGES)


def datasource(kind: str, options: str, more: str = "") -> str:
    return f"datasource: {{id: s, type: {kind}, options: {options}{more}}}"


def test_options_by_type() -> None:
    def options(text: str) -> object:
        return sound(text).datasources["s"].options

    assert options(datasource("parquet", "{path_prefix: a}")) == {"path_prefix": "a"}
    csv = {"path_prefix": "a", "delimiter": ";", "has_header": False}
    assert options(datasource("csv", "{path_prefix: a, delimiter: ';', has_header: false}")) == csv
    address = "postgresql://host:5432/db"
    assert options(datasource("database", f"{{url: '{address}', schema: s}}")) == {"url": address, "schema": "s"}


def test_what_is_left_out_is_filled_in() -> None:
    short = sound(datasource("csv", "{path_prefix: a}")).datasources["s"]
    long = sound(datasource("csv", "{has_header: true, delimiter: ',', path_prefix: a}")).datasources["s"]
    assert short == long
    assert short.fingerprint() == long.fingerprint()
    assert type(short) is DataSource


def test_a_type_that_there_is_not() -> None:
    definitions, (problem,) = load(datasource("parqet", "{path_prefix: a}"))
    assert isinstance(problem, InvalidValue)
    assert (problem.key, problem.known, problem.text) == ("type", KINDS, "parqet")
    assert definitions.datasources == {}
    assert set(definitions.broken["datasource"]) == {"s"}
    (missing,) = load("datasource: {id: s, options: {}}")[1]
    assert isinstance(missing, MissingKey)
    assert (missing.key, all(kind in (missing.expected or "") for kind in KINDS)) == ("type", True)


def test_all_problems_are_found_at_once() -> None:
    text = datasource("csv", "{path_prefix: a, delimiter: ab, has_heder: true}", ", status: off, credential_ref: x")
    assert [code for code, _ in found(text)] == ["INVALID_VALUE", "UNKNOWN_KEY", "INVALID_VALUE", "INVALID_VALUE"]


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("parquet", "{path_prefix: a}"),
        ("parquet", "{path_prefix: 's3://a/b'}"),
        ("delta", "{path_prefix: a}"),
        ("iceberg", "{uri: 'sqlite:///a.db', warehouse: a}"),
        ("database", "{url: 'postgresql://host/db'}"),
        ("sql", "{url: 'sqlite:///a.db'}"),
        ("table", "{catalog: c, schema: s, format: delta}"),
    ],
)
def test_plain_names_stay_in_their_datasource(tmp_path: Path, kind: str, options: str) -> None:
    source = sound(datasource(kind, options)).datasources["s"]
    storage = Storages(tmp_path, {"s": source}).open(source)
    assert not storage.leaves(Location("s", kind, table="orders", path="orders"))
    assert not storage.escapes("orders")


def test_a_datasource_knows_where_its_keys_are() -> None:
    source = sound(datasource("csv", "{path_prefix: a}")).datasources["s"]
    span = source.places.span("options", "path_prefix")
    assert span is not None
    assert span.source.text[span.start : span.end] == "a"


def test_a_model_alone_knows_no_kind() -> None:
    definitions, problems = load_definitions([Source("0.yaml", datasource("delta", "{anything: goes}"))])
    assert problems == ()
    assert definitions.datasources["s"].options == {"anything": "goes"}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (datasource("parqet", "{}"), ("INVALID_VALUE", "parqet")),
        (datasource("parquet", "{}"), ("MISSING_KEY", "options")),
        (datasource("parquet", "{path_prefix: a, delimiter: ;}"), ("UNKNOWN_KEY", "delimiter")),
        (datasource("csv", "{path_prefix: a, delimiter: ab}"), ("INVALID_VALUE", "ab")),
        (datasource("database", "{url: ''}"), ("INVALID_VALUE", "''")),
        (datasource("csv", "{path_prefix: a}", ", status: off"), ("INVALID_VALUE", "off")),
    ],
)
def test_what_does_not_fit_the_type(text: str, problem: tuple[str, str]) -> None:
    assert found(text) == [problem]


@pytest.mark.parametrize(
    ("options", "caret"),
    [
        ("{path_prefix: a, password: hunter2}", "password"),
        ("{path_prefix: a, db_password: hunter2}", "db_password"),
        ("{path_prefix: 's3://key:hunter2@bucket'}", "'s3://key:*******@bucket'"),
        ("{path_prefix: 'db://h?password=hunter2'}", "'db://h?password=*******'"),
    ],
)
def test_a_secret_is_refused_and_never_shown(options: str, caret: str) -> None:
    text = datasource("parquet", options)
    assert found(text) == [("SECRET_IN_DEFINITION", caret)]
    assert all("hunter2" not in repr(problem) + problem.message() + (problem.hint() or "") for problem in load(text)[1])


@pytest.mark.parametrize("reference", ["env://WAREHOUSE_PASSWORD", "file:///run/secrets/warehouse"])
def test_a_reference_to_a_secret(reference: str) -> None:
    text = datasource("csv", "{path_prefix: a}", f", credential_ref: '{reference}'")
    assert sound(text).datasources["s"].credential_ref == reference


@pytest.mark.parametrize("reference", ["hunter2", "env://", "env://A B", "vault://x", "file://"])
def test_what_is_no_reference(reference: str) -> None:
    text = datasource("csv", "{path_prefix: a}", f", credential_ref: '{reference}'")
    (problem,) = load(text)[1]
    assert problem.code == "INVALID_VALUE"
    assert "hunter2" not in problem.message()


@pytest.mark.parametrize(
    "prefix", ["hdfs:///x", "hdfs://h:x/y", "file:///x", "s3a:/b", "dbfs:/x", "s3://", "gs://b/../c"]
)
@pytest.mark.parametrize("kind", ["parquet", "csv", "excel"])
def test_an_address_that_cannot_be_followed(kind: str, prefix: str) -> None:
    text = datasource(kind, f"{{path_prefix: '{prefix}'}}")
    assert found(text) == [("INVALID_VALUE", prefix)]
    assert all(scheme in (load(text)[1][0].hint() or "") for scheme in ("s3://", "gs://", "az://", "abfss://"))


@pytest.mark.parametrize("kind", ["parquet", "csv", "excel"])
def test_files_may_be_in_hdfs(kind: str) -> None:
    for prefix in ("hdfs://node:8020/data", "hdfs://service/a b", "HDFS://node"):
        sound(datasource(kind, f"{{path_prefix: '{prefix}'}}"))
    text = datasource(kind, "{path_prefix: 'hdfs://node/x', endpoint: 'http://x', region: y}")
    assert found(text) == [("INVALID_VALUE", "endpoint"), ("INVALID_VALUE", "region")]


def test_tables_of_delta_are_not_in_hdfs() -> None:
    text = datasource("delta", "{path_prefix: 'hdfs://node/x'}")
    assert found(text) == [("INVALID_VALUE", "hdfs://node/x")]
    assert "hdfs" not in (load(text)[1][0].hint() or "")


@pytest.mark.parametrize(
    "prefix", ["s3a://bucket/data", "S3://b", "gs://b/x", "az://c/x", "abfss://c@a.dfs.core.windows.net/x"]
)
@pytest.mark.parametrize("kind", ["parquet", "csv", "excel"])
def test_files_may_be_in_an_object_store(kind: str, prefix: str) -> None:
    sound(datasource(kind, f"{{path_prefix: '{prefix}', endpoint: 'http://127.0.0.1:9000', region: eu-central-1}}"))


def test_a_folder_has_no_server() -> None:
    text = datasource("parquet", "{path_prefix: data, endpoint: 'http://x', region: y}")
    assert found(text) == [("INVALID_VALUE", "endpoint"), ("INVALID_VALUE", "region")]


def test_keys_do_not_belong_into_an_address() -> None:
    text = datasource("parquet", "{path_prefix: 's3://AKIA:hunter2@bucket/data'}")
    assert [code for code, _ in found(text)] == ["SECRET_IN_DEFINITION"]
    assert "hunter2" not in repr(load(text)[1])


@pytest.mark.parametrize("prefix", ["data", "../lake", "/mnt/lake", "a b/ä", "a:b", "C=1/x"])
def test_a_folder_may_be_anywhere(prefix: str) -> None:
    sound(datasource("parquet", f"{{path_prefix: '{prefix}'}}"))


def test_control_characters_are_in_no_name() -> None:
    for text in (
        datasource("parquet", '{path_prefix: "a\\eb"}'),
        datasource("database", '{url: "postgresql://h/d", schema: "a\\u202eb"}'),
    ):
        assert [problem.code for problem in load(text)[1]] == ["INVALID_VALUE"]


class TestSql:
    @pytest.mark.parametrize(
        "options",
        [
            "{url: 'sqlite:///ledger.db'}",
            "{url: 'mysql+pymysql://ann@host:3306/db?charset=utf8mb4', schema: other}",
            "{url: 'snowflake://ann@account/db/schema'}",
            "{url: market.duckdb, driver: adbc_driver_duckdb}",
            "{url: 'ann@account/db', driver: adbc_driver_snowflake}",
        ],
    )
    def test_urls_and_drivers(self, options: str) -> None:
        sound(datasource("sql", options))

    @pytest.mark.parametrize(
        ("options", "code", "shown"),
        [
            ("{url: 'jdbc:mysql://host/db'}", "INVALID_VALUE", "'jdbc:mysql://host/db'"),
            ("{url: 'ledger.db'}", "INVALID_VALUE", "'ledger.db'"),
            ("{url: 'mysql+pymysql://host:port/db'}", "INVALID_VALUE", "'mysql+pymysql://host:port/db'"),
            ("{url: ''}", "INVALID_VALUE", "''"),
            ("{url: a.db, driver: os}", "INVALID_VALUE", "os"),
            ("{url: a.db, driver: adbc_driver_x.y}", "INVALID_VALUE", "adbc_driver_x.y"),
            ("{url: 'sqlite:///a.db', driver: adbc_driver_sqlite}", "INVALID_VALUE", "'sqlite:///a.db'"),
            ("{driver: adbc_driver_x}", "MISSING_KEY", "options"),
            ("{url: 'sqlite:///a.db', user: ann}", "UNKNOWN_KEY", "user"),
            (
                "{url: 'mysql+pymysql://ann:hunter2@host/db'}",
                "SECRET_IN_DEFINITION",
                "'mysql+pymysql://ann:*******@host/db'",
            ),
            ("{url: 'mysql://host/db?password=hunter2'}", "SECRET_IN_DEFINITION", "'mysql://host/db?password=*******'"),
            ("{url: 'ann:hunter2@account/db', driver: adbc_driver_snowflake}", "SECRET_IN_DEFINITION", None),
            ("{url: 'mssql+pyodbc:///?odbc_connect=UID%3Dann%3BPWD%3Dhunter2'}", "SECRET_IN_DEFINITION", None),
        ],
    )
    def test_what_is_refused(self, options: str, code: str, shown: str | None) -> None:
        ((found_code, caret),) = found(datasource("sql", options))
        assert found_code == code
        assert shown is None or caret == shown
        assert "hunter2" not in caret + repr(load(datasource("sql", options))[1])

    def test_control_characters(self) -> None:
        (problem,) = load(datasource("sql", '{url: "sqlite:///a.db", schema: "a\\u202eb"}'))[1]
        assert problem.code == "INVALID_VALUE"

    def test_a_url_is_explained_by_what_reads_it(self) -> None:
        (problem,) = load(datasource("sql", "{url: 'ledger.db'}"))[1]
        assert "a URL of SQLAlchemy, or `driver` beside it" in problem.message()
        assert "mysql+pymysql://user@host/database" in (problem.hint() or "")
        (problem,) = load(datasource("sql", "{url: 'sqlite:///a.db', driver: adbc_driver_sqlite}"))[1]
        assert "the path of a file" in problem.message()
        assert "`adbc_driver_sqlite` opens files" in (problem.hint() or "")

    def test_the_type_for_other_databases_is_named(self) -> None:
        (problem,) = load(datasource("database", "{url: 'mysql://ann@host/db'}"))[1]
        assert "type: sql" in (problem.hint() or "")
        (other,) = load(datasource("database", "{url: 'postgresql://ann@host:port/db'}"))[1]
        assert "type: sql" not in (other.hint() or "")


class TestIceberg:
    @pytest.mark.parametrize(
        "options",
        [
            "{uri: 'sqlite:///catalog.db', warehouse: warehouse, namespace: sales}",
            "{uri: 'postgresql://ann@host:5432/catalog', warehouse: 's3://bucket/lake', region: eu-central-1}",
            "{uri: 'https://catalog.acme.example', warehouse: 's3a://bucket', endpoint: 'http://127.0.0.1:9000'}",
        ],
    )
    def test_catalogs_and_warehouses(self, options: str) -> None:
        sound(datasource("iceberg", options))

    @pytest.mark.parametrize(
        ("options", "code", "shown"),
        [
            ("{uri: 'catalog.db', warehouse: x}", "INVALID_VALUE", "'catalog.db'"),
            ("{uri: 'mysql://host/db', warehouse: x}", "INVALID_VALUE", "'mysql://host/db'"),
            ("{uri: 'sqlite:///c.db', warehouse: 'gs://bucket/x'}", "INVALID_VALUE", "gs://bucket/x"),
            ("{uri: 'sqlite:///c.db', warehouse: 'hdfs://h/x'}", "INVALID_VALUE", "hdfs://h/x"),
            ("{uri: 'sqlite:///c.db', warehouse: x, region: y}", "INVALID_VALUE", "region"),
            ('{uri: "sqlite:///c.db", warehouse: x, namespace: "a\\tb"}', "INVALID_VALUE", "a\\tb"),
            (
                "{uri: 'postgresql://ann:hunter2@host/db', warehouse: x}",
                "SECRET_IN_DEFINITION",
                "'postgresql://ann:*******@host/db'",
            ),
        ],
    )
    def test_what_is_refused(self, options: str, code: str, shown: str) -> None:
        assert found(datasource("iceberg", options)) == [(code, shown)]


class TestPlacesOnThisMachine:
    """What leads out of a datasource, by its path or by symbolic links."""

    @pytest.fixture
    def root(self, tmp_path: Path) -> Path:
        root = tmp_path / "workspace"
        for folder in (root / "data" / "in", root / "other", tmp_path / "outside"):
            folder.mkdir(parents=True)
            (folder / "rows.csv").write_text("id\n1\n")
        (root / "data" / "link").symlink_to(tmp_path / "outside")
        (root / "data" / "inner").symlink_to("in")
        return root

    def shelf(self, root: Path) -> LocalShelf:
        return LocalShelf(root, root / "data")

    def test_of_locations(self, root: Path) -> None:
        def leaves(path: str | None) -> bool:
            return self.shelf(root).leaves(Location("s", "path", path=path, table="t"))

        assert [leaves(path) for path in ("in/rows.csv", "inner/rows.csv", "new", None)] == [False] * 4
        assert [leaves(path) for path in ("link/rows.csv", "link", "../other/rows.csv")] == [True] * 3
        assert LocalShelf(root).leaves(Location("s", "path", path="../x")) is False
        # The folder of a datasource may be a table, whose files are beside it.
        (root / HIDDEN / "data" / "v").mkdir(parents=True)
        (root / "data" / "run_period=2026-01").symlink_to(root / HIDDEN / "data" / "v")
        assert not leaves("run_period=2026-01")

    def test_of_destinations(self, root: Path) -> None:
        assert [self.shelf(root).escapes(table) for table in ("new", "inner/new", "link/new", "../other")] == [
            False, False, True, True,
        ]  # fmt: skip
        assert [LocalShelf(root).escapes(table) for table in ("other/new", "data/link/new")] == [False, True]

    def test_of_files_that_are_listed(self, root: Path) -> None:
        shelf, use = self.shelf(root), use_of({"id": INTEGER})

        def listed(path: str) -> list[str]:
            found = shelf.list_location(use, Location("s", "path", path=path))
            assert found.place == str(root / "data" / path)
            return [file.path for file in found.files]

        assert listed("inner") == [str(root / "data" / "in" / "rows.csv")]
        problem = world.failure(listed, "link").problem
        assert isinstance(problem, DataLoad)
        assert "`s`" in problem.detail
        by_table = LocalShelf(root).list_location(use, Location("s", "table", table="other"))
        assert by_table.files == LocalShelf(root).list_folder("other").files == pin_files(root / "other")

    def test_new_files_are_those_that_were_not_listed(self, root: Path) -> None:
        shelf, folder = self.shelf(root), root / "data" / "in"
        files = pin_files(folder)
        assert list(shelf.find_new(str(folder), files)) == []
        (folder / "more.csv").touch()
        assert list(shelf.find_new(str(folder), files)) == [str(folder / "more.csv")]
        assert list(shelf.find_new(str(root / "nowhere"), files)) == []

    def test_of_what_is_written(self, root: Path) -> None:
        def target(table: str, file: str | None = None, *, shelf: LocalShelf | None = None) -> Target:
            fence = Fence("store", "project", "2026-01", 1)
            place = OutputPlace(
                10, table, None, {"id": INTEGER}, "2026-01", "r", fence, 1, str(root / "run"), file=file
            )
            return (shelf or self.shelf(root)).target(place, CsvFormat(Dialect()))

        def folder_of(target: Target) -> FolderTarget:
            assert isinstance(target, FolderTarget)
            return target

        inner = folder_of(target("inner/new", "inner/report.csv"))
        assert (inner.folder, inner.prefix, inner.root) == (root / "data" / "in" / "new", root / "data", root)
        assert inner.named == NamedFile(root / "data" / "in" / "report.csv")
        alone = folder_of(target("other/new", shelf=LocalShelf(root)))
        assert (alone.folder, alone.prefix, alone.named) == (root / "other" / "new", root / "other", None)
        for table, file in (("link/new", None), (".", None), ("../other/new", None), ("new", "link/report.csv")):
            assert isinstance(world.failure(target, table, file).problem, OutputWrite), (table, file)
        # Drafts stay in the sandbox, which may be wider than the folder of a datasource in it.
        wide = LocalShelf(root, root / "data", root)
        assert folder_of(target("../other/new", shelf=wide)).folder == root / "other" / "new"
        assert isinstance(world.failure(target, "../../outside/x", shelf=wide).problem, OutputWrite)


class TestStorages:
    """Which storage a record, a reading or an output belongs to."""

    def storages(self, root: Path, sandbox: Path | DataSource | None = None) -> Storages:
        sources = (
            source_of("csv", "lake", path_prefix="lake", delimiter=";"),
            source_of("csv", "off", path_prefix="x", status="disabled"),
        )
        return Storages(root, {each.id: each for each in sources}, sandbox)

    def shelf(self, storage: object) -> LocalShelf:
        assert isinstance(storage, CsvStorage)
        assert isinstance(storage.shelf, LocalShelf)
        return storage.shelf

    def test_a_kind_that_there_is_not(self) -> None:
        with pytest.raises(InternalError, match="`parqet`"):
            load_pin({"kind": "parqet"})

    def test_of_a_reading(self, tmp_path: Path) -> None:
        use, storages = use_of({"id": INTEGER}), self.storages(tmp_path)
        found = storages.of_location(Location("lake", "path", path="a", options=(("decimal", ","),)), use=use)
        assert self.shelf(found) == LocalShelf(tmp_path, tmp_path / "lake")
        assert isinstance(found, CsvStorage)
        assert found.format == CsvFormat(Dialect(delimiter=";", decimal=","))
        for name, word in (("nowhere", "no datasource"), ("off", "disabled")):
            problem = world.failure(storages.of_source, name, use=use).problem
            assert isinstance(problem, DataLoad)
            assert word in problem.detail
            assert f"`{name}`" in problem.detail

    def test_of_a_record(self, tmp_path: Path) -> None:
        storages, use = self.storages(tmp_path), use_of({"id": INTEGER})
        own = StoredFiles(CsvFormat(Dialect(delimiter="|")), "f", "d", ())
        local = storages.of_record(own, use=use)
        assert self.shelf(local) == LocalShelf(tmp_path)
        assert isinstance(local, CsvStorage)
        assert local.format == own.format
        elsewhere = replace(own, datasource_id="lake")
        assert self.shelf(storages.of_record(elsewhere)) == LocalShelf(tmp_path, tmp_path / "lake")
        assert self.shelf(storages.of_record(elsewhere, use=use)) == LocalShelf(tmp_path, tmp_path / "lake")
        unknown = replace(own, datasource_id="off")
        assert isinstance(world.failure(storages.of_record, unknown, use=use).problem, DataLoad)

    def test_of_an_output(self, tmp_path: Path) -> None:
        lake, own = Destination("csv", "t", "lake", options=(("decimal", ","),)), Destination("csv", "t")
        storages = self.storages(tmp_path)
        found = storages.of_destination(lake)
        assert self.shelf(found) == LocalShelf(tmp_path, tmp_path / "lake")
        assert isinstance(found, CsvStorage)
        assert found.format == CsvFormat(Dialect(delimiter=";", decimal=","))
        assert self.shelf(storages.of_destination(own)) == LocalShelf(tmp_path)
        box = tmp_path / "box"
        drafts = self.storages(tmp_path, box)
        assert self.shelf(drafts.of_destination(lake)) == LocalShelf(tmp_path, box / "lake", box)
        assert self.shelf(drafts.of_destination(own)) == LocalShelf(tmp_path, box / "files", box)
        elsewhere = self.storages(tmp_path, source_of("csv", "box", path_prefix="drafts"))
        assert self.shelf(elsewhere.of_destination(lake)) == LocalShelf(tmp_path, tmp_path / "drafts")

    def test_drivers_are_missed_for_active_datasources_alone(self) -> None:
        text = "datasource: {{id: s, type: sql, options: {{url: '{}'}}, status: {}}}"

        def missing(url: str, status: str = "active") -> int:
            return len(list(check_drivers(sound(text.format(url, status)).datasources.values())))

        assert missing("sqlite:///a.db") == 0
        assert missing("oracle://host/db") == 1
        assert missing("oracle://host/db", "disabled") == 0


def test_a_folder_that_is_not_in_an_object_store_has_no_endpoint() -> None:
    def keys(kind: str, options: str) -> list[str]:
        return [problem.key for problem in load(datasource(kind, options))[1] if isinstance(problem, InvalidValue)]

    assert keys("csv", "{path_prefix: 's3://b/x', endpoint: 'http://h', region: r}") == []
    assert keys("csv", "{path_prefix: a, endpoint: 'http://h', region: r}") == ["endpoint", "region"]
    assert keys("csv", "{path_prefix: 'hdfs://h/x', region: r}") == ["region"]
    assert keys("csv", "{path_prefix: 'HDFS://h/x', region: r}") == ["region"]
    assert keys("csv", '{path_prefix: "a\\0b"}') == ["path_prefix"]


def test_problems_of_a_copy_name_the_file_that_people_know() -> None:
    use = use_of({"id": INTEGER})

    def fail(problem: RunFailed) -> None:
        with named_as({"/tmp/copy": "s3://b/rows"}):
            raise problem

    problem = world.failure(fail, loading_failed(use, "`/tmp/copy` is empty")).problem
    assert isinstance(problem, DataLoad)
    assert problem.detail == "`s3://b/rows` is empty"
    other = writing_failed("/tmp/copy", "full")
    assert world.failure(fail, other) is other


def test_rows_of_files_lack_what_other_periods_have(tmp_path: Path) -> None:
    """The first rows of a registered dataset have all of its columns."""
    for name, text in (("a", "id,Net\n1,x\n"), ("b", "id\n2\n")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "rows.csv").write_text(text)
    stored = StoredFolders(CsvFormat(Dialect()), ("a", "b"), ("id", "net"))
    storage = Storages(tmp_path, {}).of_record(stored)
    columns = {"id": INTEGER, "net": TEXT}
    assert storage.sample(stored, columns, 5) == [{"id": 1, "net": "x"}, {"id": 2, "net": None}]
    assert storage.sample(stored, columns, 1) == [{"id": 1, "net": "x"}]

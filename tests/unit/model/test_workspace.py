"""The workspace and its environments."""

import pytest

from dobonomodo.model import SparkSettings, Workspace
from dobonomodo.problems.definition import UnknownReference
from tests.unit.model.loading import found, sound

TEXT = """
workspace:
  name: sales
  sandbox: sandbox
  spark: {master: "local[*]", conf: {spark.sql.shuffle.partitions: 4, a: x}}
  environments:
    prod: {store: "postgresql://host/db", spark: {remote: "sc://host", conf: {a: y}}}
    plain:
"""


def test_defaults() -> None:
    workspace = sound("").workspace
    assert (workspace.store, workspace.sandbox) == ("sqlite:///.dobo/store.db", ".dobo/sandbox")
    assert workspace.spark == SparkSettings()
    assert (workspace.figures, workspace.locale) == ("on", "en")


@pytest.mark.parametrize("text", ["{figures: 'yes'}", "{figures: false}", "{locale: klingon}", "{locale: DE}"])
def test_figures_are_on_or_off_and_locales_are_known(text: str) -> None:
    (problem,) = found(f"workspace: {text}")
    assert problem[0] == "INVALID_VALUE"


def test_an_environment_changes_what_it_mentions() -> None:
    workspace = sound(TEXT.replace("    plain:\n", "")).workspace
    prod = workspace.in_environment("prod").value
    assert prod is not None
    assert (prod.store, prod.sandbox, prod.name) == ("postgresql://host/db", "sandbox", "sales")
    assert prod.spark == SparkSettings(remote="sc://host", conf={"spark.sql.shuffle.partitions": "4", "a": "y"})
    assert workspace.in_environment(None).value is workspace


def test_an_unknown_environment_is_a_problem() -> None:
    value, (problem,) = Workspace.from_data({"environments": {"prod": {}}}).in_environment("prd")
    assert value is None
    assert isinstance(problem, UnknownReference)
    assert problem.known == ("prod",)


def test_spark_is_reached_in_one_way() -> None:
    assert found("workspace: {spark: {master: a, remote: b}}") == [("INVALID_VALUE", "remote")]


def test_references_of_environments_are_checked() -> None:
    text = "workspace: {default_resolver: a, environments: {prod: {default_resolver: b}}}"
    assert found(text) == [("UNKNOWN_REFERENCE", "a"), ("UNKNOWN_REFERENCE", "b")]


@pytest.mark.parametrize(
    "text",
    [
        "{sandbox: 's3a://b/x'}",
        "{environments: {prod: {sandbox: 's3a://b/x'}}}",
    ],
)
def test_a_sandbox_is_a_folder(text: str) -> None:
    assert found(f"workspace: {text}") == [("INVALID_VALUE", "s3a://b/x")]


def test_scratch_is_a_folder_or_an_address() -> None:
    assert found("workspace: {scratch: 's3a://b/x', environments: {prod: {scratch: /mnt/shared}}}") == []
    assert [code for code, _ in found('workspace: {scratch: "/mnt/\\a", environments: {prod: {scratch: "/\\a"}}}')] == [
        "INVALID_VALUE"
    ] * 2

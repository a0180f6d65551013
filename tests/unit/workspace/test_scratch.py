"""Scratch in an object store, as far as it needs no Spark: what is refused, and what is removed."""

from __future__ import annotations

from pathlib import Path

import pytest

from dobonomodo.problems.package import PackageMissing
from tests.world import Folder, refusal


def make(root: Path, settings: str) -> Folder:
    return Folder(root).put("dobo.yaml", f"workspace: {{{settings}}}\n")


def codes(folder: Folder, **more: str) -> list[tuple[str, str]]:
    problems = folder.open(**more).problems()
    return [
        (each.code, each.span.source.text[each.span.start : each.span.end] if each.span else "") for each in problems
    ]


def test_an_address_is_taken(tmp_path: Path) -> None:
    workspace = make(tmp_path, 'scratch: "s3a://bucket/dobo"').open()
    assert list(workspace.problems()) == []
    assert str(workspace._files.transport) == "s3://bucket/dobo"
    assert workspace._files.runs == workspace.root / ".dobo/runs"
    assert list(make(tmp_path, 'scratch: "hdfs://name:8020/dobo"').open().problems()) == []
    shared = make(tmp_path, "scratch: /mnt/shared").open()
    assert shared._files.transport is None
    assert (shared._files.runs, shared._files.are_runs_shared) == (Path("/mnt/shared"), True)


@pytest.mark.parametrize(
    "address", ["ftp://name/dobo", "hdfs://name", "s3://bucket", "s3://bucket/a b", "az://box/dobo"]
)
def test_one_that_cannot_be_followed_is_refused(tmp_path: Path, address: str) -> None:
    """In every environment, at its place."""
    folder = make(tmp_path, f'scratch: "{address}", environments: {{prod: {{scratch: "{address}"}}}}')
    assert codes(folder) == [("INVALID_VALUE", address)] * 2


def test_commands_refuse_it_too(tmp_path: Path) -> None:
    workspace = make(tmp_path, 'scratch: "ftp://name/dobo"').with_store().open()
    assert [each.code for each in refusal(workspace.clean)] == ["INVALID_VALUE"]


@pytest.mark.parametrize(
    "address", ["s3://AKIA:open-sesame@bucket/dobo", "s3://bucket/dobo?secret_access_key=open-sesame"]
)
def test_a_secret_is_refused_and_not_shown(tmp_path: Path, address: str) -> None:
    problems = make(tmp_path, f'scratch: "{address}"').open().problems()
    assert [each.code for each in problems] == ["SECRET_IN_DEFINITION"]
    assert not any("open-sesame" in each.message() for each in problems)
    assert "in a profile" in (problems[0].hint() or "")


def test_the_package_is_needed_where_the_address_is_in_force(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dobonomodo.problems.package._is_installed", lambda name: name != "obstore")
    folder = make(tmp_path, 'environments: {prod: {scratch: "s3://bucket/dobo"}}')
    assert list(folder.open().problems()) == []
    (problem,) = folder.open(environment="prod").problems()
    assert isinstance(problem, PackageMissing)
    assert problem.extras == ("objects",)

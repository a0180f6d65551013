from __future__ import annotations

from pathlib import Path

import pytest

from dobonomodo.problems import Rejected
from dobonomodo.problems.run import CredentialNotFound
from dobonomodo.storage.secret import find_secret

SECRET = "größe: \n two lines"


@pytest.fixture(autouse=True)
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SECRET_OF_TESTS", f"{SECRET}\n")
    (tmp_path / "secret").write_bytes(f"{SECRET}\r\n\n".encode())
    (tmp_path / "folder").mkdir()
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    return tmp_path


def test_a_secret_is_in_the_environment_or_in_a_file(workspace: Path) -> None:
    """The line that an editor ends a file with is no part of it."""
    assert find_secret(None, root=workspace, owner="it") is None
    assert find_secret("env://SECRET_OF_TESTS", root=workspace, owner="it") == f"{SECRET}\n"
    assert find_secret("file://secret", root=workspace, owner="it") == SECRET
    assert find_secret(f"file://{workspace / 'secret'}", root=Path("/nowhere"), owner="it") == SECRET


@pytest.mark.parametrize(
    ("reference", "reason"),
    [
        ("env://SECRET_OF_NOBODY", "is not set"),
        ("file://gone", "No such file or directory"),
        ("file://folder", "Is a directory"),
        ("file://binary", "cannot be read"),
    ],
)
def test_a_secret_that_is_not_there(workspace: Path, reference: str, reason: str) -> None:
    with pytest.raises(Rejected) as refused:
        find_secret(reference, root=workspace, owner="datasource `x`")
    (problem,) = refused.value.problems
    assert isinstance(problem, CredentialNotFound)
    assert (problem.owner, problem.reference, problem.reason) == ("datasource `x`", reference, reason)

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dobonomodo.storage.access import Access, carry


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

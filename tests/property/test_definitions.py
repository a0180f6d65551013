"""Any data at all gives a definition or problems."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dobonomodo.model import Entity, Places
from dobonomodo.model.definitions import ENTITIES

KEYS = sorted(
    {field.alias or name for entity in ENTITIES for name, field in entity.model_fields.items()}
    | {
        "columns",
        "strategy",
        "type",
        "seq",
        "order",
        "arguments",
        "selector",
        "target",
        "from",
        "to",
        "starts",
        "every",
        "path",
    }
)
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 40),
    st.sampled_from(["", "a", "path", "table", "delete", "csv", "2026-01-01", "{{x}}"]),
)
DATA = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=6),
    max_leaves=25,
)


@given(kind=st.sampled_from(ENTITIES), data=DATA)
def test_any_data_gives_an_entity_or_problems(kind: type[Entity], data: object) -> None:
    loaded = kind.load(Places.of_data(data))
    assert (loaded.value is None) == bool(loaded.problems)
    for problem in loaded.problems:
        assert problem.message()
        problem.hint()

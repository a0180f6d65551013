"""What an expression can see: the columns of the rows, joined tables, selectors, parameters, and the keys of a group."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from dobonomodo.formula.typed import ColumnRef
from dobonomodo.formula.types import Type
from dobonomodo.problems import Passage


class Columns(Mapping[str, Type]):
    """Types by column name. Names keep their spelling and are found in any case, the exact one first."""

    def __init__(self, types: Mapping[str, Type], *, synonyms: Mapping[str, str] | None = None) -> None:
        self._types = dict(types)
        self._stored = {name.casefold(): name for name in reversed(self._types)}
        for synonym, name in (synonyms or {}).items():
            self._stored.setdefault(synonym.casefold(), name)

    def __getitem__(self, name: str) -> Type:
        return self._types[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._types)

    def __len__(self) -> int:
        return len(self._types)

    def spelling(self, name: str) -> str | None:
        """The stored name that ``name`` refers to, or None."""
        return name if name in self._types else self._stored.get(name.casefold())


NO_COLUMNS = Columns({})
PARAM = "param"
"""The qualifier of parameters: `param.uplift`."""
MADE_BY = "MADE_BY"
"""Selects the rows that an operation created, by its name."""
MAKER = "_operation_seq"
"""The column that has the number of the operation that made a row."""


@dataclass(frozen=True, slots=True)
class Scope:
    """The names that are visible at one point of a project."""

    columns: Columns = field(default_factory=lambda: NO_COLUMNS)
    state: str | None = None
    """What an expression calls these rows, where they are not the current ones."""
    table: str | None = None
    """The logical name of the rows' own table; `orders.amount` and `amount` are then the same."""
    joined: Mapping[str, Columns] = field(default_factory=dict)
    selectors: Mapping[str, Passage] = field(default_factory=dict)
    parameters: Columns | None = None
    """The parameters of the project; None where formulas cannot use any."""
    makers: Mapping[str, tuple[int, ...]] | None = None
    """The numbers of the operations that make rows, by name; None where rows are not made by operations."""
    idle: frozenset[str] = frozenset()
    """The names of the operations that make no rows."""
    upcoming: frozenset[str] = frozenset()
    """Columns that the same update creates, and that its expressions therefore cannot see yet."""
    group_by: tuple[ColumnRef, ...] | None = None
    """The keys of the groups where aggregate functions are allowed; None where single rows are computed."""
    windows: bool = False
    """Whether windows are allowed."""

    def resolve(self, name: str, qualifier: str | None = None) -> ColumnRef | None:
        """The column that a written name refers to."""
        if qualifier is None or self.is_main(qualifier):
            columns, alias = self.columns, None
        else:
            alias = self.alias(qualifier)
            columns = self.joined[alias] if alias is not None else NO_COLUMNS
        stored = columns.spelling(name)
        return None if stored is None else ColumnRef(stored, alias, columns[stored])

    def names_parameter(self, qualifier: str | None) -> bool:
        """Whether what follows a qualifier is a parameter; a table or alias of that name comes first."""
        if qualifier is None or qualifier.casefold() != PARAM:
            return False
        return not self.is_main(qualifier) and self.alias(qualifier) is None

    def is_main(self, qualifier: str) -> bool:
        """Whether a qualifier names the rows' own table."""
        return self.table is not None and qualifier.casefold() == self.table.casefold()

    def alias(self, qualifier: str) -> str | None:
        """The joined alias that a qualifier names, in its own spelling."""
        if qualifier in self.joined:
            return qualifier
        return next((alias for alias in self.joined if alias.casefold() == qualifier.casefold()), None)

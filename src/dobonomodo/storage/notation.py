"""The notation of numbers and dates in a text file, and its conversion to the plain form that ``values.py`` parses.

A text is converted only if it follows the notation exactly; any other text is refused, so that a point is never read as a
comma.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from dobonomodo.formula import Type
from dobonomodo.formula.types import DATE, INTEGER, TIMESTAMP, DecimalType

if TYPE_CHECKING:
    import pyarrow

_PARTS = {"yyyy": "[0-9]{4}", "mm": "[0-9]{2}", "dd": "[0-9]{2}", "m": "[0-9]{1,2}", "d": "[0-9]{1,2}"}
_TOKEN = re.compile(r"y+|m+|d+|[^ymd]+", re.IGNORECASE)
_SEPARATOR = re.compile(r"[./ -]{1,2}")
_REST = "([ T].*)?"
"""What follows the day of a time."""
_YEAR, _MONTH, _DAY = "y", "m", "d"


@dataclass(frozen=True, slots=True)
class DateFormat:
    """The order and form of year, month and day, such as ``dd.mm.yyyy``."""

    text: str

    @classmethod
    def parse(cls, text: str) -> DateFormat:
        """The format that a definition names; raises ValueError for one that is unclear."""
        form = cls(text)
        parts = [part for part in form._tokens if part in _PARTS]
        others = [part for part in form._tokens if part not in _PARTS]
        if sorted(part[0] for part in parts) != [_DAY, _MONTH, _YEAR]:
            raise ValueError
        if not all(_SEPARATOR.fullmatch(other) for other in others):
            raise ValueError
        if any(len(part) == 1 for part in parts) and len(others) < 2:
            raise ValueError  # without separators nobody knows where such a part ends
        return form

    @property
    def _tokens(self) -> list[str]:
        return _TOKEN.findall(self.text.lower())

    @property
    def pattern(self) -> str:
        """A regular expression with a group for each part, in the order of the format."""
        return "".join(f"({_PARTS[part]})" if part in _PARTS else re.escape(part) for part in self._tokens)

    @property
    def as_plain(self) -> str:
        """What replaces a text that matches: year, month and day, which may lack a zero in front."""
        order = [part[0] for part in self._tokens if part in _PARTS]
        return "-".join(rf"\{order.index(part) + 1}" for part in (_YEAR, _MONTH, _DAY))

    @property
    def from_plain(self) -> str:
        """What replaces a plain day in which year, month and day are groups."""
        groups = {_YEAR: r"\1", _MONTH: r"\2", _DAY: r"\3"}
        return "".join(groups[part[0]] if part in _PARTS else part for part in self._tokens)


@dataclass(frozen=True)
class Notation:
    """How numbers and dates are written."""

    decimal: str = "."
    thousands: str | None = None
    date_format: str | None = None
    """None for year-month-day."""

    @cached_property
    def _dates(self) -> DateFormat | None:
        return DateFormat.parse(self.date_format) if self.date_format is not None else None

    def characters(self, kind: Type) -> str:
        """The characters that written values of a type may have, in addition to letters and digits."""
        if isinstance(kind, DecimalType) or kind == INTEGER:
            return f"-{self.decimal}"
        return f"-:.+ {self.date_format or ''}"

    def describe(self, kind: Type) -> str | None:
        """How a value of a type has to be written, where that is not the plain form."""
        if isinstance(kind, DecimalType) and self.decimal != ".":
            return f"with decimal sign `{self.decimal}`"
        if kind in (DATE, TIMESTAMP) and self.date_format is not None:
            return f"in the form `{self.date_format}`"
        return None

    def read(self, texts: pyarrow.Array, kind: Type) -> pyarrow.Array:
        """Texts in the plain form; NULL for those that are not written as the notation says."""
        if isinstance(kind, DecimalType) or kind == INTEGER:
            return self._read_numbers(texts, whole=kind == INTEGER)
        if kind in (DATE, TIMESTAMP) and self._dates is not None:
            return _read_days(texts, self._dates, timed=kind == TIMESTAMP)
        return texts

    def _read_numbers(self, texts: pyarrow.Array, *, whole: bool) -> pyarrow.Array:
        import pyarrow.compute as pc

        if self.decimal == "." and self.thousands is None:
            return texts
        digits = "[0-9]+"
        if self.thousands is not None:
            digits = f"([0-9]{{1,3}}({re.escape(self.thousands)}[0-9]{{3}})+|[0-9]+)"
        point = re.escape(self.decimal)
        behind = "" if whole else f"({point}[0-9]*)?([eE][+-]?[0-9]+)?"
        bare = "" if whole else f"|{point}[0-9]+([eE][+-]?[0-9]+)?"
        kept = _keep_matching(texts, f"^[+-]?({digits}{behind}{bare})$")
        if self.thousands is not None:
            kept = pc.replace_substring(kept, self.thousands, "")
        return pc.replace_substring(kept, self.decimal, ".") if self.decimal != "." else kept

    def write(self, texts: pyarrow.Array, kind: Type) -> pyarrow.Array:
        """The plain form as the notation has it; thousands are never separated."""
        import pyarrow.compute as pc

        if isinstance(kind, DecimalType) and self.decimal != ".":
            return pc.replace_substring(texts, ".", self.decimal)
        if kind in (DATE, TIMESTAMP) and self._dates is not None:
            return pc.replace_substring_regex(
                texts, "^([0-9]{4})-([0-9]{2})-([0-9]{2})", self._dates.from_plain, max_replacements=1
            )
        return texts


PLAIN = Notation()


def _read_days(texts: pyarrow.Array, form: DateFormat, *, timed: bool) -> pyarrow.Array:
    import pyarrow.compute as pc

    pattern = f"^{form.pattern}{_REST if timed else ''}$"
    kept = _keep_matching(texts, pattern)
    plain = pc.replace_substring_regex(kept, pattern, form.as_plain + (r"\4" if timed else ""))
    plain = pc.replace_substring_regex(plain, "^([0-9]{4})-([0-9])-", r"\1-0\2-")
    return pc.replace_substring_regex(plain, "^([0-9]{4}-[0-9]{2})-([0-9])([^0-9].*)?$", r"\1-0\2\3")


def _keep_matching(texts: pyarrow.Array, pattern: str) -> pyarrow.Array:
    import pyarrow as pa
    import pyarrow.compute as pc

    found = pc.match_substring_regex(texts, pattern)
    if pc.all(found, min_count=0).as_py():
        return texts
    return pc.if_else(found, texts, pa.scalar(None, texts.type))


# --- suspicions

_EUROPEAN = re.compile(r"[+-]?([0-9]{1,3}(\.[0-9]{3})+|[0-9]+)?,[0-9]+")
_ENGLISH = re.compile(r"[+-]?[0-9]{1,3}(,[0-9]{3})+(\.[0-9]*)?")
_GROUPED = re.compile("[+-]?[0-9]{1,3}([ '\u00a0\u202f\u2019])[0-9]{3}(\\1[0-9]{3})*([.,][0-9]*)?")
_POINTED = re.compile(r"[+-]?[0-9]+\.[0-9]+")
_FORMATS = (
    "yyyy-mm-dd", "dd.mm.yyyy", "d.m.yyyy", "dd/mm/yyyy", "mm/dd/yyyy", "d/m/yyyy", "m/d/yyyy", "yyyymmdd", "yyyy/mm/dd",
    "dd-mm-yyyy",
)  # fmt: skip


def suggest_notation(texts: list[str], kind: Type, notation: Notation) -> str | None:
    """The setting with which all given texts would be valid values of a type; None if it is ambiguous."""
    shown = [text.strip() for text in texts]
    if not shown:
        return None
    if kind in (DATE, TIMESTAMP):
        return _suggest_dates([text.split(" ")[0].split("T")[0] for text in shown], notation)
    if isinstance(kind, DecimalType) or kind == INTEGER:
        return _suggest_numbers(shown, notation)
    return None


def find_date_format(texts: list[str]) -> str | None:
    """The one format that all texts have; None if there is none, or if more than one gives different days."""
    found = find_date_formats(texts)
    return found[0] if len(found) == 1 else None


def find_date_formats(texts: list[str]) -> tuple[str, ...]:
    """The formats that all texts have, of those that give the same days the first."""
    import pyarrow as pa

    fitting: dict[tuple[str, ...], str] = {}
    for name in _FORMATS:
        plain = _read_days(pa.array(texts, pa.string()), DateFormat.parse(name), timed=False).to_pylist()
        if None not in plain and all(_is_day(text) for text in plain):
            fitting.setdefault(tuple(plain), name)
    return tuple(fitting.values())


def _is_day(text: str) -> bool:
    from datetime import date

    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


def _suggest_dates(texts: list[str], notation: Notation) -> str | None:
    found = find_date_format(texts)
    if found is None or found == (notation.date_format or "yyyy-mm-dd"):
        return None
    return f"dates look like {found}: set `date_format: {found}`"


def _suggest_numbers(texts: list[str], notation: Notation) -> str | None:
    for pattern, decimal, thousands in ((_EUROPEAN, ",", "."), (_ENGLISH, ".", ","), (_POINTED, ".", None)):
        if not all(pattern.fullmatch(text) for text in texts):
            continue
        separated = thousands is not None and any(thousands in text for text in texts)
        if (decimal, thousands if separated else notation.thousands) == (notation.decimal, notation.thousands):
            continue
        more = f' and `thousands: "{thousands}"`' if separated else ""
        return f'numbers look like `{texts[0]}`: set `decimal: "{decimal}"`{more}'
    found = [_GROUPED.fullmatch(text) for text in texts]
    signs = {match[1] for match in found if match is not None}
    if None not in found and len(signs) == 1 and signs != {notation.thousands}:
        return f'numbers look like `{texts[0]}`: set `thousands: "{signs.pop()}"`'
    return None

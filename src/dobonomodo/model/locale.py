"""Number formats for display: the thousands separator and the decimal separator, by locale."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal, get_args

LocaleName = Literal["en", "de", "de-CH", "es", "fr", "it", "nl", "pt", "sv"]

_NARROW_SPACE, _SPACE, _APOSTROPHE = "\u202f", "\u00a0", "\u2019"


@dataclass(frozen=True, slots=True)
class Locale:
    """Thousands separator and decimal separator."""

    group: str
    point: str

    def show(self, value: Decimal | int) -> str:
        """A number with all its digits: none is rounded, and zeros of its scale stay."""
        return f"{Decimal(value):,f}".translate({ord(","): self.group, ord("."): self.point})

    def show_change(self, value: Decimal | int) -> str:
        """The same with its sign; no change has none."""
        return f"+{self.show(value)}" if value > 0 else self.show(value)


_SIGNS: Mapping[str, Locale] = {
    "en": Locale(",", "."),
    "de-CH": Locale(_APOSTROPHE, "."),
    "fr": Locale(_NARROW_SPACE, ","),
    "sv": Locale(_SPACE, ","),
}
_OTHERS = Locale(".", ",")
LOCALES: Mapping[str, Locale] = {name: _SIGNS.get(name, _OTHERS) for name in get_args(LocaleName)}
ENGLISH = LOCALES["en"]

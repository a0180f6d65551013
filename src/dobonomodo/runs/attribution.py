"""Why two runs differ: the separable causes, snapshots with some of them exchanged, and contributions that add up exactly.

Pure: other modules compute the result of a snapshot.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction
from itertools import combinations, pairwise
from math import factorial, floor

from dobonomodo.model.plain import Document, hash_document
from dobonomodo.plan.dataset import recorded_key
from dobonomodo.runs.figures import EXACT

SEPARATED_AT_MOST = 3
"""How many causes are exchanged one at a time; the smallest of more are put together."""

InputHashes = Mapping[str, Sequence[Sequence[str | None]]]


class Cause(StrEnum):
    """The kinds of causes of a difference."""

    INPUT = "input"
    DATASET = "dataset"
    OPERATION = "operation"
    PROJECT = "project"
    FACTS = "facts"
    """The clock, the as-of day, the period and the parameters."""
    PROGRAM = "program"


@dataclass(frozen=True, slots=True)
class Factor:
    """One cause that differs between two runs."""

    cause: Cause
    id: str
    name: str
    """For people."""


@dataclass(frozen=True, slots=True, eq=False)
class Pinned:
    """A run, reduced to everything that its result depends on."""

    snapshot: Document
    hashes: InputHashes


# --- what differs


def find_factors(before: Pinned, after: Pinned, *, reads_clock: bool) -> tuple[Factor, ...]:
    """The causes whose fingerprints differ. ``reads_clock`` says whether a formula of either run depends on its clock."""
    one, other = before.snapshot, after.snapshot
    found = list(_changed_datasets(before, after))
    found += _changed_operations(_project(one), _project(other))
    if _settings(_project(one)) != _settings(_project(other)):
        found.append(Factor(Cause.PROJECT, "", "settings of the project"))
    facts = [name for name in _FACTS if one.get(name) != other.get(name) and (name != "started_at" or reads_clock)]
    if facts:
        found.append(Factor(Cause.FACTS, "", ", ".join(_FACTS[name] for name in facts)))
    return tuple(found)


_FACTS = {"started_at": "clock", "as_of": "as-of day", "period": "period", "parameters": "parameters"}


def _project(snapshot: Document) -> Document:
    found: Document = snapshot["project"]["document"]
    return found


def _changed_datasets(before: Pinned, after: Pinned) -> Iterator[Factor]:
    main = _project(after.snapshot)["input_dataset_id"]
    shared = {each["dataset"] for each in before.snapshot["readings"]}
    for name in dict.fromkeys(each["dataset"] for each in after.snapshot["readings"]):
        if name in shared and _differs(before, after, name):
            is_input = name == main
            cause = Cause.INPUT if is_input else Cause.DATASET
            yield Factor(cause, name, f"rows of input {name}" if is_input else f"dataset {name}")


def _differs(before: Pinned, after: Pinned, dataset: str) -> bool:
    """Whether the definition of a dataset differs, or rows of it that both runs read."""
    if _documents(before, dataset) != _documents(after, dataset):
        return True
    one, other = _rows(before, dataset), _rows(after, dataset)
    return any(one[place] != other[place] for place in one if place in other)


def _documents(run: Pinned, dataset: str) -> list[Document]:
    return [
        {key: value for key, value in each["document"].items() if key not in ("name", "description")}
        for each in run.snapshot["datasets"]
        if each["document"]["id"] == dataset
    ]


def _rows(run: Pinned, dataset: str) -> dict[str, str]:
    """Fingerprints of the rows of a dataset, as a run read them, by table and periods."""
    found = {}
    for each in run.snapshot["readings"]:
        if each["dataset"] == dataset:
            pins = (run.snapshot["inputs"] or {}).get(recorded_key(each), ())
            rows = [
                {
                    "period": pin.get("period"),
                    "optional": pin.get("optional"),
                    "rows": pin.get("fingerprint") or _hashes_of(run, recorded_key(each), number) or pin["files"],
                }
                for number, pin in enumerate(pins)
            ]
            found[_place(each)] = hash_document({"rows": rows})
    return found


def _place(reading: Document) -> str:
    """Identifies a reading: a table, and its periods if they are not those of the run."""
    return hash_document({name: reading.get(name) for name in ("dataset", "table", "periods")})


def _hashes_of(run: Pinned, key: str, number: int) -> list[str | None] | None:
    known = run.hashes.get(key, ())
    return list(known[number]) if number < len(known) and None not in known[number] else None


def _changed_operations(one: Document, other: Document) -> Iterator[Factor]:
    before, after = _operations(one), _operations(other)
    for seq in sorted({*before, *after}):
        if _essence(before.get(seq)) != _essence(after.get(seq)):
            known = after.get(seq) or before[seq]
            change = "" if seq in before and seq in after else " (new)" if seq in after else " (removed)"
            yield Factor(Cause.OPERATION, str(seq), f"operation {seq} {known.get('name') or known['type']}{change}")


def _operations(project: Document) -> dict[int, Document]:
    return {each["seq"]: each for each in project["operations"]}


def _essence(operation: Document | None) -> Document | None:
    if operation is None:
        return None
    return {key: value for key, value in operation.items() if key not in ("name", "description")}


_OWN = ("operations", "name", "description", "owner", "input_dataset_version")


def _settings(project: Document) -> Document:
    return {key: value for key, value in project.items() if key not in _OWN}


# --- snapshots with causes exchanged


def mix(
    before: Pinned,
    after: Pinned,
    factors: Iterable[Factor],
    taken: Iterable[Factor],
    *,
    prefer: frozenset[str] = frozenset(),
) -> Pinned:
    """The snapshot of the earlier run, with the factors ``taken`` from the later one; equal parts come from the later run.

    Of datasets that do not differ, those that are preferred are read as before: their rows may be there alone.
    The fingerprint of the project is left out: it follows from the operations that come together here.
    """
    chosen = frozenset(taken)
    named = tuple(factors)
    held = {(factor.cause, factor.id) for factor in named if factor not in chosen}
    sides = _choose_sides(before, after, named, held, prefer)
    facts = before.snapshot if (Cause.FACTS, "") in held else after.snapshot
    readings, inputs, hashes = _mix_readings(before, after, sides)
    project = _mix_project(before, after, held)
    if (version := _input_version(project, sides)) is not None:
        project = {**project, "input_dataset_version": version}
    sources = {each["id"]: each for side in (before, after) for each in side.snapshot["datasources"]}
    snapshot = {
        **after.snapshot,
        "project": {**after.snapshot["project"], "document": project},
        **{name: facts.get(name) for name in ("started_at", "as_of", "period")},
        "parameters": facts.get("parameters", {}),
        "datasets": [
            each for name, side in sides.items() for each in side.snapshot["datasets"] if each["document"]["id"] == name
        ],
        "datasources": list(sources.values()),
        "readings": readings,
        "inputs": inputs,
    }
    return Pinned(snapshot, hashes)


def _choose_sides(
    before: Pinned, after: Pinned, factors: Sequence[Factor], held: set[tuple[Cause, str]], prefer: frozenset[str]
) -> dict[str, Pinned]:
    """By dataset, the run whose rows are read; a dataset that only one run reads comes from that run."""
    one, other = ({each["dataset"] for each in run.snapshot["readings"]} for run in (before, after))
    changed = {factor.id for factor in factors if factor.cause in (Cause.INPUT, Cause.DATASET)}
    sides = {}
    for name in sorted(one | other):
        is_held = bool({(Cause.INPUT, name), (Cause.DATASET, name)} & held)
        is_before = name not in other or is_held or (name in one and name in prefer and name not in changed)
        sides[name] = before if is_before else after
    return sides


def _mix_project(before: Pinned, after: Pinned, held: set[tuple[Cause, str]]) -> Document:
    one, other = _project(before.snapshot), _project(after.snapshot)
    operations = {**_operations(other)}
    for seq, operation in _operations(one).items():
        if (Cause.OPERATION, str(seq)) in held:
            operations[seq] = operation
    for seq in set(_operations(other)) - set(_operations(one)):
        if (Cause.OPERATION, str(seq)) in held:
            del operations[seq]
    settings = _settings(one if (Cause.PROJECT, "") in held else other)
    own = {name: other[name] for name in _OWN if name in other}
    return {**settings, **own, "operations": [operations[seq] for seq in sorted(operations)]}


def _mix_readings(
    before: Pinned, after: Pinned, sides: Mapping[str, Pinned]
) -> tuple[list[Document], dict[str, object], dict[str, Sequence[Sequence[str | None]]]]:
    """Every reading of either run, with the rows of the run that its dataset is taken from."""
    readings: dict[str, Document] = {}
    inputs: dict[str, object] = {}
    hashes: dict[str, Sequence[Sequence[str | None]]] = {}
    for each in (*before.snapshot["readings"], *after.snapshot["readings"]):
        side = sides[each["dataset"]]
        source = _find_reading(side.snapshot, each)
        if source is None:
            # Only the other run reads these periods of it.
            side, source = after if side is before else before, each
        reading = {**each, **{name: source[name] for name in ("version", "resolver", "locations")}}
        key = recorded_key(reading)
        readings[key] = reading
        inputs[key] = (side.snapshot["inputs"] or {}).get(recorded_key(source), [])
        hashes[key] = side.hashes.get(recorded_key(source), ())
    return list(readings.values()), inputs, hashes


def _find_reading(snapshot: Document, wanted: Document) -> Document | None:
    """The reading of the same table and periods in another run: by the same operation, else by any."""
    same = [each for each in snapshot["readings"] if _place(each) == _place(wanted)]
    names = ("role", "operation_seq", "alias")
    return next((each for each in same if all(each[name] == wanted[name] for name in names)), same[0] if same else None)


def _input_version(project: Document, sides: Mapping[str, Pinned]) -> int | None:
    name = project["input_dataset_id"]
    if name not in sides or "input_dataset_version" not in _project(sides[name].snapshot):
        return None
    version: int = _project(sides[name].snapshot)["input_dataset_version"]
    return version


# --- parts that add up


def share_out(factors: int, value: Callable[[frozenset[int]], Fraction]) -> list[Fraction]:
    """The contribution of each factor, averaged over all orders of exchange (Shapley values)."""
    everyone = range(factors)
    parts = [Fraction(0)] * factors
    for at in everyone:
        others = [each for each in everyone if each != at]
        for size in range(factors):
            weight = Fraction(factorial(size) * factorial(factors - size - 1), factorial(factors))
            for subset in combinations(others, size):
                parts[at] += weight * (value(frozenset({*subset, at})) - value(frozenset(subset)))
    return parts


def round_parts(parts: Sequence[Fraction], *, scale: int) -> list[Decimal]:
    """Round parts to a scale such that their sum stays exact.

    Each part is truncated; the missing units go to the parts that lost most, the first ones first.
    """
    unit = 10**scale
    cut = [floor(part * unit) for part in parts]
    missing = sum(parts, Fraction(0)) * unit - sum(cut)
    if missing.denominator != 1:
        raise AssertionError("the whole has no more digits than its parts")
    order = sorted(range(len(parts)), key=lambda at: (-(parts[at] * unit - cut[at]), at))
    for at in order[: int(missing)]:
        cut[at] += 1
    return [EXACT.scaleb(Decimal(each), -scale) for each in cut]


@dataclass(frozen=True, slots=True)
class Line:
    """One number of an output, and the contributions to its difference."""

    table: str
    column: str | None
    """None for the number of rows."""
    before: Decimal
    after: Decimal
    parts: tuple[Decimal, ...]
    """One for each cause."""
    kind: str | None = None
    """The rows that are counted, where an output has rows of several kinds; None for all of them."""

    @property
    def difference(self) -> Decimal:
        """The whole."""
        return EXACT.subtract(self.after, self.before)

    @property
    def residual(self) -> Decimal:
        """The unexplained rest: always zero."""
        left = self.difference
        for part in self.parts:
            left = EXACT.subtract(left, part)
        return left

    def to_dict(self) -> dict[str, object]:
        """As plain data."""
        return {
            "table": self.table,
            "column": self.column,
            "kind": self.kind,
            "before": self.before,
            "after": self.after,
            "difference": self.difference,
            "parts": list(self.parts),
            "residual": self.residual,
        }

    @classmethod
    def load(cls, document: Document) -> Line:
        """From plain data."""
        before, after = Decimal(document["before"]), Decimal(document["after"])
        parts = tuple(Decimal(each) for each in document["parts"])
        return cls(document["table"], document["column"], before, after, parts, document.get("kind"))


@dataclass(frozen=True, slots=True)
class Attribution:
    """What the differences between two runs come from."""

    before: str
    after: str
    causes: tuple[str, ...]
    """For people, in the order of the parts."""
    kinds: tuple[tuple[str, ...], ...]
    """The kinds of causes that each of them puts together."""
    lines: tuple[Line, ...]
    unknown: tuple[str, ...] = ()
    """Numbers that cannot be attributed, since they have more digits than Spark can sum."""
    notes: tuple[str, ...] = ()
    computed: int = 0
    """How many times the outputs were computed again."""
    by_kind: tuple[Line, ...] = ()
    """Where rows were made in several ways: the same for each kind of rows, which add up to the lines."""

    def to_dict(self) -> dict[str, object]:
        """As plain data."""
        return {
            "before": self.before,
            "after": self.after,
            "causes": [
                {"name": name, "kinds": list(kinds)} for name, kinds in zip(self.causes, self.kinds, strict=True)
            ],
            "lines": [line.to_dict() for line in self.lines],
            "unknown": list(self.unknown),
            "notes": list(self.notes),
            "computed": self.computed,
            "by_kind": [line.to_dict() for line in self.by_kind],
        }

    @classmethod
    def load(cls, document: Document) -> Attribution:
        """From plain data."""
        return cls(
            document["before"],
            document["after"],
            tuple(each["name"] for each in document["causes"]),
            tuple(tuple(each["kinds"]) for each in document["causes"]),
            tuple(Line.load(each) for each in document["lines"]),
            tuple(document["unknown"]),
            tuple(document["notes"]),
            document["computed"],
            tuple(Line.load(each) for each in document.get("by_kind", ())),
        )


def shown_lines(found: Attribution) -> list[Line]:
    """The lines without sums over details and totals: those say nothing where each kind of rows has its own."""
    by_kind: dict[tuple[str, str | None], list[Line]] = {}
    for line in found.by_kind:
        by_kind.setdefault((line.table, line.column), []).append(line)
    return [each for line in found.lines for each in by_kind.get((line.table, line.column), [line])]


def scale_of(values: Iterable[Decimal]) -> int:
    """The largest scale of some numbers."""
    exponents = (value.as_tuple().exponent for value in values)
    return max([0, *(-each for each in exponents if isinstance(each, int))])


def find_bars(line: Line) -> list[tuple[float, float]]:
    """The start and end of each bar of a waterfall, scaled to 0..1, the smaller end first."""
    points = [line.before]
    for part in line.parts:
        points.append(EXACT.add(points[-1], part))
    low, high = min(points), max(points)
    span = float(EXACT.subtract(high, low)) or 1.0
    places = [float(EXACT.subtract(point, low)) / span for point in points]
    return [(min(pair), max(pair)) for pair in pairwise(places)]

"""Infers definitions from all values of a file: a proposal that loads it unchanged.

Ambiguous values are not guessed: if two interpretations result in different numbers, the column is proposed as text, with a
note.
"""

from __future__ import annotations

import csv
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from dobonomodo.formula import Columns, Type
from dobonomodo.formula.types import BOOLEAN, DATE, INTEGER, TEXT, TIMESTAMP, DecimalType
from dobonomodo.model.plain import PlainDict
from dobonomodo.plan.dataset import DatasetUse
from dobonomodo.storage.csv import extract_csv, read_texts
from dobonomodo.storage.csv_dialect import Dialect, Encoding, make_plain
from dobonomodo.storage.diagnosis import WrongFile, diagnose_kind, is_workbook, looks_like_utf16
from dobonomodo.storage.excel import ExcelFormat, extract_excel
from dobonomodo.storage.excel_cells import WorkbookFault, find_sheets, name_cell, open_cells
from dobonomodo.storage.findings import RECORD, Findings
from dobonomodo.storage.header import NULL_TEXTS, FirstLine, Role, explain_unusable, judge_first_line
from dobonomodo.storage.notation import PLAIN, Notation, find_date_formats
from dobonomodo.storage.schema import type_of_arrow
from dobonomodo.storage.values import parse_values

if TYPE_CHECKING:
    import pyarrow

_DELIMITERS = (";", "\t", "|", ",")
"""In the order in which they are preferred: a comma may also be a decimal sign."""
_LOOKED_AT = 200
"""Records by which the separator is chosen."""
_NOTATIONS = (
    Notation("."),
    Notation(",", "."),
    Notation(".", ","),
    Notation(",", "\u00a0"),
    Notation(",", "\u202f"),
    Notation(",", " "),
    Notation(".", "'"),
    Notation(".", "\u2019"),
    Notation(".", " "),
)
_SEPARATOR_LINE = re.compile(r'"?sep=([\t -!#-~])"?', re.IGNORECASE)
"""The first line by which Excel learns the separator."""
_LEADING_ZERO = re.compile(r"[+-]?0[0-9]")
_PERIOD = re.compile(r"(?<![0-9])[12][0-9]{3}-(?:0[1-9]|1[0-2])(?![0-9])")
_USUAL_DIGITS = 15
_MOST_DIGITS = 38
_SURE_ROWS = 50
"""With fewer rows, columns are unique by chance."""
_KEYED_COLUMNS = 6
"""Columns among which a key of two columns is searched."""


_SPELLED = {"ß": "ss", "ä": "ae", "ö": "oe", "ü": "ue", "Ä": "Ae", "Ö": "Oe", "Ü": "Ue"}


class NotInferredError(Exception):
    """Why nothing can be proposed for a file."""


@dataclass(frozen=True, slots=True)
class InferredColumn:
    """A column with the type that holds all of its values."""

    name: str
    """For formulas."""
    source: str
    """In the file."""
    kind: Type
    is_key: bool = False


@dataclass(frozen=True, slots=True)
class Inferred:
    """What a file holds."""

    path: Path
    kind: str
    """The type of datasource."""
    options: Mapping[str, object]
    columns: tuple[InferredColumn, ...]
    rows: int
    notes: tuple[str, ...] = ()
    other_keys: tuple[tuple[str, ...], ...] = ()
    """Columns that identify the rows of this file too."""

    @property
    def table(self) -> str:
        """A name for the table: that of the file, without a period."""
        return name_column(_PERIOD.sub("", self.path.stem).strip("-_. ")) or "data"

    @property
    def period(self) -> str | None:
        """The period in the name of the file."""
        found = _PERIOD.search(self.path.stem)
        return found[0] if found is not None else None

    @property
    def template(self) -> str:
        """The name of the file, in which a token stands for the period."""
        return _PERIOD.sub("{{identifier}}", self.path.name)

    @property
    def key(self) -> tuple[str, ...]:
        """The columns that identify a row."""
        return tuple(column.name for column in self.columns if column.is_key)

    def dataset(self) -> PlainDict:
        """The definition of the dataset."""
        key = {"natural_key_columns": list(self.key)} if self.key else {}
        columns = [_describe_column(column) for column in self.columns]
        return {"id": self.table, **key, "main_table": {"name": self.table, "columns": columns}}


def _describe_column(column: InferredColumn) -> PlainDict:
    described: PlainDict = {"name": column.name, "type": _NAMES.get(column.kind) or str(column.kind)}
    if column.is_key:
        described["nullable"] = False
    if column.source.casefold() != column.name.casefold():
        described["source"] = column.source
    return described


_NAMES: dict[Type, str] = {TEXT: "string", INTEGER: "integer", BOOLEAN: "boolean", DATE: "date", TIMESTAMP: "timestamp"}


def infer(path: Path, *, sheet: str | None = None) -> Inferred:
    """What a file holds; raises `NotInferredError`. The proposal is tried: it loads the file."""
    with path.open("rb") as file:
        start = file.read(4)
    if is_workbook(path):
        return _infer_excel(path, sheet)
    if start == b"PAR1":
        return _infer_parquet(path)
    wrong = diagnose_kind(path, utf16=True)
    if wrong is not None:
        raise NotInferredError(f"`{path}` {wrong.what}; {wrong.remedy}")
    return _infer_csv(path)


# --- text files


def _infer_csv(path: Path) -> Inferred:
    with TemporaryDirectory() as folder:
        dialect = Dialect(encoding=_find_encoding(path))
        plain = make_plain(path, Path(folder) / "text", dialect)
        if isinstance(plain, WrongFile):
            raise NotInferredError(plain.describe(path))
        dialect, width = _find_layout(plain.path, dialect)
        plain = make_plain(path, Path(folder) / "rows", dialect)
        if isinstance(plain, WrongFile):
            raise NotInferredError(plain.describe(path))
        table = _read_all(plain.path, width, dialect)
        fields, lines = _read_first(plain.path, dialect)
        first = _judge(fields, table)
        if first.role is Role.UNUSABLE_NAMES:
            dialect = replace(dialect, skip_lines=plain.line_of(lines))
    dialect = replace(dialect, has_header=first.role is Role.NAMES)
    sources = _name_sources(fields, first.role, width)
    table = [column.slice(0 if first.role is Role.RECORD else 1) for column in table]
    found = _find_types(dict(zip(sources, table, strict=True)))
    found = replace(found, notes=(*_notes_of(first), *found.notes))
    dialect = replace(
        dialect,
        decimal=found.notation.decimal,
        thousands=found.notation.thousands,
        date_format=found.notation.date_format,
        null_values=found.null_texts,
    )
    options = {key: value for key, value in dialect.document().items() if (key, value) not in _DEFAULTS}
    rows = len(table[0]) if table else 0
    proposed = _propose(path, "csv", options, found, dict(zip(sources, table, strict=True)), rows)

    def load(use: DatasetUse, target: Path) -> Findings:
        return extract_csv(path, target, use, dialect)

    return _try(proposed, load)


_DEFAULTS = (("delimiter", ","), ("has_header", True))


def _find_encoding(path: Path) -> Encoding:
    with path.open("rb") as file:
        start = file.read(1024)
        if looks_like_utf16(start):
            return "utf-16"
        file.seek(0)
        data = file.read()
    for encoding in ("utf-8", "cp1252"):
        try:
            data.decode(encoding)
        except UnicodeDecodeError:
            continue
        return "utf-8" if encoding == "utf-8" else "cp1252"
    return "latin-1"


def _find_layout(path: Path, dialect: Dialect) -> tuple[Dialect, int]:
    """The separator that gives the most columns to the most records, lines before them, and comments."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        lines = list(islice(file, _LOOKED_AT))
    declared = _SEPARATOR_LINE.fullmatch(lines[0].rstrip("\r\n")) if lines else None
    if not any(line.strip() for line in lines[declared is not None :]):
        raise NotInferredError("the file is empty")
    comment = "#" if any(line.startswith("#") for line in lines) else None
    records = [line for line in lines[declared is not None :] if comment is None or not line.startswith(comment)]

    def rate(delimiter: str) -> tuple[int, int]:
        widths = Counter(len(row) for row in csv.reader(records, delimiter=delimiter) if row)
        # One record among others has the sign in a value.
        several = {width: count for width, count in widths.items() if width > 1 and (count > 1 or len(widths) == 1)}
        width, count = max(several.items(), key=lambda each: (each[1], each[0]), default=(1, 0))
        return count, width

    delimiter = declared[1] if declared is not None else max(_DELIMITERS, key=rate)
    _, width = rate(delimiter)
    if width == 1 and declared is None:
        delimiter = ","
        # Records that agree on no number of values are told by the first one.
        width = len(next((row for row in csv.reader(records, delimiter=delimiter) if row), [""]))
    before_all = skipped = int(declared is not None)
    reader = csv.reader(lines[before_all:], delimiter=delimiter)
    for fields in reader:
        is_comment = comment is not None and lines[skipped].startswith(comment)
        if len(fields) == width and any(map(str.strip, fields)) and not is_comment:
            break
        skipped = before_all + reader.line_num
    before = [line for line in lines[:skipped] if not (comment and line.startswith(comment))]
    is_skipped = width > 1 or declared is not None or not any(map(str.strip, before))
    skip_lines = skipped if before and is_skipped else 0
    return replace(dialect, delimiter=delimiter, comment=comment, skip_lines=skip_lines), width


def _read_first(path: Path, dialect: Dialect) -> tuple[list[str], int]:
    """The fields of the first record, and how many lines it has."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(file, delimiter=dialect.delimiter)
        return next(reader, []), reader.line_num


def _judge(fields: Sequence[str], table: Sequence[pyarrow.ChunkedArray]) -> FirstLine:
    """What the first record is, by those that follow it."""
    if len(fields) != len(table):
        return FirstLine(Role.RECORD)
    return judge_first_line(fields, [column.slice(1, _LOOKED_AT).drop_null().to_pylist() for column in table])


def _name_sources(fields: Sequence[str], role: Role, width: int) -> list[str]:
    """The names of columns in the file; where it does not tell them apart, names for formulas."""
    if role is Role.NAMES:
        return list(fields)
    return _make_names(fields if role is Role.UNUSABLE_NAMES else [""] * width)


def _notes_of(first: FirstLine) -> tuple[str, ...]:
    return (first.note,) if first.note is not None else ()


def _read_all(path: Path, width: int, dialect: Dialect) -> list[pyarrow.ChunkedArray]:
    """All records, the first one included."""
    import pyarrow as pa

    batches = [batch for _, batch in read_texts(path, width, dialect)]
    empty = [pa.array([], pa.string())]
    return [pa.chunked_array([batch.column(at) for batch in batches] or empty) for at in range(width)]


# --- workbooks and Parquet files


def _infer_excel(path: Path, sheet: str | None) -> Inferred:
    import pyarrow as pa

    try:
        sheets = find_sheets(path)
        chosen = sheet or next((name for name, is_shown in sheets.items() if is_shown), next(iter(sheets), ""))
        with open_cells(path, sheet=chosen, area=None, table=None) as cells:
            rows = list(cells.rows)
    except WorkbookFault as fault:
        raise NotInferredError(f"`{path}` {fault.what}" + (f"; {fault.remedy}" if fault.remedy else "")) from fault
    filled = [sum(value is not None for value in row) for row in rows]
    at = next((number for number, count in enumerate(filled) if count == max(filled, default=0) and count), None)
    if at is None:
        raise NotInferredError(f"sheet `{chosen}` of `{path}` is empty")
    used = [position for position, name in enumerate(rows[at]) if name]
    header = rows[at][used[0] : used[-1] + 1]
    inside = [row[used[0] : used[-1] + 1] for row in rows[at + 1 :]]
    below = [row for row in inside if any(value is not None for value in row)]
    sources = [name or "" for name in header]
    columns = zip(*below[:_LOOKED_AT], strict=True) if below else [()] * len(sources)
    values = [[text for text in column if text is not None] for column in columns]
    if judge_first_line(sources, values).role is not Role.NAMES:
        unusable = explain_unusable(sources)
        why = f": row {at + 1} is not usable, since {unusable}" if unusable is not None else ""
        raise NotInferredError(f"sheet `{chosen}` of `{path}` has no row with the names of all columns{why}")
    table = {
        name: pa.chunked_array([pa.array([row[n] for row in below], pa.string())]) for n, name in enumerate(sources)
    }
    wide = max(map(len, rows)) > used[-1] + 1 and any(any(row[used[-1] + 1 :]) for row in rows)
    letters = f"{name_cell(0, used[0])[:-1]}:{name_cell(0, used[-1])[:-1]}" if used[0] or wide else None
    form = ExcelFormat(sheet=chosen if len(sheets) > 1 else None, range=letters, header_row=at + 1 if at else None)
    found = _find_types(table, notations=(PLAIN,), dates=False)
    proposed = _propose(path, "excel", form.options, found, table, len(below))

    def load(use: DatasetUse, target: Path) -> Findings:
        return extract_excel(path, target, use, form)

    return _try(proposed, load)


def _infer_parquet(path: Path) -> Inferred:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            schema, rows = file.schema_arrow, file.metadata.num_rows
    except (pa.ArrowException, OSError) as fault:
        raise NotInferredError(f"`{path}` cannot be read as Parquet: {fault}") from fault
    named = _name_columns([name for name in schema.names if not name.startswith("_")])
    columns, notes = [], []
    for each in schema:
        kind = INTEGER if pa.types.is_integer(each.type) else type_of_arrow(each.type)
        if each.name not in named:
            continue
        if kind is None:
            notes.append(f"column `{each.name}` is {each.type}, which is not read exactly: store it as decimal or text")
        columns.append(InferredColumn(named[each.name], each.name, kind or TEXT))
    return Inferred(path, "parquet", {}, tuple(columns), rows, tuple(notes))


# --- types


@dataclass(frozen=True, slots=True)
class _Types:
    """The types of columns, and the one notation in which all of them are written."""

    kinds: Mapping[str, Type]
    notation: Notation
    null_texts: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def _find_types(
    table: Mapping[str, pyarrow.ChunkedArray], *, notations: Sequence[Notation] = _NOTATIONS, dates: bool = True
) -> _Types:
    distinct = {
        name: [value for value in column.unique().to_pylist() if value is not None] for name, column in table.items()
    }
    null_texts = _find_null_texts(distinct)
    texts = {name: [text.strip() for text in values if text not in null_texts] for name, values in distinct.items()}
    numbers = {
        notation: {name for name, each in texts.items() if _are_numbers(each, notation)} for notation in notations
    }
    best = max(notations, key=lambda each: len(numbers[each]))
    rivals = [each for each in notations if each.decimal != best.decimal and numbers[each] == numbers[best]]
    notes = []
    kinds: dict[str, Type] = {}
    formats = {name: find_date_formats(each) if each and dates else () for name, each in texts.items()}
    date_format = _choose_format(formats)
    for name, each in texts.items():
        if name in numbers[best] and not (date_format and date_format in formats[name]):
            kinds[name] = _number_type(each, best)
            if rivals and _is_doubtful(each, best):
                kinds[name] = TEXT
                notes.append(
                    f"`{name}` has values such as `{each[0]}`, with a decimal sign or with separated thousands: text"
                )
        elif each and date_format is not None and date_format in formats[name]:
            kinds[name] = DATE
        else:
            kinds[name] = _other_type(each) if not formats[name] else TEXT
            if formats[name]:
                sure = date_format is not None and len(formats[name]) == 1
                why = (
                    f"other columns have dates as `{date_format}`" if sure else "which can be read in more than one way"
                )
                notes.append(f"`{name}` has dates such as `{each[0]}`, {why}: text")
    chosen = _trim(best, [text for name, each in texts.items() if _is_number(kinds[name]) for text in each])
    shown = None if date_format == "yyyy-mm-dd" or DATE not in kinds.values() else date_format
    return _Types(kinds, replace(chosen, date_format=shown), null_texts, tuple(notes))


def _is_number(kind: Type) -> bool:
    return isinstance(kind, DecimalType) or kind == INTEGER


def _trim(notation: Notation, texts: list[str]) -> Notation:
    """The notation without signs that no number has."""
    used = {sign for sign in (notation.decimal, notation.thousands) if sign and any(sign in text for text in texts)}
    thousands = notation.thousands if notation.thousands in used else None
    return Notation(notation.decimal if notation.decimal in used or thousands == "." else ".", thousands)


def _find_null_texts(distinct: Mapping[str, list[str]]) -> tuple[str, ...]:
    """Texts that stand for NULL in columns of numbers or dates, and are in no other column."""
    found: list[str] = []
    for word in NULL_TEXTS:
        having = [values for values in distinct.values() if word in values]
        others = [[text.strip() for text in values if text not in NULL_TEXTS] for values in having]
        if having and all(each and any(_are_numbers(each, notation) for notation in _NOTATIONS) for each in others):
            found.append(word)
    return tuple(found)


def _are_numbers(texts: list[str], notation: Notation) -> bool:
    import pyarrow as pa

    if not texts or any(_LEADING_ZERO.match(text) and text[:3].strip("+-0123456789") == "" for text in texts if text):
        return False
    plain = notation.read(pa.array(texts, pa.string()), DecimalType(38, 18))
    return plain.null_count == 0 and all(_is_plain_number(text) for text in plain.to_pylist())


def _is_plain_number(text: str) -> bool:
    return (
        re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)", text) is not None
        and sum(map(str.isdigit, text)) <= _MOST_DIGITS
    )


def _number_type(texts: list[str], notation: Notation) -> Type:
    import pyarrow as pa

    plain = [text.lstrip("+-") for text in notation.read(pa.array(texts, pa.string()), DecimalType(38, 18)).to_pylist()]
    whole = max(len(text.partition(".")[0].lstrip("0")) for text in plain)
    scale = max(len(text.partition(".")[2]) for text in plain)
    if not any("." in text for text in plain) and whole <= 18:
        return INTEGER
    # Amounts such as 10.5 and 99.5 have cents, though no value of this file shows them: the next file may.
    if scale == 1 and whole + 2 <= _MOST_DIGITS:
        scale = 2
    return DecimalType(min(_MOST_DIGITS, max(_USUAL_DIGITS, whole + scale)), scale)


def _is_doubtful(texts: list[str], notation: Notation) -> bool:
    """Whether every number with a point might also be one with separated thousands."""
    pointed = [text for text in texts if notation.decimal in text]
    return bool(pointed) and all(
        re.fullmatch(rf"[+-]?[1-9][0-9]{{0,2}}{re.escape(notation.decimal)}[0-9]{{3}}", text) for text in pointed
    )


def _choose_format(formats: Mapping[str, tuple[str, ...]]) -> str | None:
    """The form of dates that most columns have; None if there is none, or none that is sure."""
    sure = Counter(each[0] for each in formats.values() if len(each) == 1)
    if sure:
        return sure.most_common(1)[0][0]
    return "yyyy-mm-dd" if any("yyyy-mm-dd" in each for each in formats.values()) else None


def _other_type(texts: list[str]) -> Type:
    import pyarrow as pa

    if not texts:
        return TEXT
    values = pa.array(texts, pa.string())
    for kind in (BOOLEAN, DATE, TIMESTAMP):
        if not parse_values(values, kind).wrong:
            return kind
    return TEXT


# --- the proposal


def _propose(
    path: Path,
    kind: str,
    options: Mapping[str, object],
    found: _Types,
    table: Mapping[str, pyarrow.ChunkedArray],
    rows: int,
) -> Inferred:
    named = _name_columns([name for name in table if not name.startswith("_")])
    keys = _find_keys({name: table[name] for name in named}, found.kinds, rows)
    key = keys[0] if keys and (rows >= _SURE_ROWS or all(map(_names_key, keys[0]))) else ()
    columns = tuple(InferredColumn(own, name, found.kinds[name], name in key) for name, own in named.items())
    others = tuple(tuple(named[name] for name in each) for each in keys if each != key)[:3]
    return Inferred(path, kind, options, columns, rows, found.notes, others)


def _find_keys(
    table: Mapping[str, pyarrow.ChunkedArray], kinds: Mapping[str, Type], rows: int
) -> list[tuple[str, ...]]:
    """Columns whose values identify every row: single ones, else pairs; amounts are no keys."""
    import pyarrow as pa

    if rows < 2:
        return []
    possible = [name for name, kind in kinds.items() if name in table and not isinstance(kind, DecimalType)]
    possible = [name for name in possible if table[name].null_count == 0]
    single = [(name,) for name in possible if len(table[name].unique()) == rows]
    if single:
        return sorted(single, key=lambda each: not _names_key(each[0]))
    pairs: list[tuple[str, ...]] = []
    for pair in combinations(possible[:_KEYED_COLUMNS], 2):
        both = pa.table({name: table[name] for name in pair})
        if both.group_by(list(pair)).aggregate([]).num_rows == rows:
            pairs.append(pair)
    return pairs


def _names_key(name: str) -> bool:
    return re.search(r"(^|[_ .-])(id|nr|no|key|number|nummer)\.?$", name.casefold()) is not None


def _name_columns(sources: Sequence[str]) -> dict[str, str]:
    """A name for formulas for each name in a file."""
    return dict(zip(sources, _make_names(sources), strict=True))


def _make_names(sources: Sequence[str]) -> list[str]:
    """Names for formulas that differ."""
    names: list[str] = []
    taken: set[str] = set()
    for number, source in enumerate(sources, start=1):
        base = name_column(source) or f"column_{number}"
        name, more = base, 2
        while name.casefold() in taken:
            name, more = f"{base}_{more}", more + 1
        taken.add(name.casefold())
        names.append(name)
    return names


def name_column(text: str) -> str:
    """A text as a name of letters, digits and `_`; one that is a name already stays as it is."""
    if re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", text):
        return text
    spelled = "".join(_SPELLED.get(letter, letter) for letter in text)
    plain = unicodedata.normalize("NFKD", spelled).encode("ascii", "ignore").decode()
    name = re.sub(r"[^a-z0-9]+", "_", plain.lower()).strip("_")
    return f"c_{name}" if name[:1].isdigit() else name


def _try(proposed: Inferred, load: Callable[[DatasetUse, Path], Findings]) -> Inferred:
    """The proposal, with columns as text whose values it would refuse after all."""
    from dobonomodo.problems import RunFailed

    found = Findings()
    for _ in range(2):
        with TemporaryDirectory() as folder:
            use = _use_of(proposed)
            try:
                found = load(use, Path(folder) / "rows.parquet")
            except RunFailed as failed:
                said = (failed.problem.message(), failed.problem.hint())
                raise NotInferredError("; ".join(filter(None, said))) from failed
        if not found:
            return proposed
        refused = set(found.counts)
        notes = tuple(f"`{name}` has values that are refused in every other type: text" for name in sorted(refused))
        columns = tuple(replace(each, kind=TEXT) if each.source in refused else each for each in proposed.columns)
        proposed = replace(proposed, columns=columns, notes=(*proposed.notes, *notes))
    raise NotInferredError(_describe_refused(proposed, found))


def _describe_refused(proposed: Inferred, found: Findings) -> str:
    """What no type accepts: errors of Excel, records of another width."""
    shown = "".join(f"\n  {cell.describe()}" for cell in found.cells)
    more = sum(found.counts.values()) - len(found.cells)
    what = "records of different lengths" if RECORD in found.counts else "values that no type accepts"
    return f"`{proposed.path}` has {what}:{shown}" + (f"\n  and {more:,} more" if more else "")


def _use_of(proposed: Inferred) -> DatasetUse:
    columns = Columns({column.name: column.kind for column in proposed.columns})
    return DatasetUse(
        role="input",
        dataset_id=proposed.table,
        version=1,
        table=proposed.table,
        temporal_mode=None,
        columns=columns,
        nullable=frozenset(columns) - set(proposed.key),
        sources={each.name: each.source for each in proposed.columns if each.source != each.name},
    )

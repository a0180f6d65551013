"""YAML and JSON text as plain data that remembers the place of every value.

YAML is read as 1.2 core: `on`, `off`, `yes`, `no` and dates are text, numbers are exact, a key occurs once. Unsupported
features (tags, recursion) and huge documents are refused before they are built.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import NoReturn, Protocol

import yaml

from dobonomodo.model.mistake import describe_comma, find_mistake, is_open, quote_entry
from dobonomodo.model.scalar import Scalar, UnusableNumberError, decode_scalar, locate_characters, resolve_plain
from dobonomodo.model.secret import (
    address_holds_secret,
    holds_secret,
    is_masked_key,
    is_reference,
    mask_ranges,
    mask_secrets,
    setting_holds_secret,
)
from dobonomodo.problems import Passage, Problem, Source, Span, in_order
from dobonomodo.problems.definition import DuplicateKey, LimitExceeded, YamlFeature, YamlSyntax, YamlUnsupported

MAX_CHARACTERS = 4_000_000
MAX_NODES = 100_000
MAX_DEPTH = 64

Step = str | int
"""A key of a mapping or a position in a list."""

_MARKER = re.compile(r"^(?:---|\.\.\.)(?=[ \t\r\n]|\Z)", re.MULTILINE)
_NOTHING = re.compile(r"(?:(?:[ \t]*(?:#[^\n]*)?|%[^\n]*)\r?(?:\n|\Z))*")
_UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_SURROGATES = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}")
_OTHER_BREAKS = {ord(char): "\ufffd" for char in "\x85\u2028\u2029"}

_ADVICE_BY_FAULT = {
    "found character that cannot start any token": "put a text that starts with a special character in quotes",
    "did not find expected alphabetic or numeric character": "put a text that starts with `*` or `&` in quotes",
    "did not find expected ',' or '}'": "close the `{`, and put a formula with a comma or a quote in quotes",
    "did not find expected ',' or ']'": "close the `[`, and put a text with a comma or a quote in quotes",
    "mapping values are not allowed in this context": "put a text that contains `: ` in quotes; "
    "otherwise compare the indentation with the lines above",
    "did not find expected key": "compare the indentation with the lines above, "
    "and check for a quote that ends a text too early",
    "did not find expected '-' indicator": "every element of a list starts with `- ` in the same column",
    "found unknown escape character": "inside double quotes write a backslash twice; "
    "inside single quotes it is an ordinary character",
}


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """A value as it is written; ``start`` is below zero if it is in no text."""

    value: Scalar | tuple[Node, ...] | dict[str, Entry]
    start: int = -1
    end: int = -1
    style: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """A key of a mapping with its value."""

    key: Node
    value: Node


@dataclass(frozen=True, slots=True, eq=False)
class Places:
    """A value, and the place of it and of each of its parts: ask with the path that leads to a part.

    Parts are looked up by the names that entities use; a synonym in the file does not show.
    """

    node: Node = field(repr=False)
    source: Source | None = None
    around: Node | None = field(default=None, repr=False)
    """The key or element around the value, in the same text: where to point when something is missing."""

    @classmethod
    def of_data(cls, data: object) -> Places:
        """Data that was made in a program and is in no text."""
        return cls(_node_of(data))

    @property
    def data(self) -> object:
        """The value as plain dicts, lists, texts, numbers, booleans and None."""
        return _data_of(self.node)

    @property
    def is_mapping(self) -> bool:
        """Whether there are keys here."""
        return isinstance(self.node.value, dict)

    @property
    def is_list(self) -> bool:
        """Whether there are elements here."""
        return isinstance(self.node.value, tuple)

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys of a mapping, none of anything else."""
        return tuple(self.node.value) if isinstance(self.node.value, dict) else ()

    def elements(self) -> Iterator[Places]:
        """The elements of a list, none of anything else."""
        if isinstance(self.node.value, tuple):
            for element in self.node.value:
                yield Places(element, self.source, self._around(_head(element)))

    def at(self, *path: Step) -> Places | None:
        """The part at a path, or None where there is none."""
        if not path:
            return self
        node, around = self.node, self.around
        for step in path:
            value = node.value
            if isinstance(value, dict):
                entry = value.get(str(step))
                if entry is None:
                    return None
                node, outer = entry.value, entry.key
            elif isinstance(value, tuple) and isinstance(step, int) and 0 <= step < len(value):
                node = value[step]
                outer = _head(node)
            else:
                return None
            if outer.start >= 0:
                around = outer
        return Places(node, self.source, around)

    def empty(self) -> Places:
        """An empty mapping in the place of this value."""
        return Places(Node({}), self.source, self.around or self._around(_head(self.node)))

    def get(self, *path: Step) -> object:
        """The data at a path, or None where there is none."""
        part = self.at(*path)
        return None if part is None else part.data

    def text(self, *path: Step) -> str | None:
        """The text at a path, or None where there is something else or nothing."""
        part = self.at(*path)
        return part.node.value if part is not None and isinstance(part.node.value, str) else None

    def find(self, key: str) -> Iterator[Places]:
        """The texts under a key, at any depth."""
        for name in self.keys:
            part = self.at(name)
            if part is not None:
                yield from [part] if name == key and part.text() is not None else part.find(key)
        for element in self.elements():
            yield from element.find(key)

    def span(self, *path: Step) -> Span | None:
        """The place of a value; if it is missing, the place of its parent; None outside of any text."""
        if not path:
            return self._span_of(self.node)
        part = self.at(*path[:1])
        return self.key_span() if part is None else part.span(*path[1:])

    def key_span(self, *path: Step) -> Span | None:
        """The place of the key that leads to a value, else of the start of the value."""
        if not path:
            return self._span_of(self.around or _head(self.node))
        part = self.at(*path)
        return self.span(*path) if part is None else part.key_span()

    def passage(self, *path: Step) -> Passage:
        """The text at a path with the place of each character; numbers and booleans as they are written."""
        part = self.at(*path)
        if part is None or isinstance(part.node.value, (dict, tuple)) or part.node.value is None:
            raise KeyError(path)
        node, source = part.node, part.source
        if source is None or node.start < 0:
            return Passage.alone(_written(part.data))
        if not isinstance(node.value, str):
            written = source.text[node.start : node.end]
            return Passage(written, source, range(node.start, node.end + 1))
        offsets = locate_characters(source.text, node.start, node.end, style=node.style, value=node.value)
        return Passage(node.value, source, offsets)

    def with_entries(self, entries: Mapping[str, Entry]) -> Places:
        """The same place with other keys, for names that are written in more than one way."""
        return replace(self, node=replace(self.node, value=dict(entries)))

    def without(self, *path: Step) -> Places:
        """The same place without the part at a path."""
        first, *rest = path
        value = self.node.value
        if isinstance(value, dict):
            entries = dict(value)
            entry = entries.pop(str(first), None)
            if rest and entry is not None:
                inner = Places(entry.value, self.source).without(*rest)
                entries[str(first)] = replace(entry, value=inner.node)
            return self.with_entries(entries)
        if isinstance(value, tuple) and isinstance(first, int):
            kept = list(value)
            node = kept.pop(first)
            if rest:
                kept.insert(first, Places(node, self.source).without(*rest).node)
            return self.with_elements(kept)
        return self

    def with_elements(self, nodes: Iterable[Node]) -> Places:
        """The same place with other elements."""
        return replace(self, node=replace(self.node, value=tuple(nodes)))

    def _around(self, node: Node) -> Node | None:
        """What is around the parts of a node: it, unless it is in no text."""
        return node if node.start >= 0 else self.around

    def _span_of(self, node: Node) -> Span | None:
        found = self._around(node)
        if self.source is None or found is None:
            return None
        return Span(self.source, found.start, max(found.end, found.start + 1))


@dataclass(frozen=True, slots=True, eq=False)
class Document:
    """One of the documents of a text. An unsound one had problems that leave it open what was meant."""

    places: Places
    position: int = 0
    sound: bool = True
    start: int = 0
    end: int = 0

    @property
    def data(self) -> object:
        """The whole document as plain data."""
        return self.places.data

    @property
    def source(self) -> Source:
        """The text that holds the document, with secrets masked."""
        return self.places.source or Source("", "")

    @property
    def text(self) -> str:
        """The document as it was written, comments included, with secrets masked."""
        return self.source.text[self.start : self.end]


def load_documents(source: Source) -> tuple[tuple[Document, ...], tuple[Problem, ...]]:
    """The documents of a text, and all that is wrong with it as YAML; a broken document does not hide the others."""
    if len(source.text) > MAX_CHARACTERS:
        limit = LimitExceeded(what="characters in the file", limit=MAX_CHARACTERS, span=Span(source, 0, 1))
        return (), (limit,)
    masked = mask_secrets(source.text)
    shown = source if masked == source.text else Source(source.name, masked)
    if unprintable := tuple(_find_unprintable(source.text, shown)):
        return (), unprintable
    # What the parser reads differently from YAML 1.2 and JSON is kept from it, at no change of length.
    parsed = _SURROGATES.sub(r"\\ufffd\\ufffd", source.text).translate(_OTHER_BREAKS)
    documents, problems = _compose_all(source.text, parsed, shown)
    hidden = [place for document in documents for place in _find_secret_places(document.places.node, shown.text)]
    if hidden:
        shown = Source(source.name, mask_ranges(shown.text, hidden))
        documents, problems = _compose_all(source.text, parsed, shown)
    return documents, problems


def _compose_all(text: str, parsed: str, shown: Source) -> tuple[tuple[Document, ...], tuple[Problem, ...]]:
    documents: list[Document] = []
    problems: list[Problem] = []
    for start, end in _split_documents(parsed):
        composer = _Composer(text, parsed[start:end], shown=shown, base=start)
        root = composer.compose()
        problems += composer.problems
        if root is not None:
            sound = not composer.problems
            documents.append(Document(Places(root, shown), len(documents), sound, start, end))
    return tuple(documents), in_order(problems)


_HOLDS_SECRET_BY_KEY = {
    "url": address_holds_secret,
    "store": address_holds_secret,
    "remote": address_holds_secret,
    "conf": setting_holds_secret,
    "options": setting_holds_secret,
}
"""How a secret is searched in the value of a key; elsewhere a text may be a formula or prose."""


def _find_secret_places(
    node: Node, shown: str, key: str = "", holds: Callable[[str], bool] = holds_secret
) -> Iterator[tuple[int, int]]:
    """The values that hold a secret and still show it, such as those that are only seen when YAML is decoded."""
    match node.value:
        case dict():
            for name, entry in node.value.items():
                yield from _find_secret_places(entry.value, shown, name, _HOLDS_SECRET_BY_KEY.get(name, holds))
        case tuple():
            for element in node.value:
                yield from _find_secret_places(element, shown, key, holds)
        case str() | int() | Decimal() if node.start >= 0 and not is_reference(str(node.value)):
            written = shown[node.start : node.end].strip("'\"")
            still_shows = is_masked_key(key) or "\\" in written or "\n" in written or holds(written)
            if still_shows and set(written) != {"*"} and (is_masked_key(key) or holds(str(node.value))):
                yield node.start, node.end


def _find_unprintable(text: str, shown: Source) -> Iterator[Problem]:
    for found in _UNPRINTABLE.finditer(text):
        if found[0] != "\ufeff" or found.start():
            fault = f"the character U+{ord(found[0]):04X} is not allowed in YAML"
            yield YamlSyntax(fault=fault, span=Span(shown, found.start(), found.end()))
            return


def _split_documents(text: str) -> Iterator[tuple[int, int]]:
    """Where each document starts and ends; stretches of only comments and directives are not documents."""
    start = 1 if text.startswith("\ufeff") else 0
    for marker in (*_MARKER.finditer(text), None):
        end = marker.start() if marker else len(text)
        if start < end and not _NOTHING.fullmatch(text, start, end):
            yield start, end
        start = end if marker is None or marker[0] == "---" else marker.end()


@dataclass(slots=True)
class _Open:
    """A list or mapping whose end has not been read yet."""

    start: int
    anchor: str | None
    counted: int
    is_mapping: bool
    is_flow: bool
    elements: list[Node] = field(default_factory=list)
    entries: dict[str, Entry] = field(default_factory=dict)
    key: Node | None = None
    height: int = 1


@dataclass(frozen=True, slots=True)
class _Anchored:
    node: Node
    size: int
    height: int


class _StopError(Exception):
    """Nothing more can be read of this document."""


class _Mark(Protocol):
    """A place in a text; the two parsers of PyYAML have a class of their own each."""

    @property
    def index(self) -> int: ...


class _Composer:
    """Builds the nodes of one document from the events of the parser, without recursion."""

    def __init__(self, text: str, parsed: str, *, shown: Source, base: int) -> None:
        self.problems: list[Problem] = []
        self._text = text
        self._parsed = parsed
        self._shown = shown
        self._base = base
        self._open: list[_Open] = []
        self._anchors: dict[str, _Anchored] = {}
        self._count = 0
        self._root: Node | None = None

    def compose(self) -> Node | None:
        """The root of the document, or None where it is empty or cannot be read."""
        try:
            for event in yaml.parse(self._parsed, Loader=yaml.CSafeLoader):
                self._take(event)
        except yaml.MarkedYAMLError as error:
            self.problems.append(self._syntax_problem(error))
            return None
        except _StopError:
            return None
        root = self._root
        return None if root is None or _is_absent(root) else root

    def _take(self, event: yaml.Event) -> None:
        match event:
            case yaml.ScalarEvent():
                self._refuse_tag(event.tag, event)
                node = self._scalar(event)
                self._add(node, event, size=1, height=0, anchor=event.anchor)
            case yaml.AliasEvent():
                self._take_alias(event)
            case yaml.SequenceStartEvent() | yaml.MappingStartEvent():
                self._refuse_tag(event.tag, event)
                self._count_nodes(1, event)
                is_mapping = isinstance(event, yaml.MappingStartEvent)
                self._open.append(
                    _Open(self._at(event.start_mark), event.anchor, self._count - 1, is_mapping, bool(event.flow_style))
                )
                self._require_depth(len(self._open), event)
            case yaml.SequenceEndEvent() | yaml.MappingEndEvent():
                done = self._open.pop()
                value = dict(done.entries) if done.is_mapping else tuple(done.elements)
                node = Node(value, done.start, self._trim(done.start, self._at(event.end_mark)))
                size = self._count - done.counted
                self._add(node, event, size=0, height=done.height, anchor=done.anchor, anchored_size=size)
            case _:
                pass

    def _take_alias(self, event: yaml.AliasEvent) -> None:
        name = event.anchor or ""
        if any(container.anchor == name for container in self._open):
            self._refuse(YamlFeature.RECURSION, event, found=name)
            raise _StopError
        found = self._anchors.get(name)
        if found is None:
            fault = f"no value before this has the anchor `&{name}`"
            self.problems.append(YamlSyntax(fault=fault, span=self._span(event)))
            found = _Anchored(Node(None), 1, 0)
        self._require_depth(len(self._open) + found.height, event)
        self._add(found.node, event, size=found.size, height=found.height, anchor=None)

    def _add(
        self, node: Node, event: yaml.Event, *, size: int, height: int, anchor: str | None, anchored_size: int = 0
    ) -> None:
        """Attach a finished node: as a key, a value, an element or the root."""
        self._count_nodes(size, event)
        if anchor is not None:
            self._anchors[anchor] = _Anchored(node, anchored_size or size, height)
        if not self._open:
            self._root = node
            return
        parent = self._open[-1]
        parent.height = max(parent.height, height + 1)
        if not parent.is_mapping:
            parent.elements.append(node)
        elif parent.key is None:
            parent.key = self._require_key(node)
        else:
            self._add_entry(parent, parent.key, node)
            parent.key = None

    def _add_entry(self, parent: _Open, key: Node, node: Node) -> None:
        if parent.is_flow and _is_absent(node) and self._continue_formula(parent, key):
            return
        name = str(key.value)
        first = parent.entries.get(name)
        if first is None:
            parent.entries[name] = Entry(key, node)
        elif key.start >= 0:
            span = Span(self._shown, key.start, key.end)
            self.problems.append(
                DuplicateKey(key=name, first=Span(self._shown, first.key.start, first.key.end), span=span)
            )

    def _continue_formula(self, parent: _Open, key: Node) -> bool:
        """Whether a key without a value is the rest of a formula that a comma has cut: ``{expression: ROUND(a, 2)}``.

        It is read as intended, so that the rest of the document can still be checked.
        """
        name, entry = next(reversed(parent.entries.items()), ("", None))
        if entry is None or not isinstance(entry.value.value, str) or not is_open(entry.value.value):
            return False
        start, end = entry.value.start, key.end
        value = " ".join(self._text[start:end].split())
        parent.entries[name] = replace(entry, value=Node(value, start, end))
        if not is_open(value):
            advice = f"put the formula in quotes{quote_entry(name, self._shown.text[start:end])}"
            span = Span(self._shown, start, end)
            self.problems.append(YamlSyntax(fault=describe_comma(name), advice=advice, span=span))
        return True

    def _require_key(self, node: Node) -> Node:
        """The key as text: `20` and `on` are keys like any other."""
        if isinstance(node.value, (dict, tuple)):
            span = Span(self._shown, node.start, max(node.end, node.start + 1))
            opening = self._text[max(0, node.start - 1) : node.start + 1]
            self.problems.append(YamlUnsupported(feature=YamlFeature.COMPLEX_KEY, found=opening, span=span))
        elif _is_absent(node):
            span = Span(self._shown, node.start, node.start + 1)
            self.problems.append(YamlUnsupported(feature=YamlFeature.NULL_KEY, span=span))
        elif isinstance(node.value, str):
            return node
        else:
            return replace(node, value=self._text[node.start : node.end])
        return Node("")

    def _scalar(self, event: yaml.ScalarEvent) -> Node:
        start, end = self._at(event.start_mark), self._at(event.end_mark)
        style = event.style or ""
        text: str = event.value
        parsed = self._parsed[start - self._base : end - self._base]
        if parsed != self._text[start:end]:
            text = decode_scalar(self._text, start, end, style=style, value=text)[0]
        if "\0" in text:
            # Written as an escape. No file, no database and no argument of a program can have it in a name.
            fault = "the character U+0000 is not allowed in a definition"
            self.problems.append(YamlSyntax(fault=fault, span=self._span(event)))
        value: Scalar = text
        if event.implicit[0]:
            try:
                value = resolve_plain(text)
            except UnusableNumberError:
                self._refuse(YamlFeature.NO_NUMBER, event, found=text[:20])
        return Node(value, start, end, style)

    def _count_nodes(self, number: int, event: yaml.Event) -> None:
        self._count += number
        if self._count > MAX_NODES:
            self._exceed("values in one document", MAX_NODES, event)

    def _require_depth(self, depth: int, event: yaml.Event) -> None:
        if depth > MAX_DEPTH:
            self._exceed("levels of nesting", MAX_DEPTH, event)

    def _exceed(self, what: str, limit: int, event: yaml.Event) -> NoReturn:
        self.problems.append(LimitExceeded(what=what, limit=limit, span=self._span(event)))
        raise _StopError

    def _refuse_tag(self, tag: str | None, event: yaml.Event) -> None:
        if tag is not None:
            self._refuse(YamlFeature.TAG, event, found=tag.replace("tag:yaml.org,2002:", "!!"))

    def _refuse(self, feature: YamlFeature, event: yaml.Event, *, found: str) -> None:
        self.problems.append(YamlUnsupported(feature=feature, found=found, span=self._span(event)))

    def _syntax_problem(self, error: yaml.MarkedYAMLError) -> Problem:
        fault = error.problem or "this is not valid YAML"
        unclosed = "quoted scalar" in (error.context or "") and "unexpected end" in fault
        mark = error.context_mark if unclosed else error.problem_mark
        at = min(self._at(mark), max(0, len(self._text) - 1))
        if unclosed:
            fault = "this quoted text has no closing quote"
        elif (mistake := find_mistake(self._shown.text, at)) is not None:
            return YamlSyntax(
                fault=mistake.fault, advice=mistake.advice, span=Span(self._shown, mistake.start, mistake.end)
            )
        return YamlSyntax(fault=fault, advice=_ADVICE_BY_FAULT.get(fault), span=Span(self._shown, at, at + 1))

    def _span(self, event: yaml.Event) -> Span:
        start = self._at(event.start_mark)
        return Span(self._shown, start, max(self._at(event.end_mark), start + 1))

    def _at(self, mark: _Mark | None) -> int:
        return self._base + (mark.index if mark is not None else 0)

    def _trim(self, start: int, end: int) -> int:
        """The end of a block without the empty lines that follow it."""
        while end > start and self._text[end - 1] in " \t\r\n":
            end -= 1
        return end


def _node_of(data: object) -> Node:
    match data:
        case Mapping():
            return Node({str(key): Entry(Node(str(key)), _node_of(value)) for key, value in data.items()})
        case list() | tuple():
            return Node(tuple(_node_of(element) for element in data))
        case str() | bool() | int() | Decimal() | None:
            return Node(data)
        case _:
            return Node(str(data))


def _data_of(node: Node) -> object:
    match node.value:
        case dict():
            return {key: _data_of(entry.value) for key, entry in node.value.items()}
        case tuple():
            return [_data_of(element) for element in node.value]
        case _:
            return node.value


def _is_absent(node: Node) -> bool:
    """Whether nothing is written where a value could be."""
    return node.value is None and node.start == node.end


def _head(node: Node) -> Node:
    """What comes first in a value: the first key of a mapping, else the value."""
    if isinstance(node.value, dict) and node.value:
        return next(iter(node.value.values())).key
    return node


def _written(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)

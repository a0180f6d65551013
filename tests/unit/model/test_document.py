"""Text becomes data with places; what is broken, dangerous or too large becomes problems."""

from decimal import Decimal

import pytest

from dobonomodo.model.document import MAX_CHARACTERS, MAX_DEPTH, MAX_NODES, Document, Places, load_documents
from dobonomodo.problems import Problem, Source, Span
from dobonomodo.problems.definition import DuplicateKey, LimitExceeded, YamlFeature, YamlSyntax, YamlUnsupported


def load(text: str) -> tuple[tuple[Document, ...], tuple[Problem, ...]]:
    return load_documents(Source("f.yaml", text))


def load_one(text: str) -> Document:
    documents, problems = load(text)
    assert problems == ()
    (document,) = documents
    return document


def shown(span: Span | None) -> str:
    assert span is not None
    return span.source.text[span.start : span.end]


def test_yaml_1_2_words_stay_text() -> None:
    data = load_one("on: yes\noff: no\nday: 2026-01-01\nrate: 0.10\n20: x\n").data
    assert data == {"on": "yes", "off": "no", "day": "2026-01-01", "rate": Decimal("0.10"), "20": "x"}


def test_json_is_read_too() -> None:
    data = load_one('{\n\t"a":1.50,"b":[true,null],\n\t"c": "x\\/y"}').data
    assert data == {"a": Decimal("1.50"), "b": [True, None], "c": "x/y"}


def test_a_file_holds_several_documents() -> None:
    documents, problems = load("# first\n---\na: 1\n---\n# nothing\n...\n%YAML 1.2\n---\nb: 2\n")
    assert problems == ()
    assert [(document.data, document.position) for document in documents] == [({"a": 1}, 0), ({"b": 2}, 1)]


def test_a_broken_document_does_not_hide_the_others() -> None:
    documents, problems = load('a: "x\n---\nb: 1\n---\nc: [\n---\nd: 1\n')
    assert [document.data for document in documents] == [{"b": 1}, {"d": 1}]
    assert [(type(problem), problem.span.line if problem.span else 0) for problem in problems] == [
        (YamlSyntax, 1),
        (YamlSyntax, 6),
    ]


def test_a_quote_that_never_ends_is_shown_where_it_starts() -> None:
    _, (problem,) = load("a: 1\nb: 'x\nc: 2\n")
    assert problem.span is not None
    assert (problem.span.line, problem.span.column) == (2, 4)


def test_a_byte_order_mark_is_no_content() -> None:
    document = load_one("\ufeffa: x")
    assert document.data == {"a": "x"}
    assert shown(document.places.span("a")) == "x"


def test_a_control_character_is_refused_where_it_stands() -> None:
    _, (problem,) = load("a: x\x01y")
    assert isinstance(problem, YamlSyntax)
    assert problem.span is not None
    assert problem.span.start == 4


def test_an_empty_file_has_no_documents() -> None:
    assert load("") == ((), ())
    assert load("# nothing\n") == ((), ())


def test_duplicate_keys_are_found_all_of_them() -> None:
    (document,), problems = load("a: 1\nb: {c: 1, c: 2}\na: 2\n'a': 3\n")
    assert [type(problem) for problem in problems] == [DuplicateKey] * 3
    assert [problem.key for problem in problems if isinstance(problem, DuplicateKey)] == ["c", "a", "a"]
    assert not document.sound
    assert document.places.get("a") == 1


@pytest.mark.parametrize(
    ("text", "feature"),
    [
        ("a: !!str 1", YamlFeature.TAG),
        ("a: !thing [1]", YamlFeature.TAG),
        ("a: &x [*x]", YamlFeature.RECURSION),
        ("a: &x {b: [*x]}", YamlFeature.RECURSION),
        ("? [a]\n: 1", YamlFeature.COMPLEX_KEY),
        ("a: {{name}}", YamlFeature.COMPLEX_KEY),
        ("? \n: 1", YamlFeature.NULL_KEY),
        ("a: .inf", YamlFeature.NO_NUMBER),
    ],
)
def test_what_definitions_do_without_is_refused(text: str, feature: YamlFeature) -> None:
    _, problems = load(text)
    assert [problem.feature for problem in problems if isinstance(problem, YamlUnsupported)] == [feature]


def test_an_alias_repeats_its_value() -> None:
    document = load_one("a: &x {b: 1}\nc: *x")
    assert document.data == {"a": {"b": 1}, "c": {"b": 1}}


def test_an_alias_of_nothing_is_an_error() -> None:
    _, problems = load("a: *x")
    assert [type(problem) for problem in problems] == [YamlSyntax]


LAUGHS = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 10)}]\n" for level in range(1, 11)
)


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        (LAUGHS, MAX_NODES),
        (f"a: &a [{'1,' * 1000}]\nb: [{'*a,' * (MAX_NODES // 1000)}]", MAX_NODES),
        ("[" * 100_000, MAX_DEPTH),
        ("{a: " * 100_000, MAX_DEPTH),
        ("- " * 100_000 + "x", MAX_DEPTH),
        ("? " * 10_000 + "x", MAX_DEPTH),
        ("x" * (MAX_CHARACTERS + 1), MAX_CHARACTERS),
        ("a: &a [1]\n" + "".join(f"b{n}: &b{n} [*{'a' if n == 0 else f'b{n - 1}'}]\n" for n in range(80)), MAX_DEPTH),
    ],
    ids=["laughs", "repetition", "brackets", "braces", "dashes", "question-marks", "size", "alias-depth"],
)
def test_a_bomb_is_refused_at_once(text: str, limit: int) -> None:
    documents, (problem,) = load(text)
    assert documents == ()
    assert isinstance(problem, LimitExceeded)
    assert problem.limit == limit
    assert problem.span is not None


def test_places_answer_for_values_and_keys() -> None:
    places = load_one("a:\n  - b: one\n    c: [2, three]\n").places
    assert shown(places.span("a", 0, "b")) == "one"
    assert shown(places.key_span("a", 0, "b")) == "b"
    assert shown(places.span("a", 0, "c", 1)) == "three"
    assert shown(places.key_span("a")) == "a"
    assert places.text("a", 0, "c", 1) == "three"
    assert places.get("a", 0, "c", 0) == 2


def test_what_is_missing_is_placed_at_what_is_around_it() -> None:
    places = load_one("a:\n  - b: one\n").places
    assert shown(places.span("a", 0, "nothing")) == "b"
    assert shown(places.span("a", 7)) == "a"
    assert shown(places.span("nothing", "at all")) == "a"
    assert places.at("nothing") is None


def test_a_block_ends_with_its_last_word() -> None:
    places = load_one("a:\n  b: 1\n\n\nc: 2\n").places
    assert shown(places.span("a")) == "b: 1"


def test_data_without_a_text_has_no_places_but_passages() -> None:
    places = Places.of_data({"a": ["x", Decimal("0.1"), True]})
    assert places.span("a", 0) is None
    assert places.key_span("a") is None
    assert places.passage("a", 0).value == "x"
    assert places.passage("a", 1).value == "0.1"
    assert places.passage("a", 2).value == "true"
    assert places.data == {"a": ["x", Decimal("0.1"), True]}


def test_a_number_has_a_passage_as_it_is_written() -> None:
    passage = load_one("a: 0.10").places.passage("a")
    assert passage.value == "0.10"
    assert shown(passage.span(0, 4)) == "0.10"


def test_there_is_no_passage_where_there_is_no_text() -> None:
    places = load_one("a: {b: 1}\nc:\n").places
    for path in (("a",), ("c",), ("nothing",)):
        with pytest.raises(KeyError):
            places.passage(*path)


@pytest.mark.parametrize(
    "text", ['a: "b\\0c"', 'a: "\\x00"', '"a\\u0000": 1', '{"a": "\\u0000"}', 'a: ["b", {c: "\\U00000000"}]']
)
def test_nul_is_refused_wherever_it_stands(text: str) -> None:
    documents, problems = load(text)
    assert [problem.code for problem in problems] == ["YAML_SYNTAX"]
    assert not any(document.sound for document in documents)


def test_secrets_are_masked_in_what_is_shown_and_kept_in_the_data() -> None:
    (document,), problems = load("options:\n  password: hunter2\n  password: x\n  url: db://me:hunter3@host/d\n")
    assert document.places.get("options", "password") == "hunter2"
    assert len(problems) == 1
    for problem in problems:
        assert problem.span is not None
        assert "hunter" not in problem.span.source.text
    assert shown(document.places.span("options", "url")) == "db://me:*******@host/d"

"""The evaluator that explains cells gives the value that Spark gives, and the value by meaning, exactly."""

from __future__ import annotations

import random
import unicodedata
from collections import Counter
from typing import TYPE_CHECKING

import pyarrow
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from dobonomodo.engine.faults import explain_fault
from dobonomodo.formula import Scope, check_formula, columns_of, flat_name, render_formula
from dobonomodo.formula import moment as days
from dobonomodo.formula.evaluate import Result, evaluate, evaluate_group
from dobonomodo.formula.functions.letters import to_lower, to_title, to_upper
from dobonomodo.formula.print import print_checked
from dobonomodo.problems import Passage
from tests.property import reference
from tests.property.on_spark import (
    COMPILED,
    FAILURES,
    INTERPRETED,
    Formula,
    budget,
    check_tree,
    compare,
    decode,
    encode,
    expected,
    frame,
    same,
    settings_of,
)
from tests.property.strategies import GROUPED, KEYS, RUN, SCOPE, Drawing
from tests.searching import tries
from tests.unit.formula.orders import ROWS as ORDERS
from tests.unit.formula.test_evaluate import FAULTS, ORDER

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession

    from dobonomodo.formula import Typed
    from dobonomodo.formula.meaning import Value
    from tests.property.reference import Row

FORMULAS = 25
ROWS = 16

seeds = st.integers(0, 2**64 - 1)
a_few = settings(max_examples=budget(share=8), phases=[Phase.explicit, Phase.generate], database=None)


def translated(value: Value) -> reference.Value:
    """A value in the terms of the reference."""
    match value:
        case days.Day():
            return reference.Day(value.number)
        case days.Moment():
            return reference.Moment(value.micros)
        case _:
            return value


def outcome(result: Result) -> reference.Value | reference.Fault:
    if result.problem is not None:
        return reference.Fault(result.problem.code)
    return translated(result.value)


def evaluated(node: Typed, row: Row) -> reference.Value | reference.Fault:
    return outcome(evaluate(node, row, RUN))


def faults_in(node: Typed, row: Row) -> set[str]:
    """The faults of all parts: which of several comes first is open."""
    found = set()
    pending = [evaluate(node, row, RUN)]
    while pending:
        part = pending.pop()
        found |= {part.problem.code} if part.problem else set()
        pending.extend(part.parts)
    return found


def drawn(generator: random.Random, count: int, scope: Scope = SCOPE, depth: int = 4) -> Iterator[Formula]:
    drawing = Drawing(generator.randint, grouped=scope is GROUPED)
    while count:
        if formula := check_tree(drawing.formula(depth), scope):
            count -= 1
            yield formula


def differs(
    found: reference.Value | reference.Fault, wanted: reference.Value | reference.Fault, kinds: Counter[str]
) -> bool:
    """Whether two outcomes differ. Where an engine may or may not come across a fault, there is nothing to compare."""
    if not isinstance(wanted, reference.Fault):
        kinds["value"] += 1
        return isinstance(found, reference.Fault) or not same(found, wanted)
    kinds["fault" if wanted.certain else "unsure"] += 1
    return wanted.certain and not isinstance(found, reference.Fault)


@settings(a_few, max_examples=budget(share=4))
@given(seeds)
def test_the_reference_agrees(seed: int) -> None:
    generator = random.Random(seed)
    rows = [Drawing(generator.randint).row() for _ in range(ROWS)]
    kinds: Counter[str] = Counter()
    for formula in drawn(generator, FORMULAS):
        for row in rows:
            found, wanted = evaluated(formula.node, row), expected(formula.node, row)
            assert not differs(found, wanted, kinds), f"{formula.text!r} with {row}: {found!r} instead of {wanted!r}"
    assert kinds["value"] > kinds["fault"] + kinds["unsure"]


@settings(a_few, max_examples=budget(share=4))
@given(seeds)
def test_the_reference_agrees_on_groups(seed: int) -> None:
    generator = random.Random(seed)
    drawing = Drawing(generator.randint, grouped=True)
    groups: dict[tuple[object, ...], list[Row]] = {}
    for _ in range(2 * ROWS):
        row = drawing.grouped_row()
        groups.setdefault(tuple(row[key] for key in KEYS), []).append(row)
    kinds: Counter[str] = Counter()
    for formula in drawn(generator, FORMULAS, GROUPED, 2):
        for rows in groups.values():
            found = outcome(evaluate_group(formula.node, rows, RUN))
            assert not differs(found, _total(formula.node, rows), kinds), formula.text


def _total(node: Typed, rows: list[Row]) -> reference.Value | reference.Fault:
    try:
        return reference.aggregate(node, rows, RUN)
    except reference.Fault as fault:
        return fault


@settings(a_few, max_examples=budget(share=4))
@given(seeds)
def test_a_checked_tree_is_printed_as_what_it_was_checked_from(seed: int) -> None:
    for formula in drawn(random.Random(seed), FORMULAS):
        text = print_checked(formula.node)
        assert check_formula(Passage.alone(text), SCOPE).tree == formula.node, text


@settings(a_few, max_examples=budget(share=4))
@given(seeds)
def test_every_part_can_be_shown(seed: int) -> None:
    generator = random.Random(seed)
    row = Drawing(generator.randint).row()
    for formula in drawn(generator, FORMULAS):
        pending = [evaluate(formula.node, row, RUN)]
        while pending:
            part = pending.pop()
            assert part.text
            assert part.text_with_values
            assert part.reached or (part.value is None and part.problem is None)
            pending.extend(part.parts)


# --- on Spark


@pytest.mark.parametrize("mode", [COMPILED, INTERPRETED], ids=["compiled", "interpreted"])
def test_spark_agrees(spark: SparkSession, mode: dict[str, str]) -> None:
    def wanted(node: Typed, row: Row) -> reference.Value | reference.Fault:
        """A row that Spark may fail on would take the other rows with it."""
        fault = expected(node, row)
        return fault if isinstance(fault, reference.Fault) else evaluated(node, row)

    @a_few
    @given(seeds)
    def check(seed: int) -> None:
        generator = random.Random(seed)
        rows = [Drawing(generator.randint).row() for _ in range(ROWS)]
        wrong = compare(spark, list(drawn(generator, FORMULAS)), rows, wanted_by=wanted)
        assert not wrong, "\n".join(wrong)

    with settings_of(spark, mode):
        check()


def test_where_spark_has_a_value_there_is_one(spark: SparkSession, record_property: Callable[..., None]) -> None:
    """Where it is open whether an engine comes across a fault, and in any case where Spark does not."""
    kinds: Counter[str] = Counter()

    def unsure(seed: int, most: int) -> list[tuple[Formula, Row]]:
        generator = random.Random(seed)
        rows = [Drawing(generator.randint).row() for _ in range(ROWS)]
        found: list[tuple[Formula, Row]] = []
        for formula in drawn(generator, 200):
            for row in rows:
                if isinstance(expected(formula.node, row), reference.Fault):
                    found.append((formula, row))
                    break
        return found[:most]

    @settings(a_few, max_examples=budget(share=50))
    @given(seeds)
    def check(seed: int) -> None:
        for formula, row in unsure(seed, 20):
            sql = encode(render_formula(formula.node, RUN), formula.node.type)
            found = evaluated(formula.node, row)
            try:
                value = decode(frame(spark, [row]).selectExpr(sql).collect()[0][0], formula.node.type)
            except FAILURES as error:
                code = explain_fault(error).code
                kinds["fault in both" if isinstance(found, reference.Fault) else "fault on Spark alone"] += 1
                if isinstance(found, reference.Fault) and code not in faults_in(formula.node, row):
                    pytest.fail(f"{formula.text!r}: {code} on Spark, {found} with {row}")
            else:
                kinds["value in both"] += 1
                assert not isinstance(found, reference.Fault), f"{formula.text!r} is {value!r} on Spark with {row}"
                assert same(found, value), f"{formula.text!r}: {found!r}, on Spark {value!r} with {row}"

    check()
    for kind, count in kinds.items():
        record_property(kind, count)


@pytest.mark.parametrize(("text", "code"), FAULTS)
def test_faults_are_the_same_on_spark(spark: SparkSession, text: str, code: str) -> None:
    checked = check_formula(Passage.alone(text), ORDERS).tree
    assert checked is not None
    names = {flat_name(column): column.type for column in columns_of(checked)}
    data = frame(spark, [{name: ORDER[name] for name in names}], names)
    with pytest.raises(FAILURES) as raised:
        data.selectExpr(render_formula(checked, RUN)).collect()
    assert explain_fault(raised.value).code == code


def test_letters_of_all_scripts(spark: SparkSession) -> None:
    characters = [chr(code) for code in range(0x110000) if not 0xD800 <= code <= 0xDFFF]
    texts = [character + "aΣ " + character + "A" + character for character in characters]
    with settings_of(spark, {"spark.sql.execution.arrow.localRelationThreshold": "0"}):
        data = spark.createDataFrame(pyarrow.table([pyarrow.array(texts)], names=["t"]))
    wrong = [
        row
        for row in data.selectExpr("t", "upper(t)", "lower(t)", "initcap(t)").collect()
        if tuple(row)[1:] != (to_upper(row[0]), to_lower(row[0]), to_title(row[0]))
    ]
    assert wrong == []


@pytest.mark.search
def test_numbers_in_digits_of_all_scripts(spark: SparkSession) -> None:
    tree = check_formula(Passage.alone("TRY_VALUE(note)"), SCOPE).tree
    whole = check_formula(Passage.alone("TRY_TO_INTEGER(note)"), SCOPE).tree
    assert tree is not None
    assert whole is not None
    every = (chr(code) for code in range(0x110000))
    # Most of what Unicode has are letters without case, and places that are free: a few of them say it for all.
    plain, step = {"Cn", "Co", "Lo"}, tries(sample=101, full=1)
    characters = [
        each
        for each in every
        if (kind := unicodedata.category(each)) != "Cs" and (kind not in plain or ord(each) % step == 0)
    ]
    texts = [text for each in characters for text in (each, f"{each}1{each}")]
    with settings_of(spark, {"spark.sql.execution.arrow.localRelationThreshold": "0"}):
        data = spark.createDataFrame(pyarrow.table([pyarrow.array(texts)], names=["note"]))
    sqls = [render_formula(each, RUN) for each in (tree, whole)]
    read = data.selectExpr("note", f"{sqls[0]} AS n", f"{sqls[1]} AS w")
    found = read.where("n IS NOT NULL OR w IS NOT NULL").collect()
    values = {text: tuple(evaluate(each, {"note": text}, RUN).value for each in (tree, whole)) for text in texts}
    assert {row[0]: (row[1], row[2]) for row in found} == {
        text: value for text, value in values.items() if value != (None, None)
    }

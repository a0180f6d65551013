"""The text of queries; what Spark makes of them is tested where there is one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from dobonomodo.engine.query import DEPTH, Query

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Frame:
    """A frame that tells what was asked of it."""

    def __init__(self, asked: str) -> None:
        self.asked, self.sparkSession = asked, self

    def selectExpr(self, *columns: str) -> Frame:  # noqa: N802  (as Spark calls it)
        return Frame(f"{self.asked}[{', '.join(columns)}]")

    def where(self, condition: str) -> Frame:
        return Frame(f"{self.asked}[{condition}]")

    def sql(self, text: str, args: None, **frames: Frame) -> Frame:
        return Frame(text.format(**{name: frame.asked for name, frame in frames.items()}))


def query(name: str) -> Query:
    return Query.of(cast("DataFrame", Frame(name)))


def made(found: Query) -> str:
    return str(cast("Any", found.make()).asked)


def test_one_step_needs_no_text() -> None:
    assert made(query("f")) == "f"
    assert made(query("f").select(["a", "b"])) == "f[a, b]"
    assert made(query("f").where("a > 1")) == "f[a > 1]"


def test_few_steps_are_applied_one_after_the_other() -> None:
    assert made(query("f").select(["a"]).where("a = '{'")) == "f[a][a = '{']"


def test_several_steps_are_one_text_in_which_braces_stay() -> None:
    found = query("f").select(["'{x}' AS a"]).where("a = '{'").select(["*", "1 AS b"])
    assert made(found) == "SELECT *, 1 AS b FROM (SELECT * FROM (SELECT '{x}' AS a FROM f) WHERE a = '{')"


def test_a_join_reads_from_both_sides() -> None:
    found = query("f").left_join(query("g").where("k > 0"), on="a = k", where="k < 9", columns=["a", "v"])
    assert made(found) == "SELECT a, v FROM f LEFT JOIN (SELECT * FROM g WHERE k > 0) ON a = k WHERE k < 9"


def test_a_frame_is_made_where_a_text_would_be_too_deep() -> None:
    found = query("f")
    for _ in range(DEPTH + 1):
        found = found.select(["a"])
    assert found.depth == 1
    text = made(found)
    assert text.startswith("SELECT a FROM (")
    assert text.endswith("[a]")
    assert text.count("SELECT") == DEPTH

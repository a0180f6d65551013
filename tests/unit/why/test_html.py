"""An explanation as HTML: foldable, whole, and with every value escaped."""

from __future__ import annotations

from html.parser import HTMLParser

from dobonomodo.why.html import render_page, render_part
from tests.unit.why.orders import ROWS
from tests.unit.why.test_explain import explain


class Outline(HTMLParser):
    """The elements that are open and closed, and the links to other files."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.counts: dict[str, int] = {}
        self.open: list[str] = []
        self.links: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.counts[tag] = self.counts.get(tag, 0) + 1
        self.links += [value or "" for name, value in attrs if name in ("src", "href")]
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_a_page_is_whole_and_foldable() -> None:
    found = explain("net", id="A1")
    outline = Outline(render_page(found))
    assert (outline.open, outline.links) == ([], [])
    assert outline.counts["details"] == len(found.operations) + 1


def test_values_are_escaped() -> None:
    rows = {**ROWS, "orders": [{**ROWS["orders"][0], "id": "<b>&"}]}
    page = render_part(explain(rows=rows, id="<b>&"))
    assert "<b>&amp;" not in page
    assert "&lt;b&gt;&amp;" in page


def test_a_summary_lists_its_contributors() -> None:
    page = render_part(explain("total", status="active", _operation_seq=20))
    assert "3 rows" in page
    assert "orders.parquet, row 1" in page


def test_a_notebook_shows_it() -> None:
    found = explain(id="A1")
    assert found._repr_html_() == render_part(found)
    assert found.to_html() == render_page(found)

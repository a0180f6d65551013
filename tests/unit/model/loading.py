"""How tests load: a text in, definitions and the codes and fields of problems out."""

from dobonomodo.model import Definitions, load_definitions
from dobonomodo.problems import Problem, Source, Span
from dobonomodo.storage import load_datasource


def load(*texts: str) -> tuple[Definitions, tuple[Problem, ...]]:
    """Definitions of texts that are files called ``0.yaml``, ``1.yaml`` and so on."""
    sources = [Source(f"{number}.yaml", text) for number, text in enumerate(texts)]
    return load_definitions(sources, load_datasource=load_datasource)


def sound(*texts: str) -> Definitions:
    """Definitions that have no problems."""
    definitions, problems = load(*texts)
    assert problems == ()
    return definitions


def found(*texts: str) -> list[tuple[str, str]]:
    """The code of each problem, and the text that its caret is under."""
    return [(problem.code, shown(problem.span)) for problem in load(*texts)[1]]


def problem_in(*texts: str) -> Problem:
    """The only problem."""
    (problem,) = load(*texts)[1]
    return problem


def shown(span: Span | None) -> str:
    """The text at a place."""
    return "" if span is None else span.source.text[span.start : span.end]

"""The expression language: text to tree, tree to checked tree, checked tree to Spark SQL. Knows no Spark."""

from dobonomodo.formula.check import HOLE, Checked, check_formula
from dobonomodo.formula.conversion import convert, parse_moment
from dobonomodo.formula.evaluate import Result, evaluate, evaluate_group, evaluate_over
from dobonomodo.formula.functions import FUNCTION_BY_NAME, FUNCTIONS, RunValues
from dobonomodo.formula.parse import parse
from dobonomodo.formula.print import print_formula
from dobonomodo.formula.render import render_column, render_formula
from dobonomodo.formula.scope import Columns, Scope
from dobonomodo.formula.typed import ColumnRef, Typed, columns_of, flat_name, rewrite
from dobonomodo.formula.types import Type, parse_type

__all__ = [
    "FUNCTIONS",
    "FUNCTION_BY_NAME",
    "HOLE",
    "Checked",
    "ColumnRef",
    "Columns",
    "Result",
    "RunValues",
    "Scope",
    "Type",
    "Typed",
    "check_formula",
    "columns_of",
    "convert",
    "evaluate",
    "evaluate_group",
    "evaluate_over",
    "flat_name",
    "parse",
    "parse_moment",
    "parse_type",
    "print_formula",
    "render_column",
    "render_formula",
    "rewrite",
]

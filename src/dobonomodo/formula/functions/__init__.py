"""The functions of the language, one table by subject."""

from dobonomodo.formula.functions.catalogue import CHAPTERS, FUNCTION_BY_NAME, FUNCTIONS
from dobonomodo.formula.functions.signature import Function, RunValues, Signature

__all__ = ["CHAPTERS", "FUNCTIONS", "FUNCTION_BY_NAME", "Function", "RunValues", "Signature"]

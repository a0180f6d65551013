"""Function names of Excel and SQL, and what to use instead."""

from __future__ import annotations

_LOOK_UP = "join the dataset under `joins` of the update, then write `alias.column`"
_SUM_IF = "in an aggregate write `SUM(IF(condition, value, 0))`"
_NO_ROOTS = "roots, powers and logarithms are not supported, because they are not exact"
_RANK = "number the rows in an update, `ROW_NUMBER() OVER (ORDER BY amount DESC)`, and select by that column"

INSTEAD_OVER: dict[str, str] = {
    "COUNT_IF": "write `SUM(IF(condition, 1, 0)) OVER (...)`",
    "FIRST_BY": "write `FIRST(value) OVER (ORDER BY key)`",
    "LAST_BY": "write `LAST(value) OVER (ORDER BY key)`",
    "MIN": "write `MIN_AGG(x) OVER (...)`",
    "MAX": "write `MAX_AGG(x) OVER (...)`",
}
"""What to use in a window instead of functions that cannot be computed over one."""

INSTEAD: dict[str, str] = {
    **dict.fromkeys(("VLOOKUP", "HLOOKUP", "XLOOKUP", "LOOKUP", "INDEX", "MATCH"), _LOOK_UP),
    **dict.fromkeys(("SUMIF", "SUMIFS"), _SUM_IF),
    **dict.fromkeys(("COUNTIF", "COUNTIFS"), "in an aggregate write `COUNT_IF(condition)`"),
    **dict.fromkeys(("AVERAGEIF", "AVERAGEIFS"), "in an aggregate write `AVG(IF(condition, value, NULL))`"),
    **dict.fromkeys(("POWER", "SQRT", "EXP", "LN", "LOG", "LOG10"), _NO_ROOTS),
    **dict.fromkeys(("LARGE", "SMALL", "NTILE"), _RANK),
    "OFFSET": "write `LAG(x) OVER (ORDER BY day)` for the row before, `LEAD(x) OVER (ORDER BY day)` for the row after",
    "FIRST_VALUE": "write `FIRST(x) OVER (ORDER BY day)`",
    "LAST_VALUE": "write `LAST(x) OVER (ORDER BY day)`",
    **dict.fromkeys(("CURRENT_DATE", "CURDATE", "GETDATE"), "write `TODAY()`, the date of the run"),
    **dict.fromkeys(("CURRENT_TIMESTAMP", "SYSDATE"), "write `NOW()`, the clock of the run"),
    **dict.fromkeys(("RAND", "RANDBETWEEN", "UUID"), "a run must be reproducible"),
    "AVERAGE": "write `AVG(x)`",
    "COUNTA": "write `COUNT(x)`",
    "IFERROR": "a division by zero is NULL here: write `COALESCE(a / b, 0)`",
    "IFNA": "write `COALESCE(a, b)`",
    "ISBLANK": "write `ISNULL(x)`",
    "ISNA": "write `ISNULL(x)`",
    "LENGTH": "write `LEN(text)`",
    "CHAR_LENGTH": "write `LEN(text)`",
    "SUBSTR": "write `MID(text, from, count)`",
    "SUBSTRING": "write `MID(text, from, count)`",
    "INSTR": "write `FIND(what, text)`",
    "SEARCH": "write `FIND(what, text)`; it is case-sensitive",
    "CONCATENATE": "write `CONCAT(a, b)`",
    "TEXTJOIN": "write `CONCAT(a, b)`; in an aggregate `STRING_AGG(x, sep)`",
    "GREATEST": "write `MAX(a, b)`",
    "LEAST": "write `MIN(a, b)`",
    "INT": "write `FLOOR(x)`",
    **dict.fromkeys(
        ("CAST", "TRY_CAST", "CONVERT"), "write `TO_DECIMAL(x)`, `TO_INTEGER(x)`, `TO_TEXT(x)` or `DATE(x)`"
    ),
    "TO_DATE": "write `DATE(text)`",
    "TO_CHAR": "write `TEXT(value, pattern)`",
    "DECODE": "write `SWITCH(x, value, result, default)`",
    "IIF": "write `IF(condition, then, else)`",
    "LAST_DAY": "write `EOMONTH(date, 0)`",
    "ADD_MONTHS": "write `EDATE(date, months)`",
    "DATE_ADD": "write `DATEADD(date, days)`",
}

UNSUPPORTED_AGGREGATES = frozenset(
    {
        "MEDIAN",
        "MODE",
        "STDEV",
        "STDDEV",
        "VAR",
        "VARIANCE",
        "PERCENTILE",
        "PERCENTILE_APPROX",
        "PRODUCT",
    }
)

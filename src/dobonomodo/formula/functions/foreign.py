"""Names that people bring along from Excel and SQL, and what to use instead."""

from __future__ import annotations

_LOOK_UP = "join the dataset under `joins` of the update, then write `alias.column`"
_SUM_IF = "in an aggregate write `SUM(IF(condition, value, 0))`"
_NO_ROOTS = "roots, powers and logarithms are not supported, because they are not exact"
WINDOW = (
    "a formula sees one row: compute totals with `aggregate`, write them as a dataset, "
    "and join that under `joins` of an update"
)
_RANK = (
    "a formula sees one row and cannot rank it among others; "
    "in an aggregate `FIRST_BY(value, key)` and `LAST_BY(value, key)` give the first and the last of a group"
)
_NEIGHBOUR = "a formula sees one row: join the dataset under `joins` of the update to read a value of another row"

INSTEAD: dict[str, str] = {
    **dict.fromkeys(("VLOOKUP", "HLOOKUP", "XLOOKUP", "LOOKUP", "INDEX", "MATCH"), _LOOK_UP),
    **dict.fromkeys(("SUMIF", "SUMIFS"), _SUM_IF),
    **dict.fromkeys(("COUNTIF", "COUNTIFS"), "in an aggregate write `COUNT_IF(condition)`"),
    **dict.fromkeys(("AVERAGEIF", "AVERAGEIFS"), "in an aggregate write `AVG(IF(condition, value, NULL))`"),
    **dict.fromkeys(("POWER", "SQRT", "EXP", "LN", "LOG", "LOG10"), _NO_ROOTS),
    **dict.fromkeys(("RANK", "DENSE_RANK", "ROW_NUMBER", "NTILE", "LARGE", "SMALL"), _RANK),
    **dict.fromkeys(("LAG", "LEAD", "OFFSET", "FIRST_VALUE", "LAST_VALUE"), _NEIGHBOUR),
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
        "FIRST",
        "LAST",
    }
)

"""From measurements to RESULTS.md, results.json and a chart. Nothing in them is written by hand."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

HOME = Path(__file__).parent


def write_report(results: Mapping[str, Any]) -> None:
    """All three files."""
    (HOME / "results.json").write_text(json.dumps(results, indent=2) + "\n")
    (HOME / "chart.svg").write_text(_chart(results))
    (HOME / "RESULTS.md").write_text(_text(results))


def describe_machine() -> dict[str, Any]:
    """What the figures were taken on."""
    names = ("dobonomodo", "pyspark", "pyarrow", "duckdb", "polars")
    versions = {}
    for name in names:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {
        "cores": os.cpu_count(),
        "memory_gb": round(memory, 1),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "versions": versions,
        "load_at_start": round(os.getloadavg()[0], 2),
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
    }


def _anew(parts: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """What was measured later than the rest, by the day of it."""
    for day in sorted({each["date"] for each in parts.values()}):
        named = [f"{name} (load {each['load_at_start']})" for name, each in parts.items() if each["date"] == day]
        yield f"Measured anew on {day} by `python -m benchmarks again`, with the load before each: {', '.join(named)}."


def _text(results: Mapping[str, Any]) -> str:
    machine = results["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
    parts = [
        "# Benchmark results",
        "",
        f"Made by `make {results['command']}` on {machine['date']}: {machine['cores']} cores, {machine['memory_gb']} GB, "
        f"{machine['system']}, Python {machine['python']}, {versions}; load before the start {machine['load_at_start']}.",
        *_anew(results.get("again", {})),
        "Times are medians of warm runs; contestants of one table take turns in one process. Trust ratios, not seconds.",
        "",
        "![The pipeline](chart.svg)",
        "",
        "## The figures to reach",
        "",
        *_figures(results),
        "",
    ]
    for each in results.get("pipeline", ()):
        parts += _pipeline_table(each)
    if "memory" in results:
        rows = [
            [name, f"{each['megabytes']:,} MB", ", ".join(f"{one:,}" for one in each["all"])]
            for name, each in results["memory"].items()
        ]
        parts += ["## Peak memory, scale 1", "", *_table(["", "median of three processes", "all"], rows), ""]
    if "operations" in results:
        rows = [
            [name, f"{each['applied_ms']} ms", f"{each['job_ms']} ms"] for name, each in results["operations"].items()
        ]
        parts += [
            "## One operation",
            "",
            "Applying builds the plan; the job computes every row. An empty Spark job alone takes about 20 ms.",
            "",
            *_table(["operation and rows", "applied", "job"], rows),
            "",
        ]
    if "planning" in results:
        rows = [[f"{number} operations", f"{each} ms"] for number, each in results["planning"]["operations"].items()]
        rows += [
            [f"20 operations, {number} columns more", f"{each} ms"]
            for number, each in results["planning"]["columns"].items()
        ]
        parts += ["## Loading, checking and planning, without Spark", "", *_table(["project", "time"], rows), ""]
    if "chains" in results:
        chains = results["chains"]
        rows = [
            [f"{number} {kind} in a row", f"{each} s"]
            for kind in ("updates", "aggregates", "joins")
            for number, each in chains[kind].items()
        ]
        rows += [
            [f"{number} aggregates in a row, 3 M rows", f"{each} s"]
            for number, each in chains.get("large aggregates", {}).items()
        ]
        rows += [
            [f"building the plan of {number} mixed operations", f"{each} s"]
            for number, each in chains.get("plans", {}).items()
        ]
        parts += ["## Whole runs, 100 k rows", "", *_table(["", "run"], rows), ""]
    if "ids" in results:
        rows = [[name, f"{each['seconds']:.2f} s", f"{each['cpu']:.2f} s"] for name, each in results["ids"].items()]
        parts += ["## Row ids in both outputs, scale 1", "", *_table(["", "run", "processor time"], rows), ""]
    if "prices" in results:
        rows = [[name, f"{each['seconds']:.2f} s", f"{each['cpu']:.2f} s"] for name, each in results["prices"].items()]
        parts += ["## Prices, scale 1", "", *_table(["the pipeline", "run", "processor time"], rows), ""]
    if "growth" in results:
        rows = [
            [
                f"{each['rows']:,}",
                f"{each['seconds']} s",
                f"{each['microseconds_per_row']} µs",
                f"{each['megabytes']:,} MB",
            ]
            for each in results["growth"].values()
        ]
        parts += ["## Growth", "", *_table(["orders", "run", "per row", "peak memory"], rows), ""]
    if "csv" in results:
        each = results["csv"]
        rows = [[name, f"{each[name]['seconds']:.2f} s"] for name in ("dobo", "spark")]
        parts += [f"## Reading {each['rows']:,} CSV rows", "", *_table(["", "time"], rows), ""]
    if "database" in results:
        parts += _database_tables(results["database"])
    if "files" in results:
        rows = [
            [f"{each['files']:,}", f"{each['seconds']} s", f"{each['cpu']} s", f"{each['megabytes']:,} MB"]
            for each in results["files"]
        ]
        head = "## Finding, checking and counting small Parquet files, without Spark"
        parts += [head, "", *_table(["files", "time", "processor time", "peak memory"], rows), ""]
    parts += _shape_tables(results)
    if "lake" in results:
        each = results["lake"]
        rows = [
            [name, f"{one['seconds']:.2f} s", f"{one['ratio']}", f"{one['cpu']:.2f} s", f"{one['ratio_cpu']}"]
            for name, one in each["places"].items()
        ]
        head = f"## The pipeline into lake tables, scale {each['scale']:g}"
        same = "All outputs have the same digests." if each["same"] else "The digests of outputs differ."
        said = f"The object store is a server on this machine, whose processor time is counted too. {same}"
        columns = ["outputs", "run", "against Parquet", "processor time", "against Parquet"]
        parts += [head, "", said, "", *_table(columns, rows), ""]
    if "why" in results:
        why = results["why"]
        kinds = {"cold": "from the shell", "warm": "in Python, asked before", "group": "in Python, with a session"}
        rows = [
            [name, kinds[kind], f"{each['seconds']} s", f"{each['cpu']} s"]
            for kind in kinds
            for name, each in why[kind].items()
        ]
        head = (
            f"## Explaining one of {why['rows']:,} rows: eight updates, two joins; load before the start {why['load']}"
        )
        parts += [head, "", *_table(["dobo why", "", "time", "processor time"], rows), ""]
    if "startup" in results:
        rows = [[name, f"{each} s"] for name, each in results["startup"].items()]
        parts += ["## Whole commands", "", *_table(["command", "wall clock"], rows), ""]
    return "\n".join(parts)


def _shape_tables(results: Mapping[str, Any]) -> list[str]:
    titles = {
        "files-run": lambda each: f"## {each['rows']:,} rows in {each['files']:,} files, and in one",
        "wide": lambda each: f"## {each['rows']:,} rows with {each['columns']} columns",
        "outputs": lambda each: f"## {each['outputs']} outputs of {each['rows']:,} rows, and one",
        "skew": lambda each: f"## {each['rows']:,} rows, nine of ten with the same key",
    }
    parts: list[str] = []
    for name, title in titles.items():
        if name in results:
            measured = results[name]["measured"].items()
            rows = [[who, f"{found['seconds']:.2f} s", f"{found['cpu']:.2f} s"] for who, found in measured]
            parts += [title(results[name]), "", *_table(["", "run", "processor time"], rows), ""]
    if "periods" in results:
        each = results["periods"]
        head = ["period", "run", "processor time", "memory of Python", "memory of Java"]
        chosen = sorted({0, *range(5, each["periods"], 6), each["periods"] - 1})
        rows = [
            [f"{at + 1}", f"{one['seconds']} s", f"{one['cpu']} s", f"{one['python']:,} MB", f"{one['java']:,} MB"]
            for at, one in ((at, each["taken"][at]) for at in chosen)
        ]
        named = f"## {each['periods']} periods of {each['rows']:,} rows in one process"
        parts += [named, "", *_table(head, rows), ""]
    if "few" in results:
        each = results["few"]
        rows = [
            [f"run of three operations, {each['rows']:,} rows", *_times(each["run"])],
            *(
                [["the same by hand, nothing proved or recorded", *_times(each["by hand"])]]
                if "by hand" in each
                else []
            ),
            [f"{each['scenarios']} scenarios", *_times(each["test"])],
        ]
        parts += ["## Few rows, warm", "", *_table(["", "time", "processor time"], rows), ""]
    return parts


def _times(found: Mapping[str, float]) -> list[str]:
    return [f"{found['seconds']:.3f} s", f"{found['cpu']:.2f} s"]


def _shape_figures(results: Mapping[str, Any]) -> list[list[str]]:
    rows: list[list[str]] = []
    if "few" in results:
        each = results["few"]
        milliseconds, seconds = 1000 * each["run"]["seconds"], each["test"]["seconds"]
        title = f"6. a warm run of three operations on {each['rows']:,} rows"
        rows.append([title, "< 150 ms", f"{milliseconds:.0f} ms", _met(milliseconds < 150)])
        rows.append([f"6. {each['scenarios']} scenarios, warm", "< 20 s", f"{seconds:.1f} s", _met(seconds < 20)])
    if "startup" in results:
        more = results["startup"]["dobo run, 10 k rows"] - results["startup"]["Spark alone: session and first query"]
        rows.append(["6. dobo run on 10 k rows, beyond Spark's start", "≤ 1.5 s", f"{more:.2f} s", _met(more <= 1.5)])
    if "periods" in results:
        each = results["periods"]
        for what, title in (("cpu", "processor time"), ("python", "memory of Python"), ("java", "memory of Java")):
            share = each[f"{what}_growth"]
            name = f"7. {each['periods']} periods in one process: {title}, last third against the one before"
            rows.append([name, "flat", f"{share} x", _met(share <= 1.1)])
    if "files-run" in results:
        each = results["files-run"]
        rows.append([f"7. {each['files']:,} files against one, processor time", "", f"{each['ratio_cpu']} x", ""])
    if "wide" in results:
        each = results["wide"]
        title = f"7. {each['columns']} columns, processor time, against"
        rows.append([f"{title} the same by hand", "", f"{each['ratio_cpu']} x", ""])
        rows.append([f"{title} a tenth of them", "", f"{each['growth']} x", ""])
    if "outputs" in results:
        each = results["outputs"]
        rows.append([f"7. {each['outputs']} outputs against one, processor time", "", f"{each['ratio_cpu']} x", ""])
    if "skew" in results:
        each = results["skew"]
        rows.append(["7. skewed keys against even ones", "", f"{each['ratio']} x", ""])
        rows.append(["7. skewed keys against the same by hand, processor time", "", f"{each['ratio_cpu']} x", ""])
    return rows


def _figures(results: Mapping[str, Any]) -> list[str]:
    rows: list[list[str]] = []
    for each in results.get("pipeline", ()):
        scale = f"scale {each['scale']:g}"
        rows.append(
            [
                f"1. against an expert's PySpark, {scale}",
                "≤ 1.10",
                f"{each['ratio']} (processor time {each['ratio_cpu']})",
                _met(each["ratio"] <= 1.10),
            ]
        )
        if each["against_beginner"]:
            rows.append(
                [
                    f"1. faster than a beginner's, {scale}",
                    "≥ 4",
                    f"{each['against_beginner']}",
                    _met(each["against_beginner"] >= 4),
                ]
            )
    if "memory" in results:
        share = results["memory"]["dobo"]["megabytes"] / results["memory"]["expert"]["megabytes"]
        rows.append(["1. peak memory against an expert's", "≤ 1.1", f"{share:.2f}", _met(share <= 1.1)])
    if "windows" in results:
        each = results["windows"]
        shown = f"{each['ratio']} (processor time {each['ratio_cpu']})"
        scale = f"scale {each['scale']:g}"
        rows.append([f"1. a whole run with windows against the same by hand, {scale}", "", shown, ""])
        if "own_ratio_cpu" in each:
            title = f"1. what windows add to a run against what they add by hand, processor time, {scale}"
            rows.append([title, "≤ 1.10", f"{each['own_ratio_cpu']}", _met(each["own_ratio_cpu"] <= 1.10)])
    if "allocate" in results:
        each = results["allocate"]
        shown = f"{each['ratio']} (processor time {each['ratio_cpu']})"
        rows.append([f"1. an allocation against the same by hand, scale {each['scale']:g}", "", shown, ""])
    if "ranges" in results:
        for name, hand in (("fx", "rates exploded into days"), ("bands", "a window over both sides")):
            each = results["ranges"][name]
            shown = f"{each['ratio']} (processor time {each['ratio_cpu']}), {'same' if each['same'] else 'other'} rows"
            title = f"1. joins by a range, {name}, {results['ranges']['rows']:,} rows, against {hand}"
            rows.append([title, "≤ 2", shown, _met(each["ratio_cpu"] <= 2 and each["same"])])
    if "operations" in results:
        limits = {
            "appended 10000": 10,
            "appended 100000": 10,
            "filtered 10000": 15,
            "filtered 100000": 20,
            "aggregated 10000": 30,
            "aggregated 100000": 50,
        }
        for name, limit in limits.items():
            found = results["operations"][name]["applied_ms"]
            rows.append([f"2. applying: {name} rows", f"< {limit} ms", f"{found} ms", _met(found < limit)])
    if "planning" in results:
        known = results["planning"]["operations"]
        for number, limit in ((20, 50), (200, 500)):
            found = known.get(number, known.get(str(number)))
            rows.append([f"3. checking {number} operations", f"< {limit} ms", f"{found} ms", _met(found < limit)])
    if "startup" in results:
        found = results["startup"]["dobo validate"]
        rows.append(["3. dobo validate", "< 1 s", f"{found} s", _met(found < 1)])
    if "growth" in results and len(results["growth"]) > 1:
        large = [each["microseconds_per_row"] for each in results["growth"].values() if each["rows"] >= 1_000_000]
        if len(large) > 1:
            share = large[-1] / large[0]
            rows.append(["4. time per row, largest against 1.5 M", "flat", f"{share:.2f} x", _met(share <= 1.1)])
    if "chains" in results:
        chains = results["chains"]
        share = _at(chains["aggregates"], 6) / _at(chains["aggregates"], 1)
        rows.append(["4. six aggregates against one", "≤ 4", f"{share:.2f}", _met(share <= 4)])
        for rows_of, counted in (("100 k", "aggregates"), ("3 M", "large aggregates")):
            if counted in chains:
                share = _at(chains[counted], 8) / _at(chains[counted], 1)
                rows.append(
                    [f"4. eight aggregates against one, {rows_of} rows", "≤ 4", f"{share:.2f}", _met(share <= 4)]
                )
        share = _at(chains["updates"], 200) / _at(chains["updates"], 20)
        rows.append(["4. 200 updates against 20", "≤ 6", f"{share:.2f}", _met(share <= 6)])
        if "plans" in chains:
            share = _at(chains["plans"], 210) / _at(chains["plans"], 21)
            rows.append(["4. plans of 210 mixed operations against 21", "≤ 11", f"{share:.2f}", _met(share <= 11)])
    if "lake" in results:
        places = results["lake"]["places"]
        for name, limit in {"delta": 1.05, "iceberg": None, "parquet in S3": 1.7, "delta in S3": 1.7}.items():
            found = places[name]["ratio"]
            shown = f"{found} (processor time {places[name]['ratio_cpu']})"
            met = _met(found <= limit) if limit is not None else ""
            rows.append([f"into {name} against Parquet", f"≤ {limit}" if limit is not None else "", shown, met])
    if "why" in results:
        for what, key, limit in (("dobo why, from the shell", "cold", 2), ("run.why, asked before", "warm", 0.3)):
            slowest = max(results["why"][key].values(), key=lambda each: each["seconds"])
            found = f"{slowest['seconds']} s (processor time {slowest['cpu']} s)"
            rows.append([what, f"< {limit} s", found, _met(slowest["seconds"] < limit)])
    if "prices" in results:
        prices = results["prices"]
        share = prices["ten checks"]["cpu"] / prices["plain"]["cpu"]
        rows.append(["price of ten checks, processor time", "≤ 1.20", f"{share:.2f}", _met(share <= 1.2)])
        if "no figures" in prices:
            share = prices["plain"]["cpu"] / prices["no figures"]["cpu"]
            rows.append(["price of figures, processor time", "", f"{share:.2f}", ""])
        for what, one, other in (
            ("digests of columns", "column digests", "plain"),
            ("copies of inputs, where there are none yet", "inputs copied each time", "plain"),
            ("SHA-256 of inputs", "plain", "no SHA-256 of inputs"),
        ):
            if one in prices and other in prices:
                share = prices[one]["cpu"] / prices[other]["cpu"]
                rows.append([f"price of {what}, processor time", "", f"{share:.2f}", ""])
    if "ids" in results:
        ids = results["ids"]
        share = ids["by position"]["cpu"] / ids["without"]["cpu"]
        rows.append(["5. row ids by position, processor time", "≤ 1.10", f"{share:.2f}", _met(share <= 1.1)])
    if "planning" in results:
        share = _at(results["planning"]["operations"], 200) / _at(results["planning"]["operations"], 20)
        rows.append(["4. planning 200 operations against 20", "≤ 12", f"{share:.1f}", _met(share <= 12)])
    rows += _shape_figures(results)
    return _table(["figure", "wanted", "found", ""], sorted(rows))


def _at(values: Mapping[Any, float], key: int) -> float:
    return values[key] if key in values else values[str(key)]


def _met(fine: object) -> str:
    return "met" if fine else "**not met**"


def _pipeline_table(each: Mapping[str, Any]) -> list[str]:
    rows = []
    for name, found in sorted(each["measured"].items(), key=lambda item: item[1]["seconds"]):
        spread = f"{found['least']:.2f} to {found['most']:.2f} s"
        same = "same rows" if each["digests"].get(name) == each["digests"]["dobo"] else "other rows"
        rows.append(
            [name, f"{found['seconds']:.2f} s", spread, f"{found['cpu']:.2f} s", f"{each['first'][name]:.1f} s", same]
        )
    head = ["", "median", "spread", "processor time", "first time", ""]
    title = f"## The pipeline at scale {each['scale']:g}: {each['rows']['everything']:,} rows out"
    return [title, "", *_table(head, rows), "", *_thread_table(each["measured"])]


def _thread_table(measured: Mapping[str, Any]) -> list[str]:
    """Which threads take the processor time, of those who run on Spark."""
    shown = [name for name in ("expert", "dobo") if measured[name].get("threads")]
    if not shown:
        return []
    kinds = dict.fromkeys(kind for name in shown for kind in measured[name]["threads"])
    rows = [[kind, *(f"{measured[name]['threads'][kind]:.2f} s" for name in shown)] for kind in kinds]
    return ["Processor time by threads, medians of each kind:", "", *_table(["", *shown], rows), ""]


def _database_tables(found: Mapping[str, Any]) -> list[str]:
    rows = [
        [f"{way}: {name}", f"{each['seconds']:.2f} s", f"{each['cpu']:.2f} s"]
        for way in ("write", "read")
        for name, each in found[way].items()
    ]
    peaks = [[f"{each['rows']:,}", f"{each['megabytes']:,} MB"] for each in found["memory"]]
    return [
        f"## {found['rows']:,} rows to a table of PostgreSQL, and back",
        "",
        "Without Spark, from Parquet and to Parquet. Ours writes to a staging table and replaces the period's rows in one "
        "transaction; it reads in a fixed order, and checks every value.",
        "",
        *_table(["", "time", "processor time, without the server's"], rows),
        "",
        *_table(["rows written and read by dobo", "peak memory"], peaks),
        "",
    ]


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}", *(f"| {' | '.join(row)} |" for row in rows)]


def _chart(results: Mapping[str, Any]) -> str:
    """Bars of the pipeline, one group for each scale."""
    groups = results.get("pipeline", ())
    bars = [
        (f"{name}, scale {each['scale']:g}", found["seconds"], name)
        for each in groups
        for name, found in sorted(each["measured"].items(), key=lambda item: item[1]["seconds"])
    ]
    most = max((seconds for _, seconds, _ in bars), default=1)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="720" height="{40 + 26 * len(bars)}" font-family="sans-serif" font-size="13">',
        '<rect width="100%" height="100%" fill="#fff"/><text x="12" y="22" font-weight="bold">Seconds for the pipeline, warm median</text>',
    ]
    for at, (label, seconds, name) in enumerate(bars):
        y = 36 + 26 * at
        color = "#2f6feb" if name == "dobo" else "#b8c0cc"
        width = max(2, 430 * seconds / most)
        lines.append(f'<text x="190" y="{y + 14}" text-anchor="end">{label}</text>')
        lines.append(f'<rect x="200" y="{y}" width="{width:.0f}" height="18" rx="3" fill="{color}"/>')
        lines.append(f'<text x="{206 + width:.0f}" y="{y + 14}">{seconds:.2f}</text>')
    return "\n".join([*lines, "</svg>", ""])

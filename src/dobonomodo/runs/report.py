"""The report of a run: one HTML file that needs nothing else, light or dark as the reader's machine is."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from typing import Any

from dobonomodo.plan.operations import Effect, find_facts
from dobonomodo.runs.progress import Operation
from dobonomodo.runs.record import Output, RunView

_STYLE = """
:root{color-scheme:light dark;--page:#f7f7f5;--card:#fff;--ink:#1d2129;--soft:#626a76;--line:#dcdfe4;--code:#f0f1f3;
--blue:#2f6feb;--green:#1a7f4b;--red:#c2342b;--amber:#9a6700;--violet:#7a4fd0;--bar:#b9cdf6}
@media (prefers-color-scheme:dark){:root{--page:#14171c;--card:#1c2027;--ink:#e6e8ec;--soft:#9aa3b0;--line:#333944;
--code:#242932;--blue:#7aa7ff;--green:#56c98b;--red:#ff7b72;--amber:#e0b050;--violet:#b79bff;--bar:#34507f}}
*{box-sizing:border-box}
body{margin:0;background:var(--page);color:var(--ink);font:15px/1.5 system-ui,-apple-system,"Segoe UI",sans-serif}
main{max-width:1080px;margin:0 auto;padding:32px 20px 64px}
h1{font-size:26px;margin:0 0 4px}h2{font-size:17px;margin:36px 0 10px}
.sub{color:var(--soft);margin:0}
.status{display:inline-block;padding:1px 10px;border-radius:12px;font-size:13px;font-weight:600;border:1px solid currentColor;
vertical-align:middle;margin-left:10px}
.completed{color:var(--green)}.failed{color:var(--red)}.cancelled{color:var(--amber)}.running{color:var(--blue)}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(150px,1fr));gap:12px;margin:22px 0 0}
.tile,.card{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:12px 16px}
.tile b{display:block;font-size:20px;font-variant-numeric:tabular-nums}.tile span{color:var(--soft);font-size:13px}
.scroll{overflow-x:auto}
table{border-collapse:collapse;width:100%;font-size:14px}
th{color:var(--soft);font-weight:500;text-align:left}
th,td{padding:6px 12px 6px 0;border-bottom:1px solid var(--line);vertical-align:top}
tr:last-child td{border-bottom:0}
td.n,th.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
code,pre{font:13px/1.5 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}
code{background:var(--code);border-radius:4px;padding:1px 5px;overflow-wrap:anywhere}
pre{background:var(--code);border-radius:8px;padding:12px 14px;overflow:auto;margin:0;max-height:480px}
details{margin-top:10px}summary{cursor:pointer;color:var(--soft)}
.problem{border-left:4px solid var(--red);padding:8px 14px;margin:0 0 10px;background:var(--card)}
.problem.warning{border-color:var(--amber)}.problem p{margin:2px 0}
.step{display:grid;grid-template-columns:34px minmax(0,1fr);gap:0 12px}
.rail{position:relative}
.rail:before{content:"";position:absolute;left:16px;top:0;bottom:0;width:2px;background:var(--line)}
.legend+.step .rail:before{top:20px}.step:last-child .rail:before{bottom:calc(100% - 20px)}
.dot{position:absolute;left:4px;top:8px;width:26px;height:26px;border-radius:50%;background:var(--card);
border:2px solid currentColor;font-size:11px;font-weight:600;display:flex;align-items:center;justify-content:center}
.unreached{opacity:.55}
.what{padding:8px 0 14px;min-width:0}
.what header{display:flex;flex-wrap:wrap;gap:4px 12px;align-items:baseline}
.kind{color:var(--soft);font-size:13px}.counts{color:var(--soft);font-size:13px;margin-left:auto;font-variant-numeric:tabular-nums}
.bar{display:flex;height:8px;border-radius:4px;overflow:hidden;background:var(--code);margin-top:6px}
.bar i{display:block;height:100%}
.legend{color:var(--soft);font-size:13px;display:flex;gap:16px;flex-wrap:wrap;margin-bottom:10px}
.legend i{display:inline-block;width:10px;height:10px;border-radius:3px;margin-right:5px}
footer{color:var(--soft);font-size:13px;margin-top:40px}
@media (max-width:600px){main{padding:20px 14px}.counts{margin-left:0;width:100%}}
@media print{body{background:#fff}.tile,.card{break-inside:avoid}details{display:none}}
"""


def render_report(run: RunView, *, resumable: bool) -> str:
    """The whole page."""
    project = run.snapshot["project"]
    title = f"{project['name']}, {run.period}"
    body = [
        _head(run, title),
        _tiles(run),
        _section("Problems", _problems([*run.problems, *run.warnings])),
        _section("Pipeline", _pipeline(run)),
        _section("Outputs", _outputs(run)),
        _section("Inputs", _inputs(run.snapshot)),
        _section("How to reproduce", _reproduce(run, resumable=resumable)),
        _section("Snapshot", _snapshot(run)),
        f"<footer>Run {escape(run.id)}, report made {_moment(datetime.now(UTC))} "
        f"by dobo {escape(run.snapshot['versions'].get('dobonomodo', ''))}.</footer>",
    ]
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<style>{_STYLE}</style></head><body><main>{''.join(body)}</main></body></html>\n"
    )


def _head(run: RunView, title: str) -> str:
    which = "draft, into the sandbox" if run.draft else f"version {run.version}"
    return (
        f'<h1>{escape(title)}<span class="status {escape(run.status)}">{escape(run.status)}</span></h1>'
        f'<p class="sub">{escape(run.project)} ({which}) · run {escape(run.id)} · by {escape(run.by)} · '
        f"{_moment(run.created_at)}</p>"
    )


def _tiles(run: RunView) -> str:
    written = sum(output.rows for output in run.outputs.values())
    loaded = next((each.rows_in for each in run.operations if each.rows_in is not None), None)
    tiles = [
        (_number(loaded), "rows loaded"),
        (_number(written), "rows written"),
        (f"{run.seconds:.1f} s", "duration" if run.attempts == 1 else f"duration, {run.attempts} attempts"),
        (f"{run.started_at:%H:%M:%S}", f"clock of the run, {run.started_at:%Y-%m-%d} UTC"),
    ]
    return (
        '<div class="tiles">'
        + "".join(f'<div class="tile"><b>{a}</b><span>{b}</span></div>' for a, b in tiles)
        + "</div>"
    )


def _section(title: str, content: str) -> str:
    return f"<h2>{title}</h2>{content}" if content else ""


def _problems(problems: Iterable[Mapping[str, Any]]) -> str:
    shown = []
    for problem in problems:
        place = (
            f"operation {problem['operation_seq']} {problem['operation_name']}" if problem.get("operation_seq") else ""
        )
        hint = f"<p>{escape(problem['hint'])}</p>" if problem.get("hint") else ""
        notes = "".join(f"<li>{escape(note)}</li>" for note in problem.get("notes", ()))
        hint = (f"<ul>{notes}</ul>" if notes else "") + hint
        head = f"<p><b>{escape(problem['code'])}</b> {escape(place)}</p>"
        shown.append(
            f'<div class="problem {escape(problem["severity"])}">{head}<p>{escape(problem["message"])}</p>{hint}</div>'
        )
    return "".join(shown)


def _pipeline(run: RunView) -> str:
    most = max((each.rows_out or 0 for each in run.operations), default=0)
    legend = "".join(
        f'<span><i style="background:var(--{color})"></i>{name}</span>'
        for color, name in (("bar", "rows"), ("blue", "changed or written"), ("green", "added"), ("red", "deleted"))
    )
    steps = "".join(_step(each, most) for each in run.operations)
    return f'<div class="card"><div class="legend">{legend}</div>{steps}</div>'


def _step(operation: Operation, most: int) -> str:
    facts = find_facts(operation.type)
    reached = operation.rows_in is not None
    counts = []
    if reached:
        counts.append(f"{_number(operation.rows_in)} in")
        if facts.counted:
            counts.append(f"{_number(operation.selected)} {facts.counted}")
        if operation.added:
            counts.append(f"{_number(operation.added)} added")
        if operation.seconds is not None:
            counts.append(f"{operation.seconds:.1f} s")
    elif operation.selected is not None:
        counts.append(f"{_number(operation.selected)} written")
    else:
        counts.append("not reached")
    dim = "" if reached or operation.selected is not None else " unreached"
    return (
        f'<div class="step{dim}"><div class="rail"><div class="dot" style="color:var(--{facts.color})">'
        f"{facts.badge}</div></div>"
        f'<div class="what"><header><b>{escape(operation.name)}</b><span class="kind">{operation.seq} · '
        f'{escape(operation.type)}</span><span class="counts">{" · ".join(counts)}</span></header>'
        f"{_bar(operation, most) if reached else ''}</div></div>"
    )


def _bar(operation: Operation, most: int) -> str:
    """The rows of the working dataset after an operation, and the part that it touched."""
    if not most:
        return ""
    rows, added = operation.rows_in or 0, operation.added or 0
    effect = find_facts(operation.type).effect
    touched = 0 if Effect.ADDS in effect else operation.selected or 0
    color = "red" if Effect.DELETES in effect else "blue"
    parts = [(touched, color), (rows - touched, "bar"), (added, "green")]
    return '<div class="bar">' + "".join(_part(number, most, each) for number, each in parts if number) + "</div>"


def _part(number: int, most: int, color: str) -> str:
    width = max(100 * number / most, 0.4)
    return f'<i style="width:{width:.2f}%;background:var(--{color})"></i>'


def _outputs(run: RunView) -> str:
    if not run.outputs:
        return '<p class="sub">Nothing was published.</p>'
    rows = [
        (
            str(output.seq),
            f"<b>{escape(output.table)}</b><br><code>{escape(_where(output))}</code>",
            _number(output.rows),
            f"<code>{escape(output.digest)}</code>",
            escape(f"{output.dataset_id} v{output.dataset_version}") if output.dataset_version else "",
        )
        for output in run.outputs.values()
    ]
    columns = "".join(
        f"<details><summary>Columns of {escape(output.table)}</summary>"
        + _table(("column", "type"), [(escape(name), escape(kind)) for name, kind in output.columns.items()])
        + "</details>"
        for output in run.outputs.values()
    )
    head = ("seq", "where", "rows", "digest", "dataset")
    return f'<div class="card">{_table(head, rows, numbers=(2,))}{columns}</div>'


def _where(output: Output) -> str:
    return str(output.location.get("folder") or output.destination)


def _inputs(snapshot: Mapping[str, Any]) -> str:
    pinned = snapshot.get("inputs") or {}
    rows = []
    for reading in snapshot["readings"]:
        seq, alias = reading["operation_seq"] or 0, reading["alias"] or ""
        key = f"{reading['role']}/{reading['dataset']}/v{reading['version']}/{reading['table']}/{seq}/{alias}"
        for location in pinned.get(key, ()):
            day = reading.get("as_of")
            what = reading["role"] + (f", operation {seq}" if seq else "") + (f", as of {day}" if day else "")
            rows.append(
                (
                    f"<b>{escape(reading['dataset'])}</b> v{reading['version']}<br>{escape(what)}",
                    f"<code>{escape(location['name'])}</code>",
                    escape(location["period"] or ""),
                    "<br>".join(_fingerprints(location)),
                )
            )
    if not rows:
        return '<p class="sub">No inputs were found.</p>'
    return f'<div class="card">{_table(("dataset", "location", "period", "fingerprint"), rows)}</div>'


def _fingerprints(location: Mapping[str, Any]) -> Iterable[str]:
    if location.get("fingerprint"):
        yield f"<code>sha256 {escape(location['fingerprint'][:16])}…</code>"
    files = location["files"]
    for file in files[:10]:
        changed = datetime.fromtimestamp(file["modified"] / 1e9, UTC)
        name = escape(file["path"].rpartition("/")[2])
        yield f"{name}, {_number(file['size'])} bytes, {_moment(changed)}"
    if len(files) > 10:
        yield f"and {len(files) - 10} more files"


def _reproduce(run: RunView, *, resumable: bool) -> str:
    clock = run.started_at.isoformat().replace("+00:00", "Z")
    draft = " --draft" if run.draft else ""
    as_of = f" --as-of {run.snapshot['as_of']}" if run.snapshot["as_of"] is not None else ""
    commands = [
        f"dobo verify {run.id}             # the outputs are still these rows",
        f"dobo verify {run.id} --replay    # computing again gives the same rows",
        f"dobo run {run.project} --period {run.period} --started-at {clock}{as_of}{draft}",
    ]
    if resumable:
        commands.insert(0, f"dobo resume {run.id}")
    versions = ", ".join(f"{name} {number}" for name, number in run.snapshot["versions"].items())
    return f'<pre>{escape(chr(10).join(commands))}</pre><p class="sub">Computed with {escape(versions)}.</p>'


def _snapshot(run: RunView) -> str:
    project = run.snapshot["project"]
    text = json.dumps(project["document"], indent=2, ensure_ascii=False)
    whole = json.dumps(dict(run.snapshot), indent=2, ensure_ascii=False)
    return (
        f'<p class="sub">Project fingerprint <code>{escape(project["fingerprint"][:16])}</code></p>'
        f"<details><summary>The project as it was run</summary><pre>{escape(text)}</pre></details>"
        f"<details><summary>The whole snapshot</summary><pre>{escape(whole)}</pre></details>"
    )


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], *, numbers: Sequence[int] = ()) -> str:
    def cell(tag: str, at: int, content: str) -> str:
        return f"<{tag}{' class=n' if at in numbers else ''}>{content}</{tag}>"

    top = "".join(cell("th", at, name) for at, name in enumerate(head))
    lines = "".join("<tr>" + "".join(cell("td", at, each) for at, each in enumerate(row)) + "</tr>" for row in rows)
    return f'<div class="scroll"><table><thead><tr>{top}</tr></thead><tbody>{lines}</tbody></table></div>'


def _number(value: int | None) -> str:
    return "" if value is None else f"{value:,}"


def _moment(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"

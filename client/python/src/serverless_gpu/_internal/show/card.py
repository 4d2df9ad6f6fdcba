# SPDX-License-Identifier: Apache-2.0
"""Renders a job for a notebook, as HTML without scripts or style sheets and as plain text. All external text is escaped. Only the state has
its own colour, so that the card is readable on light and dark pages. Pure: cell.py decides when to show it.
"""

from __future__ import annotations

from datetime import datetime, timezone
from html import escape
from typing import Any

from serverless_gpu._internal.api import tracked
from serverless_gpu._internal.api.watch import TERMINAL
from serverless_gpu._internal.show import sparkline
from serverless_gpu._internal.show.board import Course, Facts
from serverless_gpu._internal.show.tails import Tails

COLOURS = {"SUCCEEDED": "#1a7f37", "RUNNING": "#0969da", "FAILED": "#cf222e", "TIMED_OUT": "#cf222e", "CANCELED": "#9a6700"}
OTHER_COLOUR = "#6e7781"
FAINT = "opacity:.75"
ONE_LINE = "white-space:nowrap;overflow:hidden;text-overflow:ellipsis"
PLACES = 8  # number of nodes that are named
FOLDED_RANKS = 128  # number of ranks that are listed, besides failed ones
FOLDED_CHARACTERS = 512 * 1024  # of all ranks in one list
PREVIEW_CHARACTERS = 120


def spell_duration(seconds: float) -> str:
    """Return a duration as people say it: "0.4 s", "12 s", "3 min 05 s", "2 h 07 min"."""
    if seconds < 10:
        return f"{max(seconds, 0):.1f} s"
    whole = int(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole // 60 % 60:02d} min"


def spell_number(value: float | str) -> str:
    """Return a number in few digits."""
    return value if isinstance(value, str) else f"{value:.5g}"


def _moment(text: str | None) -> float | None:
    return None if text is None else datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def _took(facts: Facts) -> str:
    """Return how long the job has been in its state, or how long an ended job ran; "" if it never ran."""
    view = facts.view
    if view["state"] not in TERMINAL:
        return f"{facts.state_s} s" if facts.state_s < 10 else spell_duration(facts.state_s)
    begin, end = _moment(view.get("started_at")), _moment(view.get("ended_at"))
    return "" if begin is None or end is None else f"after {spell_duration(end - begin)}"


def _spans(devices: str) -> str:
    """Shorten successive numbers: "0-7" for "0,1,2,3,4,5,6,7"."""
    spans: list[list[str]] = []
    for device in devices.split(","):
        if spans and device.isdecimal() and spans[-1][-1].isdecimal() and int(device) == int(spans[-1][-1]) + 1:
            spans[-1].append(device)
        else:
            spans.append([device])
    return ",".join(f"{span[0]}-{span[-1]}" if len(span) > 2 else ",".join(span) for span in spans)


def _where(view: dict[str, Any]) -> str:
    """Return nodes and GPUs: "2 GPUs on node0 (0), node1 (0)"; before the placement, the number that it wants."""
    kind, count = view.get("gpu_type"), view["gpus"]
    gpus = f"{count} {'CPU slot' if kind == 'cpu' else 'GPU'}{'' if count == 1 else 's'}"
    gpus += f" of type {kind}" if kind and kind != "cpu" else ""
    nodes = view["nodes"]
    if not nodes:
        return gpus
    named = [f"{node['node']} ({_spans(node['devices'])})" if node.get("devices") else str(node["node"]) for node in nodes[:PLACES]]
    more = f" and {len(nodes) - PLACES} more nodes" if len(nodes) > PLACES else ""
    return f"{gpus} on {', '.join(named)}{more}"


def _reason(view: dict[str, Any]) -> str:
    """Return why the job waits, why it ended badly, that its GPUs are idle, or that it is kept after a failure; else ""."""
    quiet = view["state"] == "SUCCEEDED" or (view["state"] == "RUNNING" and not (view.get("idle_since") or view.get("kept_until")))
    return "" if quiet else str(view.get("reason") or "")


def _percent(fraction: float) -> str:
    return f"{int(fraction * 100)}%"


# --- the card ---


def _chip(state: str, text: str = "") -> str:
    style = f"background:{COLOURS.get(state, OTHER_COLOUR)};color:#fff;border-radius:3px;padding:1px 7px;font-weight:600"
    return f'<span style="{style}">{escape(text or state)}</span>'


def _progress(facts: Facts) -> str:
    progress = facts.progress
    if progress is None:
        return ""
    words = escape(progress.text or "")
    if progress.fraction is None:
        return f"<div>{words}</div>" if words else ""
    style = "width:240px;max-width:100%;vertical-align:middle"
    bar = f'<progress max="1" value="{progress.fraction:.4f}" aria-label="{words or "progress"}" style="{style}"></progress>'
    return f"<div>{bar} {_percent(progress.fraction)} {words}</div>"


def _course(course: Course) -> str:
    rank = f' <span style="{FAINT}">rank {course.rank}</span>' if course.rank > 0 else ""
    cell = '<td style="text-align:left;vertical-align:middle;padding:0 14px 0 0;border:none;background:none">'
    value = f'<span style="display:inline-block;min-width:6em"><b>{escape(spell_number(course.last))}</b></span>'
    contents = (f"{escape(course.name)}{rank}", value, sparkline.svg(course.points))
    return f'<tr style="background:none">{"".join(f"{cell}{content}</td>" for content in contents)}</tr>'


def _metrics(facts: Facts, job_id: str) -> str:
    if not facts.courses:
        return ""
    rows = "".join(map(_course, facts.courses))
    more = f'<div style="{FAINT}">{facts.more_names} more: <code>gpuctl metrics {job_id}</code></div>' if facts.more_names else ""
    return f'<table style="margin:4px 0;border:none;border-collapse:collapse;font-size:inherit">{rows}</table>{more}'


def _as_of(facts: Facts) -> str:
    """Return the time of the shown state, for a card that is no longer updated; "" for an ended job."""
    if not facts.view or facts.view["state"] in TERMINAL:
        return ""
    return f"as of {datetime.fromtimestamp(facts.at, timezone.utc):%H:%M:%S} UTC"


def _run(facts: Facts) -> str:
    run = facts.run
    if run is None:
        return ""
    words = escape(run.text)
    if run.url.startswith(("https://", "http://")):
        words = f'<a href="{escape(run.url)}" target="_blank" rel="noopener">{words}</a>'
    return f'<div style="{FAINT};font-size:85%">{words}</div>'


def card_html(facts: Facts, job_id: str, url: str, remark: str = "", bar: str = "") -> str:
    """Return the card of a job. `bar` is a progress bar that a rank itself draws."""
    view, shown = facts.view, escape(job_id)
    title = f"<b>{escape(view['name'])}</b> " if view.get("name") else ""
    parts = [f"<div>{_chip(view['state']) if view else ''} {title}<code>{shown}</code>"]
    if view:
        attempt = f" · attempt {view['attempt']}" if view["attempt"] > 1 else ""
        parts[0] += f" {escape(_took(facts))} <span style='{FAINT}'>· {escape(_where(view))}{attempt}</span>"
    parts[0] += "</div>"
    reason = " · ".join(text for text in (_reason(view) if view else "", remark) if text)
    parts.append(f"<div>{escape(reason)}</div>" if reason else "")
    parts += [_progress(facts), _metrics(facts, shown), _run(facts)]
    parts.append(f'<pre style="margin:0;{ONE_LINE}">{escape(bar)}</pre>' if bar else "")
    commands = (f"gpuctl get {job_id}", f"gpuctl logs {job_id}", f'serverless_gpu.attach("{job_id}")')
    hints = (escape(url), *(f"<code>{escape(command)}</code>" for command in commands), _as_of(facts))
    parts.append(f'<div style="{FAINT};font-size:85%">{" · ".join(filter(None, hints))}</div>')
    style = "border-left:3px solid rgba(128,128,128,.5);padding:2px 0 2px 10px;margin:2px 0;line-height:1.6;overflow-wrap:anywhere"
    return f'<div role="group" aria-label="job {shown}" style="{style}">{"".join(parts)}</div>'


def card_text(facts: Facts, job_id: str, url: str, remark: str = "", bar: str = "") -> str:
    """Return the card as a few lines of text."""
    view, progress = facts.view, facts.progress
    name = f" ({view['name']})" if view and view.get("name") else ""
    lines = [f"job {job_id}{name}"]
    if view:
        lines[0] += f": {view['state']} {_took(facts)}".rstrip() + f", {_where(view)}"
        lines += [_reason(view)]
    if progress is not None:
        lines.append(" ".join(part for part in ("" if progress.fraction is None else _percent(progress.fraction), progress.text) if part))
    lines += [f"{course.name} {spell_number(course.last)}" for course in facts.courses]
    lines += [bar, tracked.line(facts.run) if facts.run else "", remark]
    commands = (f"gpuctl get {job_id}", f"gpuctl logs {job_id}", f'serverless_gpu.attach("{job_id}")')
    lines.append("  ".join(filter(None, (url, *commands, _as_of(facts)))))
    return "\n".join(line for line in lines if line)


# --- the ranks that are folded ---


def _nodes_of(view: dict[str, Any]) -> dict[int, str]:
    """Return the node of each rank."""
    spans = [(node["first_rank"], node["local_ranks"], node["node"]) for node in view.get("nodes", ()) if "first_rank" in node]
    return {rank: name for first, count, name in spans for rank in range(first, first + count)}


def _listed(tails: Tails, failed: int | None) -> list[int]:
    """Return the ranks to list: the failed one first, the others in order."""
    ranks = sorted(rank for rank in tails.ranks if rank not in (0, failed))[:FOLDED_RANKS]
    return [*([failed] if failed is not None and failed in tails.ranks else []), *ranks]


def ranks_html(tails: Tails, view: dict[str, Any], job_id: str, lines: int) -> str:
    """Return all ranks except 0 with their last lines, folded; the failed one is open and comes first."""
    failed: int | None = view.get("failed_rank")
    listed, nodes = _listed(tails, failed), _nodes_of(view)
    characters = FOLDED_CHARACTERS // max(len(listed), 1)
    parts = []
    for rank in listed:
        tail = tails.ranks[rank]
        shown = tail.last(lines, characters)
        mark = _chip("FAILED", f"✗ rank {rank} failed") if rank == failed else f"rank {rank}"
        gone = f", the last {len(shown)}" if len(shown) < tail.count else ""
        about = f"{nodes.get(rank, '')} · {tail.count} line{'s' if tail.count != 1 else ''}{gone}".lstrip(" ·")
        preview = escape(shown[-1][:PREVIEW_CHARACTERS]) if shown else ""
        summary = f'{mark} <span style="{FAINT}">{escape(about)}</span> <code style="white-space:nowrap">{preview}</code>'
        text = escape("\n".join(shown))
        parts.append(
            f"<details{' open' if rank == failed else ''}><summary style='{ONE_LINE}'>{summary}</summary>"
            f'<pre style="margin:0 0 4px 18px;max-height:24em;overflow:auto">{text}</pre></details>'
        )
    hidden = len(tails.ranks.keys() - {0}) - len([rank for rank in listed if rank])
    if hidden > 0:
        parts.append(f'<div style="{FAINT}">{hidden} more ranks: <code>gpuctl logs {escape(job_id)} --rank N</code></div>')
    return f'<div style="padding-left:13px">{"".join(parts)}</div>'


def ranks_text(tails: Tails, view: dict[str, Any], job_id: str) -> str:
    """Return the same in few words: who wrote how much, and the last lines of the failed rank."""
    failed: int | None = view.get("failed_rank")
    others = [rank for rank in tails.ranks if rank != 0]
    lines = [f"output of {len(others)} more ranks: gpuctl logs {job_id} --rank N"]
    if failed is not None and failed in tails.ranks:
        lines += [f"rank {failed} failed:", *tails.ranks[failed].last(20, 8000)]
    return "\n".join(lines)

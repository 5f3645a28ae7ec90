"""The pages of a site other than the reports: the index, and the traces' cards."""

from dataclasses import dataclass

from markupsafe import Markup

from s2l.reports import palette
from s2l.reports.moments import moment_text
from s2l.reports.site.index import RunEntry, SiteIndex, TraceEntry
from s2l.reports.standalone import policy, template, template_file
from s2l.reports.units import NOT_KNOWN, duration, percent, times


@dataclass(frozen=True, slots=True)
class Cell:
    """A figure as text, and as what it is sorted by (empty: last)."""

    text: str
    sort: str


@dataclass(frozen=True, slots=True)
class Line:
    """One run in the index, by column."""

    run: RunEntry
    rates: Cell
    stream: Cell
    stream_p95: Cell
    wait: Cell
    wait_p95: Cell
    gain: Cell
    exact: Cell
    not_answered: str
    asked: str


def index_page(index: SiteIndex) -> str:
    """The list of all runs; sorts and filters in the browser."""
    runs = [_line(run) for run in index.newest_first()]
    return _page("site_index.html.j2", index, "", lines=runs, verdicts=_verdicts(index))


def trace_page(index: SiteIndex, trace: TraceEntry) -> str:
    """What is known of a trace, and its runs."""
    runs = [_line(run) for run in index.newest_first() if run.trace_id == trace.id]
    return _page("site_trace.html.j2", index, "../../", lines=runs, trace=trace)


def _page(name: str, index: SiteIndex, root: str, **shown: object) -> str:
    style = palette.stylesheet() + template_file("report.css") + template_file("site.css")
    scripts = [template_file("site.js")]
    return template(name).render(
        index=index,
        root=root,
        style=Markup(style),
        scripts=[Markup(script) for script in scripts],
        policy=policy(style, scripts),
        **shown,
    )


def _verdicts(index: SiteIndex) -> list[str]:
    present = {run.verdict for run in index.runs}
    return [one for one in ("valid", "degraded", "invalid") if one in present]


def _line(run: RunEntry) -> Line:
    figures = {one.delivery: one for one in run.deliveries}
    stream, wait = figures.get("stream"), figures.get("wait")
    return Line(
        run=run,
        rates=_rates(run.rates_qps),
        stream=_time(None if stream is None else stream.ttft_p50_s),
        stream_p95=_time(None if stream is None else stream.ttft_p95_s),
        wait=_time(None if wait is None else wait.ttft_p50_s),
        wait_p95=_time(None if wait is None else wait.ttft_p95_s),
        gain=Cell(times(run.gain), _sort(run.gain)),
        exact=Cell(percent(run.exact_match), _sort(run.exact_match)),
        not_answered=_not_answered(run),
        asked="" if run.asked_at is None else f"asked {moment_text(run.asked_at)}",
    )


def _not_answered(run: RunEntry) -> str:
    """``3 failed, 7 unsent``; empty where all was answered."""
    counts = {
        "failed": sum(one.failed for one in run.deliveries),
        "unsent": sum(one.unsent for one in run.deliveries),
    }
    return ", ".join(f"{n:,} {what}" for what, n in counts.items() if n)


def _rates(rates: list[float]) -> Cell:
    if not rates:
        return Cell(NOT_KNOWN, "")
    ends = dict.fromkeys((rates[0], rates[-1]))
    return Cell("\u2013".join(f"{rate:g}" for rate in ends), repr(rates[-1]))


def _time(value_s: float | None) -> Cell:
    return Cell(duration(value_s), _sort(value_s))


def _sort(value: float | None) -> str:
    return "" if value is None else repr(value)

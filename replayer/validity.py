"""Whether a run can be trusted: METRICS.md's checks, each with its numbers.

The client is checked before the server is believed: a late sender, a busy event loop or a cache
that was warm make wrong numbers that look right. The checks can be asked while a run goes on.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from s2l.replayer.circumstances import Circumstances
from s2l.replayer.run import Counts, Finding, Validity
from s2l.replayer.tally import ClientTally, PassTally, count

DEGRADED: Final = "degraded"
INVALID: Final = "invalid"
NOTE: Final = "note"
"""Worth saying; it says nothing against the run."""
LAG_DEGRADED_S: Final = 0.005
LAG_INVALID_S: Final = 0.050
FAILED_DEGRADED: Final = 0.01
FAILED_INVALID: Final = 0.10
CPU_LIMIT: Final = 0.80
RATE_TOLERANCE: Final = 0.05
TOKEN_TOLERANCE: Final = 0.02


def judge(
    tallies: Sequence[PassTally], clients: Iterable[ClientTally], known: Circumstances
) -> Validity:
    """The verdict on a run: the worst of its findings."""
    findings = [
        *known.remarks,
        *_lag_findings(tallies),
        *(finding for client in clients for finding in _client_findings(client)),
        *_file_findings(tallies),
        *_failure_findings(tallies),
        *_cache_findings(tallies, known.caches_separate),
        *_pairing_findings(tallies),
        *_settings_findings(known.settings_changed),
        *_token_findings(known.token_mismatch),
        *_held_back_findings(tallies, closed_loop=known.closed_loop),
        *([] if known.closed_loop else _rate_findings(tallies, known.unloaded_s)),
        *_calibration_findings(known.calibration),
    ]
    severities = {finding.severity for finding in findings}
    verdict = next((s for s in (INVALID, DEGRADED) if s in severities), "valid")
    return Validity(verdict=verdict, findings=findings)


def _seconds(times_us: Sequence[int]) -> npt.NDArray[np.float64]:
    """Copied, as more may come meanwhile."""
    return np.array(times_us[:], dtype=np.float64) / 1e6


def _lag_findings(tallies: Sequence[PassTally]) -> list[Finding]:
    """Pass by pass: what one may allow for, long answers, says nothing of another."""
    return [finding for tally in tallies for finding in _lag_findings_of(tally)]


def _lag_findings_of(tally: PassTally) -> Iterator[Finding]:
    ttft_s = _seconds(tally.ttft_us)
    allowance_s = 0.01 * float(np.median(ttft_s)) if ttft_s.size else 0.0
    lags = {"schedule_lag_s": tally.start_lag_us, "chunk_lag_s": tally.chunk_lag_us}
    for name, lags_us in lags.items():
        if not lags_us:
            continue
        p99_s = float(np.percentile(_seconds(lags_us), 99))
        for severity, limit_s in ((INVALID, LAG_INVALID_S), (DEGRADED, LAG_DEGRADED_S)):
            limit_s = max(limit_s, allowance_s)
            if p99_s > limit_s:
                limit = f"limit {limit_s * 1e3:.1f} ms"
                text = f"{tally.name}: {name} p99 is {p99_s * 1e3:.1f} ms ({limit})"
                yield Finding(check=name, severity=severity, text=text)
                break


def _client_findings(client: ClientTally) -> list[Finding]:
    if len(client.loop_lag_us) < 2:
        return []
    findings = []
    lag_s = float(np.percentile(_seconds(client.loop_lag_us), 99))
    if lag_s > LAG_DEGRADED_S:
        text = f"event-loop lag p99 is {lag_s * 1e3:.1f} ms (limit {LAG_DEGRADED_S * 1e3:.0f} ms)"
        findings.append(Finding(check="event_loop", severity=DEGRADED, text=text))
    if client.cpu_share > CPU_LIMIT:
        text = f"the client used {client.cpu_share:.0%} of a core (limit {CPU_LIMIT:.0%})"
        findings.append(Finding(check="client_cpu", severity=DEGRADED, text=text))
    return findings


def _file_findings(tallies: Sequence[PassTally]) -> list[Finding]:
    if n := sum(t.out_of_files for t in tallies):
        text = f"{n} requests found no free file descriptor; raise the limit (ulimit -n)"
        return [Finding(check="open_files", severity=INVALID, text=text)]
    return []


def _failure_findings(tallies: Sequence[PassTally]) -> list[Finding]:
    counts = count(tallies)
    findings = [] if _adds_up(counts) else [_not_adding_up(counts)]
    if counts.unsent and counts.sent:
        text = f"{counts.unsent} of {counts.planned} requests were never sent"
        findings.append(Finding(check="unsent", severity=DEGRADED, text=text))
    if counts.sent == 0:
        findings.append(Finding(check="unsent", severity=INVALID, text="nothing was sent"))
    return findings + [finding for tally in tallies for finding in _failed_of(tally)]


def _failed_of(tally: PassTally) -> Iterator[Finding]:
    """Pass by pass: what fails in one delivery alone makes the two no pair. A request that was sent
    again may be one that the server has dropped."""
    kinds = tally.server_failures
    failed = sum(kinds.values())
    if failed > FAILED_DEGRADED * tally.sent:
        severity = INVALID if failed > FAILED_INVALID * tally.sent else DEGRADED
        named = ", ".join(f"{n} {kind}" for kind, n in sorted(kinds.items()))
        text = f"{tally.name}: {failed} of {tally.sent} requests failed ({named})"
        yield Finding(check="failures", severity=severity, text=text)
    if tally.resent:
        severity = DEGRADED if tally.resent > FAILED_DEGRADED * tally.sent else NOTE
        text = (
            f"{tally.name}: {tally.resent} of {tally.sent} requests found a kept connection closed "
            "without a word, and were sent again"
        )
        yield Finding(check="resent", severity=severity, text=text)


def _adds_up(counts: Counts) -> bool:
    sent_adds_up = counts.sent == counts.succeeded + sum(counts.failed.values())
    return counts.planned == counts.sent + counts.unsent and counts.unsent >= 0 and sent_adds_up


def _not_adding_up(counts: Counts) -> Finding:
    text = f"{counts.planned} planned, but {counts.sent} sent and {counts.unsent} unsent"
    return Finding(check="counts", severity=INVALID, text=text)


def _cache_findings(tallies: Sequence[PassTally], separate: bool) -> list[Finding]:
    """Waiting prefills nothing early, so what it finds cached another request left there."""
    if warm := sum(t.warm_tokens for t in tallies):
        requests = sum(t.warm_requests for t in tallies)
        text = f"{requests} waiting requests found {warm} tokens cached where none can be"
        return [Finding(check="warm_cache", severity=INVALID, text=text)]
    if not separate and len({t.delivery for t in tallies}) > 1:
        text = (
            "this server neither keeps the deliveries' caches apart nor could empty them in between"
        )
        return [Finding(check="warm_cache", severity=DEGRADED, text=text)]
    return []


def _pairing_findings(tallies: Sequence[PassTally]) -> list[Finding]:
    """Both deliveries must have prefilled the same prompts."""
    by_point: dict[str, list[PassTally]] = {}
    for tally in tallies:
        by_point.setdefault(tally.name.removeprefix(tally.delivery), []).append(tally)
    differing = sum(
        _differing(one.prompt_tokens, other.prompt_tokens)
        for one, *others in by_point.values()
        for other in others
    )
    if differing:
        text = f"{differing} queries had another number of prompt tokens in the other delivery"
        return [Finding(check="pairing", severity=INVALID, text=text)]
    return []


def _differing(one: Sequence[int], other: Sequence[int]) -> int:
    n = min(len(one), len(other))
    a, b = np.array(one[:n], dtype=np.int64), np.array(other[:n], dtype=np.int64)
    return int(np.count_nonzero((a >= 0) & (b >= 0) & (a != b)))


def _settings_findings(changed: tuple[str, ...]) -> list[Finding]:
    if not changed:
        return []
    text = f"the server's settings changed in mid-run: {', '.join(changed)}"
    return [Finding(check="settings", severity=INVALID, text=text)]


def _token_findings(mismatch: float | None) -> list[Finding]:
    if mismatch is None or mismatch <= TOKEN_TOLERANCE:
        return []
    text = (
        f"the server's usage and its tokenizer differ by {mismatch:.1%} on the answers' tokens "
        f"(limit {TOKEN_TOLERANCE:.0%})"
    )
    return [Finding(check="token_counts", severity=NOTE, text=text)]


def _held_back_findings(tallies: Sequence[PassTally], *, closed_loop: bool) -> list[Finding]:
    held, sent = sum(t.held_back for t in tallies), sum(t.sent for t in tallies)
    if closed_loop or not held:
        return []
    text = f"{held} of {sent} requests waited for their turn (--max-concurrency)"
    severity = DEGRADED if held > RATE_TOLERANCE * sent else NOTE
    return [Finding(check="held_back", severity=severity, text=text)]


def _rate_findings(tallies: Sequence[PassTally], unloaded_s: float | None) -> list[Finding]:
    """The rate achieved against the one offered.

    No server can answer before the context is due, nor faster than it does when idle. So the
    offered rate counts to the last context's due time and one unloaded latency more; without
    that, the last answers' latency would make every short run look slow.
    """
    findings = []
    for tally in tallies:
        if tally.first_start_us is None:
            continue
        latency_us = (tally.fastest_us or 0) if unloaded_s is None else unloaded_s * 1e6
        span_us = tally.last_due_us + latency_us - tally.first_start_us
        taken_us = tally.last_end_us - tally.first_start_us
        if span_us <= 0 or taken_us <= 0:
            continue
        offered, achieved = tally.succeeded / (span_us / 1e6), tally.succeeded / (taken_us / 1e6)
        if achieved < (1 - RATE_TOLERANCE) * offered:
            text = (
                f"{tally.name}: {achieved:.3g} requests/s completed of {offered:.3g} offered "
                "(retrieval times included); latencies are those of a saturated server"
            )
            findings.append(Finding(check="saturated", severity=DEGRADED, text=text))
    return findings


def _calibration_findings(calibration: dict[str, Any] | None) -> list[Finding]:
    findings = []
    for name in ("lag_p99_ms", "ttft_error_p99_ms"):
        value = (calibration or {}).get(name)
        if value is not None and value > LAG_DEGRADED_S * 1e3:
            text = f"calibrated on this machine, the client's {name} is {value:.1f}"
            findings.append(Finding(check="calibration", severity=DEGRADED, text=text))
    return findings

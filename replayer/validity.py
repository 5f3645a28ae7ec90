"""Whether a run can be trusted: METRICS.md's checks, each with its numbers.

The client is checked before the server is believed: a late sender, a busy event loop or a cache
that was warm make wrong numbers that look right.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Final

import numpy as np

from s2l.replayer.monitor import ClientSample
from s2l.replayer.record import RequestRecord
from s2l.replayer.run import Counts, Finding, Validity

DEGRADED: Final = "degraded"
INVALID: Final = "invalid"
LAG_DEGRADED_S: Final = 0.005
LAG_INVALID_S: Final = 0.050
FAILED_DEGRADED: Final = 0.01
FAILED_INVALID: Final = 0.10
CPU_LIMIT: Final = 0.80
RATE_TOLERANCE: Final = 0.05


def count(records: Sequence[RequestRecord]) -> Counts:
    """Requests by how they ended."""
    failed = Counter(r.error_type for r in records if r.sent and r.error_type is not None)
    return Counts(
        planned=len(records),
        sent=sum(r.sent for r in records),
        succeeded=sum(r.succeeded for r in records),
        unsent=sum(not r.sent for r in records),
        failed={str(kind): n for kind, n in sorted(failed.items(), key=lambda kv: str(kv[0]))},
    )


def judge(
    records: Sequence[RequestRecord],
    samples: Sequence[ClientSample],
    *,
    caches_separate: bool,
    unloaded_s: float | None = None,
) -> Validity:
    """The verdict on a run: the worst of its findings.

    ``unloaded_s`` is the latency of a request to the idle server, from context due to last token.
    """
    findings = [
        *_lag_findings(records),
        *_client_findings(samples),
        *_failure_findings(count(records)),
        *_cache_findings(records, caches_separate),
        *_pairing_findings(records),
        *_rate_findings(records, unloaded_s),
    ]
    severities = {finding.severity for finding in findings}
    verdict = next((s for s in (INVALID, DEGRADED) if s in severities), "valid")
    return Validity(verdict=verdict, findings=findings)


def _lag_findings(records: Sequence[RequestRecord]) -> list[Finding]:
    ttft_s = [
        (r.token_us[0] - r.context_intended_us) / 1e6 for r in records if r.succeeded and r.token_us
    ]
    allowance_s = 0.01 * float(np.median(ttft_s)) if ttft_s else 0.0
    starts = [(r.start_us - r.start_intended_us) / 1e6 for r in records if r.start_us is not None]
    chunks = [
        (c.sent_us - c.send_intended_us) / 1e6
        for r in records
        for c in r.chunks
        if c.sent_us is not None
    ]
    chunks += [
        (r.context_us - r.context_intended_us) / 1e6 for r in records if r.context_us is not None
    ]
    return [
        finding
        for name, lags in (("schedule_lag_s", starts), ("chunk_lag_s", chunks))
        for finding in _lag_finding(name, lags, allowance_s)
    ]


def _lag_finding(name: str, lags_s: list[float], allowance_s: float) -> list[Finding]:
    if not lags_s:
        return []
    p99_s = float(np.percentile(lags_s, 99))
    limits = ((INVALID, LAG_INVALID_S), (DEGRADED, LAG_DEGRADED_S))
    for severity, limit_s in limits:
        if p99_s > max(limit_s, allowance_s):
            limit_ms = max(limit_s, allowance_s) * 1e3
            text = f"{name} p99 is {p99_s * 1e3:.1f} ms (limit {limit_ms:.1f} ms)"
            return [Finding(check=name, severity=severity, text=text)]
    return []


def _client_findings(samples: Sequence[ClientSample]) -> list[Finding]:
    if len(samples) < 2:
        return []
    findings = []
    lag_s = float(np.percentile([s.loop_lag_us for s in samples], 99)) / 1e6
    if lag_s > LAG_DEGRADED_S:
        text = f"event-loop lag p99 is {lag_s * 1e3:.1f} ms (limit {LAG_DEGRADED_S * 1e3:.0f} ms)"
        findings.append(Finding(check="event_loop", severity=DEGRADED, text=text))
    wall_s = (samples[-1].time_us - samples[0].time_us) / 1e6
    cpu = (samples[-1].cpu_s - samples[0].cpu_s) / wall_s if wall_s > 0 else 0.0
    if cpu > CPU_LIMIT:
        text = f"the client used {cpu:.0%} of a core (limit {CPU_LIMIT:.0%})"
        findings.append(Finding(check="client_cpu", severity=DEGRADED, text=text))
    return findings


def _failure_findings(counts: Counts) -> list[Finding]:
    findings = []
    failed = sum(counts.failed.values())
    if counts.planned != counts.sent + counts.unsent:
        text = f"{counts.planned} planned, but {counts.sent} sent and {counts.unsent} unsent"
        findings.append(Finding(check="counts", severity=INVALID, text=text))
    if counts.unsent:
        text = f"{counts.unsent} of {counts.planned} requests were never sent"
        findings.append(Finding(check="unsent", severity=DEGRADED, text=text))
    if counts.sent and failed / counts.sent > FAILED_DEGRADED:
        severity = INVALID if failed / counts.sent > FAILED_INVALID else DEGRADED
        kinds = ", ".join(f"{n} {kind}" for kind, n in counts.failed.items())
        text = f"{failed} of {counts.sent} requests failed ({kinds})"
        findings.append(Finding(check="failures", severity=severity, text=text))
    if counts.sent == 0:
        findings.append(Finding(check="unsent", severity=INVALID, text="nothing was sent"))
    return findings


def _cache_findings(records: Sequence[RequestRecord], separate: bool) -> list[Finding]:
    """Waiting prefills nothing early, so what it finds cached another request left there."""
    waits = [r for r in records if r.delivery == "wait" and r.usage and r.usage.cached_tokens]
    warm = sum(r.usage.cached_tokens or 0 for r in waits if r.usage)
    if warm:
        text = f"{len(waits)} waiting requests found {warm} tokens cached where none can be"
        return [Finding(check="warm_cache", severity=INVALID, text=text)]
    unknown = any(
        r.delivery == "wait" and r.usage and r.usage.cached_tokens is None for r in records
    )
    if unknown and not separate and len({r.delivery for r in records}) > 1:
        text = "this server neither keeps the deliveries' caches apart nor says what was cached"
        return [Finding(check="warm_cache", severity=DEGRADED, text=text)]
    return []


def _pairing_findings(records: Sequence[RequestRecord]) -> list[Finding]:
    """Both deliveries must have prefilled the same prompts."""
    prompts: dict[str, set[int]] = {}
    for record in records:
        if record.usage and record.usage.prompt_tokens is not None:
            prompts.setdefault(record.query_id, set()).add(record.usage.prompt_tokens)
    if differing := sum(len(tokens) > 1 for tokens in prompts.values()):
        text = f"{differing} queries had another number of prompt tokens in the other delivery"
        return [Finding(check="pairing", severity=INVALID, text=text)]
    return []


def _rate_findings(records: Sequence[RequestRecord], unloaded_s: float | None) -> list[Finding]:
    """The rate achieved against the one offered.

    No server can answer before the context is due, nor faster than it does when idle. So the
    offered rate counts to the last context's due time and one unloaded latency more; without
    that, the last answers' latency would make every short run look slow.
    """
    findings = []
    for delivery in sorted({r.delivery for r in records}):
        mine = [r for r in records if r.delivery == delivery and r.succeeded]
        ends = [r.end_us for r in mine if r.end_us is not None]
        if not ends:
            continue
        first_us = min(r.start_intended_us for r in mine)
        fastest_us = min(r.end_us - r.context_intended_us for r in mine if r.end_us is not None)
        latency_us = fastest_us if unloaded_s is None else unloaded_s * 1e6
        last_due_us = max(r.context_intended_us for r in mine)
        offered = len(ends) / ((last_due_us + latency_us - first_us) / 1e6)
        achieved = len(ends) / ((max(ends) - first_us) / 1e6)
        if achieved < (1 - RATE_TOLERANCE) * offered:
            text = (
                f"{delivery}: {achieved:.3g} requests/s completed of {offered:.3g} offered "
                "(retrieval times included); latencies are those of a saturated server"
            )
            findings.append(Finding(check="saturated", severity=DEGRADED, text=text))
    return findings

"""How a run was made, as label and text."""

import shlex
from collections.abc import Iterator, Mapping
from typing import Any, Final

from s2l.replayer.run import RunInfo

Fact = tuple[str, str]
_WHOLE_FROM: Final = 1e5
"""From here on six digits are all before the point."""


def command(info: RunInfo) -> str:
    """The command line, ready to be pasted into a shell."""
    return shlex.join(info.command)


def facts(info: RunInfo) -> list[Fact]:
    """What was measured, with what, where and when; folders of the machine are left out."""
    target = info.target
    engine = f"{target.server} {target.server_version}".strip()
    where = "embedded, started for this run" if target.embedded else target.url
    return [
        ("Model", target.model or "not stated"),
        ("Server", f"{engine or 'not stated'} ({where}; adapter {target.adapter})"),
        ("Trace", f"{info.trace.name} (sha256 {info.trace.sha256})"),
        ("Seed", str(info.seed)),
        ("Recorded", info.created_utc),
        ("Schedule", sentence(info.schedule)),
        ("Warm-up", sentence(info.warmup)),
        ("Options", sentence(info.options)),
        ("Server settings", sentence(target.settings)),
        ("Host", sentence(info.host)),
    ]


def client_error(info: RunInfo) -> str:
    """The client's own error, by its calibration against a server of known latencies."""
    found = info.calibration
    if not found:
        return "The client's own error was not measured on this machine (no calibration)."
    parts = [
        f"{label} {value:.2f} ms"
        for key, label in _ERRORS.items()
        if isinstance(value := found.get(key), int | float)
    ]
    how = []
    if isinstance(n := found.get("requests"), int):
        how.append(f"{n:,} requests")
    if isinstance(rate := found.get("rate_qps"), int | float):
        how.append(f"{rate:g} requests/s")
    when = f", {found['created_utc'][:10]}" if isinstance(found.get("created_utc"), str) else ""
    measured = f" ({' at '.join(how)}{when})" if how else ""
    errors = ", ".join(parts) or "not stated"
    return f"The client's own error on this machine: {errors}{measured}."


_ERRORS: Final = {
    "lag_p99_ms": "send lag p99",
    "ttft_error_p50_ms": "TTFT error p50",
    "ttft_error_p99_ms": "TTFT error p99",
}


def reproduce(info: RunInfo) -> list[str]:
    """What to do to have the run again, step by step."""
    version = info.packages.get("s2l")
    target = info.target
    engine = f"{target.server} {target.server_version}".strip() or "the server"
    model = f" with the model {target.model}" if target.model else ""
    server = (
        f"The engine starts by itself: {engine}{model}."
        if target.embedded
        else f"Start {engine}{model} with the server settings above, and name it by --target."
    )
    return [
        f"Install s2l {version} with the packages listed below."
        if version
        else "Install s2l with the packages listed below.",
        f"Have the trace {info.trace.name}; the sha256 of its manifest is {info.trace.sha256}.",
        server,
        f"Run the command above. Its seed, {info.seed}, fixes the schedule and the prompts.",
    ]


def sentence(settings: Mapping[str, Any]) -> str:
    """``name: value`` pairs in one line, nested names joined by a dot, without empty values."""
    return "; ".join(f"{name}: {value}" for name, value in _flat(settings, "")) or "not stated"


def _flat(settings: Mapping[str, Any], prefix: str) -> Iterator[Fact]:
    for name, value in settings.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        elif text := _text(value):
            yield f"{prefix}{name}", text


def _text(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.0f}" if abs(value) >= _WHOLE_FROM else f"{value:.6g}"
    if isinstance(value, list):
        return ", ".join(map(_text, value))
    return str(value)

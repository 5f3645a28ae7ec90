"""How a run was made, as label and text."""

import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from s2l.replayer.run import RunInfo

Fact = tuple[str, str]


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


def sentence(settings: Mapping[str, Any]) -> str:
    """``name: value`` pairs in one line, nested names joined by a dot."""
    return "; ".join(f"{name}: {value}" for name, value in _flat(settings, "")) or "not stated"


def _flat(settings: Mapping[str, Any], prefix: str) -> Iterator[Fact]:
    for name, value in settings.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", _text(value)


def _text(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(map(_text, value))
    return str(value)

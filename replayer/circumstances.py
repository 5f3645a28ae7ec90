"""What is known of a run beside its requests, asked of the server once they are over."""

import asyncio
from dataclasses import dataclass
from typing import Any, Final

from s2l.replayer.options import ReplayOptions
from s2l.replayer.run import Finding
from s2l.serving_adapter.base import ServerInfo, ServingAdapter, ServingError

ASK_S: Final = 5.0
"""How long the server may take to answer once more."""


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What a verdict takes into account.

    ``unloaded_s`` is the latency of a request to the idle server, from context due to last token.
    ``settings_changed`` are settings that the server states otherwise at the end than before.
    ``token_mismatch`` is |tokenizer - usage| / usage over a sample of answers, None where not
    known. ``calibration`` is ``RunInfo.calibration``. ``remarks`` are what else went wrong.
    """

    caches_separate: bool
    closed_loop: bool = False
    unloaded_s: float | None = None
    settings_changed: tuple[str, ...] = ()
    token_mismatch: float | None = None
    calibration: dict[str, Any] | None = None
    remarks: tuple[Finding, ...] = ()


async def circumstances(
    before: ServerInfo,
    adapter: ServingAdapter,
    answers: list[tuple[str, int]],
    *,
    options: ReplayOptions,
    caches_emptied: bool,
    unloaded_s: float | None,
    calibration: dict[str, Any] | None,
    remarks: tuple[Finding, ...],
) -> Circumstances:
    """Ask the server what it states now, and how many tokens its tokenizer finds in ``answers``:
    texts with the tokens that its usage said. A server that is gone is asked nothing."""
    changed: tuple[str, ...] = ()
    mismatch = None
    try:
        async with asyncio.timeout(ASK_S):
            changed = _differences(before, await adapter.probe())
            if before.capabilities.counts_tokens and answers:
                mismatch = await _mismatch(adapter, answers)
    except (ServingError, TimeoutError):
        remarks += (_gone(),)
    return Circumstances(
        caches_separate=before.capabilities.separate_caches or caches_emptied,
        closed_loop=options.concurrency is not None,
        unloaded_s=unloaded_s,
        settings_changed=changed,
        token_mismatch=mismatch,
        calibration=calibration,
        remarks=remarks,
    )


def _gone() -> Finding:
    text = "the server did not answer after the last request, so its settings were not compared"
    return Finding(check="settings", severity="note", text=text)


def _differences(before: ServerInfo, after: ServerInfo) -> tuple[str, ...]:
    one, other = ({**i.settings, "model": i.model, "version": i.version} for i in (before, after))
    return tuple(sorted(k for k in {*one, *other} if one.get(k) != other.get(k)))


async def _mismatch(adapter: ServingAdapter, answers: list[tuple[str, int]]) -> float | None:
    said = sum(tokens for _, tokens in answers)
    counted = sum(await adapter.count_tokens([text for text, _ in answers]))
    return abs(counted - said) / said if said else None

"""What was done to a trace after it was captured; kept in its manifest, told in its card."""

from typing import Any, Final

from msgspec.structs import replace

from s2l.workloads.manifest import Manifest
from s2l.workloads.plural import counted

CHANGES: Final = "changes"
"""The key of the collector's options that holds the list."""


def changes_of(manifest: Manifest) -> list[dict[str, Any]]:
    """What was done, first to last; each has ``what``, and figures of its own."""
    found = manifest.collector.options.get(CHANGES, [])
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def with_change(manifest: Manifest, change: dict[str, Any]) -> Manifest:
    """The manifest with one more change."""
    options = {**manifest.collector.options, CHANGES: [*changes_of(manifest), change]}
    return replace(manifest, collector=replace(manifest.collector, options=options))


def change_in_words(change: dict[str, Any]) -> str:
    """One sentence about a change, for a card."""
    what = change.get("what")
    if what == "takedown":
        return (
            f"Taken out at their owners' wish: {counted(_n(change, 'documents'), 'document')}, by "
            f"{counted(_n(change, 'patterns'), 'address pattern')}. Marked taken_down, as nothing "
            f"else was brought: {counted(_n(change, 'arrivals'), 'arrival')}."
        )
    if what == "scrub":
        return f"Personal data and secrets were replaced: {_found(change)}."
    if what == "hide":
        return f"Hidden afterwards: privacy {change.get('privacy')}."
    if what == "refetch":
        return (
            f"Texts were fetched anew: {_n(change, 'same'):,} as they were, "
            f"{_n(change, 'changed'):,} changed since ({change.get('changed_are')}), "
            f"{_n(change, 'failed'):,} not to be had and left out."
        )
    return f"{what}."


def _n(change: dict[str, Any], key: str) -> int:
    """A count; 0 where a stranger's manifest has something else."""
    value = change.get(key, 0)
    return value if isinstance(value, int) else 0


def _found(change: dict[str, Any]) -> str:
    found = change.get("found")
    if not isinstance(found, dict) or not found:
        return "none was found"
    sums = {kind: sum(n.values()) for kind, n in found.items() if isinstance(n, dict)}
    return ", ".join(f"{n:,} {kind}" for kind, n in sums.items())

"""A finished trace with more of it hidden."""

from pathlib import Path

from s2l.workloads.errors import TraceError
from s2l.workloads.manifest import Manifest
from s2l.workloads.privacy import HIDE
from s2l.workloads.scrubbing.rewriting import Edits, Tell, rewrite
from s2l.workloads.trace import Trace


def conceal(trace: Trace, path: Path, privacy: str, tell: Tell = lambda done: None) -> Manifest:
    """Write the trace with this privacy setting to the new folder ``path``; see ``rewrite``.

    Raises:
        TraceError: no such setting, or one that would show more than the trace has.
    """
    levels = list(HIDE)
    if privacy not in levels:
        raise TraceError(f"privacy {privacy!r} is not one of {', '.join(levels)}")
    if levels.index(privacy) < levels.index(trace.manifest.privacy):
        raise TraceError(
            f"{trace.path}: has privacy {trace.manifest.privacy}, what it hides is gone; texts "
            "can be fetched anew with: s2l dataset refetch"
        )
    change = {"what": "hide", "privacy": privacy}
    return rewrite(trace, path, Edits(), lambda _: change, privacy=privacy, tell=tell)

"""Exporting: from a trace dataset to an outside format."""

from pathlib import Path

from s2l.workloads.errors import ExportFailed, disk_error
from s2l.workloads.formats.base import ExportOptions, Format
from s2l.workloads.trace import Trace


def export_trace(trace: Trace, fmt: Format, out: Path, options: ExportOptions) -> int:
    """Write the trace to the new file or folder ``out``; how many queries it has there.

    Raises:
        ExportFailed: the format has no place for this trace, or something is at ``out``.
        TraceError: the trace is damaged, or ``out`` cannot be written.
    """
    if fmt.write is None:
        raise ExportFailed(f"{fmt.name} can be imported only")
    if out.is_file() or (out.is_dir() and next(out.iterdir(), None) is not None):
        raise ExportFailed(f"{out}: is there already; name a new file or folder")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise disk_error(out.parent, error) from None
    return fmt.write(trace, out, options)

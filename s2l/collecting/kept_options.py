"""The options of a crawl under way, kept whole where the record of them hides some."""

import os
from pathlib import Path
from typing import Final

import click
import msgspec

from s2l.collecting.crawl_options import CrawlOptions
from s2l.workloads.errors import disk_error
from s2l.workloads.manifest import Collector
from s2l.workloads.wal import WAL

_FILE: Final = "crawl.json"


def keep_options(path: Path, options: CrawlOptions) -> None:
    """Beside the log of the trace in ``path``, for its owner alone, until the trace is finished.

    Nothing is written where the record hides nothing.

    Raises:
        TraceError: the disk would not take it.
    """
    if not options.hides_something:
        return
    try:
        descriptor = os.open(path / WAL / _FILE, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(msgspec.json.encode(options))
            file.flush()
            os.fsync(descriptor)
    except OSError as error:
        raise disk_error(path, error) from None


def kept_options(path: Path, collector: Collector) -> CrawlOptions:
    """The options of the interrupted crawl in ``path``, which ``collector`` records.

    Raises:
        click.UsageError: they are not those of a crawl, or are not all known.
    """
    try:
        return msgspec.json.decode((path / WAL / _FILE).read_bytes(), type=CrawlOptions)
    except FileNotFoundError:
        options = CrawlOptions.from_recorded(collector.options, path)
    except msgspec.MsgspecError as error:
        raise click.UsageError(f"{path / WAL / _FILE}: damaged: {error}") from None
    if options.hides_something:
        raise click.UsageError(
            f"{path}: cannot be resumed, keys in its addresses or its cache are not kept with it; "
            f"keep what was captured with: s2l dataset recover {path}"
        )
    return options

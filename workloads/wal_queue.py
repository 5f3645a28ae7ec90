"""The questions of a capture, on disk before the first is asked, so that it can be resumed."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from s2l.workloads.durable import write_durably
from s2l.workloads.errors import NotATrace
from s2l.workloads.query import Query
from s2l.workloads.wal import WAL

QUEUE: Final = "queue.jsonl"


def write_queue(folder: Path, queries: Sequence[Query]) -> None:
    """Write all questions into the log's folder, which exists.

    Raises:
        OSError: the system would not write.
        ValueError: a question that no file could hold.
    """
    try:
        lines = [msgspec.json.encode(query) + b"\n" for query in queries]
    except (TypeError, UnicodeError, msgspec.MsgspecError) as error:
        raise ValueError(f"queue: a value that does not belong: {error}") from None
    write_durably(folder / WAL / QUEUE, b"".join(lines))


def read_queue(folder: Path) -> list[Query]:
    """The questions, in order.

    Raises:
        NotATrace: there are none, or they are damaged.
    """
    file = folder / WAL / QUEUE
    try:
        return msgspec.json.Decoder(Query).decode_lines(file.read_bytes())
    except FileNotFoundError:
        raise NotATrace(
            f"{folder}: its capture cannot be resumed, its questions are not in it; "
            f"keep what was captured with: s2l dataset recover {folder}"
        ) from None
    except msgspec.MsgspecError as error:
        raise NotATrace(f"{file}: damaged: {error}") from None

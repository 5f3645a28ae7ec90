"""How much of a stranger's dataset is taken."""

from dataclasses import dataclass
from typing import Final

MiB: Final = 1 << 20
GiB: Final = 1 << 30


@dataclass(frozen=True, slots=True)
class Limits:
    """Sizes in bytes and code points, times in seconds and microseconds.

    ``memory_bytes``, ``cpu_s`` and ``wall_s`` are those of the process that looks at it;
    ``expansion`` is how many times larger a Parquet file may say it is than it is.
    """

    manifest_bytes: int = 16 * MiB
    total_bytes: int = 64 * GiB
    files: int = 10_000
    rows: int = 500_000_000
    expansion: int = 2_000
    id_chars: int = 512
    text_chars: int = 64 * MiB
    meta_chars: int = 4 * MiB
    url_chars: int = 65_536
    documents_per_arrival: int = 100_000
    arrival_us: int = 30 * 86_400 * 1_000_000
    offset_us: int = 10 * 366 * 86_400 * 1_000_000
    memory_bytes: int = 6 * GiB
    cpu_s: int = 3_600
    wall_s: int = 7_200

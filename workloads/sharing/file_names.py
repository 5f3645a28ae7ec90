"""Which files a shared dataset may consist of: never a path that leaves its folder."""

import re
from typing import Final

from s2l.workloads.manifest import MANIFEST

CARD: Final = "README.md"
CROISSANT: Final = "croissant.json"
PLOT: Final = "shape.svg"
EXTRAS: Final = (CARD, PLOT, CROISSANT)

_TABLES: Final = re.compile(
    r"queries\.parquet|(?:arrivals|documents)/[A-Za-z0-9][A-Za-z0-9_-]{0,63}\.parquet", re.ASCII
)


def is_table(name: str) -> bool:
    """Whether the path inside the folder is that of a table."""
    return _TABLES.fullmatch(name) is not None


def is_known(name: str) -> bool:
    """Whether a shared dataset may have a file of this path; all else is refused or left out."""
    return name == MANIFEST or name in EXTRAS or is_table(name)

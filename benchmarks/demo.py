"""The demo's gain: how many times sooner the first token comes when context is streamed.

Runs ``s2l demo`` in a folder of its own and prints the figures as one JSON object on the last
line. Run it with the environment's Python: ``.venv/bin/python benchmarks/demo.py [--quick]``.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any


def figures(summary: dict[str, Any]) -> dict[str, Any]:
    """The keys that the design names, out of a summary of ``s2l replay --json``."""
    counts, gain = summary["info"]["counts"], summary["gain"]
    sides = {side["percentile"]: side["ratio"] for side in gain["sides"]}
    return {
        "gain_p50": gain["median"],
        "gain_interval": [gain["interval"]["low"], gain["interval"]["high"]],
        "gain_p95": sides["p95"],
        "ok": counts["succeeded"],
        "failed": sum(counts["failed"].values()) + counts["unsent"],
        "parity": summary["parity"]["share"],
        "verdict": summary["info"]["validity"]["verdict"],
        "seconds": sum(one["end_us"] - one["start_us"] for one in summary["info"]["passes"]) / 1e6,
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="6 queries, one or two minutes")
    quick = parser.parse_args().quick
    options = ["-n", "6", "--qps", "0.4"] if quick else ["-n", "20"]
    s2l = Path(sys.executable).with_name("s2l")
    with tempfile.TemporaryDirectory() as folder:
        start_s = time.monotonic()
        command = [str(s2l), "demo", "--json", *options]
        done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, check=True, text=True)
        seconds = round(time.monotonic() - start_s, 1)
    kinds = json.loads(done.stdout)
    found = {kind: figures(summary) for kind, summary in kinds.items()}
    print(json.dumps({"quick": quick, "seconds": seconds, **found}))


if __name__ == "__main__":
    main()

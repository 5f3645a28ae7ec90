"""``python -m s2l.collectors.demo_site``: serve the demo site in this process."""

import argparse
import asyncio
import errno
import json
import os
import signal
import sys
import threading
from pathlib import Path

from s2l.collectors.demo_site.catalogue import MODULES
from s2l.collectors.demo_site.latency import LatencyProfile
from s2l.collectors.demo_site.process import PORT_TAKEN
from s2l.collectors.demo_site.site import serve


def main() -> int:
    """Serve until interrupted; with ``--with-parent``, also until standard input ends."""
    options = _parse()
    try:
        profile = LatencyProfile(options.seed, options.speed, options.failure_rate)
        asyncio.run(_run(options, profile))
    except (OSError, ValueError) as error:
        print(error, file=sys.stderr)
        taken = isinstance(error, OSError) and error.errno == errno.EADDRINUSE
        return PORT_TAKEN if taken else 1
    return 0


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m s2l.collectors.demo_site")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0, help="0: any free one")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--speed", type=float, default=1.0, help="divides every latency")
    parser.add_argument("--failure-rate", type=float, default=0.0, help="share of pages with 503")
    parser.add_argument(
        "--modules",
        nargs="+",
        choices=MODULES,
        default=MODULES,
        metavar="NAME",
        help="serve only the pages of these",
    )
    parser.add_argument("--log", type=Path, help="append a JSON line per response here")
    parser.add_argument("--with-parent", action="store_true", help="end when standard input ends")
    return parser.parse_args()


async def _run(options: argparse.Namespace, profile: LatencyProfile) -> None:
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, ended.set)
    if options.with_parent:
        _watch_input(loop, ended)

    async def until() -> None:
        await ended.wait()

    await serve(
        host=options.host,
        port=options.port,
        modules=options.modules,
        profile=profile,
        log_path=options.log,
        ready=lambda url: print(json.dumps({"url": url}), flush=True),
        until=until,
    )


def _watch_input(loop: asyncio.AbstractEventLoop, ended: asyncio.Event) -> None:
    """The parent holds the other end of standard input: its end is the parent's end."""

    def watch() -> None:
        # Not through sys.stdin: its lock, held here, would break the interpreter's exit.
        while os.read(0, 4096):
            pass
        loop.call_soon_threadsafe(ended.set)

    threading.Thread(target=watch, daemon=True).start()


if __name__ == "__main__":
    sys.exit(main())

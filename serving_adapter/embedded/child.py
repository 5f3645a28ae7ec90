"""Runs vLLM's API server and ends with its parent: standard input closes, the server stops.

A parent that is killed cannot stop its children; a closed pipe tells them all the same.
"""

import os
import runpy
import signal
import sys
import threading


def _stop_with_parent() -> None:
    while sys.stdin.buffer.read(4096):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    threading.Thread(target=_stop_with_parent, daemon=True).start()
    runpy.run_module("vllm.entrypoints.launchers.api_server.entry", run_name="__main__")

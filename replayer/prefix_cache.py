"""Emptying a server's prefix cache between passes, where caches cannot be kept apart."""

from typing import Final

from s2l.replayer.server_http import ServerHttp
from s2l.serving_adapter.base import ServingError

RESETS: Final = ("/reset_prefix_cache", "/flush_cache")
"""Paths by which vLLM (in its development mode) and SGLang empty it."""

_NO_SUCH_PATH: Final = (404, 405, 501)


def reset_prefix_cache(url: str, api_key: str | None = None) -> bool:
    """Ask the server to empty its prefix cache. Whether it did: False where it offers no such way.

    It blocks: call it in a thread, while nothing is measured and nothing runs on the server.

    Raises:
        ServingError: the server does not answer, or would not do it.
    """
    server = ServerHttp(url, api_key)
    try:
        for path in RESETS:
            status, body = server.ask("POST", path)
            if status in _NO_SUCH_PATH:
                continue
            if status != 200:
                said = " ".join(body[:200].decode("utf-8", "replace").split())
                raise ServingError("rejected", f"{path}: HTTP {status} {said}".rstrip())
            return True
        return False
    finally:
        server.close()

"""Short requests to the server beside the measured ones: its metrics, its prefix cache."""

import http.client
import ssl
from typing import Final
from urllib.parse import urlsplit

from s2l.serving_adapter.base import ServingError

TIMEOUT_S: Final = 5.0
MOST_BYTES: Final = 16_000_000
"""Of an answer: a page of metrics is a few hundred kilobytes."""

_API_ROOT: Final = "/v1"


class ServerHttp:
    """One kept connection to a server; its calls block, and are for threads of their own.

    The key is sent to this server alone: redirects are not followed, and no proxy is used.
    """

    def __init__(self, url: str, api_key: str | None = None) -> None:
        parts = urlsplit(url)
        if parts.hostname is None:
            raise ValueError(f"{url!r} is not a server address; write http://HOST:PORT")
        self._root = parts.path.rstrip("/").removesuffix(_API_ROOT)
        self._headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self._connection = (
            http.client.HTTPSConnection(
                parts.hostname, parts.port, timeout=TIMEOUT_S, context=ssl.create_default_context()
            )
            if parts.scheme == "https"
            else http.client.HTTPConnection(parts.hostname, parts.port, timeout=TIMEOUT_S)
        )

    def ask(self, method: str, path: str) -> tuple[int, bytes]:
        """The status and the body of the answer to a request below the server's root.

        Raises:
            ServingError: nothing answers, or not in time, or not HTTP, or endlessly.
        """
        try:
            return self._ask(method, path)
        except (http.client.HTTPException, ConnectionError):
            self.close()  # it may have been an old connection that the server had let go
        try:
            return self._ask(method, path)
        except ConnectionRefusedError:
            self.close()
            raise ServingError("refused", f"{path}: nothing listens") from None
        except (http.client.HTTPException, OSError) as error:
            self.close()
            raise ServingError("connect", f"{path}: {error or type(error).__name__}") from None

    def _ask(self, method: str, path: str) -> tuple[int, bytes]:
        try:
            self._connection.request(method, self._root + path, headers=self._headers)
            response = self._connection.getresponse()
            body = response.read(MOST_BYTES + 1)
        except TimeoutError:
            self.close()
            raise ServingError("connect_timeout", f"{path}: no answer in {TIMEOUT_S:g} s") from None
        if len(body) > MOST_BYTES:
            self.close()
            raise ServingError("protocol", f"{path}: more than {MOST_BYTES:,} bytes")
        return response.status, body

    def close(self) -> None:
        """Let the connection go; the next request opens another one."""
        self._connection.close()

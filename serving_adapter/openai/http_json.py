"""Small JSON requests to a server, outside of what is measured."""

from typing import Any

import aiohttp
import msgspec

from s2l.serving_adapter.base import ServingError
from s2l.serving_adapter.openai.server_error import http_error

AT_ONCE = 16


class HttpJson:
    """A server's endpoints that take and give JSON. Proxies of the environment are not used."""

    def __init__(self, root: str, http: aiohttp.ClientSession) -> None:
        self._root, self._http = root, http

    async def get(self, path: str) -> Any:
        """What the server says. Raises ServingError."""
        return await self._request("GET", path, None)

    async def post(self, path: str, body: dict[str, Any]) -> Any:
        """What the server says to the body. Raises ServingError."""
        return await self._request("POST", path, body)

    async def get_if_there(self, path: str) -> Any:
        """What the server says, None where it has no such endpoint or says no JSON."""
        try:
            return await self.get(path)
        except ServingError:
            return None

    async def _request(self, method: str, path: str, body: dict[str, Any] | None) -> Any:
        url = f"{self._root}{path}"
        try:
            async with self._http.request(method, url, json=body, allow_redirects=False) as answer:
                data = await answer.read()
        except aiohttp.ClientConnectorError as error:
            if isinstance(error.os_error, ConnectionRefusedError):
                raise ServingError("refused", f"{self._root}: nothing listens there") from None
            reason = error.os_error.strerror or str(error.os_error)
            raise ServingError("connect", f"{self._root}: cannot connect: {reason}") from None
        except TimeoutError:
            raise ServingError("connect_timeout", f"{url}: no answer in time") from None
        except (aiohttp.ClientError, OSError) as error:
            raise ServingError("disconnected", f"{url}: {error}") from None
        if answer.status != 200:
            headers = {name.lower().encode(): v.encode() for name, v in answer.headers.items()}
            failure = http_error(answer.status, headers, data)
            raise ServingError(failure.error_type, f"{url}: {failure}")
        try:
            return msgspec.json.decode(data)
        except msgspec.DecodeError:
            raise ServingError("protocol", f"{url}: the answer is not JSON") from None

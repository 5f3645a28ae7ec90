"""Why a part of a retrieval failed; it becomes a row of the trace."""

from typing import Final

EMPTY: Final = "empty"
NOT_TEXT: Final = "not_text"
TOO_LARGE: Final = "too_large"
TIMEOUT: Final = "timeout"
DNS: Final = "dns"
TLS: Final = "tls"
CONNECT: Final = "connect"
BROKEN: Final = "broken"
"""The connection ended, or what came was not valid HTTP, before all of the answer was there."""
BAD_URL: Final = "bad_url"
BAD_ANSWER: Final = "bad_answer"
"""The search endpoint's answer is not the JSON that it is to be."""
TOO_MANY_REDIRECTS: Final = "too_many_redirects"
EXTRACT_TIMEOUT: Final = "extract_timeout"
EXTRACT_FAILED: Final = "extract_failed"


def http_status(code: int) -> str:
    """The failure code of an HTTP status, such as ``http_503``."""
    return f"http_{code}"


class Failure(Exception):
    """A search, fetch or extraction that failed: a code for the row and a few words beside it."""

    def __init__(self, status: str, detail: str) -> None:
        super().__init__(f"{status}: {detail}")
        self.status = status
        self.detail = detail
